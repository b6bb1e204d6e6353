//! Control of jobs: start, stop, edit, delete, trigger; exact also for runs that are already claimed.
//!
//! A change takes effect in the database at once and marks the claimed runs that it invalidates; the nodes that
//! hold them take them back. The change is acknowledged when all of these nodes have answered, so afterwards no
//! node sends anything of the old definition (I7).

use std::time::Duration;

use cron::Schedule;

use crate::engine::{Engine, RETRY};
use crate::job::{JobId, JobSpec};
use crate::plan::Tick;
use crate::ports::{CancelAnswer, Control, Controlled, NewJob, StoreError, Trigger};
use crate::run::{LOOK_AHEAD, RunId};
use crate::sabotage::Sabotage;

impl Engine {
    /// Adds a job, stopped.
    pub async fn create(&self, spec: &JobSpec) -> Result<JobId, StoreError> {
        self.inner.store.create_job(spec).await
    }

    /// Adds a job with its state and tags, in one transaction.
    pub async fn add(&self, job: &NewJob) -> Result<JobId, StoreError> {
        let tick = Tick::new(self.now(), &*self.inner.router, self.inner.options.bugs);
        let id = self.inner.store.add_job(job, &tick).await?;
        self.inner.claim_now.notify_one();
        Ok(id)
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
    pub async fn start(&self, job: JobId) -> Result<Controlled, StoreError> {
        self.control(job, Control::Start).await
    }

    /// Stops the schedule of the job. When this returns, none of its fires is sent any more.
    pub async fn stop(&self, job: JobId) -> Result<Controlled, StoreError> {
        self.control(job, Control::Stop).await
    }

    /// Replaces the definition of the job; with `revision`, only if it was not changed since. When this returns,
    /// nothing of the old schedule is sent any more, and nothing of the new one is missed.
    pub async fn edit(
        &self,
        job: JobId,
        spec: JobSpec,
        revision: Option<i64>,
    ) -> Result<Controlled, StoreError> {
        self.control(job, Control::Edit { spec: Box::new(spec), revision }).await
    }

    /// Replaces the definition of the job with its state and tags, in one transaction: `enabled` starts or stops
    /// it, `tags` replace the existing ones.
    pub async fn put(
        &self,
        job: JobId,
        spec: JobSpec,
        revision: Option<i64>,
        enabled: Option<bool>,
        tags: Vec<String>,
    ) -> Result<Controlled, StoreError> {
        self.control(job, Control::Put { spec: Box::new(spec), revision, enabled, tags }).await
    }

    /// Deletes the job. When this returns, none of its runs is sent any more.
    pub async fn delete(&self, job: JobId) -> Result<Controlled, StoreError> {
        self.control(job, Control::Delete).await
    }

    /// Runs the job now, whether or not it is started. Idempotent: the same `key` for the same job returns the same
    /// run.
    pub async fn trigger(&self, job: JobId, key: i64, param: Option<String>) -> Result<RunId, StoreError> {
        self.trigger_with(job, &Trigger { key, at: None, param, address: None }).await
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

    async fn control(&self, job: JobId, control: Control) -> Result<Controlled, StoreError> {
        // Runs that an unfinished stop still has to withdraw must not be mistaken for fires of the new start.
        while matches!(control, Control::Start | Control::Put { enabled: Some(true), .. })
            && self.withdraw(job).await?
        {}
        // A stop takes small steps itself.
        if matches!(control, Control::Edit { .. } | Control::Put { enabled: None | Some(true), .. }) {
            self.hold_back(job).await?;
        }
        let since = self.inner.clock.monotonic();
        let controlled = loop {
            let turn = self.inner.step.lock().await;
            let tick = Tick::new(self.now(), &*self.inner.router, self.inner.options.bugs);
            let size = self.inner.paces.steps.size();
            match self.inner.store.control(job, &control, size, &tick).await {
                Err(StoreError::Unsettled(_)) => drop(turn),
                controlled => break controlled,
            }
            self.await_earlier_change(job, since).await?;
        };
        let controlled = match controlled {
            // Deleted, perhaps just now, by a caller that did not get the response. For this caller, too, it is
            // done only when none of its runs is sent any more.
            Err(StoreError::NoSuchJob(_)) => {
                self.confirm(job, true, self.inner.store.cancelling(job).await?).await?;
                return Err(StoreError::NoSuchJob(job));
            }
            controlled => controlled?,
        };
        self.inner.claim_now.notify_one();
        self.confirm(job, controlled.more, controlled.cancelling).await?;
        Ok(controlled)
    }

    /// Waits a little for an earlier change of a job, which waits for nodes to release its runs.
    pub(crate) async fn await_earlier_change(&self, job: JobId, since: Duration) -> Result<(), StoreError> {
        if self.inner.clock.monotonic() - since > CONFIRM_MAX {
            return Err(StoreError::Unsettled(job));
        }
        self.take_back_asked().await?;
        self.inner.clock.sleep(CONFIRM_LOOK).await;
        Ok(())
    }

    /// Waits until none of the job's runs can be sent any more: withdraws them step by step while there are `more`,
    /// and waits for nodes that are asked to release theirs.
    pub(crate) async fn confirm(&self, job: JobId, mut more: bool, mut left: u64) -> Result<(), StoreError> {
        if self.sabotaged(Sabotage::StopWithoutConfirm) {
            return Ok(());
        }
        let mut moved_at = self.inner.clock.monotonic();
        while more || left > 0 {
            if more {
                more = self.withdraw(job).await?;
                moved_at = self.inner.clock.monotonic();
            }
            if self.inner.clock.monotonic() - moved_at > CONFIRM_MAX {
                return Err(StoreError::Conflict(format!(
                    "job {job} is changed, but {left} of its runs are held by nodes that have not responded; they may still be sent"
                )));
            }
            self.take_back_asked().await?;
            left = self.inner.store.cancelling(job).await?;
            if !more && left > 0 {
                self.inner.clock.sleep(CONFIRM_LOOK).await;
            }
        }
        Ok(())
    }

    /// Waits until few fires of the job are claimed ahead of their time, because an edit cancels them in one
    /// transaction. A job that fires every 10 ms has 150; only faster ones and large broadcasts have to wait.
    async fn hold_back(&self, job: JobId) -> Result<(), StoreError> {
        let started = self.inner.clock.monotonic();
        loop {
            let is_held = {
                let _turn = self.inner.step.lock().await;
                self.inner.store.hold_back(job, self.inner.paces.steps.size()).await?
            };
            if !is_held || self.inner.clock.monotonic() - started > LOOK_AHEAD {
                return Ok(());
            }
            self.inner.clock.sleep(HOLD_LOOK).await;
        }
    }

    /// Runs one step of a stop or deletion; returns whether there is another.
    async fn withdraw(&self, job: JobId) -> Result<bool, StoreError> {
        let _turn = self.inner.step.lock().await;
        let pace = &self.inner.paces.steps;
        let (size, started) = (pace.size(), self.inner.clock.monotonic());
        let more = self.inner.store.withdraw(job, size).await?;
        if more {
            pace.took(size, self.inner.clock.monotonic() - started);
        }
        Ok(more)
    }

    /// Completes unfinished stops and deletions: of nodes that died, and of changes made directly in the database.
    pub(crate) async fn finish_withdrawals(&self) -> Result<(), StoreError> {
        loop {
            let before = self.now() - WITHDRAWAL_OVERDUE;
            let unfinished = self.inner.store.withdrawals(before, WITHDRAWALS_MAX).await?;
            for job in &unfinished {
                while self.withdraw(*job).await? {}
            }
            if unfinished.len() < WITHDRAWALS_MAX {
                return Ok(());
            }
        }
    }

    /// Polls for runs of this node that any node wants cancelled.
    pub(crate) async fn cancel_loop(&self) {
        let mut idle = 0;
        loop {
            self.inner.clock.sleep(CANCEL_LOOK).await;
            idle += 1;
            // A node that holds no runs has none to take back, except those of a commit with a lost response.
            if self.outbox().len() == 0 && idle < IDLE_LOOKS {
                continue;
            }
            idle = 0;
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
                Ok(()) => return,
                Err(error) => self.complain(&error, "failed to confirm cancelled runs", RETRY),
            }
            self.inner.clock.sleep(RETRY).await;
        }
    }
}

/// Number of times a trigger is repeated if its commit is in doubt; its key makes it idempotent.
const TRIES: u32 = 5;

/// Polling interval of an edit that waits until few fires are claimed ahead.
const HOLD_LOOK: Duration = Duration::from_millis(50);

/// Polling interval for cancelled runs while a node holds any.
const CANCEL_LOOK: Duration = Duration::from_millis(100);

/// Number of polls skipped while it holds none.
const IDLE_LOOKS: u32 = 10;

/// Maximum number of runs to release that are read at a time.
const ASKED_MAX: usize = 500;

/// A stop or deletion that is unfinished after this time has lost its node; another node completes it.
const WITHDRAWAL_OVERDUE: Duration = Duration::from_secs(20);

/// Maximum number of them listed at a time.
const WITHDRAWALS_MAX: usize = 16;

/// Polling interval of a change that waits for the nodes' answers.
const CONFIRM_LOOK: Duration = Duration::from_millis(25);

/// Maximum time it waits for them after its last step: a dead node's runs are taken over within its lease.
const CONFIRM_MAX: Duration = Duration::from_secs(15);
