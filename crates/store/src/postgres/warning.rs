//! Warnings of the server, which the driver only logs.
//!
//! A commit that waits for a standby may be cut short: the server then says that it succeeded, and warns that it may not
//! have been replicated.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::OnceLock;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// Runs statements of the driver; also returns the first warning of the server, if there was one. Whatever else they log
/// is discarded.
pub async fn watched<T>(work: impl Future<Output = T>) -> (T, Option<String>) {
    static WARNINGS: OnceLock<Dispatch> = OnceLock::new();
    let warnings = WARNINGS.get_or_init(|| Dispatch::new(Warnings));
    let mut work = pin!(work);
    let mut warning = None;
    let result = poll_fn(|context| {
        let polled = tracing::dispatcher::with_default(warnings, || work.as_mut().poll(context));
        // This thread polls other commits before it polls this one again.
        let found = FOUND.take();
        warning = warning.take().or(found);
        polled
    });
    let result = result.await;
    (result, warning)
}

thread_local! {
    static FOUND: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The target under which the driver logs messages of the server.
const NOTICES: &str = "sqlx::postgres::notice";

/// Receives the driver's log messages.
struct Warnings;

fn is_warning(metadata: &Metadata<'_>) -> bool {
    metadata.target() == NOTICES && *metadata.level() <= Level::WARN
}

impl Subscriber for Warnings {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_warning(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_warning(metadata)
    }

    /// Keeps messages of lower levels as cheap as they are without this.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        if is_warning(event.metadata()) {
            let mut text = Text(String::new());
            event.record(&mut text);
            FOUND.with_borrow_mut(|found| _ = found.get_or_insert(text.0));
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The text of a message.
struct Text(String);

impl Visit for Text {
    fn record_str(&mut self, _: &Field, value: &str) {
        value.clone_into(&mut self.0);
    }

    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        self.0 = format!("{value:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_warnings_of_the_server_are_found() {
        let (result, warning) = watched(async {
            tracing::warn!("of this program");
            tracing::info!(target: NOTICES, "no warning");
            tokio::task::yield_now().await;
            tracing::warn!(target: NOTICES, "the first");
            tracing::warn!(target: NOTICES, "the second");
            7
        })
        .await;
        assert_eq!((result, warning.as_deref()), (7, Some("the first")));
        assert_eq!(watched(async { 8 }).await, (8, None));
    }

    #[tokio::test]
    async fn commits_on_one_thread_have_their_own_warnings() {
        let commit = async |warns: bool| {
            watched(async {
                tokio::task::yield_now().await;
                if warns {
                    tracing::warn!(target: NOTICES, "not replicated");
                }
                tokio::task::yield_now().await;
            })
            .await
            .1
        };
        let (one, other) = tokio::join!(commit(true), commit(false));
        assert_eq!((one.as_deref(), other), (Some("not replicated"), None));
    }
}
