//! Kills an executor repeatedly, at random moments. Every run it accepted is reported, and none is executed twice.
//!
//! Killing alone would rarely show whether something was on disk before it was sent, because the disk is faster
//! than the network. So in some rounds the disk is full first. Anything sent from then on without being written is
//! certainly lost, and the next process contradicts it.
#![cfg(unix)]

mod kit;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kit::{Centre, Fault, TOKEN, trigger};
use protocol::xxl::Lineage;
use rustix::process::{Resource, Rlimit, setrlimit};
use tickwright_executor::{Context, Executor, Job};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Kills per test history.
const ROUNDS: usize = 6;
const RUNS_PER_ROUND: i64 = 24;
/// Upper bound of the space left on the full disk: about the journal size of one round's runs.
const ROOM_MAX: u64 = 3_000;
/// Length of the journal line that records the acceptance of run 1.
const ACCEPTED_LENGTH: u64 = "01234567 accepted 1 1794769410531\n".len() as u64;
/// Many times the latency of a report.
const HEARSAY: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_accepted_run_is_reported_and_none_is_run_twice() {
    let seeds = match std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => (1..=8).collect(),
    };
    for seed in seeds {
        println!("SEED={seed}");
        play(seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_on_disk_nobody_hears_of() {
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().expect("a directory");
    // Space for accepting a run, but not for its result.
    let (child, to) = start(&centre, directory.path(), 0, Some(ACCEPTED_LENGTH + 10)).await;
    assert_eq!(ask(to, 1).await, Some(1));
    until(|| (times(directory.path(), "end", 1) == 1).then_some(())).await;
    assert_eq!(ask(to, 2).await, None, "who cannot write takes no more");
    let told = centre.until("a result", |centre| !centre.results().is_empty());
    assert!(tokio::time::timeout(HEARSAY, told).await.is_err(), "told before it was written");
    drop(child);

    let (child, to) = start(&centre, directory.path(), 1, None).await;
    let (code, message) = centre.result(1).await;
    assert!(code == 500 && message.starts_with("the executor was restarted"), "{message}");
    assert_eq!(ask(to, 2).await, Some(2), "it was not taken before");
    assert_eq!(centre.result(2).await, (200, "did 2".to_owned()));
    // The response is either "finished" or "duplicate".
    ask(to, 1).await;
    drop(child);
    assert_eq!([1, 2].map(|run_id| times(directory.path(), "start", run_id)), [1, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_is_told_again_in_the_same_words_until_it_is_confirmed() {
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().expect("a directory");
    for life in 0..3 {
        // Killed after the centre has stored the result and before it responds.
        centre.plan([Fault::Hang]);
        let (child, to) = start(&centre, directory.path(), life, None).await;
        ask(to, 1).await;
        centre.until("the result", |centre| centre.results().len() == life + 1).await;
        drop(child);
    }
    centre.plan([]);
    let (child, to) = start(&centre, directory.path(), 3, None).await;
    centre.until("it is confirmed", |centre| !centre.confirmed().is_empty()).await;
    ask(to, 1).await;
    drop(child);
    let told: Vec<_> = centre.results().into_iter().map(|item| (item.handle_code, item.handle_msg)).collect();
    assert_eq!(told, vec![(200, Some("did 1".to_owned())); 4]);
    assert_eq!(times(directory.path(), "start", 1), 1);
}

/// Plays one history of kills.
async fn play(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().expect("a directory");
    let mut sent: Vec<i64> = Vec::new();
    let mut accepted: BTreeSet<i64> = BTreeSet::new();
    for round in 0..ROUNDS {
        // A result may be rejected, or be stored without the executor receiving the response.
        let faults =
            [None, Some(Fault::LoseAnswer), Some(Fault::Hang), Some(Fault::Refuse), Some(Fault::Status500)];
        centre.plan(faults[random.usize(0..faults.len())]);
        let room = random.bool().then(|| random.u64(0..ROOM_MAX));
        let (child, to) = start(&centre, directory.path(), round, room).await;
        let fresh: Vec<i64> = (0..RUNS_PER_ROUND).map(|n| round as i64 * RUNS_PER_ROUND + n + 1).collect();
        let mut requests = fresh.clone();
        // Earlier requests are repeated, in any state of their runs.
        requests.extend((0..RUNS_PER_ROUND / 2).filter_map(|_| random.choice(&sent).copied()));
        random.shuffle(&mut requests);
        sent.extend(fresh);
        let asking: Vec<_> = requests.into_iter().map(|run_id| tokio::spawn(ask(to, run_id))).collect();
        // Hits reading of requests, writing to disk, handlers, and reporting.
        let longest = [2_000, 10_000, 100_000, 100_000][random.usize(0..4)];
        let killed_at = tokio::time::sleep(Duration::from_micros(random.u64(0..longest)));
        // Or exactly when a result has arrived, while the executor waits for the response.
        let known = centre.results().len() + random.usize(1..12);
        let is_aimed = random.bool();
        tokio::select! {
            () = killed_at, if !is_aimed => {}
            () = centre.until("some results", |centre| centre.results().len() >= known), if is_aimed => {}
            // Fewer results may arrive than expected.
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
        }
        drop(child);
        for asked in asking {
            accepted.extend(asked.await.expect("asking does not panic"));
        }
    }
    centre.plan([]);
    let (child, _) = start(&centre, directory.path(), ROUNDS, None).await;
    // Includes runs with a result that the centre has stored without the executor receiving the response.
    let told = centre.results().into_iter().map(|item| item.log_id);
    let owed: BTreeSet<i64> = accepted.iter().copied().chain(told).collect();
    centre.until("all results are confirmed", |centre| owed.is_subset(&centre.confirmed())).await;
    drop(child);

    let times = |what: &str, run_id: i64| times(directory.path(), what, run_id);
    let mut outcomes: BTreeMap<i64, (i64, Option<String>)> = BTreeMap::new();
    for item in centre.results() {
        assert!(sent.contains(&item.log_id), "nobody asked for {}", item.log_id);
        let outcome = (item.handle_code, item.handle_msg);
        let first = outcomes.entry(item.log_id).or_insert_with(|| outcome.clone());
        assert_eq!(*first, outcome, "two outcomes of run {}", item.log_id);
    }
    for run_id in sent {
        assert!(times("start", run_id) <= 1, "run {run_id} was run twice");
        assert!(times("end", run_id) <= times("start", run_id));
        match outcomes.get(&run_id) {
            Some((200, message)) => {
                assert_eq!(message.as_deref(), Some(format!("did {run_id}").as_str()));
                assert_eq!(times("end", run_id), 1, "run {run_id} did not end");
            }
            Some((code, message)) => {
                let message = message.as_deref().unwrap_or_default();
                assert!(*code == 500 && message.starts_with("the executor was restarted"), "{message}");
            }
            None => assert!(!accepted.contains(&run_id), "run {run_id} was forgotten"),
        }
    }
    // A process reports a run once, unless a response is lost.
    let mut seen = BTreeSet::new();
    for (process, run_id) in centre.senders() {
        let is_first = seen.insert((process.clone(), run_id));
        assert!(is_first || centre.kept_waiting(&process), "{process} reported run {run_id} twice");
    }
    println!("{} runs accepted, {} reported", accepted.len(), outcomes.len());
    assert!(!accepted.is_empty());
}

/// Sends a trigger request; returns the run's id if it was accepted.
async fn ask(to: SocketAddr, run_id: i64) -> Option<i64> {
    // Some jobs have many waiting runs when the process is killed.
    let request = kit::with(trigger(run_id, "work", &(run_id % 20).to_string()), "jobId", run_id % 7 + 1);
    let body = request.to_string();
    let request = format!(
        "POST /run HTTP/1.1\r\nHost: x\r\nXXL-JOB-ACCESS-TOKEN: {TOKEN}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(to).await.ok()?;
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    answer.contains(r#"{"code":200,"#).then_some(run_id)
}

/// Starts this test binary as an executor, with its own app name. `room` limits the growth of its journal.
async fn start(centre: &Centre, directory: &Path, number: usize, room: Option<u64>) -> (Process, SocketAddr) {
    let address = directory.join("address");
    let _ = fs::remove_file(&address);
    let mut command = Command::new("sh");
    // Makes a write beyond the limit fail as on a full disk, instead of ending the process.
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    if let Some(room) = room {
        command.env("TEST_ROOM", room.to_string());
    }
    let child = command
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "the_executor_that_is_killed"])
        .env("TEST_CENTRE", centre.url())
        .env("TEST_DIRECTORY", directory)
        .env("TEST_APP", format!("process-{number}"))
        .stdout(Stdio::null())
        .spawn()
        .expect("this program runs");
    let child = Process(child);
    let address = until(|| fs::read_to_string(&address).ok()?.parse().ok()).await;
    (child, address)
}

/// How often the handler recorded this event of a run.
fn times(directory: &Path, what: &str, run_id: i64) -> usize {
    let work = fs::read_to_string(directory.join("work")).unwrap_or_default();
    work.lines().filter(|line| *line == format!("{what} {run_id}")).count()
}

/// Polls until a value is available.
async fn until<T>(seen: impl Fn() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(seen) = seen() {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), looking).await.expect("it comes")
}

/// Killed when dropped, also when a test fails.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The executor that the tests above start and kill. Does nothing when run as a test.
#[test]
fn the_executor_that_is_killed() {
    let variables = ["TEST_CENTRE", "TEST_DIRECTORY", "TEST_APP"].map(std::env::var);
    let [Ok(centre), Ok(directory), Ok(app)] = variables else { return };
    let directory = Path::new(&directory).to_owned();
    let notes = directory.join("work");
    let work = Job::new("work", move |ctx: Context| {
        let notes = notes.clone();
        async move {
            let note = |what: &str| {
                let mut file = OpenOptions::new().create(true).append(true).open(&notes).unwrap();
                file.write_all(format!("{what} {}\n", ctx.run_id()).as_bytes()).unwrap();
            };
            note("start");
            tokio::time::sleep(Duration::from_millis(ctx.param().parse().unwrap())).await;
            note("end");
            format!("did {}", ctx.run_id())
        }
    });
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let builder = Executor::builder(app).centre(centre).token(TOKEN).listen("127.0.0.1:0");
        let executor = builder.directory(directory.join("executor")).job(work).start().await.unwrap();
        if let Ok(room) = std::env::var("TEST_ROOM") {
            fill_disk(&directory.join("executor/journal"), room.parse().unwrap());
        }
        fs::write(directory.join("address.new"), executor.local_address().to_string()).unwrap();
        fs::rename(directory.join("address.new"), directory.join("address")).unwrap();
        std::future::pending::<()>().await;
    });
}

/// Limits the size of this process's files to the current length of the journal (by far the longest) plus `room`.
fn fill_disk(journal: &Path, room: u64) {
    let length = fs::metadata(journal).expect("a journal").len();
    let limit = Rlimit { current: Some(length + room), maximum: None };
    setrlimit(Resource::Fsize, limit).expect("a limit may be lowered");
}
