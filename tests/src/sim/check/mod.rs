//! The checkers: compare the guarantees with the evidence.
//!
//! They trust the journals of the executors and the network, and the records of the clients. The store is read only
//! at the end, for fires that were never sent and for outcomes of runs. A row that was seen earlier and is in
//! neither proves nothing.

mod address;
mod arrival;
mod backfills;
mod control;
mod firing;
mod results;
mod timeline;

use std::collections::BTreeMap;
use std::time::Duration;

use engine::{JobId, RunId};

use super::clock::Ms;
use super::evidence::{Attempt, Ended, Evidence, Facts, OperationRecord, Passage, Violation};
use super::plan::Plan;
use timeline::Timeline;
pub(super) use timeline::instants;

/// How much was checked: a checker that checks nothing finds nothing.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Number of simulated seeds.
    pub seeds: u64,
    /// Virtual time.
    pub lasted: Duration,
    /// Requests that executors accepted.
    pub fires: u64,
    /// Number of violated guarantees.
    pub violations: u64,
    /// Number of checks, by guarantee.
    pub checked: BTreeMap<&'static str, u64>,
    /// Worst lateness of fires in a disturbed cluster, in milliseconds.
    pub worst_recovery: Ms,
}

impl Counts {
    /// Adds the counts of another simulation.
    pub fn add(&mut self, other: &Counts) {
        self.seeds += other.seeds;
        self.lasted += other.lasted;
        self.fires += other.fires;
        self.violations += other.violations;
        self.worst_recovery = self.worst_recovery.max(other.worst_recovery);
        for (promise, count) in &other.checked {
            *self.checked.entry(promise).or_default() += count;
        }
    }
}

/// Checks everything.
pub(super) fn all(plan: &Plan, evidence: &Evidence, counts: &mut Counts) -> Vec<Violation> {
    let mut case = Case::new(plan, evidence, counts);
    firing::check(&mut case);
    control::check(&mut case);
    results::check(&mut case);
    address::check(&mut case);
    backfills::check(&mut case);
    case.found
}

/// The evidence, indexed for the checkers.
struct Case<'a> {
    plan: &'a Plan,
    evidence: &'a Evidence,
    counts: &'a mut Counts,
    timelines: BTreeMap<JobId, Timeline>,
    attempts: BTreeMap<RunId, Vec<&'a Attempt>>,
    /// Dispatches that were postponed before a request was sent.
    deferred: BTreeMap<RunId, Vec<&'a Attempt>>,
    /// Time at which each run first arrived at an executor.
    arrivals: BTreeMap<RunId, Ms>,
    /// Every run that was sent or received, or that the store closed without that.
    witnessed: BTreeMap<RunId, &'a Facts>,
    endings: BTreeMap<RunId, Vec<&'a Ended>>,
    found: Vec<Violation>,
}

impl<'a> Case<'a> {
    fn new(plan: &'a Plan, evidence: &'a Evidence, counts: &'a mut Counts) -> Self {
        counts.fires = evidence.received.iter().filter(|received| received.accepted).count() as u64;
        let mut attempts: BTreeMap<RunId, Vec<&Attempt>> = BTreeMap::new();
        let mut deferred: BTreeMap<RunId, Vec<&Attempt>> = BTreeMap::new();
        for attempt in &evidence.attempts {
            let list = if attempt.passage == Passage::Deferred { &mut deferred } else { &mut attempts };
            list.entry(attempt.run.id).or_default().push(attempt);
        }
        let mut arrivals = BTreeMap::new();
        for received in &evidence.received {
            arrivals.entry(received.run.id).or_insert(received.at);
        }
        let mut endings: BTreeMap<RunId, Vec<&Ended>> = BTreeMap::new();
        for ended in &evidence.endings {
            endings.entry(ended.run).or_default().push(ended);
        }
        let timelines = evidence
            .jobs
            .iter()
            .map(|(job, spec)| {
                let ops: Vec<&OperationRecord> = evidence.ops.iter().filter(|op| op.job == *job).collect();
                (*job, Timeline::new(spec, &ops))
            })
            .collect();
        let witnessed = witnessed(evidence);
        Case {
            plan,
            evidence,
            counts,
            timelines,
            attempts,
            deferred,
            arrivals,
            witnessed,
            endings,
            found: Vec::new(),
        }
    }

    fn checked(&mut self, promise: &'static str) {
        *self.counts.checked.entry(promise).or_default() += 1;
    }

    fn broken(&mut self, promise: &'static str, evidence: String) {
        self.found.push(Violation { promise, evidence });
    }

    fn attempts(&self, run: RunId) -> &[&'a Attempt] {
        self.attempts.get(&run).map_or(&[], Vec::as_slice)
    }

    fn deferred(&self, run: RunId) -> &[&'a Attempt] {
        self.deferred.get(&run).map_or(&[], Vec::as_slice)
    }

    /// Whether a Java admin started the run.
    fn is_javas(&self, run: RunId) -> bool {
        self.evidence.java_runs.contains(&run)
    }

    fn endings(&self, run: RunId) -> &[&'a Ended] {
        self.endings.get(&run).map_or(&[], Vec::as_slice)
    }

    /// The runs of a fire's first attempt: one per shard.
    fn shards(&self, fire: RunId) -> Vec<&'a Facts> {
        let first_try = |facts: &&&Facts| facts.fire == fire && facts.attempt == 1;
        self.witnessed
            .range(fire..)
            .take(SHARDS_SEARCHED)
            .map(|(_, facts)| facts)
            .filter(first_try)
            .copied()
            .collect()
    }
}

/// The shards of a fire are opened together, so their ids are close.
const SHARDS_SEARCHED: usize = 2_000;

/// Runs that were received, sent, or closed by the store in the end.
fn witnessed(evidence: &Evidence) -> BTreeMap<RunId, &Facts> {
    let is_closed = |run: RunId| {
        evidence.records.get(&run).is_some_and(|record| record.state.is_over())
            || evidence.own_history(run).is_some()
    };
    let closed = evidence.ledger.values().map(|entry| &entry.facts).filter(|facts| is_closed(facts.id));
    let left = evidence.attempts.iter().map(|attempt| &attempt.run);
    let received = evidence.received.iter().map(|received| &received.run);
    closed.chain(left).chain(received).map(|facts| (facts.id, facts)).collect()
}
