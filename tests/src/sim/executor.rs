//! Simulated executors: separate machines that receive runs, execute them, report until acknowledged, and crash.
//!
//! Their journals, kept on disk, are the evidence of executed fires.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use engine::{Outcome, Probe, Run, RunId, RunState};
use tokio::sync::Notify;

use super::clock::Ms;
use super::dice::Dice;
use super::evidence::{Acked, Facts, Received, Reported};
use super::java::JavaAdmin;
use super::node::{Answer, Request, RequestQueues};
use super::plan::handlers;
use super::world::World;

/// All executors.
pub struct Executors {
    world: Arc<World>,
    queues: Arc<RequestQueues>,
    java: Option<Arc<JavaAdmin>>,
    each: Vec<Mutex<Executor>>,
}

struct Executor {
    /// Whether it stores its runs and unacknowledged results on disk, as our own executors do. Others (stock ones)
    /// lose both when they crash.
    durable: bool,
    up: bool,
    /// Time of the last crash.
    since: Ms,
    incarnation: u32,
    /// Registration of this incarnation.
    registered: Option<Presence>,
    restarted: Arc<Notify>,
    running: BTreeMap<RunId, Arc<Notify>>,
    unheard: BTreeMap<RunId, Outcome>,
    journal: BTreeSet<RunId>,
    dice: Dice,
}

/// A registration that a node has acknowledged.
#[derive(Clone, Debug)]
pub struct Presence {
    /// Time of the registration.
    pub since: Ms,
    /// Index of the node with which it was first made.
    pub node: usize,
    /// Time of each heartbeat, and the node that acknowledged it.
    pub beats: Vec<(Ms, usize)>,
}

/// A request as it arrives at an executor.
#[derive(Clone, Debug)]
pub struct Task {
    /// The run.
    pub facts: Facts,
    /// Name of the handler.
    pub handler: String,
    /// Timeout of the run.
    pub timeout: Option<Duration>,
}

/// Response of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// The executor has the run (perhaps already).
    Accepted,
    /// Rejected.
    Refused,
    /// Connection refused.
    Closed,
    /// No response, because the machine is down.
    Nothing,
}

impl Executors {
    /// Creates all executors, all running.
    pub fn new(world: Arc<World>, queues: Arc<RequestQueues>, java: Option<Arc<JavaAdmin>>) -> Self {
        let each = (0..world.plan.executors)
            .map(|index| {
                let mut dice = Dice::new(world.plan.seed, "executor", index);
                Mutex::new(Executor {
                    durable: dice.chance(0.5) && !world.plan.embedded,
                    up: true,
                    since: 0,
                    incarnation: 0,
                    registered: None,
                    restarted: Arc::default(),
                    running: BTreeMap::new(),
                    unheard: BTreeMap::new(),
                    journal: BTreeSet::new(),
                    dice,
                })
            })
            .collect();
        Executors { world, queues, java, each }
    }

    /// Address of an executor.
    pub fn address(executor: usize) -> String {
        format!("http://e{executor}:1")
    }

    /// Index of the executor at an address.
    pub fn index(address: &str) -> Option<usize> {
        address.strip_prefix("http://e")?.strip_suffix(":1")?.parse().ok()
    }

    /// The registered executors: one that crashes stays registered for a while.
    pub fn known(&self) -> Vec<usize> {
        let now = self.world.now();
        (0..self.each.len())
            .filter(|index| {
                let executor = self.lock(*index);
                executor.up || now - executor.since < REGISTERED_FOR
            })
            .collect()
    }

    /// Receives a request.
    pub fn receive(self: &Arc<Self>, index: usize, task: Task) -> Reaction {
        let (id, at) = (task.facts.id, self.world.now());
        let mut executor = self.lock(index);
        let executor = &mut *executor;
        let (refuses, connects) =
            (executor.dice.chance(self.world.levels().refused), executor.dice.chance(0.5));
        if !executor.up {
            return if connects { Reaction::Closed } else { Reaction::Nothing };
        }
        let has_it = executor.running.contains_key(&id) || executor.unheard.contains_key(&id);
        let knows_it = has_it || executor.durable && executor.journal.contains(&id);
        let accepted = !knows_it && !refuses;
        let received = Received { at, executor: index, run: task.facts.clone(), accepted };
        self.world.evidence().received.push(received);
        self.world.note(|| format!("e{index} receives {id}: accepted {accepted}, known {knows_it}"));
        if knows_it {
            return Reaction::Accepted;
        }
        if refuses {
            return Reaction::Refused;
        }
        executor.journal.insert(id);
        let kill = Arc::new(Notify::new());
        executor.running.insert(id, kill.clone());
        let (takes, outcome) = work(&mut executor.dice, &task);
        let incarnation = executor.incarnation;
        tokio::spawn(self.clone().work(index, incarnation, id, kill, takes, outcome));
        Reaction::Accepted
    }

    async fn work(
        self: Arc<Self>,
        index: usize,
        incarnation: u32,
        run: RunId,
        kill: Arc<Notify>,
        takes: Option<Duration>,
        outcome: Outcome,
    ) {
        let done = async {
            match takes {
                Some(takes) => self.world.sleep(takes).await,
                None => std::future::pending().await,
            }
        };
        let outcome = tokio::select! {
            biased;
            () = kill.notified() => Outcome::Failed(format!("run {run} was killed on e{index}")),
            () = done => outcome,
        };
        {
            let mut executor = self.lock(index);
            if executor.incarnation != incarnation {
                return;
            }
            executor.running.remove(&run);
            executor.unheard.insert(run, outcome.clone());
        }
        self.world.evidence().results.push(Reported { run, outcome: outcome.clone() });
        self.report(index, incarnation, run, outcome).await;
    }

    /// Reports to one node or another until it is acknowledged.
    async fn report(self: &Arc<Self>, index: usize, incarnation: u32, run: RunId, outcome: Outcome) {
        loop {
            let levels = self.world.levels();
            let (to_java, node, there, lost, ack_lost, again, pause) = {
                let mut executor = self.lock(index);
                let is_gone = executor.incarnation != incarnation && !executor.durable;
                if is_gone || !executor.unheard.contains_key(&run) {
                    return;
                }
                let dice = &mut executor.dice;
                let late = dice.chance(levels.late);
                let any_node = dice.number(0, self.queues.nodes() as i64 - 1) as usize;
                (
                    self.java.as_ref().filter(|_| dice.chance(0.4)),
                    if self.world.plan.embedded { index } else { any_node },
                    dice.millis(0, if late { 400 } else { 5 }),
                    dice.chance(levels.report_lost),
                    dice.chance(levels.report_lost),
                    dice.chance(levels.report_repeated),
                    dice.millis(50, 700),
                )
            };
            self.world.sleep(there).await;
            let mut is_discarded = false;
            if !lost && self.lock(index).up {
                let verdict = match to_java {
                    Some(java) => java.report(self, run, &outcome).await.inspect(|verdict| {
                        // It discards the result of a run that it considers finished, also of a lost one.
                        is_discarded = *verdict == engine::Verdict::Duplicate;
                    }),
                    None => {
                        let ask = self.queues.ask(node, Request::Report(run, outcome.clone()));
                        match tokio::time::timeout(REPORT_MAX, ask).await {
                            Ok(Some(Ok(Answer::Verdict(verdict)))) => Some(verdict),
                            _ => None,
                        }
                    }
                };
                if let Some(verdict) = verdict {
                    if !is_discarded {
                        self.heard(run, &outcome, verdict);
                    }
                    if !ack_lost && !again {
                        let mut executor = self.lock(index);
                        if executor.durable || executor.incarnation == incarnation {
                            executor.unheard.remove(&run);
                        }
                        return;
                    }
                }
            }
            self.world.sleep(pause).await;
        }
    }

    /// Receives an acknowledgement: the outcome must be durable by now (I8).
    fn heard(&self, run: RunId, outcome: &Outcome, verdict: engine::Verdict) {
        self.world.note(|| format!("report of {run} is acknowledged: {verdict:?}"));
        let is_durable = {
            let mut evidence = self.world.evidence();
            evidence.acks.push(Acked { run, verdict });
            evidence.durable.contains(&(run, outcome.message().to_owned()))
        };
        if !is_durable {
            self.world.broken("I8", format!("the report of run {run} is acknowledged and not written"));
        }
    }

    /// Response of an executor to a probe of a run.
    pub fn probe(&self, index: usize, run: &Run) -> Probe {
        let executor = self.lock(index);
        let has_it = executor.running.contains_key(&run.id) || executor.unheard.contains_key(&run.id);
        let started = match run.state {
            RunState::Unknown => executor.journal.contains(&run.id),
            _ => has_it,
        };
        match (executor.up, started) {
            (false, _) => Probe::Silent,
            (true, true) => Probe::Started,
            (true, false) => Probe::Denied,
        }
    }

    /// The same if the executor of the run is unknown.
    pub fn probe_all(&self, run: &Run) -> Probe {
        let answers: Vec<Probe> = (0..self.each.len()).map(|index| self.probe(index, run)).collect();
        if let Some(index) = answers.iter().position(|answer| *answer == Probe::Started) {
            Probe::StartedAt(Executors::address(index))
        } else if answers.contains(&Probe::Silent) {
            Probe::Silent
        } else {
            Probe::Denied
        }
    }

    /// Whether an executor has this run or its result.
    pub fn has(&self, index: usize, run: RunId) -> bool {
        let executor = self.lock(index);
        executor.running.contains_key(&run) || executor.unheard.contains_key(&run)
    }

    /// Whether it has any run or unacknowledged result.
    pub fn is_busy(&self, index: usize) -> bool {
        let executor = self.lock(index);
        !executor.running.is_empty() || !executor.unheard.is_empty()
    }

    /// Whether it is down.
    pub fn is_down(&self, index: usize) -> bool {
        !self.lock(index).up
    }

    /// Kills a run, if the executor has it.
    pub fn kill(&self, index: usize, run: RunId) {
        if let Some(kill) = self.lock(index).running.get(&run) {
            kill.notify_one();
        }
    }

    /// Crashes the executor.
    pub fn crash(&self, index: usize) {
        self.world.note(|| format!("e{index} dies"));
        let now = self.world.now();
        let mut executor = self.lock(index);
        executor.up = false;
        executor.since = now;
        executor.registered = None;
        executor.incarnation += 1;
        executor.running.clear();
        if !executor.durable {
            executor.unheard.clear();
        }
    }

    /// Restarts the executor.
    pub fn restart(&self, index: usize) {
        self.world.note(|| format!("e{index} is back"));
        let mut executor = self.lock(index);
        executor.up = true;
        executor.restarted.notify_one();
    }

    /// The running incarnation; `None` if it is down.
    pub fn incarnation(&self, index: usize) -> Option<u32> {
        let executor = self.lock(index);
        executor.up.then_some(executor.incarnation)
    }

    /// Waits until it is restarted.
    pub async fn restarted(&self, index: usize) {
        let restarted = self.lock(index).restarted.clone();
        restarted.notified().await;
    }

    /// Called when a node has acknowledged its registration.
    pub fn registered(&self, index: usize, incarnation: u32, node: usize) {
        let now = self.world.now();
        let mut executor = self.lock(index);
        if executor.up && executor.incarnation == incarnation {
            let first = Presence { since: now, node, beats: Vec::new() };
            executor.registered.get_or_insert(first).beats.push((now, node));
        }
    }

    /// Its registration, if it is up and has one.
    pub fn registration(&self, index: usize) -> Option<Presence> {
        self.lock(index).registered.clone()
    }

    /// Whether it has a log of a run, because the run once began there.
    pub fn has_log(&self, index: usize, run: RunId) -> bool {
        self.lock(index).journal.contains(&run)
    }

    /// Whether it is executing a run of a job.
    pub fn runs_job(&self, index: usize, job: i64) -> bool {
        let running: Vec<RunId> = self.lock(index).running.keys().copied().collect();
        let evidence = self.world.evidence();
        running.iter().any(|run| evidence.facts(*run).is_some_and(|facts| facts.job.0 == job))
    }

    /// Kills the runs of a job.
    pub fn kill_job(&self, index: usize, job: i64) {
        let running: Vec<RunId> = self.lock(index).running.keys().copied().collect();
        let is_of_job =
            |run: &RunId| self.world.evidence().facts(*run).is_some_and(|facts| facts.job.0 == job);
        for run in running.into_iter().filter(is_of_job) {
            self.kill(index, run);
        }
    }

    /// Kills all running handlers.
    pub fn kill_all(&self) {
        for index in 0..self.each.len() {
            self.lock(index).running.values().for_each(|kill| kill.notify_one());
        }
    }

    fn lock(&self, index: usize) -> MutexGuard<'_, Executor> {
        self.each[index].lock().expect("no holder of this lock panics")
    }
}

/// How long a handler takes (`None`: forever), and its outcome.
fn work(dice: &mut Dice, task: &Task) -> (Option<Duration>, Outcome) {
    let id = task.facts.id;
    let nonce = dice.number(0, 999_999);
    let (short, long) = (dice.millis(1, 300), dice.millis(1_000, 20_000));
    let fails = dice.chance(0.5);
    let succeeded = Outcome::Succeeded(format!("run {id} is done ({nonce})"));
    let failed = Outcome::Failed(format!("run {id} failed ({nonce})"));
    let (takes, outcome) = match task.handler.as_str() {
        handlers::QUICK => (Some(short), succeeded),
        handlers::FLAKY => (Some(short), if fails { failed } else { succeeded }),
        handlers::FAILS => (Some(short), failed),
        handlers::LONG => (Some(long), succeeded),
        handlers::OVERDUE => (Some(handlers::OVERDUE_TAKES), succeeded),
        _ => (None, succeeded),
    };
    // Every other executor enforces timeouts; the centre must do it for the rest.
    match task.timeout {
        Some(timeout) if takes.is_none_or(|takes| takes > timeout) && fails => {
            (Some(timeout), Outcome::TimedOut(format!("run {id} took too long ({nonce})")))
        }
        _ => (takes, outcome),
    }
}

/// How long a crashed executor stays registered.
const REGISTERED_FOR: Ms = 3_000;

/// Timeout of the acknowledgement of a report.
const REPORT_MAX: Duration = Duration::from_secs(3);
