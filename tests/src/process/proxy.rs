//! A TCP proxy between a node and its database that simulates network faults.
//!
//! Bytes that are held back are not lost: as with retransmitted packets, they arrive when the fault ends.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Effect of the proxy on the bytes it forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkCondition {
    /// Forwards immediately.
    Clear,
    /// Forwards after a delay.
    Slow(Duration),
    /// Forwards this many bytes per second.
    Thin(u32),
    /// Holds back bytes in both directions, and does not answer new connections.
    BlackHole,
    /// The node receives, but its bytes are held back.
    Mute,
    /// The bytes of the node arrive, but it receives nothing.
    Deaf,
    /// Breaks connections and refuses new ones.
    Cut,
    /// This percentage of COMMITs breaks the connection before reaching the database.
    CutBeforeCommit(u8),
    /// This percentage of COMMITs breaks the connection as soon as the database has executed them: the response is
    /// lost.
    CutAfterCommit(u8),
}

impl NetworkCondition {
    /// Delay for this many bytes.
    fn delay(self, bytes: usize) -> Duration {
        match self {
            NetworkCondition::Slow(length) => length,
            NetworkCondition::Thin(each_second) => {
                Duration::from_secs_f64(bytes as f64 / f64::from(each_second))
            }
            _ => Duration::ZERO,
        }
    }
}

/// A proxy in front of a database.
pub struct Proxy {
    address: SocketAddr,
    condition: Arc<watch::Sender<NetworkCondition>>,
    counts: Arc<Counts>,
    serving: JoinHandle<()>,
}

/// What has passed through a proxy.
#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    statements: AtomicUsize,
}

impl Proxy {
    /// Listens and forwards everything to `database`.
    pub async fn start(database: SocketAddr) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let condition = Arc::new(watch::Sender::new(NetworkCondition::Clear));
        let counts = Arc::new(Counts::default());
        let serving = tokio::spawn(serve(listener, database, condition.clone(), counts.clone()));
        Ok(Proxy { address, condition, counts, serving })
    }

    /// Address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Number of connections opened so far, including those broken immediately.
    pub fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::Relaxed)
    }

    /// Number of statements sent to the database so far, if each fits into one packet: a client waits for the response
    /// before it sends the next.
    pub fn statements(&self) -> usize {
        self.counts.statements.load(Ordering::Relaxed)
    }

    /// Changes the effect, for existing and new connections.
    pub fn turn(&self, condition: NetworkCondition) {
        self.condition.send_replace(condition);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    listener: TcpListener,
    database: SocketAddr,
    condition: Arc<watch::Sender<NetworkCondition>>,
    counts: Arc<Counts>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((client, _)) = accepted {
                counts.connections.fetch_add(1, Ordering::Relaxed);
                connections.spawn(connect(client, database, condition.subscribe(), counts.clone()));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connect(
    client: TcpStream,
    database: SocketAddr,
    mut condition: watch::Receiver<NetworkCondition>,
    counts: Arc<Counts>,
) -> io::Result<()> {
    if *condition.borrow() == NetworkCondition::Cut {
        return client.set_zero_linger();
    }
    // In a black hole, a connection is not even opened.
    wait_until(&mut condition, |condition| condition != NetworkCondition::BlackHole).await;
    let server = TcpStream::connect(database).await?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
        // When one direction ends, both sides should notice immediately.
        stream.set_zero_linger()?;
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let cut = condition.clone();
    let lost = AtomicBool::new(false);
    tokio::select! {
        result = up(from_client, to_server, condition.clone(), &lost, &counts.statements) => result,
        result = down(from_server, to_client, condition, &lost) => result,
        () = wait_for(cut, NetworkCondition::Cut) => Ok(()),
    }
}

/// Forwards from the node to the database.
async fn up(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut condition: watch::Receiver<NetworkCondition>,
    lost: &AtomicBool,
    statements: &AtomicUsize,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        let bytes = &buffer[..count];
        if count > PING {
            // One packet may have several statements.
            let sent = 1 + bytes.windows(2).filter(|end| end == b"; ").count();
            statements.fetch_add(sent, Ordering::Relaxed);
        }
        wait_until(&mut condition, |condition| {
            !matches!(condition, NetworkCondition::BlackHole | NetworkCondition::Mute)
        })
        .await;
        let now = *condition.borrow();
        match now {
            NetworkCondition::Slow(_) | NetworkCondition::Thin(_) => {
                tokio::time::sleep(now.delay(count)).await
            }
            NetworkCondition::CutBeforeCommit(chance) if is_commit(bytes) && fastrand::u8(..100) < chance => {
                return Ok(());
            }
            NetworkCondition::CutAfterCommit(chance) if is_commit(bytes) && fastrand::u8(..100) < chance => {
                lost.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
        to.write_all(bytes).await?;
    }
}

/// Forwards from the database to the node. Ends with the first response that has to be lost.
async fn down(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut condition: watch::Receiver<NetworkCondition>,
    lost: &AtomicBool,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 || lost.load(Ordering::Relaxed) {
            return Ok(());
        }
        wait_until(&mut condition, |condition| {
            !matches!(condition, NetworkCondition::BlackHole | NetworkCondition::Deaf)
        })
        .await;
        let delay = condition.borrow().delay(count);
        tokio::time::sleep(delay).await;
        to.write_all(&buffer[..count]).await?;
    }
}

/// Our nodes send COMMIT as plain text.
fn is_commit(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|word| word == b"COMMIT")
}

async fn wait_until(
    condition: &mut watch::Receiver<NetworkCondition>,
    fine: impl Fn(NetworkCondition) -> bool,
) {
    // Fails only when the proxy is dropped, which also ends this connection.
    let _ = condition.wait_for(|condition| fine(*condition)).await;
}

async fn wait_for(mut condition: watch::Receiver<NetworkCondition>, wanted: NetworkCondition) {
    wait_until(&mut condition, |condition| condition == wanted).await;
}

const CHUNK: usize = 64 * 1024;

/// Bytes by which a pool tests a connection that is returned to it: `COM_PING` of MySQL, `Sync` of PostgreSQL. The
/// server executes no statement for them.
const PING: usize = 5;
