//! Clients that start, stop, edit, delete and trigger jobs through any node, and record their requests and the
//! responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::{JobId, JobSpec, StoreError};

use super::dice::Dice;
use super::evidence::{Done, Operation, OperationRecord};
use super::node::{Answer, Request, RequestQueues};
use super::plan;
use super::world::World;

/// Manages one job. Its operations never overlap: the next begins when the one before was acknowledged.
pub struct Client {
    world: Arc<World>,
    queues: Arc<RequestQueues>,
    job: JobId,
    spec: JobSpec,
    enabled: bool,
    deleted: bool,
    triggers: i64,
    dice: Dice,
    /// Set when no more operations should be sent.
    over: Arc<AtomicBool>,
}

impl Client {
    /// For an existing, stopped job.
    pub fn new(
        world: Arc<World>,
        queues: Arc<RequestQueues>,
        job: JobId,
        spec: JobSpec,
        over: Arc<AtomicBool>,
    ) -> Self {
        let dice = Dice::new(world.plan.seed, "client", job.0 as usize);
        Client { world, queues, job, spec, enabled: false, deleted: false, triggers: 0, dice, over }
    }

    /// Starts the job, changes it a few times, and stops it at the end.
    pub async fn run(mut self) {
        let wait = self.dice.millis(0, 3_000);
        self.world.sleep(wait).await;
        let fires = !matches!(self.spec.schedule, cron::Schedule::Never);
        if fires {
            self.perform(Operation::Start).await;
        }
        let restless = self.dice.chance(0.5);
        loop {
            let wait =
                if restless { self.dice.millis(200, 15_000) } else { self.dice.millis(10_000, 60_000) };
            if rest(&self.world, &self.over, wait).await {
                break;
            }
            match self.dice.number(0, 99) {
                0..=24 if fires => {
                    self.perform(if self.enabled { Operation::Stop } else { Operation::Start }).await
                }
                25..=44 => {
                    let spec = edited(&self.spec, &mut self.dice);
                    self.perform(Operation::Edit(Box::new(spec))).await;
                }
                45..=47 => self.perform(Operation::Delete).await,
                _ => {
                    self.triggers += 1;
                    self.perform(Operation::Trigger(self.triggers)).await;
                }
            }
            if self.deleted {
                return;
            }
        }
        self.perform(Operation::Stop).await;
    }

    /// Asks one node after the other until one acknowledges the operation.
    async fn perform(&mut self, operation: Operation) {
        let asked = self.world.now();
        let number = {
            let mut evidence = self.world.evidence();
            evidence.ops.push(OperationRecord {
                job: self.job,
                operation: operation.clone(),
                asked,
                tries: 0,
                done: None,
                refused: false,
            });
            evidence.ops.len() - 1
        };
        loop {
            self.world.evidence().ops[number].tries += 1;
            let node = self.dice.number(0, self.queues.nodes() as i64 - 1) as usize;
            let patience = if self.dice.chance(0.8) {
                self.dice.millis(17_000, 20_000)
            } else {
                self.dice.millis(20, 3_000)
            };
            self.world.note(|| format!("client asks n{node} to {} job {}", name(&operation), self.job));
            let answer = tokio::time::timeout(
                patience,
                self.queues.ask(node, Request::Operation(self.job, operation.clone())),
            )
            .await;
            let acked = self.world.now();
            let done = match answer {
                Ok(Some(Ok(Answer::Changed(changed)))) => {
                    Some(Done { at: changed.at.as_millis(), acked, run: None })
                }
                Ok(Some(Ok(Answer::Run(run)))) => Some(Done { at: acked, acked, run: Some(run) }),
                // A schedule that has ended cannot be started.
                Ok(Some(Err(StoreError::Invalid(_)))) => {
                    self.world.evidence().ops[number].refused = true;
                    return;
                }
                // An earlier attempt has deleted it.
                Ok(Some(Err(StoreError::NoSuchJob(_)))) if matches!(operation, Operation::Delete) => {
                    Some(Done { at: acked, acked, run: None })
                }
                Ok(Some(Err(error))) => {
                    self.world.note(|| format!("client hears from n{node}: {error}"));
                    None
                }
                _ => None,
            };
            if let Some(done) = done {
                self.world.note(|| {
                    format!("client hears from n{node}: {} of job {} is done", name(&operation), self.job)
                });
                self.world.evidence().ops[number].done = Some(done);
                self.remember(operation);
                return;
            }
            let wait = self.dice.millis(50, 800);
            self.world.sleep(wait).await;
        }
    }

    fn remember(&mut self, operation: Operation) {
        match operation {
            Operation::Start => self.enabled = true,
            Operation::Stop => self.enabled = false,
            Operation::Edit(spec) => self.spec = *spec,
            Operation::Delete => self.deleted = true,
            Operation::Trigger(_) => {}
        }
    }
}

/// Waits; returns true if no more operations should be sent.
pub(super) async fn rest(world: &World, over: &AtomicBool, mut wait: Duration) -> bool {
    const LOOK: Duration = Duration::from_millis(500);
    while !wait.is_zero() && !over.load(Ordering::Relaxed) {
        let step = wait.min(LOOK);
        world.sleep(step).await;
        wait -= step;
    }
    over.load(Ordering::Relaxed)
}

/// Another definition of a job.
pub(super) fn edited(spec: &JobSpec, dice: &mut Dice) -> JobSpec {
    let mut spec = spec.clone();
    // A fixed delay counts from the end of a run; switching between delay and rate would test neither.
    let is_delay = matches!(spec.schedule, cron::Schedule::FixedDelay { .. } | cron::Schedule::Never);
    if !is_delay && dice.chance(0.5) {
        let other = plan::schedule(dice);
        if !matches!(other, cron::Schedule::FixedDelay { .. }) {
            spec.schedule = other;
        }
    }
    spec.param = format!("edited {}", dice.number(0, 999));
    spec
}

pub(super) fn name(operation: &Operation) -> &'static str {
    match operation {
        Operation::Start => "start",
        Operation::Stop => "stop",
        Operation::Edit(_) => "edit",
        Operation::Delete => "delete",
        Operation::Trigger(_) => "trigger",
    }
}
