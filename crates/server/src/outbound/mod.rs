//! HTTP client for executors: run, kill, beat, idle beat and log.
//!
//! It is a client of our own because real executors need exact header names, and head and body in one piece, and
//! because a scheduler must know whether a failed request may have been accepted. [`Sent`] carries that, and this
//! module never sends a run twice unless the first attempt certainly did not arrive.
//!
//! Each address has its own connections, its own limit of concurrent calls and its own breaker, so an executor that
//! hangs does not slow down others. Routing a run and handling the result are left to the caller.

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

use std::collections::{HashMap, HashSet};
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
pub use guard::{Cidr, CidrError, ForbiddenAddress, Guard};
pub use options::{Options, OptionsError};
pub use peer::Figures;
pub use request::TriggerPath;
pub use secret::Secret;
pub use tls::{Trust, TrustError};
pub use verdict::{CallError, Sent};

use address::Host;
use connection::{Connection, IDLE_MAX, SendError, Sending};
use opener::{OpenError, Opener};
use peer::Peer;
use request::Ask;
use tls::Tls;
use verdict::{Failure, Heard};

use crate::share::Shares;

/// An executor to call, with the credentials of its app. The caller guarantees that the address belongs to that app.
#[derive(Clone, Debug)]
pub struct Callee {
    /// Address of the executor.
    pub address: Address,
    /// Name of the app.
    pub app: String,
    /// Access token that authenticates the server to the app's executors, if they check one.
    pub token: Option<Secret>,
}

/// The calls that find executors and send runs to them. [`Outbound`] makes them over HTTP; a simulation makes them
/// over a simulated network.
#[async_trait]
pub trait Calls: Send + Sync {
    /// Sends a run to an executor. The request is sent within `within` or not at all; then the answer is awaited.
    async fn run(&self, to: &Callee, request: &TriggerRequest, attempt: u32, within: Duration) -> Sent;

    /// Checks that the executor answers.
    async fn beat(&self, to: &Callee) -> Result<(), CallError>;

    /// Checks that a job is neither running nor queued on the executor. Any error means that it is, or may be.
    async fn idle_beat(&self, to: &Callee, job: i64) -> Result<(), CallError>;

    /// Stops a job on the executor, its running and its queued runs; returns the executor's message.
    async fn kill(&self, to: &Callee, job: i64) -> Result<String, CallError>;

    /// Reads a run's log, starting at line `from_line`, counted from 1. If the executor sends nothing the page is
    /// empty; if it sends too much at once the page holds the complete lines that were read.
    async fn log(
        &self,
        to: &Callee,
        run: i64,
        triggered_at_ms: i64,
        from_line: u32,
    ) -> Result<LogPage, CallError>;

    /// Drops all knowledge about an address because it was registered again or removed.
    fn forget(&self, address: &Address);

    /// Resumes sending runs to an address because its executor has reported that it is alive.
    fn revive(&self, address: &Address);
}

/// Calls executors. Cheap to clone; all clones share connections and knowledge about addresses.
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
    /// Creates a client. It opens no connection yet.
    pub fn new(options: Options) -> Result<Outbound, OptionsError> {
        options.check()?;
        let tls = Tls::new(&options.trust)?;
        let opener = Opener { guard: options.guard, tls, slots: Shares::new(options.connections_max) };
        Ok(Outbound(Arc::new(Shared {
            timeout: options.timeout,
            in_flight_max: options.in_flight_max,
            waiting_max: options.waiting_max,
            opener,
            peers: RwLock::default(),
            is_sweeping: AtomicBool::new(false),
        })))
    }

    /// Returns whether an executor always sends a run's whole log, or always the end of it, whichever line is
    /// requested. The executor is asked for a line that no log has, and the result is remembered for its address. It
    /// is asked again if it sends the same page for two lines.
    async fn repeats_log(
        &self,
        to: &Callee,
        run: i64,
        triggered_at_ms: i64,
        from_line: u32,
        page: &LogPage,
    ) -> Result<bool, CallError> {
        let peer = self.0.peer(&to.address);
        let is_same_page = peer.sent_before(run, from_line, &page.log_content);
        match peer.repeats_log() {
            Some(true) => return Ok(true),
            Some(false) if !is_same_page => return Ok(false),
            _ => {}
        }
        let beyond = self.log_page(to, run, triggered_at_ms, BEYOND).await?;
        let repeats = match beyond.log_content.as_str() {
            "" => false,
            // The log may have grown in between, or lost its first lines.
            text if text.starts_with(&page.log_content) || have_line_in_common(text, &page.log_content) => {
                true
            }
            // A message in place of log lines shows nothing about other pages.
            _ => return Ok(false),
        };
        peer.learn_repeats_log(repeats);
        Ok(repeats)
    }

    /// Returns the number of a log's last line, if the executor sends it. Most do when asked for a line beyond.
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

    /// Checks whether an address may be called, before it is saved. It is checked again at every connect.
    pub async fn vet(&self, address: &Address) -> Result<(), CallError> {
        let peer = self.0.peer(address);
        let by = Instant::now() + self.0.timeout;
        let vetted = self.0.opener.vet(address, &peer.names, by).await;
        vetted.map_err(|error| verdict::not_reached(address, error.code(), &error))
    }

    /// Rejects an address with a forbidden IP address as its host. A host name is checked at every connect instead,
    /// by the IP addresses it then resolves to, so that a registration does not wait for DNS.
    pub fn vet_ip(&self, address: &Address) -> Result<(), ForbiddenAddress> {
        match address.host() {
            Host::Ip(ip) => self.0.opener.guard.check(SocketAddr::new(*ip, address.port())),
            Host::Name(_) => Ok(()),
        }
    }

    /// Opens connections ahead of a burst, so that it does not wait for handshakes. They stay usable for a second or
    /// two; failures appear when the burst comes.
    pub async fn warm(&self, to: &Callee, connections: usize) {
        let peer = self.0.peer(&to.address);
        if peer.circuit.state() == BreakerState::Open {
            return;
        }
        let wanted = connections.min(self.0.in_flight_max);
        let missing = wanted.saturating_sub(peer.figures().resting_connections);
        let mut opening = JoinSet::new();
        for _ in 0..missing {
            let (shared, peer, to) = (Arc::clone(&self.0), Arc::clone(&peer), to.clone());
            opening.spawn(async move {
                let by = Instant::now() + shared.timeout;
                if let Ok(connection) = shared.connect(&to, &peer, by).await {
                    shared.rest(&peer, connection);
                }
            });
        }
        while opening.join_next().await.is_some() {}
    }

    /// Stores the path at which an address accepts runs, as given in its registration.
    pub fn learn(&self, address: &Address, path: TriggerPath) {
        self.0.peer(address).learn(path);
    }

    /// Returns the current figures of an address, if it was ever called.
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
        // The path does not exist, so no job code has seen the request: the other path may be tried, once.
        let other = Ask::Run { request, attempt, at: at.other() };
        match Box::pin(self.0.exchange(to, &peer, other, send_by)).await {
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
        match self.trigger(to, request, attempt, Instant::now() + within).await {
            Ok(_) => Sent::Accepted,
            Err(error) => error.into(),
        }
    }

    async fn beat(&self, to: &Callee) -> Result<(), CallError> {
        self.aside(to, Ask::Beat).await.map(drop)
    }

    async fn idle_beat(&self, to: &Callee, job: i64) -> Result<(), CallError> {
        self.aside(to, Ask::IdleBeat(JobRequest { job_id: job })).await.map(drop)
    }

    async fn kill(&self, to: &Callee, job: i64) -> Result<String, CallError> {
        let answer = self.aside(to, Ask::Kill(JobRequest { job_id: job })).await?;
        // Releases differ in where they put the text.
        Ok(answer.payload.as_str().unwrap_or(answer.message()).to_owned())
    }

    async fn log(
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
        // Some executors always send the whole log: the first page is all of it, its line numbers may be made up.
        let may_repeat = match from_line {
            0 | 1 => line_count(&page) != page.to_line_num,
            // The caller only asks whether there is a log at all.
            BEYOND.. => false,
            _ => true,
        };
        if may_repeat
            && !page.log_content.is_empty()
            && self.repeats_log(to, run, triggered_at_ms, from_line, &page).await?
        {
            page = lines_from(&page, from_line);
        }
        let from_line_num = i32::try_from(from_line).unwrap_or(i32::MAX);
        // If there is nothing new, some clients advance the line number anyway; a follower would skip a line and
        // never see the end. Others show it by their line numbers, and send their last lines again.
        if page.log_content.is_empty() || page.to_line_num < from_line_num {
            page.log_content.clear();
            (page.from_line_num, page.to_line_num) = (from_line_num, from_line_num.saturating_sub(1));
        }
        Ok(page)
    }

    fn forget(&self, address: &Address) {
        let mut peers = self.0.peers.write().unwrap_or_else(PoisonError::into_inner);
        match peers.get(address) {
            // Calls in progress continue, but their connections and findings are not reused.
            Some(peer) if Arc::strong_count(peer) > 1 => peer.forget(),
            _ => drop(peers.remove(address)),
        }
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

    /// Sends one request and reads one reply. An idle connection that breaks before it accepted a byte is replaced.
    ///
    /// Rare steps are boxed, so that the thousands of calls of a herd take little memory.
    async fn exchange(
        self: &Arc<Self>,
        to: &Callee,
        peer: &Peer,
        ask: Ask<'_>,
        send_by: Instant,
    ) -> Result<Heard, Failure> {
        let mut connection = match peer.take_resting() {
            Some(resting) => resting,
            None => Box::pin(self.connect(to, peer, send_by)).await?,
        };
        let mut sent = connection.send(to, &ask, send_by).await;
        if matches!(sent, Err(SendError::Nothing(_))) && connection.has_waited() {
            connection = Box::pin(self.connect(to, peer, send_by)).await?;
            sent = connection.send(to, &ask, send_by).await;
        }
        let sending = match sent {
            Ok(sending) => sending,
            Err(SendError::Part(error)) => {
                return Box::pin(self.last_words(to, connection, &ask, error)).await;
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

    /// The connection broke during a large request: the executor may have sent a reason before it closed.
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

    async fn connect(&self, to: &Callee, peer: &Peer, by: Instant) -> Result<Connection, Failure> {
        let Callee { address, app, .. } = to;
        let slots = &self.opener.slots;
        let slot = slots.take(app.to_owned()).or_else(|| {
            self.close_resting();
            slots.take(app.to_owned())
        });
        let full = || Failure::unopened(address, &OpenError::Full(slots.max()));
        let slot = slot.ok_or_else(full)?;
        let generation = peer.generation();
        let by = by.min(Instant::now() + self.timeout);
        let opened = self.opener.open(address, &peer.names, slot, by).await;
        let (stream, slot) = opened.map_err(|error| Failure::unopened(address, &error))?;
        Ok(Connection::new(stream, generation, slot))
    }

    /// Makes room: a connection that a call needs is worth more than an idle one.
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

/// Closes connections that stay idle too long, until none are left.
async fn sweep(shared: Weak<Shared>) {
    loop {
        sleep(SWEEP_EVERY).await;
        let Some(shared) = shared.upgrade() else { return };
        if shared.sweep() > 0 {
            continue;
        }
        shared.is_sweeping.store(false, Ordering::Release);
        // A connection may have become idle in between, while this task still counted as active.
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

/// Returns the lines of a whole log from `from_line` on.
fn lines_from(whole: &LogPage, from_line: u32) -> LogPage {
    let before = usize::try_from(from_line.saturating_sub(1)).unwrap_or(usize::MAX);
    let lines = whole.log_content.split_inclusive('\n');
    LogPage { log_content: lines.skip(before).collect(), to_line_num: line_count(whole), ..*whole }
}

fn have_line_in_common(one: &str, other: &str) -> bool {
    let lines: HashSet<&str> = one.lines().filter(|line| !line.trim().is_empty()).collect();
    other.lines().any(|line| lines.contains(line))
}

fn line_count(page: &LogPage) -> i32 {
    i32::try_from(page.log_content.split_inclusive('\n').count()).unwrap_or(i32::MAX)
}

/// A line number that no log reaches.
const BEYOND: u32 = 1_000_000_000;

/// More than a cluster has executors; beyond it, knowledge about addresses without calls in progress is dropped.
const PEERS_MAX: usize = 16 * 1024;
/// Idle connections are closed at most half of `IDLE_MAX` too late.
const SWEEP_EVERY: Duration = Duration::from_millis(IDLE_MAX.as_millis() as u64 / 2);
