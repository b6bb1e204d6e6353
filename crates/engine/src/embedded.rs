//! Embedded mode: the handlers run in the same process as the engine.
//!
//! Any number of such processes may share one database: each claims its share and runs it itself. A run is marked
//! as running before its handler is called, so if a process dies, it is known for every run whether it may have
//! started. Runs that had not started are executed by another process; the others are closed as lost and, if the
//! job has retries, retried as a new attempt.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use cron::Timestamp;
use futures_util::FutureExt;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use timer::Clock;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;

use crate::engine::{Engine, Options, Parts, RETRY};
use crate::job::Job;
use crate::policy::{Router, Target};
use crate::ports::{Alarms, Alert, Dispatch, KillAnswer, Probe, Receipt, Store};
use crate::run::{Order, Outcome, Run, RunId, Shard};
use crate::telemetry::Telemetry;

/// Argument of a handler.
#[derive(Clone, Debug)]
pub struct Context {
    /// Id of the run.
    pub run: RunId,
    /// Scheduled time of the run.
    pub scheduled_at: Timestamp,
    /// Attempt number, from 1.
    pub attempt: u32,
    /// Shard that this run processes.
    pub shard: Shard,
    /// Parameter of this run, or of the job.
    pub param: String,
}

type Handler = Arc<dyn Fn(Context) -> HandlerFuture + Send + Sync>;
type HandlerFuture = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// Named functions that jobs can run.
///
/// ```
/// use tickwright_engine::embedded::Handlers;
///
/// let handlers = Handlers::new()
///     .with("greet", |context| async move { Ok(format!("hello {}", context.param)) })
///     .with("fail", |_| async { Err("no luck".into()) });
/// assert_eq!(handlers.names(), ["fail", "greet"]);
/// ```
#[derive(Clone)]
pub struct Handlers {
    by_name: BTreeMap<String, Handler>,
    at_once: usize,
    options: Options,
    telemetry: Arc<dyn Telemetry>,
}

impl Handlers {
    /// Creates an empty set of handlers.
    pub fn new() -> Self {
        let telemetry = Arc::new(());
        Handlers { by_name: BTreeMap::new(), at_once: AT_ONCE, options: Options::default(), telemetry }
    }

    /// Adds a handler. Its return value is the result and message of the run; a panic is a failure.
    pub fn with<F, R>(mut self, name: &str, handler: F) -> Self
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.by_name.insert(name.into(), Arc::new(move |context| Box::pin(handler(context))));
        self
    }

    /// Sets the maximum number of concurrent runs in this process. Default: 256. Further runs wait; if very many
    /// wait, this process stops claiming, so that others can.
    pub fn at_once(mut self, limit: usize) -> Self {
        self.at_once = limit.max(1);
        self
    }

    /// Sets the options of the engine.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the subscriber of the engine's step events, for example to count runs.
    pub fn telemetry(mut self, telemetry: Arc<dyn Telemetry>) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Names of the handlers.
    pub fn names(&self) -> Vec<&str> {
        self.by_name.keys().map(String::as_str).collect()
    }

    /// Creates a scheduling centre that runs the handlers. `name` must be unique among the processes on the same
    /// database.
    pub fn into_centre(
        self,
        name: impl Into<String>,
        clock: Arc<dyn Clock>,
        store: Arc<dyn Store>,
    ) -> Embedded {
        let name = name.into();
        let (finished, outcomes) = mpsc::channel(self.at_once);
        let local = Arc::new(Local {
            name: name.clone(),
            clock: clock.clone(),
            by_name: self.by_name,
            slots: Arc::new(Semaphore::new(self.at_once)),
            running: Arc::default(),
            finished,
        });
        let engine = Engine::new(Parts {
            name,
            clock,
            store,
            router: local.clone(),
            dispatch: local.clone(),
            alarms: local.clone(),
            telemetry: self.telemetry,
            options: self.options,
        });
        Embedded { engine, outcomes, running: local.running.clone() }
    }
}

impl Default for Handlers {
    fn default() -> Self {
        Handlers::new()
    }
}

/// A program that is its own scheduling centre.
pub struct Embedded {
    engine: Engine,
    outcomes: mpsc::Receiver<(RunId, Outcome)>,
    running: Arc<Running>,
}

impl Embedded {
    /// The engine: to add, start, stop, edit and trigger jobs.
    pub fn engine(&self) -> Engine {
        self.engine.clone()
    }

    /// Schedules and runs until `stop`. Then it stops claiming, gives active handlers a few seconds
    /// ([`Options::drain`]), releases the remaining runs and returns.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let engine = self.engine.clone();
        let reporting = async {
            let mut reports = FuturesUnordered::new();
            loop {
                tokio::select! {
                    Some((run, outcome)) = self.outcomes.recv() => reports.push(self.report(run, outcome)),
                    Some(()) = reports.next() => {}
                    else => std::future::pending().await,
                }
            }
        };
        tokio::select! {
            () = engine.run(stop) => {}
            () = reporting => {}
        }
    }
}

impl Embedded {
    fn report(&self, run: RunId, outcome: Outcome) -> impl Future<Output = ()> + use<> {
        let (engine, running) = (self.engine.clone(), self.running.clone());
        async move {
            // No other process knows the result, so this is retried until it succeeds.
            while let Err(error) = engine.report(run, outcome.clone()).await {
                tracing::warn!(%run, %error, "failed to store the result of a run; retrying in {RETRY:?}");
                engine.inner.clock.sleep(RETRY).await;
            }
            running.lock().remove(&run);
        }
    }
}

/// Handlers of this process, as a [`Dispatch`] of the engine.
struct Local {
    name: String,
    clock: Arc<dyn Clock>,
    by_name: BTreeMap<String, Handler>,
    slots: Arc<Semaphore>,
    running: Arc<Running>,
    finished: mpsc::Sender<(RunId, Outcome)>,
}

/// Active runs of this process, until their ends are written.
#[derive(Default)]
struct Running(Mutex<HashMap<RunId, Option<AbortHandle>>>);

impl Running {
    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Option<AbortHandle>>> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

impl Router for Local {
    fn targets(&self, _: &Job, _: Timestamp) -> Vec<Target> {
        vec![Target::Address(self.name.clone())]
    }
}

#[async_trait]
impl Dispatch for Local {
    async fn send(&self, order: &Order, _within: Duration) -> Receipt {
        let run = order.run.id;
        let Some(handler) = self.by_name.get(&order.job.spec.handler).cloned() else {
            return Receipt::Refused {
                reason: format!(
                    "no handler `{}` in this process; it has {:?}",
                    order.job.spec.handler,
                    self.by_name.keys()
                ),
            };
        };
        self.running.lock().insert(run, None);
        let slot = self.slots.clone().acquire_owned().await.expect("the semaphore is never closed");
        let context = Context {
            run,
            scheduled_at: order.run.scheduled_at,
            attempt: order.run.attempt,
            shard: order.run.shard,
            param: order.run.param.clone().unwrap_or_else(|| order.job.spec.param.clone()),
        };
        let (clock, timeout, finished) = (self.clock.clone(), order.job.spec.timeout, self.finished.clone());
        let task = tokio::spawn(async move {
            let outcome = tokio::select! {
                ended = AssertUnwindSafe(async { handler(context).await }).catch_unwind() => outcome_of(ended),
                () = out_of_time(&*clock, timeout) => Outcome::TimedOut(format!("it took longer than {timeout:?}")),
            };
            drop(slot);
            // The receiver is dropped only when the process stops; then the run is found to be lost.
            let _ = finished.send((run, outcome)).await;
        });
        if let Some(handle) = self.running.lock().get_mut(&run) {
            *handle = Some(task.abort_handle());
        }
        Receipt::Accepted { address: self.name.clone() }
    }

    /// Does not judge runs of another process: if that process dies, the rescue closes them.
    async fn probe(&self, run: &Run, _: Option<&Job>) -> Probe {
        let ours = run.node.as_ref().is_some_and(|node| node.name == self.name);
        if ours && !self.running.lock().contains_key(&run.id) { Probe::Denied } else { Probe::Started }
    }

    async fn kill(&self, run: &Run, _: Option<&Job>) -> KillAnswer {
        let ours = run.node.as_ref().is_some_and(|node| node.name == self.name);
        let mut running = self.running.lock();
        match running.get(&run.id) {
            Some(Some(handle)) => {
                handle.abort();
                running.remove(&run.id);
                KillAnswer::Ended
            }
            Some(None) => KillAnswer::Unheard("it is being started; retry".into()),
            None if ours => KillAnswer::NotThere,
            None => KillAnswer::Unheard("it runs in another process; cancel it there".into()),
        }
    }

    fn marks_first(&self) -> bool {
        true
    }

    fn is_busy(&self) -> bool {
        !self.running.lock().is_empty()
    }
}

fn outcome_of(ended: Result<Result<String, String>, Box<dyn std::any::Any + Send>>) -> Outcome {
    match ended {
        Ok(Ok(message)) => Outcome::Succeeded(message),
        Ok(Err(message)) => Outcome::Failed(message),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Outcome::Failed(format!(
                "the handler panicked: {}",
                text.unwrap_or_else(|| "without a message".into())
            ))
        }
    }
}

async fn out_of_time(clock: &dyn Clock, timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => clock.sleep(timeout).await,
        None => std::future::pending().await,
    }
}

#[async_trait]
impl Alarms for Local {
    async fn raise(&self, alert: &Alert) -> Result<(), String> {
        tracing::error!(job = %alert.job, run = ?alert.run, "{}", alert.trouble.message);
        Ok(())
    }
}

/// Default maximum number of concurrent runs in one process.
const AT_ONCE: usize = 256;
