//! Logs of runs outlive the executors that wrote them.

use std::time::Duration;

use executor::{Context, Job};
use serde_json::Value;

use crate::kit::{Bench, until};
use crate::script::{NEW, Script};

#[tokio::test]
async fn every_line_is_read_once_and_in_order_though_the_executor_goes_away_in_between() {
    let bench = Bench::start().await;
    let counting = Job::new("count", |ctx: Context| async move {
        for line in 0..LINES {
            ctx.log(format!("line {line:0>60}"));
        }
    });
    let executor = bench.executor(vec![counting]).await;
    let job = bench.job("count", |_| {}).await;
    let run = bench.run(job, None).await.remove(0);
    let kept = until("the log is kept", async || bench.database.kept_run_log(run.id).await.unwrap()).await;
    assert!(!kept.complete, "it is longer than what is kept");

    let script = bench.admin_script(NEW).await;
    let first = log(&script, run.id.0, 1).await;
    let mut lines = numbers(&first);
    assert_eq!(first["end"], false);
    executor.stop(Duration::from_secs(1)).await;
    let mut next = first["toLineNum"].as_i64().unwrap() + 1;
    loop {
        let page = log(&script, run.id.0, next).await;
        assert_eq!(page["fromLineNum"], next);
        if page["end"] == true {
            break;
        }
        lines.extend(numbers(&page));
        next = page["toLineNum"].as_i64().unwrap() + 1;
    }
    // The executor had sent more lines than were dropped, so none is missing and none comes twice.
    assert_eq!(lines, (0..LINES).collect::<Vec<_>>());
    bench.stop().await;
}

#[tokio::test]
async fn a_short_log_is_kept_whole_and_shown_when_its_executor_is_gone() {
    let bench = Bench::start().await;
    let executor = bench.executor(vec![crate::kit::echo()]).await;
    let job = bench.job("echo", |_| {}).await;
    let run = bench.run(job, Some("x")).await.remove(0);
    let script = bench.admin_script(NEW).await;
    let live = log(&script, run.id.0, 1).await;
    let kept = until("the log is kept", async || bench.database.kept_run_log(run.id).await.unwrap()).await;
    assert!(kept.complete);
    executor.stop(Duration::from_secs(1)).await;
    let shown = log(&script, run.id.0, 1).await;
    assert_eq!((&shown["logContent"], &shown["toLineNum"]), (&live["logContent"], &live["toLineNum"]));
    assert_eq!(shown["end"], false, "callers of this door stop reading at the end");
    let last = shown["toLineNum"].as_i64().unwrap();
    assert_eq!(log(&script, run.id.0, last + 1).await["end"], true);
    let (_, page) = bench.raw(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(page.contains("tickwright_run_logs_total{outcome=\"kept\"} 1"), "{page}");
    bench.stop().await;
}

#[tokio::test]
async fn a_run_that_nobody_took_has_no_log_and_says_so() {
    let bench = Bench::start().await;
    let job = bench.job("echo", |_| {}).await;
    let run = bench.run(job, None).await.remove(0);
    let script = bench.admin_script(NEW).await;
    let why = script.refused("/joblog/logDetailCat", &[("logId", &run.id.to_string())]).await;
    assert!(why.contains("not sent to an executor"), "{why}");
    bench.stop().await;
}

async fn log(script: &Script<'_>, run: i64, from: i64) -> Value {
    let (run, from) = (run.to_string(), from.to_string());
    script.done("/joblog/logDetailCat", &[("logId", &run), ("fromLineNum", &from)]).await
}

/// More lines than are stored, but no more than one page of the executor plus the stored lines.
const LINES: u32 = 4_000;

/// Returns the numbers at the end of a page's lines; other lines are skipped.
fn numbers(page: &Value) -> Vec<u32> {
    let text = page["logContent"].as_str().unwrap();
    text.lines()
        .filter(|line| line.contains("line 0"))
        .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
        .collect()
}
