//! Prints the steps of a workflow run as they end.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use protocol::v1::{RunState, RunView, StepState, WorkflowRunView};

use super::{first_line, took};
use crate::api::{Call, Client};
use crate::log::is_over;
use crate::run;
use crate::terminal;

/// Prints steps until the run has ended; fails if it did not succeed.
pub async fn follow(client: &Client, run: i64) -> Result<()> {
    let mut told = BTreeSet::new();
    let mut in_vain = 0;
    loop {
        match look(client, run).await {
            Ok((view, steps)) => {
                in_vain = 0;
                if let Some(steps) = steps {
                    print(&steps, &mut told)?;
                }
                if is_over(view.state) {
                    return end(&view);
                }
            }
            Err(error) if in_vain == RECONNECTS => {
                let hint = format!("show the steps of run {run} with: tickwright workflow steps {run}");
                return Err(error.context(hint));
            }
            Err(_) => in_vain += 1,
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Enough looks for a restart of the scheduling centre.
const RECONNECTS: u32 = 20;

/// Interval of looks.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The run first: once it is over, so are all its steps. A run that has not begun has none.
async fn look(client: &Client, run: i64) -> Result<(RunView, Option<WorkflowRunView>)> {
    let view = run::fetch(client, run).await?;
    if matches!(view.state, RunState::Waiting | RunState::Claimed | RunState::Cancelling) {
        return Ok((view, None));
    }
    let steps = client.fetch(Call::get(format!("/v1/runs/{run}/steps"))).await;
    match steps {
        Ok(steps) => Ok((view, Some(steps))),
        // It failed before its first step.
        Err(_) if is_over(view.state) => Ok((view, None)),
        Err(error) => Err(error).with_context(|| format!("run {run}")),
    }
}

fn print(view: &WorkflowRunView, told: &mut BTreeSet<String>) -> Result<()> {
    let has_ended = |state: StepState| state.is_over() || state == StepState::Waiting;
    for step in view.steps.iter().filter(|step| has_ended(step.state)) {
        let state = if step.kept { "kept".to_owned() } else { terminal::word(&step.state) };
        // A step that asks people is printed before its end, too.
        if !told.insert(format!("{} {state}", step.name)) {
            continue;
        }
        let line = format!("{:<24}  {state:<9}  {:<8}  {}", step.name, took(step), first_line(step));
        terminal::say(line.trim_end())?;
    }
    Ok(())
}

fn end(view: &RunView) -> Result<()> {
    let (run, state) = (view.id, terminal::word(&view.state).replace('_', " "));
    if view.state == RunState::Succeeded {
        eprintln!("run {run} {state}");
        return Ok(());
    }
    let message = run::message(view).lines().next().unwrap_or_default();
    eprintln!("run {run} {state}: {message}");
    bail!("run {run} did not succeed; resume it with: tickwright workflow resume {run}")
}
