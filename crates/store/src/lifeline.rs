//! This process's lifeline: a connection of its own that holds a lock, which the server gives up when the process dies.
//!
//! What the others' locks say counts only against what this same connection has seen before. Whoever was seen holding
//! and is then seen free has really let go: a server that was restarted, or another one behind the same address, has
//! other locks or none, but to reach it takes a new connection, which has seen nothing yet.

use std::collections::HashMap;
use std::time::Duration;

use engine::{LIFELINE_GRACE, LifelineId, Lifelines, StoreError};
use sqlx::Connection;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::server::{Server, surfaced};
use crate::session::{Row, SessionError};

/// The lifeline of this process, opened when it is first needed and again when it has broken.
pub struct Lifeline<DB: Server> {
    address: <DB::Connection as Connection>::Options,
    settings: &'static str,
    state: Mutex<State<DB>>,
}

enum State<DB: Server> {
    Broken,
    /// It could not be opened; nobody tries before then.
    Unreachable(Instant),
    Held(Held<DB>),
    /// There can be none here.
    Refused,
}

struct Held<DB: Server> {
    connection: DB::Connection,
    id: LifelineId,
    /// The server's name for the connection. With some poolers it changes from statement to statement.
    number: i64,
    seen: HashMap<LifelineId, Seen>,
}

/// What this connection has seen of another lifeline.
enum Seen {
    Holding,
    BrokenSince(Instant),
}

impl<DB: Server> Lifeline<DB> {
    /// One that is not open yet.
    pub fn new(address: <DB::Connection as Connection>::Options, settings: &'static str) -> Self {
        Lifeline { address, settings, state: Mutex::new(State::Broken) }
    }

    /// Confirms it, or opens it; says which others this connection has seen holding and then, for
    /// [`LIFELINE_GRACE`], broken.
    pub async fn look(&self) -> Result<Option<Lifelines>, SessionError> {
        let mut state = self.state.lock().await;
        match *state {
            State::Refused => return Ok(None),
            State::Unreachable(until) if Instant::now() < until => {
                let why = "the server could not be reached a moment ago";
                return Err(StoreError::Unavailable(why.into()).into());
            }
            _ => {}
        }
        // Whoever stops waiting half-way leaves a connection of which nobody knows what it says next.
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
            refused("statements go to one connection of the server and then to another, as with a pooler");
            *state = State::Refused;
            return Ok(None);
        };
        *state = State::Held(held);
        Ok(Some(lifelines))
    }

    /// Which of these are broken.
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
        // PostgreSQL gives a lock to whoever has it already.
        let broken = found.into_iter().filter(|(lifeline, is_free)| *is_free && *lifeline != own);
        Ok(broken.map(|(lifeline, _)| lifeline).collect())
    }

    async fn open(&self) -> Result<Option<Held<DB>>, SessionError> {
        let opened = bounded(async {
            let mut connection = DB::Connection::connect_with(&self.address).await?;
            DB::run(&mut connection, self.settings).await?;
            let id = LifelineId(fastrand::i64(1..=i64::MAX));
            let lock = format!("SELECT {}, {}", DB::CONNECTION_NUMBER, DB::hold(id));
            Ok((DB::numbers(&mut connection, lock).await, connection, id))
        });
        match opened.await.map_err(|error| surfaced::<DB>(&error))? {
            (Ok(rows), connection, id) => match rows.into_iter().next().map(pair).transpose()? {
                Some((number, 1)) => Ok(Some(Held { connection, id, number, seen: HashMap::new() })),
                _ => {
                    refused("the server did not give a lock that nobody has");
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
    /// Gives itself back only if it is still the same connection.
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
        let is_certain = |seen: &Seen| match seen {
            Seen::Holding => false,
            Seen::BrokenSince(since) => asked.saturating_duration_since(*since) >= LIFELINE_GRACE,
        };
        let certain = self.seen.iter().filter(|(_, seen)| is_certain(seen));
        let lifelines = Lifelines { own: self.id, broken: certain.map(|(lifeline, _)| *lifeline).collect() };
        let same = (number == self.number).then_some(self);
        Ok((same, lifelines))
    }

    /// Which connection answers, and whether the locks of the lives that `filter` finds are free.
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
            let unreadable = |_| sqlx::Error::Protocol("the answer about the locks is not readable".into());
            number = row.int().map_err(unreadable)?;
            if let Some(lifeline) = row.maybe_int().map_err(unreadable)? {
                // No answer about a lock is no evidence.
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

/// Said once: the store remembers.
fn refused(reason: &str) {
    tracing::warn!(
        reason,
        "this database lets no connection hold a lock; that a node has died is seen only when its lease ends"
    );
}

/// Between two attempts to open a lifeline. Until it is there, the lease alone decides.
const REOPEN_PAUSE: Duration = Duration::from_millis(400);

/// And up to so much more, so that nodes do not try in step.
const REOPEN_JITTER_MS: u64 = 200;

/// A connection that does not answer for so long is given up: others see its lock go, and the lease has not ended yet.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

async fn bounded<T>(answer: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    match timeout(ANSWER_TIMEOUT, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
    }
}
