//! Completion: closes runs and creates their follow-ups in one transaction; only then is a report acknowledged.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cron::{Schedule, Timestamp};
use tokio::sync::{Mutex, Notify, mpsc, oneshot};

use crate::engine::{Engine, RETRY};
use crate::job::Job;
use crate::plan;
use crate::ports::{Ender, Ending, FollowUps, StoreError, Verdict};
use crate::quota::Quota;
use crate::run::{Origin, Outcome, Run, RunId, RunState};
use crate::sabotage::{Bugs, Sabotage};
use crate::telemetry::StepEvent;
use crate::trouble::{Trouble, TroubleKind};

impl Engine {
    /// Processes an executor's report of a run's result. When this returns, the report is durable and may be
    /// acknowledged; on an error it must not be, and the executor will report again. Idempotent.
    pub async fn report(&self, run: RunId, outcome: Outcome) -> Result<Verdict, StoreError> {
        self.emit(StepEvent::Reported { run, outcome: &outcome });
        self.end(Ending { run, outcome, version: None, address: None }).await
    }

    /// Writes the end of a run and returns the result.
    pub(crate) async fn end(&self, ending: Ending) -> Result<Verdict, StoreError> {
        let (reply, written) = oneshot::channel();
        self.inner.reports.push(Report { ending, reply: Some(reply) }).await;
        written.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the node is stopping".into())))
    }

    /// Queues a conclusion of the engine itself about a run.
    pub(crate) async fn conclude(&self, ending: Ending) {
        self.inner.reports.push(Report { ending, reply: None }).await;
    }

    pub(crate) async fn complete_loop(&self) {
        loop {
            let batch = self.inner.reports.take(self.inner.paces.endings.size()).await;
            self.write_reports(batch).await;
            // Results that arrive one by one share a commit (group commit); the first one never waits.
            if self.inner.reports.len() < self.inner.paces.endings.size() {
                self.inner.clock.sleep(LINGER).await;
            }
        }
    }

    /// Writes results beside [`complete_loop`](Engine::complete_loop) while many wait, on a database that commits several
    /// transactions at a time. One connection uses one core of such a server, and waits for each of its commits.
    pub(crate) async fn complete_backlog_loop(&self) {
        if self.inner.store.has_one_writer() {
            return;
        }
        loop {
            self.inner.reports.backlog().await;
            let batch = self.inner.reports.take_waiting(self.inner.paces.endings.size()).await;
            self.write_reports(batch).await;
        }
    }

    /// Writes a batch, and answers those who wait for it.
    async fn write_reports(&self, mut batch: Vec<Report>) {
        self.let_herd_leave().await;
        if self.sabotaged(Sabotage::AckBeforeCommit) {
            for reply in batch.iter_mut().filter_map(|report| report.reply.take()) {
                let _ = reply.send(Ok(Verdict::Applied));
            }
            self.inner.clock.sleep(LINGER * 10).await;
        }
        let endings: Vec<Ending> = batch.iter().map(|report| report.ending.clone()).collect();
        let all_reports = batch.iter().all(|report| report.reply.is_some());
        let verdicts = self.write_endings(&endings, all_reports).await;
        for (report, verdict) in batch.into_iter().zip(verdicts) {
            if let (Some(version), Ok(_)) = (report.ending.version, &verdict) {
                self.outbox().forget(report.ending.run, version);
            }
            let outcome = &report.ending.outcome;
            let is_over = match verdict {
                Ok(Verdict::Applied | Verdict::Late) => true,
                // The stored result replaced a conclusion of ours, but not a report of the same result.
                Ok(Verdict::Stored) => outcome.is_reported(),
                _ => false,
            };
            if is_over {
                self.history().ended(&report.ending, self.now());
                self.drop_obsolete_notes(report.ending.run);
                self.emit(StepEvent::Completed { run: report.ending.run, outcome });
            }
            if let Some(reply) = report.reply {
                // The executor may have closed the connection; it will report again.
                let _ = reply.send(verdict);
            }
        }
        self.inner.reports.written(endings.len());
    }

    /// Writes a batch. Conclusions of the engine itself are retried until written; a batch of reports only is
    /// returned after a few attempts, because the executors keep them. One that can never be written does not block
    /// the others.
    async fn write_endings(&self, endings: &[Ending], all_reports: bool) -> Vec<Result<Verdict, StoreError>> {
        let mut tries = 0;
        loop {
            // Follow-ups are due by the database's clock, which is unknown before the first incarnation.
            while self.life().is_none() {
                self.inner.clock.sleep(RETRY / 10).await;
            }
            if let Err(error) = self.recount_if_reached().await {
                tracing::debug!(%error, "failed to count the open runs of apps; using the last count");
            }
            let now = self.now();
            let ender = After::new(now, self.inner.options.bugs, Some(&self.inner.quota));
            let asked = self.inner.clock.monotonic();
            let error = match self.inner.store.complete(now, endings, &ender).await {
                Ok(verdicts) => {
                    let took = self.inner.clock.monotonic() - asked;
                    self.inner.paces.endings.took(endings.len(), took);
                    self.emit(StepEvent::Stored { took });
                    if ender.has_ended_steps.into_inner() {
                        self.advance_now();
                    }
                    if ender.has_ended_instants.into_inner() {
                        self.fill_now();
                    }
                    if ender.has_opened.into_inner() {
                        // Follow-ups may be due at once.
                        self.inner.claim_now.notify_one();
                    }
                    return verdicts.into_iter().map(Ok).collect();
                }
                Err(error) => error,
            };
            tries += 1;
            if error.is_transient() && !(all_reports && tries >= REPORT_TRIES) {
                self.complain(&error, "failed to store results of runs", RETRY);
                self.inner.clock.sleep(RETRY).await;
                continue;
            }
            if !error.is_transient() && endings.len() > 1 {
                let (first, second) = endings.split_at(endings.len() / 2);
                let mut verdicts = Box::pin(self.write_endings(first, all_reports)).await;
                verdicts.extend(Box::pin(self.write_endings(second, all_reports)).await);
                return verdicts;
            }
            tracing::error!(%error, run = %endings[0].run, "failed to store the result of a run; its executor is asked to report it again");
            return endings.iter().map(|_| Err(error.clone())).collect();
        }
    }
}

/// Decides about follow-ups of a finished run.
pub(crate) struct After<'a> {
    now: Timestamp,
    bugs: Bugs,
    quota: Option<&'a Quota>,
    /// Whether something may be claimed now that could not be claimed before. Most runs end without that, and a claim
    /// after each of them would cost more than their ends.
    has_opened: AtomicBool,
    /// Whether steps of workflows may have ended.
    has_ended_steps: AtomicBool,
    /// Whether scheduled times of backfills may have ended.
    has_ended_instants: AtomicBool,
}

impl<'a> After<'a> {
    fn new(now: Timestamp, bugs: Bugs, quota: Option<&'a Quota>) -> Self {
        After {
            now,
            bugs,
            quota,
            has_opened: AtomicBool::new(false),
            has_ended_steps: AtomicBool::new(false),
            has_ended_instants: AtomicBool::new(false),
        }
    }
}

impl Ender for After<'_> {
    fn recorded(&self, run: &Run, reported: &Outcome) -> Outcome {
        match reported {
            Outcome::Failed(text) | Outcome::FailedWith(_, text) | Outcome::TimedOut(text) if run.cancel => {
                let why = if run.replaced { REPLACED } else { "cancelled on request" };
                Outcome::Cancelled(format!("{why}; the executor reports: {text}"))
            }
            reported => reported.clone(),
        }
    }

    fn follow(&self, job: &Job, run: &Run, outcome: &Outcome) -> FollowUps {
        let mut follow = FollowUps::default();
        match run.origin {
            Origin::Step { .. } => self.has_ended_steps.store(true, Ordering::Relaxed),
            Origin::Backfill { .. } => self.has_ended_instants.store(true, Ordering::Relaxed),
            _ => {}
        }
        match outcome {
            Outcome::Succeeded(_) if run.depth >= CHILD_DEPTH_MAX => {
                let cut = !job.spec.children.is_empty();
                let told = || {
                    format!(
                        "its child jobs do not run: the chain has {CHILD_DEPTH_MAX} jobs, probably a cycle"
                    )
                };
                follow.trouble = cut.then(|| Trouble::new(TroubleKind::NotRun, told()));
            }
            Outcome::Succeeded(_) => {
                follow.children =
                    job.spec.children.iter().copied().filter(|child| *child != job.id).collect();
            }
            Outcome::Cancelled(_) | Outcome::Dropped(..) => {
                follow.trouble = Trouble::of_end(job, outcome);
            }
            failure => {
                let attempt = run.attempt - u32::from(self.bugs.has(Sabotage::OneRetryTooMany));
                let delay = if run.recalled { None } else { job.spec.retry.delay_after(attempt) };
                follow.retry_at = delay.map(|delay| (self.now + delay).max(run.scheduled_at));
                if follow.retry_at.is_none() {
                    follow.trouble = Trouble::of_end(job, failure);
                }
            }
        }
        if let Schedule::FixedDelay { .. } = job.spec.schedule
            && run.origin.is_scheduled()
            && follow.retry_at.is_none()
        {
            follow.rearm = Some(plan::at_or_never(job, job.spec.next_after_end(self.now)));
        }
        if follow.retry_at.is_some()
            || follow.rearm.is_some()
            || !follow.children.is_empty()
            // A run that waits for this one may start; the job continues with its next fire.
            || job.spec.overlap.is_exclusive()
            || run.state == RunState::Cancelling
        {
            self.has_opened.store(true, Ordering::Relaxed);
        }
        follow
    }

    /// A retry is never blocked: it takes the place of the run that it repeats.
    fn blocks(&self, child: &Job, opened: u64) -> Option<String> {
        self.quota?.blocks(child.spec.app, opened)
    }
}

/// A queued report.
pub(crate) struct Report {
    ending: Ending,
    reply: Option<oneshot::Sender<Result<Verdict, StoreError>>>,
}

/// Queue of reports.
pub(crate) struct Reports {
    sender: mpsc::Sender<Report>,
    receiver: Mutex<Receiver>,
    /// Number of reports queued and not yet written.
    open: AtomicUsize,
    /// Notified while at least [`BACKLOG`] reports wait.
    has_backlog: Notify,
}

struct Receiver {
    reports: mpsc::Receiver<Report>,
    /// Second reports of runs that were already in the previous batch.
    put_by: Vec<Report>,
}

impl Reports {
    pub(crate) fn new() -> Self {
        let (sender, reports) = mpsc::channel(REPORTS_MAX);
        Reports {
            sender,
            receiver: Mutex::new(Receiver { reports, put_by: Vec::new() }),
            open: AtomicUsize::new(0),
            has_backlog: Notify::new(),
        }
    }

    /// Waits while the queue is full: reporting slows down, nothing is dropped.
    async fn push(&self, report: Report) {
        self.open.fetch_add(1, Ordering::Relaxed);
        if self.sender.send(report).await.is_err() {
            unreachable!("the receiver lives as long as the sender");
        }
        if self.waiting() >= BACKLOG {
            self.has_backlog.notify_one();
        }
    }

    /// Number of reports that no batch has.
    fn waiting(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    /// Waits until a batch is worth a transaction beside the one that is under way.
    async fn backlog(&self) {
        while self.waiting() < BACKLOG {
            self.has_backlog.notified().await;
        }
    }

    /// Next batch, ordered by id, with each run once.
    async fn take(&self, max: usize) -> Vec<Report> {
        let mut receiver = self.receiver.lock().await;
        if receiver.put_by.is_empty() {
            let mut arrived = Vec::new();
            receiver.reports.recv_many(&mut arrived, max).await;
            receiver.put_by = arrived;
        }
        receiver.batch(max)
    }

    /// The same for the reports that have arrived, which may be none.
    async fn take_waiting(&self, max: usize) -> Vec<Report> {
        self.receiver.lock().await.batch(max)
    }

    fn written(&self, count: usize) {
        self.open.fetch_sub(count, Ordering::Relaxed);
    }

    pub(crate) fn len(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Receiver {
    /// The reports that were put by and those that have arrived, ordered by id, with each run once.
    fn batch(&mut self, max: usize) -> Vec<Report> {
        let mut arrived = std::mem::take(&mut self.put_by);
        while arrived.len() < max
            && let Ok(report) = self.reports.try_recv()
        {
            arrived.push(report);
        }
        let mut seen = BTreeSet::new();
        let (mut batch, again): (Vec<_>, Vec<_>) =
            arrived.into_iter().partition(|report| seen.insert(report.ending.run));
        self.put_by = again;
        batch.sort_by_key(|report| report.ending.run);
        batch
    }
}

/// Number of waiting reports from which on a second transaction writes them. Fewer are better written together: at
/// 1 000 runs/s less than 20 arrive while a transaction is under way.
const BACKLOG: usize = 100;

/// Maximum number of queued reports; beyond it, reporting waits.
const REPORTS_MAX: usize = 10_000;

/// Attempts before an executor has to report again.
const REPORT_TRIES: u32 = 5;

/// Pause between two batches, so that one commit holds more results. A report is acknowledged this much later.
const LINGER: Duration = Duration::from_millis(5);

/// Message of the end of a run that a later one of its job replaced.
pub(crate) const REPLACED: &str = "replaced by a later run of the job";

pub(crate) const WORKFLOW_CANCELLED: &str = "its workflow run was stopped";

/// Maximum depth of children: a run this deep starts no more children.
pub const CHILD_DEPTH_MAX: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;
    use crate::policy::{Backoff, Overlap, Retry};
    use crate::ports::NextFire;
    use crate::run::Origin;
    use crate::testing::{each_second, job, ms, run};

    fn follow(job: &Job, run: &Run, outcome: Outcome) -> FollowUps {
        After::new(ms(50_000), Bugs::default(), None).follow(job, run, &outcome)
    }

    fn failed() -> Outcome {
        Outcome::Failed("no luck".into())
    }

    #[test]
    fn a_failed_run_is_tried_again_as_often_as_its_job_says_and_then_people_are_told() {
        let mut job = each_second(60_000);
        job.spec.alert = true;
        job.spec.retry = Retry { count: 2, backoff: Backoff::Fixed { delay: Duration::from_secs(3) } };
        let check = |job: &Job, attempt, outcome: Outcome, retry_at: Option<i64>, alerted| {
            let run = Run { attempt, ..run(1, RunState::Running, 40_000) };
            let follow = follow(job, &run, outcome.clone());
            assert_eq!(
                (follow.retry_at, follow.trouble.is_some()),
                (retry_at.map(ms), alerted),
                "{attempt} {outcome:?}"
            );
        };
        check(&job, 1, failed(), Some(53_000), false);
        check(&job, 2, Outcome::Lost("gone".into()), Some(53_000), false);
        check(&job, 3, failed(), None, true);
        check(&job, 1, Outcome::Refused("nobody there".into()), Some(53_000), false);
        check(&job, 1, Outcome::Cancelled("by hand".into()), None, false);
        check(&job, 1, Outcome::Succeeded("done".into()), None, false);
        // The job was stopped, so there is no retry.
        let recalled = Run { recalled: true, ..run(1, RunState::Running, 40_000) };
        assert_eq!(follow(&job, &recalled, failed()).retry_at, None);
    }

    #[test]
    fn the_failure_of_a_run_that_a_person_cancelled_is_a_cancellation() {
        let after = After::new(ms(50_000), Bugs::default(), None);
        let running = run(1, RunState::Running, 40_000);
        let cancel = Run { cancel: true, recalled: true, ..running.clone() };
        let recorded = after.recorded(&cancel, &failed());
        assert_eq!(
            recorded,
            Outcome::Cancelled("cancelled on request; the executor reports: no luck".into())
        );
        let replaced = Run { replaced: true, ..cancel.clone() };
        let text = "replaced by a later run of the job; the executor reports: no luck";
        assert_eq!(after.recorded(&replaced, &failed()), Outcome::Cancelled(text.into()));
        for kept in [Outcome::Succeeded("yes".into()), Outcome::Lost("dead".into())] {
            assert_eq!(after.recorded(&cancel, &kept), kept);
        }
        assert_eq!(after.recorded(&running, &failed()), failed());
    }

    #[test]
    fn children_follow_success_down_to_a_depth() {
        let mut job = each_second(60_000);
        job.spec.children = vec![JobId(8), job.id, JobId(9)];
        let check = |depth, outcome, children: &[JobId], alerted| {
            let run = Run { depth, ..run(1, RunState::Running, 40_000) };
            let follow = follow(&job, &run, outcome);
            assert_eq!((follow.children.as_slice(), follow.trouble.is_some()), (children, alerted));
        };
        check(0, Outcome::Succeeded(String::new()), &[JobId(8), JobId(9)], false);
        check(CHILD_DEPTH_MAX, Outcome::Succeeded(String::new()), &[], true);
        check(0, failed(), &[], false);
    }

    #[test]
    fn only_an_end_that_opens_something_asks_for_a_claim() {
        let check = |change: &dyn Fn(&mut Job, &mut Run), outcome: Outcome, expected| {
            let (mut job, mut run) = (each_second(60_000), run(1, RunState::Running, 40_000));
            change(&mut job, &mut run);
            let after = After::new(ms(50_000), Bugs::default(), None);
            after.follow(&job, &run, &outcome);
            assert_eq!(after.has_opened.into_inner(), expected, "{outcome:?}");
        };
        let succeeded = || Outcome::Succeeded(String::new());
        check(&|_, _| {}, succeeded(), false);
        check(&|_, _| {}, failed(), false);
        check(&|job, _| job.spec.retry.count = 1, failed(), true);
        check(&|job, _| job.spec.retry.count = 1, succeeded(), false);
        check(&|job, _| job.spec.children = vec![JobId(8)], succeeded(), true);
        check(&|job, _| job.spec.overlap = Overlap::Wait, succeeded(), true);
        check(&|_, run| run.state = RunState::Cancelling, succeeded(), true);
    }

    #[test]
    fn children_beyond_the_quota_of_their_app_are_blocked() {
        let child = each_second(60_000);
        let check = |max, opened, expected: bool| {
            let quota = Quota::new(max);
            let after = After::new(ms(50_000), Bugs::default(), Some(&quota));
            let reason = after.blocks(&child, opened);
            assert_eq!(reason.is_some(), expected, "{max:?} {opened}");
            assert!(reason.is_none_or(|reason| reason.contains("--max-open-runs")));
        };
        check(Some(2), 1, false);
        check(Some(2), 2, true);
        check(None, 9_999, false);
    }

    #[test]
    fn a_fixed_delay_counts_from_the_last_end_of_a_scheduled_run() {
        let mut job = job(Schedule::fixed_delay(Duration::from_secs(7)).unwrap(), 0);
        let scheduled = run(1, RunState::Running, 40_000);
        let next = NextFire::At { fire_at: ms(57_000), claim_at: ms(55_500) };
        assert_eq!(follow(&job, &scheduled, failed()).rearm, Some(next));
        let by_hand = Run { origin: Origin::Manual { key: 1 }, ..scheduled.clone() };
        assert_eq!(follow(&job, &by_hand, failed()).rearm, None);
        job.spec.retry = Retry { count: 1, backoff: Backoff::Fixed { delay: Duration::ZERO } };
        assert_eq!(follow(&job, &scheduled, failed()).rearm, None, "the retry is still to come");
        job.spec.retry = Retry::NONE;
        job.spec.valid_until = Some(ms(56_999));
        assert_eq!(
            follow(&job, &scheduled, failed()).rearm,
            Some(NextFire::Never),
            "it is not valid any more"
        );
    }
}
