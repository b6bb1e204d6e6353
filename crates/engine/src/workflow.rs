//! Workflow runs: opens them when they are due, and lets their steps follow one another.
//!
//! A workflow run is a run that no executor has: its steps are tried by runs of their own. All that happens to it is
//! first stored as an event: the end of a step, in the transaction that closes the step's run, and the orders of users.
//! [`Store::advance_workflows`](crate::Store::advance_workflows) applies the events of a run in one transaction, so any
//! node can do it, and a crash before or after it loses and doubles nothing. The claim loop calls it, because it claims
//! the runs of the steps that open.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::engine::{Engine, RETRY};
use crate::kill::Killed;
use crate::plan::Tick;
use crate::ports::{Advance, Claim, Ending, Moved, StoreError, Watched, WorkflowEvent};
use crate::run::{Node, Order, Outcome, RunId};
use crate::telemetry::StepEvent;

impl Engine {
    /// Opens a workflow run that is due.
    pub(crate) async fn open_workflow(&self, order: &Order) {
        let (run, version) = (order.run.id, order.run.version);
        let error = loop {
            let error = match self.inner.store.open_workflow(self.now(), &order.run, &order.job).await {
                Ok(moved) => {
                    if let Moved::Done(_) = moved {
                        self.advance_now();
                    }
                    // It was not sent: if it is to be cancelled, that is in time.
                    self.outbox().forget(run, version);
                    return;
                }
                Err(error) => error,
            };
            if !error.is_transient() {
                break error;
            }
            self.complain(&error, "failed to open a workflow run", RETRY);
            self.inner.clock.sleep(RETRY).await;
        };
        let outcome = Outcome::Failed(error.to_string());
        self.conclude(Ending { run, outcome, version: Some(version), address: None }).await;
    }

    /// Applies events of workflow runs soon that another part of the process has stored.
    pub fn look_at_workflows(&self) {
        self.advance_now();
    }

    /// Lets the claim loop apply events of workflow runs.
    pub(crate) fn advance_now(&self) {
        self.inner.has_workflow_events.store(true, Ordering::Relaxed);
        self.inner.advance_now.notify_one();
    }

    /// Whether there are events of workflow runs, as far as this node knows.
    pub(crate) fn has_workflow_events(&self) -> bool {
        let agenda = self.inner.agenda.lock().expect("no holder of this lock panics");
        let has_found = agenda.as_ref().is_some_and(|agenda| agenda.has_workflow_events);
        has_found || self.inner.has_workflow_events.load(Ordering::Relaxed)
    }

    /// Applies events of workflow runs. Only the claim loop calls it.
    pub(crate) async fn advance_workflows(&self, node: &Node) -> Result<Advanced, StoreError> {
        self.recount_if_reached().await?;
        self.inner.has_workflow_events.store(false, Ordering::Relaxed);
        self.outbox().begin_claim();
        let now = self.now();
        let tick = Tick::new(now, &*self.inner.router, self.inner.options.bugs).within(&self.inner.quota);
        let asked = self.inner.clock.monotonic();
        let advance = self.inner.store.advance_workflows(node, now, RUNS_MAX, &tick).await;
        let advance =
            advance.inspect_err(|_| self.inner.has_workflow_events.store(true, Ordering::Relaxed))?;
        let Advance { orders, cancelled, ended, waiting, more } = advance;
        if !orders.is_empty() {
            let took = self.inner.clock.monotonic() - asked;
            self.emit(StepEvent::Claimed { orders: &orders, took });
            self.inner.quota.took(&orders);
        }
        self.put_into_outbox(Claim { orders, replaced: cancelled, ..Claim::default() });
        for (run, outcome) in ended {
            self.conclude(Ending { run, outcome, version: None, address: None }).await;
        }
        self.inner.has_workflow_events.fetch_or(more, Ordering::Relaxed);
        Ok(Advanced { waiting, more: self.inner.has_workflow_events.load(Ordering::Relaxed) })
    }

    /// Removes the workflow runs from runs to check, and lets their time limits be checked.
    pub(crate) async fn check_workflows(&self, watched: &mut Vec<Watched>) -> Result<(), StoreError> {
        let mut others = Vec::with_capacity(watched.len());
        for watched in watched.drain(..) {
            // The definition of a deleted job is not known any more.
            let may_be_one = match &watched.job {
                Some(job) => job.spec.workflow.is_some(),
                None => watched.run.address.is_none(),
            };
            if may_be_one && self.inner.store.tell_workflow(watched.run.id, WorkflowEvent::Check).await? {
                self.advance_now();
            } else {
                others.push(watched);
            }
        }
        *watched = others;
        Ok(())
    }

    /// Cancels a workflow run; `None` if it is none. With `now` the phase `finally` does not run.
    pub(crate) async fn kill_workflow(&self, run: RunId, now: bool) -> Result<Option<Killed>, StoreError> {
        let event = if now { WorkflowEvent::CancelNow } else { WorkflowEvent::Cancel };
        if !self.inner.store.tell_workflow(run, event).await? {
            return Ok(None);
        }
        self.advance_now();
        let started = self.inner.clock.monotonic();
        while self.inner.clock.monotonic() - started < CANCEL_MAX {
            self.inner.clock.sleep(LOOK_AGAIN).await;
            if self.inner.store.open_runs(&[run]).await?.is_empty() {
                return Ok(Some(Killed::Cancelled));
            }
        }
        Ok(Some(Killed::Ending))
    }

    /// Stops a workflow run from opening steps, or lets it go on. False if there is no such run, or it has ended.
    pub async fn pause_workflow(&self, run: RunId, paused: bool) -> Result<bool, StoreError> {
        let event = if paused { WorkflowEvent::Pause } else { WorkflowEvent::Continue };
        let is_told = self.inner.store.tell_workflow(run, event).await?;
        self.advance_now();
        Ok(is_told)
    }
}

/// What is left after events of workflow runs were applied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advanced {
    /// Whether there are more events, as far as this node knows.
    pub more: bool,
    /// Whether runs of steps wait to be claimed.
    pub waiting: bool,
}

/// Maximum number of workflow runs per transaction.
const RUNS_MAX: usize = 100;

/// Maximum time for which a request to cancel a workflow run waits for its end.
const CANCEL_MAX: Duration = Duration::from_secs(3);

/// Interval of checks whether it has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
