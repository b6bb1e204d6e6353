//! What the two kinds of database server have in common: connections that may go at any moment, and statements about
//! many rows, in which most columns say the same for all of them.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::{LifelineId, StoreError};
use sqlx::error::DatabaseError;
use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::{Connection, Database, Pool};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::session::{Row, SessionError, Value};

/// A kind of server, as far as its ways are its own.
pub trait Server: Database {
    /// Runs a statement that answers nothing.
    fn run(
        connection: &mut Self::Connection,
        sql: &'static str,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Runs a query whose columns are all numbers.
    fn numbers(
        connection: &mut Self::Connection,
        sql: String,
    ) -> impl Future<Output = Result<Vec<Row>, sqlx::Error>> + Send;

    /// Begins a transaction.
    const BEGIN: &'static str;

    /// What an error that the server has sent means.
    fn fault(error: &dyn DatabaseError) -> Fault;

    /// The server's number for the connection that asks.
    const CONNECTION_NUMBER: &'static str;

    /// Whether nobody holds the lock of the lifeline `n.lifeline`.
    const IS_FREE: &'static str;

    /// Takes the lock of a lifeline for as long as the connection lasts; 1 if that worked.
    fn hold(lifeline: LifelineId) -> String;
}

/// What an error of the server means for whoever met it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Others were in the way.
    Collision,
    /// The value given can never be stored.
    Value,
    /// The tables or our rights are not what they should be.
    Schema,
    /// The server's disk is full.
    Full,
    /// The server cannot work at present.
    Server,
}

/// How long a call waits while the server is away, or all connections are in use: so often,
const ACQUIRE_TRIES: u32 = 3;

/// so long. While the server is away the pool tries to connect ever more rarely, up to a fifth of this apart: a server
/// that is back is used that soon.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long it takes to be told why: a machine that is there says so at once.
const WHY_TIMEOUT: Duration = Duration::from_millis(200);

/// How long the next transaction waits for rollbacks, which take a millisecond each.
const ROLLBACK_TIMEOUT: Duration = Duration::from_millis(100);

/// Locks are waited for at most 5 s, by the session's settings. What takes longer than this will not answer any more:
/// the link is dead, and TCP would notice only after minutes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// The connections to a server.
pub struct Connections<DB: Server> {
    pool: Pool<DB>,
    /// How many transactions were given up and are still being rolled back.
    ending: watch::Sender<usize>,
    reach: Arc<Reach>,
}

impl<DB: Server> Clone for Connections<DB> {
    fn clone(&self) -> Self {
        Connections { pool: self.pool.clone(), ending: self.ending.clone(), reach: self.reach.clone() }
    }
}

/// Whether the server can be reached. While it may be away, one caller at a time tries, with pauses, and the others wait for
/// what it finds: a server that recovers is not met by a crowd.
#[derive(Default)]
struct Reach {
    away: AtomicBool,
    /// When the last attempt ended. Held by the caller whose turn it is.
    turn: Mutex<Option<Instant>>,
}

impl Reach {
    fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    fn note(&self, away: bool) {
        self.away.store(away, Ordering::Relaxed);
    }
}

/// Between two attempts to reach a server that is away. One that is back is used this soon.
const AWAY_PAUSE: Duration = Duration::from_millis(150);

/// And up to so much more, so that nodes do not try in step.
const AWAY_JITTER_MS: u64 = 100;

impl<DB: Server> Connections<DB> {
    /// At most so many, opened when they are needed; each is told the settings first.
    pub fn new(
        address: <DB::Connection as Connection>::Options,
        most: u32,
        settings: &'static str,
    ) -> Connections<DB> {
        let pool = PoolOptions::new()
            .max_connections(most.max(1))
            .acquire_timeout(ACQUIRE_TIMEOUT)
            // A transaction finds out by itself, without a round trip before each.
            .test_before_acquire(false)
            .after_connect(move |connection, _| Box::pin(DB::run(connection, settings)))
            .connect_lazy_with(address);
        Connections { pool, ending: watch::Sender::new(0), reach: Arc::default() }
    }

    async fn acquire(&self) -> Result<PoolConnection<DB>, sqlx::Error> {
        let deadline = Instant::now() + ACQUIRE_TIMEOUT * ACQUIRE_TRIES;
        loop {
            let acquired = if self.reach.is_away() {
                match timeout_at(deadline, self.reach_out()).await {
                    Ok(acquired) => acquired,
                    Err(_) => Err(sqlx::Error::PoolTimedOut),
                }
            } else {
                self.pool.acquire().await
            };
            match acquired {
                Ok(connection) => {
                    self.reach.note(false);
                    return Ok(connection);
                }
                Err(sqlx::Error::PoolTimedOut) => {
                    // Whether all are in use, or none can be had.
                    self.reach.note(self.pool.size() == 0);
                    if Instant::now() >= deadline {
                        let is_away = self.reach.is_away();
                        return Err(if is_away { self.why_not().await } else { sqlx::Error::PoolTimedOut });
                    }
                }
                Err(error) => {
                    self.reach.note(true);
                    return Err(error);
                }
            }
        }
    }

    /// Tries to reach a server that was away, when it is this caller's turn.
    async fn reach_out(&self) -> Result<PoolConnection<DB>, sqlx::Error> {
        let mut last = self.reach.turn.lock().await;
        if self.reach.is_away()
            && let Some(last) = *last
        {
            let pause = AWAY_PAUSE + Duration::from_millis(fastrand::u64(0..=AWAY_JITTER_MS));
            sleep_until(last + pause).await;
        }
        let acquired = self.pool.acquire().await;
        // Before the next caller has its turn, and finds that there is nothing to wait for.
        self.reach.note(acquired.is_err());
        *last = Some(Instant::now());
        acquired
    }

    /// Why no connection could be made, which the pool keeps to itself.
    async fn why_not(&self) -> sqlx::Error {
        let address = self.pool.connect_options();
        match tokio::time::timeout(WHY_TIMEOUT, DB::Connection::connect_with(&address)).await {
            Ok(Err(error)) => error,
            // It is back, or nobody answers at all.
            _ => sqlx::Error::PoolTimedOut,
        }
    }
}

/// A transaction on a pooled connection. It begins with the first statement that locks or writes: what is only read
/// before that sees what is committed by then in either case, and needs no round trips for a beginning and an end.
pub struct Transaction<DB: Server> {
    connections: Connections<DB>,
    /// Gone when the transaction is over, or no other could be had in its place.
    connection: Option<PoolConnection<DB>>,
    /// How many connections may still turn out to be stale. The one after them is new, and its failure is news.
    stale_max: u32,
    /// Something may depend on it.
    begun: bool,
    /// A statement is under way, or did not get an answer: nobody knows what the connection would say next.
    unsettled: bool,
    /// The error after which nothing of it can be committed.
    failed: Option<SessionError>,
}

impl<DB: Server> Transaction<DB> {
    /// Opens one.
    ///
    /// It finds the locks of transactions that were given up before gone: who tries again at once would otherwise
    /// wait for its own locks, or skip the rows.
    pub async fn open(connections: &Connections<DB>) -> Result<Self, SessionError> {
        let mut ending = connections.ending.subscribe();
        // Should rollbacks take long, or never cease, the locks they hold are no worse than others'.
        let _ = tokio::time::timeout(ROLLBACK_TIMEOUT, ending.wait_for(|count| *count == 0)).await;
        let stale_max = connections.pool.size();
        let connection = connections.acquire().await.map_err(|error| surfaced::<DB>(&error))?;
        Ok(Transaction {
            connections: connections.clone(),
            connection: Some(connection),
            stale_max,
            begun: false,
            unsettled: false,
            failed: None,
        })
    }

    /// Whether it has begun, so that all statements must go to the same connection.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// A statement has begun it, whatever else that came to.
    pub fn has_now_begun(&mut self) {
        self.begun = true;
    }

    /// Begins it, unless it has begun.
    pub async fn begin(&mut self) -> Result<(), SessionError> {
        while !self.begun {
            let answer = bounded(DB::run(self.connection()?, DB::BEGIN)).await;
            if !self.is_replaced(&answer).await? {
                self.answered(answer)?;
                self.begun = true;
            }
        }
        Ok(())
    }

    /// The connection, for one statement, whose answer goes to [`answered`](Self::answered).
    pub fn connection(&mut self) -> Result<&mut DB::Connection, SessionError> {
        self.unsettled = true;
        let gone = || StoreError::Unavailable("the connection has gone".into()).into();
        self.connection.as_deref_mut().ok_or_else(|| self.failed.clone().unwrap_or_else(gone))
    }

    /// Whether to ask again, of another connection: this one was idle while the server was restarted, and nothing has
    /// begun on it.
    pub async fn is_replaced<T>(&mut self, answer: &Result<T, sqlx::Error>) -> Result<bool, SessionError> {
        let is_stale = answer.as_ref().is_err_and(|error| is_lost::<DB>(error) && !is_late(error));
        if is_stale {
            self.connections.reach.note(true);
        }
        if self.begun || self.stale_max == 0 || !is_stale {
            return Ok(false);
        }
        self.stale_max -= 1;
        // Before another is asked for: there may be room for one only.
        if let Some(mut stale) = self.connection.take() {
            stale.close_on_drop();
        }
        let acquired = self.connections.acquire().await;
        self.connection = Some(self.answered(acquired)?);
        Ok(true)
    }

    /// The meaning of what a statement has answered.
    pub fn answered<T>(&mut self, answer: Result<T, sqlx::Error>) -> Result<T, SessionError> {
        self.unsettled = answer.as_ref().is_err_and(is_lost::<DB>);
        answer.map_err(|error| {
            let error = surfaced::<DB>(&error);
            self.failed.get_or_insert_with(|| error.clone());
            error
        })
    }

    /// Commits. Whether a commit without an answer was done is not known.
    pub async fn commit(mut self) -> Result<(), SessionError> {
        if let Some(error) = self.failed.take() {
            // PostgreSQL would say yes to the commit, and mean a rollback.
            return Err(error);
        }
        if !self.begun {
            return Ok(());
        }
        let committed = bounded(DB::run(self.connection()?, "COMMIT")).await;
        match committed {
            Ok(()) => {
                // Back to the pool.
                self.connection.take();
                Ok(())
            }
            Err(sqlx::Error::Database(error)) if DB::fault(&*error) == Fault::Collision => {
                self.unsettled = false;
                Err(SessionError::Collision(error.to_string()))
            }
            Err(error) => Err(StoreError::CommitUnknown(error.to_string()).into()),
        }
    }
}

impl<DB: Server> Drop for Transaction<DB> {
    /// What is not committed is rolled back at once: its locks stand in everybody's way. A connection that cannot say
    /// so is closed, and the server knows what that means.
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        if self.unsettled {
            connection.close_on_drop();
            return;
        }
        if !self.begun {
            return;
        }
        let ending = self.connections.ending.clone();
        ending.send_modify(|count| *count += 1);
        tokio::spawn(async move {
            if bounded(DB::run(&mut connection, "ROLLBACK")).await.is_err() {
                connection.close_on_drop();
            }
            ending.send_modify(|count| *count -= 1);
        });
    }
}

/// Gives up on an answer that will not come.
pub async fn bounded<T>(answer: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"))),
    }
}

/// Whether the connection is of no use any more.
fn is_lost<DB: Server>(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::Tls(_) => true,
        // What a server says to its clients when it goes.
        sqlx::Error::Database(error) => DB::fault(&**error) == Fault::Server,
        _ => false,
    }
}

/// Whether nobody has answered for long. Another connection would hardly do better.
fn is_late(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut)
}

/// The error as the steps see it. No variant repeats the address of the database, which may hold a password.
pub fn surfaced<DB: Server>(error: &sqlx::Error) -> SessionError {
    let text = error.to_string();
    let error = match error {
        sqlx::Error::Database(error) => match DB::fault(&**error) {
            Fault::Collision => return SessionError::Collision(text),
            Fault::Value => StoreError::Invalid(text),
            Fault::Schema => StoreError::Schema(text),
            Fault::Full => StoreError::DiskFull(text),
            Fault::Server => StoreError::Unavailable(text),
        },
        sqlx::Error::Configuration(_) => StoreError::Invalid(text),
        sqlx::Error::PoolTimedOut => {
            let waited = ACQUIRE_TIMEOUT * ACQUIRE_TRIES;
            StoreError::Unavailable(format!("no connection within {} s", waited.as_secs()))
        }
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => StoreError::Schema(text),
        _ => StoreError::Unavailable(text),
    };
    SessionError::Store(error)
}

/// One column of many rows.
pub enum Column<'a> {
    /// Every row has this value.
    Same(&'a Value),
    /// The rows differ.
    Each(Vec<&'a Value>),
}

/// The rows, column by column. There is at least one row.
pub fn columns(rows: &[Vec<Value>]) -> Vec<Column<'_>> {
    let width = rows.first().map_or(0, Vec::len);
    let column = |index: usize| {
        let values: Vec<&Value> = rows.iter().map(|row| &row[index]).collect();
        if values.iter().all(|value| *value == values[0]) {
            Column::Same(values[0])
        } else {
            Column::Each(values)
        }
    };
    (0..width).map(column).collect()
}

/// The text between the `?` of a statement, of which those in quotes are no parameters.
pub fn pieces(sql: &str) -> Vec<&str> {
    let (mut pieces, mut from, mut quote) = (Vec::new(), 0, None);
    for (at, byte) in sql.bytes().enumerate() {
        match (quote, byte) {
            (None, b'?') => {
                pieces.push(&sql[from..at]);
                from = at + 1;
            }
            (None, b'\'' | b'"' | b'`') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    pieces.push(&sql[from..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_mark_in_quotes_is_text() {
        assert_eq!(
            pieces("a = ? AND b = '?''?' AND \"c?\" = ?"),
            ["a = ", " AND b = '?''?' AND \"c?\" = ", ""]
        );
        assert_eq!(pieces("SELECT 1"), ["SELECT 1"]);
    }
}
