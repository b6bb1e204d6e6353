//! A handler: a named function, its hooks, and how to call it.

use std::any::Any;
use std::fmt::{self, Display};
use std::pin::Pin;
use std::sync::Arc;

use protocol::declare::DeclaredJob;
use tokio::sync::Mutex;
use tokio::task::{JoinError, JoinHandle};

use crate::context::Context;
use crate::declaration::Declaration;
use crate::error::Error;
use crate::run_log;

/// A handler with its name in the centre.
///
/// [`#[job]`](crate::job) creates one from a function; [`Builder::job`](crate::Builder::job) adds one.
///
/// ```
/// use tickwright_executor::{Context, Job};
///
/// let greet = Job::new("greet", |ctx: Context| async move { format!("hello {}", ctx.param()) });
/// let count = Job::blocking("count", |ctx: Context| -> Result<String, std::num::ParseIntError> {
///     let to: u64 = ctx.param().parse()?;
///     Ok((0..to).sum::<u64>().to_string())
/// })
/// .init(|| println!("before the first run"))
/// .destroy(|| println!("when the executor stops"));
/// # assert_eq!((greet.name(), count.name()), ("greet", "count"));
/// ```
pub struct Job {
    name: String,
    declaration: Option<Declaration>,
    work: Arc<Work>,
}

/// The functions of a handler: before, during and after its runs.
struct Work {
    run: Call<Context>,
    init: Option<Call<()>>,
    destroy: Option<Call<()>>,
    /// Whether the handler ends by itself when it is cancelled. It has cleanup to do, so it must not be dropped.
    stops_itself: bool,
    /// Whether `init` has succeeded; locked while `init` runs.
    is_ready: Mutex<bool>,
}

enum Call<A> {
    Async(Box<dyn Fn(A) -> Ending + Send + Sync>),
    Blocking(Arc<dyn Fn(A) -> Result<Option<String>, String> + Send + Sync>),
}

type Ending = Pin<Box<dyn Future<Output = Result<Option<String>, String>> + Send>>;

impl Job {
    /// Creates an async handler. When its run is stopped, it is dropped at its next `.await`.
    pub fn new<F, R>(name: impl Into<String>, handler: F) -> Job
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output: IntoOutcome> + Send + 'static,
    {
        Job::of(name.into(), call_async(handler))
    }

    /// Creates a blocking or CPU-bound handler; each run has its own thread. A thread cannot be stopped from
    /// outside, so a long handler should check [`Context::is_cancelled`] regularly.
    pub fn blocking<F, R>(name: impl Into<String>, handler: F) -> Job
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: IntoOutcome,
    {
        let run = move |context: Context| {
            // The run may have been killed while it waited for a thread.
            if context.is_cancelled() {
                return Err("cancelled before it started".to_owned());
            }
            handler(context).into_result()
        };
        Job::of(name.into(), Call::Blocking(Arc::new(run)))
    }

    fn of(name: String, run: Call<Context>) -> Job {
        let work = Work { run, init: None, destroy: None, stops_itself: false, is_ready: Mutex::new(false) };
        Job { name, declaration: None, work: Arc::new(work) }
    }

    /// Declares a job that calls this handler; the centre adds it.
    #[must_use]
    pub fn declare(mut self, declaration: Declaration) -> Job {
        self.declaration = Some(declaration);
        self
    }

    /// Sets a function called once, before the first run. If it fails, the run fails, and the next run calls it again.
    #[must_use]
    pub fn init<R: IntoOutcome>(self, init: impl Fn() -> R + Send + Sync + 'static) -> Job {
        self.with(|work| work.init = Some(Call::Blocking(Arc::new(move |()| init().into_result()))))
    }

    /// Async version of [`Job::init`].
    #[must_use]
    pub fn init_async<R>(self, init: impl Fn() -> R + Send + Sync + 'static) -> Job
    where
        R: Future<Output: IntoOutcome> + Send + 'static,
    {
        self.with(|work| work.init = Some(call_async(move |()| init())))
    }

    /// Sets a function called once when the executor stops, if the handler got as far as a first run (`init`
    /// succeeded or is not set).
    #[must_use]
    pub fn destroy<R: IntoOutcome>(self, destroy: impl Fn() -> R + Send + Sync + 'static) -> Job {
        self.with(|work| work.destroy = Some(Call::Blocking(Arc::new(move |()| destroy().into_result()))))
    }

    /// Async version of [`Job::destroy`].
    #[must_use]
    pub fn destroy_async<R>(self, destroy: impl Fn() -> R + Send + Sync + 'static) -> Job
    where
        R: Future<Output: IntoOutcome> + Send + 'static,
    {
        self.with(|work| work.destroy = Some(call_async(move |()| destroy())))
    }

    /// Marks a handler that ends by itself, soon after it is cancelled.
    pub(crate) fn stopping_itself(self) -> Job {
        self.with(|work| work.stops_itself = true)
    }

    fn with(mut self, change: impl FnOnce(&mut Work)) -> Job {
        change(Arc::get_mut(&mut self.work).expect("nobody runs a job that is still being made"));
        self
    }

    /// Name of the handler in the centre.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The job declared for this handler, as sent to the centre.
    pub(crate) fn declared(&self) -> Result<Option<DeclaredJob>, Error> {
        self.declaration.as_ref().map(|declaration| declaration.of_handler(&self.name)).transpose()
    }

    /// Whether a run can be stopped by dropping its future.
    pub(crate) fn ends_when_dropped(&self) -> bool {
        matches!(self.work.run, Call::Async(_)) && !self.work.stops_itself
    }

    /// Starts a run.
    pub(crate) fn start(&self, context: Context) -> JoinHandle<Result<Option<String>, String>> {
        let work = Arc::clone(&self.work);
        let log = context.run_log().clone();
        tokio::spawn(run_log::CURRENT.scope(log, async move {
            work.prepare().await?;
            work.run.call(context.clone()).await.map(|message| message.or_else(|| context.take_message()))
        }))
    }

    /// Calls `destroy`, if the handler was ever ready to run.
    pub(crate) async fn end(&self) {
        let mut is_ready = self.work.is_ready.lock().await;
        if let (true, Some(destroy)) = (*is_ready, &self.work.destroy)
            && let Err(error) = destroy.call(()).await
        {
            tracing::warn!(handler = self.name, error, "the destroy hook of a handler failed");
        }
        *is_ready = false;
    }
}

impl Work {
    async fn prepare(&self) -> Result<(), String> {
        if self.init.is_none() && self.destroy.is_none() {
            return Ok(());
        }
        let mut is_ready = self.is_ready.lock().await;
        if let (false, Some(init)) = (*is_ready, &self.init) {
            init.call(()).await.map_err(|error| format!("the init hook of the handler failed: {error}"))?;
        }
        *is_ready = true;
        Ok(())
    }
}

impl<A: Send + 'static> Call<A> {
    async fn call(&self, argument: A) -> Result<Option<String>, String> {
        match self {
            Call::Async(call) => call(argument).await,
            Call::Blocking(call) => {
                let call = Arc::clone(call);
                let log = run_log::CURRENT.try_with(Clone::clone).ok();
                let thread = tokio::task::spawn_blocking(move || match log {
                    Some(log) => run_log::CURRENT.sync_scope(log, || call(argument)),
                    None => call(argument),
                });
                thread.await.unwrap_or_else(|error| Err(panicked(error)))
            }
        }
    }
}

fn call_async<A, F, R>(function: F) -> Call<A>
where
    F: Fn(A) -> R + Send + Sync + 'static,
    R: Future<Output: IntoOutcome> + Send + 'static,
{
    Call::Async(Box::new(move |argument| {
        let future = function(argument);
        Box::pin(async move { future.await.into_result() })
    }))
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Return types of a handler: nothing, a message, or a `Result` of either with an error that implements `Display`.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "return nothing, a string, or a `Result` of either whose error implements `Display`"
)]
pub trait IntoOutcome: Send + 'static {
    /// The message, or the error as text, with its causes if its type prints them.
    fn into_result(self) -> Result<Option<String>, String>;
}

impl IntoOutcome for () {
    fn into_result(self) -> Result<Option<String>, String> {
        Ok(None)
    }
}

impl IntoOutcome for String {
    fn into_result(self) -> Result<Option<String>, String> {
        Ok(Some(self))
    }
}

impl IntoOutcome for &'static str {
    fn into_result(self) -> Result<Option<String>, String> {
        Ok(Some(self.to_owned()))
    }
}

impl IntoOutcome for Option<String> {
    fn into_result(self) -> Result<Option<String>, String> {
        Ok(self)
    }
}

impl<T: IntoOutcome, E: Display + Send + 'static> IntoOutcome for Result<T, E> {
    fn into_result(self) -> Result<Option<String>, String> {
        self.map_err(|error| format!("{error:#}")).and_then(T::into_result)
    }
}

/// Error text for a task that panicked or was dropped.
pub(crate) fn panicked(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => format!("the handler panicked: {}", panic_text(&*panic)),
        Err(_) => "the handler was dropped before its end".to_owned(),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

/// A function marked [`#[job]`](crate::job). Created by the attribute.
#[derive(Debug)]
pub struct Marked {
    /// Creates the handler.
    pub job: fn() -> Job,
}

inventory::collect!(Marked);
