//! Tracing layer that copies events of a run to the run's log.

use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::run_log;

/// Copies tracing events that a handler emits to the log of its run.
///
/// Add it to the other layers: `tracing_subscriber::registry().with(fmt::layer()).with(RunLogLayer)`. Events of
/// tasks and threads that the handler starts are not copied. Needs the feature `layer`, which is on by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunLogLayer;

impl<S: Subscriber> Layer<S> for RunLogLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        // The event does not belong to a run.
        let _ = run_log::CURRENT.try_with(|log| {
            let mut text = Text(event.metadata().level().to_string());
            event.record(&mut text);
            log.line(&text.0);
        });
    }
}

struct Text(String);

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = if field.name() == "message" {
            write!(self.0, " {value:?}")
        } else {
            write!(self.0, " {}={value:?}", field.name())
        };
        written.expect("a string takes all text");
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::prelude::*;

    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn events_of_a_run_land_in_its_log() {
        let subscriber = tracing_subscriber::registry().with(RunLogLayer);
        let _guard = tracing::subscriber::set_default(subscriber);
        tracing::info!("before");
        let ended = testing::run(
            |_| async {
                tracing::info!(count = 3, name = "x", "copied");
                tokio::task::yield_now().await;
                tracing::warn!("slow");
            },
            "",
        )
        .await;
        assert_eq!(ended.log, ["INFO copied count=3 name=x", "WARN slow"]);
    }

    #[tokio::test]
    async fn so_do_those_of_one_that_blocks() {
        let subscriber = tracing_subscriber::registry().with(RunLogLayer);
        let dispatch = tracing::Dispatch::new(subscriber);
        // A test can only set a subscriber per thread, and a blocking handler has its own thread.
        let count = move |_: crate::Context| {
            tracing::dispatcher::with_default(&dispatch, || tracing::info!("counted"));
        };
        let ended = testing::run_blocking(count, "").await;
        assert_eq!(ended.log, ["INFO counted"]);
    }
}
