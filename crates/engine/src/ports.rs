//! What the engine needs from the world: somewhere to remember ([`Store`]), someone to send to ([`Dispatch`]),
//! someone to tell ([`Alarms`]). The clock is [`timer::Clock`].
//!
//! A store decides nothing: it is handed pure functions ([`Planner`], [`Ender`]) and calls them inside its
//! transaction, between reading rows and writing them. Every method is one transaction, so whoever calls may
//! die before or after it and nowhere else.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cron::Timestamp;

use crate::declare::Declaration;
use crate::job::{AppId, Job, JobId, JobSpec};
use crate::policy::Target;
use crate::run::{Disposition, Node, Order, Origin, Outcome, Run, RunId, RunState, Unsent};
use crate::trouble::Trouble;

/// The memory of the scheduling centre.
///
/// `now` is always the engine's estimate of the database's clock; where exactness matters (leases, control) the
/// store asks the database itself.
#[async_trait]
pub trait Store: Send + Sync {
    // ── Nodes ─────────────────────────────────────────────────────────────────────────────────────────────

    /// Opens a new life of the node: an epoch above all earlier ones of that name, which are fenced.
    async fn join(&self, name: &str, lease: Duration) -> Result<Joined, StoreError>;

    /// Extends the lease to `lease` from now by the database's clock, and tells who else is there.
    /// [`StoreError::Fenced`] if others have declared this life over.
    async fn heartbeat(&self, node: &Node, lease: Duration) -> Result<Heartbeat, StoreError>;

    /// Declares a life over if its lease has ended by the database's clock. True if it is over, whoever did it.
    async fn fence(&self, node: &Node) -> Result<bool, StoreError>;

    /// Ends a life in good order: its claimed runs wait for others, its cancelling ones are cancelled, its node
    /// row goes.
    async fn leave(&self, node: &Node) -> Result<(), StoreError>;

    /// Confirms this process's lifeline and tells whose have broken. `None` where the database keeps none, as here:
    /// then only leases tell who is dead.
    async fn lifelines(&self) -> Result<Option<Lifelines>, StoreError> {
        Ok(None)
    }

    /// Writes down that this life sends nothing without that lifeline (from [`LIFELINE_GRACE`] after it was last
    /// confirmed), or, with `None`, that only its lease binds it. [`StoreError::Fenced`] if the life is over.
    async fn depend_on(&self, _node: &Node, _lifeline: Option<LifelineId>) -> Result<(), StoreError> {
        Ok(())
    }

    /// Declares over, with their leases ended now, the lives that depend on one of these broken lifelines. Tells
    /// which they are, whoever did it.
    async fn fence_broken(&self, _broken: &[LifelineId]) -> Result<Vec<Node>, StoreError> {
        Ok(Vec::new())
    }

    // ── Firing ────────────────────────────────────────────────────────────────────────────────────────────

    /// Takes jobs whose claim time has come, asks `planner` about each, and writes what it says: the advance of
    /// the job *and* its rows, or neither. The advance is a compare-and-set on the job's old next time. A job
    /// with a run in `Cancelling` is left for later. Earliest first, at most `max` jobs.
    async fn claim_due(
        &self,
        node: &Node,
        now: Timestamp,
        slots: Slots,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Claim, StoreError>;

    /// Takes waiting runs that are due within the look-ahead of `now`, asks `planner` about each, and makes them
    /// claimed. Earliest first, at most `max`.
    async fn claim_waiting(
        &self,
        node: &Node,
        now: Timestamp,
        slots: Slots,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Claim, StoreError>;

    /// The runs this life has claimed and not moved on: what a claim with an unknown commit really did. In the order
    /// of their ids after `after`, at most `max`; with the run after which the next page begins, if there may be one.
    async fn owned(
        &self,
        node: &Node,
        after: Option<RunId>,
        max: usize,
    ) -> Result<(Vec<Order>, Option<RunId>), StoreError>;

    /// Open runs by their ids; those that are over or never were are left out.
    async fn open_runs(&self, ids: &[RunId]) -> Result<Vec<Run>, StoreError>;

    /// Moves open runs, each only if its version is still the one named and its state one of
    /// [`To::from_states`]. A move that comes too late, because the run's result was written first, still leaves the
    /// run its address. Answers in the order asked.
    async fn move_runs(&self, moves: &[Move]) -> Result<Vec<Moved>, StoreError>;

    /// Closes runs and opens what `ender` says must follow, in the same transaction. The first ending of a run
    /// wins; `Lost` alone gives way, once, to what an executor reports. Answers in the order asked.
    async fn complete(
        &self,
        now: Timestamp,
        endings: &[Ending],
        ender: &dyn Ender,
    ) -> Result<Vec<Verdict>, StoreError>;

    // ── Looking after ─────────────────────────────────────────────────────────────────────────────────────

    /// Claimed and cancelling runs whose owner's life is over; running ones too if `running`, for executors that
    /// die with their node. Lowest id first, at most `max`.
    async fn abandoned(&self, running: bool, max: usize) -> Result<Vec<Abandoned>, StoreError>;

    /// Running and unknown runs that are to be looked at by then. Earliest first, at most `max`.
    async fn overdue(&self, by: Timestamp, max: usize) -> Result<Vec<Watched>, StoreError>;

    /// Brings what we keep beside a job in line with changes that others (a Java admin, a person) made to it in
    /// the database: `planner` says when each is next to be claimed. Returns how many jobs had changed.
    async fn adopt(&self, max: usize, planner: &dyn Planner) -> Result<usize, StoreError>;

    /// Alerts not yet delivered, leased to the caller for `lease`. Oldest first, at most `max`.
    async fn take_alerts(
        &self,
        now: Timestamp,
        lease: Duration,
        max: usize,
    ) -> Result<Vec<Alert>, StoreError>;

    /// Forgets delivered alerts.
    async fn forget_alerts(&self, ids: &[i64]) -> Result<(), StoreError>;

    /// Gives back an alert that could not be delivered, to be taken again from then on.
    async fn delay_alert(&self, id: i64, until: Timestamp) -> Result<(), StoreError>;

    /// Deletes at most `max` rows that are older than the retention says, by key. Returns how many.
    async fn prune(&self, retention: &Retention, max: usize) -> Result<usize, StoreError>;

    // ── Control ───────────────────────────────────────────────────────────────────────────────────────────

    /// The group of executors of that name, created if it does not exist.
    async fn ensure_app(&self, name: &str) -> Result<AppId, StoreError>;

    /// Adds a job, stopped. A key that exists already is a [`StoreError::Conflict`].
    async fn create_job(&self, spec: &JobSpec) -> Result<JobId, StoreError>;

    /// Adds a job with all that belongs to it. A key that exists already is a [`StoreError::Conflict`].
    async fn add_job(&self, job: &NewJob, planner: &dyn Planner) -> Result<JobId, StoreError>;

    /// Starts, stops, edits or deletes a job, effective at the database's now, and cancels what is claimed or
    /// waiting and no longer wanted: what nobody has claimed at once, what a node has by asking it
    /// (`Cancelling`, under the version the node knows). Runs that an executor has, or may have, are marked
    /// [`recalled`](Run::recalled) by a stop or delete. A stop or delete does so with at most `max` runs; the others are
    /// left to [`withdraw`](Store::withdraw). The change may be acknowledged when none is left and
    /// [`cancelling`](Store::cancelling) says 0.
    async fn control(
        &self,
        job: JobId,
        control: &Control,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Controlled, StoreError>;

    /// Goes on with what a stop or delete of the job has begun, for at most `max` of its runs. Returns whether more are
    /// left; false for a job with nothing to withdraw.
    async fn withdraw(&self, job: JobId, max: usize) -> Result<bool, StoreError>;

    /// Jobs whose stop or delete was begun before then and is not finished, because its node died or because the change
    /// was made by others in the database. Oldest first, at most `max`.
    async fn withdrawals(&self, before: Timestamp, max: usize) -> Result<Vec<JobId>, StoreError>;

    /// The number of open runs of each app that has any. Empty if all apps together have no more than `above`: that is
    /// cheap to find out.
    async fn open_by_app(&self, above: u64) -> Result<Vec<(AppId, u64)>, StoreError>;

    /// Makes a job be what a program says of it: the one that it declared before, else the one that has this key, else
    /// the only one of the app that calls this handler; else a new one, with this key, started. What the job becomes
    /// is [`Declaration::merged`]'s to say, as an edit at the database's now. Nothing is written where nothing is new. A
    /// job that is another app's by now, or several that may be meant, are a [`StoreError::Conflict`].
    async fn declare(
        &self,
        declaration: &Declaration,
        key: &str,
        planner: &dyn Planner,
    ) -> Result<Declared, StoreError>;

    /// How many runs of the job still wait for their node to confirm that they are cancelled.
    async fn cancelling(&self, job: JobId) -> Result<u64, StoreError>;

    /// The runs of this life that control wants cancelled, in the order of their ids after `after`, at most `max`.
    async fn asked_to_cancel(
        &self,
        node: &Node,
        after: Option<RunId>,
        max: usize,
    ) -> Result<Vec<Run>, StoreError>;

    /// Answers [`asked_to_cancel`](Store::asked_to_cancel): in time (the run is cancelled, and recorded as such), or too late (it goes
    /// on, and the job's next fire is moved past it, so that its instant does not fire twice).
    async fn answer_cancel(&self, answers: &[CancelAnswer], planner: &dyn Planner) -> Result<(), StoreError>;

    /// Marks a run that an executor has, or may have, as to be [`cancel`](Run::cancel)led. False if the run is not running
    /// or unknown any more. Repeating it is harmless.
    async fn request_cancel(&self, run: RunId) -> Result<bool, StoreError>;

    /// Opens a run by hand, waiting. The same key for the same job gives the same run again.
    async fn trigger(&self, job: JobId, trigger: &Trigger) -> Result<RunId, StoreError>;

    // ── Reading ───────────────────────────────────────────────────────────────────────────────────────────

    /// A job.
    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError>;

    /// A job by its key.
    async fn job_by_key(&self, key: &str) -> Result<Option<Job>, StoreError>;

    /// Jobs in the order of their ids, after `after`.
    async fn jobs(&self, after: Option<JobId>, max: usize) -> Result<Vec<Job>, StoreError>;

    /// Runs of a job, open and over, in the order of their ids, after `after`.
    async fn runs(&self, job: JobId, after: Option<RunId>, max: usize) -> Result<Vec<RunRecord>, StoreError>;

    /// What became of the job's instants that were not sent, oldest first, after the entry `after`.
    async fn history(
        &self,
        job: JobId,
        after: Option<i64>,
        max: usize,
    ) -> Result<Vec<HistoryEntry>, StoreError>;
}

/// The answer to a [`Store::join`].
#[derive(Clone, Debug)]
pub struct Joined {
    /// The new life.
    pub node: Node,
    /// The database's clock.
    pub now: Timestamp,
}

/// The answer to a [`Store::heartbeat`].
#[derive(Clone, Debug)]
pub struct Heartbeat {
    /// The database's clock, read as late as possible: what passes between reading it and returning makes
    /// every fire that much later.
    pub now: Timestamp,
    /// All lives that are not over, the caller's too.
    pub nodes: Vec<Peer>,
}

/// A node as the others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Which.
    pub node: Node,
    /// Until when, by the database's clock, it may send.
    pub lease_until: Timestamp,
}

/// A connection of a process to the database, by which the others see at once that the process has died. No two
/// connections ever have the same number: one that has broken stays so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LifelineId(pub i64);

/// The answer to [`Store::lifelines`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifelines {
    /// This process's. It held when the database was asked.
    pub own: LifelineId,
    /// Those of others that this very lifeline has seen holding, and has seen broken for [`LIFELINE_GRACE`].
    pub broken: Vec<LifelineId>,
}

/// How long a life may go on sending after its lifeline was last confirmed, and how long the others wait after they
/// have seen it broken: so when they act, it sends no more. Two looks, and some time for their answers.
pub const LIFELINE_GRACE: Duration = Duration::from_millis(250);

/// Which jobs a node claims first. Slots spread the work; what keeps it correct is the compare-and-set.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    /// Bit `job id mod 64`: ours.
    pub mask: u64,
    /// Jobs of other slots are taken too once their claim time is no later than this.
    pub others_before: Timestamp,
}

impl Slots {
    /// All jobs.
    pub const ALL: Slots = Slots { mask: u64::MAX, others_before: Timestamp::from_millis(i64::MAX) };

    /// Whether the job is to be taken, given its claim time.
    pub fn take(&self, job: JobId, claim_at: Timestamp) -> bool {
        self.mask & (1 << job.0.rem_euclid(64)) != 0 || claim_at <= self.others_before
    }
}

/// Decides, inside the store's transaction, what becomes of jobs and runs. Pure: it waits for nothing.
pub trait Planner: Send + Sync {
    /// What becomes of a job whose claim time has come.
    fn plan(&self, job: &Job) -> Plan;

    /// The same, with at most so many rows for fires that are due (at least one fire); the rest is left for the next
    /// claim. As it stands here, all are planned.
    fn plan_at_most(&self, job: &Job, _rows: usize) -> Plan {
        self.plan(job)
    }

    /// What becomes of a waiting run whose time has come.
    fn assign(&self, job: &Job, run: &Run) -> Assignment;

    /// What becomes of the instants up to and including `at` that nobody has claimed when the job's schedule changes
    /// then. The fires are opened as waiting runs. With very many instants the plan ends early: its `next` is then not
    /// after `at`, and the rest is asked for again. As it stands here, each instant is a fire.
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

    /// When the job is next to fire, given that it has fired, or been started or edited, at `after`.
    fn next_after(&self, job: &Job, after: Timestamp) -> NextFire;

    /// When the fire at `fire_at` of the job is to be claimed.
    fn claim_at(&self, job: &Job, fire_at: Timestamp) -> Timestamp;
}

/// Fires in one plan of [`Planner::settle`], as it stands there.
const SETTLED_AT_ONCE: usize = 1000;

/// What becomes of a due job.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The fires to open rows for, in order.
    pub fires: Vec<Fire>,
    /// The instants that are not sent. Coalesced ones go into the last fire.
    pub unsent: Vec<Unsent>,
    /// Where the job stands afterwards.
    pub next: NextFire,
    /// End the run that holds the job's one place ([`Job::running`]): the first fire takes it.
    pub replace: bool,
}

/// One fire: as many rows as it has targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Fire {
    /// Its instant.
    pub scheduled_at: Timestamp,
    /// When it is sent.
    pub due_at: Timestamp,
    /// `Schedule` or `Misfire`.
    pub origin: Origin,
    /// One for each shard. Empty only where `waits`.
    pub targets: Vec<Target>,
    /// It waits for the job's one place: one `Waiting` row, unsplit.
    pub waits: bool,
}

/// Where a job stands after a fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextFire {
    /// It fires again.
    At {
        /// Then,
        fire_at: Timestamp,
        /// and somebody takes it up then.
        claim_at: Timestamp,
    },
    /// When the run now opened has ended (fixed delay).
    AfterRun,
    /// Never again: the job is stopped.
    Never,
}

/// What becomes of a waiting run.
#[derive(Clone, Debug, PartialEq)]
pub enum Assignment {
    /// It is sent: the first target with its own row, the others with new ones (only if it was unsplit).
    /// For a job whose runs must not overlap, only if the job's place is free; the run then holds it.
    Send(Vec<Target>),
    /// Somebody looks again then.
    Leave(Timestamp),
    /// It is recorded like this and closed, with this reason, and people are told if the job wants that.
    Drop(Disposition, String),
    /// It is recorded and closed as cancelled, with this reason.
    Cancel(String),
    /// It is sent, and the run that holds the job's place is ended.
    Replace(Vec<Target>),
}

/// What a claim brought.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    /// The runs now claimed by the caller, in the order they are due.
    pub orders: Vec<Order>,
    /// Runs ended to make place for them: their executors are to be told.
    pub replaced: Vec<Order>,
    /// More was due than `max`.
    pub more: bool,
    /// When the next job or waiting run that was not due yet is to be claimed, as far as it is known.
    pub next_at: Option<Timestamp>,
}

/// A change of an open run.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// Which run,
    pub run: RunId,
    /// as the caller last saw it.
    pub version: i64,
    /// Where it goes.
    pub to: To,
    /// What people are to be told of it, if it does.
    pub trouble: Option<Trouble>,
}

/// Where a run goes.
#[derive(Clone, Debug, PartialEq)]
pub enum To {
    /// Back to be claimed by anybody.
    Waiting {
        /// When it is due.
        due_at: Timestamp,
    },
    /// Back to be claimed by anybody: no executor could be asked to take it.
    Deferred {
        /// When it is due again.
        until: Timestamp,
        /// When it was first deferred.
        since: Timestamp,
    },
    /// An executor has it. The row keeps naming the node that sent it.
    Running {
        /// Which, if the caller knows better than the row.
        address: Option<String>,
        /// When to look at it again.
        check_at: Timestamp,
        /// Since when its executor is silent, if it is.
        doubt_since: Option<Timestamp>,
    },
    /// Perhaps an executor has it.
    Unknown {
        /// Which, if the caller knows better than the row.
        address: Option<String>,
        /// When to look at it again.
        check_at: Timestamp,
        /// Since when the executor denies knowing it, if it does.
        doubt_since: Option<Timestamp>,
    },
}

impl To {
    /// The states it may come from.
    pub fn from_states(&self) -> &'static [RunState] {
        use RunState::*;
        match self {
            To::Waiting { .. } => &[Claimed, Unknown],
            To::Deferred { .. } => &[Claimed],
            To::Running { .. } => &[Claimed, Unknown, Running],
            To::Unknown { .. } => &[Claimed, Unknown],
        }
    }

    /// The executor it was sent to, where the move says that.
    pub fn address(&self) -> Option<&str> {
        match self {
            To::Waiting { .. } | To::Deferred { .. } => None,
            To::Running { address, .. } | To::Unknown { address, .. } => address.as_deref(),
        }
    }

    /// The state it ends in.
    pub fn state(&self) -> RunState {
        match self {
            To::Waiting { .. } | To::Deferred { .. } => RunState::Waiting,
            To::Running { .. } => RunState::Running,
            To::Unknown { .. } => RunState::Unknown,
        }
    }
}

/// What became of a [`Move`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Done; the run has this version now.
    Done(i64),
    /// Control wants the run cancelled: [`Store::answer_cancel`] first.
    Cancelling,
    /// The run is over, or somebody else moved it.
    Stale,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// Which run.
    pub run: RunId,
    /// How it ended.
    pub outcome: Outcome,
    /// Only if the run still has this version: for what the engine concludes, as against what an executor reports.
    pub version: Option<i64>,
    /// The executor it was sent to, if the caller knows better than the row. Kept also for a run that is over.
    pub address: Option<String>,
}

/// What became of an [`Ending`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The run is over now, and what follows is open.
    Applied,
    /// The same, in place of `Lost`.
    Late,
    /// The run was over already; nothing changed.
    Duplicate,
    /// The run has moved on since; nothing changed.
    Stale,
    /// There is no such run.
    Missing,
}

/// Decides what follows the end of a run. Pure.
pub trait Ender: Send + Sync {
    /// The outcome that is recorded for a run in place of the one that was reported.
    fn recorded(&self, _run: &Run, reported: &Outcome) -> Outcome {
        reported.clone()
    }

    /// What follows. The store adds what only it can know: for a run in shards, children that run once and the
    /// re-arming wait until the last shard is over.
    fn follow(&self, job: &Job, run: &Run, outcome: &Outcome) -> FollowUps;
}

/// What follows the end of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FollowUps {
    /// The same fire and shard again, as the next attempt, due then.
    pub retry_at: Option<Timestamp>,
    /// These jobs run (once for the fire, or for each shard, as [`JobSpec::children_mode`] says). The store
    /// leaves out those that do not exist.
    pub children: Vec<JobId>,
    /// People are to be told.
    pub trouble: Option<Trouble>,
    /// The job's next fire, for a fixed delay. Only written while the job is enabled and has none.
    pub rearm: Option<NextFire>,
}

/// A run whose owner is gone.
#[derive(Clone, Debug)]
pub struct Abandoned {
    /// The run,
    pub run: Run,
    /// its job as it is now, if there still is one,
    pub job: Option<Arc<Job>>,
    /// and until when its owner may have sent it, if that is known.
    pub lease_until: Option<Timestamp>,
}

/// A run to be looked at.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The run,
    pub run: Run,
    /// and its job, if there still is one.
    pub job: Option<Arc<Job>>,
}

/// Somebody must be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Its row.
    pub id: i64,
    /// The job it is about.
    pub job: JobId,
    /// The run, if there was one.
    pub run: Option<RunId>,
    /// What to say.
    pub trouble: Trouble,
    /// How often it was taken to be told, this time included.
    pub tries: u32,
}

/// How long things are kept.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Runs that ended before this, and their logs.
    pub runs_before: Timestamp,
    /// Runs beyond about so many, and their logs, the oldest first.
    pub runs_max: Option<u64>,
    /// Entries of the history, idempotency keys, dead nodes.
    pub history_before: Timestamp,
}

/// A change to a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// Its schedule fires from now on: first at its first instant after now.
    Start,
    /// Its schedule fires no more; what it has opened and nobody has sent is cancelled.
    Stop,
    /// A new definition; the old schedule's unsent instants after now are cancelled.
    Edit {
        /// The new definition.
        spec: Box<JobSpec>,
        /// Only if this is still its revision.
        revision: Option<i64>,
    },
    /// A new definition, and all that belongs to it: all of it or nothing.
    Put {
        /// The new definition. One that is the job's already changes nothing.
        spec: Box<JobSpec>,
        /// Only if this is still its revision.
        revision: Option<i64>,
        /// Whether its schedule fires from now on; as before where nothing is said.
        enabled: Option<bool>,
        /// The words by which people find it, in place of those it has.
        tags: Vec<String>,
    },
    /// It is gone; all its unsent runs are cancelled.
    Delete,
}

/// A job to be added, with all that belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// Its definition.
    pub spec: JobSpec,
    /// Whether its schedule fires from now on.
    pub enabled: bool,
    /// The words by which people find it.
    pub tags: Vec<String>,
}

/// What a [`Control`] did.
#[derive(Clone, Debug)]
pub struct Controlled {
    /// When it took effect, by the database's clock.
    pub at: Timestamp,
    /// How many runs wait for their nodes to confirm that they are cancelled.
    pub cancelling: u64,
    /// Runs are left that [`Store::withdraw`] has to withdraw.
    pub more: bool,
}

/// The answer to a [`Store::declare`].
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// The job.
    pub job: JobId,
    /// How it was before; `None` for one that is new.
    pub before: Option<JobSpec>,
    /// How it is.
    pub after: JobSpec,
    /// The fields that are not what the program says, since somebody has changed them.
    pub overridden: Vec<&'static str>,
    /// How many runs wait for their nodes to confirm that they are cancelled.
    pub cancelling: u64,
}

impl Declared {
    /// Whether the job is another than before.
    pub fn is_change(&self) -> bool {
        self.before.as_ref() != Some(&self.after)
    }
}

/// Whether a run that control wanted cancelled was still there to cancel.
#[derive(Clone, Debug, PartialEq)]
pub struct CancelAnswer {
    /// Which run,
    pub run: RunId,
    /// as the caller saw it.
    pub version: i64,
    /// `None`: not sent, and never will be. Otherwise where it is now: running or unknown.
    pub sent: Option<To>,
}

/// A run asked for by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Makes asking twice harmless.
    pub key: i64,
    /// When; the database's now, if nothing is said.
    pub at: Option<Timestamp>,
    /// Instead of the job's parameter.
    pub param: Option<String>,
    /// Instead of the job's route.
    pub address: Option<String>,
}

/// A run as the log remembers it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// Its name.
    pub id: RunId,
    /// Its job.
    pub job: JobId,
    /// The instant it stands for, in whole seconds where only the log remembers it.
    pub scheduled_at: Timestamp,
    /// Its state. Of a run that is over: `Succeeded`, `Failed` (also refused, lost and cancelled ones, as XXL-JOB's log
    /// knows no others) or `TimedOut`.
    pub state: RunState,
    /// Where it was sent.
    pub address: Option<String>,
    /// What was said at its end.
    pub message: Option<String>,
}

/// What became of instants that were not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Its row.
    pub id: i64,
    /// The job.
    pub job: JobId,
    /// What became of which instants.
    pub unsent: Unsent,
    /// The run it was coalesced into, or that was cancelled, blocked or lost.
    pub run: Option<RunId>,
    /// When that was decided.
    pub at: Timestamp,
}

/// Reaches executors.
#[async_trait]
pub trait Dispatch: Send + Sync {
    /// Sends a run. The request leaves within `within`, or never. Returns when the answer is in or will not
    /// come; bounded by the implementation.
    async fn send(&self, order: &Order, within: Duration) -> Receipt;

    /// Asks the executor of a run what it knows of it.
    async fn probe(&self, run: &Run, job: Option<&Job>) -> Probe;

    /// Asks the executor to end a run, once, and returns its answer. Bounded by the implementation.
    async fn kill(&self, run: &Run, job: Option<&Job>) -> KillAnswer;

    /// Whether a run must be marked running before it is sent. Executors that die with the node need this:
    /// nobody could be asked afterwards whether they had begun. Then a claimed run of a dead node is certainly
    /// unsent.
    fn marks_first(&self) -> bool {
        false
    }

    /// Whether runs are going on that would die with this node: a stopping engine gives them time.
    fn is_busy(&self) -> bool {
        false
    }
}

/// An executor's answer to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It took it.
    Accepted {
        /// Which executor.
        address: String,
    },
    /// It certainly did not take it.
    Refused {
        /// Why.
        reason: String,
    },
    /// No executor was asked: this node holds back its calls to those that it may send the run to.
    Deferred {
        /// Why.
        reason: String,
    },
    /// Nobody knows.
    Unknown {
        /// Which executor.
        address: Option<String>,
        /// What happened.
        reason: String,
    },
}

/// An executor's answer to the request to end a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KillAnswer {
    /// It ends, or has ended, the run.
    Ended,
    /// It has no such run: its result is on its way, or it never arrived.
    NotThere,
    /// It does not end it.
    Refused(String),
    /// It could not be asked, or did not answer.
    Unheard(String),
}

/// An executor's answer to the question about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It has it.
    Started,
    /// It has it, or had it: this executor, of several that were asked.
    StartedAt(String),
    /// It had it and is idle now: the result is on its way, or was lost.
    Finished,
    /// It does not know it and is idle.
    Denied,
    /// The executor that had it is certainly dead.
    Dead,
    /// No answer, or none that says anything.
    Silent,
}

/// Tells people.
#[async_trait]
pub trait Alarms: Send + Sync {
    /// Delivers an alert, or says why it could not be; it is then tried again later.
    async fn raise(&self, alert: &Alert) -> Result<(), String>;
}

/// Is told how the engine is doing, for metrics. Called on the way of every run, so it must not wait.
pub trait Observer: Send + Sync {
    /// A run leaves, this long after it was due.
    fn leaves(&self, _late: Duration) {}

    /// A claim brought these runs and took so long, its commit included.
    fn claimed(&self, _orders: &[Order], _took: Duration) {}

    /// Writing down the ends of so many runs took so long, the commit included.
    fn completed(&self, _runs: usize, _took: Duration) {}

    /// A run is over, and that is written down.
    fn over(&self, _run: RunId, _outcome: &Outcome) {}
}

/// Looks away.
impl Observer for () {}

/// What went wrong with the store, by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Nothing happened; try again.
    #[error("the database did not answer ({0}); nothing was changed")]
    Unavailable(String),
    /// Nothing happened, since the database has no room for it; a person must make some.
    #[error("the disk of the database is full ({0}); nothing was changed")]
    DiskFull(String),
    /// It may or may not have happened; read by key, or repeat what is harmless to repeat.
    #[error("the connection was lost while committing ({0}); whether it was done is not known")]
    CommitUnknown(String),
    /// This life of the node is over: drop everything and join anew.
    #[error("node {0} has been declared dead by the others; it must join again")]
    Fenced(Node),
    /// Somebody else was first.
    #[error("{0}")]
    Conflict(String),
    /// There is no such job.
    #[error("there is no job {0}")]
    NoSuchJob(JobId),
    /// The request can never succeed.
    #[error("{0}")]
    Invalid(String),
    /// The database is not what it should be; a person must look.
    #[error("{0}")]
    Schema(String),
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, StoreError::Unavailable(_) | StoreError::DiskFull(_) | StoreError::CommitUnknown(_))
    }
}

/// The disposition under which a run's end is remembered in the history, if it is.
pub fn disposition_of(outcome: &Outcome) -> Option<Disposition> {
    match outcome {
        Outcome::Lost(_) => Some(Disposition::Lost),
        Outcome::Cancelled(_) => Some(Disposition::Cancelled),
        Outcome::Dropped(disposition, _) => Some(*disposition),
        _ => None,
    }
}
