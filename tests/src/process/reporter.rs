//! Reports results in batches, trying one centre after another until one confirms them.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::xxl::{Answer, CallbackItem, CallbackShape, write_callbacks};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::http::Wire;
use super::journal::Journal;

/// A successful run.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub run: i64,
    pub scheduled_ms: i64,
}

/// Target of results and registrations: any centre that answers.
#[derive(Clone)]
pub struct Centres {
    addresses: Arc<[SocketAddr]>,
    token: Arc<str>,
    open: Arc<Mutex<Vec<(SocketAddr, Wire)>>>,
}

impl Centres {
    pub fn new(addresses: &[SocketAddr], token: &str) -> Centres {
        Centres { addresses: addresses.into(), token: token.into(), open: Arc::default() }
    }

    /// Posts to the first centre that answers with success.
    pub async fn post(&self, path: &str, body: &str) -> io::Result<()> {
        let mut last = io::Error::other("there is no centre");
        for address in self.addresses.iter() {
            match tokio::time::timeout(ANSWER_WAIT, self.post_to(*address, path, body)).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(last)
    }

    async fn post_to(&self, address: SocketAddr, path: &str, body: &str) -> io::Result<()> {
        let resting = self.take_open(address);
        let mut wire = match resting {
            Some(wire) => wire,
            None => Wire::new(TcpStream::connect(address).await?),
        };
        let answer = wire.post(path, &self.token, body).await?;
        let said = Answer::read(&answer.body).map_err(io::Error::other)?;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push((address, wire));
        if said.is_ok() { Ok(()) } else { Err(io::Error::other(said.message().to_owned())) }
    }

    fn take_open(&self, address: SocketAddr) -> Option<Wire> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let place = open.iter().position(|(held, _)| *held == address)?;
        Some(open.swap_remove(place).1)
    }
}

/// Reports until the channel is closed.
pub async fn report(mut reports: mpsc::UnboundedReceiver<Done>, centres: Centres, journal: Journal) {
    let mut batch = Vec::new();
    while reports.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let items: Vec<CallbackItem> = batch.iter().map(item).collect();
        let body = write_callbacks(&items, CallbackShape::Array);
        while let Err(error) = centres.post("/api/callback", &body).await {
            tracing::debug!(%error, results = batch.len(), "failed to report results; retrying in {AGAIN:?}");
            tokio::time::sleep(AGAIN).await;
        }
        journal.acknowledge(batch.drain(..).map(|done| done.run));
        tokio::time::sleep(LINGER).await;
    }
}

fn item(done: &Done) -> CallbackItem {
    CallbackItem {
        log_id: done.run,
        log_date_time: done.scheduled_ms,
        handle_code: protocol::xxl::CODE_OK.into(),
        handle_msg: None,
    }
}

/// Results per report.
const BATCH_MAX: usize = 1_000;

/// Delay that lets a report collect more than one result.
const LINGER: Duration = Duration::from_millis(10);

/// Pause after no centre has accepted a report.
const AGAIN: Duration = Duration::from_millis(50);

/// Timeout of a centre; then the next one is tried. The next report may go to it again.
const ANSWER_WAIT: Duration = Duration::from_secs(3);
