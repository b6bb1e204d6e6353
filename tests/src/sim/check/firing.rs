//! I1 to I6, I14: every instant of every schedule becomes of what it should, once, in time, in order.

use std::collections::{BTreeMap, BTreeSet};

use cron::Schedule;
use engine::policy::{Delivery, Misfire, Overlap};
use engine::{Disposition, JobId, JobSpec, Origin, RunId};

use super::Case;
use super::timeline::{State, Timeline, instants, is_instant};
use crate::sim::clock::{Ms, START};
use crate::sim::evidence::{Facts, is_own};

pub(super) fn check(case: &mut Case<'_>) {
    no_double(case);
    no_phantom(case);
    complete_broadcasts(case);
    in_order(case);
    let jobs: Vec<JobId> = case.timelines.keys().copied().collect();
    for job in jobs {
        let fates = fates(case, job);
        nothing_silent(case, job, &fates);
        no_loss(case, job, &fates);
        misfires(case, job, &fates);
        delays_go_on(case, job);
    }
}

/// I2: at most one accepted request for each shard and try of a fire, and one name for each.
fn no_double(case: &mut Case<'_>) {
    let mut names: BTreeMap<(JobId, Ms, Origin, u32, u32), RunId> = BTreeMap::new();
    for entry in case.evidence.ledger.values() {
        let facts = &entry.facts;
        // What a change of the job cancelled in time, the changed job may fire.
        if case.attempts(facts.id).is_empty() {
            continue;
        }
        // An instant is fired by schedule or as a make-up, never both.
        let origin = if facts.origin == Origin::Misfire { Origin::Schedule } else { facts.origin };
        // Delays and waiting rows that were never split have no shard of their own.
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

/// I3: everything that was received has a reason.
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
        Origin::Schedule | Origin::Misfire => {
            let timeline = &case.timelines[&facts.job];
            (!timeline.may_fire_at(facts.scheduled_at)).then(|| {
                format!("not an instant of the job, which was {:?}", timeline.at(facts.scheduled_at))
            })
        }
        Origin::Manual { key } => {
            use crate::sim::evidence::Wish;
            let asked = |wish: &Wish| matches!(wish, Wish::Trigger(asked) if *asked == key);
            let known = case.evidence.ops.iter().any(|op| op.job == facts.job && asked(&op.wish));
            (!known).then(|| format!("nobody asked for {key}"))
        }
        Origin::Child { of } => {
            let succeeded = |run: RunId| {
                case.evidence.results.iter().any(|result| {
                    result.run == run && matches!(result.outcome, engine::Outcome::Succeeded(_))
                })
            };
            let fire_succeeded = || {
                case.evidence.ledger.values().any(|entry| entry.facts.fire == of && succeeded(entry.facts.id))
            };
            (!succeeded(of) && !fire_succeeded()).then(|| format!("its parent {of} has not succeeded"))
        }
    }
}

/// I14: the shards of a fire are 0 to n - 1, each once.
fn complete_broadcasts(case: &mut Case<'_>) {
    let mut fires: BTreeMap<RunId, Vec<(u32, u32)>> = BTreeMap::new();
    for entry in case.evidence.ledger.values() {
        if entry.facts.attempt == 1 && entry.facts.shard.total > 1 {
            fires
                .entry(entry.facts.fire)
                .or_default()
                .push((entry.facts.shard.index, entry.facts.shard.total));
        }
    }
    for (fire, mut shards) in fires {
        case.checked("I14");
        shards.sort_unstable();
        let total = shards[0].1;
        let expected: Vec<(u32, u32)> = (0..total).map(|index| (index, total)).collect();
        if shards != expected {
            case.broken("I14", format!("fire {fire} has the shards {shards:?}"));
        }
    }
}

/// The instants of one job leave one life of a node in their order.
fn in_order(case: &mut Case<'_>) {
    let mut last: BTreeMap<(JobId, engine::Node), (Ms, RunId)> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for attempt in &case.evidence.attempts {
        let Some(entry) = case.evidence.ledger.get(&attempt.run) else { continue };
        let (facts, timeline) = (&entry.facts, &case.timelines[&entry.facts.job]);
        let simple =
            timeline.specs.iter().all(|spec| spec.jitter.is_zero() && spec.overlap == Overlap::Allow);
        let [claim] = entry.claims.as_slice() else { continue };
        if !simple || facts.attempt > 1 || !facts.origin.is_scheduled() || !seen.insert(attempt.run) {
            continue;
        }
        // A run of the old schedule that left before it could be taken back is ahead of the new one's.
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

/// What became of one instant.
#[derive(Clone, Debug, Default)]
struct Fate {
    /// The fires opened for it, by the first run of each.
    fires: Vec<RunId>,
    /// How often the history says that it was not sent.
    unsent: Vec<Disposition>,
    /// When the history says that it was cancelled.
    cancelled: Vec<Ms>,
}

impl Fate {
    fn real(&self) -> usize {
        self.fires.len() + self.unsent.len()
    }
}

/// What became of each instant of a job, by rows and history.
fn fates(case: &mut Case<'_>, job: JobId) -> BTreeMap<Ms, Fate> {
    let mut fates: BTreeMap<Ms, Fate> = BTreeMap::new();
    let evidence = case.evidence;
    let mut fires = BTreeSet::new();
    for entry in evidence.ledger.values() {
        let facts = &entry.facts;
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
            Some(entry) if !was_sent => fate.cancelled.push(entry.at.as_millis()),
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
        // A range tells how many of its instants were not sent; those that were have rows.
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

/// I5: every instant in force has exactly one fate, every fate an instant.
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
                // In doubt when the job was changed, found unsent only later: recalled, so not sent.
                (0, cancelled) if cancelled.iter().any(|at| timeline.is_changing(instant - AHEAD, *at)) => {
                    continue;
                }
                // A later run took its place before it was sent.
                (0, _) if spec.overlap == Overlap::Replace => continue,
                (0, cancelled) => format!("cancelled at {cancelled:?}, when nobody changed the job"),
                (_, _) => format!("more than one thing became of it: {fate:?}"),
            };
            found.push(violation("I5", format!("job {job}, instant {}: {why}", since(instant))));
        }
    }
    for (instant, fate) in fates {
        if fate.real() > 0 && !timeline.may_fire_at(*instant) {
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

/// Whether a run can have been cancelled then: while the job was changed, or because it was stopped.
/// How long before its instant a run may be claimed.
const AHEAD: Ms = engine::LOOK_AHEAD.as_millis() as Ms;

fn may_cancel(timeline: &Timeline, at: Ms) -> bool {
    timeline.is_changing(at - 1_000, at) || !matches!(timeline.at(at), State::On(_))
}

/// I1: an instant in force is sent in time, if there was a node in order to send it.
fn no_loss(case: &mut Case<'_>, job: JobId, fates: &BTreeMap<Ms, Fate>) {
    let timeline = &case.timelines[&job];
    let mut found = Vec::new();
    let (mut checked, mut strict) = (0, 0);
    let mut worst = 0;
    for span in &timeline.spans {
        let State::On(number) = span.state else { continue };
        let spec = &timeline.specs[number];
        // A run of these may have to wait, or be replaced before it was sent.
        let may_wait = matches!(spec.overlap, Overlap::Wait | Overlap::Replace);
        if matches!(spec.schedule, Schedule::FixedDelay { .. } | Schedule::Never) || may_wait {
            continue;
        }
        for instant in instants(spec, span.after, span.until.min(end(case))) {
            if timeline.is_changing(instant - 2_000, instant + RECOVERY) {
                continue;
            }
            let Some(fate) = fates.get(&instant) else { continue };
            if fate.unsent == [Disposition::Blocked] {
                continue;
            }
            let due = instant + spec.jitter.as_millis() as Ms;
            let calm = is_calm(case, instant - CALM, due + IN_TIME);
            let recovers = (0..case.plan.nodes).any(|node| works(case, node, instant - CALM, due + RECOVERY));
            if !calm && !recovers {
                continue;
            }
            let Some(sent) = first_sent(case, fate) else {
                // Whether it was sent is not known when its node dies: the job wants no second try, or nobody answers.
                let in_doubt = spec.delivery == Delivery::AtMostOnce
                    || fate.fires.iter().any(|fire| is_spoilt(case, *fire));
                if calm || !in_doubt {
                    found.push(violation(
                        "I1",
                        format!("job {job}, instant {} was not sent: {fate:?}", since(instant)),
                    ));
                }
                continue;
            };
            checked += 1;
            let spoilt = fate.fires.iter().any(|fire| is_spoilt(case, *fire));
            // The fires of a job leave one after the other.
            let free = before_it(case, timeline, job, instant, sent);
            let late = sent - free.max(due);
            let most = if calm { IN_TIME } else { RECOVERY };
            strict += u64::from(calm);
            if !spoilt && !calm {
                worst = worst.max(late);
            }
            if late > most && (calm || !spoilt) {
                let text =
                    format!("job {job}, instant {} was sent {late} ms late (calm {calm})", since(instant));
                found.push(violation("I1", text));
            }
        }
    }
    *case.counts.checked.entry("I1").or_default() += checked;
    *case.counts.checked.entry("I1 calm").or_default() += strict;
    case.counts.worst_recovery = case.counts.worst_recovery.max(worst);
    case.found.extend(found);
}

/// How long before an instant the cluster must have been in order.
const CALM: Ms = 7_000;

/// In a cluster in order a request leaves this long after its instant at most.
const IN_TIME: Ms = 1_000;

/// And when its node was lost: the lease, the search, and two denials a second apart.
const RECOVERY: Ms = 7_500;

fn is_calm(case: &Case<'_>, from: Ms, until: Ms) -> bool {
    from >= START
        && !case.evidence.troubles.iter().any(|trouble| trouble.from <= until && from <= trouble.until)
}

/// Whether this node could work all the time: never broken as a whole, and hardly hindered.
fn works(case: &Case<'_>, node: usize, from: Ms, until: Ms) -> bool {
    let troubles = case.evidence.troubles.iter();
    let its =
        troubles.filter(|trouble| trouble.node == node && trouble.from <= until && from <= trouble.until);
    let (severe, slight): (Vec<_>, Vec<_>) = its.partition(|trouble| trouble.severe);
    from >= START && severe.is_empty() && slight.len() <= 2
}

/// When the last shard of the fire was first sent.
fn first_sent(case: &Case<'_>, fate: &Fate) -> Option<Ms> {
    let fire = fate.fires.first()?;
    let shards = shards(case, *fire);
    let sent: Option<Vec<Ms>> =
        shards.into_iter().map(|run| case.attempts(run).first().map(|first| first.at)).collect();
    sent?.into_iter().max()
}

fn shards(case: &Case<'_>, fire: RunId) -> Vec<RunId> {
    let Some(facts) = case.evidence.facts(fire) else { return vec![fire] };
    if facts.shard.total <= 1 {
        return vec![fire];
    }
    let entries = case.evidence.ledger.values().map(|entry| &entry.facts);
    entries.filter(|facts| facts.fire == fire && facts.attempt == 1).map(|facts| facts.id).collect()
}

fn is_spoilt(case: &Case<'_>, fire: RunId) -> bool {
    shards(case, fire).iter().any(|run| case.evidence.spoilt.contains(run))
}

/// When the requests of the job that left before this one were all answered.
fn before_it(case: &Case<'_>, _timeline: &Timeline, job: JobId, instant: Ms, sent: Ms) -> Ms {
    let of_job = |attempt: &&crate::sim::evidence::Attempt| {
        case.evidence.facts(attempt.run).is_some_and(|facts| facts.job == job)
    };
    let before =
        case.evidence.attempts.iter().filter(|attempt| attempt.at < sent && attempt.at > instant - 60_000);
    before
        .filter(of_job)
        .filter_map(|attempt| attempt.answered.filter(|at| *at <= sent))
        .max()
        .unwrap_or_default()
}

/// I6: make-ups only where the job wants them, and as many.
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
    // Runs that wait for their job's place are claimed one by one, whenever they were planned.
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

/// A job that fires a while after its last end does not stop by itself.
fn delays_go_on(case: &mut Case<'_>, job: JobId) {
    let timeline = &case.timelines[&job];
    let Some(index) = timeline.spans.iter().rposition(|span| matches!(span.state, State::On(_))) else {
        return;
    };
    let span = &timeline.spans[index];
    let State::On(number) = span.state else { return };
    let Schedule::FixedDelay { delay } = timeline.specs[number].schedule else { return };
    // Where runs must not overlap, one by hand may hold it up.
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
    if idle > RECOVERY {
        let text = format!(
            "job {job} fires {delay:?} after its end, and has not for {idle} ms more since {}",
            since(last)
        );
        case.broken("I1", text);
    }
}

/// When the simulation was over.
fn end(case: &Case<'_>) -> Ms {
    case.evidence.beats.last().map_or(START, |beat| beat.at)
}

/// For people: since the start of the simulation.
pub(super) fn since(at: Ms) -> String {
    let at = at - START;
    format!("{}.{:03}", at / 1000, (at % 1000).abs())
}

fn violation(promise: &'static str, evidence: String) -> crate::sim::evidence::Violation {
    crate::sim::evidence::Violation { promise, evidence }
}
