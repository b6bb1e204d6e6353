//! Plans due jobs, from the job and the time alone.
//!
//! [`Tick`] is the planner of one call to the store, which uses it inside its transaction. It is pure: the same job and
//! `now` give the same plan, so its rules are tested as a table.

use std::sync::Mutex;
use std::time::Duration;

use cron::{Schedule, Timestamp};

use crate::job::Job;
use crate::policy::{Delivery, Misfire, Overlap, Router, Target};
use crate::ports::{Assignment, Fire, NextFire, Plan, Planner};
use crate::quota::{self, Quota};
use crate::run::{Disposition, LOOK_AHEAD, Origin, Run, Shard, Unsent};
use crate::sabotage::{Bugs, Sabotage};

/// The planner of one call to the store.
pub(crate) struct Tick<'a> {
    now: Timestamp,
    router: &'a dyn Router,
    bugs: Bugs,
    quota: Option<&'a Quota>,
    /// Times at which a claim must happen to the millisecond, because it was not possible ahead of time.
    wakes: Mutex<Vec<Timestamp>>,
}

impl<'a> Tick<'a> {
    pub(crate) fn new(now: Timestamp, router: &'a dyn Router, bugs: Bugs) -> Self {
        Tick { now, router, bugs, quota: None, wakes: Mutex::default() }
    }

    /// Applies quotas of open runs to the plans.
    pub(crate) fn within(mut self, quota: &'a Quota) -> Self {
        self.quota = Some(quota);
        self
    }

    /// Times at which a claim must happen to the millisecond.
    pub(crate) fn into_wakes(self) -> Vec<Timestamp> {
        self.wakes.into_inner().expect("no holder of this lock panics")
    }

    fn wake_at(&self, at: Timestamp) {
        self.wakes.lock().expect("no holder of this lock panics").push(at);
    }

    /// Targets of a fire. Without an executor the run is created anyway, so that the failure to send it is in the
    /// log.
    fn targets(&self, job: &Job, scheduled_at: Timestamp) -> Vec<Target> {
        // No executor has a workflow run, so there is one whatever the route.
        if job.spec.workflow.is_some() {
            return vec![Target::AtSend];
        }
        let targets = self.router.targets(job, scheduled_at);
        if targets.is_empty() { vec![Target::AtSend] } else { targets }
    }

    fn leave(&self, until: Timestamp) -> Assignment {
        self.wake_at(until);
        Assignment::Leave(until)
    }
}

impl Planner for Tick<'_> {
    fn plan(&self, job: &Job) -> Plan {
        self.plan_at_most(job, FIRES_MAX as usize)
    }

    fn plan_at_most(&self, job: &Job, rows: usize) -> Plan {
        let horizon = if job.spec.is_claimed_when_due() { self.now } else { self.now + LOOK_AHEAD };
        let shards = if job.spec.workflow.is_some() { 1 } else { self.router.shards(job).max(1) };
        let fires_max = (rows / shards).clamp(1, FIRES_MAX as usize);
        let mut plan = self.plan_until(job, self.now, horizon, fires_max);
        self.keep_to_quota(job, shards, &mut plan);
        self.keep_to_limit(job, &mut plan);
        if self.bugs.has(Sabotage::NextFromNow)
            && let NextFire::At { .. } = plan.next
        {
            plan.next = self.next_after(job, self.now + LOOK_AHEAD * 2);
        }
        for fire in plan.fires.iter_mut().filter(|fire| !fire.waits) {
            fire.targets = self.targets(job, fire.scheduled_at);
        }
        plan
    }

    fn settle(&self, job: &Job, at: Timestamp) -> Plan {
        let mut plan = self.plan_until(job, at, at, FIRES_MAX as usize);
        self.keep_to_limit(job, &mut plan);
        plan
    }

    fn assign(&self, job: &Job, run: &Run) -> Assignment {
        if run.recalled {
            let why = match () {
                () if run.replaced => "replaced by a later run of the job before it was sent",
                () if run.cancel => "cancelled on request before it was sent",
                () => "the job was stopped or changed before the run was sent",
            };
            return Assignment::Cancel(why.into());
        }
        // All nodes were down since it was claimed ahead of time, or since it was to be sent again.
        let is_resent = run.version > FIRST_CLAIM && self.bugs.has(Sabotage::ResendHoweverLate);
        if may_be_too_late(job, run)
            && !is_resent
            && let Some(disposition) = too_late(job, run, true, self.now)
        {
            return Assignment::Drop(disposition, TOO_LATE.into());
        }
        if job.spec.overlap.is_exclusive() {
            if run.due_at > self.now {
                return self.leave(run.due_at);
            }
            match job.spec.overlap {
                _ if job.running.is_none() || job.running == Some(run.id) => {}
                // The end of the other run wakes this one; the poll is a fallback. A backfill leaves nothing out.
                Overlap::Wait => return self.leave(self.now + WAIT_LOOK),
                _ if matches!(run.origin, Origin::Backfill { .. }) => {
                    return self.leave(self.now + WAIT_LOOK);
                }
                Overlap::Replace => return Assignment::Replace(self.shards_of(job, run)),
                Overlap::Skip | Overlap::Allow => {
                    return Assignment::Drop(Disposition::Blocked, BLOCKED.into());
                }
            }
        }
        Assignment::Send(self.shards_of(job, run))
    }

    fn next_after(&self, job: &Job, after: Timestamp) -> NextFire {
        if job.fires_left() == Some(0) {
            return NextFire::Never;
        }
        // Started or edited: with a fixed delay, the first run is one delay away.
        self.at_or_never(job, job.spec.next_after(after).or_else(|| job.spec.next_after_end(after)))
    }

    fn claim_at(&self, job: &Job, fire_at: Timestamp) -> Timestamp {
        claim_at(job, fire_at)
    }

    fn blocks(&self, job: &Job, opened: u64) -> Option<String> {
        self.quota?.blocks(job.spec.app, opened)
    }
}

impl Tick<'_> {
    /// Plan for the scheduled times up to `horizon`, with at most `fires_max` fires, without their targets.
    fn plan_until(&self, job: &Job, now: Timestamp, horizon: Timestamp, fires_max: usize) -> Plan {
        let mut plan = Plan { fires: vec![], unsent: vec![], next: NextFire::Never, replace: false };
        if job.next_fire_at.is_none() {
            return plan;
        }
        let mut instants = Instants { job, next: job.next_fire_at };
        missed(job, &mut instants, now, &mut plan);
        due(job, &mut instants, now, horizon, fires_max, &mut plan);
        if job.spec.overlap.is_exclusive() {
            one_place(job, &mut plan);
        }
        if self.bugs.has(Sabotage::SilentMisfire) {
            plan.unsent.clear();
        }
        plan.next = match (&job.spec.schedule, instants.next) {
            (Schedule::FixedDelay { .. }, None) if !plan.fires.is_empty() => NextFire::AfterRun,
            // A fixed delay with its only scheduled time not sent has no run to end, so the delay counts from now.
            (_, next) => self.at_or_never(job, next.or_else(|| job.spec.next_after_end(now))),
        };
        plan
    }

    /// Removes fires beyond the app's quota, and records them as blocked.
    fn keep_to_quota(&self, job: &Job, shards: usize, plan: &mut Plan) {
        let Some((room, max)) = self.quota.and_then(|quota| quota.room(job.spec.app)) else { return };
        let fires = usize::try_from(room).unwrap_or(usize::MAX) / shards;
        if plan.fires.len() <= fires {
            return;
        }
        let mut left_out = Range::default();
        plan.fires.drain(fires..).for_each(|fire| left_out.add(fire.scheduled_at));
        plan.replace &= !plan.fires.is_empty();
        plan.unsent.extend(left_out.into_unsent(Disposition::Blocked, &quota::reason(max)));
        // With a fixed delay no run will end, so the delay counts from now.
        if plan.fires.is_empty() && plan.next == NextFire::AfterRun {
            plan.next = self.at_or_never(job, job.spec.next_after_end(self.now));
        }
    }

    /// Removes fires beyond the job's maximum, and stops the job at its last one.
    fn keep_to_limit(&self, job: &Job, plan: &mut Plan) {
        let Some(left) = job.fires_left() else { return };
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        if plan.fires.len() < left {
            return;
        }
        plan.fires.truncate(left);
        plan.replace &= left > 0;
        plan.next = NextFire::Never;
    }

    fn at_or_never(&self, job: &Job, fire_at: Option<Timestamp>) -> NextFire {
        if let Some(at) = fire_at
            && job.spec.is_claimed_when_due()
        {
            self.wake_at(at);
        }
        at_or_never(job, fire_at)
    }

    /// Targets of a waiting run: all shards of one that is not split yet, otherwise the one of its shard.
    fn shards_of(&self, job: &Job, run: &Run) -> Vec<Target> {
        if let Some(address) = &run.address
            && run.shard == Shard::UNSPLIT
        {
            return vec![Target::Address(address.clone())];
        }
        let targets = self.targets(job, run.scheduled_at);
        if run.shard == Shard::UNSPLIT {
            return targets;
        }
        vec![targets[run.shard.index as usize % targets.len()].clone()]
    }
}

/// Time when the fire of a job is to be claimed: ahead of its scheduled time, so that only sending is left to do
/// then; some jobs are claimed only when they are due.
pub(crate) fn claim_at(job: &Job, fire_at: Timestamp) -> Timestamp {
    if job.spec.is_claimed_when_due() { fire_at } else { fire_at - LOOK_AHEAD }
}

/// Fire of a job at a scheduled time, if there is one left.
pub(crate) fn at_or_never(job: &Job, fire_at: Option<Timestamp>) -> NextFire {
    match fire_at {
        Some(fire_at) => NextFire::At { fire_at, claim_at: claim_at(job, fire_at) },
        None if job.spec.awaits_calendar() => NextFire::AfterRun,
        None => NextFire::Never,
    }
}

/// Disposition of a run that was not sent in time; none if the job's policy is to send it anyway.
pub(crate) fn too_late(job: &Job, run: &Run, is_latest: bool, now: Timestamp) -> Option<Disposition> {
    let is_late = |at| now.duration_since(at) > Misfire::GRACE;
    if !is_late(late_from(job, run)) || !run.origin.is_scheduled() || run.attempt > 1 {
        return None;
    }
    // The job's next scheduled time is missed too: its catch-up run is still to come, and one is enough.
    let make_up_to_come = job.enabled && job.next_fire_at.is_some_and(is_late);
    match job.spec.misfire {
        Misfire::Skip => Some(Disposition::MisfireSkipped),
        Misfire::FireOnce => (make_up_to_come || !is_latest).then_some(Disposition::Coalesced),
        Misfire::FireAll { window, .. } => {
            (run.scheduled_at < now - window).then_some(Disposition::MisfireSkipped)
        }
    }
}

/// Disposition of a run that this node holds and was to send at `run.due_at`, if it is too late for that by now.
/// Only time and definition decide: a catch-up run covers this one if the next scheduled time is missed as well.
pub(crate) fn missed_in_hand(job: &Job, run: &Run, now: Timestamp) -> Option<Disposition> {
    let is_late = |at: Timestamp| now.duration_since(at) > Misfire::GRACE;
    let is_first_claim = run.version <= FIRST_CLAIM;
    if run.origin != Origin::Schedule || run.attempt > 1 || !(is_first_claim || may_be_too_late(job, run)) {
        return None;
    }
    if !is_late(late_from(job, run)) {
        return None;
    }
    match job.spec.misfire {
        Misfire::Skip => Some(Disposition::MisfireSkipped),
        Misfire::FireOnce => {
            job.spec.next_after(run.scheduled_at).is_some_and(is_late).then_some(Disposition::Coalesced)
        }
        Misfire::FireAll { window, .. } => {
            (run.scheduled_at < now - window).then_some(Disposition::MisfireSkipped)
        }
    }
}

/// Disposition of a run whose first request certainly did not arrive, if it is too late to send it again.
pub(crate) fn too_late_again(job: &Job, run: &Run, now: Timestamp) -> Option<Disposition> {
    let planned = Run { due_at: planned_at(job, run), ..run.clone() };
    may_be_too_late(job, run).then(|| too_late(job, &planned, true, now)).flatten()
}

/// Time from which the lateness of a run is counted. A run that is sent again has a new due time; its first one, with
/// a margin, counts all the same, so that an outage in between does not grant it the misfire grace a second time.
fn late_from(job: &Job, run: &Run) -> Timestamp {
    let was_deferred = run.doubt_since.is_some();
    if run.origin == Origin::Schedule && (run.version > FIRST_CLAIM || was_deferred) {
        run.due_at.min(planned_at(job, run) + RESEND_MARGIN)
    } else {
        run.due_at
    }
}

/// Time at which the first request of a scheduled run was to be sent.
fn planned_at(job: &Job, run: &Run) -> Timestamp {
    run.scheduled_at + jitter(job, run.scheduled_at)
}

/// Next attempt of a run that was first deferred at `since` because no executor could be asked; `None` once it has
/// waited as long as its job allows. With delivery at least once it waits until an executor can be asked.
pub(crate) fn deferred_until(job: &Job, run: &Run, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let wait = now.duration_since(since).clamp(DEFER_MIN, DEFER_MAX);
    if job.spec.delivery == Delivery::AtLeastOnce {
        return Some(now + wait);
    }
    let due_at = planned_at(job, run);
    let too_late_at = match job.spec.misfire {
        _ if run.origin != Origin::Schedule || run.attempt > 1 => None,
        Misfire::Skip => Some(due_at + Misfire::GRACE),
        Misfire::FireAll { window, .. } => Some(run.scheduled_at + window),
        Misfire::FireOnce => None,
    };
    let last = too_late_at.map_or(since + DEFER_WINDOW, |at| at.min(since + DEFER_WINDOW));
    (now + DEFER_LEAST <= last).then(|| (now + wait).min(last))
}

/// Whether a run may be too late to be sent: not a catch-up run, nor one that waits because of its job's policy,
/// for the active run to end or for at-least-once delivery.
fn may_be_too_late(job: &Job, run: &Run) -> bool {
    run.origin == Origin::Schedule
        && job.spec.overlap != Overlap::Wait
        && job.spec.delivery != Delivery::AtLeastOnce
}

/// Scheduled times of a job, from its next fire on.
struct Instants<'a> {
    job: &'a Job,
    next: Option<Timestamp>,
}

impl Instants<'_> {
    /// Takes the next scheduled time if it is before or at `until`.
    fn take_until(&mut self, until: Timestamp) -> Option<Timestamp> {
        let at = self.next.filter(|at| *at <= until)?;
        self.next = self.job.spec.next_after(at);
        Some(at)
    }
}

/// Takes the scheduled times that are too late to be sent normally, and applies the job's misfire policy.
fn missed(job: &Job, instants: &mut Instants<'_>, now: Timestamp, plan: &mut Plan) {
    let too_late = now - Misfire::GRACE - Duration::from_millis(1);
    // Each range has no gaps: those before the catch-up runs, and those after.
    let (mut before, mut after) = (Range::default(), Range::default());
    let mut make_up = Vec::new();
    let mut left = MISSED_MAX;
    while left > 0
        && let Some(at) = instants.take_until(too_late)
    {
        left -= 1;
        match job.spec.misfire {
            Misfire::FireAll { window, max }
                if at >= now - window && make_up.len() < max.min(Misfire::MAX_CATCH_UP) as usize =>
            {
                make_up.push(at);
            }
            _ if make_up.is_empty() => before.add(at),
            _ => after.add(at),
        }
    }
    // If there are more than one plan may count, the catch-up run is for the last of them.
    let all_seen = instants.next.is_none_or(|next| next > too_late);
    if job.spec.misfire == Misfire::FireOnce && all_seen {
        make_up.extend(before.pop_last());
    }
    let disposition = match job.spec.misfire {
        Misfire::FireOnce => Disposition::Coalesced,
        Misfire::Skip | Misfire::FireAll { .. } => Disposition::MisfireSkipped,
    };
    let ranges = [before, after].into_iter();
    plan.unsent.extend(ranges.filter_map(|range| range.into_unsent(disposition, TOO_LATE)));
    plan.fires.extend(make_up.into_iter().map(|at| fire(job, at, Origin::Misfire)));
}

/// Takes the scheduled times that are due now or within the horizon.
fn due(
    job: &Job,
    instants: &mut Instants<'_>,
    now: Timestamp,
    horizon: Timestamp,
    fires_max: usize,
    plan: &mut Plan,
) {
    // A missed scheduled time that did not fit into this plan comes first in the next.
    if instants.next.is_some_and(|next| next < now - Misfire::GRACE) {
        return;
    }
    while plan.fires.len() < fires_max
        && let Some(at) = instants.take_until(horizon)
    {
        plan.fires.push(fire(job, at, Origin::Schedule));
    }
}

/// Makes one of the fires the active run of an exclusive job, if there is none, and decides about the others.
fn one_place(job: &Job, plan: &mut Plan) {
    let fires = std::mem::take(&mut plan.fires);
    let mut free = job.running.is_none();
    let mut waiting = job.waiting;
    let last = fires.len().saturating_sub(1);
    for (index, mut fire) in fires.into_iter().enumerate() {
        let at = fire.scheduled_at;
        match job.spec.overlap {
            // Of several fires, the last would replace the earlier ones at once.
            Overlap::Replace if index == last => {
                plan.replace = !free;
                plan.fires.push(fire);
            }
            Overlap::Replace => {
                plan.unsent.push(Unsent::one(Disposition::Blocked, at, "replaced by a later fire"))
            }
            _ if free && waiting == 0 => {
                free = false;
                plan.fires.push(fire);
            }
            Overlap::Wait if waiting < Overlap::MAX_WAITING => {
                waiting += 1;
                fire.waits = true;
                plan.fires.push(fire);
            }
            _ => plan.unsent.push(Unsent::one(Disposition::Blocked, at, BLOCKED)),
        }
    }
}

fn fire(job: &Job, scheduled_at: Timestamp, origin: Origin) -> Fire {
    let due_at = scheduled_at + jitter(job, scheduled_at);
    Fire { scheduled_at, due_at, origin, targets: vec![], waits: false }
}

/// Delay of a fire after its scheduled time: up to the job's jitter, always the same for one fire.
fn jitter(job: &Job, scheduled_at: Timestamp) -> Duration {
    let limit = job.spec.jitter.as_millis() as u64;
    if limit == 0 {
        return Duration::ZERO;
    }
    // Fibonacci hashing: neighbouring ids and times get very different delays.
    let mixed = (job.id.0 as u64 ^ (scheduled_at.as_millis() as u64).rotate_left(32))
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Duration::from_millis((mixed >> 32) % (limit + 1))
}

/// Scheduled times with the same disposition, counted and not listed: an outage may cover very many.
#[derive(Default)]
struct Range {
    first: Option<Timestamp>,
    before_last: Option<Timestamp>,
    last: Option<Timestamp>,
    count: u64,
}

impl Range {
    fn add(&mut self, at: Timestamp) {
        self.first.get_or_insert(at);
        self.before_last = self.last.replace(at);
        self.count += 1;
    }

    fn pop_last(&mut self) -> Option<Timestamp> {
        let last = self.last?;
        self.count -= 1;
        self.last = self.before_last.take();
        Some(last)
    }

    fn into_unsent(self, disposition: Disposition, reason: &str) -> Option<Unsent> {
        let (first, last) = (self.first?, self.last?);
        (self.count > 0).then(|| Unsent {
            disposition,
            first,
            last,
            count: self.count,
            reason: reason.into(),
        })
    }
}

impl Unsent {
    /// A single scheduled time.
    pub(crate) fn one(disposition: Disposition, at: Timestamp, reason: &str) -> Unsent {
        Unsent { disposition, first: at, last: at, count: 1, reason: reason.into() }
    }
}

/// Maximum number of missed scheduled times in one plan: the transaction stays short (a fraction of a second)
/// however long the outage was; the next plan continues from there.
const MISSED_MAX: u32 = 50_000;

/// Maximum number of fires of one job in one plan, for the same reason.
pub(crate) const FIRES_MAX: u32 = 1000;

/// Polling interval of a run that waits for the active run to end, in case the wake-up is missed.
const WAIT_LOOK: Duration = Duration::from_secs(1);

/// First delay of a deferred run. Unreachable executors are checked for recovery every second.
const DEFER_MIN: Duration = Duration::from_secs(1);

/// Delays grow with the time since the first; at most this, so that the end of an outage is noticed.
const DEFER_MAX: Duration = Duration::from_secs(10);

/// Version of a run up to its first claim; a run that was released or sent before has a higher one.
pub(crate) const FIRST_CLAIM: i64 = 2;

/// Time for a decision to send a run again, or to try it once more at the end of its time, to take effect.
const RESEND_MARGIN: Duration = Duration::from_secs(1);

/// A run is tried once more at the end of its time, unless that is this near.
const DEFER_LEAST: Duration = Duration::from_millis(100);

/// Time after which a deferred run fails, unless its job's misfire policy ends it earlier. The same as for a run in
/// doubt.
const DEFER_WINDOW: Duration = crate::watch::PROBE_WINDOW;

pub(crate) const TOO_LATE: &str = "missed: no node could fire it in time";

const BLOCKED: &str = "another run of the job was active";

#[cfg(test)]
mod tests;
