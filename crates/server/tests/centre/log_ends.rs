//! Logs end, and no line comes twice, for every kind of answer of an executor, while a run goes on and after.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::{RunId, RunState};
use serde_json::Value;

use crate::fake::{Fake, log_page};
use crate::kit::{Bench, until};
use crate::script::{NEW, Script};
use crate::v1::client::Client;

const TEXT: &str = "first\nsecond\nthird\n";

/// Answers of real clients to a request for another line than the first: first line, last line, text and end mark,
/// as a function of the requested line.
type Habit = fn(u64) -> Value;

const HABITS: [(&str, Habit); 6] = [
    ("whole text, counted on, end", |from| log_page(from, from + 2, TEXT, true)),
    ("whole text, counted on, never an end", |from| log_page(from, from + 2, TEXT, false)),
    ("whole text, its own numbers, end", |_| log_page(1, 3, TEXT, true)),
    ("whole text, one line more each time", |from| log_page(from, from, TEXT, true)),
    ("the last lines once more, with their numbers", |from| log_page(from, 3, TEXT, false)),
    ("an end with the lines", |from| {
        if from == 1 { log_page(1, 3, TEXT, true) } else { log_page(from, from, "", true) }
    }),
];

/// A finished run with an executor that answers log requests in this way.
async fn finished(bench: &Bench, fake: &Fake, habit: Habit) -> RunId {
    fake.answers("/log", move |asked| Some(habit(asked["fromLineNum"].as_u64().unwrap())));
    let job = bench.job("talker", |_| {}).await;
    let run = bench.engine.trigger(job, fastrand::i64(1..), None).await.unwrap();
    until("it runs", async || (fake.calls("/run") > 0).then_some(())).await;
    fake.reports(bench, run, 200, "done").await;
    run
}

#[tokio::test]
async fn every_reader_of_a_finished_run_sees_each_line_once_and_then_the_end() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let script = bench.admin_script(NEW).await;
    for (name, habit) in HABITS {
        let fake = Fake::start(&bench).await;
        let run = finished(&bench, &fake, habit).await;
        assert_eq!(pages(&admin, run).await, TEXT, "page by page: {name}");
        assert_eq!(web_pages(&script, run).await, TEXT, "logDetailCat: {name}");
        let download = format!("/v1/runs/{run}/log/download");
        assert_eq!(body(&admin, &download).await, TEXT, "download: {name}");
        let live = body(&admin, &format!("/v1/runs/{run}/log/live")).await;
        assert_eq!(texts_of(&live), TEXT, "live: {name}");
        let kept = until("the log is kept", async || bench.database.kept_run_log(run).await.unwrap()).await;
        assert_eq!((kept.text.as_str(), kept.complete), (TEXT, true), "kept: {name}");
        fake.leaves(&bench).await;
    }
    bench.stop().await;
}

/// Answers of executors to a request for a log that grows: first line, last line, text and end mark, as a function of
/// the requested line and the lines so far. Only the last two do not send all lines.
type GrowingHabit = fn(u64, &[String]) -> Value;

const GROWING: [(&str, GrowingHabit); 7] = [
    ("counted on, end", |from, lines| log_page(from, from + count(lines) - 1, &lines.concat(), true)),
    ("counted on, never an end", |from, lines| {
        log_page(from, from + count(lines) - 1, &lines.concat(), false)
    }),
    ("its own numbers, end", |_, lines| log_page(1, count(lines), &lines.concat(), true)),
    ("its own numbers, never an end", |_, lines| log_page(1, count(lines), &lines.concat(), false)),
    ("one line more each time", |from, lines| log_page(from, from, &lines.concat(), true)),
    ("the last three lines, counted on", |from, lines| {
        log_page(from, from + 2, &lines[lines.len() - 3..].concat(), false)
    }),
    ("the last three lines, their numbers", |_, lines| {
        log_page(count(lines) - 2, count(lines), &lines[lines.len() - 3..].concat(), true)
    }),
];

fn count(lines: &[String]) -> u64 {
    lines.len() as u64
}

fn lines(count: usize) -> Vec<String> {
    (1..=count).map(|line| format!("line {line}\n")).collect()
}

/// A reader that continues where it stopped.
#[derive(Default)]
struct Reader {
    text: String,
    last: u64,
}

impl Reader {
    /// Reads as long as there are more lines.
    async fn read(&mut self, mut page: impl AsyncFnMut(u64) -> (String, u64)) {
        for _ in 0..ENOUGH {
            let (text, last) = page(self.last + 1).await;
            self.text.push_str(&text);
            if last <= self.last {
                return;
            }
            self.last = last;
        }
        panic!("it goes on for ever: {}", self.text)
    }
}

#[tokio::test]
async fn every_reader_of_a_running_run_sees_each_line_once() {
    futures_util::future::join_all(GROWING.map(|(name, habit)| running(name, habit))).await;
}

async fn running(name: &str, habit: GrowingHabit) {
    let bench = Bench::start().await;
    let (admin, script, fake) =
        (bench.admin().await, bench.admin_script(NEW).await, Fake::start(&bench).await);
    let written = Arc::new(AtomicUsize::new(3));
    let so_far = written.clone();
    fake.answers("/log", move |asked| {
        Some(habit(asked["fromLineNum"].as_u64().unwrap(), &lines(so_far.load(Ordering::SeqCst))))
    });
    let job = bench.job("talker", |_| {}).await;
    let run = bench.engine.trigger(job, fastrand::i64(1..), None).await.unwrap();
    until("it runs", async || {
        let row = bench.database.run(run).await.unwrap()?;
        (row.state == RunState::Running && row.address.is_some()).then_some(())
    })
    .await;
    let own_page = async |from: u64| {
        let page = admin.get(&format!("/v1/runs/{run}/log?from={from}")).await;
        (page["text"].as_str().unwrap().to_owned(), page["next"].as_u64().unwrap() - 1)
    };
    let web_page = async |from: u64| {
        let form = [("logId", run.to_string()), ("fromLineNum", from.to_string())];
        let form: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let page = script.done("/joblog/logDetailCat", &form).await;
        (page["logContent"].as_str().unwrap().to_owned(), page["toLineNum"].as_u64().unwrap())
    };
    let (live, download) = (format!("/v1/runs/{run}/log/live"), format!("/v1/runs/{run}/log/download"));
    let (mut own, mut web) = (Reader::default(), Reader::default());
    let reading = async {
        for more in [3, 5, 6] {
            written.store(more, Ordering::SeqCst);
            own.read(own_page).await;
            web.read(web_page).await;
            let at_once = body(&admin, &download).await;
            for (reader, text) in [("pages", &own.text), ("logDetailCat", &web.text), ("download", &at_once)]
            {
                is_once(name, reader, text, more);
            }
            // The follower in the background and the live stream see it, too.
            let before = fake.calls("/log");
            until("the log is read in the background", async || {
                (fake.calls("/log") > before + 1).then_some(())
            })
            .await;
        }
        fake.reports(&bench, run, 200, "done").await;
    };
    let (live, ()) = tokio::join!(body(&admin, &live), reading);
    is_once(name, "live", &texts_of(&live), 6);
    own.read(own_page).await;
    is_once(name, "pages in the end", &own.text, 6);
    let kept = until("the log is kept", async || bench.database.kept_run_log(run).await.unwrap()).await;
    is_once(name, "kept", &kept.text, 6);
    bench.stop().await;
}

/// Checks that a text has no line twice, and all lines if the executor sends them.
fn is_once(name: &str, reader: &str, text: &str, written: usize) {
    let mut seen = std::collections::HashSet::new();
    assert!(text.lines().all(|line| seen.insert(line)), "{reader}, {name}: a line comes twice in\n{text}");
    if !name.starts_with("the last three lines") {
        assert_eq!(text, lines(written).concat(), "{reader}, {name}");
    }
}

/// Reads page by page, as the console and the command line do.
async fn pages(client: &Client<'_>, run: RunId) -> String {
    let (mut text, mut next) = (String::new(), 1);
    for _ in 0..ENOUGH {
        let page = client.get(&format!("/v1/runs/{run}/log?from={next}")).await;
        text.push_str(page["text"].as_str().unwrap());
        let after = page["next"].as_u64().unwrap();
        if page["end"] == true || after <= next {
            return text;
        }
        next = after;
    }
    panic!("the log never ends: {text}")
}

async fn web_pages(script: &Script<'_>, run: RunId) -> String {
    let (mut text, mut next) = (String::new(), 1);
    for _ in 0..ENOUGH {
        let form = [("logId", run.to_string()), ("fromLineNum", next.to_string())];
        let form: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let page = script.done("/joblog/logDetailCat", &form).await;
        text.push_str(page["logContent"].as_str().unwrap());
        if page["end"] == true {
            return text;
        }
        next = next.max(page["toLineNum"].as_u64().unwrap() + 1);
    }
    panic!("the log never ends: {text}")
}

/// Returns a body that ends by itself.
async fn body(client: &Client<'_>, path: &str) -> String {
    let reply = tokio::time::timeout(PATIENCE, client.send("GET", path, &Value::Null)).await;
    let body = reply.unwrap_or_else(|_| panic!("{path} never ends")).body;
    // A body of unknown length is chunked.
    let mut whole = String::new();
    let mut rest = body.as_str();
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole.push_str(&after[..length]);
        rest = after[length..].trim_start_matches("\r\n");
    }
    whole
}

/// Returns the texts of server-sent pages.
fn texts_of(events: &str) -> String {
    let pages = events.lines().filter_map(|line| line.strip_prefix("data:"));
    pages
        .map(|page| serde_json::from_str::<Value>(page).unwrap()["text"].as_str().unwrap().to_owned())
        .collect()
}

/// More pages than any of these logs has.
const ENOUGH: usize = 10;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
