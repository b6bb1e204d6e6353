//! Executors that register at one node, and nodes that find and call them with the centre's own code.
//!
//! In these seeds a node has the server's own directory, keeper, dispatch and circuit breakers; only what lies below a
//! call, the network and HTTP, is a model. Each executor registers at one node and beats there; the other nodes must read
//! that from the database.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use engine::{AppId, Dispatch, Job, KillAnswer, Order, Origin, Probe, Receipt, Run, RunId, StoreError};
use protocol::v1::TroubleCode;
use protocol::xxl::{LogPage, TriggerRequest, texts};
use server::executors::{Directory, Keeper, Key, Tokens};
use server::outbound::{Address, BreakerState, CallError, Callee, Calls, Circuit, Sent, Shut};
use server::{Hints, HttpDispatch};
use store::{App, Beat, NewToken, Noted, Registered, Registration, Registry, Token};
use timer::Timestamp;
use tokio::time::Instant;

use super::clock::{Ms, SimClock};
use super::dice::Dice;
use super::evidence::{Attempt, Facts, Passage};
use super::executor::{Executors, Presence, Reaction, Task};
use super::faulty::{Faulty, nothing};
use super::network::{PROBE_MAX, Wire};
use super::node::{Answer, Post, Request};
use super::world::World;

/// The app of all executors.
pub const APP: &str = "app";

/// How executors register, if they do: drawn apart, so that seeds in which they do not stay as they were.
#[derive(Clone, Debug)]
pub struct Registering {
    /// How long everything rests before jobs are started and things break. Longer than an executor may be silent, so that
    /// rows and what nodes know of them grow old.
    pub rest: Duration,
    /// There is one executor for all jobs, so that everything depends on it.
    pub alone: bool,
    /// The first jobs fire at the same instants, and executors die often: a herd meets one that is just back.
    pub herd: bool,
    /// How often an executor registers again.
    pub beat_every: Duration,
    /// How long the last executor is away, and how long before the end of the rest it goes.
    pub away: Option<(Duration, Duration)>,
}

impl Registering {
    /// What the seed says.
    pub fn draw(seed: u64) -> Option<Registering> {
        let mut dice = Dice::new(seed, "registering", 0);
        let registers = dice.chance(0.5);
        let rests = dice.chance(0.5);
        let rest = if rests { dice.millis(100_000, 130_000) } else { dice.millis(0, 3_000) };
        let beat_every = dice.pick(&[Duration::from_secs(30), Duration::from_secs(80)]);
        // From a little shorter to a little longer than until its row is deleted.
        let (away, before) = (dice.millis(80_000, 125_000), dice.millis(60_000, 95_000));
        let goes = dice.chance(0.5) && rests;
        let (alone, herd) = (dice.chance(0.6), dice.chance(0.5));
        let away = goes.then_some((away, before));
        registers.then_some(Registering { rest, alone, herd, beat_every, away })
    }
}

/// Registers an executor at its node, again and again, and at the next one where that does not answer.
pub async fn register(world: Arc<World>, executors: Arc<Executors>, post: Arc<Post>, index: usize) {
    let Some(plan) = &world.plan.registering else { return };
    let mut dice = Dice::new(world.plan.seed, "registering at", index);
    let home = dice.number(0, post.nodes() as i64 - 1) as usize;
    loop {
        if let Some(incarnation) = executors.incarnation(index) {
            for step in 0..post.nodes() {
                let node = (home + step) % post.nodes();
                let asked = post.ask(node, Request::Register(index));
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

/// How long an executor waits for its registration to be acknowledged.
const REGISTER_MAX: Duration = Duration::from_secs(3);

/// Takes the last executor away while everything rests, if the seed wants that.
pub async fn leave_for_a_while(world: Arc<World>, executors: Arc<Executors>) {
    let Some(plan) = &world.plan.registering else { return };
    let Some((away, before)) = plan.away else { return };
    let index = world.plan.executors - 1;
    world.sleep(plan.rest.saturating_sub(before)).await;
    executors.crash(index);
    world.sleep(away).await;
    executors.restart(index);
}

/// What a node knows of executors, and how it reaches them.
pub struct Lines {
    /// Where runs can go.
    pub directory: Arc<Directory>,
    /// Keeps that in line with the database.
    pub keeper: Arc<Keeper>,
    /// Sends.
    pub dispatch: Arc<Witness>,
}

impl Lines {
    /// Those of one life of a node.
    pub fn new(name: &str, wire: Arc<Wire>, clock: &SimClock, registry: Arc<dyn Registry>) -> Lines {
        let clock = Arc::new(clock.clone());
        let tokens = Arc::new(Tokens::new(None, true));
        let directory = Arc::new(Directory::new(tokens.clone()));
        let calls =
            Arc::new(ModelCalls { wire: wire.clone(), circuits: Mutex::default(), beat_lost: 0.into() });
        let keeper = Arc::new(Keeper::new(
            clock.clone(),
            registry,
            directory.clone(),
            tokens,
            Key::generate(),
            calls.clone(),
            Arc::new(Hints::new()),
        ));
        let inner = HttpDispatch::alone(name, clock, directory.clone(), keeper.clone(), calls.clone());
        let witness = Witness { inner, wire, calls, directory: directory.clone() };
        Lines { directory, keeper, dispatch: Arc::new(witness) }
    }
}

/// The registration of an executor.
pub fn registration(executor: usize) -> Registration {
    Registration { app: APP.into(), address: Executors::address(executor) }
}

/// The node's dispatch, watched: that it sends nothing although somebody is there is taken down.
pub struct Witness {
    inner: HttpDispatch,
    wire: Arc<Wire>,
    calls: Arc<ModelCalls>,
    directory: Arc<Directory>,
}

#[async_trait]
impl Dispatch for Witness {
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

impl Witness {
    /// No request left. That is excused if no executor had to be known and reachable.
    fn withheld(&self, order: &Order, begun: Ms, within: Duration, receipt: &Receipt) {
        let (world, executors) = (&self.wire.world, &self.wire.executors);
        let now = world.now();
        let knows_any = !self.directory.sightings(AppId(order.job.spec.app.0)).is_empty();
        let (shards, address) = (order.run.shard.total, order.run.address.as_deref());
        // These stay with their executor.
        let is_bound = shards > 1 || matches!(order.run.origin, Origin::Manual { .. });
        let own = address.and_then(Executors::index).filter(|_| is_bound);
        let expected = |index: usize| {
            let Some(Presence { since, node, seen_at }) = executors.registration(index) else { return false };
            let within = match knows_any {
                true if node == self.wire.node => REACHED_WITHIN_AT_HOME,
                true => REACHED_WITHIN,
                false => KNOWN_WITHIN,
            };
            let is_silent = now - seen_at >= SILENT_MAX;
            begun - since >= within && !is_silent && !self.wire.disturbed_since(index, since)
        };
        let anybody = match own {
            Some(index) => expected(index),
            None => (0..world.plan.executors).any(expected),
        };
        // Whoever is not known has to be read from the database; whoever is has not.
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

/// An executor is known to every node so soon after its registration was acknowledged, and some time to read it.
const KNOWN_WITHIN: Ms = 1_500;

/// An executor that was not heard of for so long is given up.
const SILENT_MAX: Ms = 90_000;

/// One that is back is called again so soon after it has registered: nodes ask each second, and wait for the answers of
/// those that are still gone.
const REACHED_WITHIN: Ms = 2_000;

/// The node where it registers needs not ask.
const REACHED_WITHIN_AT_HOME: Ms = 100;

/// Calls over the model network, behind the centre's own circuit breakers.
struct ModelCalls {
    wire: Arc<Wire>,
    circuits: Mutex<BTreeMap<String, Arc<Circuit>>>,
    /// When a beat to an executor that was up last got lost.
    beat_lost: AtomicI64,
}

/// A call that ended without an answer.
struct Unanswered {
    may_have_arrived: bool,
}

impl ModelCalls {
    fn circuit(&self, address: &Address) -> Arc<Circuit> {
        let mut circuits = self.circuits.lock().unwrap_or_else(PoisonError::into_inner);
        circuits.entry(address.as_str().to_owned()).or_default().clone()
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

    /// Any other call: an executor that is up answers, unless the network loses it.
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
        self.circuit(&to.address).close();
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
        // Nobody there, or nobody answering: both speak against the address.
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
        self.aside(to, |index| self.wire.executors.kill_job(index, job)).await.map(|()| String::new())
    }

    async fn log(&self, to: &Callee, run: i64, _: i64, from_line: u32) -> Result<LogPage, CallError> {
        let has_log = self.aside(to, |index| self.wire.executors.has_log(index, RunId(run))).await?;
        let log_content = if has_log { String::new() } else { texts::NO_LOG_FILE.into() };
        let line = i32::try_from(from_line).unwrap_or(i32::MAX);
        Ok(LogPage { log_content, from_line_num: line, to_line_num: line - 1, ..LogPage::default() })
    }

    fn forget(&self, address: &Address) {
        self.circuit(address).close();
    }

    fn revive(&self, address: &Address) {
        self.circuit(address).close();
    }
}

/// The registry over the node's own connection to the database.
pub struct FaultyRegistry {
    /// That connection.
    pub connection: Arc<Faulty>,
    /// What it leads to.
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

    async fn registry_state(&self) -> Result<(i64, Timestamp), StoreError> {
        self.connection.call("registry_state", self.registry.registry_state(), nothing).await
    }

    async fn publish_addresses(&self, lists: &[(AppId, Vec<String>)]) -> Result<usize, StoreError> {
        self.connection.call("publish_addresses", self.registry.publish_addresses(lists), nothing).await
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.connection.call("tokens", self.registry.tokens(), nothing).await
    }

    async fn add_token(&self, token: &NewToken) -> Result<i64, StoreError> {
        self.connection.call("add_token", self.registry.add_token(token), nothing).await
    }
}
