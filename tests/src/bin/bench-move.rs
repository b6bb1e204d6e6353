//! Moving in: `make bench-move`.
//!
//! Jobs that a Java admin left in the database are adopted, by one node and by several that start at once; jobs from
//! files are imported, started, stopped and deleted, with one command each. Meanwhile other jobs fire. Figures are the
//! times, also relative to plain SQL, and the ledger of the fires: lost, without a record, latest.

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use tickwright_tests::Figure;
use tickwright_tests::database::Database;
use tickwright_tests::process::{
    Cluster, Nodes, Others, Phases, Template, Timing, Workload, import_at_once, micros_now, move_in,
    plain_rows, take_over,
};

/// Measures how fast many jobs arrive at a scheduling centre.
#[derive(Parser)]
struct Options {
    /// Databases by name: sqlite, mariadb, postgresql (default: all that are available).
    databases: Vec<String>,
    /// Numbers of jobs to adopt.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000])]
    adopt: Vec<u64>,
    /// Number of nodes that start at once on a database server; they adopt the largest number of jobs.
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Numbers of jobs to import, start, stop and delete.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000])]
    jobs: Vec<usize>,
    /// Numbers of jobs to import, in one file and in eight files at once.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000])]
    import: Vec<usize>,
    /// Number of started jobs of a Java admin to take over, and then to change with SQL while they fire.
    #[arg(long, default_value_t = 20_000)]
    takeover: i64,
}

// One thread: executors should cost as little as possible.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let wanted: Vec<String> = options.databases.iter().map(|name| name.to_lowercase()).collect();
    let mut table = Table::default();
    println!(
        "{:<10} {:<30} {:>8} {:>7}  fires of other jobs: lost, without a record, latest",
        "database", "command", "seconds", "x SQL"
    );
    for database in Database::available() {
        if !wanted.is_empty() && !wanted.contains(&database.name().to_lowercase()) {
            continue;
        }
        for jobs in &options.adopt {
            adopt(&database, *jobs, 1, &mut table).await?;
        }
        if let (Some(most), true) = (options.adopt.iter().max(), options.nodes > 1)
            && !matches!(database, Database::Sqlite)
        {
            adopt(&database, *most, options.nodes, &mut table).await?;
        }
        takeover(&database, options.takeover, &mut table).await?;
        for jobs in &options.jobs {
            arrive(&database, *jobs, &mut table).await?;
        }
        for jobs in &options.import {
            for files in [1, FILES] {
                import(&database, *jobs, files, &mut table).await?;
            }
        }
    }
    for figure in table.figures {
        println!("{}", figure.json());
    }
    Ok(())
}

/// Imports at once.
const FILES: usize = 8;

/// Takes over the started jobs of a Java admin, which are then changed with SQL.
async fn takeover(database: &Database, jobs: i64, table: &mut Table) -> Result<()> {
    let found = take_over(database, jobs, OBEYED_WITHIN).await?;
    let name = database.name();
    println!("{name:<10} take over {jobs} jobs: {found}");
    let mut add = |case: &str, value: f64, unit| {
        table.figures.push(Figure::new("move", name, &format!("take over {jobs}, {case}"), value, unit));
    };
    add("lost", found.lost as f64, "fires");
    add("silent", found.silent as f64, "fires");
    add("skipped", found.skipped as f64, "fires");
    add("latest", found.latest.as_secs_f64() * 1_000.0, "ms");
    add("changes by SQL, obeyed after", found.obeyed_after.as_secs_f64() * 1_000.0, "ms");
    add("changes by SQL, disobeyed", found.disobeyed as f64, "fires");
    Ok(())
}

/// Time within which a change by another program is to be obeyed.
const OBEYED_WITHIN: Duration = Duration::from_secs(2);

/// Figures that are printed as rows for people, and collected for machines.
#[derive(Default)]
struct Table {
    figures: Vec<Figure>,
}

impl Table {
    /// A command with its time, and the time of plain SQL.
    fn command(&mut self, name: &'static str, case: &str, took: Duration, plain: Option<Duration>) {
        let (took, plain) = (took.as_secs_f64(), plain.map(|plain| plain.as_secs_f64()));
        let ratio = plain.map(|plain| took / plain.max(0.001));
        let shown = ratio.map_or_else(String::new, |ratio| format!("{ratio:.1}"));
        println!("{name:<10} {case:<30} {took:>8.2} {shown:>7}");
        self.figures.push(Figure::new("move", name, case, took, "s"));
        if let Some(ratio) = ratio {
            self.figures.push(Figure::new("move", name, &format!("{case} to plain SQL"), ratio, "x"));
        }
    }

    /// The fires due meanwhile.
    fn fires(&mut self, name: &'static str, case: &str, lost: usize, silent: usize, latest_ms: f64) {
        println!(
            "{name:<10} {:<30} {:>8} {:>7}  {lost}, {silent}, {latest_ms:.0} ms",
            format!("{case}: fires"),
            "",
            ""
        );
        for (what, value, unit) in
            [("lost", lost as f64, "fires"), ("silent", silent as f64, "fires"), ("latest", latest_ms, "ms")]
        {
            self.figures.push(Figure::new("move", name, &format!("{case} {what}"), value, unit));
        }
    }

    fn others(&mut self, name: &'static str, case: &str, others: &Others) {
        let latest_ms = others.latest.as_secs_f64() * 1_000.0;
        self.fires(name, case, others.check.lost(), others.check.silent, latest_ms);
    }
}

/// Starts nodes on a database with jobs that they have never seen.
async fn adopt(database: &Database, jobs: u64, count: usize, table: &mut Table) -> Result<()> {
    let name = database.name();
    let home = database.create().await?;
    // With XXL-JOB's tables there first, nodes take Java admins into account.
    home.create_xxl_tables().await?;
    // Two hundred fires per second, however many jobs there are.
    let period = Duration::from_secs((jobs / 200).max(5));
    let nodes = Nodes { centres: count, executors: 2, lead: ADOPT_LEAD, length: ADOPT_LENGTH };
    let templates = vec![Template::skipping()];
    let workload = Workload { period, templates, ..Workload::each_second(jobs, Phases::Spread) };
    let cluster = Cluster::build_in(home, nodes, workload).await?;
    cluster.forget_own_rows().await?;
    cluster.register_as_java_admin().await?;
    let started = Instant::now();
    let centres = cluster.start_together().await?;
    let took = started.elapsed();
    let ready_ms = micros_now() / 1_000;
    cluster.register_executors().await?;
    cluster.settle(Duration::from_secs(10)).await?;
    for centre in centres {
        centre.stop().await?;
    }
    let check = cluster.check().await?;
    // Earlier fires are skipped by the misfire policy, on record, or sent late.
    let lost = check.missing.iter().filter(|(_, due_ms)| *due_ms > ready_ms).count();
    let timing = Timing::of(&cluster.journal, ready_ms + 1..i64::MAX);
    let case = match count {
        1 => format!("adopt {jobs}"),
        _ => format!("adopt {jobs} by {count} nodes"),
    };
    table.command(name, &case, took, None);
    table.fires(name, &case, lost, check.silent, timing.max);
    cluster.remove().await
}

/// Imports, starts, stops and deletes jobs.
async fn arrive(database: &Database, jobs: usize, table: &mut Table) -> Result<()> {
    let name = database.name();
    let (inserted, updated) = plain_rows(database, jobs).await?;
    table.command(name, &format!("plain INSERT {jobs}"), inserted, None);
    table.command(name, &format!("plain UPDATE {jobs}"), updated, None);
    let moved = move_in(database, jobs).await?;
    for (case, took, plain) in [
        ("import", moved.import, inserted),
        ("import again", moved.import_again, inserted),
        ("bulk start", moved.start, updated),
        ("bulk stop", moved.stop, updated),
        ("bulk start, listed", moved.start_listed, updated),
        ("bulk stop, listed", moved.stop_listed, updated),
        ("bulk delete", moved.delete, inserted),
    ] {
        table.command(name, &format!("{case} {jobs}"), took, Some(plain));
    }
    table.others(name, &format!("all commands {jobs}"), &moved.others);
    println!("{name:<10} {} fires of the new jobs, {} of them after the stop", moved.fired, moved.after_stop);
    let after_stop = Figure::new("move", name, "after stop", moved.after_stop as f64, "fires");
    table.figures.push(after_stop);
    Ok(())
}

/// Imports jobs, in several files at once.
async fn import(database: &Database, jobs: usize, files: usize, table: &mut Table) -> Result<()> {
    let name = database.name();
    let (took, others) = import_at_once(database, jobs, files).await?;
    let case = match files {
        1 => format!("import {jobs} in one file"),
        _ => format!("import {jobs} in {files} files"),
    };
    table.command(name, &case, took, None);
    table.others(name, &case, &others);
    Ok(())
}

/// Time to write the jobs, and to start the centre.
const ADOPT_LEAD: Duration = Duration::from_secs(5);

/// How long fires are counted.
const ADOPT_LENGTH: Duration = Duration::from_secs(25);
