//! What happened, as the witnesses saw it: executors, the wire, the clients, and the store as it committed.

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    Disposition, HistoryEntry, JobId, JobSpec, Node, Origin, Outcome, Run, RunId, RunRecord, RunState, Shard,
    Verdict,
};

use super::clock::Ms;

/// All that is known in the end.
#[derive(Default)]
pub struct Evidence {
    /// The network's own journal: every request that left a node, in this order.
    pub attempts: Vec<Attempt>,
    /// The journals of all executors: what they received.
    pub received: Vec<Received>,
    /// Results as handlers gave them, by run: first, and perhaps again where a run ran twice.
    pub results: Vec<Reported>,
    /// Acknowledgements of reports, as the executors saw them.
    pub acks: Vec<Acked>,
    /// What the clients asked for, in this order for each job.
    pub ops: Vec<Op>,
    /// The jobs and their first definitions.
    pub jobs: BTreeMap<JobId, JobSpec>,
    /// Every run the store ever showed, with who claimed it.
    pub ledger: BTreeMap<RunId, Entry>,
    /// Ends of runs as they were committed.
    pub endings: Vec<Ended>,
    /// Heartbeats as their nodes saw the answers, with the wall clock's true error then.
    pub beats: Vec<Beat>,
    /// When the database believes each life to end.
    pub leases: BTreeMap<Node, Ms>,
    /// When a node could not be expected to work, and why.
    pub troubles: Vec<Trouble>,
    /// Runs whose request, answer or probe the network or an executor spoilt.
    pub spoilt: BTreeSet<RunId>,
    /// When lives of nodes ended in good order.
    pub stopped: Vec<(usize, Ms)>,
    /// Alerts as they were delivered.
    pub alarms: Vec<(Ms, RunId)>,
    /// Endings that a commit holds, by run and what was said.
    pub durable: BTreeSet<(RunId, String)>,
    /// The last state of each run that was seen.
    pub states: BTreeMap<RunId, RunState>,
    /// What is left in the end: history and runs of each job.
    pub history: BTreeMap<JobId, Vec<HistoryEntry>>,
    /// The log of each job's runs in the end.
    pub records: BTreeMap<RunId, RunRecord>,
    /// Promises seen broken while the simulation went on.
    pub broken: Vec<Violation>,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which, by its number.
    pub promise: &'static str,
    /// What was seen.
    pub evidence: String,
}

/// A request, as the network saw it.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// When it left its node,
    pub at: Ms,
    /// which that was,
    pub node: usize,
    /// when it stopped waiting for the answer (if it lived to),
    pub answered: Option<Ms>,
    /// what it was,
    pub run: Facts,
    /// and how far it came.
    pub passage: Passage,
}

/// How far a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It is still on its way.
    UnderWay,
    /// An executor has it in its journal.
    Arrived,
    /// The network lost it.
    Lost,
    /// There was nobody where it was sent, or nobody to send it to.
    Nobody,
    /// Its node did not send it, as nobody was there or could be known to be.
    Deferred,
    /// Its node did not send it, although somebody was there.
    Withheld,
}

/// A request as an executor received it.
#[derive(Clone, Debug)]
pub struct Received {
    /// When.
    pub at: Ms,
    /// By which executor.
    pub executor: usize,
    /// What.
    pub run: Facts,
    /// It began to run (again).
    pub accepted: bool,
}

/// What never changes about a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Its name.
    pub id: RunId,
    /// The name of its fire.
    pub fire: RunId,
    /// Its job.
    pub job: JobId,
    /// The instant it stands for.
    pub scheduled_at: Ms,
    /// Why it exists.
    pub origin: Origin,
    /// Which part of the fire.
    pub shard: Shard,
    /// Which try.
    pub attempt: u32,
    /// Of which run.
    pub retry_of: Option<RunId>,
    /// How many parents it has.
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

/// A run as the store showed it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it is.
    pub facts: Facts,
    /// When it was to be sent, as last claimed.
    pub due_at: Ms,
    /// Who claimed it when.
    pub claims: Vec<ClaimSeen>,
}

/// A committed claim.
#[derive(Clone, Debug)]
pub struct ClaimSeen {
    /// When it was committed.
    pub at: Ms,
    /// By which host,
    pub node: usize,
    /// in which life.
    pub life: Node,
}

/// A result on its way from an executor.
#[derive(Clone, Debug)]
pub struct Reported {
    /// Which run.
    pub run: RunId,
    /// How it ended.
    pub outcome: Outcome,
}

/// A report that was acknowledged.
#[derive(Clone, Debug)]
pub struct Acked {
    /// Which run.
    pub run: RunId,
    /// What the node said.
    pub verdict: Verdict,
}

/// An ending that was committed.
#[derive(Clone, Debug)]
pub struct Ended {
    /// When.
    pub at: Ms,
    /// Which run.
    pub run: RunId,
    /// How.
    pub outcome: Outcome,
    /// In place of `Lost`.
    pub late: bool,
}

/// A heartbeat whose answer was in.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    /// When.
    pub at: Ms,
    /// Whose.
    pub node: usize,
    /// Wall clock minus true time.
    pub skew: Ms,
}

/// A node, or its way to the database, was broken.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// From
    pub from: Ms,
    /// to.
    pub until: Ms,
    /// Whom.
    pub node: usize,
    /// Badly: not a single call, but the node or its connection as a whole.
    pub severe: bool,
}

/// What a client wanted of a job.
#[derive(Clone, Debug)]
pub enum Wish {
    /// It fires from now on.
    Start,
    /// It fires no more.
    Stop,
    /// It is defined so.
    Edit(Box<JobSpec>),
    /// It goes.
    Delete,
    /// It runs once, under this key.
    Trigger(i64),
}

/// A wish, and what the client heard.
#[derive(Clone, Debug)]
pub struct Op {
    /// Of which job.
    pub job: JobId,
    /// What.
    pub wish: Wish,
    /// When it was first asked.
    pub asked: Ms,
    /// How often.
    pub tries: u32,
    /// When it was acknowledged, and when it took effect.
    pub done: Option<Done>,
    /// It can never be done.
    pub refused: bool,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// The effect, by the database's clock.
    pub at: Ms,
    /// The acknowledgement.
    pub acked: Ms,
    /// The run, of a trigger.
    pub run: Option<RunId>,
}

impl Evidence {
    /// Notes a run that the store showed.
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

    /// Notes the state of a run, and whether it can have come there.
    pub fn state(&mut self, at: Ms, run: RunId, state: RunState) {
        let Some(before) = self.states.insert(run, state) else { return };
        if before != state && !leads_to(before, state) {
            let evidence =
                format!("run {run} was {before:?} and is {state:?} at {}", at - super::clock::START);
            self.broken.push(Violation { promise: "I10", evidence });
        }
    }

    /// Whether a node could not be expected to work at some time in between, or, if `severely`, not at all.
    pub fn is_troubled(&self, node: usize, from: Ms, until: Ms, severely: bool) -> bool {
        let during = |trouble: &&Trouble| trouble.from <= until && from <= trouble.until;
        let mut troubles = self.troubles.iter().filter(during);
        troubles.any(|trouble| trouble.node == node && (trouble.severe || !severely))
    }

    /// The facts of a run, if it was ever shown.
    pub fn facts(&self, run: RunId) -> Option<&Facts> {
        self.ledger.get(&run).map(|entry| &entry.facts)
    }

    /// Whether the history closes this run itself, and how.
    pub fn own_history(&self, run: RunId) -> Option<Disposition> {
        let facts = self.facts(run)?;
        self.history
            .get(&facts.job)?
            .iter()
            .find(|entry| is_own(entry, facts))
            .map(|entry| entry.unsent.disposition)
    }
}

/// Whether a history entry is about this run itself, and not about instants that went into it.
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
