//! The centre's calls to executors: run this, stop that, are you there, what does the log say.
//!
//! A client of its own, because of what real executors demand (header names letter for letter, head and body in one
//! piece) and of what a scheduler must know: whether a request that failed can have been taken. [`Sent`] says so, and
//! nothing here ever sends a run twice unless the first time certainly did not reach it.
//!
//! Each address stands for itself: it has its own connections, its own number of calls at the same time, and its own
//! breaker, so an executor that hangs costs nobody else. Where a run goes and what becomes of it is the caller's to
//! decide.

mod address;
mod breaker;
mod connection;
mod guard;
mod opener;
mod options;
mod peer;
mod reply;
mod request;
mod secret;
mod tls;
mod verdict;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use protocol::xxl::{Answer, JobRequest, LogPage, LogRequest, TriggerRequest, texts};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

pub use address::{Address, AddressError};
pub use breaker::{BreakerState, Circuit, Shut};
pub use guard::{Cidr, CidrError, Guard, Refusal};
pub use options::{Options, OptionsError};
pub use peer::Figures;
pub use request::TriggerPath;
pub use secret::Secret;
pub use tls::{Trust, TrustError};
pub use verdict::{CallError, Sent};

use address::Host;
use connection::{Connection, IDLE_MAX, SendError, Sending};
use opener::{Opener, Places};
use peer::Peer;
use request::Ask;
use tls::Tls;
use verdict::{Failure, Heard};

/// Whom to call, and as whom. The token belongs to the group; it is the caller's promise that the address does too.
#[derive(Clone, Debug)]
pub struct Callee {
    /// Where it listens.
    pub address: Address,
    /// The group's name.
    pub app: String,
    /// What the group's executors know the centre by, if they care.
    pub token: Option<Secret>,
}

/// The calls by which executors are found and given runs. [`Outbound`] makes them over HTTP; a simulation makes them over
/// a network of its own.
#[async_trait]
pub trait Calls: Send + Sync {
    /// Asks an executor to run. The request leaves `within` that time, or never; then its answer is waited for.
    async fn run(&self, to: &Callee, request: &TriggerRequest, attempt: u32, within: Duration) -> Sent;

    /// Asks whether it is there.
    async fn beat(&self, to: &Callee) -> Result<(), CallError>;

    /// Asks whether a job neither runs nor waits there. Any error means that it does, or might.
    async fn idle_beat(&self, to: &Callee, job: i64) -> Result<(), CallError>;

    /// Stops a job there, what runs and what waits; gives what the executor had to say about it.
    async fn kill(&self, to: &Callee, job: i64) -> Result<String, CallError>;

    /// Reads a run's log from a line on, counted from 1.
    async fn log(
        &self,
        to: &Callee,
        run: i64,
        triggered_at_ms: i64,
        from_line: u32,
    ) -> Result<LogPage, CallError>;

    /// Drops what was learned of an address: it was registered anew, or removed.
    fn forget(&self, address: &Address);

    /// An executor says that it is there: its runs are not held back any longer.
    fn revive(&self, address: &Address);
}

/// Calls executors. Cheap to clone; all clones share connections and what was learned.
#[derive(Clone)]
pub struct Outbound(Arc<Shared>);

struct Shared {
    timeout: Duration,
    in_flight_max: usize,
    waiting_max: usize,
    opener: Opener,
    peers: RwLock<HashMap<Address, Arc<Peer>>>,
    is_sweeping: AtomicBool,
}

impl Outbound {
    /// Ready to call; nothing is opened yet.
    pub fn new(options: Options) -> Result<Outbound, OptionsError> {
        options.check()?;
        let tls = Tls::new(&options.trust)?;
        let opener = Opener { guard: options.guard, tls, places: Places::new(options.connections_max) };
        Ok(Outbound(Arc::new(Shared {
            timeout: options.timeout,
            in_flight_max: options.in_flight_max,
            waiting_max: options.waiting_max,
            opener,
            peers: RwLock::default(),
            is_sweeping: AtomicBool::new(false),
        })))
    }

    /// Asks an executor to run. The request leaves `within` that time, or never; then its answer is waited for.
    ///
    /// Executors take runs at one of two paths. Which one is learned from a first refusal, and remembered.
    pub async fn run(&self, to: &Callee, request: &TriggerRequest, attempt: u32, within: Duration) -> Sent {
        match self.trigger(to, request, attempt, Instant::now() + within).await {
            Ok(_) => Sent::Accepted,
            Err(error) => error.into(),
        }
    }

    /// Asks whether it is there.
    pub async fn beat(&self, to: &Callee) -> Result<(), CallError> {
        self.aside(to, Ask::Beat).await.map(drop)
    }

    /// Asks whether a job neither runs nor waits there. Any error means that it does, or might.
    pub async fn idle_beat(&self, to: &Callee, job: i64) -> Result<(), CallError> {
        self.aside(to, Ask::IdleBeat(JobRequest { job_id: job })).await.map(drop)
    }

    /// Stops a job there, what runs and what waits; gives what the executor had to say about it.
    pub async fn kill(&self, to: &Callee, job: i64) -> Result<String, CallError> {
        let answer = self.aside(to, Ask::Kill(JobRequest { job_id: job })).await?;
        // Releases differ on where they put the text.
        Ok(answer.payload.as_str().unwrap_or(answer.message()).to_owned())
    }

    /// Reads a run's log from a line on, counted from 1. An executor that has nothing to say gives an empty page, one
    /// that sends too much at once a page of as many whole lines as are read of it.
    pub async fn log(
        &self,
        to: &Callee,
        run: i64,
        triggered_at_ms: i64,
        from_line: u32,
    ) -> Result<LogPage, CallError> {
        let mut page = self.log_page(to, run, triggered_at_ms, from_line).await?;
        if page.log_content.trim() == texts::NO_LOG_FILE {
            return Ok(page);
        }
        // The first page is the whole log of an executor that always sends that, and its numbers may be made up.
        let may_repeat = match from_line {
            0 | 1 => line_count(&page) != page.to_line_num,
            // A question whether there is a log at all.
            BEYOND.. => false,
            _ => true,
        };
        if may_repeat
            && !page.log_content.is_empty()
            && self.repeats_log(to, run, triggered_at_ms, &page).await?
        {
            page = lines_from(&page, from_line);
        }
        let from_line_num = i32::try_from(from_line).unwrap_or(i32::MAX);
        // Where there is nothing new, some clients count on all the same: who follows them passes over a line, and never
        // sees the end. Others say so by their numbers, and send their last lines once more.
        if page.log_content.is_empty() || page.to_line_num < from_line_num {
            page.log_content.clear();
            (page.from_line_num, page.to_line_num) = (from_line_num, from_line_num.saturating_sub(1));
        }
        Ok(page)
    }

    /// Whether an executor sends a run's whole log whichever line it is asked for. It is asked for a line that no log has,
    /// and what it answers is remembered for its address.
    async fn repeats_log(
        &self,
        to: &Callee,
        run: i64,
        triggered_at_ms: i64,
        page: &LogPage,
    ) -> Result<bool, CallError> {
        let peer = self.0.peer(&to.address);
        if let Some(known) = peer.repeats_log() {
            return Ok(known);
        }
        let beyond = self.log_page(to, run, triggered_at_ms, BEYOND).await?;
        let repeats = match beyond.log_content.as_str() {
            "" => false,
            // The log may have grown in between.
            text if text.starts_with(&page.log_content) => true,
            // A note in place of lines tells nothing about other pages.
            _ => return Ok(false),
        };
        peer.learn_repeats_log(repeats);
        Ok(repeats)
    }

    /// The number of the last line of a run's log, if the executor tells. Most do when they are asked for one beyond.
    pub async fn last_line(
        &self,
        to: &Callee,
        run: i64,
        triggered_at_ms: i64,
    ) -> Result<Option<u32>, CallError> {
        let page = self.log_page(to, run, triggered_at_ms, BEYOND).await?;
        let last = u32::try_from(page.to_line_num).ok().filter(|last| (1..BEYOND - 1).contains(last));
        Ok(last.filter(|_| page.log_content.is_empty()))
    }

    async fn log_page(
        &self,
        to: &Callee,
        run: i64,
        triggered_at_ms: i64,
        from_line: u32,
    ) -> Result<LogPage, CallError> {
        let from_line_num = i32::try_from(from_line).unwrap_or(i32::MAX);
        let request = LogRequest { log_date_time: triggered_at_ms, log_id: run, from_line_num };
        Ok(self.aside(to, Ask::Log(request)).await?.payload_as().unwrap_or_default())
    }

    /// Whether an address may be called, before it is saved. It is asked again at every connect.
    pub async fn vet(&self, address: &Address) -> Result<(), CallError> {
        let peer = self.0.peer(address);
        let by = Instant::now() + self.0.timeout;
        let vetted = self.0.opener.vet(address, &peer.names, by).await;
        vetted.map_err(|error| verdict::not_reached(address, error.code(), &error))
    }

    /// Refuses an address whose host is an IP that is not called. A name is checked at every connect instead, by the IPs it
    /// then resolves to, so that nobody who registers waits for a name server.
    pub fn vet_ip(&self, address: &Address) -> Result<(), Refusal> {
        match address.host() {
            Host::Ip(ip) => self.0.opener.guard.check(SocketAddr::new(*ip, address.port())),
            Host::Name(_) => Ok(()),
        }
    }

    /// Opens connections ahead of a burst, so that it does not wait for handshakes. They are good for a second or
    /// two; failures show when the burst comes.
    pub async fn warm(&self, address: &Address, connections: usize) {
        let peer = self.0.peer(address);
        if peer.circuit.state() == BreakerState::Open {
            return;
        }
        let wanted = connections.min(self.0.in_flight_max);
        let missing = wanted.saturating_sub(peer.figures().resting_connections);
        let mut opening = JoinSet::new();
        for _ in 0..missing {
            let (shared, peer, address) = (Arc::clone(&self.0), Arc::clone(&peer), address.clone());
            opening.spawn(async move {
                let by = Instant::now() + shared.timeout;
                if let Ok(connection) = shared.connect(&address, &peer, by).await {
                    shared.rest(&peer, connection);
                }
            });
        }
        while opening.join_next().await.is_some() {}
    }

    /// Takes note of where an address takes runs: its registration told.
    pub fn learn(&self, address: &Address, path: TriggerPath) {
        self.0.peer(address).learn(path);
    }

    /// Drops connections and what was learned: the address was registered anew, or removed.
    pub fn forget(&self, address: &Address) {
        let mut peers = self.0.peers.write().unwrap_or_else(PoisonError::into_inner);
        match peers.get(address) {
            // Calls are under way: what they wait for goes on, what they leave behind is not used.
            Some(peer) if Arc::strong_count(peer) > 1 => peer.forget(),
            _ => drop(peers.remove(address)),
        }
    }

    /// How an address is doing, if it was ever called.
    pub fn figures(&self, address: &Address) -> Option<Figures> {
        let peers = self.0.peers.read().unwrap_or_else(PoisonError::into_inner);
        peers.get(address).map(|peer| peer.figures())
    }

    async fn trigger(
        &self,
        to: &Callee,
        request: &TriggerRequest,
        attempt: u32,
        send_by: Instant,
    ) -> Result<Answer, CallError> {
        let peer = self.0.peer(&to.address);
        if peer.circuit.state() == BreakerState::Open {
            return Err(verdict::shut(&to.address));
        }
        let entered = peer.runs.enter(send_by).await;
        let _turn = entered.map_err(|error| verdict::crowded(&to.address, &error))?;
        let known = peer.trigger_path();
        let at = known.unwrap_or(TriggerPath::Run);
        let exchange = self.0.exchange(to, &peer, Ask::Run { request, attempt, at }, send_by);
        let exchanged = peer.circuit.call(send_by, exchange, |failure| failure.is_silent).await;
        let heard = exchanged.map_err(|Shut| verdict::shut(&to.address))??;
        if !heard.lacks(at) {
            if known.is_none() && heard.is_ok() {
                peer.learn(at);
            }
            return heard.judge(to);
        }
        // It has no such path, so no job's code has seen the request: the other path may be tried, once.
        let other = Ask::Run { request, attempt, at: at.other() };
        match self.0.exchange(to, &peer, other, send_by).await {
            Ok(second) if !second.lacks(at.other()) => {
                peer.learn(at.other());
                second.judge(to)
            }
            Err(failure) if failure.may_have_arrived() => Err(failure.error),
            Ok(_) | Err(_) => heard.judge(to),
        }
    }

    async fn aside(&self, to: &Callee, ask: Ask<'_>) -> Result<Answer, CallError> {
        let peer = self.0.peer(&to.address);
        let send_by = Instant::now() + self.0.timeout;
        let entered = peer.asides.enter(send_by).await;
        let _turn = entered.map_err(|error| verdict::crowded(&to.address, &error))?;
        let heard = self.0.exchange(to, &peer, ask, send_by).await?;
        peer.circuit.close();
        heard.judge(to)
    }
}

#[async_trait]
impl Calls for Outbound {
    async fn run(&self, to: &Callee, request: &TriggerRequest, attempt: u32, within: Duration) -> Sent {
        Outbound::run(self, to, request, attempt, within).await
    }

    async fn beat(&self, to: &Callee) -> Result<(), CallError> {
        Outbound::beat(self, to).await
    }

    async fn idle_beat(&self, to: &Callee, job: i64) -> Result<(), CallError> {
        Outbound::idle_beat(self, to, job).await
    }

    async fn kill(&self, to: &Callee, job: i64) -> Result<String, CallError> {
        Outbound::kill(self, to, job).await
    }

    async fn log(
        &self,
        to: &Callee,
        run: i64,
        triggered_at_ms: i64,
        from_line: u32,
    ) -> Result<LogPage, CallError> {
        Outbound::log(self, to, run, triggered_at_ms, from_line).await
    }

    fn forget(&self, address: &Address) {
        Outbound::forget(self, address);
    }

    fn revive(&self, address: &Address) {
        let peers = self.0.peers.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(peer) = peers.get(address) {
            peer.circuit.close();
        }
    }
}

impl Shared {
    fn peer(&self, address: &Address) -> Arc<Peer> {
        if let Some(peer) = self.peers.read().unwrap_or_else(PoisonError::into_inner).get(address) {
            return Arc::clone(peer);
        }
        let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        if peers.len() >= PEERS_MAX {
            peers.retain(|_, peer| Arc::strong_count(peer) > 1);
        }
        let new = || Arc::new(Peer::new(self.in_flight_max, self.waiting_max));
        Arc::clone(peers.entry(address.clone()).or_insert_with(new))
    }

    /// One request, one reply. A resting connection that turns out to be broken before it took a byte is replaced.
    async fn exchange(
        self: &Arc<Self>,
        to: &Callee,
        peer: &Peer,
        ask: Ask<'_>,
        send_by: Instant,
    ) -> Result<Heard, Failure> {
        let mut connection = match peer.take_resting() {
            Some(resting) => resting,
            None => self.connect(&to.address, peer, send_by).await?,
        };
        let mut sent = connection.send(to, &ask, send_by).await;
        if matches!(sent, Err(SendError::Nothing(_))) && connection.has_waited() {
            connection = self.connect(&to.address, peer, send_by).await?;
            sent = connection.send(to, &ask, send_by).await;
        }
        let sending = match sent {
            Ok(sending) => sending,
            Err(SendError::Part(error)) => {
                return self.last_words(to, connection, &ask, error).await;
            }
            Err(error) => return Err(Failure::unsent(&to.address, &error)),
        };
        let received = connection.receive(ask.limit(), self.timeout).await;
        let reply = received.map_err(|error| Failure::unanswered(&to.address, &error))?;
        let heard = Heard::read(&ask, &reply, connection.body_of(&reply))
            .map_err(|error| Failure::unanswered(&to.address, &error))?;
        if reply.is_reusable && sending == Sending::Whole {
            self.rest(peer, connection);
        }
        Ok(heard)
    }

    /// The connection broke under a large request: perhaps its receiver said why before it left.
    async fn last_words(
        &self,
        to: &Callee,
        mut connection: Connection,
        ask: &Ask<'_>,
        error: std::io::Error,
    ) -> Result<Heard, Failure> {
        let is_silent = error.kind() == std::io::ErrorKind::TimedOut;
        if !is_silent
            && let Ok(reply) = connection.receive(ask.limit(), self.timeout).await
            && let Ok(heard) = Heard::read(ask, &reply, connection.body_of(&reply))
            && !heard.is_ok()
        {
            return Ok(heard);
        }
        Err(Failure::cut_off(&to.address, &SendError::Part(error), is_silent))
    }

    async fn connect(&self, address: &Address, peer: &Peer, by: Instant) -> Result<Connection, Failure> {
        if self.opener.places.is_full() {
            self.close_resting();
        }
        let generation = peer.generation();
        let by = by.min(Instant::now() + self.timeout);
        let opened = self.opener.open(address, &peer.names, by).await;
        let (stream, place) = opened.map_err(|error| Failure::unopened(address, &error))?;
        Ok(Connection::new(stream, generation, place))
    }

    /// Makes room: a connection that waits for a call is worth less than one that a call waits for.
    fn close_resting(&self) {
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        peers.values().for_each(|peer| peer.close_resting());
    }

    fn rest(self: &Arc<Self>, peer: &Peer, connection: Connection) {
        if peer.rest(connection) && !self.is_sweeping.swap(true, Ordering::AcqRel) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }
}

/// Closes connections nobody came for, until there are none.
async fn sweep(shared: Weak<Shared>) {
    loop {
        sleep(SWEEP_EVERY).await;
        let Some(shared) = shared.upgrade() else { return };
        if shared.sweep() > 0 {
            continue;
        }
        shared.is_sweeping.store(false, Ordering::Release);
        // One may have come to rest in between, and found this task still on duty.
        if shared.sweep() == 0 || shared.is_sweeping.swap(true, Ordering::AcqRel) {
            return;
        }
    }
}

impl Shared {
    fn sweep(&self) -> usize {
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        peers.values().map(|peer| peer.sweep(now)).sum()
    }
}

/// The lines of a whole log from one of them on.
fn lines_from(whole: &LogPage, from_line: u32) -> LogPage {
    let before = usize::try_from(from_line.saturating_sub(1)).unwrap_or(usize::MAX);
    let lines = whole.log_content.split_inclusive('\n');
    LogPage { log_content: lines.skip(before).collect(), to_line_num: line_count(whole), ..*whole }
}

fn line_count(page: &LogPage) -> i32 {
    i32::try_from(page.log_content.split_inclusive('\n').count()).unwrap_or(i32::MAX)
}

/// A line that no log has.
const BEYOND: u32 = 1_000_000_000;

/// More than a centre has executors; beyond it what was learned of the quiet ones is learned again.
const PEERS_MAX: usize = 16 * 1024;
/// A connection is closed at most half as late again as it could have been.
const SWEEP_EVERY: Duration = Duration::from_millis(IDLE_MAX.as_millis() as u64 / 2);
