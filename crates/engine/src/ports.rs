//! Interfaces that the engine requires: the database ([`Store`]), the executors ([`Dispatch`]) and notifications
//! ([`Alarms`]). The clock is [`timer::Clock`].
//!
//! A store decides nothing: it gets pure functions ([`Planner`], [`Ender`]) and calls them inside its transaction,
//! between reading and writing rows. Every method is one transaction, so a caller can only crash before or after
//! it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cron::Timestamp;

use crate::backfill::{Backfill, BackfillChange, BackfillId, Filled, NewBackfill};
use crate::declare::Declaration;
use crate::job::{AppId, Job, JobId, JobSpec};
use crate::policy::Target;
use crate::run::{Disposition, LOOK_AHEAD, Node, Order, Origin, Outcome, Run, RunId, RunState, Unsent};
use crate::trouble::Trouble;

/// Database of the scheduling centre.
///
/// `now` is always the engine's estimate of the database's clock; where exactness matters (leases, control) the
/// store asks the database itself.
#[async_trait]
pub trait Store: Send + Sync {
    /// Whether only one transaction at a time can write (the default). Otherwise the engine claims jobs and writes
    /// results in two transactions at a time when there are many.
    fn has_one_writer(&self) -> bool {
        true
    }

    // ── Nodes ─────────────────────────────────────────────────────────────────────────────────────────────

    /// Starts a new incarnation of the node. Its epoch is above all earlier ones of that name, which are fenced.
    async fn join(&self, name: &str, lease: Duration) -> Result<Joined, StoreError>;

    /// Extends the lease to `lease` from now by the database's clock, and stores the number of the heartbeat, which must
    /// be above all earlier ones of this incarnation. [`StoreError::Fenced`] if this incarnation has been fenced.
    async fn heartbeat(&self, node: &Node, lease: Duration, beat: Heartbeat) -> Result<Pulse, StoreError>;

    /// Number of connections that were opened to the database so far: a new one may lead to a server that lacks the
    /// latest commits. Constant (the default) where there is one file.
    fn connections(&self) -> u64 {
        0
    }

    /// Which of these runs the database has.
    async fn kept(&self, runs: &[RunId]) -> Result<Kept, StoreError>;

    /// Makes the ids of all new runs larger than this one, and than all that the database has, by a wide margin: other
    /// nodes may know of higher ones.
    async fn skip_run_ids(&self, past: RunId) -> Result<(), StoreError>;

    /// Stores alerts about the database itself. None of them is added to an earlier one.
    async fn raise(&self, now: Timestamp, incidents: &[Incident]) -> Result<(), StoreError>;

    /// Reads the time, the nodes, and when each kind of work is due next, in one statement that takes no locks. With
    /// `running`, running runs of fenced owners count as [`abandoned`](Store::abandoned) too.
    async fn agenda(&self, running: bool) -> Result<Agenda, StoreError>;

    /// Fences an incarnation if its lease has expired by the database's clock. True if it is fenced, by this or
    /// another call.
    async fn fence(&self, node: &Node) -> Result<bool, StoreError>;

    /// Ends an incarnation in good order: its claimed runs become waiting, its cancelling ones are cancelled, its
    /// node row is deleted.
    async fn leave(&self, node: &Node) -> Result<(), StoreError>;

    /// Confirms this process's lifeline and lists the broken ones of others. `None` (the default) if the database
    /// does not support lifelines; then only leases show which nodes are dead.
    async fn lifelines(&self) -> Result<Option<Lifelines>, StoreError> {
        Ok(None)
    }

    /// Stores that this incarnation sends nothing without that lifeline (from [`LIFELINE_GRACE`] after its last
    /// confirmation), or, with `None`, that only its lease binds it. [`StoreError::Fenced`] if the incarnation is
    /// fenced.
    async fn depend_on(&self, _node: &Node, _lifeline: Option<LifelineId>) -> Result<(), StoreError> {
        Ok(())
    }

    /// Fences the incarnations that depend on one of these broken lifelines and ends their leases now. Returns all
    /// that are fenced, by this or another call.
    async fn fence_broken(&self, _broken: &[LifelineId]) -> Result<Vec<Node>, StoreError> {
        Ok(Vec::new())
    }

    // ── Firing ────────────────────────────────────────────────────────────────────────────────────────────

    /// Claims jobs that have reached their claim time: calls `planner` for each and writes its plan, the advance of
    /// the job *and* its rows, or neither. The advance is a compare-and-set on the job's old next time. A job with
    /// a run in `Cancelling` is left for later. Earliest first, at most `max` jobs.
    async fn claim_due(
        &self,
        node: &Node,
        now: Timestamp,
        slots: Slots,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Claim, StoreError>;

    /// Claims waiting runs that are due within [`Planner::look_ahead`] of `now`, as `planner` decides for each. Earliest
    /// first, at most `max`.
    async fn claim_waiting(
        &self,
        node: &Node,
        now: Timestamp,
        slots: Slots,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Claim, StoreError>;

    /// Runs claimed by this incarnation that have not moved on; shows the effect of a claim with an unknown commit.
    /// Ordered by id after `after`, at most `max`; also returns the cursor of the next page, if there may be one.
    async fn owned(
        &self,
        node: &Node,
        after: Option<RunId>,
        max: usize,
    ) -> Result<(Vec<Order>, Option<RunId>), StoreError>;

    /// Open runs by id; finished and unknown ones are omitted.
    async fn open_runs(&self, ids: &[RunId]) -> Result<Vec<Run>, StoreError>;

    /// Changes open runs, each only if its version is unchanged and its state one of [`To::from_states`]. A change
    /// that comes too late, because the run's result was written first, still stores the address of the run.
    /// Results in the order of `moves`.
    async fn move_runs(&self, moves: &[Move]) -> Result<Vec<Moved>, StoreError>;

    /// Closes runs and creates the follow-ups that `ender` decides, in the same transaction. The first ending of a
    /// run wins, also one that a Java admin has stored; only `Lost` is replaced, once, by an executor's report. The
    /// result of a run that a Java admin started is stored too. Results in the order of `endings`.
    async fn complete(
        &self,
        now: Timestamp,
        endings: &[Ending],
        ender: &dyn Ender,
    ) -> Result<Vec<Verdict>, StoreError>;

    // ── Workflows ─────────────────────────────────────────────────────────────────────────────────────────

    /// Opens the workflow run of a claimed run: stores its steps, and its beginning as an event. The run is running then,
    /// without an executor. Only if its version is unchanged. [`StoreError::Invalid`] if it can never be opened, for
    /// example because an input is missing.
    async fn open_workflow(&self, now: Timestamp, run: &Run, job: &Job) -> Result<Moved, StoreError>;

    /// Stores events of a workflow run, for [`advance_workflows`](Store::advance_workflows). False if there is no such
    /// run, or it has ended.
    async fn tell_workflow(&self, run: RunId, event: WorkflowEvent) -> Result<bool, StoreError>;

    /// Applies the stored events of at most `max` workflow runs, each run's in their order: ends of steps, and orders by
    /// users. Steps that open get runs, which this incarnation claims as `planner` assigns them.
    async fn advance_workflows(
        &self,
        node: &Node,
        now: Timestamp,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Advance, StoreError>;

    // ── Backfills ─────────────────────────────────────────────────────────────────────────────────────────

    /// Stores a backfill of the job, with its scheduled times. Idempotent: the same key for the same job returns the same
    /// backfill.
    async fn start_backfill(&self, job: JobId, new: &NewBackfill) -> Result<BackfillId, StoreError>;

    /// Changes a backfill. [`StoreError::Conflict`] if its state does not allow it.
    async fn change_backfill(&self, id: BackfillId, change: BackfillChange) -> Result<Backfill, StoreError>;

    /// Applies the events of at most `max` backfills that are due at `now`: ends of their runs, and changes by users. Opens
    /// the runs that follow, waiting to be claimed; never more at once than the backfill allows.
    async fn advance_backfills(&self, now: Timestamp, max: usize) -> Result<Filled, StoreError>;

    /// Open runs of a backfill.
    async fn backfill_runs(&self, id: BackfillId) -> Result<Vec<RunId>, StoreError>;

    // ── Looking after ─────────────────────────────────────────────────────────────────────────────────────

    /// Claimed and cancelling runs of fenced owners; with `running` also running ones, for executors that die with
    /// their node. Lowest id first, at most `max`.
    async fn abandoned(&self, running: bool, max: usize) -> Result<Vec<Abandoned>, StoreError>;

    /// Running and unknown runs with a check time up to `by`. Earliest first, at most `max`.
    async fn overdue(&self, by: Timestamp, max: usize) -> Result<Vec<Watched>, StoreError>;

    /// Results that others in the database (a Java admin) stored for open runs, lowest id first, at most `max`. Each
    /// is still to be [`complete`](Store::complete)d, which uses the stored result.
    async fn stored_results(&self, max: usize) -> Result<Vec<(RunId, Outcome)>, StoreError>;

    /// Number of jobs that others added to the database, and that [`adopt`](Store::adopt) has not seen yet.
    async fn jobs_to_adopt(&self) -> Result<u64, StoreError>;

    /// Whether others may have written to the database since the last call. Always true where the database cannot
    /// tell.
    async fn others_wrote(&self) -> Result<bool, StoreError>;

    /// Whether there is something to do in the range for [`forget_deleted`](Store::forget_deleted) or
    /// [`adopt`](Store::adopt), in one statement.
    async fn has_changed_jobs(&self, range: JobRange) -> Result<bool, StoreError>;

    /// Range of the next `count` jobs after one.
    async fn jobs_after(&self, after: JobId, count: usize) -> Result<JobRange, StoreError>;

    /// Deletes our rows of jobs that others deleted in the database, at most `max`; returns their number. Open runs
    /// of these jobs end like those of deleted jobs. The range is to be [`adopt`](Store::adopt)ed first: while it has
    /// jobs without a row of ours, deletions may be found later.
    async fn forget_deleted(&self, range: JobRange, max: usize) -> Result<usize, StoreError>;

    /// Applies changes made to jobs by others in the database (a Java admin, a person) to our own tables, for at
    /// most `max` jobs of the range; `planner` decides when each job is claimed next.
    async fn adopt(&self, range: JobRange, max: usize, planner: &dyn Planner) -> Result<Adopted, StoreError>;

    /// Takes undelivered alerts for the duration of `lease`. Oldest first, at most `max`.
    async fn take_alerts(
        &self,
        now: Timestamp,
        lease: Duration,
        max: usize,
    ) -> Result<Vec<Alert>, StoreError>;

    /// Deletes delivered alerts.
    async fn forget_alerts(&self, ids: &[i64]) -> Result<(), StoreError>;

    /// Returns an alert that could not be delivered, to be taken again from `until` on.
    async fn delay_alert(&self, id: i64, until: Timestamp) -> Result<(), StoreError>;

    /// Deletes at most `max` rows beyond the retention, by key. Returns their number.
    async fn prune(&self, retention: &Retention, max: usize) -> Result<usize, StoreError>;

    // ── Control ───────────────────────────────────────────────────────────────────────────────────────────

    /// Returns the app of that name; creates it if it does not exist.
    async fn ensure_app(&self, name: &str) -> Result<AppId, StoreError>;

    /// Adds a job, stopped. An existing key is a [`StoreError::Conflict`].
    async fn create_job(&self, spec: &JobSpec) -> Result<JobId, StoreError>;

    /// Applies changes to many jobs in one transaction, effective at the database's current time. A change that is
    /// rejected changes nothing and does not affect the others; if `atomic`, it leaves all jobs unchanged.
    ///
    /// Claimed and waiting runs that a change invalidates are cancelled: unclaimed ones at once, claimed ones by
    /// asking their node (`Cancelling`, with the version that the node knows). Runs that an executor has, or may
    /// have, are marked [`recalled`](Run::recalled) by a stop or delete. All stops and deletes of the batch together
    /// process at most `max` runs; the others are left to [`withdraw`](Store::withdraw). A change may be acknowledged
    /// when none is left and [`cancelling`](Store::cancelling) does not return its job.
    async fn change_jobs(
        &self,
        changes: &[Change],
        atomic: bool,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Changes, StoreError>;

    /// [`change_jobs`](Store::change_jobs) for one new job.
    async fn add_job(&self, job: &NewJob, planner: &dyn Planner) -> Result<JobId, StoreError> {
        let added = self.change_jobs(&[Change::Add(Box::new(job.clone()))], true, 0, planner).await?;
        added.only()
    }

    /// [`change_jobs`](Store::change_jobs) for one existing job.
    async fn control(
        &self,
        job: JobId,
        control: &Control,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Controlled, StoreError> {
        let changes = [Change::Control(job, control.clone())];
        let done = self.change_jobs(&changes, true, max, planner).await?;
        let cancelling = done.cancelling.iter().map(|(_, runs)| runs).sum();
        let (at, more) = (done.at, !done.unfinished.is_empty());
        done.only()?;
        Ok(Controlled { at, cancelling, more })
    }

    /// Those of the jobs with more than `max` fires claimed ahead of their time; no more of these are claimed before
    /// they are due. An edit waits for this, so that it has few runs to cancel.
    async fn hold_back(&self, jobs: &[JobId], max: usize) -> Result<Vec<JobId>, StoreError>;

    /// Continues stops and deletes of these jobs with at most `max` of their runs in all. Returns the jobs with runs
    /// left; never one with nothing to withdraw.
    async fn withdraw(&self, jobs: &[JobId], max: usize) -> Result<Vec<JobId>, StoreError>;

    /// Jobs with a stop or delete that began before `before` and is unfinished, because its node died or because
    /// the change was made by others in the database. Oldest first, at most `max`.
    async fn withdrawals(&self, before: Timestamp, max: usize) -> Result<Vec<JobId>, StoreError>;

    /// Number of open runs of each app that has any. Empty if all apps together have at most `above`, which is
    /// cheap to check.
    async fn open_by_app(&self, above: u64) -> Result<Vec<(AppId, u64)>, StoreError>;

    /// Applies a program's declaration to a job: the one it declared before, else the one with this key, else the
    /// only one of the app that calls this handler; else a new one with this key, started. [`Declaration::merged`]
    /// decides the new definition, which is applied as an edit at the database's current time. Nothing is written
    /// if nothing changes. A job that belongs to another app by now, or several matching jobs, are a
    /// [`StoreError::Conflict`].
    async fn declare(
        &self,
        declaration: &Declaration,
        key: &str,
        planner: &dyn Planner,
    ) -> Result<Declared, StoreError>;

    /// Those of the jobs that have runs waiting for their node to confirm the cancellation, with their number.
    async fn cancelling(&self, jobs: &[JobId]) -> Result<Vec<(JobId, u64)>, StoreError>;

    /// Runs of this incarnation that control wants cancelled, ordered by id after `after`, at most `max`.
    async fn asked_to_cancel(
        &self,
        node: &Node,
        after: Option<RunId>,
        max: usize,
    ) -> Result<Vec<Run>, StoreError>;

    /// Answers [`asked_to_cancel`](Store::asked_to_cancel): in time (the run is cancelled and recorded as such), or
    /// too late (it continues, and the job's next fire is moved past it, so that its scheduled time does not fire
    /// twice).
    async fn answer_cancel(&self, answers: &[CancelAnswer], planner: &dyn Planner) -> Result<(), StoreError>;

    /// Marks a run that an executor has, or may have, for [`cancel`](Run::cancel)lation. False if the run is no
    /// longer running or unknown. Idempotent.
    async fn request_cancel(&self, run: RunId) -> Result<bool, StoreError>;

    /// Creates a waiting run for a manual trigger. Idempotent: the same key for the same job returns the same run.
    async fn trigger(&self, job: JobId, trigger: &Trigger) -> Result<RunId, StoreError>;

    // ── Reading ───────────────────────────────────────────────────────────────────────────────────────────

    /// Job by id.
    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError>;

    /// Job by key.
    async fn job_by_key(&self, key: &str) -> Result<Option<Job>, StoreError>;

    /// Jobs ordered by id, after `after`.
    async fn jobs(&self, after: Option<JobId>, max: usize) -> Result<Vec<Job>, StoreError>;

    /// Open and finished runs of a job, ordered by id, after `after`.
    async fn runs(&self, job: JobId, after: Option<RunId>, max: usize) -> Result<Vec<RunRecord>, StoreError>;

    /// History of the job's scheduled times that were not sent, oldest first, after the entry `after`.
    async fn history(
        &self,
        job: JobId,
        after: Option<i64>,
        max: usize,
    ) -> Result<Vec<HistoryEntry>, StoreError>;
}

/// Result of [`Store::join`].
#[derive(Clone, Debug)]
pub struct Joined {
    /// New incarnation.
    pub node: Node,
    /// Time of the database's clock.
    pub now: Timestamp,
}

/// A heartbeat of an incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Number of the heartbeat, from 1.
    pub number: i64,
    /// Number of the last heartbeat that the database has acknowledged; 0 if there is none.
    pub acknowledged: i64,
}

/// Result of [`Store::heartbeat`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulse {
    /// The lease is extended.
    Renewed,
    /// The database lacks a heartbeat that it had acknowledged; with the end of the lease that it has, if it has the
    /// incarnation at all. Nothing was changed.
    Older(Option<Timestamp>),
}

/// Result of [`Store::kept`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The runs, open or finished, with their jobs.
    pub runs: BTreeMap<RunId, JobId>,
    /// Those of them that are open.
    pub open: BTreeSet<RunId>,
}

/// An incident to raise an alert for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// Job concerned; 0 if the incident belongs to no job.
    pub job: JobId,
    /// Run concerned, if there is one.
    pub run: Option<RunId>,
    /// The problem.
    pub trouble: Trouble,
}

/// Result of [`Store::agenda`]: the work that is in the database, of all nodes. A loop queries its own work only when
/// there is some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agenda {
    /// Time of the database's clock, read as late as possible: a delay between reading it and returning makes every
    /// fire late by as much.
    pub now: Timestamp,
    /// All incarnations that are not fenced, including the caller's.
    pub nodes: Vec<Peer>,
    /// Earliest time at which a job is to be claimed.
    pub claim_at: Option<Timestamp>,
    /// Earliest due time of a waiting run.
    pub waiting_at: Option<Timestamp>,
    /// Earliest check time of a running or unknown run.
    pub check_at: Option<Timestamp>,
    /// Whether there are claimed runs.
    pub has_claimed: bool,
    /// Whether there are runs that their nodes are asked to cancel.
    pub has_cancelling: bool,
    /// Whether there are runs for [`Store::abandoned`].
    pub has_abandoned: bool,
    /// Earliest time at which an alert may be taken.
    pub alert_at: Option<Timestamp>,
    /// Earliest start of an unfinished stop or deletion.
    pub withdrawal_at: Option<Timestamp>,
    /// Whether there are events for [`Store::advance_workflows`].
    pub has_workflow_events: bool,
    /// Earliest time of an event for [`Store::advance_backfills`].
    pub backfill_at: Option<Timestamp>,
    /// Counter of changes to apps, their executors and their tokens.
    pub registry: i64,
}

impl Agenda {
    /// Whether there are open runs.
    pub fn has_open_runs(&self) -> bool {
        self.waiting_at.is_some() || self.check_at.is_some() || self.has_claimed || self.has_cancelling
    }

    /// Whether nodes have runs that they send by this time, or claim some.
    pub fn has_sends_by(&self, time: Timestamp) -> bool {
        let is_by = |at: Option<Timestamp>| at.is_some_and(|at| at <= time);
        self.has_claimed || self.has_cancelling || is_by(self.claim_at) || is_by(self.waiting_at)
    }

    /// Whether jobs or waiting runs are to be claimed at `now`.
    pub fn has_claims(&self, now: Timestamp) -> bool {
        self.claim_at.is_some_and(|at| at <= now) || self.waiting_at.is_some_and(|at| at <= now + LOOK_AHEAD)
    }
}

/// A node as seen by its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Incarnation of the node.
    pub node: Node,
    /// Time of the database's clock until which it may send.
    pub lease_until: Timestamp,
}

/// Id of a lifeline: a database connection that shows the other nodes at once that its process has died. Ids are
/// never reused: a broken lifeline stays broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LifelineId(pub i64);

/// Result of [`Store::lifelines`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifelines {
    /// Lifeline of this process. It was valid when the database was queried.
    pub own: LifelineId,
    /// Lifelines of others that this lifeline has seen valid, and since then broken for [`LIFELINE_GRACE`].
    pub broken: Vec<LifelineId>,
    /// Time until the next of those that were seen broken will have been so for [`LIFELINE_GRACE`].
    pub next: Option<Duration>,
}

/// How long an incarnation may send after its lifeline was last confirmed, and how long the others wait after they
/// have seen it broken: so when they act, it no longer sends. Four polls, or one with a slow response.
pub const LIFELINE_GRACE: Duration = Duration::from_millis(200);

/// Jobs that a node claims first. Slots only distribute the work; correctness comes from the compare-and-set.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    /// Bit `job id mod 64` is set for slots of this node.
    pub mask: u64,
    /// Jobs of other slots are claimed too if their claim time is not later than this.
    pub others_before: Timestamp,
}

impl Slots {
    /// All jobs.
    pub const ALL: Slots = Slots { mask: u64::MAX, others_before: Timestamp::from_millis(i64::MAX) };

    /// Whether to claim the job, given its claim time.
    pub fn take(&self, job: JobId, claim_at: Timestamp) -> bool {
        self.mask & (1 << job.0.rem_euclid(64)) != 0 || claim_at <= self.others_before
    }
}

/// Decides about jobs and runs inside the store's transaction. Pure: it never waits.
pub trait Planner: Send + Sync {
    /// Plan for a job that has reached its claim time.
    fn plan(&self, job: &Job) -> Plan;

    /// Same as [`plan`](Planner::plan), with at most `rows` rows for due fires (at least one fire); the rest is
    /// left for the next claim. By default all are planned.
    fn plan_at_most(&self, job: &Job, _rows: usize) -> Plan {
        self.plan(job)
    }

    /// Assignment of a waiting run that is due.
    fn assign(&self, job: &Job, run: &Run) -> Assignment;

    /// Plan for the unclaimed scheduled times up to and including `at`, when the job's schedule changes at that
    /// time. The fires are created as waiting runs. With very many scheduled times the plan ends early: its `next`
    /// is then not after `at`, and the caller repeats the call. By default each scheduled time is a fire.
    fn settle(&self, job: &Job, at: Timestamp) -> Plan {
        let mut plan = Plan { fires: vec![], unsent: vec![], next: NextFire::Never, replace: false };
        let instants = std::iter::successors(job.next_fire_at, |last| job.spec.next_after(*last));
        for scheduled_at in instants.take_while(|instant| *instant <= at).take(SETTLED_AT_ONCE) {
            let (due_at, origin) = (scheduled_at, Origin::Schedule);
            plan.fires.push(Fire { scheduled_at, due_at, origin, targets: vec![], waits: false });
        }
        plan.next = self.next_after(job, plan.fires.last().map_or(at, |fire| fire.scheduled_at));
        plan
    }

    /// Next fire of the job, after it fired, was started or was edited at `after`.
    fn next_after(&self, job: &Job, after: Timestamp) -> NextFire;

    /// Time when the fire at `fire_at` of the job is to be claimed.
    fn claim_at(&self, job: &Job, fire_at: Timestamp) -> Timestamp;

    /// Time before its due time at which a waiting run is claimed.
    fn look_ahead(&self) -> Duration {
        LOOK_AHEAD
    }

    /// Time to check a waiting run again that could not be sent at `now`, because another run of its job was claimed
    /// or is being cancelled.
    fn look_again_at(&self, now: Timestamp) -> Timestamp {
        now + LOOK_AGAIN
    }

    /// Reason for which a step of a workflow run must not open a run of this job, if there is one. `opened` runs of the
    /// same app are opened before it in the same transaction.
    fn blocks(&self, _job: &Job, _opened: u64) -> Option<String> {
        None
    }
}

/// Delay before a waiting run is checked again if its job was occupied. The end of the other run wakes it earlier.
const LOOK_AGAIN: Duration = Duration::from_millis(2_500);

/// Maximum number of fires in one plan of the default [`Planner::settle`].
const SETTLED_AT_ONCE: usize = 1000;

/// Plan for a due job.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Fires to create rows for, in order.
    pub fires: Vec<Fire>,
    /// Scheduled times that are not sent. Coalesced ones go into the last fire.
    pub unsent: Vec<Unsent>,
    /// Next fire of the job afterwards.
    pub next: NextFire,
    /// Whether to end the active run of an exclusive job ([`Job::running`]); the first fire replaces it.
    pub replace: bool,
}

/// One fire, with one row per target.
#[derive(Clone, Debug, PartialEq)]
pub struct Fire {
    /// Scheduled time.
    pub scheduled_at: Timestamp,
    /// Time to send it.
    pub due_at: Timestamp,
    /// `Schedule` or `Misfire`.
    pub origin: Origin,
    /// One target per shard. Empty only if `waits`.
    pub targets: Vec<Target>,
    /// Whether it waits for the active run of the job: one `Waiting` row, not split into shards.
    pub waits: bool,
}

/// Next fire of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextFire {
    /// The job fires again.
    At {
        /// Scheduled time of the fire.
        fire_at: Timestamp,
        /// Time when it is to be claimed.
        claim_at: Timestamp,
    },
    /// Not known yet: after the end of the run that is created now (fixed delay), or once the job's work calendar has
    /// more data.
    AfterRun,
    /// Never again: the job is stopped.
    Never,
}

impl NextFire {
    /// The fire at this time, or never, if no [`Planner`] is there to decide. It is claimed no later than any job
    /// is; a claim that finds nothing due does no harm.
    pub fn at_or_never(fire_at: Option<Timestamp>) -> NextFire {
        match fire_at {
            Some(fire_at) => NextFire::At { fire_at, claim_at: fire_at - LOOK_AHEAD },
            None => NextFire::Never,
        }
    }
}

/// Decision about a waiting run.
#[derive(Clone, Debug, PartialEq)]
pub enum Assignment {
    /// Send it: the first target with its own row, the others with new ones (only if it was not split into shards
    /// yet). For an exclusive job, only if no other run is active; the run then becomes the active one.
    Send(Vec<Target>),
    /// Leave it waiting until this time.
    Leave(Timestamp),
    /// Close it with this disposition and reason, and raise an alert if the job has alerts enabled.
    Drop(Disposition, String),
    /// Close it as cancelled, with this reason.
    Cancel(String),
    /// Send it, and end the active run of the job.
    Replace(Vec<Target>),
}

/// Result of a claim.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    /// Runs claimed by the caller, ordered by due time.
    pub orders: Vec<Order>,
    /// Runs that they replace, [marked](Run::replaced) as such: their executors are to be asked to end them.
    pub replaced: Vec<Order>,
    /// Whether more than `max` were due.
    pub more: bool,
    /// Time when the next job or waiting run is to be claimed, as far as it is known.
    pub next_at: Option<Timestamp>,
}

/// A change of an open run.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// Id of the run.
    pub run: RunId,
    /// Version of the run when the caller last read it.
    pub version: i64,
    /// New state of the run.
    pub to: To,
    /// Problem to notify if the change is made.
    pub trouble: Option<Trouble>,
}

/// New state of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum To {
    /// Back to waiting, for any node to claim.
    Waiting {
        /// Time when it is due.
        due_at: Timestamp,
    },
    /// Back to waiting, for any node to claim: no executor could be asked to accept it.
    Deferred {
        /// Time when it is due again.
        until: Timestamp,
        /// Time when it was first deferred.
        since: Timestamp,
    },
    /// An executor has accepted it. The row keeps the node that sent it.
    Running {
        /// Address of the executor, if it differs from the row.
        address: Option<String>,
        /// Time of the next check.
        check_at: Timestamp,
        /// Time since when the executor has not responded, if so.
        doubt_since: Option<Timestamp>,
    },
    /// An executor may have accepted it.
    Unknown {
        /// Address of the executor, if it differs from the row.
        address: Option<String>,
        /// Time of the next check.
        check_at: Timestamp,
        /// Time since when the executor denies knowing it, if so.
        doubt_since: Option<Timestamp>,
    },
}

impl To {
    /// States from which the change is allowed.
    pub fn from_states(&self) -> &'static [RunState] {
        use RunState::*;
        match self {
            To::Waiting { .. } => &[Claimed, Unknown],
            To::Deferred { .. } => &[Claimed],
            To::Running { .. } => &[Claimed, Unknown, Running],
            To::Unknown { .. } => &[Claimed, Unknown],
        }
    }

    /// Address of the executor, if the change sets it.
    pub fn address(&self) -> Option<&str> {
        match self {
            To::Waiting { .. } | To::Deferred { .. } => None,
            To::Running { address, .. } | To::Unknown { address, .. } => address.as_deref(),
        }
    }

    /// State after the change.
    pub fn state(&self) -> RunState {
        match self {
            To::Waiting { .. } | To::Deferred { .. } => RunState::Waiting,
            To::Running { .. } => RunState::Running,
            To::Unknown { .. } => RunState::Unknown,
        }
    }
}

/// Result of a [`Move`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Done; the run has this version now.
    Done(i64),
    /// The run is to be cancelled: call [`Store::answer_cancel`] first.
    Cancelling,
    /// The run is finished, or was changed by another node.
    Stale,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// Id of the run.
    pub run: RunId,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Required version of the run, for conclusions of the engine; none for reports of executors.
    pub version: Option<i64>,
    /// Address of the executor, if it differs from the row. Stored even if the run is already finished.
    pub address: Option<String>,
}

/// Result of an [`Ending`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The run is finished now, and its follow-ups are created.
    Applied,
    /// Same as `Applied`, but replacing `Lost`.
    Late,
    /// Same as `Applied`, but with the result that a Java admin had stored before.
    Stored,
    /// The run was finished already; nothing changed.
    Duplicate,
    /// The run has changed since; nothing changed.
    Stale,
    /// The run does not exist.
    Missing,
}

/// Decides about follow-ups of a finished run. Pure.
pub trait Ender: Send + Sync {
    /// Outcome to record instead of the reported one.
    fn recorded(&self, _run: &Run, reported: &Outcome) -> Outcome {
        reported.clone()
    }

    /// Follow-ups of the run. The store adds conditions that only it can check: for a run with shards, children
    /// that run once and the re-arming wait until the last shard is finished.
    fn follow(&self, job: &Job, run: &Run, outcome: &Outcome) -> FollowUps;

    /// Reason not to open a run of this child job, if any: it is recorded as blocked then. `opened` runs of the same
    /// app are opened in the same transaction before it.
    fn blocks(&self, _child: &Job, _opened: u64) -> Option<String> {
        None
    }
}

/// Follow-ups of a finished run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FollowUps {
    /// Due time of the next attempt of the same fire and shard.
    pub retry_at: Option<Timestamp>,
    /// Jobs to run (once per fire or per shard, depending on [`JobSpec::children_mode`]). The store omits those
    /// that do not exist, and records those that [`Ender::blocks`].
    pub children: Vec<JobId>,
    /// Problem to notify.
    pub trouble: Option<Trouble>,
    /// Next fire of a job with a fixed delay. Only written while the job is enabled and has none.
    pub rearm: Option<NextFire>,
}

/// An event of a workflow run, besides the ends of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowEvent {
    /// A time limit may have been reached: a wait, or the timeout of the run, of a step or of an approval.
    Check,
    /// No steps open until [`Continue`](WorkflowEvent::Continue).
    Pause,
    /// Steps open again.
    Continue,
    /// The run is cancelled: its steps end, and the phase `finally` follows.
    Cancel,
    /// The run is cancelled without the phase `finally`.
    CancelNow,
}

/// Result of [`Store::advance_workflows`].
#[derive(Clone, Debug, Default)]
pub struct Advance {
    /// Claimed runs of steps, ordered by due time.
    pub orders: Vec<Order>,
    /// Runs of steps that executors have and are to be asked to end.
    pub cancelled: Vec<Order>,
    /// Workflow runs that have ended; they are still to be [`complete`](Store::complete)d.
    pub ended: Vec<(RunId, Outcome)>,
    /// Whether runs were opened that wait, for example because their jobs allow only one run.
    pub waiting: bool,
    /// Whether more than `max` runs have events.
    pub more: bool,
}

/// A run of a dead node.
#[derive(Clone, Debug)]
pub struct Abandoned {
    /// The run.
    pub run: Run,
    /// Current definition of its job; none once it is deleted.
    pub job: Option<Arc<Job>>,
    /// Time until which its owner may have sent it, if known.
    pub lease_until: Option<Timestamp>,
}

/// A run to check.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The run.
    pub run: Run,
    /// Its job; none once it is deleted.
    pub job: Option<Arc<Job>>,
    /// Result that a Java admin has stored for it, if any.
    pub stored: Option<Outcome>,
}

/// An alert to notify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Id of its row.
    pub id: i64,
    /// Job that it is about.
    pub job: JobId,
    /// Run that it is about, if any.
    pub run: Option<RunId>,
    /// Problem to notify.
    pub trouble: Trouble,
    /// Number of delivery attempts, including this one.
    pub tries: u32,
}

/// Jobs with ids above `after`, up to and including `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRange {
    /// Id before the first job.
    pub after: JobId,
    /// Id of the last job; none for all following jobs.
    pub until: Option<JobId>,
}

impl JobRange {
    /// All jobs.
    pub const ALL: JobRange = JobRange { after: JobId(0), until: None };
}

/// Result of [`Store::adopt`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Number of jobs whose changes were applied.
    pub changed: usize,
    /// Number of those that are started, but never fire because their schedules cannot be read.
    pub unreadable: usize,
    /// Job to continue after, if more may have changed.
    pub next: Option<JobId>,
}

/// Retention of rows.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Runs that ended before this time are deleted, with their logs.
    pub runs_before: Timestamp,
    /// Approximate maximum number of runs; the oldest beyond it are deleted, with their logs.
    pub runs_max: Option<u64>,
    /// History entries, idempotency keys and dead nodes before this time are deleted.
    pub history_before: Timestamp,
}

/// A change of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// Start the schedule; it first fires at its next scheduled time.
    Start,
    /// Stop the schedule; its runs that are not sent yet are cancelled.
    Stop,
    /// Replace the definition; unsent fires of the old schedule after now are cancelled.
    Edit {
        /// New definition.
        spec: Box<JobSpec>,
        /// Required revision of the job, if any.
        revision: Option<i64>,
    },
    /// Replace the definition, the state and the tags, all or nothing.
    Put {
        /// New definition. An unchanged definition has no effect.
        spec: Box<JobSpec>,
        /// Required revision of the job, if any.
        revision: Option<i64>,
        /// Whether the schedule is active from now on; unchanged if absent.
        enabled: Option<bool>,
        /// Tags that replace the existing ones.
        tags: Vec<String>,
        /// Remark on the script or the workflow, if it changes.
        remark: String,
    },
    /// Plan the fires again, because the job's work calendar has changed; like an edit with the same definition. A job
    /// whose calendar is of the revision that it was last planned with is left as it is.
    Replan,
    /// Delete the job; all its unsent runs are cancelled.
    Delete,
}

/// A job to add, with its state and tags.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// Definition of the job.
    pub spec: JobSpec,
    /// Whether its schedule is active from now on.
    pub enabled: bool,
    /// Tags to search by.
    pub tags: Vec<String>,
    /// Remark on its script or its workflow.
    pub remark: String,
}

impl NewJob {
    /// A stopped job without tags.
    pub fn stopped(spec: JobSpec) -> NewJob {
        NewJob { spec, enabled: false, tags: Vec::new(), remark: String::new() }
    }
}

/// One change of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Add a job. An existing key is a [`StoreError::Conflict`].
    Add(Box<NewJob>),
    /// Change an existing job. A batch has at most one change of each.
    Control(JobId, Control),
}

/// Result of [`Store::change_jobs`].
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// Time of the database's clock when the changes took effect.
    pub at: Timestamp,
    /// The changed job or the reason for the rejection, in the order of the changes.
    pub results: Vec<Result<JobId, StoreError>>,
    /// Jobs with runs that wait for their nodes to confirm the cancellation, with their number.
    pub cancelling: Vec<(JobId, u64)>,
    /// Jobs with runs left for [`Store::withdraw`].
    pub unfinished: Vec<JobId>,
}

impl Changes {
    /// Result of a batch of one change.
    pub fn only(mut self) -> Result<JobId, StoreError> {
        let none = || Err(StoreError::Invalid("the batch is empty".into()));
        self.results.pop().unwrap_or_else(none)
    }
}

/// A change of a job that took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Id of the job.
    pub job: JobId,
    /// Time of the database's clock when it took effect.
    pub at: Timestamp,
}

/// Result of a [`Control`].
#[derive(Clone, Debug)]
pub struct Controlled {
    /// Time of the database's clock when it took effect.
    pub at: Timestamp,
    /// Number of runs that wait for their nodes to confirm the cancellation.
    pub cancelling: u64,
    /// Whether runs are left for [`Store::withdraw`].
    pub more: bool,
}

/// Result of [`Store::declare`].
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// Id of the job.
    pub job: JobId,
    /// Definition before; `None` for a new job.
    pub before: Option<JobSpec>,
    /// Definition afterwards.
    pub after: JobSpec,
    /// Fields that differ from the declaration, because a user has changed them.
    pub overridden: Vec<&'static str>,
    /// Number of runs that wait for their nodes to confirm the cancellation.
    pub cancelling: u64,
}

impl Declared {
    /// Whether the definition changed.
    pub fn is_change(&self) -> bool {
        self.before.as_ref() != Some(&self.after)
    }
}

/// Whether a run to be cancelled was still unsent.
#[derive(Clone, Debug, PartialEq)]
pub struct CancelAnswer {
    /// Id of the run.
    pub run: RunId,
    /// Version of the run when the caller last read it.
    pub version: i64,
    /// `None`: not sent, and never will be. Otherwise its current state: running or unknown.
    pub sent: Option<To>,
}

/// A manual trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Idempotency key.
    pub key: i64,
    /// Scheduled time. Default: the database's current time.
    pub at: Option<Timestamp>,
    /// Parameter instead of the job's.
    pub param: Option<String>,
    /// Address of an executor, instead of the job's routing strategy.
    pub address: Option<String>,
    /// Name of the user, who is stored as the starter of a workflow run.
    pub by: Option<String>,
}

/// A run as stored in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// Id of the run.
    pub id: RunId,
    /// Id of the job.
    pub job: JobId,
    /// Scheduled time; only in whole seconds if it comes from the log.
    pub scheduled_at: Timestamp,
    /// State of the run. For a finished run: `Succeeded`, `Failed` (also rejected, lost and cancelled ones, because
    /// XXL-JOB's log has no other states) or `TimedOut`.
    pub state: RunState,
    /// Address that it was sent to.
    pub address: Option<String>,
    /// Message of its end.
    pub message: Option<String>,
}

/// History entry of scheduled times that were not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Id of its row.
    pub id: i64,
    /// Id of the job.
    pub job: JobId,
    /// The scheduled times and their disposition.
    pub unsent: Unsent,
    /// Run into which they were coalesced, or that was cancelled, blocked or lost.
    pub run: Option<RunId>,
    /// Time of the decision.
    pub at: Timestamp,
}

/// Sends requests to executors.
#[async_trait]
pub trait Dispatch: Send + Sync {
    /// Sends a run. The request leaves within `within`, or never. Returns when the response has arrived or will not
    /// arrive; the implementation has a timeout.
    async fn send(&self, order: &Order, within: Duration) -> Receipt;

    /// Asks the executor of a run about its state.
    async fn probe(&self, run: &Run, job: Option<&Job>) -> Probe;

    /// Asks the executor to end a run, once, and returns its response. The implementation has a timeout.
    async fn kill(&self, run: &Run, job: Option<&Job>) -> KillAnswer;

    /// Whether a run must be marked as running before it is sent. Required for executors that die with the node,
    /// because they cannot be asked afterwards whether the run had started. With it, a claimed run of a dead node
    /// is certainly unsent.
    fn marks_first(&self) -> bool {
        false
    }

    /// Whether there are active runs that would die with this node: a stopping engine gives them time.
    fn is_busy(&self) -> bool {
        false
    }
}

/// Response of an executor to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// The executor accepted the run.
    Accepted {
        /// Address of the executor.
        address: String,
    },
    /// The run was certainly not accepted.
    Refused {
        /// Reason.
        reason: String,
    },
    /// No executor was asked: this node suspends its calls to the eligible ones (circuit breaker).
    Deferred {
        /// Reason.
        reason: String,
    },
    /// It is unknown whether the run was accepted.
    Unknown {
        /// Address of the executor.
        address: Option<String>,
        /// Reason.
        reason: String,
    },
}

/// Response of an executor to a request to end a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KillAnswer {
    /// It ends, or has ended, the run.
    Ended,
    /// It has no such run: the result is in flight, or the run never arrived.
    NotThere,
    /// It does not end the run.
    Refused(String),
    /// It could not be asked, or did not respond.
    Unheard(String),
}

impl KillAnswer {
    /// Why the run goes on; none if it ends.
    pub fn problem(&self) -> Option<String> {
        match self {
            KillAnswer::Ended => None,
            KillAnswer::NotThere => Some("the executor does not have the run".into()),
            KillAnswer::Refused(reason) => Some(format!("the executor refused: {reason}")),
            KillAnswer::Unheard(reason) => Some(format!("the executor was not reached: {reason}")),
        }
    }
}

/// Response of an executor to a question about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It has the run.
    Started,
    /// The executor at this address, of several that were asked, has or had the run.
    StartedAt(String),
    /// It had the run and is idle now: the result is in flight, or was lost.
    Finished,
    /// It does not know the run and is idle.
    Denied,
    /// The executor of the run is certainly dead.
    Dead,
    /// No response, or an inconclusive one.
    Silent,
}

/// Sends notifications.
#[async_trait]
pub trait Alarms: Send + Sync {
    /// Delivers a notification, or returns the error; it is then retried later.
    async fn raise(&self, alert: &Alert) -> Result<(), String>;
}

/// Error of the store, by possible reaction of the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Nothing was changed; retry.
    #[error("the database did not respond ({0}); nothing was changed")]
    Unavailable(String),
    /// Nothing was changed, because the disk is full; an operator must free space.
    #[error("the disk of the database is full ({0}); nothing was changed")]
    DiskFull(String),
    /// The change may or may not have been made; read by key, or repeat if it is idempotent.
    #[error("the connection was lost while committing ({0}); it is unknown whether the change was made")]
    CommitUnknown(String),
    /// This incarnation of the node is fenced: drop all state and join again.
    #[error("node {0} was declared dead by other nodes; it must join again")]
    Fenced(Node),
    /// A conflicting change came first.
    #[error("{0}")]
    Conflict(String),
    /// An earlier change of the job waits for nodes to release its runs; nothing was changed. Retry when they have.
    #[error("an earlier change of job {0} has not taken effect yet; nothing was changed")]
    Unsettled(JobId),
    /// The job does not exist.
    #[error("job {0} does not exist")]
    NoSuchJob(JobId),
    /// The request can never succeed.
    #[error("{0}")]
    Invalid(String),
    /// The database has an unexpected structure or content; an operator must check it.
    #[error("{0}")]
    Schema(String),
}

impl StoreError {
    /// Whether the database did not respond. The store logs when that begins and ends; callers log it at the level
    /// `debug`.
    pub fn is_outage(&self) -> bool {
        matches!(self, StoreError::Unavailable(_) | StoreError::CommitUnknown(_))
    }

    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, StoreError::Unavailable(_) | StoreError::DiskFull(_) | StoreError::CommitUnknown(_))
    }
}

/// Disposition under which a run's end is stored in the history, if it is.
pub fn disposition_of(outcome: &Outcome) -> Option<Disposition> {
    match outcome {
        Outcome::Lost(_) | Outcome::Ambiguous(_) => Some(Disposition::Lost),
        Outcome::Cancelled(_) => Some(Disposition::Cancelled),
        Outcome::Dropped(disposition, _) => Some(*disposition),
        _ => None,
    }
}
