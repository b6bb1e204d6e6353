//! I1: a due fire arrives at an executor in time, as long as a node is able to send it.
//!
//! The executors' journals show when it arrived. Only the network's own journal excuses a request that did not; the
//! engine's statements do not count. For a job that allows one run at a time, a fire must arrive in time if the job
//! was idle; otherwise I5 checks that it arrived or is recorded as blocked.

use std::collections::BTreeMap;

use cron::Schedule;
use engine::policy::Delivery;
use engine::{Disposition, JobId, JobSpec, Outcome, RunId};

use super::Case;
use super::firing::{Fate, end, since, violation};
use super::timeline::{State, instants};
use crate::sim::clock::{Ms, START};
use crate::sim::evidence::{Passage, Trouble};

/// Maximum lateness of a fire if its node was working (ε).
const IN_TIME: Ms = 1_000;

/// Maximum time until a node finds that an executor cannot be reached.
const UNREACHABLE_MAX: Ms = 1_000;

/// Maximum lateness if its node was lost between the claim and the request (R).
const RECOVERY: Ms = 5_000;

pub(super) fn check(case: &mut Case<'_>, job: JobId, fates: &BTreeMap<Ms, Fate>) {
    let mut found = Vec::new();
    let (mut recovered, mut in_time, mut worst) = (0, 0, 0);
    let timeline = &case.timelines[&job];
    for span in &timeline.spans {
        let State::On(number) = span.state else { continue };
        let spec = &timeline.specs[number];
        if matches!(spec.schedule, Schedule::FixedDelay { .. } | Schedule::Never) {
            continue;
        }
        for instant in instants(spec, span.after, span.until.min(end(case))) {
            // Fires without any outcome are checked by I5.
            let Some(fate) = fates.get(&instant) else { continue };
            if fate.fires.iter().any(|fire| case.is_javas(*fire))
                || timeline.is_changing(instant - 2_000, instant + RECOVERY)
                || spec.overlap.is_exclusive() && !is_idle(case, job, instant, fate)
            {
                continue;
            }
            let due = instant + spec.jitter.as_millis() as Ms;
            let Some(expected) = Expected::new(case, spec, fate, instant, due) else { continue };
            let excused = expected.excused(case, fate) || expected.is_coalesced(case, fate, fates, instant);
            match arrived(case, fate) {
                Some(at) => {
                    let (late, most) = (at - due, expected.until - due);
                    if expected.in_time {
                        in_time += 1;
                    } else {
                        recovered += 1;
                        worst = worst.max(if is_spoilt(case, fate) { 0 } else { late });
                    }
                    if late > most && !excused {
                        found.push(format!(
                            "job {job}, instant {} arrived {late} ms late, {most} ms allowed",
                            since(instant)
                        ));
                    }
                }
                None if excused => {}
                None => {
                    found.push(format!(
                        "job {job}, instant {} never arrived (in time: {}): {fate:?}",
                        since(instant),
                        expected.in_time
                    ));
                }
            }
        }
    }
    case.found.extend(found.into_iter().map(|text| violation("I1", text)));
    *case.counts.checked.entry("I1").or_default() += in_time;
    *case.counts.checked.entry("I1 recovery").or_default() += recovered;
    case.counts.worst_recovery = case.counts.worst_recovery.max(worst);
}

/// The expected arrival of a fire.
struct Expected {
    /// Its node was working all the time.
    in_time: bool,
    /// Time at which it is due.
    due: Ms,
    /// Time by which it must have arrived.
    until: Ms,
    /// The job does not allow a second attempt when the first is unclear.
    at_most_once: bool,
}

impl Expected {
    /// `None` if no node was working for long enough.
    fn new(case: &Case<'_>, spec: &JobSpec, fate: &Fate, instant: Ms, due: Ms) -> Option<Expected> {
        let at_most_once = spec.delivery == Delivery::AtMostOnce;
        let is_sound = |node: usize| {
            instant - RECOVERY >= START
                && !troubles(case, instant - RECOVERY, due + IN_TIME).any(|trouble| trouble.node == node)
        };
        let in_time = match owners(case, fate).as_slice() {
            // Decided only when due, so every node that could decide must have been working.
            _ if spec.overlap.is_exclusive() => (0..case.plan.nodes).all(is_sound),
            [owner] => is_sound(*owner),
            [] => (0..case.plan.nodes).all(is_sound),
            _ => false,
        };
        if in_time {
            // An executor that registered and cannot be reached is tried for a second, then another one is.
            let trying = if case.plan.registering.is_some() { UNREACHABLE_MAX } else { 0 };
            return Some(Expected { in_time, due, until: due + IN_TIME + trying, at_most_once });
        }
        let until = (0..case.plan.nodes).filter_map(|node| recovered_by(case, node, instant, due)).min()?;
        Some(Expected { in_time, due, until, at_most_once })
    }

    /// Whether the network prevented it from arriving (in time).
    fn excused(&self, case: &Case<'_>, fate: &Fate) -> bool {
        let shards = fate.opened().flat_map(|fire| case.shards(fire));
        let mut requests = shards.clone().flat_map(|facts| case.attempts(facts.id));
        let kept = requests.any(|attempt| {
            attempt.at <= self.until && matches!(attempt.passage, Passage::Lost | Passage::Nobody)
        });
        // Unclear when its node was lost: the job does not allow a second attempt, or the executor did not answer
        // the probe.
        let given_up = || {
            let mut endings = shards.clone().flat_map(|facts| case.endings(facts.id));
            endings.any(|ended| match ended.outcome {
                Outcome::Ambiguous(_) => self.at_most_once,
                // Marked as running in a process that died before it called the handler.
                Outcome::Lost(_) => case.plan.embedded,
                _ => false,
            })
        };
        // So late that it was missed: I6 checks the outcome.
        let skipped = || {
            let mut told = shards.clone().filter_map(|facts| case.evidence.own_history(facts.id));
            told.any(|disposition| disposition == Disposition::MisfireSkipped)
        };
        let missed = || self.until > self.due + RECOVERY && (!fate.unsent.is_empty() || skipped());
        let was_deferred = || {
            shards.clone().flat_map(|facts| case.deferred(facts.id)).any(|attempt| attempt.at <= self.until)
        };
        kept || was_deferred() || !self.in_time && (given_up() || missed() || is_spoilt(case, fate))
    }

    /// Whether it was held for so long that a later fire of its job replaces it, and that one arrived.
    fn is_coalesced(&self, case: &Case<'_>, fate: &Fate, fates: &BTreeMap<Ms, Fate>, instant: Ms) -> bool {
        let mut runs = fate.opened().flat_map(|fire| case.shards(fire)).map(|facts| facts.id);
        let is_recorded = runs.any(|run| case.evidence.own_history(run) == Some(Disposition::Coalesced));
        let mut later = fates.range(instant + 1..).map(|(_, fate)| fate);
        !self.in_time
            && self.until > self.due + RECOVERY
            && is_recorded
            && later.any(|later| arrived(case, later).is_some())
    }
}

/// Time by which a fire must have arrived if this node was working throughout: R after it was due, or after the
/// last node that may have had it was lost. Time with connection problems does not count. `None` if the node was
/// not working.
fn recovered_by(case: &Case<'_>, node: usize, instant: Ms, due: Ms) -> Option<Ms> {
    let mut until = due + RECOVERY;
    loop {
        let during = || troubles(case, instant - IN_TIME, until);
        let hindered: Ms =
            during().filter(|trouble| !trouble.severe).map(|trouble| trouble.until - trouble.from).sum();
        let lost =
            during().filter(|trouble| trouble.severe && trouble.node != node).map(|trouble| trouble.from);
        let later = lost.max().unwrap_or_default().max(due) + RECOVERY + hindered;
        if later == until {
            break;
        }
        until = later;
    }
    let was_there = instant - RECOVERY >= START
        && !troubles(case, instant - RECOVERY, until).any(|trouble| trouble.severe && trouble.node == node);
    was_there.then_some(until)
}

fn troubles<'a>(case: &Case<'a>, from: Ms, until: Ms) -> impl Iterator<Item = &'a Trouble> + use<'a> {
    let troubles = case.evidence.troubles.iter();
    troubles.filter(move |trouble| trouble.from <= until && from <= trouble.until)
}

/// The nodes that claimed it, as committed by the store.
fn owners(case: &Case<'_>, fate: &Fate) -> Vec<usize> {
    let entries = fate.fires.iter().filter_map(|fire| case.evidence.ledger.get(fire));
    entries.flat_map(|entry| entry.claims.iter().map(|claim| claim.node)).collect()
}

/// Time at which the last shard of the fire first arrived at its executor.
fn arrived(case: &Case<'_>, fate: &Fate) -> Option<Ms> {
    let shards = case.shards(*fate.fires.first()?);
    let arrivals: Option<Vec<Ms>> =
        shards.iter().map(|facts| case.arrivals.get(&facts.id).copied()).collect();
    arrivals?.into_iter().max()
}

/// Whether the network or an executor disturbed a request, a response or a probe of it.
fn is_spoilt(case: &Case<'_>, fate: &Fate) -> bool {
    let mut shards = fate.opened().flat_map(|fire| case.shards(fire));
    shards.any(|facts| case.evidence.spoilt.contains(&facts.id))
}

/// Whether no other run of the job was open, or about to be, when this one was due.
fn is_idle(case: &Case<'_>, job: JobId, instant: Ms, fate: &Fate) -> bool {
    let others = case.evidence.ledger.values().filter(|entry| entry.facts.job == job);
    let mut others = others.filter(|entry| !fate.fires.contains(&entry.facts.fire));
    let ended = |run: RunId| case.endings(run).first().map_or(Ms::MAX, |ended| ended.at);
    !others.any(|entry| {
        entry.facts.scheduled_at.min(entry.due_at) <= instant + IN_TIME
            && ended(entry.facts.id) >= instant - IN_TIME
    })
}
