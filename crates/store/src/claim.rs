//! A node claims due work: jobs with a claim time in the past, and waiting runs.
//!
//! Which node fires a scheduled time is decided by a compare-and-set on the job's old next time in XXL-JOB's own
//! row. Skipping locked rows spreads the work; a claim never waits for another claim, unless Java admins use the
//! same database: then it takes their lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use engine::policy::Target;
use engine::{
    Assignment, Claim, Disposition, Fire, Job, JobId, NextFire, Node, Order, Outcome, Plan, Planner, Run,
    RunEvent, RunId, RunState, Shard, Slots, StoreError, Trouble, Unsent,
};
use timer::Timestamp;

use crate::alerts::{self, About};
use crate::database::Tables;
use crate::jobs::{self, NO_TIME, STOPPED, Stored};
use crate::runs::{self, CANCELLING, Closing, Entry, IS_SCHEDULED, Opening, WAITING};
use crate::session::{Columns, Lock, Session, SessionError, Value};
use crate::{adopt, foreign, nodes};

// ── Jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn claim_due(
    s: &mut dyn Session,
    tables: &Tables,
    node: &Node,
    now: Timestamp,
    slots: Slots,
    max: usize,
    planner: &dyn Planner,
) -> Result<Claim, SessionError> {
    take_turn(s, tables).await?;
    nodes::check_alive(s, node, now).await?;
    let (ids, more) = take_due(s, now, slots, max).await?;
    let mut found = jobs::load(s, tables, &ids).await?;
    leave_out_changed(s, planner, &ids, &mut found).await?;

    let due: Vec<Stored> = found.into_values().collect();
    // Each job gets the same share of the rows, so that a job with very many fires does not delay others.
    let share = max / due.len().max(1);
    let plans: Vec<Plan> = due.iter().map(|stored| planner.plan_at_most(&stored.job, share)).collect();
    advance(s, &due, &plans).await?;

    let more = more || plans.iter().any(|plan| is_due(plan.next, now));
    let mut claim = Claim { more, ..Claim::default() };
    let mut rows = Rows { opened: open_fires(s, &due).await?, ..Rows::default() };
    for (stored, plan) in due.iter().zip(plans) {
        // If the run to replace is not dispatched yet, its node is asked to cancel it, and the fire waits for the
        // answer.
        let waits = plan.replace
            && match end_holder(s, tables, now, &stored.job).await? {
                Ended::All(runs) => {
                    claim.replaced.extend(sent_orders(&stored.job, runs));
                    false
                }
                Ended::Asked => true,
            };
        rows.add(stored, plan, node, waits, now);
    }
    claim.orders = rows.write(s, tables, now, &due).await?;
    if !claim.more {
        claim.next_at = next_claim(s, now).await?;
    }
    Ok(claim)
}

/// Java admins move jobs to their next times under this lock; while there may be any, so do we. It is taken before a
/// claim reads anything else, as Java admins do.
pub async fn take_turn(s: &mut dyn Session, tables: &Tables) -> Result<(), SessionError> {
    if !tables.beside_java {
        return Ok(());
    }
    let sql = "SELECT lock_name FROM xxl_job_lock WHERE lock_name = 'schedule_lock'";
    match s.query(sql, &[], Lock::Wait).await?.is_empty() {
        false => Ok(()),
        // Without the row no process holds the lock, but each assumes that it does.
        true => Err(StoreError::Schema(
            "xxl_job_lock has no row `schedule_lock`; insert it, so that this node and Java admins take turns".into(),
        )
        .into()),
    }
}

/// The due jobs, locked, and whether there are more.
async fn take_due(
    s: &mut dyn Session,
    now: Timestamp,
    slots: Slots,
    max: usize,
) -> Result<(Vec<i64>, bool), SessionError> {
    let (filter, others) = slot_filter(slots, "claim_ms", slots.others_before);
    let sql = format!(
        "SELECT job_id FROM tw_job WHERE claim_ms <= ?{filter} \
         AND job_id NOT IN (SELECT job_id FROM tw_run WHERE state = {CANCELLING}) ORDER BY claim_ms, job_id LIMIT ?"
    );
    let mut params = vec![now.into()];
    params.extend(others);
    params.push(limit(max, 1));
    let rows = s.query(&sql, &params, Lock::Skip).await?;
    let mut ids = rows.into_iter().map(|row| row.read().int()).collect::<Result<Vec<_>, _>>()?;
    let more = ids.len() > max;
    ids.truncate(max);
    ids.sort_unstable();
    Ok((ids, more))
}

/// Whether a job must be claimed again at once, because one plan does not cover all its due fires.
fn is_due(next: NextFire, now: Timestamp) -> bool {
    matches!(next, NextFire::At { claim_at, .. } if claim_at <= now)
}

/// SQL condition for our slots, or for jobs that other nodes have not claimed in time; with its parameter, if it
/// needs one.
fn slot_filter(slots: Slots, column: &str, others_before: Timestamp) -> (String, Option<Value>) {
    if slots.mask == u64::MAX {
        return (String::new(), None);
    }
    let ours = (0..64).filter(|slot| slots.mask & (1 << slot) != 0).map(|slot| slot.to_string());
    let ours: Vec<String> = ours.collect();
    let ours = if ours.is_empty() { "-1".to_owned() } else { ours.join(", ") };
    (format!(" AND (job_id % 64 IN ({ours}) OR {column} <= ?)"), Some(others_before.into()))
}

fn limit(max: usize, beyond: usize) -> Value {
    i64::try_from(max.saturating_add(beyond)).unwrap_or(i64::MAX).into()
}

/// Removes jobs that other programs have changed since our row was written, and updates the row.
async fn leave_out_changed(
    s: &mut dyn Session,
    planner: &dyn Planner,
    ids: &[i64],
    found: &mut BTreeMap<i64, Stored>,
) -> Result<(), SessionError> {
    for id in ids {
        match found.get(id) {
            Some(stored) if stored.is_in_line() && stored.job.problem.is_none() => continue,
            Some(stored) => adopt::align(s, std::slice::from_ref(&stored.job), planner).await?,
            None => set_shadows(s, vec![vec![(*id).into(), Value::Null, Value::Null]]).await?,
        }
        found.remove(id);
    }
    Ok(())
}

async fn set_shadows(s: &mut dyn Session, rows: Vec<Vec<Value>>) -> Result<(), SessionError> {
    if rows.is_empty() {
        return Ok(());
    }
    let set = Columns { table: "tw_job", keys: &["job_id"], columns: &["next_ms", "claim_ms"] };
    s.update(set, rows).await?;
    Ok(())
}

/// Moves the jobs to their next times, if these are unchanged since they were read.
async fn advance(s: &mut dyn Session, due: &[Stored], plans: &[Plan]) -> Result<(), SessionError> {
    let mut shadows = Vec::with_capacity(due.len());
    let (mut moved, mut stopped) = (Vec::with_capacity(due.len()), Vec::new());
    let mut counted = Vec::new();
    for (stored, plan) in due.iter().zip(plans) {
        if stored.job.spec.max_fires.is_some() && !plan.fires.is_empty() {
            counted.push((stored.job.id, stored.job.fires + plan.fires.len() as u64));
        }
        let id = Value::Int(stored.job.id.0);
        let old: Value = stored.job.next_fire_at.map_or(NO_TIME.into(), Value::from);
        let (next, claim) = jobs::next_columns(plan.next);
        shadows.push(vec![id.clone(), next.into(), claim.into()]);
        let row = vec![id, old.clone(), stored.status.into(), old, next.map_or(NO_TIME.into(), Value::from)];
        match plan.next {
            NextFire::Never => stopped.push(row),
            NextFire::At { .. } | NextFire::AfterRun => moved.push(row),
        }
    }
    let stops: Vec<i64> =
        stopped.iter().map(|row| if let Value::Int(id) = row[0] { id } else { 0 }).collect();
    for rows in [moved, stopped] {
        compare_and_set(s, rows).await?;
    }
    if !stops.is_empty() {
        let sql = format!("UPDATE xxl_job_info SET trigger_status = {STOPPED} WHERE id IN ?");
        s.execute(&sql, &[Value::Ids(stops)]).await?;
    }
    jobs::set_fires(s, &counted).await?;
    set_shadows(s, shadows).await
}

async fn compare_and_set(s: &mut dyn Session, rows: Vec<Vec<Value>>) -> Result<(), SessionError> {
    if rows.is_empty() {
        return Ok(());
    }
    let wanted = rows.len() as u64;
    let set = Columns {
        table: "xxl_job_info",
        keys: &["id", "trigger_next_time", "trigger_status"],
        columns: &["trigger_last_time", "trigger_next_time"],
    };
    match s.compare_and_set(set, rows).await? {
        moved if moved == wanted => Ok(()),
        moved => {
            Err(SessionError::Collision(format!("{} jobs were changed in the meantime", wanted - moved)))
        }
    }
}

/// Scheduled fires of these jobs that already have open runs. They are not opened again, which would happen if the
/// job's next time was set back.
async fn open_fires(s: &mut dyn Session, due: &[Stored]) -> Result<BTreeSet<(i64, i64, i64)>, SessionError> {
    if due.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ids = due.iter().map(|stored| stored.job.id.0).collect();
    let earliest = due.iter().filter_map(|stored| stored.job.next_fire_at).min();
    let sql = format!(
        "SELECT job_id, scheduled_ms, kind FROM tw_run WHERE job_id IN ? AND scheduled_ms >= ? AND {IS_SCHEDULED}"
    );
    let rows = s.query(&sql, &[Value::Ids(ids), earliest.unwrap_or_default().into()], Lock::None).await?;
    let key = |row: crate::session::Row| {
        let mut row = row.read();
        Ok((row.int()?, row.int()?, row.int()?))
    };
    rows.into_iter().map(key).collect()
}

/// The rows that a claim of jobs writes.
#[derive(Default)]
struct Rows {
    opened: BTreeSet<(i64, i64, i64)>,
    /// The runs, each with the index of its job among the due ones.
    runs: Vec<(usize, Run)>,
    /// Fires that were not dispatched, each with the index of the run that it was merged into.
    unsent: Vec<(Entry, Option<usize>)>,
    troubles: Vec<About>,
    jobs: usize,
}

impl Rows {
    fn add(&mut self, stored: &Stored, plan: Plan, node: &Node, waits: bool, now: Timestamp) {
        let job = stored.job.id;
        let mut last_fire = None;
        for fire in plan.fires {
            if self.opened.contains(&(job.0, fire.scheduled_at.as_millis(), fire.origin.to_numbers().0)) {
                continue;
            }
            last_fire = Some(self.runs.len());
            let waits = waits || fire.waits;
            let runs = if waits { vec![waiting(job, &fire)] } else { claimed(job, &fire, node) };
            self.runs.extend(runs.into_iter().map(|run| (self.jobs, run)));
        }
        for unsent in plan.unsent {
            let trouble = Trouble::of_unsent(&stored.job, &unsent);
            self.troubles.extend(trouble.map(|trouble| (job, None, trouble)));
            let into = if unsent.disposition == Disposition::Coalesced { last_fire } else { None };
            let entry = Entry { job, unsent, run: None, fire: None, at: now, superseded: runs::LOST };
            self.unsent.push((entry, into));
        }
        self.jobs += 1;
    }

    /// Writes all rows; returns the claimed runs, ordered by due time.
    async fn write(
        self,
        s: &mut dyn Session,
        tables: &Tables,
        now: Timestamp,
        due: &[Stored],
    ) -> Result<Vec<Order>, SessionError> {
        let owners: Vec<usize> = self.runs.iter().map(|(job, _)| *job).collect();
        let openings = self.runs.into_iter().map(|(job, run)| Opening { run, job: &due[job].job });
        let runs = runs::open(s, tables, openings.collect()).await?;
        let unsent =
            self.unsent.into_iter().map(|(entry, into)| Entry { run: into.map(|i| runs[i].id), ..entry });
        runs::record(s, unsent.collect()).await?;
        alerts::raise(s, tables, now, self.troubles).await?;

        let shared: Vec<Arc<Job>> = due.iter().map(|stored| Arc::new(stored.job.clone())).collect();
        let orders = runs.into_iter().zip(owners).filter(|(run, _)| run.state == RunState::Claimed);
        let mut orders: Vec<Order> =
            orders.map(|(run, job)| Order { run, job: shared[job].clone() }).collect();
        sort_by_due(&mut orders);
        Ok(orders)
    }
}

fn waiting(job: JobId, fire: &Fire) -> Run {
    runs::waiting(job, fire.origin, fire.scheduled_at, fire.due_at)
}

/// One run per target; one without an address if there is no target.
fn claimed(job: JobId, fire: &Fire, node: &Node) -> Vec<Run> {
    let nobody = [Target::AtSend];
    let targets = if fire.targets.is_empty() { &nobody[..] } else { &fire.targets[..] };
    let shards = targets.iter().zip(shards(targets.len()));
    let run = |(target, shard): (&Target, Shard)| Run {
        shard,
        state: RunState::Claimed,
        node: Some(node.clone()),
        address: target.address().map(str::to_owned),
        ..waiting(job, fire)
    };
    shards.map(run).collect()
}

fn shards(total: usize) -> impl Iterator<Item = Shard> {
    let total = u32::try_from(total).unwrap_or(u32::MAX);
    (0..total).map(move |index| Shard { index, total })
}

fn sort_by_due(orders: &mut [Order]) {
    orders.sort_by_key(|order| (order.run.due_at, order.run.id));
}

async fn next_claim(s: &mut dyn Session, now: Timestamp) -> Result<Option<Timestamp>, SessionError> {
    let sql = "SELECT MIN(claim_ms) FROM tw_job WHERE claim_ms > ?";
    let rows = s.query(sql, &[now.into()], Lock::None).await?;
    Ok(rows.into_iter().next().map(|row| row.read().maybe_instant()).transpose()?.flatten())
}

/// Result of ending the run that occupies an exclusive job.
enum Ended {
    /// All runs of its fire are over, or marked as replaced; their executors are to be asked to end them.
    All(Vec<Run>),
    /// A node may or may not have dispatched a part of it; the node is asked to cancel that part.
    Asked,
}

async fn end_holder(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    job: &Job,
) -> Result<Ended, SessionError> {
    let mut open =
        runs::select(s, "WHERE job_id = ? ORDER BY run_id", &[job.id.0.into()], Lock::Wait).await?;
    let stored = open.iter().map(|run| run.id.0).collect();
    let stored = foreign::results_of(s, tables, stored, Lock::Wait).await?;
    open.retain(|run| !stored.contains_key(&run.id));
    let fires: BTreeSet<RunId> =
        open.iter().filter(|run| run.state != RunState::Waiting).map(|run| run.fire).collect();
    let holders: Vec<Run> = open.into_iter().filter(|run| fires.contains(&run.fire)).collect();

    let is_with_node = |run: &Run| matches!(run.state, RunState::Claimed | RunState::Cancelling);
    if holders.iter().any(is_with_node) {
        let asked: Vec<Run> = holders.into_iter().filter_map(asked_to_cancel).collect();
        runs::save(s, &asked).await?;
        return Ok(Ended::Asked);
    }
    let outcome = Outcome::Cancelled("replaced by a later fire of the job".into());
    let (waiting, sent): (Vec<Run>, Vec<Run>) =
        holders.into_iter().partition(|run| run.state == RunState::Waiting);
    let closings: Vec<Closing> = waiting.into_iter().map(|run| Closing::last(run, outcome.clone())).collect();
    runs::close(s, tables, now, &closings).await?;
    // Each keeps its version, because a node may be watching it.
    let replaced = |run| Run { recalled: true, cancel: true, replaced: true, ..run };
    let sent: Vec<Run> = sent.into_iter().map(replaced).collect();
    runs::save(s, &sent).await?;
    Ok(Ended::All(closings.into_iter().map(|closing| closing.run).chain(sent).collect()))
}

/// The ended runs that an executor must be notified of.
fn sent_orders(job: &Job, ended: Vec<Run>) -> impl Iterator<Item = Order> {
    let job = Arc::new(job.clone());
    let sent = ended.into_iter().filter(|run| run.state != RunState::Waiting);
    sent.map(move |run| Order { run, job: job.clone() })
}

/// The run marked as to be cancelled; `None` if no node has claimed it. It keeps its version, because its node may
/// be storing its result now, and that still counts.
pub fn asked_to_cancel(mut run: Run) -> Option<Run> {
    run.state = run.state.after(RunEvent::AskCancel).ok()?;
    run.recalled = true;
    Some(run)
}

// ── Waiting runs ────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn claim_waiting(
    s: &mut dyn Session,
    tables: &Tables,
    node: &Node,
    now: Timestamp,
    slots: Slots,
    max: usize,
    planner: &dyn Planner,
) -> Result<Claim, SessionError> {
    nodes::check_alive(s, node, now).await?;
    let ahead = planner.look_ahead();
    let (waiting, more) = take_waiting(s, tables, now, ahead, slots, max).await?;
    let mut ids: Vec<i64> = waiting.iter().map(|run| run.job.0).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut found = jobs::load(s, tables, &ids).await?;
    let waiting = with_places(s, tables, waiting, &mut found).await?;

    let mut claim = Claim { more, ..Claim::default() };
    let mut taken = Taken::default();
    for run in waiting {
        if taken.replaced.iter().any(|ended| ended.id == run.id) {
            continue;
        }
        let Some(stored) = found.get_mut(&run.job.0) else {
            taken.closed.push(Closing::last(run, Outcome::Cancelled("its job was deleted".into())));
            continue;
        };
        let exclusive = stored.job.spec.overlap.is_exclusive();
        let seen = seen_by(stored, &run);
        let place_is_free = seen.running.is_none_or(|holder| holder == run.id);
        let targets = match planner.assign(&seen, &run) {
            Assignment::Send(targets) if place_is_free || !exclusive => targets,
            Assignment::Send(_) => {
                taken.saved.push(left(run, planner.look_again_at(now)));
                continue;
            }
            Assignment::Leave(at) => {
                taken.saved.push(left(run, at));
                continue;
            }
            Assignment::Cancel(reason) => {
                taken.closed.push(Closing::last(run, Outcome::Dropped(Disposition::Cancelled, reason)));
                stored.job.waiting = stored.job.waiting.saturating_sub(1);
                continue;
            }
            Assignment::Drop(disposition, reason) => {
                let unsent = Unsent {
                    disposition,
                    first: run.scheduled_at,
                    last: run.scheduled_at,
                    count: 1,
                    reason: reason.clone(),
                };
                let trouble = Trouble::of_unsent(&stored.job, &unsent);
                let closing = Closing::last(run, Outcome::Dropped(disposition, reason));
                taken.troubles.extend(trouble.map(|trouble| (closing.run.job, closing.row(), trouble)));
                taken.closed.push(closing);
                stored.job.waiting = stored.job.waiting.saturating_sub(1);
                continue;
            }
            Assignment::Replace(targets) if place_is_free => targets,
            // Another run of the job was claimed just now.
            Assignment::Replace(_) if taken.has_sent(run.job) => {
                taken.saved.push(left(run, planner.look_again_at(now)));
                continue;
            }
            Assignment::Replace(targets) => match end_holder(s, tables, now, &stored.job).await? {
                Ended::All(runs) => {
                    taken.replaced.extend(runs.iter().cloned());
                    claim.replaced.extend(sent_orders(&stored.job, runs));
                    targets
                }
                Ended::Asked => {
                    taken.saved.push(left(run, planner.look_again_at(now)));
                    continue;
                }
            },
        };
        if exclusive {
            stored.job.running = Some(run.id);
            stored.holder_fire = Some(run.fire);
            stored.job.waiting = stored.job.waiting.saturating_sub(1);
        }
        taken.send(run, targets, node);
    }
    claim.orders = taken.write(s, tables, now, &found).await?;
    if !claim.more {
        claim.next_at = next_waiting(s, now + ahead).await?.map(|due| due - ahead);
    }
    Ok(claim)
}

async fn take_waiting(
    s: &mut dyn Session,
    tables: &Tables,
    now: Timestamp,
    ahead: Duration,
    slots: Slots,
    max: usize,
) -> Result<(Vec<Run>, bool), SessionError> {
    // `check_ms` of a waiting run is its due time, so one index serves both.
    let (filter, others) = slot_filter(slots, "check_ms", slots.others_before + ahead);
    let open = foreign::without_result(tables);
    let tail =
        format!("WHERE state = {WAITING} AND check_ms <= ?{filter}{open} ORDER BY check_ms, run_id LIMIT ?");
    let mut params = vec![(now + ahead).into()];
    params.extend(others);
    params.push(limit(max, 1));
    let mut runs = runs::select(s, &tail, &params, Lock::Skip).await?;
    let more = runs.len() > max;
    runs.truncate(max);
    Ok((runs, more))
}

/// Locks exclusive jobs, and removes the runs of those that another transaction has locked, so that a claim never
/// waits for a lock. Reads those jobs again, because they could change until now.
async fn with_places(
    s: &mut dyn Session,
    tables: &Tables,
    waiting: Vec<Run>,
    found: &mut BTreeMap<i64, Stored>,
) -> Result<Vec<Run>, SessionError> {
    let exclusive = found.values().filter(|stored| stored.job.spec.overlap.is_exclusive());
    let exclusive: Vec<i64> = exclusive.map(|stored| stored.job.id.0).collect();
    if exclusive.is_empty() {
        return Ok(waiting);
    }
    let locked = jobs::lock(s, &exclusive, Lock::Skip).await?;
    found.extend(jobs::load(s, tables, &locked).await?);
    let skipped: BTreeSet<i64> = exclusive.into_iter().filter(|id| !locked.contains(id)).collect();
    Ok(waiting.into_iter().filter(|run| !skipped.contains(&run.job.0)).collect())
}

/// The job as the planner is to see it: if other shards of the same fire occupy it, it counts as this run's own.
fn seen_by(stored: &Stored, run: &Run) -> Job {
    let mut job = stored.job.clone();
    if stored.holder_fire == Some(run.fire) {
        job.running = Some(run.id);
    }
    job
}

fn left(mut run: Run, until: Timestamp) -> Run {
    run.due_at = until;
    run.check_at = until;
    run.version += 1;
    run
}

/// The rows that a claim of waiting runs writes.
#[derive(Default)]
struct Taken {
    saved: Vec<Run>,
    closed: Vec<Closing>,
    troubles: Vec<About>,
    opened: Vec<Run>,
    split: Vec<(RunId, Shard)>,
    /// Already closed, or marked: replaced by a new run.
    replaced: Vec<Run>,
}

impl Taken {
    fn has_sent(&self, job: JobId) -> bool {
        self.saved.iter().any(|run| run.job == job && run.state == RunState::Claimed)
    }

    /// The run goes to the first target; if it is not split into shards yet, new runs go to the other targets.
    fn send(&mut self, run: Run, targets: Vec<Target>, node: &Node) {
        let total = if run.shard == Shard::UNSPLIT { targets.len().max(1) } else { 1 };
        let address = |target: Option<&Target>| {
            target.and_then(Target::address).map(str::to_owned).or_else(|| run.address.clone())
        };
        let claimed =
            Run { state: RunState::Claimed, node: Some(node.clone()), check_at: run.due_at, ..run.clone() };
        for (shard, target) in shards(total).zip(0..).skip(1).map(|(shard, i)| (shard, targets.get(i))) {
            let address = address(target);
            self.opened.push(Run { id: runs::NEW, shard, version: 1, address, ..claimed.clone() });
        }
        let shard =
            if run.shard == Shard::UNSPLIT { Shard { index: 0, total: total as u32 } } else { run.shard };
        if total > 1 {
            self.split.push((run.id, shard));
        }
        self.saved.push(Run {
            shard,
            version: run.version + 1,
            address: address(targets.first()),
            ..claimed
        });
    }

    async fn write(
        self,
        s: &mut dyn Session,
        tables: &Tables,
        now: Timestamp,
        found: &BTreeMap<i64, Stored>,
    ) -> Result<Vec<Order>, SessionError> {
        runs::save(s, &self.saved).await?;
        let set = Columns { table: "xxl_job_log", keys: &["id"], columns: &["executor_sharding_param"] };
        if !self.split.is_empty() {
            let rows = self.split.iter().map(|(run, shard)| vec![run.0.into(), runs::sharding(*shard)]);
            s.update(set, rows.collect()).await?;
        }
        // A missing job may have been deleted after this claim began.
        let is_gone = self.closed.iter().any(|closing| matches!(closing.outcome, Outcome::Cancelled(_)));
        let closed_at = if is_gone { s.now().await?.max(now) } else { now };
        runs::close(s, tables, closed_at, &self.closed).await?;
        alerts::raise(s, tables, now, self.troubles).await?;
        let ended = self.closed.iter().map(|closing| &closing.run).chain(&self.replaced);
        jobs::rearm_after(s, tables, now, ended).await?;
        let openings = self.opened.into_iter().map(|run| Opening { job: &found[&run.job.0].job, run });
        let opened = runs::open(s, tables, openings.collect()).await?;
        let counts: Vec<(RunId, u32)> = self.split.iter().map(|(run, shard)| (*run, shard.total)).collect();
        runs::open_broadcasts(s, &counts).await?;

        let shared: BTreeMap<i64, Arc<Job>> =
            found.iter().map(|(id, stored)| (*id, Arc::new(stored.job.clone()))).collect();
        let claimed = self.saved.into_iter().chain(opened).filter(|run| run.state == RunState::Claimed);
        let mut orders: Vec<Order> =
            claimed.map(|run| Order { job: shared[&run.job.0].clone(), run }).collect();
        sort_by_due(&mut orders);
        Ok(orders)
    }
}

async fn next_waiting(s: &mut dyn Session, after: Timestamp) -> Result<Option<Timestamp>, SessionError> {
    let sql = format!("SELECT MIN(check_ms) FROM tw_run WHERE state = {WAITING} AND check_ms > ?");
    let rows = s.query(&sql, &[after.into()], Lock::None).await?;
    Ok(rows.into_iter().next().map(|row| row.read().maybe_instant()).transpose()?.flatten())
}
