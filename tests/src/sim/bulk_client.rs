//! A client that starts, stops, edits and deletes many jobs with one request, and records the request and the response
//! for each job.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::{JobId, JobSpec, StoreError};

use super::client::{edited, name, rest};
use super::dice::Dice;
use super::evidence::{Done, Operation, OperationRecord};
use super::node::{Answer, Request, RequestQueues};
use super::world::World;

/// Manages some jobs. Operations on one job never overlap: the next request is sent when every job of the one before
/// was acknowledged or rejected.
pub struct BulkClient {
    world: Arc<World>,
    queues: Arc<RequestQueues>,
    jobs: BTreeMap<JobId, Managed>,
    dice: Dice,
    /// Set when no more operations should be sent.
    over: Arc<AtomicBool>,
}

struct Managed {
    spec: JobSpec,
    enabled: bool,
}

impl BulkClient {
    /// Whether a seed has such a client.
    pub fn is_in(seed: u64) -> bool {
        Dice::new(seed, "bulk", 0).chance(0.4)
    }

    /// For existing, stopped jobs.
    pub fn new(
        world: Arc<World>,
        queues: Arc<RequestQueues>,
        jobs: impl Iterator<Item = (JobId, JobSpec)>,
        over: Arc<AtomicBool>,
    ) -> Self {
        let dice = Dice::new(world.plan.seed, "bulk client", 0);
        let jobs = jobs.map(|(job, spec)| (job, Managed { spec, enabled: false })).collect();
        BulkClient { world, queues, jobs, dice, over }
    }

    /// Starts all jobs, changes some of them a few times, and stops all at the end.
    pub async fn run(mut self) {
        let wait = self.dice.millis(0, 3_000);
        self.world.sleep(wait).await;
        let start = self.startable().map(|job| (job, Operation::Start)).collect();
        self.perform(start, false).await;
        loop {
            let wait = self.dice.millis(200, 9_000);
            if rest(&self.world, &self.over, wait).await {
                break;
            }
            let (batch, atomic) = self.batch();
            self.perform(batch, atomic).await;
        }
        let stop = self.jobs.keys().map(|job| (*job, Operation::Stop)).collect();
        self.perform(stop, false).await;
    }

    fn startable(&self) -> impl Iterator<Item = JobId> {
        let fires = |managed: &Managed| !matches!(managed.spec.schedule, cron::Schedule::Never);
        self.jobs.iter().filter(move |(_, managed)| !managed.enabled && fires(managed)).map(|(job, _)| *job)
    }

    /// The next request: one operation for all jobs, or another one for each.
    fn batch(&mut self) -> (Vec<(JobId, Operation)>, bool) {
        let all: Vec<JobId> = self.jobs.keys().copied().collect();
        match self.dice.number(0, 9) {
            0..=3 => (all.into_iter().map(|job| (job, Operation::Stop)).collect(), self.dice.chance(0.5)),
            4..=6 => (self.startable().map(|job| (job, Operation::Start)).collect(), false),
            7 | 8 => (all.into_iter().map(|job| (job, self.edit(job))).collect(), self.dice.chance(0.5)),
            _ => {
                let mut batch = Vec::new();
                for job in all {
                    let starts = self.startable().any(|startable| startable == job);
                    batch.push(match self.dice.number(0, 9) {
                        0..=3 if starts => (job, Operation::Start),
                        0..=3 => (job, Operation::Stop),
                        4..=7 => (job, self.edit(job)),
                        8 => (job, Operation::Delete),
                        _ => continue,
                    });
                }
                (batch, false)
            }
        }
    }

    fn edit(&mut self, job: JobId) -> Operation {
        Operation::Edit(Box::new(edited(&self.jobs[&job].spec, &mut self.dice)))
    }

    /// Asks one node after the other until every operation is acknowledged or rejected.
    async fn perform(&mut self, batch: Vec<(JobId, Operation)>, atomic: bool) {
        let asked = self.world.now();
        let mut left: Vec<(usize, JobId, Operation)> = Vec::new();
        for (job, operation) in batch {
            let mut evidence = self.world.evidence();
            let record = OperationRecord {
                job,
                operation: operation.clone(),
                asked,
                tries: 0,
                done: None,
                refused: false,
            };
            evidence.ops.push(record);
            left.push((evidence.ops.len() - 1, job, operation));
        }
        while !left.is_empty() {
            left.iter().for_each(|(number, ..)| self.world.evidence().ops[*number].tries += 1);
            let node = self.dice.number(0, self.queues.nodes() as i64 - 1) as usize;
            let patience = if self.dice.chance(0.8) {
                self.dice.millis(17_000, 20_000)
            } else {
                self.dice.millis(20, 3_000)
            };
            let request: Vec<_> = left.iter().map(|(_, job, operation)| (*job, operation.clone())).collect();
            self.world.note(|| {
                let each = request.iter().map(|(job, operation)| format!("{} {job}", name(operation)));
                format!("bulk client asks n{node}: {}", each.collect::<Vec<_>>().join(", "))
            });
            let answer =
                tokio::time::timeout(patience, self.queues.ask(node, Request::Batch(request, atomic)));
            if let Ok(Some(Ok(Answer::Batch(results)))) = answer.await {
                let acked = self.world.now();
                let mut again = Vec::new();
                for ((number, job, operation), result) in left.into_iter().zip(results) {
                    self.world.note(|| format!("bulk client hears from n{node} about job {job}: {result:?}"));
                    let done = match result {
                        Ok(changed) => Done { at: changed.at.as_millis(), acked, run: None },
                        // An earlier attempt has deleted it.
                        Err(StoreError::NoSuchJob(_)) if matches!(operation, Operation::Delete) => {
                            Done { at: acked, acked, run: None }
                        }
                        // A schedule that has ended cannot be started.
                        Err(StoreError::Invalid(_)) => {
                            self.world.evidence().ops[number].refused = true;
                            continue;
                        }
                        Err(_) => {
                            again.push((number, job, operation));
                            continue;
                        }
                    };
                    self.world.evidence().ops[number].done = Some(done);
                    self.remember(job, operation);
                }
                left = again;
            }
            if !left.is_empty() {
                let wait = self.dice.millis(50, 800);
                self.world.sleep(wait).await;
            }
        }
    }

    fn remember(&mut self, job: JobId, operation: Operation) {
        let Some(managed) = self.jobs.get_mut(&job) else { return };
        match operation {
            Operation::Start => managed.enabled = true,
            Operation::Stop => managed.enabled = false,
            Operation::Edit(spec) => managed.spec = *spec,
            Operation::Delete => drop(self.jobs.remove(&job)),
            Operation::Trigger(_) => {}
        }
    }
}
