//! Dispatches runs to executors over HTTP, probes them and cancels them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::policy::{Block, Route, Word as _};
use engine::{Dispatch, Job, KillAnswer, Order, Origin, Probe, Receipt, Run, RunState};
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use protocol::v1::ExecutorTrouble;
use protocol::xxl::{GlueType, TriggerRequest, texts};
use timer::Clock;

use crate::executors::{Candidates, Destination, Directory, Registrar};
use crate::outbound::{CallError, Calls, Sent};

/// The engine's access to executors.
pub struct HttpDispatch {
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Registry of executors.
    pub directory: Arc<Directory>,
    /// Records executors that cannot be reached.
    pub registrar: Arc<Registrar>,
    /// Client for executors.
    pub calls: Arc<dyn Calls>,
    /// Whether scripts are sent.
    pub scripts: bool,
}

#[async_trait]
impl Dispatch for HttpDispatch {
    /// Sends a run to the chosen executor, or to another one while it certainly has not arrived anywhere.
    async fn send(&self, order: &Order, within: Duration) -> Receipt {
        if order.job.spec.script.is_some() && !self.scripts {
            return refused(SCRIPTS_OFF.into());
        }
        let Some(to) = self.directory.destination(order.job.spec.app) else {
            return refused(format!("app {} was deleted; move the job to another app", order.job.spec.app.0));
        };
        let Some(route) = order.job.spec.route.known() else {
            return refused(format!(
                "`{}` is not a routing strategy; change it in the job",
                order.job.spec.route
            ));
        };
        let started = self.clock.monotonic();
        let mut request = request(order);
        match self.directory.secrets().fill(order.job.spec.app, &request.executor_params) {
            Ok(filled) => request.executor_params = filled,
            Err(name) => {
                return refused(format!("the app `{}` has no secret `{name}`; set it, then retry", to.name));
            }
        }
        let mut failures: Vec<(String, String)> = Vec::new();
        let mut is_deferred = false;
        let mut next = match &order.run.address {
            Some(address) => Some(address.clone()),
            None => Box::pin(self.choose(route, order, &to)).await,
        };
        while let Some(address) = next.take() {
            let Some(callee) = to.callee(&address) else {
                return refused(format!("`{address}` is not the address of an executor"));
            };
            let left = within.saturating_sub(self.clock.monotonic() - started);
            let sent = self.calls.run(&callee, &request, order.run.attempt, left).await;
            // After a pause of this node the request may not be sent any more. That is not the fault of the executor.
            let is_out_of_time = self.clock.monotonic() - started >= within;
            is_deferred |= matches!(sent, Sent::Deferred { .. }) || is_out_of_time;
            match sent {
                Sent::Accepted => return Receipt::Accepted { address },
                Sent::Refused { reason } => return refused(format!("{address} rejected it: {reason}")),
                Sent::Unknown { reason } => return Receipt::Unknown { address: Some(address), reason },
                Sent::Unreachable { reason, .. } if is_out_of_time => failures.push((address, reason)),
                Sent::Unreachable { code, reason } | Sent::Deferred { code, reason } => {
                    self.registrar.suspect(&address, ExecutorTrouble { code, detail: reason.clone() });
                    failures.push((address, reason));
                    if failures.len() < TRIES && may_go_elsewhere(order, route) {
                        next = self.another(order, route, &failures);
                    }
                    if let (Some((address, reason)), Some(next)) = (failures.last(), &next) {
                        tracing::warn!(run = %order.run.id, address, reason, "executor unreachable; trying {next} ({} of {TRIES})", failures.len() + 1);
                    }
                }
            }
        }
        if failures.is_empty() {
            return refused(nobody(&to, route));
        }
        let reasons: Vec<String> =
            failures.iter().map(|(address, reason)| format!("{address}: {reason}")).collect();
        let reason = reasons.join("; ");
        // An executor that was not called may be available.
        if is_deferred { Receipt::Deferred { reason } } else { refused(reason) }
    }

    async fn probe(&self, run: &Run, job: Option<&Job>) -> Probe {
        let Some(to) = job.and_then(|job| self.directory.destination(job.spec.app)) else {
            return Probe::Silent;
        };
        match &run.address {
            Some(address) => self.ask(run, &to, address).await,
            // The executor was chosen at dispatch and not recorded: all executors that it can have been are probed.
            None => {
                let addresses = job.map(|job| self.directory.addresses_since(job.spec.app, run.scheduled_at));
                let addresses = addresses.unwrap_or_default();
                self.ask_each(run, &to, &addresses).await
            }
        }
    }

    async fn kill(&self, run: &Run, job: Option<&Job>) -> KillAnswer {
        let unheard = |why: &str| KillAnswer::Unheard(why.into());
        let Some(to) = job.and_then(|job| self.directory.destination(job.spec.app)) else {
            return unheard("its job or app was deleted");
        };
        let Some(address) = run.address.as_deref() else {
            return unheard("its executor is unknown");
        };
        let Some(callee) = to.callee(address) else {
            return KillAnswer::Unheard(format!("`{address}` is not the address of an executor"));
        };
        match self.calls.kill(&callee, run.job.0).await {
            Ok(text) if text.trim() == texts::NOTHING_TO_KILL => KillAnswer::NotThere,
            Ok(_) => KillAnswer::Ended,
            Err(error) => {
                tracing::warn!(run = %run.id, address = %callee.address, %error, "an executor did not cancel a run");
                match error {
                    CallError::Refused { reason, .. } => KillAnswer::Refused(reason),
                    error => KillAnswer::Unheard(error.to_string()),
                }
            }
        }
    }
}

impl HttpDispatch {
    /// Chooses the executor for routes that choose at dispatch, and for runs claimed without an executor.
    async fn choose(&self, route: Route, order: &Order, to: &Destination) -> Option<String> {
        match route {
            Route::Failover | Route::FirstIdle => {
                let trusted = to.candidates.addresses();
                if let Some(found) = self.first_that_answers(route, order, to, trusted).await {
                    return Some(found);
                }
                // An executor that could not be reached before may be back.
                let asked: HashSet<&String> = trusted.iter().collect();
                let mut others = self.directory.addresses(order.job.spec.app);
                others.retain(|address| !asked.contains(address));
                self.first_that_answers(route, order, to, &others).await
            }
            _ => self.directory.choose(route, &order.job, &to.candidates, order.run.scheduled_at),
        }
    }

    /// Returns the first of a list with a positive answer. All are called at once, so a dead one costs no time.
    async fn first_that_answers(
        &self,
        route: Route,
        order: &Order,
        to: &Destination,
        list: &[String],
    ) -> Option<String> {
        let asked = list.iter().take(ASK_MAX).map(|address| async move {
            let callee = to.callee(address)?;
            let answer = match route {
                Route::FirstIdle => self.calls.idle_beat(&callee, order.run.job.0).await,
                _ => self.calls.beat(&callee).await,
            };
            match answer {
                Ok(()) => Some(address.clone()),
                // It was reached, but rejects the run.
                Err(CallError::Refused { .. }) => None,
                Err(error) => {
                    self.registrar.suspect(address, error.trouble());
                    None
                }
            }
        });
        let mut asked: FuturesOrdered<_> = asked.collect();
        while let Some(answer) = asked.next().await {
            if answer.is_some() {
                return answer;
            }
        }
        None
    }

    fn another(&self, order: &Order, route: Route, failures: &[(String, String)]) -> Option<String> {
        let to = self.directory.destination(order.job.spec.app)?;
        let left = to.candidates.addresses().iter();
        let left = left.filter(|address| failures.iter().all(|(failed, _)| failed != *address)).cloned();
        self.directory.choose(route, &order.job, &Candidates::new(left.collect()), order.run.scheduled_at)
    }

    /// Asks executors about a run, a few at a time, up to the first that has it.
    async fn ask_each(&self, run: &Run, to: &Destination, addresses: &[String]) -> Probe {
        let mut all_deny = !addresses.is_empty() && addresses.len() <= ASKED_MAX;
        let mut rest = addresses.iter().take(ASKED_MAX);
        let mut asked = FuturesOrdered::new();
        loop {
            let free = ASK_MAX.saturating_sub(asked.len());
            asked.extend(rest.by_ref().take(free).map(|address| async move {
                let answer = self.ask(run, to, address).await;
                (address, answer)
            }));
            match asked.next().await {
                Some((address, Probe::Started | Probe::Finished)) => {
                    return Probe::StartedAt(address.clone());
                }
                Some((_, answer)) => all_deny &= answer == Probe::Denied,
                None if all_deny => return Probe::Denied,
                None => return Probe::Silent,
            }
        }
    }

    /// Asks one executor about a run: its log shows whether it started, the idle beat whether it is still running.
    async fn ask(&self, run: &Run, to: &Destination, address: &str) -> Probe {
        let Some(callee) = to.callee(address) else { return Probe::Silent };
        let triggered_at = run.scheduled_at.as_millis();
        let (log, idle) = tokio::join!(
            self.calls.log(&callee, run.id.0, triggered_at, PAST_THE_END),
            self.calls.idle_beat(&callee, run.job.0)
        );
        let Ok(log) = log else { return Probe::Silent };
        let began = log.log_content.trim() != texts::NO_LOG_FILE;
        match (began, idle) {
            (true, Ok(())) => Probe::Finished,
            (true, Err(_)) => Probe::Started,
            (false, Ok(())) => Probe::Denied,
            // It is queued there behind another run, or only another run is there.
            (false, Err(CallError::Refused { .. })) if run.state == RunState::Running => Probe::Started,
            (false, Err(_)) => Probe::Silent,
        }
    }
}

/// A shard stays with its executor, and a manually triggered run with the executor it was triggered on.
fn may_go_elsewhere(order: &Order, route: Route) -> bool {
    let by_hand = matches!(order.run.origin, Origin::Manual { .. });
    route != Route::Broadcast && order.run.shard.total <= 1 && !by_hand
}

fn refused(reason: String) -> Receipt {
    Receipt::Refused { reason }
}

fn nobody(to: &Destination, route: Route) -> String {
    let name = &to.name;
    match (to.candidates.addresses().is_empty(), route) {
        (true, _) => {
            format!("no executor of the app `{name}` is registered; start one, or add its address to the app")
        }
        (false, Route::FirstIdle) => format!("every executor of the app `{name}` is busy with this job"),
        (false, _) => format!("no executor of the app `{name}` responds"),
    }
}

/// Converts a run to XXL-JOB's protocol.
fn request(order: &Order) -> TriggerRequest {
    let (run, spec) = (&order.run, &order.job.spec);
    let glue = spec.script.as_ref().map_or(GlueType::Bean, |script| GlueType::Script(script.language));
    let whole_seconds = |length: Duration| length.as_millis().div_ceil(1_000).try_into().unwrap_or(i32::MAX);
    TriggerRequest {
        job_id: run.job.0,
        executor_handler: spec.handler.clone(),
        executor_params: run.param.clone().unwrap_or_else(|| spec.param.clone()),
        executor_block_strategy: block_strategy(order),
        executor_timeout: spec.timeout.map_or(0, whole_seconds),
        log_id: run.id.0,
        log_date_time: run.scheduled_at.as_millis(),
        glue_type: glue.word().into(),
        glue_source: spec.script.as_ref().map_or_else(String::new, |script| script.source.clone()),
        glue_updatetime: spec.script.as_ref().map_or(0, |script| script.edited_at.as_millis()),
        broadcast_index: run.shard.index.try_into().unwrap_or(i32::MAX),
        broadcast_total: run.shard.total.max(1).try_into().unwrap_or(i32::MAX),
    }
}

/// Block strategy on the executor. A backfill leaves no scheduled time out and ends no other run, so its runs queue.
fn block_strategy(order: &Order) -> String {
    match order.run.origin {
        Origin::Backfill { .. } => Block::Serial.stored().to_owned(),
        _ => order.job.spec.block.stored().to_owned(),
    }
}

/// Error message for script jobs while scripts are disabled.
pub const SCRIPTS_OFF: &str = "scripts (GLUE) are disabled; start the scheduling centre with --allow-scripts";

/// Executors that a run is sent to in turn, while none was reached.
const TRIES: usize = 3;

/// Only whether there is a log matters, not its content.
const PAST_THE_END: u32 = 1_000_000_000;

/// Executors called concurrently about a run.
const ASK_MAX: usize = 64;

/// Executors asked about one run. If there are more, the run stays in doubt unless one of these has it.
const ASKED_MAX: usize = 1_000;
