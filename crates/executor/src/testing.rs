//! Calls a handler as an executor does, without starting one.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use timer::{Clock, SystemClock, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::job::{self, IntoOutcome, Job};
use crate::process::{OUTPUT_MAX, Workspace, create_private};
use crate::run::{Outcome, Overlap, Run, Shard};
use crate::run_log::RunLog;

/// Arguments of a test run. A string converts to arguments with that parameter.
#[derive(Clone, Debug)]
pub struct Args {
    run: Run,
    cancellation: CancellationToken,
    clock: Arc<dyn Clock>,
}

impl Args {
    /// Run 1 of job 1, first attempt, with this parameter.
    pub fn new(param: impl Into<String>) -> Args {
        let run = Run {
            id: 1,
            job_id: 1,
            handler: "test".to_owned(),
            script: None,
            param: param.into(),
            overlap: Overlap::Wait,
            timeout: None,
            triggered_at: Timestamp::from_millis(0),
            shard: Shard::WHOLE,
            attempt: Some(1),
        };
        Args { run, cancellation: CancellationToken::new(), clock: Arc::new(SystemClock::new()) }
    }

    /// Sets the id of the run.
    #[must_use]
    pub fn run_id(mut self, id: i64) -> Args {
        self.run.id = id;
        self
    }

    /// Sets the shard.
    #[must_use]
    pub fn shard(mut self, index: u32, total: u32) -> Args {
        self.run.shard = Shard { index, total };
        self
    }

    /// Sets the number of the attempt.
    #[must_use]
    pub fn attempt(mut self, number: u32) -> Args {
        self.run.attempt = Some(number);
        self
    }

    /// Sets the timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Args {
        self.run.timeout = Some(timeout);
        self
    }

    /// Sets the token that cancels the run.
    #[must_use]
    pub fn cancellation(mut self, token: CancellationToken) -> Args {
        self.cancellation = token;
        self
    }

    /// Sets the clock. Default: the system clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Args {
        self.clock = clock;
        self
    }
}

impl<T: Into<String>> From<T> for Args {
    fn from(param: T) -> Args {
        Args::new(param)
    }
}

/// Outcome and log of a test run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Lines of the run's log.
    pub log: Vec<String>,
}

impl Ended {
    /// The message, if the run succeeded with one.
    pub fn message(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Succeeded(message) => message.as_deref(),
            Outcome::Failed(_) | Outcome::TimedOut => None,
        }
    }

    /// The error, if the run failed.
    pub fn error(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Failed(error) => Some(error),
            Outcome::Succeeded(_) | Outcome::TimedOut => None,
        }
    }
}

/// Runs an async handler. Cancelling does not drop it, so that a test sees how the handler itself reacts; a panic
/// counts as a failure.
///
/// ```
/// use tickwright_executor::{Context, job, testing};
///
/// #[job("greet")]
/// async fn greet(ctx: Context) -> Result<String, &'static str> {
///     ctx.log("greeting");
///     if ctx.param().is_empty() { Err("nobody to greet") } else { Ok(format!("hello {}", ctx.param())) }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let ended = testing::run(greet, "world").await;
/// assert_eq!(ended.message(), Some("hello world"));
/// assert_eq!(ended.log, ["greeting"]);
/// assert_eq!(testing::run(greet, "").await.error(), Some("nobody to greet"));
/// # });
/// ```
pub async fn run<F, R>(handler: F, args: impl Into<Args>) -> Ended
where
    F: Fn(Context) -> R + Send + Sync + 'static,
    R: Future<Output: IntoOutcome> + Send + 'static,
{
    call(Job::new("test", handler), args.into()).await
}

/// Runs a blocking handler.
pub async fn run_blocking<F, R>(handler: F, args: impl Into<Args>) -> Ended
where
    F: Fn(Context) -> R + Send + Sync + 'static,
    R: IntoOutcome,
{
    call(Job::blocking("test", handler), args.into()).await
}

async fn call(job: Job, Args { run, cancellation, clock }: Args) -> Ended {
    let log = RunLog::in_memory(Arc::clone(&clock));
    let folder = Temporary::create();
    let workspace = Workspace::open(&folder.0, &[], OUTPUT_MAX).expect("the folder is there");
    let context = Context::new(run, clock, cancellation, log.clone(), Arc::new(workspace));
    let outcome = match job.start(context).await {
        Ok(Ok(message)) => Outcome::Succeeded(message),
        Ok(Err(error)) => Outcome::Failed(error),
        Err(error) => Outcome::Failed(job::panicked(error)),
    };
    Ended { outcome, log: log.lines() }
}

/// Folder for processes of a run; removed when dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn create() -> Temporary {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = format!("tickwright-test-{}-{serial}", std::process::id());
        let folder = Temporary(std::env::temp_dir().join(name));
        create_private(&folder.0, true).expect("folders for temporary files take another one");
        folder
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
