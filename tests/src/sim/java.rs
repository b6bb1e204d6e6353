//! A Java admin of XXL-JOB on the same database: it takes fires ahead of time, sends them, receives reports of any
//! run, and starts children.
//!
//! It does not fail: what it loses by itself proves nothing about our nodes. It leaves before the simulation ends;
//! fires that it has taken are sent before.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::policy::Overlap;
use engine::{CHILD_DEPTH_MAX, Job, JobId, Origin, Outcome, RunId, Shard, Verdict};
use store::Database;

use super::clock::Ms;
use super::dice::Dice;
use super::evidence::{Ended, Entry, Facts};
use super::executor::{Executors, Reaction, Task};
use super::plan::routes;
use super::world::World;

/// The admin.
pub struct JavaAdmin {
    world: Arc<World>,
    store: Arc<Database>,
    dice: Mutex<Dice>,
}

impl JavaAdmin {
    /// Creates the admin.
    pub fn new(world: Arc<World>, store: Arc<Database>) -> Self {
        let dice = Mutex::new(Dice::new(world.plan.seed, "java admin", 0));
        JavaAdmin { world, store, dice }
    }

    /// Takes and sends fires until the faults end.
    pub async fn run(self: Arc<Self>, executors: Arc<Executors>) {
        while !self.world.is_fair() {
            // It takes turns with the nodes, so that both hold fires of the same job.
            let (busy, pause) = {
                let mut dice = self.lock();
                (dice.chance(0.7), dice.millis(300, 1_500))
            };
            if busy && !self.world.is_outage() {
                self.scan(&executors).await;
            }
            self.world.sleep(pause).await;
        }
    }

    async fn scan(self: &Arc<Self>, executors: &Arc<Executors>) {
        loop {
            let taken = self.store.java_takes_fires(READ_AHEAD, &is_plain).await.expect("it never fails");
            if taken.is_empty() {
                return;
            }
            for (job, at) in taken {
                self.world.note(|| format!("java takes job {} at {at:?}", job.id));
                let (java, executors) = (self.clone(), executors.clone());
                tokio::spawn(async move {
                    java.world.sleep_until(at.as_millis()).await;
                    let cause = Cause { origin: Origin::Schedule, scheduled_at: at.as_millis(), depth: 0 };
                    java.send(&executors, &job, cause).await;
                });
            }
        }
    }

    async fn send(&self, executors: &Arc<Executors>, job: &Job, cause: Cause) {
        let run = self.store.java_opens_run(job).await.expect("it never fails");
        let facts = Facts {
            id: run,
            fire: run,
            job: job.id,
            scheduled_at: cause.scheduled_at,
            origin: cause.origin,
            shard: Shard::WHOLE,
            attempt: 1,
            retry_of: None,
            depth: cause.depth,
        };
        {
            let mut evidence = self.world.evidence();
            evidence.java_runs.insert(run);
            let due_at = cause.scheduled_at;
            evidence.ledger.insert(run, Entry { facts: facts.clone(), due_at, claims: Vec::new() });
        }
        let handler = job.spec.handler.clone();
        let known = executors.known();
        let to = (!known.is_empty()).then(|| self.lock().pick(&known));
        let reaction = to.map(|to| {
            let task = Task { facts, handler, timeout: job.spec.timeout };
            executors.receive(to, task)
        });
        self.world.note(|| format!("java sends {run} of job {} to {to:?}: {reaction:?}", job.id));
        match reaction {
            Some(Reaction::Accepted) => self.store.java_sent(run).await.expect("it never fails"),
            _ => {
                // Nobody took it: the admin closes its row as failed.
                let failed = Outcome::Failed("no executor".into());
                self.store.java_receives(run, &failed).await.expect("it never fails");
                self.world.evidence().ended_by_java(self.world.now(), run, failed);
            }
        }
    }

    /// Receives a report; `None` if the database is gone.
    pub async fn report(
        self: &Arc<Self>,
        executors: &Arc<Executors>,
        run: RunId,
        outcome: &Outcome,
    ) -> Option<Verdict> {
        if self.world.is_outage() {
            return None;
        }
        let stored = self.store.java_receives(run, outcome).await.expect("it never fails");
        let at = self.world.now();
        self.world.evidence().durable.insert((run, outcome.message().to_owned()));
        let Some(children) = stored else { return Some(Verdict::Duplicate) };
        self.world.note(|| format!("java stores the result of {run}: {outcome:?}"));
        self.world.evidence().ended_by_java(at, run, outcome.clone());
        self.start_children(executors, run, &children).await;
        Some(Verdict::Applied)
    }

    async fn start_children(self: &Arc<Self>, executors: &Arc<Executors>, of: RunId, children: &[JobId]) {
        let depth = self.world.evidence().facts(of).map_or(0, |facts| facts.depth) + 1;
        if depth > CHILD_DEPTH_MAX {
            return;
        }
        for child in children {
            let Some(child) = self.job(*child).await else { continue };
            let cause = Cause { origin: Origin::Child { of }, scheduled_at: self.world.now(), depth };
            Box::pin(self.send(executors, &child, cause)).await;
        }
    }

    async fn job(&self, id: JobId) -> Option<Job> {
        engine::Store::job(&*self.store, id).await.expect("it never fails")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Dice> {
        self.dice.lock().expect("no holder of this lock panics")
    }
}

/// Why the admin starts a run.
struct Cause {
    origin: Origin,
    scheduled_at: Ms,
    depth: u32,
}

/// How far ahead it takes fires.
const READ_AHEAD: Duration = Duration::from_secs(5);

/// Jobs without policies that a Java admin does not know.
fn is_plain(job: &Job) -> bool {
    job.spec.overlap == Overlap::Allow && job.spec.route != routes::BROADCAST && job.spec.jitter.is_zero()
}

impl super::evidence::Evidence {
    fn ended_by_java(&mut self, at: Ms, run: RunId, outcome: Outcome) {
        self.java_results.insert(run, outcome.clone());
        self.endings.push(Ended { at, run, outcome, late: false });
    }
}
