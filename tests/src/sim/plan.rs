//! Parameters that a seed decides in advance: size, faults, jobs.

use std::time::Duration;

use cron::{Cron, DstRule, Schedule, Timestamp, Zone};
use engine::policy::{Backoff, Delivery, Misfire, Overlap, Retry};
use engine::{AppId, ChildrenMode, JobSpec};

use super::clock::{Ms, START};
use super::dice::Dice;
use super::lines::Registering;

/// Parameters of one simulation.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed everything is drawn from.
    pub seed: u64,
    /// The property that is checked.
    pub mode: Mode,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of executors.
    pub executors: usize,
    /// Every node is its own executor: handlers run in the same process and die with it.
    pub embedded: bool,
    /// The database has session locks, through which nodes notice immediately that another one has died.
    pub lifelines: bool,
    /// End of the faults; for [`Mode::Liveness`], the time at which all but one of each kind breaks for good.
    pub faults_until: Ms,
    /// Probabilities of faults.
    pub levels: Levels,
    /// Number of jobs.
    pub jobs: usize,
    /// How executors register, if nodes find and call them with the centre's own code.
    pub registering: Option<Registering>,
    /// A Java admin works on the same database.
    pub java: bool,
    /// Time at which jobs are started and faults begin.
    pub begins: Ms,
    /// Time the database takes per written row. Zero, unless its limit is tested.
    pub row_cost: Duration,
    /// How executors respond to requests to end a run.
    pub kills: Kills,
}

/// How executors respond to requests to end a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kills {
    /// They end it.
    Obeyed,
    /// They refuse, and the run goes on.
    Refused,
    /// They never respond, and the run goes on.
    Unanswered,
}

/// The property that a simulation checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Under any faults nothing wrong happens; and after all faults have ended, everything is caught up.
    Safety,
    /// With one node, one executor and the database working, and all others broken for good, work goes on.
    Liveness,
}

/// Probabilities of faults. A seed enables some kinds and leaves others off, so that faults that would hide each
/// other occur separately.
#[derive(Clone, Copy, Debug, Default)]
pub struct Levels {
    /// A store call fails without effect.
    pub store_error: f64,
    /// A commit is lost: half of them took effect.
    pub commit_unknown: f64,
    /// A store call takes 200 ms to 3 s.
    pub store_slow: f64,
    /// The node crashes right after a commit.
    pub crash_after_commit: f64,
    /// Usual maximum duration of a store call, in milliseconds.
    pub latency: i64,
    /// A node crashes, is paused, stopped or cut off; average number in ten seconds.
    pub node: f64,
    /// The database is unavailable for all nodes; average number in ten seconds.
    pub outage: f64,
    /// A wall clock goes wrong; average number in ten seconds.
    pub skew: f64,
    /// An executor crashes; average number in ten seconds.
    pub executor: f64,
    /// A request is lost.
    pub request_lost: f64,
    /// A response is lost.
    pub answer_lost: f64,
    /// A request, response or report is up to 400 ms late.
    pub late: f64,
    /// An executor rejects a run.
    pub refused: f64,
    /// A report, or its acknowledgement, is lost.
    pub report_lost: f64,
    /// A report is sent again although it was acknowledged.
    pub report_repeated: f64,
    /// A probe is not answered.
    pub probe_silent: f64,
    /// An alert cannot be delivered.
    pub alarm_fails: f64,
}

impl Plan {
    /// Draws the parameters from the seed.
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed, "plan", 0);
        let mode = if dice.chance(0.2) { Mode::Liveness } else { Mode::Safety };
        let nodes = dice.pick(&[2, 2, 3, 3, 4]);
        let embedded = Dice::new(seed, "embedded", 0).chance(0.2);
        let lifelines = Dice::new(seed, "lifelines", 0).chance(0.6);
        let executors = dice.number(2, 4) as usize;
        let executors = if embedded { nodes } else { executors };
        let registering = Registering::draw(seed).filter(|_| !embedded);
        let alone = registering.as_ref().is_some_and(|plan| plan.alone);
        let executors = if alone { 1 } else { executors };
        let begins = START + registering.as_ref().map_or(0, |plan| plan.rest.as_millis() as Ms);
        let faults_until = begins + dice.number(25, 50) * 1000;
        let jobs = dice.number(8, 16) as usize;
        let mut levels = Levels::draw(&mut dice);
        if registering.as_ref().is_some_and(|plan| plan.herd) {
            levels.executor = levels.executor.max(0.7);
        }
        let row_cost = Duration::ZERO;
        let java = !embedded && registering.is_none() && Dice::new(seed, "java", 0).chance(0.4);
        Plan {
            seed,
            mode,
            nodes,
            executors,
            embedded,
            lifelines,
            faults_until,
            levels,
            jobs,
            registering,
            java,
            begins,
            row_cost,
            kills: if Dice::new(seed, "kills", 0).chance(0.2) { Kills::Refused } else { Kills::Obeyed },
        }
    }

    /// A cluster without random faults; the caller creates the jobs.
    pub fn calm(seed: u64, nodes: usize) -> Self {
        let levels = Levels { latency: 2, ..Levels::default() };
        Plan {
            mode: Mode::Safety,
            nodes,
            executors: 3,
            embedded: false,
            faults_until: START,
            levels,
            jobs: 0,
            registering: None,
            java: false,
            begins: START,
            kills: Kills::Obeyed,
            ..Plan::new(seed)
        }
    }
}

impl Levels {
    fn draw(dice: &mut Dice) -> Levels {
        let mut some = |most: f64| {
            let on = dice.chance(0.5);
            let much = dice.number(1, 100) as f64 / 100.0;
            if on { much * much * most } else { 0.0 }
        };
        Levels {
            store_error: some(0.05),
            commit_unknown: some(0.05),
            store_slow: some(0.02),
            crash_after_commit: some(0.004),
            latency: some(40.0) as i64 + 1,
            node: some(2.0),
            outage: some(0.7),
            skew: some(1.5),
            executor: some(1.0),
            request_lost: some(0.1),
            answer_lost: some(0.1),
            late: some(0.3),
            refused: some(0.1),
            report_lost: some(0.3),
            report_repeated: some(0.3),
            probe_silent: some(0.3),
            alarm_fails: some(0.5),
        }
    }
}

/// Handlers of the simulated jobs.
pub mod handlers {
    /// Succeeds quickly.
    pub const QUICK: &str = "quick";
    /// Fails every other time.
    pub const FLAKY: &str = "flaky";
    /// Always fails.
    pub const FAILS: &str = "fails";
    /// Takes seconds.
    pub const LONG: &str = "long";
    /// Does not end by itself.
    pub const NEVER: &str = "never";
    /// Takes longer than its timeout and the time after which the centre ends it, and succeeds.
    pub const OVERDUE: &str = "overdue";
    /// How long it takes.
    pub const OVERDUE_TAKES: std::time::Duration = std::time::Duration::from_secs(75);
}

/// Routing strategies of the simulated jobs.
pub mod routes {
    use engine::policy::Route;

    /// The first executor.
    pub const FIRST: Route = Route::First;
    /// Consistent hash of the job.
    pub const HASH: Route = Route::ConsistentHash;
    /// Chosen when the run is sent.
    pub const AT_SEND: Route = Route::Failover;
    /// All executors.
    pub const BROADCAST: Route = Route::Broadcast;
}

/// A planned job: its definition, and the indexes of its child jobs.
#[derive(Clone, Debug)]
pub struct PlannedJob {
    /// Its definition, without children.
    pub spec: JobSpec,
    /// Indexes of its children.
    pub children: Vec<usize>,
}

/// The jobs of a simulation.
pub fn jobs(plan: &Plan, app: AppId) -> Vec<PlannedJob> {
    let mut dice = Dice::new(plan.seed, "jobs", 0);
    let mut jobs: Vec<PlannedJob> = (0..plan.jobs)
        .map(|number| PlannedJob { spec: spec(&mut dice, app, number), children: Vec::new() })
        .collect();
    if plan.registering.as_ref().is_some_and(|plan| plan.herd) {
        for job in &mut jobs[..HERD] {
            let cron = Cron::parse("0/2 * * * * ?").expect("the expression is right");
            job.spec.schedule = Schedule::cron(cron, Zone::utc(), DstRule::QUARTZ);
        }
    }
    // Chains, and sometimes a cycle, among the last jobs, which have no schedule of their own.
    let first_child = plan.jobs - CHILDREN;
    for number in first_child..plan.jobs {
        let spec = &mut jobs[number].spec;
        spec.schedule = Schedule::Never;
        // Many shards with children each, sixteen levels deep, would be too many runs.
        spec.route = routes::HASH.into();
        // A cycle of long runs would outlast the simulation.
        if spec.handler == handlers::NEVER || spec.handler == handlers::LONG {
            spec.handler = handlers::QUICK.into();
        }
    }
    for job in &mut jobs[..first_child] {
        let fires_often = is_frequent(&job.spec.schedule);
        if !fires_often && dice.chance(0.4) {
            job.children.push(first_child + dice.number(0, CHILDREN as i64 - 1) as usize);
        }
    }
    for number in first_child..plan.jobs - 1 {
        if dice.chance(0.5) {
            jobs[number].children.push(number + 1);
        }
    }
    if dice.chance(0.3) {
        jobs[plan.jobs - 1].children.push(first_child);
    }
    jobs
}

/// Number of jobs that fire at the same time.
const HERD: usize = 4;

/// Number of jobs that only run after others.
const CHILDREN: usize = 3;

fn is_frequent(schedule: &Schedule) -> bool {
    matches!(schedule, Schedule::FixedRate { period, .. } if *period < Duration::from_secs(2))
}

fn spec(dice: &mut Dice, app: AppId, number: usize) -> JobSpec {
    let handler = dice.pick(&[
        handlers::QUICK,
        handlers::QUICK,
        handlers::QUICK,
        handlers::FLAKY,
        handlers::FLAKY,
        handlers::FAILS,
        handlers::LONG,
        handlers::NEVER,
    ]);
    let mut spec = JobSpec::new(app, format!("job {number}"), schedule(dice), handler);
    let frequent = is_frequent(&spec.schedule);
    if frequent && handler == handlers::NEVER {
        spec.handler = handlers::QUICK.into();
    }
    spec.route = dice.pick(&[routes::FIRST, routes::HASH, routes::HASH, routes::AT_SEND]).into();
    if !frequent && dice.chance(0.2) {
        spec.route = routes::BROADCAST.into();
    }
    spec.misfire = match dice.number(0, 2) {
        0 => Misfire::Skip,
        1 => Misfire::FireOnce,
        _ => Misfire::FireAll { window: dice.millis(8_000, 30_000), max: dice.number(2, 8) as u32 },
    };
    spec.delivery =
        dice.pick(&[Delivery::AtMostOnce, Delivery::Probe, Delivery::Probe, Delivery::AtLeastOnce]);
    spec.overlap = dice.pick(&[
        Overlap::Allow,
        Overlap::Allow,
        Overlap::Allow,
        Overlap::Skip,
        Overlap::Wait,
        Overlap::Replace,
    ]);
    if dice.chance(0.5) {
        spec.retry.count = dice.number(1, 3) as u32;
        spec.retry.backoff = if dice.chance(0.5) {
            Backoff::Fixed { delay: dice.millis(0, 2_000) }
        } else {
            Backoff::Exponential { first: dice.millis(100, 1_000), max: dice.millis(1_000, 3_000) }
        };
    } else {
        spec.retry = Retry::NONE;
    }
    if dice.chance(0.2) {
        spec.jitter = dice.millis(1, 900);
    }
    if dice.chance(0.4) {
        spec.timeout = Some(Duration::from_secs(dice.number(1, 8) as u64));
    }
    spec.alert = dice.chance(0.4);
    spec.children_mode = dice.pick(&[ChildrenMode::Once, ChildrenMode::Each]);
    spec
}

/// A random schedule of the important kinds: several times per second, every second, rarely, fixed delay, once.
pub fn schedule(dice: &mut Dice) -> Schedule {
    let cron = |expr: &str| {
        Schedule::cron(Cron::parse(expr).expect("the expression is right"), Zone::utc(), DstRule::QUARTZ)
    };
    let anchor = Timestamp::from_millis(START + dice.number(-5_000, 5_000));
    let rate = |period| Schedule::fixed_rate(anchor, period).expect("whole milliseconds");
    match dice.number(0, 11) {
        0 => rate(dice.millis(350, 950)),
        1 => rate(Duration::from_secs(1)),
        2..=4 => rate(dice.millis(2_000, 7_000)),
        5 => cron("* * * * * ?"),
        6 | 7 => cron("0/5 * * * * ?"),
        8 => cron("30 * * * * ?"),
        9 => Schedule::once(Timestamp::from_millis(START + dice.number(4_000, 30_000))),
        _ => Schedule::fixed_delay(dice.millis(500, 4_000)).expect("whole milliseconds"),
    }
}
