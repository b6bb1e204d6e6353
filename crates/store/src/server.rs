//! Code shared by the two database servers: connections that may be lost at any moment, and statements for many
//! rows, in which most columns have the same value in all rows.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use engine::{LifelineId, StoreError};
use sqlx::error::DatabaseError;
use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::{Connection, Database, Pool};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::session::{Row, SessionError, Value};
use crate::writer::Addresses;

/// A kind of server: the parts that differ.
pub trait Server: Database {
    /// Runs a statement that returns no rows.
    fn run(
        connection: &mut Self::Connection,
        sql: &'static str,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Runs a query that returns only numbers.
    fn numbers(
        connection: &mut Self::Connection,
        sql: String,
    ) -> impl Future<Output = Result<Vec<Row>, sqlx::Error>> + Send;

    /// Begins a transaction.
    const BEGIN: &'static str;

    /// Commits the transaction. Returns the warning of the server, if it gave one: then the commit may be lost with this
    /// server.
    fn commit(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<Option<String>, sqlx::Error>> + Send;

    /// Query for a number that changes when the server may lack commits that an earlier one acknowledged, and the
    /// statement that leaves a gap in the ids of runs then.
    const TIMELINE: Option<(&'static str, &'static str)>;

    /// Classifies an error of the server.
    fn classify(error: &dyn DatabaseError) -> ErrorClass;

    /// Query that returns 1 if the server accepts writes.
    const ACCEPTS_WRITES: &'static str;

    /// SQL for the server's id of the current connection.
    const CONNECTION_NUMBER: &'static str;

    /// SQL for whether the lock of the lifeline `n.lifeline` is free.
    const IS_FREE: &'static str;

    /// Returns SQL that takes the lock of a lifeline until the connection ends; its result is 1 on success.
    fn hold(lifeline: LifelineId) -> String;
}

/// Class of a server error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// A conflict with another transaction.
    Collision,
    /// The value can never be stored.
    Value,
    /// The tables or our privileges are wrong.
    Schema,
    /// The server's disk is full.
    Full,
    /// The server is not available.
    Server,
}

/// Number of attempts of a call to get a connection, while the server is down or all connections are in use.
const ACQUIRE_TRIES: u32 = 3;

/// Timeout of each attempt. While the server is down, the pool backs off up to a fifth of this between its attempts
/// to connect, so a recovered server is used that soon.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(1);

/// Timeout for finding out why no connection can be made: a reachable machine answers at once.
const WHY_TIMEOUT: Duration = Duration::from_millis(200);

/// How long the next transaction waits for rollbacks, which take a millisecond each.
const ROLLBACK_TIMEOUT: Duration = Duration::from_millis(100);

/// Lock waits are limited to 5 s by the session's settings. A statement that takes longer than this will not be
/// answered any more: the connection is dead, and TCP would notice only after minutes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// The connection pool of a server.
pub struct Connections<DB: Server> {
    pool: Pool<DB>,
    addresses: Arc<Addresses<DB>>,
    /// Number of abandoned transactions that are still being rolled back.
    ending: watch::Sender<usize>,
    reach: Arc<Reach>,
    /// Number of connections opened.
    opened: Arc<AtomicU64>,
    /// Last timeline seen; 0 if there is none.
    timeline: Arc<AtomicI64>,
}

impl<DB: Server> Clone for Connections<DB> {
    fn clone(&self) -> Self {
        Connections {
            pool: self.pool.clone(),
            addresses: self.addresses.clone(),
            ending: self.ending.clone(),
            reach: self.reach.clone(),
            opened: self.opened.clone(),
            timeline: self.timeline.clone(),
        }
    }
}

/// Whether the server can be reached. While it may be down, one caller at a time tries, with pauses, and the others
/// wait for its result, so that a recovering server is not flooded.
#[derive(Default)]
struct Reach {
    away: AtomicBool,
    /// When the last attempt ended. Locked by the caller that tries now.
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

/// Pause between two attempts to reach a server that is down. A recovered server is used this soon.
const AWAY_PAUSE: Duration = Duration::from_millis(150);

/// Random addition to the pause, so that nodes do not retry at the same time.
const AWAY_JITTER_MS: u64 = 100;

impl<DB: Server> Connections<DB> {
    /// At most `most` connections, opened when needed; each runs `settings` first.
    pub fn new(addresses: &Arc<Addresses<DB>>, most: u32, settings: &'static str) -> Connections<DB> {
        let reach = Reach::default();
        // Which of several hosts accepts writes is found out before the first connection.
        reach.note(addresses.are_several());
        let (known, to_check) = (Arc::clone(addresses), Arc::clone(addresses));
        let opened = Arc::new(AtomicU64::new(0));
        let to_count = Arc::clone(&opened);
        let timeline = Arc::new(AtomicI64::new(0));
        let to_compare = Arc::clone(&timeline);
        let pool = PoolOptions::new()
            .max_connections(most.max(1))
            .acquire_timeout(ACQUIRE_TIMEOUT)
            // A transaction detects a dead connection by itself, which saves a round trip before each.
            .test_before_acquire(false)
            .before_acquire(move |_, about| {
                let is_current = known.is_current(about.age);
                Box::pin(async move { Ok(is_current) })
            })
            .after_connect(move |connection, _| {
                let (addresses, timeline) = (Arc::clone(&to_check), Arc::clone(&to_compare));
                // Before the connection is used.
                to_count.fetch_add(1, Ordering::SeqCst);
                Box::pin(async move {
                    addresses.check(connection).await?;
                    DB::run(connection, settings).await?;
                    leave_gap::<DB>(connection, &timeline).await
                })
            })
            .connect_lazy_with(addresses.current());
        Connections {
            pool,
            addresses: Arc::clone(addresses),
            ending: watch::Sender::new(0),
            reach: Arc::new(reach),
            opened,
            timeline,
        }
    }

    /// Timeline of the server, if it has one and was reached; else 0.
    pub fn timeline(&self) -> i64 {
        self.timeline.load(Ordering::SeqCst)
    }

    /// Number of connections opened so far.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::SeqCst)
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
                    // Either all connections are in use, or none can be made.
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

    /// Tries to reach a server that was down, when it is this caller's turn.
    async fn reach_out(&self) -> Result<PoolConnection<DB>, sqlx::Error> {
        let mut last = self.reach.turn.lock().await;
        if self.reach.is_away()
            && let Some(last) = *last
        {
            let pause = AWAY_PAUSE + Duration::from_millis(fastrand::u64(0..=AWAY_JITTER_MS));
            sleep_until(last + pause).await;
        }
        let acquired = async {
            if self.addresses.are_several() {
                self.pool.set_connect_options(self.addresses.find().await?);
            }
            self.pool.acquire().await
        };
        let acquired = acquired.await;
        // Updated before the next caller's turn, so that it does not wait if the server is back.
        self.reach.note(acquired.is_err());
        *last = Some(Instant::now());
        acquired
    }

    /// Finds out why no connection can be made, which the pool does not report.
    async fn why_not(&self) -> sqlx::Error {
        let address = self.pool.connect_options();
        match tokio::time::timeout(WHY_TIMEOUT, DB::Connection::connect_with(&address)).await {
            Ok(Err(error)) => error,
            // The server is back, or does not answer at all.
            _ => sqlx::Error::PoolTimedOut,
        }
    }
}

/// Leaves a gap in the ids of runs if the timeline of the server has changed, before the connection is used.
async fn leave_gap<DB: Server>(
    connection: &mut DB::Connection,
    known: &AtomicI64,
) -> Result<(), sqlx::Error> {
    let Some((query, gap)) = DB::TIMELINE else { return Ok(()) };
    let timeline = match DB::numbers(connection, query.to_owned()).await {
        Ok(rows) => rows.into_iter().next().and_then(|row| row.read().int().ok()).unwrap_or(0),
        // Some services of cloud providers do not have it; they lose no commits either.
        Err(sqlx::Error::Database(error)) => {
            tracing::debug!(%error, "the server does not return its timeline");
            0
        }
        Err(error) => return Err(error),
    };
    let before = known.load(Ordering::SeqCst);
    if timeline == 0 || timeline == before {
        return Ok(());
    }
    if before != 0 {
        tracing::info!(
            before,
            timeline,
            "another database server is the primary; the ids of runs continue after a gap"
        );
        DB::numbers(connection, gap.to_owned()).await?;
    }
    known.store(timeline, Ordering::SeqCst);
    Ok(())
}

/// A transaction on a pooled connection. It begins with the first statement that locks or writes: earlier reads see
/// committed data in either case, and so need no round trips for `BEGIN` and `COMMIT`.
pub struct Transaction<DB: Server> {
    connections: Connections<DB>,
    /// `None` when the transaction is over, or a stale connection could not be replaced.
    connection: Option<PoolConnection<DB>>,
    /// Number of connections that may still turn out to be stale. The one after them is new, and its failure is a
    /// real error.
    stale_max: u32,
    /// Whether it has one statement, which commits by itself, so that it never begins.
    single: bool,
    /// Whether the transaction has begun, so that its connection must not be replaced.
    begun: bool,
    /// Whether a statement is in progress or got no answer, so that the connection's next answer is unknown.
    unsettled: bool,
    /// The error after which the transaction cannot be committed.
    failed: Option<SessionError>,
}

impl<DB: Server> Transaction<DB> {
    /// Opens a transaction.
    ///
    /// It first waits for the rollback of abandoned transactions: a caller that retries at once would otherwise wait
    /// for its own locks, or skip the rows.
    pub async fn open(connections: &Connections<DB>) -> Result<Self, SessionError> {
        let mut ending = connections.ending.subscribe();
        // If rollbacks take long, their locks are handled like those of other transactions.
        let _ = tokio::time::timeout(ROLLBACK_TIMEOUT, ending.wait_for(|count| *count == 0)).await;
        let stale_max = connections.pool.size();
        let connection = connections.acquire().await.map_err(|error| surfaced::<DB>(&error))?;
        Ok(Transaction {
            connections: connections.clone(),
            connection: Some(connection),
            stale_max,
            single: false,
            begun: false,
            unsettled: false,
            failed: None,
        })
    }

    /// Opens a connection for one statement that commits by itself. If the connection turns out to be stale, the
    /// statement is sent again.
    pub async fn single(connections: &Connections<DB>) -> Result<Self, SessionError> {
        let mut transaction = Transaction::open(connections).await?;
        transaction.single = true;
        Ok(transaction)
    }

    /// Whether a statement that locks or writes must begin it.
    pub fn must_begin(&self) -> bool {
        !self.begun && !self.single
    }

    /// Marks it as begun by a statement, even if that statement failed.
    pub fn has_now_begun(&mut self) {
        self.begun = !self.single;
    }

    /// Begins it, unless it has begun.
    pub async fn begin(&mut self) -> Result<(), SessionError> {
        while self.must_begin() {
            let answer = bounded(DB::run(self.connection()?, DB::BEGIN)).await;
            if !self.is_replaced(&answer).await? {
                self.answered(answer)?;
                self.begun = true;
            }
        }
        Ok(())
    }

    /// The connection, for one statement; pass its answer to [`answered`](Self::answered).
    pub fn connection(&mut self) -> Result<&mut DB::Connection, SessionError> {
        self.unsettled = true;
        let gone = || StoreError::Unavailable("the connection is closed".into()).into();
        self.connection.as_deref_mut().ok_or_else(|| self.failed.clone().unwrap_or_else(gone))
    }

    /// Returns true if the connection was stale and was replaced, so that the statement must be sent again: the
    /// server was restarted while it was idle, and no transaction has begun on it.
    pub async fn is_replaced<T>(&mut self, answer: &Result<T, sqlx::Error>) -> Result<bool, SessionError> {
        let is_stale = answer.as_ref().is_err_and(|error| is_lost::<DB>(error) && !is_late(error));
        if is_stale {
            self.connections.reach.note(true);
        }
        if self.begun || self.stale_max == 0 || !is_stale {
            return Ok(false);
        }
        self.stale_max -= 1;
        // Before acquiring another, because the pool may be limited to one.
        if let Some(mut stale) = self.connection.take() {
            stale.close_on_drop();
        }
        let acquired = self.connections.acquire().await;
        self.connection = Some(self.answered(acquired)?);
        Ok(true)
    }

    /// Converts the answer of a statement, and remembers its error.
    pub fn answered<T>(&mut self, answer: Result<T, sqlx::Error>) -> Result<T, SessionError> {
        self.unsettled = answer.as_ref().is_err_and(is_lost::<DB>);
        answer.map_err(|error| {
            let error = surfaced::<DB>(&error);
            self.failed.get_or_insert_with(|| error.clone());
            error
        })
    }

    /// Forgets the error of a statement that the server refused, where the transaction goes on nevertheless.
    pub fn forgive(&mut self) {
        self.failed = None;
    }

    /// Commits. If there is no answer, it is unknown whether the commit was done.
    pub async fn commit(mut self) -> Result<(), SessionError> {
        if let Some(error) = self.failed.take() {
            // PostgreSQL would accept the commit but roll back.
            return Err(error);
        }
        if !self.begun {
            return Ok(());
        }
        let committed = bounded(DB::commit(self.connection()?)).await;
        match committed {
            Ok(None) => {
                // Returns it to the pool.
                self.connection.take();
                Ok(())
            }
            Ok(Some(warning)) => {
                self.connection.take();
                Err(StoreError::CommitUnknown(warning).into())
            }
            Err(sqlx::Error::Database(error)) if DB::classify(&*error) == ErrorClass::Collision => {
                self.unsettled = false;
                Err(SessionError::Collision(error.to_string()))
            }
            Err(error) => Err(StoreError::CommitUnknown(error.to_string()).into()),
        }
    }
}

impl<DB: Server> Drop for Transaction<DB> {
    /// Rolls back an uncommitted transaction at once, because its locks block other transactions. A connection in an
    /// unknown state is closed, which makes the server roll back.
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

/// Applies the answer timeout.
pub async fn bounded<T>(answer: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, "no response in time"))),
    }
}

/// Whether the connection cannot be used any more.
fn is_lost<DB: Server>(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::Tls(_) => true,
        // Errors that a server sends when it shuts down.
        sqlx::Error::Database(error) => DB::classify(&**error) == ErrorClass::Server,
        _ => false,
    }
}

/// Whether the answer timed out. Another connection would hardly do better.
fn is_late(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut)
}

/// Converts an error. No variant contains the address of the database, which may include a password.
pub fn surfaced<DB: Server>(error: &sqlx::Error) -> SessionError {
    let text = explained(error.to_string());
    let error = match error {
        sqlx::Error::Database(error) => match DB::classify(&**error) {
            ErrorClass::Collision => return SessionError::Collision(text),
            ErrorClass::Value => StoreError::Invalid(text),
            ErrorClass::Schema => StoreError::Schema(text),
            ErrorClass::Full => StoreError::DiskFull(text),
            ErrorClass::Server => StoreError::Unavailable(text),
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

/// Adds the cause and the remedy to errors of drivers and proxies that do not name them.
fn explained(text: String) -> String {
    let remedy = REMEDIES.iter().find(|(symptom, _)| text.contains(symptom)).map(|(_, remedy)| remedy);
    match remedy {
        Some(remedy) => format!("{remedy} ({text})"),
        None => text,
    }
}

/// Parts of error messages, and what they mean.
const REMEDIES: [(&str, &str); 5] = [
    (
        "unexpected response from SSLRequest",
        "the address is not that of a PostgreSQL server, or it is a proxy that has no primary server at the moment",
    ),
    (
        "HandshakeFailure",
        "the server supports none of the TLS ciphers of this program; update the server, or, in a trusted network, add \
         `?ssl-mode=DISABLED` to the URL of a MySQL server or `?sslmode=disable` to that of a PostgreSQL server",
    ),
    (
        "ProtocolVersion",
        "the server supports only TLS versions before 1.2; update the server, or, in a trusted network, add \
         `?ssl-mode=DISABLED` to the URL of a MySQL server or `?sslmode=disable` to that of a PostgreSQL server",
    ),
    (
        "unsupported startup parameter",
        "PgBouncer rejects a setting of the connection; set `ignore_startup_parameters = extra_float_digits` there",
    ),
    (
        "prepared statement \"sqlx_s_",
        "the database is behind a connection pooler in transaction mode, which mixes up the connections of its clients; \
         use session mode, for PgBouncer `pool_mode = session`",
    ),
];

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

/// The text between the `?` of a statement; a `?` in quotes is not a parameter.
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
    fn errors_of_drivers_name_the_remedy() {
        let check = |text: &str, expected: &str| {
            let explained = explained(text.to_owned());
            assert!(explained.contains(expected) && explained.contains(text), "{explained}");
        };
        check(
            "encountered unexpected or invalid data: unexpected response from SSLRequest: 0x00",
            "has no primary",
        );
        check(
            "error occurred while attempting to establish a TLS connection: received fatal alert: HandshakeFailure",
            "?ssl-mode=DISABLED",
        );
        check("prepared statement \"sqlx_s_1\" already exists", "pool_mode = session");
        check("unsupported startup parameter: extra_float_digits", "ignore_startup_parameters");
        assert_eq!(explained("connection refused".into()), "connection refused");
    }

    #[test]
    fn a_question_mark_in_quotes_is_text() {
        assert_eq!(
            pieces("a = ? AND b = '?''?' AND \"c?\" = ?"),
            ["a = ", " AND b = '?''?' AND \"c?\" = ", ""]
        );
        assert_eq!(pieces("SELECT 1"), ["SELECT 1"]);
    }
}
