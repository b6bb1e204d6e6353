//! Thousands of jobs arrive at a running centre: imported, started, stopped and deleted with one command or request
//! each, while other jobs fire.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use timer::Timestamp;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::centre::{Centre, binary};
use super::checker::Check;
use super::cluster::{Cluster, Nodes};
use super::journal::{Entry, Journal, micros_now};
use super::workload::{Phases, Workload};
use crate::database::Database;
use crate::serve::{Client, Folder};

/// Times of the commands, and the ledger of the fires.
#[derive(Debug)]
pub struct MoveIn {
    /// `import` of new jobs.
    pub import: Duration,
    /// `import` of the same file again.
    pub import_again: Duration,
    /// `job start` of all of them, by their tag.
    pub start: Duration,
    /// `job stop` of all of them, by their tag, while they fire.
    pub stop: Duration,
    /// Requests that start and stop all of them, listed by their ids.
    pub start_listed: Duration,
    /// The same for stopping them.
    pub stop_listed: Duration,
    /// `job rm` of all of them.
    pub delete: Duration,
    /// Fires of the new jobs before the stop.
    pub fired: usize,
    /// Fires of the new jobs that arrived after the stop was acknowledged.
    pub after_stop: usize,
    /// Fires of the other jobs.
    pub others: Others,
}

/// Jobs that fire all the time while others are moved.
#[derive(Debug)]
pub struct Others {
    /// Their fires.
    pub check: Check,
    /// Lateness of the latest of them.
    pub latest: Duration,
}

/// Imports, starts, stops and deletes this many jobs, which fire every five seconds.
pub async fn move_in(database: &Database, jobs: usize) -> Result<MoveIn> {
    let running = Running::start(database).await?;
    let user = &running.user;
    let file = user.file("moved", jobs)?;
    let import = user.run(&["import", &file]).await?;
    let import_again = user.run(&["import", &file]).await?;
    let start = user.run(&["job", "start", "--tag", TAG, "--yes"]).await?;
    tokio::time::sleep(FIRING).await;
    let fired = running.moved_entries().len();
    let stop = user.run(&["job", "stop", "--tag", TAG, "--yes"]).await?;
    let stopped_us = micros_now();
    tokio::time::sleep(QUIET).await;
    let is_late = |entry: &&Entry| entry.arrived_us > stopped_us + TOLERANCE.as_micros() as i64;
    let after_stop = running.moved_entries().iter().filter(is_late).count();
    let moved = running.cluster.home.numbers("SELECT job_id, job_id, job_id FROM tw_job_tag").await?;
    let ids: Vec<i64> = moved.into_iter().map(|(job, _, _)| job).collect();
    ensure!(ids.len() == jobs, "{} of {jobs} jobs were imported", ids.len());
    let start_listed = user.change("start", &ids).await?;
    let stop_listed = user.change("stop", &ids).await?;
    let delete = user.run(&["job", "rm", "--tag", TAG, "--yes"]).await?;
    let others = running.end().await?;
    Ok(MoveIn {
        import,
        import_again,
        start,
        stop,
        start_listed,
        stop_listed,
        delete,
        fired,
        after_stop,
        others,
    })
}

/// Imports this many jobs, in several files at the same time. Returns the time until the last import has ended.
pub async fn import_at_once(database: &Database, jobs: usize, files: usize) -> Result<(Duration, Others)> {
    let running = Running::start(database).await?;
    let paths: Vec<String> = (0..files)
        .map(|file| running.user.file(&format!("file-{file}"), jobs / files))
        .collect::<Result<_>>()?;
    let started = Instant::now();
    let words: Vec<[&str; 2]> = paths.iter().map(|path| ["import", path.as_str()]).collect();
    let imports = words.iter().map(|words| running.user.run(words));
    futures_util::future::try_join_all(imports).await?;
    let took = started.elapsed();
    Ok((took, running.end().await?))
}

/// Rows that a move writes at least, written with plain SQL in durable transactions of a thousand rows: the time to
/// insert the rows of this many jobs, and the time to update them.
pub async fn plain_rows(database: &Database, jobs: usize) -> Result<(Duration, Duration)> {
    let home = database.create().await?;
    drop(home.open().await?);
    let numbers: Vec<usize> = (1..=jobs).collect();
    let rows = |numbers: &[usize], row: &dyn Fn(usize) -> String| -> String {
        numbers.iter().map(|number| row(*number)).collect::<Vec<_>>().join(", ")
    };
    let insert = |numbers: &[usize]| {
        let info = |id: usize| {
            format!(
                "({id}, 1, 'Moved {id}', 'FIX_RATE', '5', 'journal', '{{\"source\":\"shop\",\"limit\":{id}}}', 'BEAN')"
            )
        };
        let own = |id: usize| format!("({id}, 'moved/{id:06}', 'FIX_RATE 5')");
        vec![
            format!(
                "INSERT INTO xxl_job_info (id, job_group, job_desc, schedule_type, schedule_conf, executor_handler, \
                 executor_param, glue_type) VALUES {}",
                rows(numbers, &info)
            ),
            format!("INSERT INTO tw_job (job_id, job_key, written) VALUES {}", rows(numbers, &own)),
        ]
    };
    let update = |numbers: &[usize]| {
        let (first, last) = (numbers.first().copied().unwrap_or(0), numbers.last().copied().unwrap_or(0));
        vec![
            format!(
                "UPDATE xxl_job_info SET trigger_status = 1, trigger_next_time = {first} + id \
                 WHERE id BETWEEN {first} AND {last}"
            ),
            format!(
                "UPDATE tw_job SET next_ms = {first} + job_id, claim_ms = {first} + job_id \
                 WHERE job_id BETWEEN {first} AND {last}"
            ),
        ]
    };
    let started = Instant::now();
    for numbers in numbers.chunks(1_000) {
        home.commit(insert(numbers)).await?;
    }
    let inserted = started.elapsed();
    for numbers in numbers.chunks(1_000) {
        home.commit(update(numbers)).await?;
    }
    let updated = started.elapsed() - inserted;
    home.remove().await?;
    Ok((inserted, updated))
}

/// A node with jobs that fire all the time, and an administrator.
struct Running {
    cluster: Cluster,
    centre: Centre,
    user: User,
}

impl Running {
    async fn start(database: &Database) -> Result<Running> {
        let nodes = Nodes { centres: 1, executors: 2, lead: LEAD, length: LENGTH };
        let workload = Workload::each_second(OTHERS, Phases::Spread);
        let home = async || database.create().await;
        let (cluster, centres) = Cluster::start_in_time(home, nodes, &workload, None).await?;
        let centre = centres.into_iter().flatten().next().context("one node was started")?;
        let user = User::sign_in(&centre).await?;
        cluster.at(Duration::from_secs(1)).await;
        Ok(Running { cluster, centre, user })
    }

    fn moved_entries(&self) -> Vec<Entry> {
        let others = self.cluster.workload.jobs as i64;
        self.cluster.journal.entries().into_iter().filter(|entry| entry.job > others).collect()
    }

    /// Stops the node, and compares the fires of the other jobs until now with their schedules.
    async fn end(self) -> Result<Others> {
        let Running { mut cluster, centre, .. } = self;
        cluster.workload.last = Timestamp::from_millis(micros_now() / 1_000);
        tokio::time::sleep(QUIET).await;
        centre.stop().await?;
        let own = others(&cluster);
        let mut check = Check::of(&cluster.workload, cluster.executors.len(), &own);
        let store = cluster.store().await?;
        check.explain(&cluster.workload, &own, &store).await?;
        drop(store);
        let latest = own.entries().iter().map(Entry::lateness_us).max().unwrap_or_default();
        let latest = Duration::from_micros(u64::try_from(latest).unwrap_or(0));
        cluster.remove().await?;
        Ok(Others { check, latest })
    }
}

/// The journal of the jobs that fire all the time, until the last fire that counts.
fn others(cluster: &Cluster) -> Journal {
    let own = Journal::default();
    let (mut runs, last) = (HashSet::new(), cluster.workload.jobs as i64);
    let counts = |entry: &Entry| entry.job <= last && entry.scheduled_ms <= cluster.workload.last.as_millis();
    for entry in cluster.journal.entries().into_iter().filter(counts) {
        runs.insert(entry.run);
        own.take(entry);
    }
    own.acknowledge(cluster.journal.acknowledged().into_iter().filter(|run| runs.contains(run)));
    own
}

/// Jobs that fire all the time, each once per second.
const OTHERS: u64 = 100;

const TAG: &str = "moved";
const LEAD: Duration = Duration::from_secs(8);

/// Longer than all commands take.
const LENGTH: Duration = Duration::from_secs(3_600);

/// Interval of the new jobs.
const EVERY: Duration = Duration::from_secs(5);

/// How long the new jobs fire before they are stopped: each at least once.
const FIRING: Duration = Duration::from_secs(7);

/// More than the time that a request needs to arrive, and than the look-ahead of a claim.
const QUIET: Duration = Duration::from_secs(3);

/// A request that left before the acknowledgement may arrive this much later.
const TOLERANCE: Duration = Duration::from_millis(100);

/// A file for `tickwright import`.
fn yaml(name: &str, jobs: usize) -> String {
    let mut text = String::from("jobs:\n");
    for number in 0..jobs {
        writeln!(
            text,
            "  {name}/{number:06}:\n    app: journal\n    name: Moved {number}\n    handler: journal\n    \
             schedule: {{kind: fixed_rate, every_ms: {}}}\n    route: round_robin\n    tags: [{TAG}]\n    \
             param: '{{\"source\":\"shop\",\"target\":\"warehouse\",\"limit\":{number}}}'",
            EVERY.as_millis()
        )
        .expect("a string can be written to");
    }
    text
}

/// An administrator at the command line.
struct User {
    folder: Folder,
    url: String,
    client: Client,
}

impl User {
    async fn sign_in(centre: &Centre) -> Result<User> {
        let password = centre.first_password().context("a new database has a first administrator")?;
        let client = Client::sign_in(centre.address(), &password).await?;
        let user = User { folder: Folder::new("user")?, url: format!("http://{}", centre.address()), client };
        let mut login = user.command(&["login", &user.url, "--user", "admin"])?;
        let mut login = login.stdin(Stdio::piped()).spawn()?;
        let mut input = login.stdin.take().context("it reads a password")?;
        input.write_all(format!("{password}\n").as_bytes()).await?;
        drop(input);
        ensure!(login.wait().await?.success(), "the administrator could not sign in");
        Ok(user)
    }

    /// Writes a file for `tickwright import`; returns its path.
    fn file(&self, name: &str, jobs: usize) -> Result<String> {
        let file = self.folder.path().join(format!("{name}.yaml"));
        std::fs::write(&file, yaml(name, jobs))?;
        Ok(file.to_str().context("a path of letters")?.to_owned())
    }

    /// Runs a command; returns how long it took.
    async fn run(&self, words: &[&str]) -> Result<Duration> {
        let started = Instant::now();
        let done = self.command(words)?.stdin(Stdio::null()).stderr(Stdio::piped()).output().await?;
        let took = started.elapsed();
        ensure!(done.status.success(), "{words:?} failed: {}", String::from_utf8_lossy(&done.stderr));
        Ok(took)
    }

    /// Starts or stops listed jobs with one request; returns how long it took.
    async fn change(&self, action: &str, jobs: &[i64]) -> Result<Duration> {
        let started = Instant::now();
        let body = json!({ "action": action, "jobs": jobs });
        let results = self.client.done("POST", "/v1/jobs/bulk", &body).await?;
        let took = started.elapsed();
        let results = results.as_array().context("a list of results")?;
        let refused = results.iter().find(|result| !result["problem"].is_null());
        ensure!(results.len() == jobs.len() && refused.is_none(), "{action}: {refused:?}");
        Ok(took)
    }

    fn command(&self, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(binary()?);
        command.args(words).env("XDG_CONFIG_HOME", self.folder.path());
        command.env("TICKWRIGHT_URL", &self.url).stdout(Stdio::null());
        Ok(command)
    }
}
