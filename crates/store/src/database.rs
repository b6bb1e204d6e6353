//! The store: each method is one transaction, which is retried after a collision with others.

use std::ops::ControlFlow;
use std::time::Duration;

use async_trait::async_trait;
use cron::Zone;
use engine::policy::Repeats;
use engine::{
    Abandoned, Adopted, Advance, Agenda, Alert, AppId, Backfill, BackfillChange, BackfillId, CancelAnswer,
    Change, Changes, Claim, Declaration, Declared, Ender, Ending, Filled, Heartbeat, HistoryEntry, Incident,
    Job, JobId, JobRange, JobSpec, Joined, Kept, LIFELINE_GRACE, LifelineId, Lifelines, Move, Moved,
    NewBackfill, Node, Order, Outcome, Planner, Pulse, Retention, Run, RunId, RunRecord, Slots, Store,
    StoreError, Trigger, Verdict, Watched, WorkflowEvent,
};
use timer::Timestamp;

use crate::calendars::Calendars;
use crate::health::Health;
use crate::records::apps;
use crate::schema::{Dialect, Schema};
use crate::session::{Backend, Session, SessionError};
use crate::wall::Wall;
use crate::workflows::{self, Graphs};
use crate::{
    JavaAdmins, Options, adopt, agenda, alerts, backfills, changes, claim, complete, control, declare,
    foreign, history, jobs, moves, nodes, prune, read, withdraw,
};

/// A database with all data of the scheduling centre: the engine's [`Store`], and the methods in `records`.
pub struct Database {
    backend: Box<dyn Backend>,
    pub(crate) tables: Tables,
    pub(crate) health: Health,
    #[cfg(feature = "conformance")]
    faults: std::sync::Arc<crate::faults::Faults>,
}

/// Facts about the database's tables that the steps need.
pub struct Tables {
    pub schema: Schema,
    pub wall: Wall,
    /// Zone of cron jobs without a zone.
    pub zone: Zone,
    /// Whether Java admins may use the same tables.
    pub beside_java: bool,
    /// Whether results that they store are read. As `beside_java`, except for a deliberate bug.
    pub sees_results: bool,
    /// Whether fires that they have taken ahead are respected. As `beside_java`, except for a deliberate bug.
    pub sees_taken: bool,
    /// Whether the place of a run that ended is given once, whatever is reported later. False only as a deliberate bug.
    pub frees_places_once: bool,
    /// The query for jobs, before its conditions.
    pub select_jobs: String,
    /// How repeated incidents are grouped into one alert.
    pub repeats: Option<Repeats>,
    /// Checked definitions of workflows.
    pub graphs: Graphs,
    /// Days of work calendars.
    pub calendars: Calendars,
    /// Rules of workflows that a deliberate bug ignores. None otherwise.
    pub broken_rule: Option<BrokenRule>,
}

/// A rule of workflows that a store with a deliberate bug ignores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenRule {
    /// A resumed run keeps only steps that succeeded.
    FailedSteps,
    /// A step waits for all its needs.
    OpenNeeds,
    /// An end counts once.
    CountedEnds,
    /// A skip counts at the steps that need the skipped one.
    Skips,
    /// A run keeps its definition.
    OwnDefinition,
    /// The newest run of a scheduled time decides about the steps that depend on it.
    NewestRuns,
    /// A step that depends on runs of a job is registered before it looks at them.
    RegisteredFirst,
    /// A step that can never open ends.
    Unreached,
    /// The first decision about a step counts.
    FirstDecision,
}

impl Tables {
    /// Whether all failed runs are in `tw_failed`: Java admins do not add theirs.
    pub fn lists_failed(&self) -> bool {
        !self.beside_java && !self.schema.was_xxl_jobs()
    }
}

/// Runs the steps, an expression of the session `$s`, in a transaction; retries it after a collision. A macro,
/// because a closure cannot lend a session to its caller for the lifetime of its future.
macro_rules! transaction {
    ($store:ident, $s:ident => $steps:expr) => {{
        let mut tries = 0;
        loop {
            let attempt = async {
                let mut session = $store.begin().await?;
                let $s = &mut *session;
                let result = $steps.await?;
                session.commit().await?;
                Ok(result)
            };
            let again = $crate::database::again(attempt.await, &mut tries).await;
            if let std::ops::ControlFlow::Break(result) = again {
                $store.health.note(&result);
                break result;
            }
        }
    }};
}

pub(crate) use transaction;

/// Runs one statement, an expression of the session `$s`, that commits by itself and may be repeated.
macro_rules! single {
    ($store:ident, $s:ident => $statement:expr) => {{
        let mut tries = 0;
        loop {
            let attempt = async {
                let mut session = $store.single().await?;
                let $s = &mut *session;
                $statement.await
            };
            if let ControlFlow::Break(result) = again(attempt.await, &mut tries).await {
                $store.health.note(&result);
                break result;
            }
        }
    }};
}

impl Database {
    pub(crate) fn new(backend: impl Backend, options: &Options) -> Self {
        let schema = backend.schema().clone();
        let beside_java = match options.java_admins {
            JavaAdmins::Auto => schema.was_xxl_jobs(),
            JavaAdmins::Beside => true,
            JavaAdmins::None => false,
        };
        let (wall, zone, repeats) = (Wall::new(&options.zone), options.zone.clone(), options.repeats);
        let select_jobs = jobs::select_from(&schema);
        let (sees_results, sees_taken) = (beside_java, beside_java);
        let graphs = Graphs::default();
        let tables = Tables {
            schema,
            wall,
            zone,
            beside_java,
            sees_results,
            sees_taken,
            frees_places_once: true,
            select_jobs,
            repeats,
            graphs,
            calendars: Calendars::default(),
            broken_rule: None,
        };
        Database {
            backend: Box::new(backend),
            tables,
            health: Health::default(),
            #[cfg(feature = "conformance")]
            faults: Default::default(),
        }
    }

    /// Ends every incarnation, for a database that no other process can have open.
    pub(crate) async fn end_all_lives(&self) -> Result<(), StoreError> {
        transaction!(self, s => nodes::end_all_lives(s))
    }

    /// Lets a restarted process skip waiting for its previous lease: a name belongs to one process at a time, so if
    /// the lifeline of an earlier incarnation is broken, that process is dead.
    async fn end_earlier_leases(&self, name: &str) -> Result<(), StoreError> {
        let earlier: Vec<LifelineId> = transaction!(self, s => nodes::earlier_lifelines(s, name))?;
        let broken = self.backend.broken(&earlier).await.map_err(surfaced)?;
        if broken.is_empty() {
            return Ok(());
        }
        // If it is alive after all, it has stopped dispatching by then, if others depended on that.
        tokio::time::sleep(LIFELINE_GRACE).await;
        transaction!(self, s => nodes::end_leases(s, name, &broken))
    }

    pub(crate) async fn begin(&self) -> Result<Box<dyn Session>, SessionError> {
        let session = self.backend.begin().await?;
        #[cfg(feature = "conformance")]
        let session = self.faults.watch(session);
        Ok(session)
    }

    async fn single(&self) -> Result<Box<dyn Session>, SessionError> {
        let session = self.backend.single().await?;
        #[cfg(feature = "conformance")]
        let session = self.faults.watch(session);
        Ok(session)
    }

    /// Adds many started jobs of one definition in few transactions, for tests and benchmarks: they all fire first,
    /// and are claimed, at `next`.
    #[cfg(feature = "conformance")]
    pub async fn add_started_jobs(
        &self,
        spec: &JobSpec,
        count: usize,
        next: Timestamp,
    ) -> Result<Vec<JobId>, StoreError> {
        let mut added = Vec::with_capacity(count);
        while added.len() < count {
            let some = (count - added.len()).min(500);
            let result: Result<_, StoreError> =
                transaction!(self, s => control::add_started_jobs(s, &self.tables, spec, some, next));
            added.extend(result?);
        }
        Ok(added)
    }

    /// Enables a deliberate bug, to prove that the tests find it.
    #[cfg(feature = "conformance")]
    pub fn ignore(&mut self, ignored: Ignored) {
        match ignored {
            Ignored::StoredResults => self.tables.sees_results = false,
            Ignored::TakenFires => self.tables.sees_taken = false,
            Ignored::Rule(rule) => self.tables.broken_rule = Some(rule),
            Ignored::FreedPlaces => self.tables.frees_places_once = false,
        }
    }

    /// From now on commits will be lost, as with an asynchronous standby that lags behind. Only for SQLite.
    #[cfg(feature = "conformance")]
    pub async fn begin_losing(&self) -> Result<(), StoreError> {
        self.backend.doom().await.map_err(surfaced)
    }

    /// Loses all commits since [`begin_losing`](Database::begin_losing).
    #[cfg(feature = "conformance")]
    pub async fn lose_commits(&self) -> Result<(), StoreError> {
        self.backend.lose().await.map_err(surfaced)
    }

    /// Fault injection for tests.
    #[cfg(feature = "conformance")]
    pub fn faults(&self) -> std::sync::Arc<crate::faults::Faults> {
        self.faults.clone()
    }
}

/// What a store with a deliberate bug ignores.
#[cfg(feature = "conformance")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// Results that a Java admin stored for runs of ours.
    StoredResults,
    /// Fires that a Java admin has taken ahead.
    TakenFires,
    /// A rule of workflows.
    Rule(BrokenRule),
    /// That the place of a run in a backfill was given to the next one already.
    FreedPlaces,
}

/// Whether to retry: after a collision, with a random backoff that grows, so that the colliding transactions spread
/// out.
pub async fn again<T>(
    result: Result<T, SessionError>,
    tries: &mut u32,
) -> ControlFlow<Result<T, StoreError>> {
    match result {
        Err(SessionError::Collision(reason)) if *tries < TRIES => {
            *tries += 1;
            tracing::debug!(reason, tries, "a transaction conflicted with others; retrying it");
            let most = PAUSE_MS << *tries;
            tokio::time::sleep(Duration::from_millis(fastrand::u64(0..=most))).await;
            ControlFlow::Continue(())
        }
        other => ControlFlow::Break(other.map_err(surfaced)),
    }
}

/// Enough for some dozen transactions on the same rows, all of which succeed in turn.
const TRIES: u32 = 8;

/// Doubled before it is first used.
const PAUSE_MS: u64 = 1;

/// Converts the error for the caller of the store.
pub fn surfaced(error: SessionError) -> StoreError {
    match error {
        SessionError::Collision(reason) => {
            StoreError::Unavailable(format!("the transaction conflicted with others at every try: {reason}"))
        }
        SessionError::Store(error) => error,
    }
}

#[async_trait]
impl Store for Database {
    fn has_one_writer(&self) -> bool {
        self.tables.schema.dialect() == Dialect::Sqlite
    }

    async fn join(&self, name: &str, lease: Duration) -> Result<Joined, StoreError> {
        // A node works without a lifeline, with its lease alone.
        let lifeline = self.backend.lifelines().await.ok().flatten().map(|lifelines| lifelines.own);
        let joined = transaction!(self, s => nodes::join(s, name, lease, lifeline))?;
        if lifeline.is_some() {
            self.end_earlier_leases(name).await?;
        }
        Ok(joined)
    }

    async fn lifelines(&self) -> Result<Option<Lifelines>, StoreError> {
        self.backend.lifelines().await.map_err(surfaced)
    }

    async fn depend_on(&self, node: &Node, lifeline: Option<LifelineId>) -> Result<(), StoreError> {
        transaction!(self, s => nodes::depend_on(s, node, lifeline))
    }

    async fn fence_broken(&self, broken: &[LifelineId]) -> Result<Vec<Node>, StoreError> {
        transaction!(self, s => nodes::fence_broken(s, broken))
    }

    async fn heartbeat(&self, node: &Node, lease: Duration, beat: Heartbeat) -> Result<Pulse, StoreError> {
        single!(self, s => nodes::heartbeat(s, node, lease, beat))
    }

    fn connections(&self) -> u64 {
        self.backend.connections()
    }

    async fn kept(&self, runs: &[RunId]) -> Result<Kept, StoreError> {
        single!(self, s => history::kept(s, runs))
    }

    async fn skip_run_ids(&self, past: RunId) -> Result<(), StoreError> {
        single!(self, s => history::skip_run_ids(s, self.tables.schema.dialect(), past))
    }

    async fn raise(&self, now: Timestamp, incidents: &[Incident]) -> Result<(), StoreError> {
        transaction!(self, s => history::raise(s, &self.tables, now, incidents))
    }

    async fn agenda(&self, running: bool) -> Result<Agenda, StoreError> {
        let agenda: Agenda = single!(self, s => agenda::agenda(s, running))?;
        let now = self.backend.clock().unwrap_or(agenda.now);
        Ok(Agenda { now, ..agenda })
    }

    async fn fence(&self, node: &Node) -> Result<bool, StoreError> {
        transaction!(self, s => nodes::fence(s, node))
    }

    async fn leave(&self, node: &Node) -> Result<(), StoreError> {
        transaction!(self, s => nodes::leave(s, &self.tables, node))
    }

    async fn claim_due(
        &self,
        node: &Node,
        now: Timestamp,
        slots: Slots,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Claim, StoreError> {
        transaction!(self, s => claim::claim_due(s, &self.tables, node, now, slots, max, planner))
    }

    async fn claim_waiting(
        &self,
        node: &Node,
        now: Timestamp,
        slots: Slots,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Claim, StoreError> {
        transaction!(self, s => claim::claim_waiting(s, &self.tables, node, now, slots, max, planner))
    }

    async fn owned(
        &self,
        node: &Node,
        after: Option<RunId>,
        max: usize,
    ) -> Result<(Vec<Order>, Option<RunId>), StoreError> {
        transaction!(self, s => read::owned(s, &self.tables, node, after, max))
    }

    async fn open_runs(&self, ids: &[RunId]) -> Result<Vec<Run>, StoreError> {
        transaction!(self, s => read::open_runs(s, ids))
    }

    async fn move_runs(&self, moves: &[Move]) -> Result<Vec<Moved>, StoreError> {
        transaction!(self, s => moves::move_runs(s, &self.tables, moves))
    }

    async fn complete(
        &self,
        now: Timestamp,
        endings: &[Ending],
        ender: &dyn Ender,
    ) -> Result<Vec<Verdict>, StoreError> {
        transaction!(self, s => complete::complete(s, &self.tables, now, endings, ender))
    }

    async fn open_workflow(&self, now: Timestamp, run: &Run, job: &Job) -> Result<Moved, StoreError> {
        transaction!(self, s => workflows::open(s, &self.tables, now, run, job))
    }

    async fn tell_workflow(&self, run: RunId, event: WorkflowEvent) -> Result<bool, StoreError> {
        transaction!(self, s => workflows::tell(s, run, event))
    }

    async fn advance_workflows(
        &self,
        node: &Node,
        now: Timestamp,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Advance, StoreError> {
        transaction!(self, s => workflows::advance::advance(s, &self.tables, node, now, max, planner))
    }

    async fn start_backfill(&self, job: JobId, new: &NewBackfill) -> Result<BackfillId, StoreError> {
        transaction!(self, s => backfills::start(s, &self.tables, job, new))
    }

    async fn change_backfill(&self, id: BackfillId, change: BackfillChange) -> Result<Backfill, StoreError> {
        transaction!(self, s => backfills::change(s, id, change))
    }

    async fn advance_backfills(&self, now: Timestamp, max: usize) -> Result<Filled, StoreError> {
        transaction!(self, s => backfills::advance::advance(s, &self.tables, now, max))
    }

    async fn backfill_runs(&self, id: BackfillId) -> Result<Vec<RunId>, StoreError> {
        transaction!(self, s => backfills::open_runs(s, id))
    }

    async fn abandoned(&self, running: bool, max: usize) -> Result<Vec<Abandoned>, StoreError> {
        transaction!(self, s => read::abandoned(s, &self.tables, running, max))
    }

    async fn overdue(&self, now: Timestamp, max: usize) -> Result<Vec<Watched>, StoreError> {
        transaction!(self, s => read::overdue(s, &self.tables, now, max))
    }

    async fn stored_results(&self, max: usize) -> Result<Vec<(RunId, Outcome)>, StoreError> {
        if !self.tables.sees_results {
            return Ok(Vec::new());
        }
        transaction!(self, s => foreign::results(s, max))
    }

    async fn jobs_to_adopt(&self) -> Result<u64, StoreError> {
        transaction!(self, s => adopt::jobs_to_adopt(s, &self.tables))
    }

    async fn others_wrote(&self) -> Result<bool, StoreError> {
        self.backend.others_wrote().await.map_err(surfaced)
    }

    async fn has_changed_jobs(&self, range: JobRange) -> Result<bool, StoreError> {
        transaction!(self, s => adopt::has_changed_jobs(s, &self.tables, range))
    }

    async fn jobs_after(&self, after: JobId, count: usize) -> Result<JobRange, StoreError> {
        transaction!(self, s => adopt::jobs_after(s, after, count))
    }

    async fn forget_deleted(&self, range: JobRange, max: usize) -> Result<usize, StoreError> {
        transaction!(self, s => adopt::forget_deleted(s, range, max))
    }

    async fn adopt(&self, range: JobRange, max: usize, planner: &dyn Planner) -> Result<Adopted, StoreError> {
        transaction!(self, s => adopt::adopt(s, &self.tables, range, max, planner))
    }

    async fn take_alerts(
        &self,
        now: Timestamp,
        lease: Duration,
        max: usize,
    ) -> Result<Vec<Alert>, StoreError> {
        transaction!(self, s => alerts::take_alerts(s, now, lease, max))
    }

    async fn forget_alerts(&self, ids: &[i64]) -> Result<(), StoreError> {
        transaction!(self, s => alerts::forget_alerts(s, ids))
    }

    async fn delay_alert(&self, id: i64, until: Timestamp) -> Result<(), StoreError> {
        transaction!(self, s => alerts::delay_alert(s, id, until))
    }

    async fn prune(&self, retention: &Retention, max: usize) -> Result<usize, StoreError> {
        transaction!(self, s => prune::prune(s, &self.tables, retention, max))
    }

    async fn ensure_app(&self, name: &str) -> Result<AppId, StoreError> {
        transaction!(self, s => apps::ensure_app(s, &self.tables, name))
    }

    async fn create_job(&self, spec: &JobSpec) -> Result<JobId, StoreError> {
        transaction!(self, s => changes::create_job(s, &self.tables, spec))
    }

    async fn change_jobs(
        &self,
        changes: &[Change],
        atomic: bool,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Changes, StoreError> {
        transaction!(self, s => changes::change_jobs(s, &self.tables, changes, atomic, max, planner))
    }

    async fn hold_back(&self, jobs: &[JobId], max: usize) -> Result<Vec<JobId>, StoreError> {
        transaction!(self, s => changes::hold_back(s, jobs, max))
    }

    async fn withdraw(&self, jobs: &[JobId], max: usize) -> Result<Vec<JobId>, StoreError> {
        transaction!(self, s => withdraw::withdraw(s, &self.tables, jobs, max))
    }

    async fn withdrawals(&self, before: Timestamp, max: usize) -> Result<Vec<JobId>, StoreError> {
        transaction!(self, s => withdraw::withdrawals(s, before, max))
    }

    async fn open_by_app(&self, above: u64) -> Result<Vec<(AppId, u64)>, StoreError> {
        transaction!(self, s => read::open_by_app(s, above))
    }

    async fn declare(
        &self,
        declaration: &Declaration,
        key: &str,
        planner: &dyn Planner,
    ) -> Result<Declared, StoreError> {
        transaction!(self, s => declare::declare(s, &self.tables, declaration, key, planner))
    }

    async fn cancelling(&self, jobs: &[JobId]) -> Result<Vec<(JobId, u64)>, StoreError> {
        let ids: Vec<i64> = jobs.iter().map(|job| job.0).collect();
        transaction!(self, s => control::cancelling(s, &ids))
    }

    async fn asked_to_cancel(
        &self,
        node: &Node,
        after: Option<RunId>,
        max: usize,
    ) -> Result<Vec<Run>, StoreError> {
        transaction!(self, s => read::asked_to_cancel(s, node, after, max))
    }

    async fn answer_cancel(&self, answers: &[CancelAnswer], planner: &dyn Planner) -> Result<(), StoreError> {
        transaction!(self, s => control::answer_cancel(s, &self.tables, answers, planner))
    }

    async fn request_cancel(&self, run: RunId) -> Result<bool, StoreError> {
        transaction!(self, s => control::request_cancel(s, run))
    }

    async fn trigger(&self, job: JobId, trigger: &Trigger) -> Result<RunId, StoreError> {
        transaction!(self, s => control::trigger(s, &self.tables, job, trigger))
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        transaction!(self, s => read::job(s, &self.tables, id))
    }

    async fn job_by_key(&self, key: &str) -> Result<Option<Job>, StoreError> {
        transaction!(self, s => read::job_by_key(s, &self.tables, key))
    }

    async fn jobs(&self, after: Option<JobId>, max: usize) -> Result<Vec<Job>, StoreError> {
        transaction!(self, s => read::jobs(s, &self.tables, after, max))
    }

    async fn runs(&self, job: JobId, after: Option<RunId>, max: usize) -> Result<Vec<RunRecord>, StoreError> {
        transaction!(self, s => read::runs(s, &self.tables, job, after, max))
    }

    async fn history(
        &self,
        job: JobId,
        after: Option<i64>,
        max: usize,
    ) -> Result<Vec<HistoryEntry>, StoreError> {
        transaction!(self, s => read::history(s, job, after, max))
    }
}
