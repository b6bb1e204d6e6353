//! The run as a handler sees it: its parameters, its log, its cancellation.

use std::fmt::{self, Display};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use timer::{Clock, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::process::Workspace;
use crate::run::{Run, Shard};
use crate::run_log::RunLog;

/// One run, as seen by its handler. Clones refer to the same run.
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
}

struct Shared {
    run: Run,
    deadline: Option<Timestamp>,
    clock: Arc<dyn Clock>,
    cancellation: CancellationToken,
    log: RunLog,
    workspace: Arc<Workspace>,
    message: Mutex<Option<String>>,
    percent: AtomicU32,
}

impl Context {
    pub(crate) fn new(
        run: Run,
        clock: Arc<dyn Clock>,
        cancellation: CancellationToken,
        log: RunLog,
        workspace: Arc<Workspace>,
    ) -> Context {
        let deadline = run.timeout.map(|timeout| clock.now() + timeout);
        let (message, percent) = (Mutex::default(), AtomicU32::new(0));
        let shared = Shared { run, deadline, clock, cancellation, log, workspace, message, percent };
        Context { shared: Arc::new(shared) }
    }

    /// The parameter of the job or trigger, unchanged.
    pub fn param(&self) -> &str {
        &self.shared.run.param
    }

    /// Parses the parameter, which must be JSON.
    ///
    /// ```
    /// use tickwright_executor::{Context, ParamError, testing};
    ///
    /// async fn greet(ctx: Context) -> Result<String, ParamError> {
    ///     let names: Vec<String> = ctx.param_as()?;
    ///     Ok(format!("hello {}", names.join(" and ")))
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let ended = testing::run(greet, r#"["you", "me"]"#).await;
    /// assert_eq!(ended.message(), Some("hello you and me"));
    /// let ended = testing::run(greet, "you and me").await;
    /// assert!(ended.error().unwrap().starts_with("invalid parameter `you and me`"));
    /// # });
    /// ```
    pub fn param_as<T: DeserializeOwned>(&self) -> Result<T, ParamError> {
        serde_json::from_str(self.param())
            .map_err(|source| ParamError { param: shorten(self.param()), source })
    }

    /// Id of the run, unique in the centre.
    pub fn run_id(&self) -> i64 {
        self.shared.run.id
    }

    /// Id of the job in the centre.
    pub fn job_id(&self) -> i64 {
        self.shared.run.job_id
    }

    /// Name of the handler.
    pub fn handler(&self) -> &str {
        &self.shared.run.handler
    }

    /// Time at which the centre triggered the run.
    pub fn triggered_at(&self) -> Timestamp {
        self.shared.run.triggered_at
    }

    /// The shard of this run: the part of the work it should do.
    pub fn shard(&self) -> Shard {
        self.shared.run.shard
    }

    /// Number of the attempt, from 1. Sent by Tickwright; `None` with an XXL-JOB admin.
    pub fn attempt(&self) -> Option<u32> {
        self.shared.run.attempt
    }

    /// Time at which the run times out; `None` without a timeout.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.shared.deadline
    }

    /// Time left until the timeout; `None` without a timeout.
    pub fn remaining(&self) -> Option<Duration> {
        Some(self.deadline()?.duration_since(self.shared.clock.now()))
    }

    /// Whether the run should stop. Async handlers are dropped at their next `.await` anyway; blocking handlers
    /// must check this.
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancellation.is_cancelled()
    }

    /// Cancelled when the run should stop: it was killed, it timed out, or the executor stops. Pass it to tasks and
    /// threads that the handler starts.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.shared.cancellation
    }

    /// Adds a line to the run's log, which the console shows while the run is executing. [`log!`](crate::log) formats.
    pub fn log(&self, line: impl Display) {
        self.shared.log.line(line);
    }

    /// Records the progress of the run. Every further whole percent adds a line to the log.
    pub fn progress(&self, done: u64, total: u64) {
        let percent = (u128::from(done) * 100).checked_div(u128::from(total)).unwrap_or(100).min(100) as u32;
        if self.shared.percent.fetch_max(percent, Ordering::Relaxed) < percent {
            self.log(format_args!("{percent} % done ({done} of {total})"));
        }
    }

    /// Sets the result message shown in the centre if the run succeeds and the handler returns no message.
    pub fn set_message(&self, message: impl Into<String>) {
        let mut place = self.shared.message.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(message.into());
    }

    pub(crate) fn take_message(&self) -> Option<String> {
        self.shared.message.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// Working folders of the run's processes.
    pub(crate) fn workspace(&self) -> &Workspace {
        &self.shared.workspace
    }

    pub(crate) fn run_log(&self) -> &RunLog {
        &self.shared.log
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("run", &self.shared.run).finish_non_exhaustive()
    }
}

/// The parameter cannot be parsed as the type the handler expects.
#[derive(Debug, thiserror::Error)]
#[error("invalid parameter `{param}`: {source}; correct it in the job")]
pub struct ParamError {
    param: String,
    source: serde_json::Error,
}

/// At most 200 characters, enough to recognise the parameter.
fn shorten(param: &str) -> String {
    match param.char_indices().nth(200) {
        Some((cut, _)) => format!("{}…", &param[..cut]),
        None => param.to_owned(),
    }
}

/// Adds a formatted line to a run's log.
///
/// ```
/// # async fn handler(ctx: tickwright_executor::Context) {
/// tickwright_executor::log!(ctx, "copied {} files of {}", 3, 10);
/// # }
/// ```
#[macro_export]
macro_rules! log {
    ($context:expr, $($text:tt)+) => {
        $context.log(::core::format_args!($($text)+))
    };
}
