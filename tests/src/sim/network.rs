//! The network between a node and the executors: requests and responses are lost or late.
//!
//! If handlers run inside the node's process, there is no network: a run is marked, and then its handler is called.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use cron::Timestamp;
use engine::policy::{Router, Target};
use engine::{Dispatch, Job, KillAnswer, Order, Probe, Receipt, Run, RunId};
use tokio::sync::oneshot;

use super::clock::Ms;
use super::dice::Dice;
use super::evidence::{Attempt, Facts, Passage};
use super::executor::{Executors, Reaction, Task};
use super::plan::{Kills, Levels, routes};
use super::world::World;

/// One node's connection to the executors.
pub struct Wire {
    /// Index of the node.
    pub node: usize,
    /// Name of this incarnation of the node.
    pub name: String,
    /// The simulation it belongs to.
    pub world: Arc<World>,
    /// The executors.
    pub executors: Arc<Executors>,
    /// Decides the fate of each request.
    pub dice: Mutex<Dice>,
    /// Time at which each executor last left a request unanswered.
    pub disturbed: Mutex<BTreeMap<usize, Ms>>,
}

/// Timeout of a request.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Timeout of a probe.
pub(super) const PROBE_MAX: Duration = Duration::from_millis(300);

/// Number of recent requests searched for those of one run: more than are sent while one is in transit.
const RECENT: usize = 2_000;

impl Router for Wire {
    fn targets(&self, job: &Job, _scheduled_at: Timestamp) -> Vec<Target> {
        let address = |executor: usize| Target::Address(Executors::address(executor));
        if self.world.plan.embedded {
            return vec![address(self.node)];
        }
        let known = self.executors.known();
        if known.is_empty() {
            return Vec::new();
        }
        match job.spec.route.known() {
            Some(routes::BROADCAST) => known.into_iter().map(address).collect(),
            Some(routes::AT_SEND) => vec![Target::AtSend],
            Some(routes::HASH) => vec![address(known[job.id.0 as usize % known.len()])],
            _ => vec![address(known[0])],
        }
    }
}

#[async_trait]
impl Dispatch for Wire {
    async fn send(&self, order: &Order, _within: Duration) -> Receipt {
        if self.world.plan.embedded {
            return self.call(order);
        }
        let known = self.executors.known();
        let (to, transit) = {
            let mut dice = self.dice.lock().expect("no holder of this lock panics");
            let to = match &order.run.address {
                Some(address) => Executors::index(address),
                None if known.is_empty() => None,
                None => Some(dice.pick(&known)),
            };
            (to, Transit::draw(&mut dice, &self.world.levels()))
        };
        let number = self.leave(&order.run);
        let Some(to) = to else {
            self.world.evidence().attempts[number].passage = Passage::Nobody;
            self.answered(number);
            return Receipt::Refused { reason: "no executor is known".into() };
        };
        let address = Executors::address(to);
        match self.go(number, to, task(order), transit).await {
            Some(Reaction::Accepted) => Receipt::Accepted { address },
            Some(Reaction::Refused | Reaction::Closed) => {
                Receipt::Refused { reason: "simulated refusal".into() }
            }
            _ => Receipt::Unknown { address: Some(address), reason: "simulated silence".into() },
        }
    }

    async fn probe(&self, run: &Run, _job: Option<&Job>) -> Probe {
        if self.world.plan.embedded {
            // A run of another process is not judged here: if that process dies, the rescue closes it.
            let ours = run.node.as_ref().is_some_and(|node| node.name == self.name);
            let denied = ours && !self.executors.has(self.node, run.id);
            return if denied { Probe::Denied } else { Probe::Started };
        }
        let (silent, is_seen_dead, takes) = {
            let mut dice = self.dice.lock().expect("no holder of this lock panics");
            (dice.chance(self.world.levels().probe_silent), dice.chance(0.5), dice.millis(0, 20))
        };
        let probe = match run.address.as_deref().and_then(Executors::index) {
            _ if silent => Probe::Silent,
            // The supervisor of that machine knows that its process is gone.
            Some(executor) if is_seen_dead && self.executors.is_down(executor) => Probe::Dead,
            Some(executor) => self.executors.probe(executor, run),
            None => self.executors.probe_all(run),
        };
        if matches!(probe, Probe::Silent | Probe::Dead) {
            self.world.evidence().spoilt.insert(run.id);
        }
        self.world.sleep(if probe == Probe::Silent { PROBE_MAX } else { takes }).await;
        self.world.note(|| format!("n{} asks {:?} about {}: {probe:?}", self.node, run.address, run.id));
        probe
    }

    async fn kill(&self, run: &Run, _job: Option<&Job>) -> KillAnswer {
        self.world.note(|| format!("n{} kills {}", self.node, run.id));
        let at = self.world.now();
        self.world.evidence().kills.push((at, run.job, run.id));
        match self.world.plan.kills {
            Kills::Obeyed => {}
            Kills::Refused => return KillAnswer::Refused("simulated refusal".into()),
            Kills::Unanswered => return std::future::pending().await,
        }
        match run.address.as_deref().and_then(Executors::index) {
            Some(executor) => {
                self.executors.kill(executor, run.id);
                KillAnswer::Ended
            }
            None => KillAnswer::Unheard("no executor is known to have it".into()),
        }
    }

    fn marks_first(&self) -> bool {
        self.world.plan.embedded
    }

    fn is_busy(&self) -> bool {
        self.world.plan.embedded && self.executors.is_busy(self.node)
    }
}

/// Faults and delays of a request and its response.
struct Transit {
    there: Duration,
    back: Duration,
    lost: bool,
    answer_lost: bool,
}

impl Transit {
    fn draw(dice: &mut Dice, levels: &Levels) -> Transit {
        let late = |dice: &mut Dice, max| {
            if dice.chance(levels.late) { dice.millis(20, max) } else { dice.millis(0, 4) }
        };
        // A request that is lost once is retransmitted after 0.2 s, and then given up (ADR 7).
        let (there, back) = (late(dice, 240), late(dice, 400));
        let (lost, answer_lost) = (dice.chance(levels.request_lost), dice.chance(levels.answer_lost));
        Transit { there, back, lost, answer_lost }
    }
}

fn task(order: &Order) -> Task {
    Task {
        facts: Facts::from(&order.run),
        handler: order.job.spec.handler.clone(),
        timeout: order.job.spec.timeout,
    }
}

impl Wire {
    /// Carries a sent request to an executor; returns the response, if it arrives in time.
    pub(super) async fn carry(&self, number: usize, to: usize, task: Task) -> Option<Reaction> {
        let levels = self.world.levels();
        let transit = Transit::draw(&mut self.dice.lock().expect("no holder of this lock panics"), &levels);
        self.go(number, to, task, transit).await
    }

    async fn go(&self, number: usize, to: usize, task: Task, transit: Transit) -> Option<Reaction> {
        let Transit { there, back, lost, answer_lost } = transit;
        let (sender, answer) = oneshot::channel();
        let (world, executors) = (self.world.clone(), self.executors.clone());
        // In transit it is independent of the node: the node may crash, and the request still arrives.
        tokio::spawn(async move {
            world.sleep(there).await;
            if lost {
                world.evidence().attempts[number].passage = Passage::Lost;
                world.evidence().spoilt.insert(task.facts.id);
                world.note(|| format!("request {} to e{to} is lost", task.facts.id));
                return std::future::pending().await;
            }
            let run = task.facts.id;
            let reaction = executors.receive(to, task);
            world.evidence().attempts[number].passage = match reaction {
                Reaction::Accepted | Reaction::Refused => Passage::Arrived,
                Reaction::Closed | Reaction::Nothing => Passage::Nobody,
            };
            if reaction != Reaction::Accepted {
                world.evidence().spoilt.insert(run);
            }
            world.sleep(back).await;
            if answer_lost || matches!(reaction, Reaction::Nothing) {
                world.evidence().spoilt.insert(run);
                world.note(|| format!("answer to {run} from e{to} is lost"));
                return std::future::pending().await;
            }
            // The node may have crashed, or stopped waiting.
            let _ = sender.send(reaction);
        });
        let answer = tokio::time::timeout(ANSWER_MAX, answer).await.ok()?.ok();
        self.answered(number);
        if answer.is_none() {
            self.disturbed().insert(to, self.world.now());
        }
        answer
    }

    /// Whether a request to an executor was left unanswered since this time.
    pub(super) fn disturbed_since(&self, executor: usize, since: Ms) -> bool {
        self.disturbed().get(&executor).is_some_and(|at| *at >= since)
    }

    fn disturbed(&self) -> MutexGuard<'_, BTreeMap<usize, Ms>> {
        self.disturbed.lock().expect("no holder of this lock panics")
    }

    /// Whether a probe is lost, whether the connection to a stopped executor is refused, and how long it takes.
    pub(super) fn chances_of_a_question(&self) -> (bool, bool, Duration) {
        let mut dice = self.dice.lock().expect("no holder of this lock panics");
        (dice.chance(self.world.levels().probe_silent), dice.chance(0.5), dice.millis(0, 20))
    }

    /// Number of requests sent for a run.
    pub(super) fn attempts_of(&self, run: RunId) -> usize {
        self.world.evidence().attempts.iter().rev().take(RECENT).filter(|sent| sent.run.id == run).count()
    }

    /// Calls the handler in this process.
    fn call(&self, order: &Order) -> Receipt {
        let number = self.leave(&order.run);
        let reaction = self.executors.receive(self.node, task(order));
        self.world.evidence().attempts[number].passage = Passage::Arrived;
        self.answered(number);
        match reaction {
            Reaction::Accepted => Receipt::Accepted { address: Executors::address(self.node) },
            _ => Receipt::Refused { reason: "simulated refusal".into() },
        }
    }

    /// Records that a request is sent, and checks whether that is allowed.
    fn leave(&self, run: &Run) -> usize {
        self.leave_as(&Facts::from(run))
    }

    /// The same with the immutable fields of the run only.
    pub(super) fn leave_as(&self, run: &Facts) -> usize {
        let at = self.world.now();
        self.world.note(|| {
            format!(
                "n{} sends {} (job {} at {}, {:?}, try {})",
                self.node,
                run.id,
                run.job,
                Timestamp::from_millis(run.scheduled_at),
                run.shard,
                run.attempt
            )
        });
        let mut broken = Vec::new();
        let number = {
            let mut evidence = self.world.evidence();
            let claim = evidence.ledger.get(&run.id).and_then(|entry| entry.claims.last()).cloned();
            match claim {
                None => broken.push(("I3", format!("run {} is sent, but nobody has claimed it", run.id))),
                Some(claim) => {
                    if claim.node != self.node {
                        broken.push((
                            "I18",
                            format!("node {} sends run {}, which {} has", self.node, run.id, claim.life),
                        ));
                    }
                    let lease = evidence.leases.get(&claim.life).copied().unwrap_or_default();
                    if lease < at {
                        let text =
                            format!("{} sends run {} {} ms after its lease", claim.life, run.id, at - lease);
                        broken.push(("I18", text));
                    }
                }
            }
            if at < run.scheduled_at {
                let text = format!("run {} leaves {} ms early", run.id, run.scheduled_at - at);
                broken.push(("I4", text));
            }
            evidence.attempts.push(Attempt {
                at,
                node: self.node,
                answered: None,
                run: run.clone(),
                passage: Passage::UnderWay,
            });
            evidence.attempts.len() - 1
        };
        broken.into_iter().for_each(|(promise, text)| self.world.broken(promise, text));
        number
    }

    fn answered(&self, attempt: usize) {
        self.world.evidence().attempts[attempt].answered = Some(self.world.now());
    }
}
