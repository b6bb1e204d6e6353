//! Deterministic simulation: several engines, one virtual clock, the real store in memory, models of everything
//! else, and all randomness from one seed.
//!
//! [`simulate`] runs one seed and returns the violated guarantees. The same seed always gives the same result, so a
//! failure is reproduced with its trace by
//! `cargo run --release -p tickwright-tests --features programs --bin soak -- --seed N --trace`.
//!
//! Faults are injected only at the engine's ports: its clock (`clock`), its store (`faulty`), the network
//! (`network`) with the executors (`executor`) behind it, and the node (`node`) that runs it, which may crash or be
//! paused between any two steps.

mod alarms;
mod backfill_client;
mod bulk_client;
pub mod check;
mod client;
mod clock;
mod dice;
mod evidence;
mod executor;
mod faulty;
mod graceful_stop;
mod java;
mod lifelines;
mod lines;
mod lost_commits;
mod nemesis;
mod network;
mod node;
mod overdue;
mod overload;
mod plan;
mod replacing;
mod steps;
mod workflows;
mod world;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::{AppId, Bugs, JobId, Sabotage, Store};
use store::{Database, Ignored, JavaAdmins, Options, Registry, SqliteStore};

pub use check::Counts;
pub use evidence::Violation;
pub use graceful_stop::{GracefulStop, graceful_stop};
pub use lost_commits::{LostCommits, lost_commits};
pub use overdue::{Overdue, overdue};
pub use overload::{LOAD_DROPS_AT, Served, overload};
pub use replacing::{Replacing, replacing};
pub use workflows::{WorkflowRuns, workflow_runs};

use backfill_client::BackfillClient;
use bulk_client::BulkClient;
use client::Client;
use clock::{Ms, START};
use executor::Executors;
use java::JavaAdmin;
use node::{Gate, Host, RequestQueues};
use plan::{Mode, Plan};
use world::World;

/// Parameters of a simulation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup {
    /// Decides everything.
    pub seed: u64,
    /// Deliberate bugs.
    pub bugs: Bugs,
    /// Whether to record a trace.
    pub traced: bool,
    /// Whether users also start backfills of the jobs.
    pub backfills: bool,
}

/// Result of a simulation.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Violated guarantees.
    pub violations: Vec<Violation>,
    /// How much was checked.
    pub counts: Counts,
    /// The trace, if it was recorded.
    pub trace: String,
}

/// Runs one seed.
pub fn simulate(setup: Setup) -> Outcome {
    // The routes of the real server use the thread's generator.
    fastrand::seed(setup.seed);
    in_virtual_time(async {
        let world = Arc::new(World::new(Plan::new(setup.seed), setup.traced));
        world.note(|| format!("{:?}", world.plan));
        play(&world, setup).await;
        let lasted = Duration::from_millis((world.now() - START) as u64);
        let mut evidence = world.take_evidence();
        let mut counts = Counts { seeds: 1, lasted, ..Counts::default() };
        let mut violations = std::mem::take(&mut evidence.broken);
        violations.extend(check::all(&world.plan, &evidence, &mut counts));
        counts.violations = violations.len() as u64;
        Outcome { violations, counts, trace: world.trace() }
    })
}

/// Runs a future on a clock that jumps to the next timer.
fn in_virtual_time<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without threads needs nothing");
    runtime.block_on(work)
}

/// All machines, none of them started yet.
struct Cluster {
    store: Arc<dyn Store>,
    /// The same, with all its methods.
    database: Arc<Database>,
    app: AppId,
    queues: Arc<RequestQueues>,
    executors: Arc<Executors>,
    hosts: Vec<Arc<Host>>,
    java: Option<Arc<JavaAdmin>>,
}

impl Cluster {
    async fn new(world: &Arc<World>, bugs: Bugs) -> Self {
        let java_admins = match world.plan.java {
            true => JavaAdmins::Beside,
            false => JavaAdmins::None,
        };
        let options = Options { zone: cron::Zone::utc(), java_admins, ..Options::default() };
        let clock = Arc::new(world.clock.clone());
        let mut sqlite = SqliteStore::in_memory_with(clock, &options).expect("memory is there");
        if bugs.has(Sabotage::BlindToStoredResults) {
            sqlite.ignore(Ignored::StoredResults);
        }
        if bugs.has(Sabotage::BlindToTakenFires) {
            sqlite.ignore(Ignored::TakenFires);
        }
        if bugs.has(Sabotage::PlaceGivenTwice) {
            sqlite.ignore(Ignored::FreedPlaces);
        }
        for (bug, rule) in workflows::BROKEN_RULES {
            if bugs.has(bug) {
                sqlite.ignore(Ignored::Rule(rule));
            }
        }
        let app = sqlite.ensure_app(lines::APP).await.expect("the store is empty");
        let sqlite = Arc::new(sqlite);
        let java = world.plan.java.then(|| Arc::new(JavaAdmin::new(world.clone(), sqlite.clone())));
        let (store, registry): (Arc<dyn Store>, Arc<dyn Registry>) = (sqlite.clone(), sqlite.clone());
        let queues = Arc::new(RequestQueues::new(world.plan.nodes));
        let executors = Arc::new(Executors::new(world.clone(), queues.clone(), java.clone()));
        let host = |index| {
            Arc::new(Host {
                index,
                world: world.clone(),
                store: store.clone(),
                registry: registry.clone(),
                executors: executors.clone(),
                queues: queues.clone(),
                gate: Arc::new(Gate::default()),
                clock: world.clock.another(),
                bugs,
            })
        };
        let hosts = (0..world.plan.nodes).map(host).collect();
        Cluster { store, database: sqlite, app, queues, executors, hosts, java }
    }

    /// Creates jobs and lets the first node start them.
    async fn start(&self, world: &Arc<World>, specs: Vec<engine::JobSpec>) -> Vec<JobId> {
        for host in &self.hosts {
            tokio::spawn(host.clone().run());
        }
        // Time for the nodes to find each other.
        world.sleep(Duration::from_secs(2)).await;
        let mut jobs = Vec::new();
        for spec in specs {
            let job = self.store.create_job(&spec).await.expect("the job is right");
            world.note(|| format!("job {job}: {spec:?}"));
            world.evidence().jobs.insert(job, spec);
            let started = self.queues.ask(0, node::Request::Operation(job, evidence::Operation::Start)).await;
            assert!(matches!(started, Some(Ok(_))), "nothing is in the way of starting job {job}");
            jobs.push(job);
        }
        jobs
    }
}

async fn play(world: &Arc<World>, setup: Setup) {
    let Cluster { store, database, app, queues, executors, hosts, java } =
        Cluster::new(world, setup.bugs).await;
    let jobs = create_jobs(world, &*store, app).await;
    if world.plan.registering.is_some() {
        hosts.iter().for_each(|host| drop(tokio::spawn(host.clone().run())));
        for index in 0..world.plan.executors {
            tokio::spawn(lines::register(world.clone(), executors.clone(), queues.clone(), index));
        }
        tokio::spawn(lines::leave_for_a_while(world.clone(), executors.clone()));
        world.sleep_until(world.plan.begins).await;
    }
    for host in &hosts {
        if world.plan.registering.is_none() {
            tokio::spawn(host.clone().run());
        }
        tokio::spawn(nemesis::break_node(host.clone()));
        tokio::spawn(nemesis::bend_clock(host.clone()));
    }
    tokio::spawn(nemesis::break_database(world.clone()));
    if let Some(java) = java {
        tokio::spawn(java.run(executors.clone()));
    }
    // Handlers inside the nodes' processes crash with them.
    for index in (0..world.plan.executors).filter(|_| !world.plan.embedded) {
        tokio::spawn(nemesis::break_executor(world.clone(), executors.clone(), index));
    }
    let over = Arc::new(AtomicBool::new(false));
    let spec = |job: &JobId| world.evidence().jobs[job].clone();
    let (together, alone) =
        jobs.split_at(if BulkClient::is_in(world.plan.seed) { jobs.len() / 2 } else { 0 });
    let mut clients: Vec<_> = alone
        .iter()
        .map(|job| {
            tokio::spawn(Client::new(world.clone(), queues.clone(), *job, spec(job), over.clone()).run())
        })
        .collect();
    if !together.is_empty() {
        let jobs: Vec<_> = together.iter().map(|job| (*job, spec(job))).collect();
        let client = BulkClient::new(world.clone(), queues.clone(), jobs.into_iter(), over.clone());
        clients.push(tokio::spawn(client.run()));
    }
    for number in (0..BackfillClient::COUNT).filter(|_| setup.backfills && !jobs.is_empty()) {
        let client = BackfillClient::new(world.clone(), queues.clone(), &jobs, number, over.clone());
        clients.push(tokio::spawn(client.run()));
    }

    world.sleep_until(world.plan.faults_until).await;
    world.clear_up();
    world.note(|| "nothing breaks any more".into());
    if world.plan.mode == Mode::Liveness {
        hosts[1..].iter().for_each(|host| host.gate.break_for_good());
        (1..world.plan.executors).for_each(|index| executors.crash(index));
    }
    // Normal operation after the faults.
    world.sleep(GOES_ON).await;
    over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("no client panics");
    }
    world.note(|| "all clients are done".into());
    // One node is enough for the rest.
    hosts[1..].iter().for_each(|host| host.gate.stop_for_good());
    backfill_client::finish(world, &database, &executors, SETTLE_MAX).await;
    settle(world, &*store, &executors, &jobs).await;
    collect(world, &*store, &jobs).await;
}

/// How long the system is observed after the faults: some fires of every frequent job, and the recovery limit before.
const GOES_ON: Duration = Duration::from_secs(14);

/// Waits until no run is open and every alert must have been delivered; gives up after [`SETTLE_MAX`] (I9).
async fn settle(world: &Arc<World>, store: &dyn Store, executors: &Executors, jobs: &[JobId]) {
    let begun = world.now();
    while world.now() - begun < SETTLE_MAX {
        // Ends handlers that never end, and those of the retries and children that follow.
        executors.kill_all();
        world.sleep(Duration::from_secs(5)).await;
        if world.now() - begun > ALERTS_OUT && all_are_over(store, jobs).await {
            // The last run to finish may have an alert too.
            return world.sleep(Duration::from_secs(3)).await;
        }
    }
}

async fn all_are_over(store: &dyn Store, jobs: &[JobId]) -> bool {
    for job in jobs {
        if all_runs(store, *job).await.iter().any(|run| !run.state.is_over()) {
            return false;
        }
    }
    true
}

/// A failed notification is retried after half a minute.
const ALERTS_OUT: Ms = 34_000;

/// A run ends 120 s after its executor died, and may then be retried three times, each time on a dead one.
const SETTLE_MAX: Ms = 900_000;

async fn create_jobs(world: &Arc<World>, store: &dyn Store, app: AppId) -> Vec<JobId> {
    let planned = plan::jobs(&world.plan, app);
    let mut ids = Vec::new();
    for job in &planned {
        ids.push(store.create_job(&job.spec).await.expect("the job is right"));
    }
    for (job, id) in planned.into_iter().zip(&ids) {
        let mut spec = job.spec;
        spec.children = job.children.iter().map(|number| ids[*number]).collect();
        if !spec.children.is_empty() {
            let control = engine::Control::Edit { spec: Box::new(spec.clone()), revision: None };
            store.control(*id, &control, 1_000, &Stopped).await.expect("the job is stopped and right");
        }
        world.note(|| format!("job {id}: {spec:?}"));
        world.evidence().jobs.insert(*id, spec);
    }
    ids
}

/// Planner of stopped jobs.
struct Stopped;

impl engine::Planner for Stopped {
    fn plan(&self, _: &engine::Job) -> engine::Plan {
        unreachable!("nothing is claimed")
    }

    fn assign(&self, _: &engine::Job, _: &engine::Run) -> engine::Assignment {
        unreachable!("nothing is claimed")
    }

    fn next_after(&self, _: &engine::Job, _: cron::Timestamp) -> engine::NextFire {
        engine::NextFire::Never
    }

    fn claim_at(&self, _: &engine::Job, fire_at: cron::Timestamp) -> cron::Timestamp {
        fire_at
    }
}

/// Reads the final state of the store.
async fn collect(world: &Arc<World>, store: &dyn Store, jobs: &[JobId]) {
    for job in jobs {
        let mut history = Vec::new();
        loop {
            let after = history.last().map(|entry: &engine::HistoryEntry| entry.id);
            let more = store.history(*job, after, PAGE).await.expect("the store itself never fails");
            if more.is_empty() {
                break;
            }
            history.extend(more);
        }
        let runs = all_runs(store, *job).await;
        let mut evidence = world.evidence();
        evidence.history.insert(*job, history);
        evidence.records.extend(runs.into_iter().map(|run| (run.id, run)));
    }
}

async fn all_runs(store: &dyn Store, job: JobId) -> Vec<engine::RunRecord> {
    let mut runs = Vec::new();
    loop {
        let after = runs.last().map(|run: &engine::RunRecord| run.id);
        let more = store.runs(job, after, PAGE).await.expect("the store itself never fails");
        if more.is_empty() {
            return runs;
        }
        runs.extend(more);
    }
}

const PAGE: usize = 1000;
