//! The store as seen by one node: over a connection that fails, hangs, and loses commits.
//!
//! It wraps the real store for an engine and records every commit, regardless of the response that the engine
//! received.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cron::Timestamp;
use engine::policy::Misfire;
use engine::*;

use super::clock::{Ms, SimClock};
use super::dice::Dice;
use super::evidence::{Beat, ClaimSeen, Ended, Evidence};
use super::lifelines::Lifeline;
use super::node::Gate;
use super::world::World;

/// One node's connection to the database.
pub struct Faulty {
    /// Index of the node.
    pub node: usize,
    /// The simulation it belongs to.
    pub world: Arc<World>,
    /// The real store.
    pub store: Arc<dyn Store>,
    /// Crashes the node.
    pub gate: Arc<Gate>,
    /// The node's clock.
    pub clock: SimClock,
    /// Decides the fate of each call.
    pub dice: Mutex<Dice>,
    /// The node's session lock, while it has one.
    pub lifeline: Mutex<Option<Lifeline>>,
    /// Whether a sweep for jobs that others wrote has ended.
    pub has_swept: AtomicBool,
    /// Deliberate bugs.
    pub bugs: Bugs,
}

/// Faults and delays of one call.
struct Fate {
    before: Duration,
    kind: Kind,
    after: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Fine,
    /// Not executed, and the caller gets an error.
    Error,
    /// Not executed, and the caller does not know.
    LostBefore,
    /// Executed, and the caller does not know.
    LostAfter,
    /// Executed, and the node crashes.
    Crash,
}

pub(super) type Call<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

impl Faulty {
    /// Performs one call with all its possible faults. `seen` records the committed result.
    pub(super) async fn call<T: Send>(
        &self,
        what: &'static str,
        inner: Call<'_, T>,
        seen: impl FnOnce(&mut Evidence, Ms, &T) + Send,
    ) -> Result<T, StoreError> {
        let started = self.world.now();
        let fate = self.fate();
        if self.is_cut() {
            self.trouble(started, false);
            self.world.sleep(fate.before).await;
            return Err(StoreError::Unavailable("the simulated connection is cut".into()));
        }
        if fate.before + fate.after > SLOW {
            let until = started + (fate.before + fate.after).as_millis() as Ms;
            self.world.trouble(self.node, started, until + AFTERMATH, false);
        }
        self.world.sleep(fate.before).await;
        if self.is_cut() {
            self.trouble(started, false);
            return Err(StoreError::Unavailable("the simulated connection was cut".into()));
        }
        match fate.kind {
            Kind::Error => {
                self.world.note(|| format!("n{} {what}: fails", self.node));
                self.trouble(started, false);
                return Err(StoreError::Unavailable("a simulated error".into()));
            }
            Kind::LostBefore => {
                self.world.note(|| format!("n{} {what}: lost before its commit", self.node));
                self.trouble(started, false);
                return Err(StoreError::CommitUnknown("lost before the simulated commit".into()));
            }
            Kind::Fine | Kind::LostAfter | Kind::Crash => {}
        }
        let result = inner.await;
        match &result {
            Ok(value) => seen(&mut self.world.evidence(), self.world.now(), value),
            Err(error) => self.world.note(|| format!("n{} {what}: {error}", self.node)),
        }
        if fate.kind == Kind::Crash {
            self.world.note(|| format!("n{} {what}: committed, and the node dies", self.node));
            self.gate.crash();
            std::future::pending::<()>().await;
        }
        self.world.sleep(fate.after).await;
        if fate.kind == Kind::LostAfter || self.is_cut() {
            self.world.note(|| format!("n{} {what}: lost after its commit", self.node));
            self.trouble(started, false);
            return Err(StoreError::CommitUnknown("lost after the simulated commit".into()));
        }
        result
    }

    fn fate(&self) -> Fate {
        let levels = self.world.levels();
        let mut dice = self.dice.lock().expect("no holder of this lock panics");
        let latency = dice.number(0, levels.latency);
        let slow = if dice.chance(levels.store_slow) { dice.number(200, 3_000) } else { 0 };
        let share_before = dice.number(0, 100);
        let total = latency + slow;
        let before = total * share_before / 100;
        let kind = if dice.chance(levels.store_error) {
            Kind::Error
        } else if dice.chance(levels.commit_unknown) {
            if dice.chance(0.5) { Kind::LostBefore } else { Kind::LostAfter }
        } else if dice.chance(levels.crash_after_commit) {
            Kind::Crash
        } else {
            Kind::Fine
        };
        Fate {
            before: Duration::from_millis(before as u64),
            kind,
            after: Duration::from_millis((total - before) as u64),
        }
    }

    /// Breaks the connection of the node's session lock. The database may notice, or keep the lock.
    fn lose_lifeline(&self) {
        let noticed = self.dice.lock().expect("no holder of this lock panics").chance(0.5);
        let lost = self.lifeline.lock().expect("no holder of this lock panics").take();
        if let Some(lost) = lost.filter(|_| noticed) {
            self.world.locks.release(lost.id);
        }
    }

    fn is_cut(&self) -> bool {
        self.world.is_outage() || self.gate.is_cut()
    }

    /// Whether a deliberate bug discards this report.
    fn discards(&self, ending: &Ending) -> bool {
        let evidence = self.world.evidence();
        let is_ambiguous = |ended: &Ended| matches!(ended.outcome, Outcome::Ambiguous(_));
        let ended = || evidence.endings.iter().rev().find(|ended| ended.run == ending.run);
        ending.version.is_none()
            && (self.bugs.has(Sabotage::DropJavaResults) && evidence.java_runs.contains(&ending.run)
                || self.bugs.has(Sabotage::KeepAmbiguous) && ended().is_some_and(is_ambiguous))
    }

    fn discard(&self, ending: &Ending) {
        let text = ending.outcome.message().to_owned();
        self.world.evidence().durable.insert((ending.run, text));
        self.world.note(|| format!("n{} discards the result of {}", self.node, ending.run));
    }

    /// Records that the node has compared its clock with the database's.
    fn beat(&self) {
        let (at, skew) = (self.world.now(), self.clock.skew());
        self.world.evidence().beats.push(Beat { at, node: self.node, skew });
    }

    fn trouble(&self, from: Ms, severe: bool) {
        let until = self.world.now() + AFTERMATH;
        self.world.trouble(self.node, from, until, severe);
    }

    fn claimed(&self, evidence: &mut Evidence, at: Ms, orders: &[Order], node: &Node) {
        for order in orders {
            evidence.show(&order.run);
            evidence.state(at, order.run.id, order.run.state);
            let claims = &mut evidence.ledger.get_mut(&order.run.id).expect("just shown").claims;
            if claims.last().is_none_or(|last| last.life != *node) {
                claims.push(ClaimSeen { at, node: self.node, life: node.clone() });
            }
        }
        if !orders.is_empty() {
            let runs = || orders.iter().map(|order| order.run.id.to_string()).collect::<Vec<_>>().join(" ");
            self.world.note(|| format!("n{} claims {}", self.node, runs()));
        }
    }

    /// A node that knows its clock is wrong claims nothing new (I18).
    fn check_clock(&self, evidence: &mut Evidence, started: Ms, at: Ms, count: usize) {
        let beat = evidence
            .beats
            .iter()
            .rev()
            .find(|beat| beat.node == self.node && beat.at <= started - CLAIM_PERIOD);
        let Some(beat) = beat else { return };
        let undisturbed = !evidence
            .troubles
            .iter()
            .rev()
            .take(50)
            .any(|t| t.node == self.node && t.until >= beat.at && t.from <= at);
        if count > 0 && beat.skew.abs() > SKEW_CERTAIN && undisturbed && self.gate.alive_since() <= beat.at {
            // A later heartbeat may have corrected it.
            let wrong_all_along = evidence
                .beats
                .iter()
                .rev()
                .take_while(|later| later.at >= beat.at)
                .all(|later| later.node != self.node || later.skew.abs() > SKEW_CERTAIN);
            if wrong_all_along {
                let evidence_text = format!(
                    "node {} claimed {count} runs at {} with a clock off by {} ms",
                    self.node, at, beat.skew
                );
                evidence.broken.push(super::evidence::Violation { promise: "I18", evidence: evidence_text });
            }
        }
    }
}

/// Probability of a torn claim, if that bug is on.
const TORN: f64 = 0.02;

/// A call slower than this may make fires late.
const SLOW: Duration = Duration::from_millis(200);

/// How long a failed call delays the loop that made it.
const AFTERMATH: Ms = 400;

/// How long claims may go on after the clock was found wrong: the longest pause between two.
const CLAIM_PERIOD: Ms = 600;

/// A clock error that every measurement detects; nodes measure with the latency of their connection.
const SKEW_CERTAIN: Ms = 700;

/// A planner that records its calls.
struct WatchedPlanner<'a> {
    inner: &'a dyn Planner,
    world: &'a World,
    /// Whether it omits the rows.
    torn: bool,
}

impl Planner for WatchedPlanner<'_> {
    fn plan(&self, job: &Job) -> engine::Plan {
        self.plan_at_most(job, usize::MAX)
    }

    fn plan_at_most(&self, job: &Job, rows: usize) -> engine::Plan {
        let mut plan = self.inner.plan_at_most(job, rows);
        if self.torn {
            plan.fires.clear();
        }
        if job.spec.misfire == Misfire::FireOnce
            && plan.fires.iter().filter(|fire| fire.origin == Origin::Misfire).count() > 1
        {
            self.world.broken("I6", format!("job {} makes up more than once: {plan:?}", job.id));
        }
        plan
    }

    fn assign(&self, job: &Job, run: &Run) -> Assignment {
        self.world.evidence().show(run);
        let assignment = self.inner.assign(job, run);
        if !matches!(assignment, Assignment::Send(_)) {
            self.world.note(|| format!("run {} of job {} is not sent: {assignment:?}", run.id, run.job));
        }
        assignment
    }

    fn settle(&self, job: &Job, at: Timestamp) -> engine::Plan {
        self.inner.settle(job, at)
    }

    fn next_after(&self, job: &Job, after: Timestamp) -> NextFire {
        self.inner.next_after(job, after)
    }

    fn claim_at(&self, job: &Job, fire_at: Timestamp) -> Timestamp {
        self.inner.claim_at(job, fire_at)
    }

    fn look_ahead(&self) -> Duration {
        self.inner.look_ahead()
    }

    fn look_again_at(&self, now: Timestamp) -> Timestamp {
        self.inner.look_again_at(now)
    }

    fn blocks(&self, job: &Job, opened: u64) -> Option<String> {
        self.inner.blocks(job, opened)
    }
}

/// The same for follow-ups of a finished run.
struct WatchedEnder<'a> {
    inner: &'a dyn Ender,
    world: &'a World,
    /// Outcomes that were recorded instead of the reported ones.
    recorded: Mutex<BTreeMap<RunId, Outcome>>,
}

impl Ender for WatchedEnder<'_> {
    fn recorded(&self, run: &Run, reported: &Outcome) -> Outcome {
        let recorded = self.inner.recorded(run, reported);
        self.recorded.lock().expect("no holder of this lock panics").insert(run.id, recorded.clone());
        recorded
    }

    fn follow(&self, job: &Job, run: &Run, outcome: &Outcome) -> FollowUps {
        // For a lost run only the log is left, which does not have every field.
        if run.state != RunState::Lost {
            self.world.evidence().show(run);
        }
        self.inner.follow(job, run, outcome)
    }

    fn blocks(&self, child: &Job, opened: u64) -> Option<String> {
        self.inner.blocks(child, opened)
    }
}

impl Drop for Faulty {
    /// The process ends with its connections: the database notices immediately.
    fn drop(&mut self) {
        if let Some(lifeline) = self.lifeline.get_mut().expect("no holder of this lock panics").take() {
            self.world.locks.release(lifeline.id);
        }
    }
}

/// Records nothing.
pub(super) fn nothing<T>(_: &mut Evidence, _: Ms, _: &T) {}

#[async_trait]
impl Store for Faulty {
    async fn join(&self, name: &str, lease: Duration) -> Result<Joined, StoreError> {
        let joined = self
            .call("join", self.store.join(name, lease), |evidence, at, joined: &Joined| {
                // Its earlier incarnations have ended.
                let earlier = evidence.leases.iter_mut().filter(|(node, _)| node.name == name);
                earlier.for_each(|(_, until)| *until = at);
                evidence.leases.insert(joined.node.clone(), at + lease.as_millis() as Ms);
            })
            .await?;
        self.beat();
        Ok(joined)
    }

    async fn heartbeat(&self, node: &Node, lease: Duration, beat: Heartbeat) -> Result<Pulse, StoreError> {
        self.call("heartbeat", self.store.heartbeat(node, lease, beat), |evidence, at, pulse| {
            if *pulse == Pulse::Renewed {
                evidence.leases.insert(node.clone(), at + lease.as_millis() as Ms);
            }
        })
        .await
    }

    fn connections(&self) -> u64 {
        self.world.servers()
    }

    async fn kept(&self, runs: &[RunId]) -> Result<Kept, StoreError> {
        self.call("kept", self.store.kept(runs), nothing).await
    }

    async fn skip_run_ids(&self, past: RunId) -> Result<(), StoreError> {
        self.call("skip_run_ids", self.store.skip_run_ids(past), nothing).await
    }

    async fn raise(&self, now: Timestamp, incidents: &[Incident]) -> Result<(), StoreError> {
        self.call("raise", self.store.raise(now, incidents), nothing).await
    }

    async fn agenda(&self, running: bool) -> Result<Agenda, StoreError> {
        let mut agenda = self.call("agenda", self.store.agenda(running), nothing).await?;
        self.beat();
        if self.bugs.has(Sabotage::BlindToRegistrations) {
            agenda.registry = 0;
        }
        Ok(agenda)
    }

    async fn lifelines(&self) -> Result<Option<Lifelines>, StoreError> {
        if !self.world.plan.lifelines {
            return Ok(None);
        }
        let look = async {
            let mut lifeline = self.lifeline.lock().expect("no holder of this lock panics");
            let lifeline = lifeline.get_or_insert_with(|| Lifeline::new(&self.world.locks));
            Ok(Some(lifeline.look(&self.world.locks, self.world.now())))
        };
        self.call("lifelines", Box::pin(look), nothing).await.inspect_err(|_| self.lose_lifeline())
    }

    async fn depend_on(&self, node: &Node, lifeline: Option<LifelineId>) -> Result<(), StoreError> {
        self.call("depend_on", self.store.depend_on(node, lifeline), nothing).await
    }

    async fn fence_broken(&self, broken: &[LifelineId]) -> Result<Vec<Node>, StoreError> {
        self.call("fence_broken", self.store.fence_broken(broken), |evidence, at, dead| {
            for node in dead {
                let until = evidence.leases.entry(node.clone()).or_insert(at);
                *until = (*until).min(at);
            }
        })
        .await
    }

    async fn fence(&self, node: &Node) -> Result<bool, StoreError> {
        self.call("fence", self.store.fence(node), |evidence, at, over| {
            if *over && evidence.leases.get(node).is_some_and(|until| *until > at) {
                let text = format!("{node} was declared dead at {at}, before its lease was over");
                evidence.broken.push(super::evidence::Violation { promise: "I18", evidence: text });
            }
        })
        .await
    }

    async fn open_workflow(&self, now: Timestamp, run: &Run, job: &Job) -> Result<Moved, StoreError> {
        self.call("open_workflow", self.store.open_workflow(now, run, job), |evidence, at, moved| {
            if let Moved::Done(_) = moved {
                evidence.state(at, run.id, RunState::Running);
            }
        })
        .await
    }

    async fn tell_workflow(&self, run: RunId, event: WorkflowEvent) -> Result<bool, StoreError> {
        self.call("tell_workflow", self.store.tell_workflow(run, event), nothing).await
    }

    async fn advance_workflows(
        &self,
        node: &Node,
        now: Timestamp,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Advance, StoreError> {
        let started = self.world.now();
        let planner = WatchedPlanner { inner: planner, world: &self.world, torn: false };
        self.call(
            "advance_workflows",
            self.store.advance_workflows(node, now, max, &planner),
            |evidence, at, advance| {
                self.check_clock(evidence, started, at, advance.orders.len());
                self.claimed(evidence, at, &advance.orders, node);
            },
        )
        .await
    }

    async fn start_backfill(&self, job: JobId, new: &NewBackfill) -> Result<BackfillId, StoreError> {
        self.call("start_backfill", self.store.start_backfill(job, new), nothing).await
    }

    async fn change_backfill(&self, id: BackfillId, change: BackfillChange) -> Result<Backfill, StoreError> {
        self.call("change_backfill", self.store.change_backfill(id, change), nothing).await
    }

    async fn advance_backfills(&self, now: Timestamp, max: usize) -> Result<Filled, StoreError> {
        self.call("advance_backfills", self.store.advance_backfills(now, max), nothing).await
    }

    async fn backfill_runs(&self, id: BackfillId) -> Result<Vec<RunId>, StoreError> {
        self.call("backfill_runs", self.store.backfill_runs(id), nothing).await
    }

    async fn leave(&self, node: &Node) -> Result<(), StoreError> {
        self.call("leave", self.store.leave(node), |evidence, at, ()| {
            evidence.leases.insert(node.clone(), at);
        })
        .await
    }

    async fn claim_due(
        &self,
        node: &Node,
        now: Timestamp,
        slots: Slots,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Claim, StoreError> {
        let started = self.world.now();
        if !self.has_swept.load(Ordering::Relaxed) {
            self.world.broken("I1", format!("n{} claims before it has adopted all jobs", self.node));
        }
        // The job advances in one commit, rows follow in the next: the node may crash between the two.
        let torn = self.bugs.has(Sabotage::AdvanceWithoutRow)
            && self.dice.lock().expect("no holder of this lock panics").chance(TORN);
        let planner = WatchedPlanner { inner: planner, world: &self.world, torn };
        if torn {
            self.store.claim_due(node, now, slots, max, &planner).await?;
            self.world.note(|| format!("n{} dies between two commits", self.node));
            self.gate.crash();
            std::future::pending::<()>().await;
        }
        let claim = self
            .call(
                "claim_due",
                self.store.claim_due(node, now, slots, max, &planner),
                |evidence, at, claim| {
                    self.check_clock(evidence, started, at, claim.orders.len());
                    self.claimed(evidence, at, &claim.orders, node);
                },
            )
            .await?;
        self.world.write_rows(claim.orders.len()).await;
        Ok(claim)
    }

    async fn claim_waiting(
        &self,
        node: &Node,
        now: Timestamp,
        slots: Slots,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Claim, StoreError> {
        let started = self.world.now();
        let planner = WatchedPlanner { inner: planner, world: &self.world, torn: false };
        self.call(
            "claim_waiting",
            self.store.claim_waiting(node, now, slots, max, &planner),
            |evidence, at, claim| {
                self.check_clock(evidence, started, at, claim.orders.len());
                self.claimed(evidence, at, &claim.orders, node);
            },
        )
        .await
    }

    async fn owned(
        &self,
        node: &Node,
        after: Option<RunId>,
        max: usize,
    ) -> Result<(Vec<Order>, Option<RunId>), StoreError> {
        self.call("owned", self.store.owned(node, after, max), nothing).await
    }

    async fn open_runs(&self, ids: &[RunId]) -> Result<Vec<Run>, StoreError> {
        self.call("open_runs", self.store.open_runs(ids), |evidence, at, runs| {
            runs.iter().for_each(|run| evidence.state(at, run.id, run.state));
        })
        .await
    }

    async fn move_runs(&self, moves: &[Move]) -> Result<Vec<Moved>, StoreError> {
        self.world.write_rows(moves.len()).await;
        self.call("move_runs", self.store.move_runs(moves), |evidence, at, moved| {
            for (asked, moved) in moves.iter().zip(moved) {
                self.world
                    .note(|| format!("n{} moves {} to {:?}: {moved:?}", self.node, asked.run, asked.to));
                if matches!(moved, Moved::Done(_)) {
                    evidence.state(at, asked.run, asked.to.state());
                }
            }
        })
        .await
    }

    async fn complete(
        &self,
        now: Timestamp,
        endings: &[Ending],
        ender: &dyn Ender,
    ) -> Result<Vec<Verdict>, StoreError> {
        let ender = WatchedEnder { inner: ender, world: &self.world, recorded: Mutex::default() };
        if let Some(discarded) = endings.iter().position(|ending| self.discards(ending)) {
            self.discard(&endings[discarded]);
            let mut verdicts = self.complete(now, &endings[..discarded], ender.inner).await?;
            verdicts.push(Verdict::Duplicate);
            verdicts.extend(self.complete(now, &endings[discarded + 1..], ender.inner).await?);
            return Ok(verdicts);
        }
        let verdicts = self
            .call("complete", self.store.complete(now, endings, &ender), |evidence, at, verdicts| {
                for (ending, verdict) in endings.iter().zip(verdicts) {
                    let (run, outcome) = (ending.run, &ending.outcome);
                    self.world.note(|| format!("n{} ends {run} as {outcome:?}: {verdict:?}", self.node));
                    if ending.version.is_none() {
                        evidence.durable.insert((run, outcome.message().to_owned()));
                    }
                    if *verdict == Verdict::Stored {
                        let stored = evidence.java_results.get(&run).map(state_of);
                        stored.into_iter().for_each(|state| evidence.state(at, run, state));
                    }
                    if matches!(verdict, Verdict::Applied | Verdict::Late) {
                        let late = *verdict == Verdict::Late;
                        let recorded = ender.recorded.lock().expect("no holder of this lock panics");
                        let outcome = recorded.get(&run).unwrap_or(outcome);
                        evidence.endings.push(Ended { at, run, outcome: outcome.clone(), late });
                        evidence.state(at, run, state_of(outcome));
                    }
                }
            })
            .await?;
        // A repeated report is only read, not written.
        let written = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Applied | Verdict::Late));
        self.world.write_rows(written.count()).await;
        Ok(verdicts)
    }

    async fn abandoned(&self, running: bool, max: usize) -> Result<Vec<Abandoned>, StoreError> {
        self.call("abandoned", self.store.abandoned(running, max), |evidence, at, left| {
            left.iter().for_each(|left| evidence.state(at, left.run.id, left.run.state));
        })
        .await
    }

    async fn overdue(&self, now: Timestamp, max: usize) -> Result<Vec<Watched>, StoreError> {
        self.call("overdue", self.store.overdue(now, max), |evidence, at, watched| {
            watched.iter().for_each(|watched| evidence.state(at, watched.run.id, watched.run.state));
        })
        .await
    }

    async fn stored_results(&self, max: usize) -> Result<Vec<(RunId, Outcome)>, StoreError> {
        self.call("stored_results", self.store.stored_results(max), nothing).await
    }

    async fn jobs_to_adopt(&self) -> Result<u64, StoreError> {
        self.call("jobs_to_adopt", self.store.jobs_to_adopt(), nothing).await
    }

    async fn others_wrote(&self) -> Result<bool, StoreError> {
        self.call("others_wrote", self.store.others_wrote(), nothing).await
    }

    async fn has_changed_jobs(&self, range: JobRange) -> Result<bool, StoreError> {
        self.call("has_changed_jobs", self.store.has_changed_jobs(range), nothing).await
    }

    async fn jobs_after(&self, after: JobId, count: usize) -> Result<JobRange, StoreError> {
        self.call("jobs_after", self.store.jobs_after(after, count), nothing).await
    }

    async fn forget_deleted(&self, range: JobRange, max: usize) -> Result<usize, StoreError> {
        self.call("forget_deleted", self.store.forget_deleted(range, max), nothing).await
    }

    async fn adopt(&self, range: JobRange, max: usize, planner: &dyn Planner) -> Result<Adopted, StoreError> {
        let adopted = self.call("adopt", self.store.adopt(range, max, planner), nothing).await?;
        if adopted.next.is_none() {
            self.has_swept.store(true, Ordering::Relaxed);
        }
        Ok(adopted)
    }

    async fn take_alerts(
        &self,
        now: Timestamp,
        lease: Duration,
        max: usize,
    ) -> Result<Vec<Alert>, StoreError> {
        self.call("take_alerts", self.store.take_alerts(now, lease, max), nothing).await
    }

    async fn forget_alerts(&self, ids: &[i64]) -> Result<(), StoreError> {
        self.call("forget_alerts", self.store.forget_alerts(ids), nothing).await
    }

    async fn delay_alert(&self, id: i64, until: Timestamp) -> Result<(), StoreError> {
        self.call("delay_alert", self.store.delay_alert(id, until), nothing).await
    }

    async fn prune(&self, retention: &Retention, max: usize) -> Result<usize, StoreError> {
        self.call("prune", self.store.prune(retention, max), nothing).await
    }

    async fn ensure_app(&self, name: &str) -> Result<AppId, StoreError> {
        self.call("ensure_app", self.store.ensure_app(name), nothing).await
    }

    async fn create_job(&self, spec: &JobSpec) -> Result<JobId, StoreError> {
        self.call("create_job", self.store.create_job(spec), nothing).await
    }

    async fn change_jobs(
        &self,
        changes: &[Change],
        atomic: bool,
        max: usize,
        planner: &dyn Planner,
    ) -> Result<Changes, StoreError> {
        self.call("change_jobs", self.store.change_jobs(changes, atomic, max, planner), |_, _, done| {
            let each = || changes.iter().map(name_of).collect::<Vec<_>>().join(", ");
            self.world.note(|| format!("n{} changes jobs ({}): {done:?}", self.node, each()));
        })
        .await
    }

    async fn hold_back(&self, jobs: &[JobId], max: usize) -> Result<Vec<JobId>, StoreError> {
        self.call("hold_back", self.store.hold_back(jobs, max), nothing).await
    }

    async fn withdraw(&self, jobs: &[JobId], max: usize) -> Result<Vec<JobId>, StoreError> {
        self.call("withdraw", self.store.withdraw(jobs, max), |_, _, left| {
            self.world.note(|| format!("n{} withdraws runs of jobs {jobs:?}, left: {left:?}", self.node));
        })
        .await
    }

    async fn withdrawals(&self, before: Timestamp, max: usize) -> Result<Vec<JobId>, StoreError> {
        self.call("withdrawals", self.store.withdrawals(before, max), nothing).await
    }

    async fn open_by_app(&self, above: u64) -> Result<Vec<(AppId, u64)>, StoreError> {
        self.call("open_by_app", self.store.open_by_app(above), nothing).await
    }

    async fn declare(
        &self,
        declaration: &Declaration,
        key: &str,
        planner: &dyn Planner,
    ) -> Result<Declared, StoreError> {
        self.call("declare", self.store.declare(declaration, key, planner), nothing).await
    }

    async fn cancelling(&self, jobs: &[JobId]) -> Result<Vec<(JobId, u64)>, StoreError> {
        self.call("cancelling", self.store.cancelling(jobs), nothing).await
    }

    async fn asked_to_cancel(
        &self,
        node: &Node,
        after: Option<RunId>,
        max: usize,
    ) -> Result<Vec<Run>, StoreError> {
        self.call("asked_to_cancel", self.store.asked_to_cancel(node, after, max), |evidence, at, runs| {
            runs.iter().for_each(|run| evidence.state(at, run.id, run.state));
        })
        .await
    }

    async fn answer_cancel(&self, answers: &[CancelAnswer], planner: &dyn Planner) -> Result<(), StoreError> {
        self.call("answer_cancel", self.store.answer_cancel(answers, planner), |_, _, ()| {
            self.world.note(|| format!("n{} answers {answers:?}", self.node));
        })
        .await
    }

    async fn request_cancel(&self, run: RunId) -> Result<bool, StoreError> {
        self.call("request_cancel", self.store.request_cancel(run), nothing).await
    }

    async fn trigger(&self, job: JobId, trigger: &Trigger) -> Result<RunId, StoreError> {
        self.call("trigger", self.store.trigger(job, trigger), nothing).await
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        self.call("job", self.store.job(id), nothing).await
    }

    async fn job_by_key(&self, key: &str) -> Result<Option<Job>, StoreError> {
        self.call("job_by_key", self.store.job_by_key(key), nothing).await
    }

    async fn jobs(&self, after: Option<JobId>, max: usize) -> Result<Vec<Job>, StoreError> {
        self.call("jobs", self.store.jobs(after, max), nothing).await
    }

    async fn runs(&self, job: JobId, after: Option<RunId>, max: usize) -> Result<Vec<RunRecord>, StoreError> {
        self.call("runs", self.store.runs(job, after, max), nothing).await
    }

    async fn history(
        &self,
        job: JobId,
        after: Option<i64>,
        max: usize,
    ) -> Result<Vec<HistoryEntry>, StoreError> {
        self.call("history", self.store.history(job, after, max), nothing).await
    }
}

/// The state of a run after an outcome.
pub fn state_of(outcome: &Outcome) -> RunState {
    match outcome.event() {
        RunEvent::Succeed => RunState::Succeeded,
        RunEvent::TimeOut => RunState::TimedOut,
        RunEvent::Lose => RunState::Lost,
        RunEvent::Cancel => RunState::Cancelled,
        _ => RunState::Failed,
    }
}

fn name_of(change: &Change) -> String {
    match change {
        Change::Add(_) => "add".into(),
        Change::Control(job, Control::Start) => format!("start {job}"),
        Change::Control(job, Control::Stop) => format!("stop {job}"),
        Change::Control(job, Control::Edit { .. } | Control::Put { .. }) => format!("edit {job}"),
        Change::Control(job, Control::Replan) => format!("replan {job}"),
        Change::Control(job, Control::Delete) => format!("delete {job}"),
    }
}
