//! A centre with a long history: `make bench-history`.
//!
//! Millions of runs in the log, a tenth of them older than the retention, and a thousand fires per second.
//! Meanwhile users page through the log; then the centre deletes old runs. Figures are the latency of a page, and
//! the lateness of fires without and with the deletion.

mod past;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use tickwright_tests::Figure;
use tickwright_tests::database::Database;
use tickwright_tests::process::{
    Centre, Cluster, Nodes, Phases, Timing, Wire, Workload, percentile, until_each,
};
use tokio::net::TcpStream;

use past::Past;

/// Measures a scheduling centre with a long history.
#[derive(Parser)]
struct Options {
    /// Databases by name: sqlite, mariadb, postgresql (default: all that are available).
    databases: Vec<String>,
    /// Runs in the log.
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
}

// One thread: executors should cost as little as possible.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let wanted: Vec<String> = options.databases.iter().map(|name| name.to_lowercase()).collect();
    let mut figures = Vec::new();
    for database in Database::available() {
        if wanted.is_empty() || wanted.contains(&database.name().to_lowercase()) {
            figures.extend(measure(&database, options.rows).await?);
        }
    }
    for figure in figures {
        println!("{}", figure.json());
    }
    Ok(())
}

async fn measure(database: &Database, rows: u64) -> Result<Vec<Figure>> {
    let name = database.name();
    let home = database.create().await?;
    drop(home.open().await?);
    let started = Instant::now();
    let past = Past::until_now(rows, JOBS);
    home.run(&past.statements(database)).await?;
    println!("{name:<10} {rows} runs were written in {:.0} s", started.elapsed().as_secs_f64());

    let nodes = Nodes { centres: 1, executors: 4, lead: LEAD, length: LENGTH };
    let cluster = Cluster::build_in(home, nodes, Workload::each_second(JOBS, Phases::Spread)).await?;
    let mut centres = cluster.start_all().await?;
    let centre = centres[0].take().context("one centre was started")?;
    let mut figures = Vec::new();
    let mut figure = |case: &str, value: f64| {
        println!("{name:<10} {case:<44} {value:>8.1} ms");
        figures.push(Figure::new("history", name, case, value, "ms"));
    };

    let reader = Reader::sign_in(&centre).await?;
    for (case, path, is_filled) in past.pages() {
        let took = reader.read(&path, is_filled).await.with_context(|| path.clone())?;
        figure(&format!("{case}, p50"), percentile(&took, 50.0));
        figure(&format!("{case}, p99"), percentile(&took, 99.0));
    }
    let quiet = now_ms();
    // Deletion begins a minute after the start, and ends when the oldest run is within the retention.
    let oldest = format!("/v1/runs?until={}&limit=1", past.kept_from());
    let begun = async || reader.is_empty(&format!("/v1/runs?until={}&limit=1", past.soon_gone())).await;
    ensure!(
        begun().await.is_none(),
        "pages took so long that deleting has begun; try when the machine is idle"
    );
    until_each(LOOK, "deleting begins", PATIENCE, begun).await?;
    let deleting = now_ms();
    until_each(LOOK, "all that is old is deleted", PATIENCE, async || reader.is_empty(&oldest).await).await?;
    let over = now_ms();

    for (case, range) in
        [("late while people look", warm(&cluster)..quiet), ("late while old runs go", deleting..over)]
    {
        let timing = Timing::of(&cluster.journal, range);
        ensure!(timing.count > 0, "nothing fired: {case}");
        figure(&format!("{case}, p50"), timing.p50);
        figure(&format!("{case}, p99"), timing.p99);
        figure(&format!("{case}, max"), timing.max);
    }
    figure("deleting a tenth of the log", (over - deleting) as f64);
    centre.stop().await?;
    cluster.remove().await?;
    Ok(figures)
}

/// Start of the measurement, after connections and caches are warm, as in a centre that has been running.
fn warm(cluster: &Cluster) -> i64 {
    cluster.workload.first.as_millis() + 1_000
}

fn now_ms() -> i64 {
    tickwright_tests::process::micros_now() / 1_000
}

/// A user who pages through the log.
struct Reader {
    address: std::net::SocketAddr,
    headers: String,
}

impl Reader {
    async fn sign_in(centre: &Centre) -> Result<Reader> {
        let password = centre.first_password().context("the first start saves a password")?;
        let mut wire = Wire::new(TcpStream::connect(centre.address()).await?);
        let headers = "Content-Type: application/json\r\nTickwright-Client: bench\r\n";
        let body = format!(r#"{{"user":"admin","password":"{password}"}}"#);
        let answer = wire.ask("POST", "/v1/session", headers, &body).await?;
        let session = answer.header("tickwright-session").context("signing in gives a session")?;
        Ok(Reader { address: centre.address(), headers: format!("Authorization: Bearer {session}\r\n") })
    }

    /// Reads a page repeatedly; returns the latencies in milliseconds, sorted.
    async fn read(&self, path: &str, is_filled: bool) -> Result<Vec<f64>> {
        let mut wire = Wire::new(TcpStream::connect(self.address).await?);
        let mut took = Vec::new();
        for _ in 0..LOOKS {
            let asked = Instant::now();
            let answer = wire.ask("GET", path, &self.headers, "").await?;
            took.push(asked.elapsed().as_secs_f64() * 1_000.0);
            ensure!(answer.status() == 200, "{}", String::from_utf8_lossy(&answer.body));
            ensure!(is_empty(&answer.body)? != is_filled, "there is not on this page what should be");
            tokio::time::sleep(PAUSE).await;
        }
        took.sort_by(f64::total_cmp);
        Ok(took)
    }

    /// `Some` if the page is empty; for polling.
    async fn is_empty(&self, path: &str) -> Option<()> {
        let mut wire = Wire::new(TcpStream::connect(self.address).await.ok()?);
        let answer = wire.ask("GET", path, &self.headers, "").await.ok()?;
        is_empty(&answer.body).ok()?.then_some(())
    }
}

/// Whether a page is empty and has no next page: a search that has not gone far enough returns an empty page with a
/// next one.
fn is_empty(page: &[u8]) -> Result<bool> {
    let page: serde_json::Value = serde_json::from_slice(page)?;
    Ok(page["items"].as_array().context("a page has items")?.is_empty() && page["next"].is_null())
}

/// Jobs that fire every second.
const JOBS: u64 = 1_000;

/// Time to start the centre.
const LEAD: Duration = Duration::from_secs(5);

/// Longer than the whole benchmark, which does not wait for the end.
const LENGTH: Duration = Duration::from_secs(3_600);

/// Requests per kind of page, and the pause between two.
const LOOKS: usize = 200;
const PAUSE: Duration = Duration::from_millis(10);

const LOOK: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(1_800);
