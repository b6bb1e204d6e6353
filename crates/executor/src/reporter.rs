//! Tells the centre how runs ended, for as long as it takes.
//!
//! Reports arrive from the journal, so each is on disk and stays there until the centre has confirmed it. A report is
//! sent at once when the line is free, and together with others when it is not.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use protocol::xxl::CALLBACK_BATCH_MAX;
use timer::{Clock, Sleep};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use crate::centre::{CallError, Centre};
use crate::journal::Journal;
use crate::run::Report;

pub(crate) struct Reporter {
    centre: Arc<Centre>,
    journal: Journal,
    clock: Arc<dyn Clock>,
    waiting: VecDeque<Report>,
    batch_max: usize,
    failures: u32,
    /// Nothing is sent while this lasts.
    pause: Option<Sleep>,
}

impl Reporter {
    pub fn new(centre: Arc<Centre>, journal: Journal, clock: Arc<dyn Clock>) -> Reporter {
        Reporter {
            centre,
            journal,
            clock,
            waiting: VecDeque::new(),
            batch_max: CALLBACK_BATCH_MAX,
            failures: 0,
            pause: None,
        }
    }

    /// Reports until told to stop; what is then left is sent after the next start.
    pub async fn run(mut self, mut reports: UnboundedReceiver<Report>, stop: CancellationToken) {
        let mut sending = FuturesUnordered::new();
        let mut arrived = Vec::new();
        loop {
            while self.pause.is_none() && sending.len() < SENDING_MAX && !self.waiting.is_empty() {
                let batch: Vec<Report> =
                    self.waiting.drain(..self.waiting.len().min(self.batch_max)).collect();
                let centre = Arc::clone(&self.centre);
                sending.push(async move {
                    let result = centre.report(&batch).await;
                    (batch, result)
                });
            }
            tokio::select! {
                count = reports.recv_many(&mut arrived, ARRIVALS_MAX) => {
                    if count == 0 {
                        return;
                    }
                    self.waiting.extend(arrived.drain(..));
                }
                Some((batch, result)) = sending.next() => self.sent(batch, result),
                () = over(&mut self.pause) => self.pause = None,
                () = stop.cancelled() => return,
            }
        }
    }

    fn sent(&mut self, batch: Vec<Report>, result: Result<(), CallError>) {
        match result {
            Ok(()) => {
                self.failures = 0;
                self.batch_max = (self.batch_max * 2).min(CALLBACK_BATCH_MAX);
                self.journal.acknowledge(batch.iter().map(|report| report.run_id));
            }
            Err(error) => {
                self.failures += 1;
                let pause = after_failure(self.failures);
                tracing::warn!(
                    %error,
                    reports = batch.len(),
                    "results not taken; they are on disk and sent again in {} s",
                    pause.as_secs()
                );
                // One report the centre cannot digest must not hold up all: it ends up alone, behind the others.
                if error.is_refusal() {
                    self.batch_max = (self.batch_max / 2).max(1);
                }
                self.waiting.extend(batch);
                self.pause = Some(self.clock.sleep(pause));
            }
        }
    }
}

async fn over(pause: &mut Option<Sleep>) {
    match pause {
        Some(sleep) => sleep.await,
        None => pending().await,
    }
}

fn after_failure(failures: u32) -> Duration {
    Duration::from_secs(1 << failures.saturating_sub(1).min(5)).min(PAUSE_MAX)
}

/// A centre that commits each batch to disk answers in some 25 ms; eight at a time make 16,000 reports a second.
const SENDING_MAX: usize = 8;
const ARRIVALS_MAX: usize = 4_096;
/// What stock executors wait between tries.
const PAUSE_MAX: Duration = Duration::from_secs(30);
