//! The lifeline of this process: a dedicated connection that holds a lock, which the server releases when the
//! process dies.
//!
//! The locks of other nodes are compared only with earlier observations of this same connection. A lock that was
//! seen held and is then seen free was really released: a restarted server, or another one behind the same address,
//! has other locks or none, but reaching it takes a new connection, which has seen nothing yet.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use engine::{LIFELINE_GRACE, LifelineId, Lifelines, StoreError};
use sqlx::Connection;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::server::{Server, surfaced};
use crate::session::{Row, SessionError};
use crate::writer::Addresses;

/// The lifeline of this process, opened when it is first needed and again after it broke.
pub struct Lifeline<DB: Server> {
    addresses: Arc<Addresses<DB>>,
    settings: &'static str,
    state: Mutex<State<DB>>,
}

enum State<DB: Server> {
    Broken,
    /// It could not be opened; no attempt is made before this time.
    Unreachable(Instant),
    Held(Held<DB>),
    /// This database does not support lifelines.
    Refused,
}

struct Held<DB: Server> {
    connection: DB::Connection,
    id: LifelineId,
    /// The server's id of the connection. With some connection poolers it changes from statement to statement.
    number: i64,
    seen: HashMap<LifelineId, Seen>,
}

/// Observed state of another lifeline on this connection.
enum Seen {
    Holding,
    BrokenSince(Instant),
}

impl<DB: Server> Lifeline<DB> {
    /// Creates a lifeline that is not open yet.
    pub fn new(addresses: Arc<Addresses<DB>>, settings: &'static str) -> Self {
        Lifeline { addresses, settings, state: Mutex::new(State::Broken) }
    }

    /// Confirms it, or opens it; returns which others this connection has seen held and then, for
    /// [`LIFELINE_GRACE`], broken.
    pub async fn look(&self) -> Result<Option<Lifelines>, SessionError> {
        let mut state = self.state.lock().await;
        match *state {
            State::Refused => return Ok(None),
            State::Unreachable(until) if Instant::now() < until => {
                let why = "the server was unreachable a moment ago";
                return Err(StoreError::Unavailable(why.into()).into());
            }
            _ => {}
        }
        // Left as broken if this future is dropped half-way, because the connection's next answer would then be
        // unknown.
        let before = match std::mem::replace(&mut *state, State::Broken) {
            State::Held(held) => held,
            _ => match self.open().await {
                Ok(Some(held)) => held,
                Ok(None) => {
                    *state = State::Refused;
                    return Ok(None);
                }
                Err(error) => {
                    let pause = REOPEN_PAUSE + Duration::from_millis(fastrand::u64(0..=REOPEN_JITTER_MS));
                    *state = State::Unreachable(Instant::now() + pause);
                    return Err(error);
                }
            },
        };
        let (held, lifelines) = before.look().await.map_err(|error| surfaced::<DB>(&error))?;
        let Some(held) = held else {
            refused("statements use different connections of the server, as with a connection pooler");
            *state = State::Refused;
            return Ok(None);
        };
        *state = State::Held(held);
        Ok(Some(lifelines))
    }

    /// Returns which of these are broken.
    pub async fn broken(&self, lifelines: &[LifelineId]) -> Result<Vec<LifelineId>, SessionError> {
        let mut state = self.state.lock().await;
        if lifelines.is_empty() || !matches!(*state, State::Held(_)) {
            return Ok(Vec::new());
        }
        let State::Held(mut held) = std::mem::replace(&mut *state, State::Broken) else {
            return Ok(Vec::new());
        };
        let ids: Vec<String> = lifelines.iter().map(|lifeline| lifeline.0.to_string()).collect();
        let answer = held.ask(&format!("n.lifeline IN ({})", ids.join(", "))).await;
        let (_, found) = answer.map_err(|error| surfaced::<DB>(&error))?;
        let own = held.id;
        *state = State::Held(held);
        // PostgreSQL grants a lock again to the connection that already holds it.
        let broken = found.into_iter().filter(|(lifeline, is_free)| *is_free && *lifeline != own);
        Ok(broken.map(|(lifeline, _)| lifeline).collect())
    }

    async fn open(&self) -> Result<Option<Held<DB>>, SessionError> {
        let opened = bounded(async {
            let mut connection = DB::Connection::connect_with(&self.addresses.current()).await?;
            DB::run(&mut connection, self.settings).await?;
            let id = LifelineId(fastrand::i64(1..=i64::MAX));
            let lock = format!("SELECT {}, {}", DB::CONNECTION_NUMBER, DB::hold(id));
            Ok((DB::numbers(&mut connection, lock).await, connection, id))
        });
        match opened.await.map_err(|error| surfaced::<DB>(&error))? {
            (Ok(rows), connection, id) => match rows.into_iter().next().map(pair).transpose()? {
                Some((number, 1)) => Ok(Some(Held { connection, id, number, seen: HashMap::new() })),
                _ => {
                    refused("the server did not give a free lock");
                    Ok(None)
                }
            },
            (Err(sqlx::Error::Database(error)), ..) => {
                refused(&error.to_string());
                Ok(None)
            }
            (Err(error), ..) => Err(surfaced::<DB>(&error)),
        }
    }
}

impl<DB: Server> Held<DB> {
    /// Returns itself only if it is still the same connection.
    async fn look(mut self) -> Result<(Option<Self>, Lifelines), sqlx::Error> {
        let asked = Instant::now();
        let (number, found) = self.ask("n.fenced = 0").await?;
        let answered = Instant::now();
        self.seen.retain(|lifeline, _| found.iter().any(|(found, _)| found == lifeline));
        for (lifeline, is_free) in found.into_iter().filter(|(lifeline, _)| *lifeline != self.id) {
            match (is_free, self.seen.get(&lifeline)) {
                (false, _) => _ = self.seen.insert(lifeline, Seen::Holding),
                (true, Some(Seen::Holding)) => _ = self.seen.insert(lifeline, Seen::BrokenSince(answered)),
                (true, _) => {}
            }
        }
        let (mut broken, mut next) = (Vec::new(), None::<Duration>);
        for (lifeline, seen) in &self.seen {
            let Seen::BrokenSince(since) = seen else { continue };
            if asked.saturating_duration_since(*since) >= LIFELINE_GRACE {
                broken.push(*lifeline);
            } else {
                let left = (*since + LIFELINE_GRACE).saturating_duration_since(answered);
                next = Some(next.map_or(left, |next| next.min(left)));
            }
        }
        let lifelines = Lifelines { own: self.id, broken, next };
        let same = (number == self.number).then_some(self);
        Ok((same, lifelines))
    }

    /// Returns the id of the answering connection, and whether the locks of the lifelines that match `filter` are
    /// free.
    async fn ask(&mut self, filter: &str) -> Result<(i64, Vec<(LifelineId, bool)>), sqlx::Error> {
        let sql = format!(
            "SELECT {}, n.lifeline, {} FROM (SELECT 1 AS one) AS always \
             LEFT JOIN tw_node n ON n.lifeline IS NOT NULL AND {filter}",
            DB::CONNECTION_NUMBER,
            DB::IS_FREE,
        );
        let (mut number, mut found) = (0, Vec::new());
        for row in bounded(DB::numbers(&mut self.connection, sql)).await? {
            let mut row = row.read();
            let unreadable = |_| sqlx::Error::Protocol("failed to read the state of the locks".into());
            number = row.int().map_err(unreadable)?;
            if let Some(lifeline) = row.maybe_int().map_err(unreadable)? {
                // A missing answer about a lock is no evidence.
                let is_free = row.maybe_int().map_err(unreadable)? == Some(1);
                found.push((LifelineId(lifeline), is_free));
            }
        }
        Ok((number, found))
    }
}

fn pair(row: Row) -> Result<(i64, i64), SessionError> {
    let mut row = row.read();
    Ok((row.int()?, row.maybe_int()?.unwrap_or(0)))
}

/// Called once: the store remembers the refusal.
fn refused(reason: &str) {
    tracing::warn!(
        reason,
        "connections of this database cannot hold locks; a dead node is detected only when its lease ends"
    );
}

/// Pause between two attempts to open a lifeline. Until it is open, only the lease decides.
const REOPEN_PAUSE: Duration = Duration::from_millis(400);

/// Random addition to the pause, so that nodes do not retry at the same time.
const REOPEN_JITTER_MS: u64 = 200;

/// A connection that does not answer for this long is closed: other nodes see its lock released before the lease
/// ends.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

async fn bounded<T>(answer: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    match timeout(ANSWER_TIMEOUT, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
    }
}
