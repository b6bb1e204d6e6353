//! An executor is killed again and again, at any moment. Every run it accepted is reported, and none is run twice.

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
use tickwright_executor::{Context, Executor, Job};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Kills per history.
const ROUNDS: usize = 6;
const RUNS_PER_ROUND: i64 = 24;

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

/// One history of kills.
async fn play(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().expect("a directory");
    let mut sent: Vec<i64> = Vec::new();
    let mut accepted: BTreeSet<i64> = BTreeSet::new();
    for round in 0..ROUNDS {
        // A result may not be taken, or be taken without the executor hearing of it.
        let faults = [None, Some(Fault::LoseAnswer), Some(Fault::Refuse), Some(Fault::Status500)];
        centre.plan(faults[random.usize(0..4)]);
        let (child, to) = start(&centre, directory.path(), round).await;
        let fresh: Vec<i64> = (0..RUNS_PER_ROUND).map(|n| round as i64 * RUNS_PER_ROUND + n + 1).collect();
        let mut requests = fresh.clone();
        // What was sent before is sent again, whatever became of it.
        requests.extend((0..RUNS_PER_ROUND / 2).filter_map(|_| random.choice(&sent).copied()));
        random.shuffle(&mut requests);
        sent.extend(fresh);
        let asking: Vec<_> = requests.into_iter().map(|run_id| tokio::spawn(ask(to, run_id))).collect();
        // While requests are read, while the disk is written, while handlers work, while results are sent.
        let longest = [2_000, 10_000, 100_000, 100_000][random.usize(0..4)];
        let killed_at = tokio::time::sleep(Duration::from_micros(random.u64(0..longest)));
        // Or just as some result has come, while the executor waits to hear that it was taken.
        let known = centre.results().len() + random.usize(1..12);
        let is_aimed = random.bool();
        tokio::select! {
            () = killed_at, if !is_aimed => {}
            () = centre.until("some results", |centre| centre.results().len() >= known), if is_aimed => {}
            // Fewer may come than were hoped for.
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
        }
        drop(child);
        for asked in asking {
            accepted.extend(asked.await.expect("asking does not panic"));
        }
    }
    centre.plan([]);
    let (child, _) = start(&centre, directory.path(), ROUNDS).await;
    centre
        .until("all results", |centre| {
            let reported: BTreeSet<i64> = centre.results().iter().map(|item| item.log_id).collect();
            accepted.is_subset(&reported)
        })
        .await;
    drop(child);

    let work = fs::read_to_string(directory.path().join("work")).unwrap_or_default();
    let times =
        |what: &str, run_id: i64| work.lines().filter(|line| *line == format!("{what} {run_id}")).count();
    let mut outcomes: BTreeMap<i64, (i32, Option<String>)> = BTreeMap::new();
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
    // A process reports a run once, unless the answer is lost.
    let mut seen = BTreeSet::new();
    for (process, run_id) in centre.senders() {
        let is_first = seen.insert((process.clone(), run_id));
        assert!(is_first || centre.kept_waiting(&process), "{process} reported run {run_id} twice");
    }
    println!("{} runs accepted, {} reported", accepted.len(), outcomes.len());
    assert!(!accepted.is_empty());
}

/// Asks for a run; gives its id if it was accepted.
async fn ask(to: SocketAddr, run_id: i64) -> Option<i64> {
    // Some jobs have many runs waiting when the end comes.
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

/// Starts this very program as an executor, under a name of its own.
async fn start(centre: &Centre, directory: &Path, number: usize) -> (Process, SocketAddr) {
    let address = directory.join("address");
    let _ = fs::remove_file(&address);
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "the_executor_that_is_killed"])
        .env("TEST_CENTRE", centre.url())
        .env("TEST_DIRECTORY", directory)
        .env("TEST_APP", format!("process-{number}"))
        .stdout(Stdio::null())
        .spawn()
        .expect("this program runs");
    let child = Process(child);
    let started = async {
        loop {
            if let Some(address) = fs::read_to_string(&address).ok().and_then(|text| text.parse().ok()) {
                return address;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let address = tokio::time::timeout(Duration::from_secs(30), started).await.expect("it starts");
    (child, address)
}

/// Killed when dropped, by a failing test too.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the test above starts and kills. By itself, it has nothing to do.
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
        fs::write(directory.join("address.new"), executor.local_address().to_string()).unwrap();
        fs::rename(directory.join("address.new"), directory.join("address")).unwrap();
        std::future::pending::<()>().await;
    });
}
