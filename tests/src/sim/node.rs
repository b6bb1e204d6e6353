//! A node: an engine in a future that can be dropped (a crash) or not polled (a pause), and its request queue.
//!
//! A node does everything inside that future; executors, network and clients are separate machines and continue
//! without it.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use engine::Dispatch;
use engine::policy::Router;
use engine::{
    BackfillChange, BackfillId, Bugs, Change, Changed, Control, Engine, JobId, NewBackfill, Options, Outcome,
    Parts, RunId, Store, StoreError, Verdict,
};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use server::executors::Registrar;
use store::Registry;
use timer::Clock;
use tokio::sync::{mpsc, oneshot};

use super::alarms::Alarms;
use super::clock::{Ms, SimClock};
use super::dice::Dice;
use super::evidence::Operation;
use super::executor::Executors;
use super::faulty::Faulty;
use super::lines::{FaultyRegistry, Lines, registration};
use super::network::Wire;
use super::steps::Steps;
use super::world::World;

/// The machine of a node: restarts the node after a crash.
pub struct Host {
    /// Index of the node.
    pub index: usize,
    /// The simulation it belongs to.
    pub world: Arc<World>,
    /// The shared store.
    pub store: Arc<dyn Store>,
    /// The shared registry of executors.
    pub registry: Arc<dyn Registry>,
    /// The executors.
    pub executors: Arc<Executors>,
    /// Request queues of all nodes.
    pub queues: Arc<RequestQueues>,
    /// Injects faults into the node.
    pub gate: Arc<Gate>,
    /// Wall clock of the node.
    pub clock: SimClock,
    /// Deliberate bugs of its engine.
    pub bugs: Bugs,
}

impl Host {
    /// Runs one incarnation of the node after another, until it is broken for good.
    pub async fn run(self: Arc<Self>) {
        let mut dice = Dice::new(self.world.plan.seed, "host", self.index);
        let mut lives = 0;
        while !self.gate.lock().for_good {
            let name = if dice.chance(0.7) {
                format!("n{}", self.index)
            } else {
                format!("n{}-{lives}", self.index)
            };
            lives += 1;
            self.world.note(|| format!("n{} begins as {name}", self.index));
            if self.world.plan.embedded {
                self.executors.restart(self.index);
            }
            let how = self.live(name, lives).await;
            self.queues.close(self.index);
            if self.world.plan.embedded {
                self.executors.crash(self.index);
            }
            self.world.note(|| format!("n{} {how}", self.index));
            let down = self.world.begin_trouble(self.index);
            let long = dice.chance(0.2);
            let rest = if self.world.is_fair() {
                dice.millis(10, 100)
            } else {
                dice.millis(50, if long { 12_000 } else { 2_000 })
            };
            self.world.sleep(rest).await;
            if !self.gate.lock().for_good {
                self.world.end_trouble(down);
            }
        }
    }

    async fn live(&self, name: String, life: usize) -> &'static str {
        let seed = self.world.plan.seed;
        let dice = |concern| Mutex::new(Dice::new(seed, concern, self.index * 1000 + life));
        let wire = Arc::new(Wire {
            disturbed: Mutex::default(),
            node: self.index,
            name: name.clone(),
            world: self.world.clone(),
            executors: self.executors.clone(),
            dice: dice("wire"),
        });
        let store = Arc::new(Faulty {
            node: self.index,
            world: self.world.clone(),
            store: self.store.clone(),
            gate: self.gate.clone(),
            clock: self.clock.clone(),
            dice: dice("store"),
            lifeline: Mutex::default(),
            has_swept: AtomicBool::new(false),
            bugs: self.bugs,
        });
        let lines = self.world.plan.registering.as_ref().map(|_| {
            let registry = FaultyRegistry { connection: store.clone(), registry: self.registry.clone() };
            Lines::new(wire.clone(), &self.clock, Arc::new(registry), self.bugs)
        });
        let (router, dispatch): (Arc<dyn Router>, Arc<dyn Dispatch>) = match &lines {
            Some(lines) => (lines.directory.clone(), lines.dispatch.clone()),
            None => (wire.clone(), wire),
        };
        let engine = Engine::new(Parts {
            name,
            clock: Arc::new(self.clock.clone()),
            store,
            router,
            dispatch,
            alarms: Arc::new(Alarms { world: self.world.clone(), dice: dice("alarms") }),
            telemetry: Arc::new(Steps::new(self.index, self.world.clone())),
            // So few rows per step that stopping most jobs, and changing many, takes several steps.
            options: Options { bugs: self.bugs, step_max: 2, changes_max: 3, ..Options::default() },
        });
        let registrar = lines.map(|lines| lines.registrar);
        let stop = self.gate.begin(self.world.now());
        let requests = self.queues.open(self.index);
        let work = async {
            let stopped = async { _ = stop.await };
            let keep = async {
                match &registrar {
                    Some(registrar) => registrar.run(engine.registry_states()).await,
                    None => std::future::pending().await,
                }
            };
            if let Some(registrar) = &registrar {
                // A node does not serve requests before it has loaded the executors.
                while registrar.load().await.is_err() {
                    self.clock.sleep(LOAD_AGAIN).await;
                }
            }
            tokio::select! {
                biased;
                () = engine.run(stopped) => {}
                () = serve(&engine, registrar.as_deref(), requests) => {}
                () = keep => {}
            }
        };
        let finished =
            Pausable { gate: self.gate.clone(), work: Box::pin(tokio::task::unconstrained(work)) }.await;
        if !finished {
            return "has died";
        }
        let at = self.world.now();
        self.world.evidence().stopped.push((self.index, at));
        "has stopped"
    }
}

/// Pause after loading the executors failed.
const LOAD_AGAIN: Duration = Duration::from_millis(200);

/// Answers requests concurrently.
async fn serve(
    engine: &Engine,
    registrar: Option<&Registrar>,
    mut requests: mpsc::UnboundedReceiver<PendingRequest>,
) {
    let mut open = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(pending) = requests.recv() => open.push(answer(engine, registrar, pending)),
            Some(()) = open.next(), if !open.is_empty() => {}
            else => std::future::pending().await,
        }
    }
}

/// Answers a request; cancelled if the client no longer waits, as with a closed connection.
async fn answer(engine: &Engine, registrar: Option<&Registrar>, pending: PendingRequest) {
    let PendingRequest { request, mut reply } = pending;
    let result = tokio::select! {
        biased;
        () = reply.closed() => return,
        result = obey(engine, registrar, request) => result,
    };
    // The client no longer waits.
    let _ = reply.send(result);
}

async fn obey(
    engine: &Engine,
    registrar: Option<&Registrar>,
    request: Request,
) -> Result<Answer, StoreError> {
    match request {
        Request::Register(executor) => match registrar {
            Some(registrar) => match registrar.register(registration(executor), None).await {
                Ok(()) => Ok(Answer::Registered),
                Err(error) => Err(match error.store_error() {
                    Some(error) => error.clone(),
                    None => StoreError::Invalid(error.to_string()),
                }),
            },
            None => Err(StoreError::Invalid("no executor registers in this simulation".into())),
        },
        Request::Report(run, outcome) => engine.report(run, outcome).await.map(Answer::Verdict),
        Request::Operation(job, operation) => match operation {
            Operation::Start => engine.start(job).await.map(Answer::Changed),
            Operation::Stop => engine.stop(job).await.map(Answer::Changed),
            Operation::Edit(spec) => engine.edit(job, *spec, None).await.map(Answer::Changed),
            Operation::Delete => engine.delete(job).await.map(Answer::Changed),
            Operation::Trigger(key) => engine.trigger(job, key, None).await.map(Answer::Run),
        },
        Request::Batch(batch, atomic) => {
            let change = |(job, operation)| Some(Change::Control(job, control(operation)?));
            let changes: Vec<Change> = batch.into_iter().filter_map(change).collect();
            Ok(Answer::Batch(engine.change(&changes, atomic).await))
        }
        Request::StartBackfill(job, new) => engine.start_backfill(job, &new).await.map(Answer::Backfill),
        Request::ChangeBackfill(id, change) => {
            engine.change_backfill(id, change).await.map(|changed| Answer::Backfill(changed.id))
        }
    }
}

/// The operation as a change of a batch; `None` for a trigger.
fn control(operation: Operation) -> Option<Control> {
    match operation {
        Operation::Start => Some(Control::Start),
        Operation::Stop => Some(Control::Stop),
        Operation::Edit(spec) => Some(Control::Edit { spec, revision: None }),
        Operation::Delete => Some(Control::Delete),
        Operation::Trigger(_) => None,
    }
}

/// A request to a node.
pub enum Request {
    /// A report of an executor.
    Report(RunId, Outcome),
    /// A registration of the executor with this index.
    Register(usize),
    /// An operation of a client.
    Operation(JobId, Operation),
    /// Operations of a client on many jobs, all or none of them if the flag is set.
    Batch(Vec<(JobId, Operation)>, bool),
    /// A backfill that a client starts.
    StartBackfill(JobId, Box<NewBackfill>),
    /// A change of a backfill by a client.
    ChangeBackfill(BackfillId, BackfillChange),
}

/// Response of a node.
pub enum Answer {
    /// To a report.
    Verdict(Verdict),
    /// To a registration.
    Registered,
    /// To a change of a job.
    Changed(Changed),
    /// To changes of many jobs.
    Batch(Vec<Result<Changed, StoreError>>),
    /// To a trigger.
    Run(RunId),
    /// To a request about a backfill.
    Backfill(BackfillId),
}

/// A request in transit to a node.
pub struct PendingRequest {
    request: Request,
    reply: oneshot::Sender<Result<Answer, StoreError>>,
}

/// The request queues of all nodes.
pub struct RequestQueues {
    senders: Vec<Mutex<Option<mpsc::UnboundedSender<PendingRequest>>>>,
}

impl RequestQueues {
    /// Queues for this many nodes, none of them running.
    pub fn new(nodes: usize) -> Self {
        RequestQueues { senders: (0..nodes).map(|_| Mutex::default()).collect() }
    }

    /// Number of nodes, running or not.
    pub fn nodes(&self) -> usize {
        self.senders.len()
    }

    /// Sends a request to a node. `None` if it is down, or crashed meanwhile; then the effect is unknown.
    pub async fn ask(&self, node: usize, request: Request) -> Option<Result<Answer, StoreError>> {
        let (reply, answer) = oneshot::channel();
        let open = self.lock(node).clone()?;
        open.send(PendingRequest { request, reply }).ok()?;
        answer.await.ok()
    }

    fn open(&self, node: usize) -> mpsc::UnboundedReceiver<PendingRequest> {
        let (sender, requests) = mpsc::unbounded_channel();
        *self.lock(node) = Some(sender);
        requests
    }

    fn close(&self, node: usize) {
        *self.lock(node) = None;
    }

    fn lock(&self, node: usize) -> MutexGuard<'_, Option<mpsc::UnboundedSender<PendingRequest>>> {
        self.senders[node].lock().expect("no holder of this lock panics")
    }
}

/// Faults of a node, injected by the nemesis or by its connection to the database.
#[derive(Default)]
pub struct Gate {
    state: Mutex<GateState>,
}

#[derive(Default)]
struct GateState {
    crashed: bool,
    paused: bool,
    cut: bool,
    for_good: bool,
    since: Ms,
    stop: Option<oneshot::Sender<()>>,
    waker: Option<Waker>,
}

impl Gate {
    /// Crashes the node.
    pub fn crash(&self) {
        let mut state = self.lock();
        state.crashed = true;
        state.wake();
    }

    /// Crashes the node for good.
    pub fn break_for_good(&self) {
        self.lock().for_good = true;
        self.crash();
    }

    /// Asks the node to stop.
    pub fn stop(&self) {
        if let Some(stop) = self.lock().stop.take() {
            // Fails if it has stopped already.
            let _ = stop.send(());
        }
    }

    /// Stops the node for good.
    pub fn stop_for_good(&self) {
        self.lock().for_good = true;
        self.stop();
    }

    /// Pauses the node, without it noticing, or resumes it.
    pub fn set_paused(&self, paused: bool) {
        let mut state = self.lock();
        state.paused = paused;
        state.wake();
    }

    /// Cuts the node off from the database, or reconnects it.
    pub fn set_cut(&self, cut: bool) {
        self.lock().cut = cut;
    }

    /// Whether it is cut off.
    pub fn is_cut(&self) -> bool {
        self.lock().cut
    }

    /// Start of this incarnation of the node.
    pub fn alive_since(&self) -> Ms {
        self.lock().since
    }

    fn begin(&self, now: Ms) -> oneshot::Receiver<()> {
        let (stop, stopped) = oneshot::channel();
        let mut state = self.lock();
        state.crashed = false;
        state.since = now;
        state.stop = Some(stop);
        stopped
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

impl GateState {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The future of a node. Returns true when it ended by itself, false when it crashed.
struct Pausable<F> {
    gate: Arc<Gate>,
    work: Pin<Box<F>>,
}

impl<F: Future<Output = ()>> Future for Pausable<F> {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        {
            let mut state = self.gate.lock();
            state.waker = Some(context.waker().clone());
            if state.crashed {
                return Poll::Ready(false);
            }
            if state.paused {
                return Poll::Pending;
            }
        }
        let polled = self.work.as_mut().poll(context);
        if self.gate.lock().crashed {
            return Poll::Ready(false);
        }
        polled.map(|()| true)
    }
}
