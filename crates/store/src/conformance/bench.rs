//! Test fixtures: a simple planner and ender, and a bench with a node and jobs.

use std::sync::Arc;
use std::time::Duration;

use cron::Schedule;
use engine::policy::{Named, Overlap, Route, Target};
use engine::{
    AppId, Assignment, Claim, Control, Disposition, Ender, Ending, Fire, FollowUps, Job, JobId, JobSpec,
    Move, Moved, NextFire, Node, Order, Origin, Outcome, Plan, Planner, Run, RunId, RunRecord, Slots,
    Store as _, To, Trigger, Trouble, TroubleKind, Unsent, Verdict,
};
use timer::Timestamp;

use super::{Faults, Fresh, Seed};
use crate::{Database, Page, RunFilter, RunStatus};

pub const HOUR: Duration = Duration::from_secs(3_600);
pub const SECOND: Duration = Duration::from_secs(1);

/// Long enough for any test, also one that claims fires of tomorrow.
pub const LEASE: Duration = Duration::from_secs(30 * 86_400);

/// Plans one fire for each due job, with as many targets as the job's route specifies.
pub struct Simple {
    pub now: Timestamp,
}

impl Planner for Simple {
    fn plan(&self, job: &Job) -> Plan {
        let at = job.next_fire_at.expect("only jobs with a next fire are due");
        let mut plan = Plan { fires: vec![], unsent: vec![], next: self.next_after(job, at), replace: false };
        if let Schedule::FixedDelay { .. } = job.spec.schedule {
            plan.next = NextFire::AfterRun;
        }
        let fire = |waits| Fire {
            scheduled_at: at,
            due_at: at,
            origin: Origin::Schedule,
            targets: if waits { vec![] } else { targets(job) },
            waits,
        };
        match job.spec.overlap {
            Overlap::Wait if job.running.is_some() || job.waiting > 0 => plan.fires.push(fire(true)),
            Overlap::Skip if job.running.is_some() => plan.unsent.push(unsent(Disposition::Blocked, at)),
            Overlap::Replace if job.running.is_some() => {
                plan.replace = true;
                plan.fires.push(fire(false));
            }
            _ => plan.fires.push(fire(false)),
        }
        if job.fires_left() == Some(plan.fires.len() as u64) {
            plan.next = NextFire::Never;
        }
        plan
    }

    fn assign(&self, job: &Job, run: &Run) -> Assignment {
        let is_free = job.running.is_none_or(|holder| holder == run.id);
        match job.spec.overlap {
            Overlap::Wait if !is_free => Assignment::Leave(self.now + HOUR),
            Overlap::Skip if !is_free => {
                Assignment::Drop(Disposition::Blocked, "another run is going on".into())
            }
            Overlap::Replace if !is_free => Assignment::Replace(targets(job)),
            _ => Assignment::Send(targets(job)),
        }
    }

    fn next_after(&self, job: &Job, after: Timestamp) -> NextFire {
        let next = job.spec.next_after(after).or_else(|| job.spec.next_after_end(after));
        next.map_or(NextFire::Never, |at| NextFire::At { fire_at: at, claim_at: self.claim_at(job, at) })
    }

    fn claim_at(&self, _: &Job, fire_at: Timestamp) -> Timestamp {
        fire_at
    }
}

pub fn unsent(disposition: Disposition, at: Timestamp) -> Unsent {
    Unsent { disposition, first: at, last: at, count: 1, reason: "a test".into() }
}

/// As many targets as the job's route specifies, see [`shards`].
pub fn targets(job: &Job) -> Vec<Target> {
    if job.spec.route == AT_SEND {
        return vec![Target::AtSend];
    }
    let count = job.spec.route.stored().parse().unwrap_or(1);
    (0..count).map(|shard| Target::Address(format!("http://10.0.0.{shard}:9999"))).collect()
}

/// Route of jobs with that many shards. Its word is not one of ours, so it is also stored as it is.
pub fn shards(count: u32) -> Named<Route> {
    Named::Other(count.to_string())
}

/// Route of jobs with an executor that is chosen at dispatch.
pub const AT_SEND: Route = Route::Failover;

impl Ender for Simple {
    fn recorded(&self, run: &Run, reported: &Outcome) -> Outcome {
        match reported {
            Outcome::Failed(_) if run.cancel => Outcome::Cancelled("cancelled".into()),
            reported => reported.clone(),
        }
    }

    fn follow(&self, job: &Job, run: &Run, outcome: &Outcome) -> FollowUps {
        let succeeded = matches!(outcome, Outcome::Succeeded(_));
        let delay = job.spec.retry.delay_after(run.attempt).filter(|_| !succeeded);
        let failed_for_good = !succeeded && delay.is_none();
        FollowUps {
            retry_at: delay.map(|delay| self.now + delay),
            children: if succeeded { job.spec.children.clone() } else { vec![] },
            trouble: (failed_for_good && job.spec.alert)
                .then(|| Trouble::new(TroubleKind::Failed, outcome.message())),
            rearm: (matches!(job.spec.schedule, Schedule::FixedDelay { .. }) && run.origin.is_scheduled())
                .then(|| {
                    let next = job.spec.next_after_end(self.now);
                    next.map_or(NextFire::Never, |at| NextFire::At { fire_at: at, claim_at: at })
                }),
        }
    }
}

/// A store with a node that claims. `now` is the database's time when the bench was made.
#[derive(Clone)]
pub struct Bench {
    pub store: Arc<Database>,
    pub faults: Arc<Faults>,
    seed: Seed,
    pub app: AppId,
    pub node: Node,
    pub now: Timestamp,
}

impl Bench {
    pub async fn new(fresh: Fresh) -> Bench {
        let Fresh { store, faults, seed } = fresh;
        let app = store.ensure_app("bench").await.unwrap();
        let joined = store.join("first", LEASE).await.unwrap();
        Bench { store, faults, seed, app, node: joined.node, now: joined.now }
    }

    /// The same bench with another node.
    pub async fn another(&self, name: &str) -> Bench {
        Bench { node: self.store.join(name, LEASE).await.unwrap().node, ..self.clone() }
    }

    /// A job that fires every hour, first in one hour.
    pub fn hourly(&self) -> JobSpec {
        let schedule = Schedule::fixed_rate(self.now + HOUR, HOUR).unwrap();
        JobSpec::new(self.app, "hourly", schedule, "demo")
    }

    /// Creates and starts a job.
    pub async fn start(&self, spec: &JobSpec) -> JobId {
        let job = self.store.create_job(spec).await.unwrap();
        self.control(job, Control::Start).await;
        job
    }

    /// Creates and starts many jobs, all with `next` as their first fire.
    pub async fn start_many(&self, spec: JobSpec, count: usize, next: Timestamp) -> Vec<JobId> {
        (self.seed)(spec, count, next).await.unwrap()
    }

    /// Creates a job that only fires by manual triggers.
    pub async fn create(&self, change: impl FnOnce(&mut JobSpec)) -> JobId {
        let mut spec = JobSpec::new(self.app, "by hand", Schedule::Never, "demo");
        change(&mut spec);
        self.store.create_job(&spec).await.unwrap()
    }

    pub async fn control(&self, job: JobId, control: Control) -> u64 {
        self.store.control(job, &control, 1_000, &Simple { now: self.now }).await.unwrap().cancelling
    }

    /// Number of the job's runs that its nodes are asked to cancel.
    pub async fn cancelling(&self, job: JobId) -> u64 {
        self.store.cancelling(&[job]).await.unwrap().into_iter().map(|(_, runs)| runs).sum()
    }

    /// Next fire of the job.
    pub async fn next_of(&self, job: JobId) -> Option<Timestamp> {
        self.store.job(job).await.unwrap().unwrap().next_fire_at
    }

    pub async fn claim_at(&self, now: Timestamp) -> Claim {
        self.store.claim_due(&self.node, now, Slots::ALL, 1_000, &Simple { now }).await.unwrap()
    }

    pub async fn claim_waiting_at(&self, now: Timestamp) -> Claim {
        self.store.claim_waiting(&self.node, now, Slots::ALL, 1_000, &Simple { now }).await.unwrap()
    }

    /// Number of failed runs in the list.
    pub async fn listed_as_failed(&self) -> u64 {
        let failed = RunFilter { status: Some(RunStatus::Failed), ..RunFilter::default() };
        let page = self.store.run_page(&failed, Page::Offset { offset: 0, limit: 10 }).await.unwrap();
        page.total.expect("pages by offset are counted").count
    }

    /// Claims the next fire of a job that is the only one due then.
    pub async fn fire(&self, job: JobId) -> Vec<Order> {
        let at = self.next_of(job).await.expect("the job has a next fire");
        self.claim_at(at).await.orders
    }

    pub async fn trigger(&self, job: JobId, key: i64) -> RunId {
        let trigger = Trigger { key, at: Some(self.now), param: None, address: None, by: None };
        self.store.trigger(job, &trigger).await.unwrap()
    }

    pub async fn accept(&self, run: &Run) -> Run {
        let to = To::Running { address: None, check_at: run.due_at + HOUR, doubt_since: None };
        let wanted = Move { run: run.id, version: run.version, to, trouble: None };
        let moved = self.store.move_runs(&[wanted]).await.unwrap();
        assert_eq!(moved, [Moved::Done(run.version + 1)]);
        self.open(run.id).await.unwrap()
    }

    /// Claims the next fire of the job, which an executor accepts.
    pub async fn run(&self, job: JobId) -> Run {
        let orders = self.fire(job).await;
        assert_eq!(orders.len(), 1);
        self.accept(&orders[0].run).await
    }

    pub async fn end(&self, run: RunId, outcome: Outcome) -> Verdict {
        self.end_at(self.now, run, outcome).await
    }

    pub async fn end_at(&self, now: Timestamp, run: RunId, outcome: Outcome) -> Verdict {
        let ending = Ending { run, outcome, version: None, address: None };
        self.store.complete(now, &[ending], &Simple { now }).await.unwrap()[0]
    }

    pub async fn open(&self, run: RunId) -> Option<Run> {
        self.store.open_runs(&[run]).await.unwrap().pop()
    }

    pub async fn records(&self, job: JobId) -> Vec<RunRecord> {
        self.store.runs(job, None, 100_000).await.unwrap()
    }

    /// Open runs of a job, oldest first.
    pub async fn open_of(&self, job: JobId) -> Vec<Run> {
        let ids: Vec<RunId> = self.records(job).await.into_iter().map(|record| record.id).collect();
        self.store.open_runs(&ids).await.unwrap()
    }

    pub async fn dispositions(&self, job: JobId) -> Vec<Disposition> {
        let entries = self.store.history(job, None, 100_000).await.unwrap();
        entries.into_iter().map(|entry| entry.unsent.disposition).collect()
    }
}

pub fn ok() -> Outcome {
    Outcome::Succeeded("done".into())
}

pub fn failed() -> Outcome {
    Outcome::Failed("no".into())
}

pub fn lost() -> Outcome {
    Outcome::Lost("its executor is gone".into())
}
