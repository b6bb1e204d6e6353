//! Executors that register with one node, and nodes that find and call them with the centre's own code.
//!
//! In these seeds a node uses the server's directory, registrar, dispatch and circuit breakers; only the layer below a
//! call (network and HTTP) is simulated. Each executor registers with one node and sends its heartbeats there; the
//! other nodes must read the registration from the database.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use engine::policy::Route;
use engine::{
    AppId, Bugs, Dispatch, Job, KillAnswer, Order, Origin, Probe, Receipt, Run, RunId, Sabotage, StoreError,
};
use protocol::v1::TroubleCode;
use protocol::xxl::{LogPage, TriggerRequest, texts};
use server::executors::{Directory, Key, Registrar, Tokens};
use server::outbound::{Address, BreakerState, CallError, Callee, Calls, Circuit, Sent, Shut};
use server::{Hints, HttpDispatch};
use store::{App, Beat, NewToken, Noted, Registered, Registration, Registry, StoredSecret, Token};
use timer::Timestamp;
use tokio::time::Instant;

use super::clock::{Ms, SimClock};
use super::dice::Dice;
use super::evidence::{Attempt, Facts, Passage};
use super::executor::{Executors, Presence, Reaction, Task};
use super::faulty::{Faulty, nothing};
use super::network::{PROBE_MAX, Wire};
use super::node::{Answer, Request, RequestQueues};
use super::plan::Kills;
use super::world::World;

/// App of all executors.
pub const APP: &str = "app";

/// How executors register. Drawn separately, so that seeds without registration stay unchanged.
#[derive(Clone, Debug)]
pub struct Registering {
    /// Idle time before jobs are started and faults begin. Longer than an executor may be silent, so that rows and
    /// the nodes' copies of them become stale.
    pub rest: Duration,
    /// There is a single executor for all jobs, so that everything depends on it.
    pub alone: bool,
    /// The first jobs fire at the same time and executors crash often, so that many runs meet an executor that has
    /// just restarted.
    pub herd: bool,
    /// Interval of registrations.
    pub beat_every: Duration,
    /// How long the last executor is away, and how long before the end of the idle time it leaves.
    pub away: Option<(Duration, Duration)>,
}

impl Registering {
    /// Draws from the seed; `None` if executors do not register.
    pub fn draw(seed: u64) -> Option<Registering> {
        let mut dice = Dice::new(seed, "registering", 0);
        let registers = dice.chance(0.5);
        let rests = dice.chance(0.5);
        let rest = if rests { dice.millis(100_000, 130_000) } else { dice.millis(0, 3_000) };
        let beat_every = dice.pick(&[Duration::from_secs(30), Duration::from_secs(80)]);
        // From slightly shorter to slightly longer than the time until its row is deleted.
        let (away, before) = (dice.millis(80_000, 125_000), dice.millis(60_000, 95_000));
        let goes = dice.chance(0.5) && rests;
        let (alone, herd) = (dice.chance(0.6), dice.chance(0.5));
        let away = goes.then_some((away, before));
        registers.then_some(Registering { rest, alone, herd, beat_every, away })
    }
}

/// Registers an executor with its node periodically, and with the next node if that does not answer.
pub async fn register(
    world: Arc<World>,
    executors: Arc<Executors>,
    queues: Arc<RequestQueues>,
    index: usize,
) {
    let Some(plan) = &world.plan.registering else { return };
    let mut dice = Dice::new(world.plan.seed, "registering at", index);
    let home = dice.number(0, queues.nodes() as i64 - 1) as usize;
    loop {
        if let Some(incarnation) = executors.incarnation(index) {
            for step in 0..queues.nodes() {
                let node = (home + step) % queues.nodes();
                let asked = queues.ask(node, Request::Register(index));
                let answer = tokio::time::timeout(REGISTER_MAX, asked).await;
                if let Ok(Some(Ok(Answer::Registered))) = answer {
                    world.note(|| format!("e{index} is registered at n{node}"));
                    executors.registered(index, incarnation, node);
                    break;
                }
            }
        }
        tokio::select! {
            biased;
            () = executors.restarted(index) => {}
            () = world.sleep(plan.beat_every) => {}
        }
    }
}

/// Timeout of a registration.
const REGISTER_MAX: Duration = Duration::from_secs(3);

/// Takes the last executor away during the idle time, if the plan contains it.
pub async fn leave_for_a_while(world: Arc<World>, executors: Arc<Executors>) {
    let Some(plan) = &world.plan.registering else { return };
    let Some((away, before)) = plan.away else { return };
    let index = world.plan.executors - 1;
    world.sleep(plan.rest.saturating_sub(before)).await;
    executors.crash(index);
    world.sleep(away).await;
    executors.restart(index);
}

/// A node's view of executors, and the connection to them.
pub struct Lines {
    /// The executors to which runs can be sent.
    pub directory: Arc<Directory>,
    /// Keeps the directory in sync with the database.
    pub registrar: Arc<Registrar>,
    /// Sends runs.
    pub dispatch: Arc<ObservedDispatch>,
}

impl Lines {
    /// For one incarnation of a node.
    pub fn new(wire: Arc<Wire>, clock: &SimClock, registry: Arc<dyn Registry>, bugs: Bugs) -> Lines {
        let clock = Arc::new(clock.clone());
        let tokens = Arc::new(Tokens::new(None, true));
        let directory = Arc::new(Directory::new(tokens.clone()));
        let calls = Arc::new(ModelCalls {
            wire: wire.clone(),
            circuits: Mutex::default(),
            beat_lost: 0.into(),
            bugs,
        });
        let registrar = Arc::new(Registrar::new(
            clock.clone(),
            registry,
            directory.clone(),
            tokens,
            Key::generate(),
            calls.clone(),
            Arc::new(Hints::new()),
        ));
        let inner = HttpDispatch {
            clock,
            directory: directory.clone(),
            registrar: registrar.clone(),
            calls: calls.clone(),
            scripts: false,
        };
        let observed = ObservedDispatch { inner, wire, calls, directory: directory.clone() };
        Lines { directory, registrar, dispatch: Arc::new(observed) }
    }
}

/// The registration of an executor.
pub fn registration(executor: usize) -> Registration {
    Registration { app: APP.into(), address: Executors::address(executor) }
}

/// The node's dispatch, observed: records when it sends nothing although an executor is available.
pub struct ObservedDispatch {
    inner: HttpDispatch,
    wire: Arc<Wire>,
    calls: Arc<ModelCalls>,
    directory: Arc<Directory>,
}

#[async_trait]
impl Dispatch for ObservedDispatch {
    async fn send(&self, order: &Order, within: Duration) -> Receipt {
        let begun = self.wire.world.now();
        let before = self.wire.attempts_of(order.run.id);
        let receipt = self.inner.send(order, within).await;
        if self.wire.attempts_of(order.run.id) == before && !matches!(receipt, Receipt::Accepted { .. }) {
            self.withheld(order, begun, within, &receipt);
        }
        receipt
    }

    async fn probe(&self, run: &Run, job: Option<&Job>) -> Probe {
        let probe = self.inner.probe(run, job).await;
        let world = &self.wire.world;
        if matches!(probe, Probe::Silent | Probe::Dead) {
            world.evidence().spoilt.insert(run.id);
        }
        world.note(|| format!("n{} asks {:?} about {}: {probe:?}", self.wire.node, run.address, run.id));
        probe
    }

    async fn kill(&self, run: &Run, job: Option<&Job>) -> KillAnswer {
        self.wire.world.note(|| format!("n{} kills {}", self.wire.node, run.id));
        self.inner.kill(run, job).await
    }
}

impl ObservedDispatch {
    /// No request was sent. Allowed if no executor had to be known and reachable.
    fn withheld(&self, order: &Order, begun: Ms, within: Duration, receipt: &Receipt) {
        let (world, executors) = (&self.wire.world, &self.wire.executors);
        let now = world.now();
        let knows_any = !self.directory.sightings(AppId(order.job.spec.app.0)).is_empty();
        let address = order.run.address.as_deref();
        // These runs are bound to their executor, also the shard of a broadcast to only one.
        let is_broadcast = order.job.spec.route == Route::Broadcast;
        let is_bound = is_broadcast || matches!(order.run.origin, Origin::Manual { .. });
        let own = address.and_then(Executors::index).filter(|_| is_bound);
        let expected = |index: usize| {
            let Some(presence) = executors.registration(index) else { return false };
            let Presence { since, node, beats } = presence;
            let within = match knows_any {
                true if node == self.wire.node => REACHED_WITHIN_AT_HOME,
                true => REACHED_WITHIN,
                false => KNOWN_WITHIN,
            };
            // The heartbeat of a known address is stored after it was acknowledged, also that of a restarted executor.
            let is_stored =
                |(at, by): &&(Ms, usize)| !world.evidence().is_troubled(*by, *at, at + STORED_WITHIN, false);
            let Some((seen_at, _)) = beats.iter().rev().find(is_stored) else { return false };
            let is_silent = now - seen_at >= SILENT_MAX;
            begun - since >= within && !is_silent && !self.wire.disturbed_since(index, since)
        };
        let anybody = match own {
            Some(index) => expected(index),
            None => (0..world.plan.executors).any(expected),
        };
        // An unknown executor has to be read from the database; a known one does not.
        let is_troubled = world.evidence().is_troubled(self.wire.node, now - REACHED_WITHIN, now, knows_any);
        // The lease ended before the request could leave.
        let is_out_of_time = now - begun >= within.as_millis() as Ms;
        let excused = !anybody
            || is_troubled
            || is_out_of_time
            || self.calls.beat_lost.load(Ordering::Relaxed) >= begun;
        world.note(|| {
            let node = self.wire.node;
            format!("n{node} does not send {} (excused: {excused}): {receipt:?}", order.run.id)
        });
        let passage = match receipt {
            _ if !excused => Passage::Withheld,
            Receipt::Deferred { .. } => Passage::Deferred,
            _ => Passage::Nobody,
        };
        let (node, run) = (self.wire.node, Facts::from(&order.run));
        world.evidence().attempts.push(Attempt { at: begun, node, answered: Some(now), run, passage });
        if !excused {
            let (run, node) = (order.run.id, self.wire.node);
            world.broken(
                "I1",
                format!("run {run} is not sent by n{node}, though somebody is there: {receipt:?}"),
            );
        }
    }
}

/// Every node knows an executor this long after its registration was acknowledged, plus some time to read it.
const KNOWN_WITHIN: Ms = 1_500;

/// A heartbeat of a known executor is stored this long after it was acknowledged, plus some time to write it.
const STORED_WITHIN: Ms = 1_500;

/// An executor that has been silent for this long is dropped.
const SILENT_MAX: Ms = 90_000;

/// An executor that is back is called again this long after it has registered: nodes probe every second, and wait
/// for the responses of those that are still gone.
const REACHED_WITHIN: Ms = 2_000;

/// The node with which it registers does not need to probe.
const REACHED_WITHIN_AT_HOME: Ms = 100;

/// Calls over the simulated network, behind the centre's own circuit breakers.
struct ModelCalls {
    wire: Arc<Wire>,
    circuits: Mutex<BTreeMap<String, Arc<Circuit>>>,
    /// Time of the last lost probe of an executor that was up.
    beat_lost: AtomicI64,
    bugs: Bugs,
}

/// A call without a response.
struct Unanswered {
    may_have_arrived: bool,
}

impl ModelCalls {
    fn circuit(&self, address: &Address) -> Arc<Circuit> {
        let mut circuits = self.circuits.lock().unwrap_or_else(PoisonError::into_inner);
        circuits.entry(address.as_str().to_owned()).or_default().clone()
    }

    /// The executor is there: it is called again.
    fn close(&self, address: &Address) {
        if !self.bugs.has(Sabotage::CircuitStaysOpen) {
            self.circuit(address).close();
        }
    }

    async fn exchange(
        &self,
        to: usize,
        request: &TriggerRequest,
        by: Instant,
    ) -> Result<Reaction, Unanswered> {
        // As the server's connections do: the circuit breaker may have held the request back until now.
        if Instant::now() >= by {
            return Err(Unanswered { may_have_arrived: false });
        }
        let run = RunId(request.log_id);
        let facts = self.wire.world.evidence().facts(run).cloned();
        let Some(facts) = facts else { return Err(Unanswered { may_have_arrived: false }) };
        let number = self.wire.leave_as(&facts);
        let seconds = u64::try_from(request.executor_timeout).unwrap_or_default();
        let timeout = (seconds > 0).then(|| Duration::from_secs(seconds));
        let task = Task { facts, handler: request.executor_handler.clone(), timeout };
        match self.wire.carry(number, to, task).await {
            Some(Reaction::Closed) => Err(Unanswered { may_have_arrived: false }),
            Some(reaction) => Ok(reaction),
            None => Err(Unanswered { may_have_arrived: true }),
        }
    }

    /// Any other call: an executor that is up responds, unless the network loses the call.
    async fn aside<T>(&self, to: &Callee, ask: impl FnOnce(usize) -> T) -> Result<T, CallError> {
        let world = &self.wire.world;
        let index = Executors::index(to.address.as_str()).ok_or_else(|| unreachable_at(&to.address))?;
        let (lost, connects, takes) = self.wire.chances_of_a_question();
        if self.wire.executors.is_down(index) {
            world.sleep(if connects { takes } else { PROBE_MAX }).await;
            return Err(unreachable_at(&to.address));
        }
        if lost {
            self.beat_lost.store(world.now() + PROBE_MAX.as_millis() as Ms, Ordering::Relaxed);
            world.sleep(PROBE_MAX).await;
            let reason = format!("{} did not answer", to.address);
            return Err(CallError::Unknown { code: TroubleCode::NoAnswer, reason });
        }
        world.sleep(takes).await;
        let answer = ask(index);
        self.close(&to.address);
        Ok(answer)
    }
}

fn unreachable_at(address: &Address) -> CallError {
    let reason = format!("{address} refuses connections");
    CallError::Unreachable { code: TroubleCode::ConnectRefused, reason }
}

fn shut(address: &Address) -> Sent {
    Sent::Deferred { code: TroubleCode::Suspended, reason: format!("{address} is not called") }
}

#[async_trait]
impl Calls for ModelCalls {
    async fn run(&self, to: &Callee, request: &TriggerRequest, _attempt: u32, within: Duration) -> Sent {
        let circuit = self.circuit(&to.address);
        if circuit.state() == BreakerState::Open {
            return shut(&to.address);
        }
        let Some(index) = Executors::index(to.address.as_str()).filter(|_| !within.is_zero()) else {
            return unreachable_at(&to.address).into();
        };
        // A refused connection and a missing response both count against the address.
        let by = Instant::now() + within;
        match circuit.call(by, self.exchange(index, request, by), |_| true).await {
            Err(Shut) => shut(&to.address),
            Ok(Ok(Reaction::Accepted)) => Sent::Accepted,
            Ok(Ok(_)) => Sent::Refused { reason: "simulated refusal".into() },
            Ok(Err(Unanswered { may_have_arrived: true })) => {
                Sent::Unknown { reason: "simulated silence".into() }
            }
            Ok(Err(_)) => unreachable_at(&to.address).into(),
        }
    }

    async fn beat(&self, to: &Callee) -> Result<(), CallError> {
        self.aside(to, drop).await
    }

    async fn idle_beat(&self, to: &Callee, job: i64) -> Result<(), CallError> {
        let is_idle = self.aside(to, |index| !self.wire.executors.runs_job(index, job)).await?;
        let busy = || CallError::Refused { code: TroubleCode::Refused, reason: "busy".into() };
        is_idle.then_some(()).ok_or_else(busy)
    }

    async fn kill(&self, to: &Callee, job: i64) -> Result<String, CallError> {
        if self.wire.world.plan.kills == Kills::Refused {
            self.aside(to, drop).await?;
            let reason = "simulated refusal".into();
            return Err(CallError::Refused { code: TroubleCode::Refused, reason });
        }
        self.aside(to, |index| self.wire.executors.kill_job(index, job)).await.map(|()| String::new())
    }

    async fn log(&self, to: &Callee, run: i64, _: i64, from_line: u32) -> Result<LogPage, CallError> {
        let has_log = self.aside(to, |index| self.wire.executors.has_log(index, RunId(run))).await?;
        let log_content = if has_log { String::new() } else { texts::NO_LOG_FILE.into() };
        let line = i32::try_from(from_line).unwrap_or(i32::MAX);
        Ok(LogPage { log_content, from_line_num: line, to_line_num: line - 1, ..LogPage::default() })
    }

    fn forget(&self, address: &Address) {
        self.close(address);
    }

    fn revive(&self, address: &Address) {
        self.close(address);
    }
}

/// The registry over the node's own connection to the database.
pub struct FaultyRegistry {
    /// The faulty connection.
    pub connection: Arc<Faulty>,
    /// The real registry.
    pub registry: Arc<dyn Registry>,
}

#[async_trait]
impl Registry for FaultyRegistry {
    async fn apps(&self) -> Result<Vec<App>, StoreError> {
        self.connection.call("apps", self.registry.apps(), nothing).await
    }

    async fn register(&self, beats: &[Beat], silent_max: Duration) -> Result<Vec<Noted>, StoreError> {
        self.connection.call("register", self.registry.register(beats, silent_max), nothing).await
    }

    async fn unregister(&self, app: &str, address: &str) -> Result<bool, StoreError> {
        self.connection.call("unregister", self.registry.unregister(app, address), nothing).await
    }

    async fn registrations(&self, seen_after: Timestamp) -> Result<Vec<Registered>, StoreError> {
        self.connection.call("registrations", self.registry.registrations(seen_after), nothing).await
    }

    async fn note_handlers(&self, executor: &Registration, handlers: &[String]) -> Result<bool, StoreError> {
        self.connection.call("note_handlers", self.registry.note_handlers(executor, handlers), nothing).await
    }

    async fn handlers(&self) -> Result<BTreeMap<Registration, Vec<String>>, StoreError> {
        self.connection.call("handlers", self.registry.handlers(), nothing).await
    }

    async fn forget_registrations(&self, before: Timestamp, max: usize) -> Result<usize, StoreError> {
        let forget = self.registry.forget_registrations(before, max);
        self.connection.call("forget_registrations", forget, nothing).await
    }

    async fn registry_revision(&self) -> Result<i64, StoreError> {
        self.connection.call("registry_revision", self.registry.registry_revision(), nothing).await
    }

    fn is_beside_java(&self) -> bool {
        self.registry.is_beside_java()
    }

    async fn registry_state(&self) -> Result<(i64, Timestamp), StoreError> {
        let (revision, now) =
            self.connection.call("registry_state", self.registry.registry_state(), nothing).await?;
        let is_blind = self.connection.bugs.has(Sabotage::BlindToRegistrations);
        Ok((if is_blind { 0 } else { revision }, now))
    }

    async fn publish_addresses(&self, lists: &[(AppId, Vec<String>)]) -> Result<usize, StoreError> {
        self.connection.call("publish_addresses", self.registry.publish_addresses(lists), nothing).await
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.connection.call("tokens", self.registry.tokens(), nothing).await
    }

    async fn secrets(&self) -> Result<Vec<StoredSecret>, StoreError> {
        self.connection.call("secrets", self.registry.secrets(), nothing).await
    }

    async fn add_token(&self, token: &NewToken) -> Result<i64, StoreError> {
        self.connection.call("add_token", self.registry.add_token(token), nothing).await
    }
}
