//! Reports outcomes to the centre and retries until it confirms them.
//!
//! Reports arrive from the journal, so each is on disk and stays there until the centre has confirmed it. A report
//! is sent immediately if a connection is free, and in a batch with others if not.

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
    /// Number of the current round. A round ends with its first failed batch; batches that were sent in an earlier
    /// round and fail later are not counted again.
    round: u64,
    /// Failed rounds in a row.
    failures: u32,
    /// No batch is sent during the pause.
    pause: Option<Pause>,
}

struct Pause {
    sleep: Sleep,
    /// Whether the centre rejected the results themselves. Such a pause is not shortened by the success of other
    /// batches, because the rejected batch would then be sent again immediately.
    after_refusal: bool,
}

impl Reporter {
    pub fn new(centre: Arc<Centre>, journal: Journal, clock: Arc<dyn Clock>) -> Reporter {
        Reporter {
            centre,
            journal,
            clock,
            waiting: VecDeque::new(),
            batch_max: CALLBACK_BATCH_MAX,
            round: 0,
            failures: 0,
            pause: None,
        }
    }

    /// Sends reports until `stop` is cancelled; the rest is sent after the next start.
    pub async fn run(mut self, mut reports: UnboundedReceiver<Report>, stop: CancellationToken) {
        let mut sending = FuturesUnordered::new();
        let mut arrived = Vec::new();
        loop {
            while self.pause.is_none() && sending.len() < self.sending_max() && !self.waiting.is_empty() {
                let batch: Vec<Report> =
                    self.waiting.drain(..self.waiting.len().min(self.batch_max)).collect();
                let (centre, round) = (Arc::clone(&self.centre), self.round);
                sending.push(async move {
                    let result = centre.report(&batch).await;
                    (round, batch, result)
                });
            }
            tokio::select! {
                count = reports.recv_many(&mut arrived, ARRIVALS_MAX) => {
                    if count == 0 {
                        return;
                    }
                    self.waiting.extend(arrived.drain(..));
                }
                Some((round, batch, result)) = sending.next() => self.sent(round, batch, result),
                () = over(&mut self.pause) => self.pause = None,
                () = stop.cancelled() => return,
            }
        }
    }

    /// After a failed round a single batch tests whether the centre takes results again.
    fn sending_max(&self) -> usize {
        if self.failures == 0 { SENDING_MAX } else { 1 }
    }

    fn sent(&mut self, round: u64, batch: Vec<Report>, result: Result<(), CallError>) {
        match result {
            Ok(()) => {
                self.failures = 0;
                self.pause.take_if(|pause| !pause.after_refusal);
                self.batch_max = (self.batch_max * 2).min(CALLBACK_BATCH_MAX);
                self.journal.acknowledge(batch.iter().map(|report| report.run_id));
            }
            Err(error) => {
                // A report that the centre rejects must not block the others: batches shrink until it is alone,
                // behind the others.
                if error.is_refusal() {
                    self.batch_max = (self.batch_max / 2).max(1);
                }
                if round == self.round {
                    self.end_round(&error, batch.len());
                }
                self.waiting.extend(batch);
            }
        }
    }

    fn end_round(&mut self, error: &CallError, reports: usize) {
        self.round += 1;
        self.failures += 1;
        let pause = pause_after(self.failures, error.is_refusal());
        tracing::warn!(
            %error,
            reports,
            "failed to report results; they are stored on disk, retrying in {} s",
            pause.as_secs()
        );
        self.pause = Some(Pause { sleep: self.clock.sleep(pause), after_refusal: error.is_refusal() });
    }
}

async fn over(pause: &mut Option<Pause>) {
    match pause {
        Some(pause) => (&mut pause.sleep).await,
        None => pending().await,
    }
}

fn pause_after(failures: u32, is_refusal: bool) -> Duration {
    let max = if is_refusal { REFUSAL_PAUSE_MAX } else { OUTAGE_PAUSE_MAX };
    Duration::from_secs(1 << failures.saturating_sub(1).min(5)).min(max)
}

/// A centre that commits each batch to disk answers in about 25 ms; eight in parallel make 16,000 reports per second.
const SENDING_MAX: usize = 8;
const ARRIVALS_MAX: usize = 4_096;
/// Longest pause while the centre is unavailable or cannot store results. Retries, child jobs and fixed delays wait
/// for these results, and one batch every 2 s costs a recovering centre little.
const OUTAGE_PAUSE_MAX: Duration = Duration::from_secs(2);
/// Longest pause after the centre rejected results, for example because of a wrong token; the same as in stock
/// executors.
const REFUSAL_PAUSE_MAX: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use timer::Timestamp;
    use timer::testing::ManualClock;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::ledger::Memory;
    use crate::run::Outcome;

    #[tokio::test]
    async fn a_round_of_many_failed_batches_costs_one_pause() {
        let mut bench = Bench::new();
        bench.fail(0, SENDING_MAX, unavailable);
        assert_eq!(bench.pause(), Some(Duration::from_secs(1)));
        assert_eq!(bench.reporter.sending_max(), 1);
        assert_eq!(bench.reporter.waiting.len(), SENDING_MAX);
        assert_eq!(bench.reporter.batch_max, CALLBACK_BATCH_MAX, "the results are not at fault");
        for round in 1..10 {
            bench.reporter.pause = None;
            bench.fail(round, 1, unavailable);
            assert_eq!(bench.pause(), Some(Duration::from_secs(2)));
        }
    }

    #[tokio::test]
    async fn the_first_success_resumes_at_full_speed() {
        let mut bench = Bench::new();
        bench.fail(0, 3, unavailable);
        bench.reporter.sent(0, vec![report()], Ok(()));
        assert_eq!(bench.pause(), None);
        assert_eq!(bench.reporter.sending_max(), SENDING_MAX);
        // A late failure of the failed round does not restart the pause.
        bench.fail(0, 1, unavailable);
        assert_eq!(bench.pause(), None);
    }

    #[tokio::test]
    async fn rejected_results_wait_longer_whatever_happens_to_others() {
        let mut bench = Bench::new();
        for round in 0..10 {
            bench.fail(round, 1, refused);
        }
        assert_eq!(bench.pause(), Some(REFUSAL_PAUSE_MAX));
        assert_eq!(bench.reporter.batch_max, 1);
        bench.reporter.sent(9, vec![report()], Ok(()));
        assert_eq!(bench.pause(), Some(REFUSAL_PAUSE_MAX));
    }

    struct Bench {
        reporter: Reporter,
        clock: Arc<ManualClock>,
        _directory: tempfile::TempDir,
    }

    impl Bench {
        fn new() -> Bench {
            let directory = tempfile::tempdir().unwrap();
            let clock = Arc::new(ManualClock::new(Timestamp::from_millis(0)));
            let (reports, _) = unbounded_channel();
            let journal = Journal::open(directory.path(), Memory::default(), clock.clone(), reports).unwrap();
            let centre = Centre::new(&[], "app", "token", clock.clone()).unwrap();
            let reporter = Reporter::new(Arc::new(centre), journal, clock.clone());
            Bench { reporter, clock, _directory: directory }
        }

        fn fail(&mut self, round: u64, batches: usize, error: impl Fn() -> CallError) {
            for _ in 0..batches {
                self.reporter.sent(round, vec![report()], Err(error()));
            }
        }

        /// Time until the next batch may be sent.
        fn pause(&mut self) -> Option<Duration> {
            assert!(over(&mut self.reporter.pause).now_or_never().is_none());
            self.reporter.pause.as_ref().and_then(|_| self.clock.until_next_wake())
        }
    }

    fn report() -> Report {
        Report { run_id: 1, triggered_at: Timestamp::from_millis(0), outcome: Outcome::TimedOut }
    }

    fn unavailable() -> CallError {
        CallError::Unavailable { node: "http://centre".into(), why: "send it again".into() }
    }

    fn refused() -> CallError {
        CallError::Refused { node: "http://centre".into(), why: "no".into() }
    }
}
