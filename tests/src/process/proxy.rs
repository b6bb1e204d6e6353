//! A stretch of network between a node and its database, with weather.
//!
//! What is held back is not lost: as with packets that are sent again, it arrives when the weather changes.

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

/// What happens to bytes on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// They pass.
    Clear,
    /// They pass after a while.
    Slow(Duration),
    /// So many pass each second.
    Thin(u32),
    /// They are held back, both ways, and new connections are not answered.
    BlackHole,
    /// The node hears, and is not heard.
    Mute,
    /// The node is heard, and does not hear.
    Deaf,
    /// Connections break, and new ones are refused.
    Cut,
    /// Of a hundred COMMITs that come by, so many break their connection and never reach the database.
    CutBeforeCommit(u8),
    /// Of a hundred COMMITs that come by, so many break their connection as soon as the database has done them: the
    /// answer is lost.
    CutAfterCommit(u8),
}

impl Weather {
    /// How long so many bytes take to pass.
    fn delay(self, bytes: usize) -> Duration {
        match self {
            Weather::Slow(length) => length,
            Weather::Thin(each_second) => Duration::from_secs_f64(bytes as f64 / f64::from(each_second)),
            _ => Duration::ZERO,
        }
    }
}

/// A proxy in front of a database.
pub struct Proxy {
    address: SocketAddr,
    weather: Arc<watch::Sender<Weather>>,
    connections: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl Proxy {
    /// Listens, and passes everything on to `database`.
    pub async fn start(database: SocketAddr) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let weather = Arc::new(watch::Sender::new(Weather::Clear));
        let connections = Arc::new(AtomicUsize::new(0));
        let serving = tokio::spawn(serve(listener, database, weather.clone(), connections.clone()));
        Ok(Proxy { address, weather, connections, serving })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections were opened to it so far, also those that it broke at once.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Changes the weather, for connections old and new.
    pub fn turn(&self, weather: Weather) {
        self.weather.send_replace(weather);
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
    weather: Arc<watch::Sender<Weather>>,
    count: Arc<AtomicUsize>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((client, _)) = accepted {
                count.fetch_add(1, Ordering::Relaxed);
                connections.spawn(connect(client, database, weather.subscribe()));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connect(
    client: TcpStream,
    database: SocketAddr,
    mut weather: watch::Receiver<Weather>,
) -> io::Result<()> {
    if *weather.borrow() == Weather::Cut {
        return client.set_zero_linger();
    }
    // A connection into a black hole is not even opened.
    wait_until(&mut weather, |weather| weather != Weather::BlackHole).await;
    let server = TcpStream::connect(database).await?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
        // Where a pump ends, both sides are to notice at once.
        stream.set_zero_linger()?;
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let cut = weather.clone();
    let lost = AtomicBool::new(false);
    tokio::select! {
        result = up(from_client, to_server, weather.clone(), &lost) => result,
        result = down(from_server, to_client, weather, &lost) => result,
        () = wait_for(cut, Weather::Cut) => Ok(()),
    }
}

/// From the node to the database.
async fn up(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
    lost: &AtomicBool,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        let bytes = &buffer[..count];
        wait_until(&mut weather, |weather| !matches!(weather, Weather::BlackHole | Weather::Mute)).await;
        let now = *weather.borrow();
        match now {
            Weather::Slow(_) | Weather::Thin(_) => tokio::time::sleep(now.delay(count)).await,
            Weather::CutBeforeCommit(chance) if is_commit(bytes) && fastrand::u8(..100) < chance => {
                return Ok(());
            }
            Weather::CutAfterCommit(chance) if is_commit(bytes) && fastrand::u8(..100) < chance => {
                lost.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
        to.write_all(bytes).await?;
    }
}

/// From the database to the node. Ends with the first answer that is to be lost.
async fn down(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
    lost: &AtomicBool,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 || lost.load(Ordering::Relaxed) {
            return Ok(());
        }
        wait_until(&mut weather, |weather| !matches!(weather, Weather::BlackHole | Weather::Deaf)).await;
        let delay = weather.borrow().delay(count);
        tokio::time::sleep(delay).await;
        to.write_all(&buffer[..count]).await?;
    }
}

/// Databases are told to commit in plain words, at least by us.
fn is_commit(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|word| word == b"COMMIT")
}

async fn wait_until(weather: &mut watch::Receiver<Weather>, fine: impl Fn(Weather) -> bool) {
    // Fails only when the proxy is gone, and then so is this connection.
    let _ = weather.wait_for(|weather| fine(*weather)).await;
}

async fn wait_for(mut weather: watch::Receiver<Weather>, wanted: Weather) {
    wait_until(&mut weather, |weather| weather == wanted).await;
}

const CHUNK: usize = 64 * 1024;
