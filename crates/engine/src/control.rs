//! Control of jobs: start, stop, edit, delete, trigger; exact also for runs that are already claimed.
//!
//! A change takes effect in the database at once and marks the claimed runs that it invalidates; the nodes that
//! hold them take them back. The change is acknowledged when all of these nodes have answered, so afterwards no
//! node sends anything of the old definition (I7).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use cron::Schedule;

use crate::engine::{Engine, RETRY};
use crate::job::{JobId, JobSpec};
use crate::plan::Tick;
use crate::ports::{CancelAnswer, Change, Changed, Changes, Control, NewJob, StoreError, Trigger};
use crate::run::{LOOK_AHEAD, RunId};
use crate::sabotage::Sabotage;

impl Engine {
    /// Adds a job, stopped.
    pub async fn create(&self, spec: &JobSpec) -> Result<JobId, StoreError> {
        self.inner.store.create_job(spec).await
    }

    /// Adds a job with its state and tags, in one transaction.
    pub async fn add(&self, job: &NewJob) -> Result<JobId, StoreError> {
        let mut done = self.change(&[Change::Add(Box::new(job.clone()))], true).await;
        let none = || Err(StoreError::Invalid("nothing was added".into()));
        done.pop().unwrap_or_else(none).map(|added| added.job)
    }

    /// Makes sure that a job with this key exists with this definition, and is started. Any number of processes may
    /// call it at their start. A fixed rate keeps its existing anchor.
    pub async fn ensure(&self, mut spec: JobSpec) -> Result<JobId, StoreError> {
        let Some(key) = spec.key.clone() else {
            return Err(StoreError::Invalid("a declared job needs a key".into()));
        };
        let job = match self.inner.store.job_by_key(&key).await? {
            Some(job) => job,
            None => {
                match self.inner.store.create_job(&spec).await {
                    // Another process was first.
                    Ok(_) | Err(StoreError::Conflict(_)) => {}
                    Err(error) => return Err(error),
                }
                let created = self.inner.store.job_by_key(&key).await?;
                created.ok_or_else(|| {
                    StoreError::Conflict(format!("the job `{key}` was deleted while it was created"))
                })?
            }
        };
        if let (Schedule::FixedRate { anchor: old, .. }, Schedule::FixedRate { anchor, .. }) =
            (&job.spec.schedule, &mut spec.schedule)
        {
            *anchor = *old;
        }
        if job.spec != spec {
            self.edit(job.id, spec, Some(job.revision)).await?;
        }
        if !job.enabled {
            self.start(job.id).await?;
        }
        Ok(job.id)
    }

    /// Starts the schedule of the job; it first fires at its next scheduled time.
    pub async fn start(&self, job: JobId) -> Result<Changed, StoreError> {
        self.control(job, Control::Start).await
    }

    /// Stops the schedule of the job. When this returns, none of its fires is sent any more.
    pub async fn stop(&self, job: JobId) -> Result<Changed, StoreError> {
        self.control(job, Control::Stop).await
    }

    /// Replaces the definition of the job; with `revision`, only if it was not changed since. When this returns,
    /// nothing of the old schedule is sent any more, and nothing of the new one is missed.
    pub async fn edit(
        &self,
        job: JobId,
        spec: JobSpec,
        revision: Option<i64>,
    ) -> Result<Changed, StoreError> {
        self.control(job, Control::Edit { spec: Box::new(spec), revision }).await
    }

    /// Deletes the job. When this returns, none of its runs is sent any more.
    pub async fn delete(&self, job: JobId) -> Result<Changed, StoreError> {
        self.control(job, Control::Delete).await
    }

    /// Runs the job now, whether or not it is started. Idempotent: the same `key` for the same job returns the same
    /// run.
    pub async fn trigger(&self, job: JobId, key: i64, param: Option<String>) -> Result<RunId, StoreError> {
        self.trigger_with(job, &Trigger { key, at: None, param, address: None, by: None }).await
    }

    /// Runs the job now, with all parameters of a trigger.
    pub async fn trigger_with(&self, job: JobId, trigger: &Trigger) -> Result<RunId, StoreError> {
        let mut tries = 0;
        loop {
            match self.inner.store.trigger(job, trigger).await {
                Ok(run) => {
                    self.inner.claim_now.notify_one();
                    return Ok(run);
                }
                Err(error) if error.is_transient() && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
            self.inner.clock.sleep(RETRY).await;
        }
    }

    async fn control(&self, job: JobId, control: Control) -> Result<Changed, StoreError> {
        let mut done = self.change(&[Change::Control(job, control)], true).await;
        done.pop().unwrap_or(Err(StoreError::NoSuchJob(job)))
    }

    /// Applies many changes, in their order and in few transactions; if `atomic`, all or none of them, in one. When
    /// this returns, nothing that the successful changes stopped, replaced or deleted is sent any more. Returns the
    /// result of each change.
    pub async fn change(&self, changes: &[Change], atomic: bool) -> Vec<Result<Changed, StoreError>> {
        let mut results: Vec<Result<Changed, StoreError>> = Vec::with_capacity(changes.len());
        if let Err(error) = self.finish_stops_before(changes).await {
            return changes.iter().map(|_| Err(error.clone())).collect();
        }
        let (mut unfinished, mut asked) = (Vec::new(), BTreeSet::new());
        let since = self.inner.clock.monotonic();
        while results.len() < changes.len() {
            let rest = &changes[results.len()..];
            let size = if atomic { rest.len() } else { self.inner.paces.changes.size().min(rest.len()) };
            let step = with_known_children(&rest[..size], &results);
            let done = self.change_settled(&step, atomic, since).await;
            match done {
                Ok(done) => {
                    if results.is_empty() || !self.sabotaged(Sabotage::ConfirmFirstStep) {
                        unfinished.extend(done.unfinished);
                        asked.extend(done.cancelling.into_iter().map(|(job, _)| job));
                    }
                    let at = done.at;
                    let changed = |result: Result<JobId, StoreError>| result.map(|job| Changed { job, at });
                    results.extend(done.results.into_iter().map(changed));
                }
                // The database is unavailable: the other steps would fail too, each after a timeout.
                Err(error) if error.is_transient() => results.extend(rest.iter().map(|_| Err(error.clone()))),
                Err(error) => results.extend(step.iter().map(|_| Err(error.clone()))),
            }
        }
        self.inner.claim_now.notify_one();
        // Deleted, perhaps just now, by a caller that did not get the response. For this caller, too, it is done only
        // when none of its runs is sent any more.
        let gone = results.iter().filter_map(|result| match result {
            Err(StoreError::NoSuchJob(job)) => Some(*job),
            _ => None,
        });
        unfinished.extend(gone);
        asked.extend(unfinished.iter().copied());
        if let Err(held) = self.confirm(unfinished, asked.into_iter().collect()).await {
            held.mark(&mut results);
        }
        results
    }

    /// Completes earlier stops of jobs that are started: the runs that they still have to withdraw must not be
    /// mistaken for fires of the new start.
    async fn finish_stops_before(&self, changes: &[Change]) -> Result<(), StoreError> {
        let starts = changes.iter().filter_map(|change| match change {
            Change::Control(job, Control::Start | Control::Put { enabled: Some(true), .. }) => Some(*job),
            _ => None,
        });
        let mut left: Vec<JobId> = starts.collect();
        while !left.is_empty() {
            left = self.withdraw(&left).await?;
        }
        Ok(())
    }

    /// Applies changes, and applies those again that wait for earlier changes of their jobs.
    async fn change_settled(
        &self,
        changes: &[Change],
        atomic: bool,
        since: Duration,
    ) -> Result<Changes, StoreError> {
        self.hold_back(changes).await?;
        let mut done = self.change_some(changes, atomic).await?;
        loop {
            let is_unsettled =
                |result: &Result<JobId, StoreError>| matches!(result, Err(StoreError::Unsettled(_)));
            let left: Vec<usize> = (0..changes.len()).filter(|at| is_unsettled(&done.results[*at])).collect();
            if left.is_empty() || !self.await_earlier_change(since).await? {
                return Ok(done);
            }
            if atomic {
                // Nothing was written.
                done = self.change_some(changes, atomic).await?;
                continue;
            }
            let known: Vec<_> = done
                .results
                .iter()
                .map(|result| result.clone().map(|job| Changed { job, at: done.at }))
                .collect();
            let again: Vec<Change> = left.iter().map(|at| changes[*at].clone()).collect();
            let more = self.change_some(&with_known_children(&again, &known), atomic).await?;
            for (at, result) in left.into_iter().zip(more.results) {
                done.results[at] = result;
            }
            done.cancelling.extend(more.cancelling);
            done.unfinished.extend(more.unfinished);
        }
    }

    /// Waits a little for earlier changes, which wait for nodes to release runs. Returns whether to try again.
    pub(crate) async fn await_earlier_change(&self, since: Duration) -> Result<bool, StoreError> {
        if self.inner.clock.monotonic() - since > CONFIRM_MAX {
            return Ok(false);
        }
        self.take_back_asked().await?;
        self.inner.clock.sleep(CONFIRM_LOOK).await;
        Ok(true)
    }

    /// Waits until few fires of each edited job are claimed ahead of their time, because an edit cancels them in one
    /// transaction. A job that fires every 10 ms has 150; only faster ones and large broadcasts have to wait.
    async fn hold_back(&self, changes: &[Change]) -> Result<(), StoreError> {
        let edited = changes.iter().filter_map(|change| match change {
            // A stop takes small steps itself.
            Change::Control(
                job,
                Control::Edit { .. } | Control::Put { enabled: None | Some(true), .. } | Control::Replan,
            ) => Some(*job),
            _ => None,
        });
        let mut held: Vec<JobId> = edited.collect();
        let started = self.inner.clock.monotonic();
        loop {
            if !held.is_empty() {
                let _turn = self.inner.step.lock().await;
                held = self.inner.store.hold_back(&held, self.inner.paces.steps.size()).await?;
            }
            if held.is_empty() || self.inner.clock.monotonic() - started > LOOK_AHEAD {
                return Ok(());
            }
            self.inner.clock.sleep(HOLD_LOOK).await;
        }
    }

    async fn change_some(&self, changes: &[Change], atomic: bool) -> Result<Changes, StoreError> {
        let _turn = self.inner.step.lock().await;
        let pace = &self.inner.paces.changes;
        let started = self.inner.clock.monotonic();
        let tick = Tick::new(self.now(), &*self.inner.router, self.inner.options.bugs);
        let step = self.inner.paces.steps.size();
        let runs = step.max(changes.len().saturating_mul(step.min(RUNS_PER_JOB)));
        let done = self.inner.store.change_jobs(changes, atomic, runs, &tick).await?;
        if changes.len() > 1 {
            pace.took(changes.len(), self.inner.clock.monotonic() - started);
        }
        Ok(done)
    }

    /// Waits until nothing can be sent any more that a change has invalidated: withdraws the runs of `unfinished`
    /// jobs step by step, and waits for the nodes that are `asked` to release runs.
    pub(crate) async fn confirm(
        &self,
        mut unfinished: Vec<JobId>,
        mut asked: Vec<JobId>,
    ) -> Result<(), Unconfirmed> {
        if self.sabotaged(Sabotage::StopWithoutConfirm) {
            return Ok(());
        }
        let mut moved_at = self.inner.clock.monotonic();
        while !unfinished.is_empty() || !asked.is_empty() {
            let unconfirmed = |jobs: &[JobId], error: StoreError| Unconfirmed { jobs: jobs.to_vec(), error };
            if !unfinished.is_empty() {
                unfinished = self.withdraw(&unfinished).await.map_err(|error| unconfirmed(&asked, error))?;
                moved_at = self.inner.clock.monotonic();
            }
            self.take_back_asked().await.map_err(|error| unconfirmed(&asked, error))?;
            let left = self.inner.store.cancelling(&asked).await;
            let left = left.map_err(|error| unconfirmed(&asked, error))?;
            let runs: u64 = left.iter().map(|(_, runs)| runs).sum();
            let waiting: BTreeSet<JobId> =
                left.into_iter().map(|(job, _)| job).chain(unfinished.iter().copied()).collect();
            if waiting.len() < asked.len() {
                moved_at = self.inner.clock.monotonic();
            }
            asked = waiting.into_iter().collect();
            if !asked.is_empty() && self.inner.clock.monotonic() - moved_at > CONFIRM_MAX {
                let error = StoreError::Conflict(format!(
                    "the change is stored, but {runs} runs are held by nodes that have not responded; they may still be sent"
                ));
                return Err(unconfirmed(&asked, error));
            }
            if unfinished.is_empty() && !asked.is_empty() {
                self.inner.clock.sleep(CONFIRM_LOOK).await;
            }
        }
        Ok(())
    }

    /// Runs one step of the stops and deletions of these jobs; returns those with runs left.
    async fn withdraw(&self, jobs: &[JobId]) -> Result<Vec<JobId>, StoreError> {
        let _turn = self.inner.step.lock().await;
        let pace = &self.inner.paces.steps;
        let (size, started) = (pace.size(), self.inner.clock.monotonic());
        let left = self.inner.store.withdraw(jobs, size).await?;
        if !left.is_empty() {
            pace.took(size, self.inner.clock.monotonic() - started);
        }
        Ok(left)
    }

    /// Whether there may be unfinished stops and deletions of nodes that died.
    pub(crate) fn has_withdrawals(&self) -> bool {
        let before = self.now() - WITHDRAWAL_OVERDUE;
        self.has_work(|agenda| agenda.withdrawal_at.is_some_and(|at| at < before))
    }

    /// Completes unfinished stops and deletions: of nodes that died, and of changes made directly in the database.
    pub(crate) async fn finish_withdrawals(&self) -> Result<(), StoreError> {
        loop {
            let before = self.now() - WITHDRAWAL_OVERDUE;
            let unfinished = self.inner.store.withdrawals(before, WITHDRAWALS_MAX).await?;
            let is_last = unfinished.len() < WITHDRAWALS_MAX;
            let mut left = unfinished;
            while !left.is_empty() {
                left = self.withdraw(&left).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Polls for runs of this node that any node wants cancelled.
    pub(crate) async fn cancel_loop(&self) {
        loop {
            // A node that holds no runs has none to take back, except those of a commit with a lost response.
            if self.outbox().len() > 0 {
                self.inner.clock.sleep(CANCEL_LOOK).await;
            } else {
                tokio::select! {
                    biased;
                    () = self.inner.holds_now.notified() => continue,
                    () = self.inner.clock.sleep(IDLE_LOOK) => {}
                }
                if !self.has_work(|agenda| agenda.has_cancelling) {
                    continue;
                }
            }
            if let Err(error) = self.take_back_asked().await {
                self.complain(&error, "failed to list cancelled runs", CANCEL_LOOK);
            }
        }
    }

    async fn take_back_asked(&self) -> Result<(), StoreError> {
        let Some(node) = self.life().as_ref().map(|life| life.node.clone()) else { return Ok(()) };
        let mut after = None;
        loop {
            let asked = self.inner.store.asked_to_cancel(&node, after, ASKED_MAX).await?;
            let is_last = asked.len() < ASKED_MAX;
            after = asked.last().map(|run| run.id);
            let answers: Vec<CancelAnswer> = {
                let mut outbox = self.outbox();
                let in_time = asked.into_iter().filter(|run| outbox.take_back(run));
                in_time.map(|run| CancelAnswer { run: run.id, version: run.version, sent: None }).collect()
            };
            self.answer_cancel(&answers).await;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Confirms to the store, with retries, that these runs were taken back here and will never be sent.
    pub(crate) async fn answer_cancel(&self, mut answers: &[CancelAnswer]) {
        while !answers.is_empty() {
            let pace = &self.inner.paces.steps;
            let (now, later) = answers.split_at(pace.size().min(answers.len()));
            let started = self.inner.clock.monotonic();
            self.answer_some(now).await;
            pace.took(now.len(), self.inner.clock.monotonic() - started);
            answers = later;
        }
    }

    async fn answer_some(&self, answers: &[CancelAnswer]) {
        loop {
            let answered = {
                let tick = Tick::new(self.now(), &*self.inner.router, self.inner.options.bugs);
                self.inner.store.answer_cancel(answers, &tick).await
            };
            match answered {
                Ok(()) => {
                    // Fires of their jobs waited for this.
                    self.inner.claim_now.notify_one();
                    return;
                }
                Err(error) => self.complain(&error, "failed to confirm cancelled runs", RETRY),
            }
            self.inner.clock.sleep(RETRY).await;
        }
    }
}

/// The changes with the ids of jobs that earlier steps have added, in place of their stand-ins. A stand-in of the
/// same step counts from its beginning.
fn with_known_children<'a>(step: &'a [Change], before: &[Result<Changed, StoreError>]) -> Cow<'a, [Change]> {
    let children = |change: &Change| match change {
        Change::Add(new) => new.spec.children.iter().any(|child| child.stands_for().is_some()),
        Change::Control(_, Control::Edit { spec, .. } | Control::Put { spec, .. }) => {
            spec.children.iter().any(|child| child.stands_for().is_some())
        }
        Change::Control(..) => false,
    };
    if before.is_empty() || !step.iter().any(children) {
        return Cow::Borrowed(step);
    }
    let known = |child: JobId| match child.stands_for() {
        // A rejected job stays a stand-in, of a change that does not exist, which is rejected too.
        Some(change) => match before.get(change) {
            Some(Ok(added)) => added.job,
            Some(Err(_)) => JobId::added_by(usize::MAX >> 1),
            None => JobId::added_by(change - before.len()),
        },
        None => child,
    };
    let mut step = step.to_vec();
    for change in &mut step {
        let children = match change {
            Change::Add(new) => &mut new.spec.children,
            Change::Control(_, Control::Edit { spec, .. } | Control::Put { spec, .. }) => &mut spec.children,
            Change::Control(..) => continue,
        };
        children.iter_mut().for_each(|child| *child = known(*child));
    }
    Cow::Owned(step)
}

/// Jobs whose change is stored, but with runs that may still be sent.
pub(crate) struct Unconfirmed {
    jobs: Vec<JobId>,
    pub(crate) error: StoreError,
}

impl Unconfirmed {
    fn mark(self, results: &mut [Result<Changed, StoreError>]) {
        let held: BTreeSet<JobId> = self.jobs.into_iter().collect();
        for result in results {
            let job = match result {
                Ok(changed) => changed.job,
                Err(StoreError::NoSuchJob(job)) => *job,
                Err(_) => continue,
            };
            if held.contains(&job) {
                *result = Err(self.error.clone());
            }
        }
    }
}

/// Runs that one step withdraws for each of its jobs. Jobs that fire every second have one or two claimed ahead.
const RUNS_PER_JOB: usize = 2;

/// Number of times a trigger is repeated if its commit is in doubt; its key makes it idempotent.
const TRIES: u32 = 5;

/// Polling interval for cancelled runs while a node holds any.
const CANCEL_LOOK: Duration = Duration::from_millis(100);

/// Polling interval while it holds none.
const IDLE_LOOK: Duration = Duration::from_secs(1);

/// Maximum number of runs to release that are read at a time.
const ASKED_MAX: usize = 500;

/// A stop or deletion that is unfinished after this time has lost its node; another node completes it.
const WITHDRAWAL_OVERDUE: Duration = Duration::from_secs(20);

/// Maximum number of them listed at a time.
const WITHDRAWALS_MAX: usize = 16;

/// Polling interval of an edit that waits for fires that are claimed ahead.
const HOLD_LOOK: Duration = Duration::from_millis(50);

/// Polling interval of a change that waits for the nodes' answers.
const CONFIRM_LOOK: Duration = Duration::from_millis(25);

/// Maximum time it waits for them after its last step: a dead node's runs are taken over within its lease.
const CONFIRM_MAX: Duration = Duration::from_secs(15);
