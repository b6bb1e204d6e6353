//! The log of a run is stored as far as it was read, even if its executor dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{RunId, RunState};
use serde_json::{Value, json};

use crate::fake::{Fake, log_page};
use crate::kit::{Bench, until};

const LINES: [&str; 3] = ["first\n", "second\n", "third\n"];

/// Returns lines from the requested one on, as a well-behaved executor does.
fn honest(asked: &Value) -> Value {
    let from = asked["fromLineNum"].as_u64().unwrap();
    let text: String = LINES.iter().skip(usize::try_from(from - 1).unwrap()).copied().collect();
    log_page(from, LINES.len() as u64, &text, false)
}

async fn started(bench: &Bench, fake: &Fake) -> RunId {
    let job = bench.job("talker", |_| {}).await;
    let run = bench.engine.trigger(job, fastrand::i64(1..), None).await.unwrap();
    until("it runs", async || {
        let row = bench.database.run(run).await.unwrap()?;
        (row.state == RunState::Running && fake.calls("/run") > 0).then_some(())
    })
    .await;
    run
}

#[tokio::test]
async fn the_lines_of_a_run_whose_executor_dies_in_mid_run_can_be_read() {
    let bench = Bench::start().await;
    let fake = Fake::start(&bench).await;
    fake.answers("/log", |asked| Some(honest(asked)));
    let run = started(&bench, &fake).await;
    // The second request shows that the answer to the first was processed.
    until("its log is read in the background", async || (fake.calls("/log") >= 2).then_some(())).await;
    fake.dies().await;
    let admin = bench.admin().await;
    let page = admin.get(&format!("/v1/runs/{run}/log")).await;
    let text = page["text"].as_str().unwrap();
    assert!(text.starts_with(&LINES.concat()), "{page}");
    assert_eq!((page["end"].as_bool(), page.get("problem")), (Some(false), None), "the run is still open");

    admin.send("POST", &format!("/v1/runs/{run}/kill"), &json!({ "force": true })).await;
    let kept = until("it is kept", async || bench.database.kept_run_log(run).await.unwrap()).await;
    assert!(kept.text.starts_with(&LINES.concat()) && !kept.complete, "{kept:?}");
    let page = admin.get(&format!("/v1/runs/{run}/log")).await;
    assert!(page["text"].as_str().unwrap().starts_with(&LINES.concat()) && page["end"] == true, "{page}");
    bench.stop().await;
}

#[tokio::test]
async fn the_lines_of_a_run_whose_executor_dies_right_after_its_end_are_kept() {
    let bench = Bench::start().await;
    let fake = Fake::start(&bench).await;
    let has_answered = Arc::new(AtomicBool::new(false));
    fake.answers("/log", move |asked| (!has_answered.swap(true, Ordering::SeqCst)).then(|| honest(asked)));
    let run = started(&bench, &fake).await;
    fake.reports(&bench, run, 200, "done").await;
    let kept = until("it is kept", async || bench.database.kept_run_log(run).await.unwrap()).await;
    assert!(kept.text.starts_with(&LINES.concat()) && !kept.complete, "{kept:?}");
    bench.stop().await;
}

#[tokio::test]
async fn a_log_that_was_read_in_part_is_kept_whole_in_the_end() {
    let bench = Bench::start().await;
    let fake = Fake::start(&bench).await;
    fake.answers("/log", |asked| {
        let from = asked["fromLineNum"].as_u64().unwrap();
        Some(if from == 1 { log_page(1, 1, LINES[0], false) } else { log_page(from, 1, "", false) })
    });
    let run = started(&bench, &fake).await;
    until("its log is read in the background", async || (fake.calls("/log") >= 2).then_some(())).await;
    fake.answers("/log", |asked| Some(honest(asked)));
    fake.reports(&bench, run, 200, "done").await;
    let kept = until("it is kept", async || {
        let kept = bench.database.kept_run_log(run).await.unwrap()?;
        kept.complete.then_some(kept)
    })
    .await;
    assert_eq!(kept.text, LINES.concat());
    bench.stop().await;
}
