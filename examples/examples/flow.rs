//! A workflow in a program that is its own scheduling centre: handlers of the process are its steps.
//!
//! ```text
//! cargo run -p tickwright-examples --example flow [DATABASE]
//! ```
//!
//! DATABASE is `sqlite:FILE` (default: in memory), `postgres://…` or `mysql://…`. Two tables are extracted side by side; a
//! branch chooses how they are loaded; a step fails once and is retried; then the run is printed, step by step.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use engine::embedded::{Context, Handlers};
use engine::policy::{Backoff, Retry};
use engine::{JobId, RunId};
use serde_json::json;
use store::{Database, Flow, FlowStep};
use timer::SystemClock;
use workflow::definition::InputType;
use workflow::{RunOutcome, StepState};

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "sqlite::memory:".into());
    let store = store::open(&url, store::Options::default()).await?;
    let failed = Arc::new(AtomicBool::new(false));
    let centre = Handlers::new()
        .with("extract", extract)
        .with("load", move |context| load(context, failed.clone()))
        .with("report", |context| async move { Ok(format!("reported {}", context.param)) })
        .into_centre("flow-example", Arc::new(SystemClock::new()), store.clone());
    let engine = centre.engine();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(centre.run(async {
        let _ = stopped.await;
    }));

    let job = daily().save(&store, &engine).await?;
    ensure!(daily().save(&store, &engine).await? == job, "saving it again changes nothing");
    let inputs = json!({ "region": "north" }).to_string();
    let run = engine.trigger(job, fastrand::i64(..), Some(inputs)).await?;
    let outcome = print_until_over(&store, job, run).await;
    drop(stop);
    running.await?;
    outcome
}

/// Two extractions, a branch, a join.
fn daily() -> Flow {
    let retry = Retry { count: 2, backoff: Backoff::Fixed { delay: Duration::from_millis(50) } };
    Flow::new("example/daily-sales")
        .name("Daily sales")
        .input("region", InputType::Text, Some(json!("all")))
        .step(FlowStep::call("orders", "extract").with(json!({ "table": "orders", "rows": 1_200 })))
        .step(FlowStep::call("users", "extract").with(json!({ "table": "users", "rows": 30 })))
        .step(
            FlowStep::call("full", "load")
                .needs_if("orders", "steps.orders.output.rows > 1000")
                .with(json!({ "mode": "full", "region": "${{ inputs.region }}" }))
                .retry(retry),
        )
        .step(FlowStep::call("part", "load").needs_else("orders").with(json!({ "mode": "part" })))
        .step(FlowStep::call("report", "report").needs(&["users", "full", "part"]).with(json!({
            "orders": "${{ steps.orders.output.rows }}",
            "users": "${{ steps.users.output.rows }}",
        })))
        .finally(FlowStep::call("tidy", "report").param("the end of run ${{ run.id }}"))
}

/// Its output is the JSON that it returns.
async fn extract(context: Context) -> Result<String, String> {
    let asked: serde_json::Value = serde_json::from_str(&context.param).map_err(|error| error.to_string())?;
    Ok(json!({ "rows": asked["rows"] }).to_string())
}

/// Fails the first time.
async fn load(context: Context, has_failed: Arc<AtomicBool>) -> Result<String, String> {
    match has_failed.swap(true, Ordering::SeqCst) {
        false => Err("the warehouse is away".into()),
        true => Ok(json!({ "loaded": context.param, "attempt": context.attempt }).to_string()),
    }
}

async fn print_until_over(store: &Database, job: JobId, run: RunId) -> Result<()> {
    println!("job {job}, run {run}");
    let mut printed = Vec::new();
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let Some(found) = store.workflow_run(run).await? else { continue };
        for step in found.steps.iter().filter(|step| step.row.state.is_over()) {
            if !printed.contains(&step.row.step) {
                printed.push(step.row.step);
                let name = &found.definition.steps[step.row.step.0 as usize].name;
                println!("{name:<8} {:<10} {}", step.row.state, step.message.as_deref().unwrap_or_default());
            }
        }
        if let Some(end) = &found.run.end {
            ensure!(
                end.outcome == RunOutcome::Succeeded,
                "the run ended as {:?}: {}",
                end.outcome,
                end.message
            );
            let part = found.steps.get(3).context("there are six steps")?;
            ensure!(part.row.state == StepState::Skipped, "only one of the branches is taken");
            return Ok(());
        }
    }
    bail!("run {run} has not ended within 30 s")
}
