//! Opens connections: resolves the name, asks the guard, connects to the checked IP address, starts TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::v1::TroubleCode;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::rustls::pki_types::ServerName;

use super::address::{Address, Host};
use super::connection::Stream;
use super::guard::{ForbiddenAddress, Guard};
use super::tls::Tls;
use crate::share::{Share, Shares};

/// State shared by all connections.
pub(super) struct Opener {
    pub(super) guard: Guard,
    pub(super) tls: Tls,
    /// Open connections to all addresses together, shared fairly by apps.
    pub(super) slots: Arc<Shares<String>>,
}

impl Opener {
    /// Opens a connection before `by`, or returns the reason why not.
    pub(super) async fn open(
        &self,
        address: &Address,
        names: &Names,
        slot: Share<String>,
        by: Instant,
    ) -> Result<(Stream, Share<String>), OpenError> {
        let given = by.saturating_duration_since(Instant::now());
        if given.is_zero() {
            return Err(OpenError::Timeout { given });
        }
        let opening = async {
            let ips = names.resolve(address).await?;
            self.guard.check_all(&ips)?;
            let tcp = connect(&ips, by).await.inspect_err(|_| names.forget())?;
            self.check_both_ends(&tcp)?;
            // Otherwise Nagle's algorithm may delay a small request until the one before it is acknowledged.
            tcp.set_nodelay(true).map_err(OpenError::from)?;
            limit_retransmission(&tcp)?;
            self.encrypt(address, tcp).await
        };
        match timeout_at(by, opening).await {
            Ok(opened) => Ok((opened?, slot)),
            Err(_) => Err(OpenError::Timeout { given }),
        }
    }

    /// Checks whether an address may be called. Its grammar is already checked; this checks its IP addresses.
    pub(super) async fn vet(&self, address: &Address, names: &Names, by: Instant) -> Result<(), OpenError> {
        let given = by.saturating_duration_since(Instant::now());
        let resolving = timeout_at(by, names.resolve(address)).await;
        let ips = resolving.map_err(|_| OpenError::Timeout { given })??;
        Ok(self.guard.check_all(&ips)?)
    }

    fn check_both_ends(&self, tcp: &TcpStream) -> Result<(), OpenError> {
        let (local, peer) = (tcp.local_addr()?, tcp.peer_addr()?);
        if self.guard.is_own(local, peer) {
            return Err(ForbiddenAddress { ip: peer.ip(), why: "it is the scheduling centre itself" }.into());
        }
        Ok(())
    }

    async fn encrypt(&self, address: &Address, tcp: TcpStream) -> Result<Stream, OpenError> {
        if !address.is_tls() {
            return Ok(Stream::Plain(tcp));
        }
        let name = match address.host() {
            Host::Ip(ip) => ServerName::from(*ip),
            Host::Name(name) => {
                ServerName::try_from(name.clone()).map_err(|error| OpenError::Tls(error.to_string()))?
            }
        };
        let connector = self.tls.connector().await.map_err(OpenError::Tls)?;
        let tls = connector.connect(name, tcp).await.map_err(|error| OpenError::Tls(error.to_string()))?;
        Ok(Stream::Tls(Box::new(tls)))
    }
}

/// Lets the operating system give a connection up instead of retransmitting a request for minutes, even after this
/// process has died: a run in doubt may be sent again only when its first request can no longer arrive (ADR 7).
fn limit_retransmission(tcp: &TcpStream) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket2::SockRef::from(tcp).set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = tcp;
    Ok(())
}

/// How long sent data may stay unacknowledged by the peer's operating system: one retransmission, after 0.2 s, but not
/// the second one, after 0.6 s.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_millis(500);

/// Tries the IP addresses in order; one that does not answer leaves time for the next.
async fn connect(ips: &[SocketAddr], by: Instant) -> Result<TcpStream, OpenError> {
    let mut failure = OpenError::NoSuchName;
    for (tried, ip) in ips.iter().enumerate() {
        let left = u32::try_from(ips.len() - tried).unwrap_or(u32::MAX);
        let given = by.saturating_duration_since(Instant::now()) / left;
        match timeout(given, TcpStream::connect(ip)).await {
            Ok(Ok(tcp)) => return Ok(tcp),
            Ok(Err(error)) => failure = error.into(),
            Err(_) => failure = OpenError::Timeout { given },
        }
    }
    Err(failure)
}

/// DNS cache of one address.
///
/// Runs at most one lookup per name at a time; otherwise a DNS server that hangs would block one thread per call.
pub(super) struct Names {
    known: Arc<Mutex<Option<Known>>>,
    asking: Arc<Semaphore>,
}

/// Time of the lookup and the IP addresses found.
type Known = (Instant, Arc<[SocketAddr]>);

impl Names {
    pub(super) fn new() -> Names {
        Names { known: Arc::default(), asking: Arc::new(Semaphore::new(1)) }
    }

    async fn resolve(&self, address: &Address) -> Result<Arc<[SocketAddr]>, OpenError> {
        let name = match address.host() {
            Host::Ip(ip) => return Ok([SocketAddr::new(*ip, address.port())].into()),
            Host::Name(name) => (name.clone(), address.port()),
        };
        if let Some(known) = self.known() {
            return Ok(known);
        }
        let turn = Arc::clone(&self.asking).acquire_owned().await.expect("the semaphore is never closed");
        if let Some(known) = self.known() {
            return Ok(known);
        }
        let known = Arc::clone(&self.known);
        // A task of its own: the lookup continues when its caller gives up, and the next caller waits for it.
        let asked = tokio::spawn(async move {
            let found: Arc<[SocketAddr]> = tokio::net::lookup_host(name).await?.collect();
            *known.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((Instant::now(), Arc::clone(&found)));
            drop(turn);
            Ok::<_, io::Error>(found)
        });
        match asked.await {
            Ok(Ok(found)) if !found.is_empty() => Ok(found),
            _ => Err(OpenError::NoSuchName),
        }
    }

    fn known(&self) -> Option<Arc<[SocketAddr]>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, ips) = known.as_ref()?;
        (since.elapsed() < KNOWN_FOR).then(|| Arc::clone(ips))
    }

    pub(super) fn forget(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A burst makes one lookup; a pod that moved is found at once, because a failed connect also clears the cache.
const KNOWN_FOR: Duration = Duration::from_secs(5);

/// Why no connection was opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error("its host name does not resolve")]
    NoSuchName,
    #[error(transparent)]
    Refused(#[from] ForbiddenAddress),
    #[error("failed to connect within {given:?}")]
    Timeout { given: Duration },
    #[error("failed to connect: {0}")]
    Connect(#[from] io::Error),
    #[error("TLS handshake failed: {0}")]
    Tls(String),
    #[error("too many connections to executors are open: at most {0} of all apps")]
    Full(usize),
}

impl OpenError {
    /// Returns the error code.
    pub(super) fn code(&self) -> TroubleCode {
        match self {
            OpenError::NoSuchName => TroubleCode::NameUnknown,
            OpenError::Refused(_) => TroubleCode::AddressForbidden,
            OpenError::Timeout { .. } => TroubleCode::ConnectTimeout,
            OpenError::Tls(_) => TroubleCode::TlsFailed,
            OpenError::Full(_) => TroubleCode::TooManyCalls,
            OpenError::Connect(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused => TroubleCode::ConnectRefused,
                io::ErrorKind::TimedOut => TroubleCode::ConnectTimeout,
                io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => TroubleCode::NoRoute,
                io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => {
                    TroubleCode::ConnectionLost
                }
                _ => TroubleCode::Other,
            },
        }
    }

    /// Returns whether the address is at fault, and not this machine: its open files, ports, rules or time left.
    pub(super) fn is_theirs(&self) -> bool {
        match self {
            OpenError::NoSuchName | OpenError::Tls(_) => true,
            OpenError::Timeout { given } => *given >= FAIR_CHANCE,
            OpenError::Refused(_) | OpenError::Full(_) => false,
            OpenError::Connect(error) => {
                error.kind() != io::ErrorKind::AddrNotAvailable
                    && !matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
            }
        }
    }
}

/// A call that waited long for its turn has little time left to connect; that is not the fault of the address. A
/// connect across an ocean takes half of this.
const FAIR_CHANCE: Duration = Duration::from_millis(250);

/// Too many open files, in this process and (`ENFILE`) in the whole system. The same numbers on all Unixes.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;
