//! Embedded: the handlers live in the same process as the engine.
//!
//! Any number of such processes may share one database: each claims its part and runs it itself. A run is marked running
//! before its handler is called, so when a process dies it is known of every run whether it can have begun. What had not
//! is run by another process; what had is closed as lost and, if its job has retries, tried again as a new attempt.

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

/// What a handler is told.
#[derive(Clone, Debug)]
pub struct Context {
    /// The run's name.
    pub run: RunId,
    /// The instant it stands for.
    pub scheduled_at: Timestamp,
    /// 1 for the first try.
    pub attempt: u32,
    /// Which part of the work it is to do.
    pub shard: Shard,
    /// The job's parameter, or the one of this run.
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
}

impl Handlers {
    /// None yet.
    pub fn new() -> Self {
        Handlers { by_name: BTreeMap::new(), at_once: AT_ONCE, options: Options::default() }
    }

    /// Adds one. What it returns is the run's result and message; a panic is a failure.
    pub fn with<F, R>(mut self, name: &str, handler: F) -> Self
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.by_name.insert(name.into(), Arc::new(move |context| Box::pin(handler(context))));
        self
    }

    /// How many may run at the same time in this process (256, if nothing is said). More wait, and when very many wait
    /// this process claims no more, so that others can.
    pub fn at_once(mut self, limit: usize) -> Self {
        self.at_once = limit.max(1);
        self
    }

    /// What may be set about the engine.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Their names.
    pub fn names(&self) -> Vec<&str> {
        self.by_name.keys().map(String::as_str).collect()
    }

    /// A scheduling centre that runs them. `name` must differ from every other process's on the same database.
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
            places: Arc::new(Semaphore::new(self.at_once)),
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
            observer: Arc::new(()),
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

    /// Schedules and runs until `stop`. Then it claims no more, gives the handlers that are running a few seconds
    /// ([`Options::drain`]), hands back the rest and returns.
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
            // Nobody else knows how it ended, so this is tried for as long as it takes.
            while let Err(error) = engine.report(run, outcome.clone()).await {
                tracing::warn!(%run, %error, "could not write down how it ended; trying again in {RETRY:?}");
                engine.inner.clock.sleep(RETRY).await;
            }
            running.lock().remove(&run);
        }
    }
}

/// The handlers of this process, as the engine sees them.
struct Local {
    name: String,
    clock: Arc<dyn Clock>,
    by_name: BTreeMap<String, Handler>,
    places: Arc<Semaphore>,
    running: Arc<Running>,
    finished: mpsc::Sender<(RunId, Outcome)>,
}

/// The runs going on in this process, until their ends are written.
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
        let place = self.places.clone().acquire_owned().await.expect("the semaphore is never closed");
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
            drop(place);
            // The receiver is gone only when the process stops: then the run is found to be lost.
            let _ = finished.send((run, outcome)).await;
        });
        if let Some(handle) = self.running.lock().get_mut(&run) {
            *handle = Some(task.abort_handle());
        }
        Receipt::Accepted { address: self.name.clone() }
    }

    /// A run of another process is not ours to judge: if that process dies, the rescue closes it.
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
            Some(None) => KillAnswer::Unheard("it is just being started; try again".into()),
            None if ours => KillAnswer::NotThere,
            None => KillAnswer::Unheard("another process runs it; kill it there".into()),
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

/// Handlers that run at the same time in one process, if nothing is said.
const AT_ONCE: usize = 256;
