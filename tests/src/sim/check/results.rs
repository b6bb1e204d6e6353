//! I8, I9, I11 to I13: every run ends once, and its follow-ups happen once.

use std::collections::{BTreeMap, BTreeSet};

use engine::policy::Overlap;
use engine::{
    CHILD_DEPTH_MAX, ChildrenMode, Disposition, JobId, Origin, Outcome, RunId, RunState, TroubleKind, Verdict,
};

use super::Case;
use super::firing::since;
use super::timeline::State;
use crate::sim::clock::Ms;
use crate::sim::evidence::{Facts, Reported};
use crate::sim::faulty::state_of;
use crate::sim::plan::Kills;

pub(super) fn check(case: &mut Case<'_>) {
    reports(case);
    everything_ends(case);
    retries(case);
    children(case);
    alerts(case);
}

/// I8: the first outcome wins, only `Lost` is replaced, and the log has the acknowledged outcome.
fn reports(case: &mut Case<'_>) {
    let mut found = Vec::new();
    for (run, endings) in &case.endings {
        let order: Vec<(&Outcome, bool)> = endings.iter().map(|ended| (&ended.outcome, ended.late)).collect();
        let good = match order.as_slice() {
            [(_, false)] => true,
            [(Outcome::Lost(_) | Outcome::Ambiguous(_), false), (late, true)] => late.is_reported(),
            // Sent twice, accepted and then refused: a Java admin stores the report of the first executor, because
            // the result column of a refused run is empty, as in XXL-JOB.
            [(Outcome::Refused(_), false), (_, false)] => case.evidence.java_results.contains_key(run),
            _ => false,
        };
        if !good {
            found.push(format!("run {run} ended as {order:?}"));
        }
        if let (Some(record), Some((last, _))) = (case.evidence.records.get(run), order.last()) {
            let expected = match state_of(last) {
                RunState::Succeeded => &[RunState::Succeeded][..],
                RunState::TimedOut => &[RunState::TimedOut],
                // XXL-JOB counts a blocked run as failed; a skipped fire is no failure.
                RunState::Cancelled if matches!(last, Outcome::Dropped(Disposition::Blocked, _)) => {
                    &[RunState::Cancelled, RunState::Failed]
                }
                RunState::Cancelled => &[RunState::Cancelled],
                _ => &[RunState::Failed],
            };
            if !expected.contains(&record.state) {
                found.push(format!("run {run} ended as {last:?}, and the log says {:?}", record.state));
            }
        }
    }
    let is_success = |result: &&Reported| matches!(result.outcome, Outcome::Succeeded(_));
    let succeeded: BTreeSet<RunId> =
        case.evidence.results.iter().filter(is_success).map(|result| result.run).collect();
    for ack in &case.evidence.acks {
        *case.counts.checked.entry("I8").or_default() += 1;
        let endings = case.endings.get(&ack.run).map_or(&[][..], Vec::as_slice);
        let last = endings.last().map(|ended| &ended.outcome);
        match (ack.verdict, last) {
            (Verdict::Missing | Verdict::Stale, _) => {
                found.push(format!("the report of run {} is acknowledged as {:?}", ack.run, ack.verdict));
            }
            (_, None) if case.evidence.own_history(ack.run).is_none() => {
                found.push(format!("the report of run {} is acknowledged, and it never ended", ack.run));
            }
            // An executor that ends no run on request has the last word about it.
            (_, Some(Outcome::Cancelled(text)))
                if case.plan.kills == Kills::Refused && succeeded.contains(&ack.run) =>
            {
                found.push(format!("run {} succeeded, and is cancelled: {text}", ack.run));
            }
            (_, Some(Outcome::Lost(_) | Outcome::Ambiguous(_))) => {
                found.push(format!("the report of run {} is acknowledged, and it is still lost", ack.run));
            }
            _ => {}
        }
    }
    found.into_iter().for_each(|text| case.broken("I8", text));
}

/// I9: after all faults have ended, every run finishes.
fn everything_ends(case: &mut Case<'_>) {
    let open: Vec<String> = case
        .evidence
        .records
        .values()
        // A Java admin does not notice that an executor has lost a run.
        .filter(|record| !record.state.is_over() && !case.is_javas(record.id))
        .map(|record| format!("run {} of job {} is still {:?}", record.id, record.job, record.state))
        .collect();
    *case.counts.checked.entry("I9").or_default() += case.evidence.records.len() as u64;
    open.into_iter().for_each(|text| case.broken("I9", text));
    let sent: BTreeSet<RunId> = case.evidence.attempts.iter().map(|attempt| attempt.run.id).collect();
    for run in sent {
        if case.endings(run).is_empty() && case.evidence.own_history(run).is_none() {
            let is_open = case.evidence.records.get(&run).is_some_and(|record| !record.state.is_over());
            if !is_open {
                case.broken("I9", format!("run {run} was sent, and nobody ever ended it"));
            }
        }
    }
}

/// I11: as many attempts as the job allows, each with its own id, each after a failure.
fn retries(case: &mut Case<'_>) {
    let mut retried = BTreeSet::new();
    let all: Vec<&Facts> = case.witnessed.values().copied().collect();
    for facts in &all {
        let most =
            case.timelines[&facts.job].specs.iter().map(|spec| spec.retry.count).max().unwrap_or_default();
        if facts.attempt > 1 + most {
            case.broken("I11", format!("run {} is try {} of {}", facts.id, facts.attempt, 1 + most));
        }
        let Some(of) = facts.retry_of else { continue };
        case.checked("I11");
        if !retried.insert(of) {
            case.broken("I11", format!("run {of} is tried again twice"));
        }
        if !has_failed(case, of) {
            case.broken("I11", format!("run {} repeats {of}, which has not failed", facts.id));
        }
    }
    // A result that a Java admin received may be found only after the job was stopped, which ends its retries.
    let (javas, stored) = (&case.evidence.java_runs, &case.evidence.java_results);
    let is_ours = |facts: &&&Facts| !javas.contains(&facts.id) && !stored.contains_key(&facts.id);
    for facts in all.iter().filter(is_ours) {
        let Some(ended) = case.endings(facts.id).first().copied() else { continue };
        let fails =
            !matches!(ended.outcome, Outcome::Succeeded(_) | Outcome::Cancelled(_) | Outcome::Dropped(..));
        // A late success, also of an earlier attempt, takes back a retry that waits.
        let fails = fails && !attempts_until(case, facts.id).any(|run| has_late_success(case, run));
        let timeline = &case.timelines[&facts.job];
        let allowed = timeline.specs.iter().map(|spec| spec.retry.count).min().unwrap_or_default();
        // A change of the job cancels its runs: they are not retried.
        let from = facts.scheduled_at.min(ended.at) - AHEAD;
        let stays = !timeline.is_changing(from, ended.at + RETRY_MAX) && timeline.deleted.is_none();
        let in_force = !facts.origin.is_scheduled() || matches!(timeline.at(ended.at), State::On(_));
        let goes_on = !matches!(timeline.specs[0].schedule, cron::Schedule::Once { .. });
        // If runs must not overlap, another run may have taken its place.
        let has_place = timeline.specs[0].overlap == Overlap::Allow;
        let goes_on = goes_on && has_place;
        // Nodes that are down or cut off, or whose clocks are wrong, claim nothing.
        let is_sound = |node| !case.evidence.is_troubled(node, ended.at, ended.at + RETRY_MAX, false);
        let goes_on = goes_on && (0..case.plan.nodes).any(is_sound);
        if fails && facts.attempt <= allowed && stays && in_force && goes_on && !retried.contains(&facts.id) {
            let text = format!(
                "run {} of job {} failed at {} and was not tried again",
                facts.id,
                facts.job,
                since(ended.at)
            );
            case.broken("I11", text);
        }
    }
}

/// The run, the run that it repeats, and so on.
fn attempts_until<'a>(case: &'a Case<'_>, run: RunId) -> impl Iterator<Item = RunId> + 'a {
    std::iter::successors(Some(run), |run| case.witnessed.get(run).and_then(|facts| facts.retry_of))
}

fn has_late_success(case: &Case<'_>, run: RunId) -> bool {
    case.endings(run).iter().any(|ended| ended.late && matches!(ended.outcome, Outcome::Succeeded(_)))
}

/// Whether a run counts as failed: its executor reported it, or it was closed without a report.
fn has_failed(case: &Case<'_>, run: RunId) -> bool {
    let reported = |result: &&Reported| result.run == run && !matches!(result.outcome, Outcome::Succeeded(_));
    let is_lost =
        |outcome: &Outcome| matches!(outcome, Outcome::Lost(_) | Outcome::Ambiguous(_) | Outcome::Refused(_));
    let was_lost = || case.endings(run).iter().any(|ended| is_lost(&ended.outcome));
    let record = case.evidence.records.get(&run);
    case.evidence.results.iter().any(|result| reported(&result))
        || record.is_none_or(|record| record.state != RunState::Succeeded)
        || was_lost()
}

/// The longest backoff of a retry, and some time to claim it.
const RETRY_MAX: Ms = 8_000;

/// How long before its scheduled time a run may be claimed.
const AHEAD: Ms = engine::LOOK_AHEAD.as_millis() as Ms;

/// I12: each success opens each child once, and nothing else does.
fn children(case: &mut Case<'_>) {
    let mut opened: BTreeMap<(RunId, JobId), BTreeSet<RunId>> = BTreeMap::new();
    for facts in case.witnessed.values() {
        if let (Origin::Child { of }, 1) = (facts.origin, facts.attempt) {
            opened.entry((of, facts.job)).or_default().insert(facts.fire);
        }
    }
    for ((of, job), fires) in &opened {
        case.checked("I12");
        if fires.len() > 1 {
            case.broken("I12", format!("run {of} opened job {job} {} times: {fires:?}", fires.len()));
        }
        let deepest = fires.iter().filter_map(|fire| case.witnessed.get(fire)).map(|facts| facts.depth).max();
        if deepest.is_some_and(|depth| depth > CHILD_DEPTH_MAX) {
            case.broken("I12", format!("run {of} opened job {job} at depth {deepest:?}"));
        }
    }
    let all: Vec<&Facts> = case.witnessed.values().copied().collect();
    let retried: BTreeSet<RunId> = all.iter().filter_map(|facts| facts.retry_of).collect();
    for facts in all.into_iter().filter(|facts| facts.depth < CHILD_DEPTH_MAX) {
        let record = case.evidence.records.get(&facts.id);
        let succeeded = record.is_some_and(|record| record.state == RunState::Succeeded);
        let timeline = &case.timelines[&facts.job];
        // A job that was deleted meanwhile has no children any more. For a run that was lost and retried, the retry
        // decides, even if a result is reported later.
        let was_retried = case.endings(facts.id).len() > 1 && retried.contains(&facts.id);
        if !succeeded || timeline.deleted.is_some() || was_retried {
            continue;
        }
        let spec = &timeline.specs[0];
        let once = spec.children_mode == ChildrenMode::Once && facts.shard.total > 1;
        if once && !all_shards_succeeded(case, facts) {
            continue;
        }
        for child in spec.children.clone() {
            let gone = case.timelines[&child].deleted.is_some();
            let mut names = if once { vec![facts.fire] } else { vec![facts.id, facts.fire] };
            // A Java admin starts them for each shard with a result that it stores.
            let stored = case.evidence.java_results.keys().filter_map(|run| case.witnessed.get(run));
            names.extend(stored.filter(|run| run.fire == facts.fire).map(|run| run.id));
            let count = names.iter().any(|of| opened.contains_key(&(*of, child)));
            if !count && !gone && child != facts.job {
                case.broken(
                    "I12",
                    format!("run {} of job {} succeeded and did not open job {child}", facts.id, facts.job),
                );
            }
        }
    }
}

fn all_shards_succeeded(case: &Case<'_>, facts: &Facts) -> bool {
    let mut last: BTreeMap<u32, &Facts> = BTreeMap::new();
    for tried in case.witnessed.values().filter(|tried| tried.fire == facts.fire) {
        let latest = last.entry(tried.shard.index).or_insert(tried);
        if latest.attempt < tried.attempt {
            *latest = tried;
        }
    }
    let succeeded = |run: RunId| {
        let endings = case.endings(run);
        // A lost run counts as failed, even if a result is reported later.
        matches!(endings, [ended] if matches!(ended.outcome, Outcome::Succeeded(_)))
    };
    last.len() == facts.shard.total as usize && last.values().all(|facts| succeeded(facts.id))
}

/// I13: a failure is notified if the job wants alerts, and notified again only if a node died during the notification.
fn alerts(case: &mut Case<'_>) {
    // A run that its executor did not end at its timeout is notified then, and again when it fails.
    let mut told: BTreeMap<RunId, Vec<(Ms, TroubleKind)>> = BTreeMap::new();
    for (at, run, kind) in &case.evidence.alarms {
        told.entry(*run).or_default().push((*at, *kind));
    }
    let mut found = Vec::new();
    let javas = &case.evidence.java_runs;
    // A Java admin stores the failure of a run that was replaced as it is; to us the run is cancelled.
    let killed: BTreeSet<RunId> = case.evidence.kills.iter().map(|(_, _, run)| *run).collect();
    let is_cancelled = |run: &RunId| killed.contains(run) && case.evidence.java_results.contains_key(run);
    let ours = |run: &RunId| !javas.contains(run) && !is_cancelled(run);
    for (run, endings) in case.endings.iter().filter(|(run, _)| ours(run)) {
        let Some(facts) = case.evidence.facts(*run) else { continue };
        let (Some(spec), Some(first)) = (case.timelines[&facts.job].specs.first(), endings.first()) else {
            continue;
        };
        let failed =
            !matches!(first.outcome, Outcome::Succeeded(_) | Outcome::Cancelled(_) | Outcome::Dropped(..));
        if failed
            && spec.alert
            && facts.attempt > spec.retry.count
            && case.timelines[&facts.job].deleted.is_none()
        {
            *case.counts.checked.entry("I13").or_default() += 1;
            if !told.contains_key(run) {
                found.push(format!(
                    "run {run} of job {} failed at {} and nobody was told",
                    facts.job,
                    since(first.at)
                ));
            }
        }
    }
    for (run, alarms) in told {
        for pair in alarms.windows(2).filter(|pair| pair[0].1 == pair[1].1) {
            let pair = [pair[0].0, pair[1].0];
            let excused = |from: Ms, until: Ms| {
                case.evidence.troubles.iter().any(|trouble| trouble.from <= until && from <= trouble.until)
            };
            if !excused(pair[0] - 1_000, pair[0] + 2_000) {
                found.push(format!(
                    "run {run} was told of at {} and again at {}",
                    since(pair[0]),
                    since(pair[1])
                ));
            }
        }
    }
    found.into_iter().for_each(|text| case.broken("I13", text));
}
