//! SDK that turns a Rust program into an executor for Tickwright's scheduling centre, or for any XXL-JOB admin
//! since version 2.2.
//!
//! ```no_run
//! use tickwright_executor::{Context, Error, Executor, job};
//!
//! #[job("hello")]
//! async fn hello(ctx: Context) -> Result<String, Error> {
//!     ctx.log("about to greet");
//!     Ok(format!("hello {}", ctx.param()))
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Error> {
//!     Executor::builder("my-app").centre("http://127.0.0.1:8080").token("p2Vq0mXo5tYb").run().await
//! }
//! ```
//!
//! # Where to look
//!
//! | to | use |
//! |---|---|
//! | make a function a handler | [`#[job("name")]`](job) |
//! | let the centre create the job automatically | [`#[job("name", cron = "…")]`](job), [`Job::declare`] |
//! | create a handler at run time | [`Builder::job`], [`Job::new`] |
//! | run blocking or CPU-bound code | a plain `fn`, [`Job::blocking`] |
//! | read the parameter | [`Context::param`], [`Context::param_as`] |
//! | return data for later steps of a workflow | [`Output::json`] |
//! | split the work between executors | [`Context::shard`] |
//! | write lines to the run's log, shown in the console | [`Context::log`], [`log!`], [`RunLogLayer`] |
//! | stop when the run is cancelled | [`Context::is_cancelled`], [`Context::cancellation`] |
//! | start and stop from your own code | [`Builder::start`], [`Executor::stop`] |
//! | run scripts written in the centre | [`Builder::scripts`] |
//! | call URLs and start programs | [`handlers`] |
//! | test a handler | [`testing::run`] |
//!
//! # Guarantees
//!
//! * **At most once.** A run is stored on disk before the executor answers that it accepted it. If the same run is
//!   sent again, also after a restart, it is not executed again. While it waits or runs, or once the centre has
//!   confirmed its result, the request is rejected as a duplicate; while its result is being reported, it is
//!   answered with success and the result follows. [`Builder::memory`] limits how long run ids are remembered. If
//!   the run ids of a centre start again from 1 (a new database), delete the directories of its executors.
//! * **No result is lost.** A result is stored on disk before it is sent and kept until the centre confirms it.
//!   Runs that were interrupted by a crash are reported as failed at the next start.
//! * **One at a time.** Runs of one job queue up, at most [`Builder::queue`] of them; further runs are rejected
//!   with an error. Duplicates are detected before the job's block strategy is applied, so a duplicate never stops
//!   a run.
//! * **Stopping works.** An async handler that is killed or times out is dropped at its next `.await`. A blocking
//!   handler is only notified; if it does not return within [`Builder::stop_grace`], the next run of its job starts
//!   without waiting for it.
//! * **Closed by default.** The executor listens on loopback; on other addresses only with a token that is neither
//!   blank nor well known. It runs named handlers only, and no code from the network unless [`Builder::scripts`]
//!   allows it.

mod centre;
mod context;
mod declaration;
mod declarer;
mod error;
mod executor;
pub mod handlers;
mod https;
mod inbox;
mod job;
mod journal;
#[cfg(feature = "layer")]
mod layer;
mod ledger;
mod output;
mod process;
mod record;
mod registrar;
mod reporter;
mod run;
mod run_log;
mod scripts;
mod server;
pub mod testing;

pub use context::{Context, ParamError};
pub use declaration::Declaration;
pub use error::Error;
pub use executor::{Builder, Executor, Stopped};
pub use job::{IntoOutcome, Job, Marked};
#[cfg(feature = "layer")]
pub use layer::RunLogLayer;
/// Registers a function as a handler, under the name used in the centre. There is no list of handlers to maintain.
///
/// The function takes a [`Context`] or no argument. It may be async or not (then each run has its own thread). It
/// returns nothing, a string, or a `Result` of either with an error that implements `Display`. Options:
///
/// * `cron = "0 0/5 * * * ?"`, `fixed_rate = "5s"` or `fixed_delay = "5s"`: [declares](Declaration) a job that
///   calls the handler; with `zone = "Asia/Shanghai"` for a cron expression, and `name = "display name"`,
///   `param = "…"`, `timeout = "90s"`, `retries = 2`, `route = "round_robin"`;
/// * `init = path`: a function called before the first run; if it fails, the run fails;
/// * `destroy = path`: a function called when the executor stops;
/// * `crate = "path"`: the path of `tickwright_executor`, if the crate was renamed.
///
/// Both functions are async if the handler is, take no arguments, and return the same types as a handler.
///
/// ```
/// use tickwright_executor::{Context, ParamError, job};
///
/// #[job("copy", init = connect, destroy = disconnect)]
/// async fn copy(ctx: Context) -> Result<String, ParamError> {
///     let paths: Vec<String> = ctx.param_as()?;
///     Ok(format!("copied {} files", paths.len()))
/// }
///
/// async fn connect() {}
/// async fn disconnect() {}
///
/// #[job("sum")]
/// fn sum() -> String {
///     (0..1_000).sum::<u64>().to_string()
/// }
/// ```
///
/// A declared job is added to the centre when the program starts, if the centre allows it:
///
/// ```
/// use tickwright_executor::job;
///
/// #[job("sync-orders", cron = "0 0/5 * * * ?", zone = "Asia/Shanghai", retries = 2)]
/// async fn sync_orders() -> String {
///     "synced".to_owned()
/// }
/// ```
///
/// Mistakes that can be detected at compile time do not compile:
///
/// ```compile_fail
/// #[tickwright_executor::job("")]
/// async fn nameless() {}
/// ```
///
/// ```compile_fail
/// #[tickwright_executor::job("at-25", cron = "0 0 25 * * ?")]
/// async fn at_25_o_clock() {}
/// ```
///
/// The linker drops functions of a library that nothing refers to; `use jobs as _;` keeps them. The names of all
/// handlers are logged at the start.
pub use macros::job;
pub use output::Output;
pub use run::{Outcome, Shard};
pub use scripts::{Language, Scripts, UnknownLanguage};
pub use timer::{Clock, Timestamp};
pub use tokio_util::sync::CancellationToken;

/// Used by the expansion of `#[job]` only.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
}
