//! B1 to B5: backfills, by the executors' journals, the ends of runs at their commits, and the rows at the end.

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    Backfill, BackfillOrder, BackfillState, Existing, InstantState, Origin, Outcome, RunId, RunState,
};
use store::BackfillTime;

use super::Case;
use crate::sim::clock::Ms;
use crate::sim::evidence::{BackfillSeen, Facts};

pub fn check(case: &mut Case<'_>) {
    for seen in &case.evidence.backfills {
        let Some((end, times)) = &seen.end else {
            case.broken("B5", format!("backfill {} is gone", seen.id));
            continue;
        };
        ends(case, end, times);
        once(case, seen, times);
        window(case, seen);
        in_order(case, seen);
    }
}

/// B5: it ends, and its counts are those of its scheduled times.
fn ends(case: &mut Case<'_>, end: &Backfill, times: &[BackfillTime]) {
    case.checked("B5");
    let is_over = matches!(end.state, BackfillState::Finished | BackfillState::Cancelled);
    let is_left = |time: &&BackfillTime| matches!(time.state, InstantState::Pending | InstantState::Open);
    if !is_over || end.ended_at.is_none() || times.iter().any(|time| is_left(&time)) {
        case.broken("B5", format!("backfill {} never ended: {end:?} {times:?}", end.id));
    }
    let count = |state| times.iter().filter(|time| time.state == state).count() as u32;
    use InstantState::{Cancelled, Failed, Skipped, Succeeded};
    let found = [Succeeded, Failed, Skipped, Cancelled].map(count);
    let counts = end.counts;
    if found != [counts.succeeded, counts.failed, counts.skipped, counts.cancelled]
        || found.iter().sum::<u32>() != counts.total
    {
        case.broken("B5", format!("backfill {} counts {counts:?}, its rows are {found:?}", end.id));
    }
}

/// Runs of a backfill by scheduled time.
fn runs_of<'a>(case: &Case<'a>, seen: &BackfillSeen) -> BTreeMap<Ms, Vec<&'a Facts>> {
    let mut runs: BTreeMap<Ms, Vec<&Facts>> = BTreeMap::new();
    for facts in case.witnessed.values().filter(|facts| facts.origin == Origin::Backfill { of: seen.id }) {
        runs.entry(facts.scheduled_at).or_default().push(facts);
    }
    runs
}

/// B1 and B4: each scheduled time runs once, whatever became of the others, unless a run of it had succeeded.
fn once(case: &mut Case<'_>, seen: &BackfillSeen, times: &[BackfillTime]) {
    let id = seen.id;
    let mut runs = runs_of(case, seen);
    let asked: BTreeSet<Ms> = seen.new.times.iter().map(|at| at.as_millis()).collect();
    let stored: BTreeSet<Ms> = times.iter().map(|time| time.scheduled_at.as_millis()).collect();
    if asked != stored {
        case.broken("B1", format!("backfill {id} was asked for {asked:?}, and has {stored:?}"));
    }
    for time in times {
        case.checked("B1");
        let at = time.scheduled_at.as_millis();
        let found = runs.remove(&at).unwrap_or_default();
        let fires: BTreeSet<RunId> = found.iter().map(|facts| facts.fire).collect();
        if fires.len() > 1 {
            case.broken("B1", format!("backfill {id} ran {at} as {fires:?}"));
        }
        let problem = match time.state {
            InstantState::Succeeded => {
                let is_good = |facts: &&&Facts| succeeded(case, facts.id);
                (!found.iter().any(|facts| is_good(&facts))).then_some("no executor reported a success")
            }
            InstantState::Failed => {
                let last = found.iter().max_by_key(|facts| (facts.attempt, facts.id));
                let is_bad = last.is_some_and(|last| last.shard.total > 1 || !ended_well(case, last.id));
                (!is_bad).then_some("its last run did not fail")
            }
            InstantState::Skipped => {
                let is_it = |record: &&engine::RunRecord| {
                    let same = record.scheduled_at.as_millis().div_euclid(1_000) == at.div_euclid(1_000);
                    record.job == seen.job && same && record.state == RunState::Succeeded
                };
                let has_one = case.evidence.records.values().any(|record| is_it(&record));
                (!has_one || !found.is_empty()).then_some("no other run of it succeeded")
            }
            InstantState::Cancelled | InstantState::Pending | InstantState::Open => None,
        };
        if let Some(problem) = problem {
            let endings: Vec<_> = found.iter().flat_map(|facts| case.endings(facts.id)).collect();
            case.broken("B1", format!("backfill {id}: {at} is {}, but {problem}: {endings:?}", time.state));
        }
    }
    if !runs.is_empty() {
        case.broken("B1", format!("backfill {id} was not asked for {:?}", runs.keys()));
    }
}

fn succeeded(case: &Case<'_>, run: RunId) -> bool {
    let is_good = |outcome: &Outcome| matches!(outcome, Outcome::Succeeded(_));
    case.evidence.results.iter().any(|result| result.run == run && is_good(&result.outcome))
}

/// Whether the first end of the run, at its commit, was a success.
fn ended_well(case: &Case<'_>, run: RunId) -> bool {
    let first = case.endings(run).iter().find(|ended| !ended.late);
    first.is_some_and(|ended| matches!(ended.outcome, Outcome::Succeeded(_)))
}

/// B2: never more scheduled times with open runs than allowed. A span begins with the first claim and ends with the last
/// end, so it is within the time for which the scheduled time really was open.
fn window(case: &mut Case<'_>, seen: &BackfillSeen) {
    let mut changes: Vec<(Ms, i32)> = Vec::new();
    for runs in runs_of(case, seen).values() {
        let entries = runs.iter().filter_map(|facts| case.evidence.ledger.get(&facts.id));
        let claims = entries.flat_map(|entry| &entry.claims).map(|claim| claim.at);
        let (Some(begin), Some(last)) = (claims.clone().min(), claims.max()) else { continue };
        let ends = runs.iter().flat_map(|facts| case.endings(facts.id)).filter(|ended| !ended.late);
        let end = ends.map(|ended| ended.at).max().unwrap_or(last);
        changes.extend([(begin, 1), (end.max(begin), -1)]);
    }
    case.checked("B2");
    // At the same time, ends come first.
    changes.sort_unstable();
    let (mut open, mut most) = (0, 0);
    for (_, change) in changes {
        open += change;
        most = most.max(open);
    }
    if most > seen.new.settings.parallel as i32 {
        let allowed = seen.new.settings.parallel;
        case.broken("B2", format!("backfill {} had {most} open, and may have {allowed}", seen.id));
    }
}

/// B3: runs open in the order that was asked for. Scheduled times that wait for others may come later.
fn in_order(case: &mut Case<'_>, seen: &BackfillSeen) {
    if seen.new.settings.existing != Existing::Again {
        return;
    }
    case.checked("B3");
    let runs = runs_of(case, seen);
    let mut fires: Vec<(RunId, Ms)> = runs.iter().map(|(at, runs)| (runs[0].fire, *at)).collect();
    fires.sort_unstable();
    let mut times: Vec<Ms> = fires.iter().map(|(_, at)| *at).collect();
    if seen.new.settings.order == BackfillOrder::Newest {
        times.reverse();
    }
    if !times.is_sorted() {
        case.broken("B3", format!("backfill {} ran in the order {fires:?}", seen.id));
    }
}
