//! A node: an engine in a future that can be dropped (a crash) or left alone (a pause), and its letter-box.
//!
//! Everything a node does, it does when that future is polled; executors, the network and clients are other machines
//! and go on without it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use engine::Dispatch;
use engine::policy::Router;
use engine::{Bugs, Controlled, Engine, JobId, Options, Outcome, Parts, RunId, Store, StoreError, Verdict};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use server::executors::{Keeper, RegisterError};
use store::Registry;
use timer::Clock;
use tokio::sync::{mpsc, oneshot};

use super::alarms::Alarms;
use super::clock::{Ms, SimClock};
use super::dice::Dice;
use super::evidence::Wish;
use super::executor::Executors;
use super::faulty::Faulty;
use super::lines::{FaultyRegistry, Lines, registration};
use super::network::Wire;
use super::world::World;

/// The machine a node runs on: it starts it again when it has died.
pub struct Host {
    /// Which.
    pub index: usize,
    /// In what.
    pub world: Arc<World>,
    /// What everybody remembers.
    pub store: Arc<dyn Store>,
    /// The same, for what it remembers of executors.
    pub registry: Arc<dyn Registry>,
    /// Who does the work.
    pub executors: Arc<Executors>,
    /// Where requests for nodes go.
    pub post: Arc<Post>,
    /// How it is broken.
    pub gate: Arc<Gate>,
    /// Its wall clock.
    pub clock: SimClock,
    /// A deliberate bug of its engine.
    pub bugs: Bugs,
}

impl Host {
    /// Runs one life of the node after the other, until it is broken for good.
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
            self.post.close(self.index);
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
            bugs: self.bugs,
        });
        let lines = self.world.plan.registering.as_ref().map(|_| {
            let registry = FaultyRegistry { connection: store.clone(), registry: self.registry.clone() };
            Lines::new(&name, wire.clone(), &self.clock, Arc::new(registry))
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
            observer: Arc::new(()),
            // So few rows in a step that a stop of most jobs takes several.
            options: Options { bugs: self.bugs, step_max: 2, ..Options::default() },
        });
        let keeper = lines.map(|lines| lines.keeper);
        let stop = self.gate.begin(self.world.now());
        let letters = self.post.open(self.index);
        let work = async {
            let stopped = async { _ = stop.await };
            let keep = async {
                match &keeper {
                    Some(keeper) => keeper.run().await,
                    None => std::future::pending().await,
                }
            };
            if let Some(keeper) = &keeper {
                // A node serves nobody before it knows who is there.
                while keeper.load().await.is_err() {
                    self.clock.sleep(LOAD_AGAIN).await;
                }
            }
            tokio::select! {
                biased;
                () = engine.run(stopped) => {}
                () = serve(&engine, keeper.as_deref(), letters) => {}
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

/// After a failed look at who is there.
const LOAD_AGAIN: Duration = Duration::from_millis(200);

/// Answers letters, many at a time.
async fn serve(engine: &Engine, keeper: Option<&Keeper>, mut letters: mpsc::UnboundedReceiver<Letter>) {
    let mut open = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(letter) = letters.recv() => open.push(answer(engine, keeper, letter)),
            Some(()) = open.next(), if !open.is_empty() => {}
            else => std::future::pending().await,
        }
    }
}

/// Whoever no longer waits for the answer wants nothing any more, as with a connection that is closed.
async fn answer(engine: &Engine, keeper: Option<&Keeper>, letter: Letter) {
    let Letter { request, mut reply } = letter;
    let result = tokio::select! {
        biased;
        () = reply.closed() => return,
        result = obey(engine, keeper, request) => result,
    };
    // The same.
    let _ = reply.send(result);
}

async fn obey(engine: &Engine, keeper: Option<&Keeper>, request: Request) -> Result<Answer, StoreError> {
    match request {
        Request::Register(executor) => match keeper {
            Some(keeper) => match keeper.register(registration(executor), None).await {
                Ok(()) => Ok(Answer::Registered),
                Err(RegisterError::Store(error)) => Err(error),
                Err(error) => Err(StoreError::Invalid(error.to_string())),
            },
            None => Err(StoreError::Invalid("no executor registers in this simulation".into())),
        },
        Request::Report(run, outcome) => engine.report(run, outcome).await.map(Answer::Verdict),
        Request::Wish(job, wish) => match wish {
            Wish::Start => engine.start(job).await.map(Answer::Controlled),
            Wish::Stop => engine.stop(job).await.map(Answer::Controlled),
            Wish::Edit(spec) => engine.edit(job, *spec, None).await.map(Answer::Controlled),
            Wish::Delete => engine.delete(job).await.map(Answer::Controlled),
            Wish::Trigger(key) => engine.trigger(job, key, None).await.map(Answer::Run),
        },
    }
}

/// Something asked of a node.
pub enum Request {
    /// By an executor.
    Report(RunId, Outcome),
    /// By the executor of this number.
    Register(usize),
    /// By a client.
    Wish(JobId, Wish),
}

/// What a node answers.
pub enum Answer {
    /// To a report.
    Verdict(Verdict),
    /// To a registration.
    Registered,
    /// To a change of a job.
    Controlled(Controlled),
    /// To a trigger.
    Run(RunId),
}

/// A request on its way to a node.
pub struct Letter {
    request: Request,
    reply: oneshot::Sender<Result<Answer, StoreError>>,
}

/// The letter-boxes of all nodes.
pub struct Post {
    boxes: Vec<Mutex<Option<mpsc::UnboundedSender<Letter>>>>,
}

impl Post {
    /// For so many nodes, none of them up.
    pub fn new(nodes: usize) -> Self {
        Post { boxes: (0..nodes).map(|_| Mutex::default()).collect() }
    }

    /// How many nodes there are, up or not.
    pub fn nodes(&self) -> usize {
        self.boxes.len()
    }

    /// Asks a node. `None`: it is down, or died meanwhile, and nobody knows what it did.
    pub async fn ask(&self, node: usize, request: Request) -> Option<Result<Answer, StoreError>> {
        let (reply, answer) = oneshot::channel();
        let open = self.lock(node).clone()?;
        open.send(Letter { request, reply }).ok()?;
        answer.await.ok()
    }

    fn open(&self, node: usize) -> mpsc::UnboundedReceiver<Letter> {
        let (sender, letters) = mpsc::unbounded_channel();
        *self.lock(node) = Some(sender);
        letters
    }

    fn close(&self, node: usize) {
        *self.lock(node) = None;
    }

    fn lock(&self, node: usize) -> MutexGuard<'_, Option<mpsc::UnboundedSender<Letter>>> {
        self.boxes[node].lock().expect("no holder of this lock panics")
    }
}

/// How a node is broken: by the nemesis, or by its own way to the database.
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
    /// The node dies.
    pub fn crash(&self) {
        let mut state = self.lock();
        state.crashed = true;
        state.wake();
    }

    /// The node dies and stays dead.
    pub fn break_for_good(&self) {
        self.lock().for_good = true;
        self.crash();
    }

    /// The node is asked to stop.
    pub fn stop(&self) {
        if let Some(stop) = self.lock().stop.take() {
            // It has stopped already.
            let _ = stop.send(());
        }
    }

    /// The node stops and stays so.
    pub fn stop_for_good(&self) {
        self.lock().for_good = true;
        self.stop();
    }

    /// The node does nothing while paused, and does not know.
    pub fn set_paused(&self, paused: bool) {
        let mut state = self.lock();
        state.paused = paused;
        state.wake();
    }

    /// The node does not reach the database while cut off.
    pub fn set_cut(&self, cut: bool) {
        self.lock().cut = cut;
    }

    /// Whether it is cut off.
    pub fn is_cut(&self) -> bool {
        self.lock().cut
    }

    /// When this life of the node began.
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

/// A node's work. True when it ended by itself, false when it crashed.
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
