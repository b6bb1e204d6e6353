//! I2 to I6, I14: every scheduled time leads to the right result, once, in time, in order.

use std::collections::{BTreeMap, BTreeSet};

use cron::Schedule;
use engine::policy::{Delivery, Misfire, Overlap};
use engine::{Disposition, JobId, JobSpec, Origin, Outcome, RunId};

use super::timeline::{State, Timeline, instants, is_instant};
use super::{Case, arrival};
use crate::sim::clock::{Ms, START};
use crate::sim::evidence::{Attempt, Ended, Facts, Passage, is_own};
use crate::sim::plan::routes;

pub(super) fn check(case: &mut Case<'_>) {
    no_double(case);
    no_phantom(case);
    complete_broadcasts(case);
    in_order(case);
    let jobs: Vec<JobId> = case.timelines.keys().copied().collect();
    for job in jobs {
        let fates = fates(case, job);
        nothing_silent(case, job, &fates);
        arrival::check(case, job, &fates);
        misfires(case, job, &fates);
        too_late_to_send(case, job);
        delays_go_on(case, job);
    }
}

/// I2: at most one accepted request per shard and attempt of a fire, and one run id for each.
fn no_double(case: &mut Case<'_>) {
    let mut names: BTreeMap<(JobId, Ms, Origin, u32, u32), RunId> = BTreeMap::new();
    for facts in case.witnessed.values() {
        // If a change of the job cancelled the run in time, the changed job may fire again.
        if case.attempts(facts.id).is_empty() && !case.is_javas(facts.id) {
            continue;
        }
        // A scheduled time is fired by the schedule or as a catch-up run, never both.
        let origin = if facts.origin == Origin::Misfire { Origin::Schedule } else { facts.origin };
        // Fixed delays and waiting rows that were never split have no shard of their own.
        let key = (facts.job, facts.scheduled_at, origin, facts.shard.index, facts.attempt);
        if let Some(other) = names.insert(key, facts.id) {
            case.found.push(violation("I2", format!("runs {other} and {} are the same: {key:?}", facts.id)));
        }
    }
    let mut accepted: BTreeMap<RunId, u32> = BTreeMap::new();
    for received in &case.evidence.received {
        if received.at < received.run.scheduled_at {
            let early = received.run.scheduled_at - received.at;
            case.found.push(violation("I4", format!("run {} arrived {early} ms early", received.run.id)));
        }
        if received.accepted {
            *accepted.entry(received.run.id).or_default() += 1;
        }
    }
    for (run, count) in accepted {
        case.checked("I2");
        case.checked("I4");
        let Some(facts) = case.evidence.facts(run) else { continue };
        let once = case.timelines[&facts.job].specs.iter().all(|spec| spec.delivery != Delivery::AtLeastOnce);
        if count > 1 && once {
            case.broken("I2", format!("run {run} of job {} was accepted {count} times", facts.job));
        }
    }
}

/// I3: every received run has a cause.
fn no_phantom(case: &mut Case<'_>) {
    let received: BTreeSet<RunId> = case.evidence.received.iter().map(|received| received.run.id).collect();
    for run in received {
        case.checked("I3");
        let Some(facts) = case.evidence.facts(run).cloned() else {
            case.broken("I3", format!("run {run} was received, and nobody ever saw its row"));
            continue;
        };
        if let Some(reason) = phantom(case, &facts) {
            case.broken(
                "I3",
                format!("run {run} of job {} at {}: {reason}", facts.job, since(facts.scheduled_at)),
            );
        }
    }
}

fn phantom(case: &Case<'_>, facts: &Facts) -> Option<String> {
    match facts.origin {
        // It had taken the fire when the job was changed.
        Origin::Schedule if case.is_javas(facts.id) => None,
        Origin::Schedule | Origin::Misfire => {
            let timeline = &case.timelines[&facts.job];
            (!timeline.may_fire_at(facts.scheduled_at)).then(|| {
                format!("not an instant of the job, which was {:?}", timeline.at(facts.scheduled_at))
            })
        }
        Origin::Manual { key } => {
            use crate::sim::evidence::Operation;
            let asked =
                |operation: &Operation| matches!(operation, Operation::Trigger(asked) if *asked == key);
            let known = case.evidence.ops.iter().any(|op| op.job == facts.job && asked(&op.operation));
            (!known).then(|| format!("nobody asked for {key}"))
        }
        Origin::Child { of } => {
            let succeeded = |run: RunId| {
                case.evidence.results.iter().any(|result| {
                    result.run == run && matches!(result.outcome, engine::Outcome::Succeeded(_))
                })
            };
            let fire_succeeded =
                || case.witnessed.values().any(|facts| facts.fire == of && succeeded(facts.id));
            (!succeeded(of) && !fire_succeeded()).then(|| format!("its parent {of} has not succeeded"))
        }
        Origin::Step { of, step } => {
            Some(format!("the simulation has no workflow run {of} with a step {step}"))
        }
        Origin::Resume { of } => Some(format!("the simulation has no workflow run {of}")),
        Origin::Backfill { of } => {
            let known = case.evidence.backfills.iter().any(|seen| seen.id == of && seen.job == facts.job);
            (!known).then(|| format!("nobody asked for backfill {of}"))
        }
    }
}

/// I14: of a broadcast fire the shards 0 to n - 1 arrive, each once, all with the same n.
fn complete_broadcasts(case: &mut Case<'_>) {
    let split = case.witnessed.values().filter(|facts| facts.attempt == 1 && facts.shard.total > 1);
    let fires: BTreeSet<RunId> =
        split.filter(|facts| case.arrivals.contains_key(&facts.id)).map(|facts| facts.fire).collect();
    for fire in fires {
        case.checked("I14");
        let shards = case.shards(fire);
        let total = shards[0].shard.total;
        let indices: Vec<u32> = shards.iter().map(|facts| facts.shard.index).collect();
        let unique: BTreeSet<u32> = indices.iter().copied().collect();
        if unique.len() != indices.len()
            || unique != (0..total).collect()
            || shards.iter().any(|facts| facts.shard.total != total)
        {
            let seen: Vec<_> = shards.iter().map(|facts| facts.shard).collect();
            case.broken("I14", format!("fire {fire} has the shards {seen:?}"));
        }
        for facts in shards {
            if !case.arrivals.contains_key(&facts.id) && !may_not_arrive(case, facts.id) {
                case.broken(
                    "I14",
                    format!(
                        "shard {:?} of fire {fire} never arrived, and nothing was in its way",
                        facts.shard
                    ),
                );
            }
        }
    }
}

/// Whether the network prevented the run from arriving, or it was closed before it was sent.
fn may_not_arrive(case: &Case<'_>, run: RunId) -> bool {
    let kept = |attempt: &&Attempt| matches!(attempt.passage, Passage::Lost | Passage::Nobody);
    let given_up = |ended: &&Ended| {
        matches!(ended.outcome, Outcome::Ambiguous(_) | Outcome::Cancelled(_) | Outcome::Dropped(..))
    };
    case.attempts(run).iter().any(kept)
        || !case.deferred(run).is_empty()
        || case.evidence.own_history(run).is_some()
        || case.endings(run).iter().any(given_up)
}

/// One incarnation of a node sends the fires of one job in order of their scheduled times.
fn in_order(case: &mut Case<'_>) {
    let mut last: BTreeMap<(JobId, engine::Node), (Ms, RunId)> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for attempt in &case.evidence.attempts {
        let Some(entry) = case.evidence.ledger.get(&attempt.run.id) else { continue };
        let (facts, timeline) = (&entry.facts, &case.timelines[&entry.facts.job]);
        // A routing strategy that probes executors first may take longer for one fire than for the next.
        let asks_first = |spec: &JobSpec| case.plan.registering.is_some() && spec.route == routes::AT_SEND;
        let simple = timeline
            .specs
            .iter()
            .all(|spec| spec.jitter.is_zero() && spec.overlap == Overlap::Allow && !asks_first(spec));
        let [claim] = entry.claims.as_slice() else { continue };
        if !simple || facts.attempt > 1 || !facts.origin.is_scheduled() || !seen.insert(attempt.run.id) {
            continue;
        }
        // Later fires do not wait for a run whose executor could not be called, and not for long for one that waits
        // for the circuit breaker's verdict about its executor.
        let has_waited = case.plan.registering.is_some() && attempt.at - facts.scheduled_at >= TURN_MAX;
        if has_waited || !case.deferred(attempt.run.id).is_empty() {
            continue;
        }
        // A run of the old schedule that was sent before it could be cancelled is ahead of those of the new schedule.
        if timeline.is_changing(facts.scheduled_at - AHEAD, attempt.at) {
            continue;
        }
        *case.counts.checked.entry("order").or_default() += 1;
        let before = last.insert((facts.job, claim.life.clone()), (facts.scheduled_at, facts.id));
        if let Some((scheduled_at, run)) = before
            && scheduled_at > facts.scheduled_at
        {
            case.found
                .push(violation("I6", format!("run {} left after {run}, whose instant is later", facts.id)));
        }
    }
}

/// Outcome of one scheduled time.
#[derive(Clone, Debug, Default)]
pub(super) struct Fate {
    /// The fires opened for it, by the first run of each.
    pub(super) fires: Vec<RunId>,
    /// Reasons in the history for not sending it.
    pub(super) unsent: Vec<Disposition>,
    /// Times at which the history records a cancellation.
    cancelled: Vec<Ms>,
    /// The fires that were cancelled before they were sent.
    recalled: Vec<RunId>,
}

impl Fate {
    /// All fires opened for it, with any outcome.
    pub(super) fn opened(&self) -> impl Iterator<Item = RunId> + Clone {
        self.fires.iter().chain(&self.recalled).copied()
    }

    fn real(&self) -> usize {
        self.fires.len() + self.unsent.len()
    }
}

/// Outcome of each scheduled time of a job, from rows and history.
fn fates(case: &mut Case<'_>, job: JobId) -> BTreeMap<Ms, Fate> {
    let mut fates: BTreeMap<Ms, Fate> = BTreeMap::new();
    let evidence = case.evidence;
    let mut fires = BTreeSet::new();
    for facts in case.witnessed.values().copied() {
        if facts.job != job || !facts.origin.is_scheduled() || facts.attempt > 1 || !fires.insert(facts.fire)
        {
            continue;
        }
        let fate = fates.entry(facts.scheduled_at).or_default();
        let was_sent = !case.attempts(facts.id).is_empty();
        let cancelled = evidence.history[&job]
            .iter()
            .find(|entry| is_own(entry, facts) && entry.unsent.disposition == Disposition::Cancelled);
        match cancelled {
            Some(entry) if !was_sent => {
                fate.cancelled.push(entry.at.as_millis());
                fate.recalled.push(facts.fire);
            }
            _ => fate.fires.push(facts.fire),
        }
    }
    let mut ranges = Vec::new();
    for entry in &evidence.history[&job] {
        let known = entry.run.and_then(|run| evidence.facts(run));
        if known.is_some_and(|facts| is_own(entry, facts) || !facts.origin.is_scheduled()) {
            continue;
        }
        let unsent = &entry.unsent;
        match (unsent.disposition, unsent.count) {
            (Disposition::Cancelled, _) => {
                fates.entry(unsent.first.as_millis()).or_default().cancelled.push(entry.at.as_millis());
            }
            (Disposition::Lost, _) => {}
            (disposition, 1) => fates.entry(unsent.first.as_millis()).or_default().unsent.push(disposition),
            _ => ranges.push(unsent.clone()),
        }
    }
    for unsent in ranges {
        let (first, last) = (unsent.first.as_millis(), unsent.last.as_millis());
        let timeline = &case.timelines[&job];
        let specs: Vec<&JobSpec> = match timeline.at(first) {
            State::On(spec) => vec![&timeline.specs[spec]],
            _ => timeline
                .specs
                .iter()
                .filter(|spec| is_instant(spec, first) && is_instant(spec, last))
                .collect(),
        };
        // A range records how many of its scheduled times were not sent; the sent ones have rows.
        let free = |spec: &JobSpec| -> Vec<Ms> {
            let covered = instants(spec, first - 1, last);
            covered.filter(|instant| fates.get(instant).is_none_or(|fate| fate.fires.is_empty())).collect()
        };
        let covered = specs.into_iter().map(free).find(|free| free.len() as u64 == unsent.count);
        match covered {
            Some(covered) => {
                for instant in covered {
                    fates.entry(instant).or_default().unsent.push(unsent.disposition);
                }
            }
            None => {
                let text = format!(
                    "job {job}: {:?} of {} instants from {} to {} does not fit its schedule",
                    unsent.disposition,
                    unsent.count,
                    since(first),
                    since(last)
                );
                case.broken("I5", text);
            }
        }
    }
    fates
}

/// I5: every scheduled time in force has exactly one outcome, and every outcome a scheduled time.
fn nothing_silent(case: &mut Case<'_>, job: JobId, fates: &BTreeMap<Ms, Fate>) {
    let timeline = &case.timelines[&job];
    let mut found = Vec::new();
    let mut checked = 0;
    for span in &timeline.spans {
        let State::On(number) = span.state else { continue };
        let spec = &timeline.specs[number];
        if matches!(spec.schedule, Schedule::FixedDelay { .. }) {
            continue;
        }
        for instant in instants(spec, span.after, span.until.min(end(case))) {
            checked += 1;
            let fate = fates.get(&instant).cloned().unwrap_or_default();
            let why = match (fate.real(), fate.cancelled.as_slice()) {
                (1, _) => continue,
                (0, []) => "nothing became of it".to_owned(),
                (0, cancelled) if cancelled.iter().any(|at| may_cancel(timeline, *at)) => {
                    continue;
                }
                // Unclear when the job was changed and found unsent only later: cancelled, so not sent.
                (0, cancelled) if cancelled.iter().any(|at| timeline.is_changing(instant - AHEAD, *at)) => {
                    continue;
                }
                // A later run replaced it before it was sent.
                (0, _) if spec.overlap == Overlap::Replace => continue,
                (0, cancelled) => format!("cancelled at {cancelled:?}, when nobody changed the job"),
                (_, _) => format!("more than one thing became of it: {fate:?}"),
            };
            found.push(violation("I5", format!("job {job}, instant {}: {why}", since(instant))));
        }
    }
    for (instant, fate) in fates {
        let only_java = fate.unsent.is_empty() && fate.fires.iter().all(|fire| case.is_javas(*fire));
        if fate.real() > 0 && !only_java && !timeline.may_fire_at(*instant) {
            let text = format!(
                "job {job}, instant {}, when it was {:?}: {fate:?}",
                since(*instant),
                timeline.at(*instant)
            );
            found.push(violation("I3", text));
        }
        if fate.real() > 1 {
            found.push(violation("I5", format!("job {job}, instant {}: {fate:?}", since(*instant))));
        }
    }
    *case.counts.checked.entry("I5").or_default() += checked;
    case.found.extend(found);
}

/// How long before its scheduled time a run may be claimed.
const AHEAD: Ms = engine::LOOK_AHEAD.as_millis() as Ms;

/// Whether a run may have been cancelled then: while the job was changed, or because it was stopped.
fn may_cancel(timeline: &Timeline, at: Ms) -> bool {
    timeline.is_changing(at - 1_000, at) || !matches!(timeline.at(at), State::On(_))
}

/// I6: catch-up runs only if the job wants them, and no more than it allows.
fn misfires(case: &mut Case<'_>, job: JobId, fates: &BTreeMap<Ms, Fate>) {
    let specs = case.timelines[&job].specs.clone();
    let mut at_once: BTreeMap<Ms, Vec<Ms>> = BTreeMap::new();
    for entry in case.evidence.ledger.values() {
        let facts = &entry.facts;
        if facts.job != job || facts.origin != Origin::Misfire || facts.attempt > 1 || facts.shard.index > 0 {
            continue;
        }
        case.checked("I6");
        let Some(claim) = entry.claims.first() else { continue };
        at_once.entry(claim.at).or_default().push(facts.scheduled_at);
        if specs.iter().all(|spec| spec.misfire == Misfire::Skip) {
            case.broken(
                "I6",
                format!("run {} makes up for a missed instant; job {job} wants that not", facts.id),
            );
        }
        if claim.at - facts.scheduled_at < Misfire::GRACE.as_millis() as Ms {
            case.broken("I6", format!("run {} makes up for an instant that was not missed", facts.id));
        }
    }
    let most = |spec: &JobSpec| match spec.misfire {
        Misfire::Skip => 0,
        Misfire::FireOnce => 1,
        Misfire::FireAll { max, .. } => max as usize,
    };
    // Runs that wait for an earlier run of their job are claimed one by one, regardless of when they were planned.
    let allowed = specs.iter().map(most).max().unwrap_or_default();
    for (at, made_up) in at_once {
        if made_up.len() > allowed {
            case.broken(
                "I6",
                format!("job {job} makes up for {made_up:?} at {}: at most {allowed}", since(at)),
            );
        }
    }
    for (instant, fate) in fates {
        for unsent in &fate.unsent {
            case.checked("I6");
            let fits = match unsent {
                Disposition::Coalesced => specs.iter().any(|spec| spec.misfire == Misfire::FireOnce),
                Disposition::MisfireSkipped => specs.iter().any(|spec| spec.misfire != Misfire::FireOnce),
                Disposition::Blocked => specs.iter().any(|spec| spec.overlap.is_exclusive()),
                Disposition::Cancelled | Disposition::Lost => true,
            };
            if !fits {
                case.broken(
                    "I6",
                    format!("job {job}, instant {}: {unsent:?} is not its policy", since(*instant)),
                );
            }
        }
    }
}

/// I6 for fires that were claimed ahead but not dispatched in time: skipped if the misfire policy is *skip*, and
/// only then.
fn too_late_to_send(case: &mut Case<'_>, job: JobId) {
    let grace = Misfire::GRACE.as_millis() as Ms;
    let specs = &case.timelines[&job].specs;
    let always = specs.iter().all(|spec| {
        spec.misfire == Misfire::Skip
            && spec.overlap == Overlap::Allow
            && spec.delivery != Delivery::AtLeastOnce
    });
    // `FireAll` applies only to fires within its window.
    let never = specs.iter().all(|spec| spec.misfire == Misfire::FireOnce);
    let mut found = Vec::new();
    for entry in case.evidence.ledger.values() {
        let facts = &entry.facts;
        if facts.job != job || facts.origin != Origin::Schedule || facts.attempt > 1 {
            continue;
        }
        let was_skipped = case.evidence.own_history(facts.id) == Some(Disposition::MisfireSkipped);
        if was_skipped && never {
            found.push(format!("run {} was skipped as too late; job {job} wants that not", facts.id));
        }
        let jitter = specs.iter().map(|spec| spec.jitter.as_millis() as Ms).max().unwrap_or_default();
        let lateness = case.attempts(facts.id).iter().map(|attempt| attempt.at - facts.scheduled_at).max();
        if always && let Some(late) = lateness.filter(|late| late - jitter > grace + SLACK) {
            found.push(format!("run {} left {late} ms late; job {job} wants it skipped", facts.id));
        }
    }
    case.found.extend(found.into_iter().map(|text| violation("I6", text)));
}

/// A decision to send a run again, or once more, is made shortly before it is sent.
const SLACK: Ms = 1_250;

/// A job with a fixed delay does not stop by itself.
fn delays_go_on(case: &mut Case<'_>, job: JobId) {
    let timeline = &case.timelines[&job];
    let Some(index) = timeline.spans.iter().rposition(|span| matches!(span.state, State::On(_))) else {
        return;
    };
    let span = &timeline.spans[index];
    let State::On(number) = span.state else { return };
    let Schedule::FixedDelay { delay } = timeline.specs[number].schedule else { return };
    // If runs must not overlap, a manually triggered run may delay it.
    if timeline.specs[number].overlap.is_exclusive() {
        return;
    }
    let scheduled: Vec<&Facts> = case
        .evidence
        .ledger
        .values()
        .map(|entry| &entry.facts)
        .filter(|facts| facts.job == job && facts.origin.is_scheduled() && facts.scheduled_at <= span.until)
        .collect();
    let ended: Option<Vec<Ms>> =
        scheduled.iter().map(|facts| case.endings(facts.id).first().map(|ended| ended.at)).collect();
    let waits_for_retry = scheduled.iter().any(|facts| {
        scheduled.iter().all(|other| other.retry_of != Some(facts.id))
            && facts.attempt <= timeline.specs[number].retry.count
            && !case
                .endings(facts.id)
                .iter()
                .any(|ended| matches!(ended.outcome, engine::Outcome::Succeeded(_)))
    });
    let Some(ended) = ended.filter(|_| !waits_for_retry) else { return };
    let last = ended.into_iter().max().unwrap_or_default().max(span.after).max(case.plan.faults_until);
    let idle = span.until.min(end(case)) - last - delay.as_millis() as Ms;
    case.checked("delay");
    if idle > DELAY_RECOVERY {
        let text = format!(
            "job {job} fires {delay:?} after its end, and has not for {idle} ms more since {}",
            since(last)
        );
        case.broken("I1", text);
    }
}

/// How much longer than its delay such a job may pause: its last run may have been unclear, on a node that was lost.
const DELAY_RECOVERY: Ms = 7_500;

/// End of the simulation.
pub(super) fn end(case: &Case<'_>) -> Ms {
    case.evidence.beats.last().map_or(START, |beat| beat.at)
}

/// Formats a time as seconds since the start of the simulation.
pub(super) fn since(at: Ms) -> String {
    let at = at - START;
    format!("{}.{:03}", at / 1000, (at % 1000).abs())
}

pub(super) fn violation(promise: &'static str, evidence: String) -> crate::sim::evidence::Violation {
    crate::sim::evidence::Violation { promise, evidence }
}

/// How long a fire waits for the one before it.
const TURN_MAX: Ms = 100;
