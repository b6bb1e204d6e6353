//! Who does the work? Makes any Rust program an executor: for Tickwright's scheduling centre, and for XXL-JOB's of
//! every version since 2.2.
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
//! # What to use for what
//!
//! | you want | write |
//! |---|---|
//! | a function to be a handler | [`#[job("name")]`](job) |
//! | a job that the centre adds by itself | [`#[job("name", cron = "…")]`](job), [`Job::declare`] |
//! | a handler made at run time | [`Builder::job`], [`Job::new`] |
//! | code that blocks or computes | a plain `fn`, [`Job::blocking`] |
//! | the parameter | [`Context::param`], [`Context::param_as`] |
//! | a part of the work per executor | [`Context::shard`] |
//! | lines people read in the centre | [`Context::log`], [`log!`], [`RunLogLayer`] |
//! | to stop when told to | [`Context::is_cancelled`], [`Context::cancellation`] |
//! | to start and stop by hand | [`Builder::start`], [`Executor::stop`] |
//! | scripts that are written in the centre | [`Builder::scripts`] |
//! | to call URLs and start programs | [`handlers`] |
//! | to test a handler | [`testing::run`] |
//!
//! # What is promised
//!
//! * **At most once.** A run is on disk before the centre hears that it was taken. The same run offered again, after
//!   a restart too, is not run again: while it waits or runs, or when the centre has confirmed its result, it is
//!   refused as a repetition; while its result is on its way, the answer is yes and the result comes.
//!   [`Builder::memory`] says for how long. A centre whose numbers start again from 1 needs executors that start
//!   afresh too: delete their directories.
//! * **Never silent.** A result is on disk before it is sent and stays until the centre confirms it. Runs that a
//!   crash cut short are reported as failed at the next start.
//! * **One at a time.** Runs of one job wait for each other, up to [`Builder::queue`]; more are refused, and told so.
//!   A repetition is recognised before the job's block strategy is looked at, so it can stop nothing.
//! * **Stopped means stopped.** An async handler that is killed or takes too long is dropped at its next `.await`.
//!   A blocking one is told; if it does not end within [`Builder::stop_grace`], its job goes on without it.
//! * **Closed by default.** It listens on loopback; elsewhere only with a token that is not blank or well known. It
//!   runs named handlers and, unless [`Builder::scripts`] says otherwise, no code from the network.

mod centre;
mod context;
mod declaration;
mod door;
mod error;
mod executor;
pub mod handlers;
mod herald;
mod https;
mod inbox;
mod job;
mod journal;
#[cfg(feature = "layer")]
mod layer;
mod ledger;
mod process;
mod record;
mod registrar;
mod reporter;
mod run;
mod run_log;
mod scripts;
pub mod testing;

pub use context::{Context, ParamError};
pub use declaration::Declaration;
pub use error::Error;
pub use executor::{Builder, Executor, Stopped};
pub use job::{IntoOutcome, Job, Marked};
#[cfg(feature = "layer")]
pub use layer::RunLogLayer;
/// Makes a function a handler, under the name a centre calls it by; no list of handlers is kept.
///
/// The function takes a [`Context`] or nothing, may be async or not (then each run has a thread), and returns
/// nothing, a text, or a `Result` of either whose error can be shown. If wanted:
///
/// * `cron = "0 0/5 * * * ?"`, `fixed_rate = "5s"` or `fixed_delay = "5s"`: [declares](Declaration) a job that calls it;
///   with `zone = "Asia/Shanghai"` for a cron expression, and `name = "for people"`, `param = "…"`, `timeout = "90s"`,
///   `retries = 2`, `route = "ROUND"`;
/// * `init = path`: a function called before the first run; if it fails, so does the run;
/// * `destroy = path`: a function called when the executor stops;
/// * `crate = "path"`: where `tickwright_executor` is found, if it was renamed.
///
/// Both functions are async if the handler is, take nothing, and return what a handler may.
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
/// A job that declares itself is added to the centre when the program starts, where the centre allows it:
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
/// What cannot be right does not compile:
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
/// Functions in a library that nothing refers to are left out by the linker; `use jobs as _;` keeps them. The names
/// of all handlers are logged at the start.
pub use macros::job;
pub use run::{Outcome, Shard};
pub use scripts::{Language, Scripts, UnknownLanguage};
pub use timer::{Clock, Timestamp};
pub use tokio_util::sync::CancellationToken;

/// What `#[job]` expands to needs these; nothing else should.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
}
