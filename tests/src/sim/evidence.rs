//! Record of everything that happened: seen by executors, network and clients, and by the store at commit.

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    Backfill, BackfillId, Disposition, HistoryEntry, JobId, JobSpec, NewBackfill, Node, Origin, Outcome, Run,
    RunId, RunRecord, RunState, Shard, TroubleKind, Verdict,
};

use store::BackfillTime;

use super::clock::Ms;

/// All evidence of a simulation.
#[derive(Default)]
pub struct Evidence {
    /// The network's journal: every request sent by a node, in order.
    pub attempts: Vec<Attempt>,
    /// The journals of all executors: received requests.
    pub received: Vec<Received>,
    /// Requests to end a run.
    pub kills: Vec<(Ms, JobId, RunId)>,
    /// Results of handlers, by run; repeated if a run was executed twice.
    pub results: Vec<Reported>,
    /// Acknowledgements of reports, as received by executors.
    pub acks: Vec<Acked>,
    /// Operations of clients, in order for each job.
    pub ops: Vec<OperationRecord>,
    /// Backfills that clients have started.
    pub backfills: Vec<BackfillSeen>,
    /// The jobs with their first definitions.
    pub jobs: BTreeMap<JobId, JobSpec>,
    /// Every run that the store ever returned, with its claims.
    pub ledger: BTreeMap<RunId, Entry>,
    /// Outcomes of runs at commit.
    pub endings: Vec<Ended>,
    /// Heartbeats when their nodes received the response, with the true error of the wall clock.
    pub beats: Vec<Beat>,
    /// End of the lease of each incarnation, according to the database.
    pub leases: BTreeMap<Node, Ms>,
    /// Periods in which a node could not be expected to work.
    pub troubles: Vec<Trouble>,
    /// Runs with a request, response or probe disturbed by the network or an executor.
    pub spoilt: BTreeSet<RunId>,
    /// Graceful stops of nodes.
    pub stopped: Vec<(usize, Ms)>,
    /// Delivered alerts.
    pub alarms: Vec<(Ms, RunId, TroubleKind)>,
    /// Delivered alerts about commits that the database has lost.
    pub losses: Vec<String>,
    /// Committed outcomes, by run and message.
    pub durable: BTreeSet<(RunId, String)>,
    /// The last observed state of each run.
    pub states: BTreeMap<RunId, RunState>,
    /// History of each job at the end.
    pub history: BTreeMap<JobId, Vec<HistoryEntry>>,
    /// The log of each job's runs at the end.
    pub records: BTreeMap<RunId, RunRecord>,
    /// Runs that a Java admin started.
    pub java_runs: BTreeSet<RunId>,
    /// Results that a Java admin stored.
    pub java_results: BTreeMap<RunId, Outcome>,
    /// Guarantees violated during the simulation.
    pub broken: Vec<Violation>,
}

/// A violated guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Number of the guarantee.
    pub promise: &'static str,
    /// The observation.
    pub evidence: String,
}

/// A request, as seen by the network.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Time at which it was sent.
    pub at: Ms,
    /// Index of the sending node.
    pub node: usize,
    /// Time at which the node stopped waiting for the response, if it did not die before.
    pub answered: Option<Ms>,
    /// The run.
    pub run: Facts,
    /// How far it got.
    pub passage: Passage,
}

/// How far a request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// In transit.
    UnderWay,
    /// In the journal of an executor.
    Arrived,
    /// Lost by the network.
    Lost,
    /// No executor at the target, or no target.
    Nobody,
    /// Not sent, because no executor was available or known to be.
    Deferred,
    /// Not sent, although an executor was available.
    Withheld,
}

/// A request as received by an executor.
#[derive(Clone, Debug)]
pub struct Received {
    /// Time of arrival.
    pub at: Ms,
    /// Index of the executor.
    pub executor: usize,
    /// The run.
    pub run: Facts,
    /// Whether it began to run (again).
    pub accepted: bool,
}

/// The immutable fields of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Id of the run.
    pub id: RunId,
    /// Id of its fire.
    pub fire: RunId,
    /// Id of its job.
    pub job: JobId,
    /// Scheduled time.
    pub scheduled_at: Ms,
    /// Why it exists.
    pub origin: Origin,
    /// Its shard of the fire.
    pub shard: Shard,
    /// Number of the attempt.
    pub attempt: u32,
    /// The run it retries.
    pub retry_of: Option<RunId>,
    /// Number of ancestors in the chain of child jobs.
    pub depth: u32,
}

impl From<&Run> for Facts {
    fn from(run: &Run) -> Self {
        Facts {
            id: run.id,
            fire: run.fire,
            job: run.job,
            scheduled_at: run.scheduled_at.as_millis(),
            origin: run.origin,
            shard: run.shard,
            attempt: run.attempt,
            retry_of: run.retry_of,
            depth: run.depth,
        }
    }
}

/// A run as returned by the store.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its immutable fields.
    pub facts: Facts,
    /// Time at which it was due, according to the last claim.
    pub due_at: Ms,
    /// Its claims.
    pub claims: Vec<ClaimSeen>,
}

/// A committed claim.
#[derive(Clone, Debug)]
pub struct ClaimSeen {
    /// Time of the commit.
    pub at: Ms,
    /// Index of the host.
    pub node: usize,
    /// Incarnation of the node.
    pub life: Node,
}

/// A result sent by an executor.
#[derive(Clone, Debug)]
pub struct Reported {
    /// Id of the run.
    pub run: RunId,
    /// Its outcome.
    pub outcome: Outcome,
}

/// An acknowledged report.
#[derive(Clone, Debug)]
pub struct Acked {
    /// Id of the run.
    pub run: RunId,
    /// Response of the node.
    pub verdict: Verdict,
}

/// A committed outcome.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Time of the commit.
    pub at: Ms,
    /// Id of the run.
    pub run: RunId,
    /// Its outcome.
    pub outcome: Outcome,
    /// Whether it replaced `Lost`.
    pub late: bool,
}

/// A heartbeat with a response.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    /// Time of the response.
    pub at: Ms,
    /// Index of the node.
    pub node: usize,
    /// Wall clock minus true time.
    pub skew: Ms,
}

/// A period in which a node, or its connection to the database, did not work.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// Start.
    pub from: Ms,
    /// End.
    pub until: Ms,
    /// Index of the node.
    pub node: usize,
    /// Whether the node or its connection failed as a whole, not just a single call.
    pub severe: bool,
}

/// An operation of a client on a job.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Start the job.
    Start,
    /// Stop the job.
    Stop,
    /// Replace its definition.
    Edit(Box<JobSpec>),
    /// Delete the job.
    Delete,
    /// Trigger it once, with this key.
    Trigger(i64),
}

/// An operation and its result.
#[derive(Clone, Debug)]
pub struct OperationRecord {
    /// Id of the job.
    pub job: JobId,
    /// The operation.
    pub operation: Operation,
    /// Time of the first request.
    pub asked: Ms,
    /// Number of attempts.
    pub tries: u32,
    /// The acknowledgement, if there was one.
    pub done: Option<Done>,
    /// Whether it was rejected for good.
    pub refused: bool,
}

/// A backfill that a client has started.
#[derive(Clone, Debug)]
pub struct BackfillSeen {
    /// Id of the backfill.
    pub id: BackfillId,
    /// Id of the job.
    pub job: JobId,
    /// The request.
    pub new: NewBackfill,
    /// Its rows at the end.
    pub end: Option<(Backfill, Vec<BackfillTime>)>,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Time of the effect, by the database's clock.
    pub at: Ms,
    /// Time of the acknowledgement.
    pub acked: Ms,
    /// The run created by a trigger.
    pub run: Option<RunId>,
}

impl Evidence {
    /// Records a run that the store returned.
    pub fn show(&mut self, run: &Run) {
        let facts = Facts::from(run);
        let due_at = run.due_at.as_millis();
        let entry = self.ledger.entry(run.id).or_insert_with(|| Entry {
            facts: facts.clone(),
            due_at,
            claims: Vec::new(),
        });
        entry.due_at = due_at;
        // A waiting run is split when it is claimed; nothing else about it ever changes.
        if entry.facts.shard == Shard::UNSPLIT {
            entry.facts.shard = facts.shard;
        }
        if entry.facts != facts && facts.shard != Shard::UNSPLIT {
            self.broken.push(Violation {
                promise: "I10",
                evidence: format!("run changed from {:?} to {facts:?}", entry.facts),
            });
        }
    }

    /// Records the state of a run, and checks the transition.
    pub fn state(&mut self, at: Ms, run: RunId, state: RunState) {
        let Some(before) = self.states.insert(run, state) else { return };
        if before != state && !leads_to(before, state) {
            let evidence =
                format!("run {run} was {before:?} and is {state:?} at {}", at - super::clock::START);
            self.broken.push(Violation { promise: "I10", evidence });
        }
    }

    /// Whether a node could not be expected to work at some time in this period; with `severely`, only whole
    /// failures count.
    pub fn is_troubled(&self, node: usize, from: Ms, until: Ms, severely: bool) -> bool {
        let during = |trouble: &&Trouble| trouble.from <= until && from <= trouble.until;
        let mut troubles = self.troubles.iter().filter(during);
        troubles.any(|trouble| trouble.node == node && (trouble.severe || !severely))
    }

    /// The immutable fields of a run, if the store ever returned it.
    pub fn facts(&self, run: RunId) -> Option<&Facts> {
        self.ledger.get(&run).map(|entry| &entry.facts)
    }

    /// The disposition with which the history closes this run itself, if it does.
    pub fn own_history(&self, run: RunId) -> Option<Disposition> {
        let facts = self.facts(run)?;
        self.history
            .get(&facts.job)?
            .iter()
            .find(|entry| is_own(entry, facts))
            .map(|entry| entry.unsent.disposition)
    }
}

/// Whether a history entry is about this run itself, and not about scheduled times merged into it.
pub fn is_own(entry: &HistoryEntry, facts: &Facts) -> bool {
    entry.run == Some(facts.id)
        && entry.unsent.count == 1
        && entry.unsent.first.as_millis() == facts.scheduled_at
}

/// Whether a run can get from one state to another, in one step or several.
fn leads_to(from: RunState, to: RunState) -> bool {
    use engine::RunEvent::*;
    let events = [Claim, Release, AskCancel, Accept, Doubt, Succeed, Fail, TimeOut, Lose, Cancel];
    let mut seen = vec![from];
    let mut next = 0;
    while next < seen.len() {
        let here = seen[next];
        for state in events.iter().filter_map(|event| here.after(*event).ok()) {
            if state == to {
                return true;
            }
            if !seen.contains(&state) {
                seen.push(state);
            }
        }
        next += 1;
    }
    false
}
