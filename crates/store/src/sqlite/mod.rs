//! SQLite: one file, one writer.
//!
//! Transactions take turns on one connection. For a file it is in a thread of its own, so that waiting for the disk
//! blocks no other task; in memory, for tests and simulations, statements run in the calling thread, and nothing
//! depends on other threads.

mod connection;
mod lock;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use async_trait::async_trait;
use cron::Zone;
use engine::StoreError;
use futures_util::FutureExt;
use timer::{Clock, SystemClock, Timestamp};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};

use crate::Options;
use crate::database::{Database, surfaced};
use crate::schema::{self, Dialect, Schema};
use crate::session::{Backend, Columns, Lock, Row, Session, SessionError, Value};
use connection::Sqlite;
use lock::FileLock;

/// Opens databases in a SQLite file, or in memory.
pub struct SqliteStore;

impl SqliteStore {
    /// Opens or creates the file, with exclusive use unless [`Options::shared`].
    pub async fn open(path: &Path, options: Options) -> Result<Database, StoreError> {
        create_private(path)?;
        let lock = FileLock::take(path, options.shared)?;
        let link = Link::thread(path, lock)?;
        let backend = SqliteBackend::new(link, Arc::new(SystemClock::new())).await?;
        let store = Database::new(backend, &options);
        if !options.shared {
            // We have the file exclusively, so all earlier users of it are dead.
            store.end_all_lives().await?;
        }
        Ok(store)
    }

    /// Lists the tables and migrations that opening the file would add.
    pub async fn pending(path: &Path) -> Result<Vec<String>, StoreError> {
        let sqlite = Sqlite::look(path).map_err(surfaced)?;
        let link = Arc::new(Mutex::new(Link::Inline(sqlite)));
        // No transaction is begun: each query reads by itself and blocks no writer.
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let mut session = SqliteSession::single(&link, &clock).await;
        schema::pending(&mut session, Dialect::Sqlite).await.map_err(surfaced)
    }

    /// A store that ends with the process, in UTC. Runs without threads; `clock` is the database's clock.
    pub fn in_memory(clock: Arc<dyn Clock>) -> Result<Database, StoreError> {
        Self::in_memory_with(clock, &Options { zone: Zone::utc(), ..Options::default() })
    }

    /// The same, with options.
    pub fn in_memory_with(clock: Arc<dyn Clock>, options: &Options) -> Result<Database, StoreError> {
        let link = Link::Inline(Sqlite::in_memory().map_err(surfaced)?);
        let backend =
            SqliteBackend::new(link, clock).now_or_never().expect("the connection has one owner")?;
        Ok(Database::new(backend, options))
    }
}

/// Creates the file readable only by its owner, because it contains the parameters of jobs.
fn create_private(path: &Path) -> Result<(), StoreError> {
    let mut create = std::fs::OpenOptions::new();
    create.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut create, 0o600);
    match create.open(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(StoreError::Unavailable(format!(
            "failed to open {}: {error}; check that its directory exists and is writable",
            path.display()
        ))),
    }
}

/// The one connection, behind a lock.
pub struct SqliteBackend {
    link: Arc<Mutex<Link>>,
    clock: Arc<dyn Clock>,
    schema: Schema,
    /// Version of the file's content at the last look. It changes with each commit of another connection.
    data_version: AtomicI64,
}

impl SqliteBackend {
    async fn new(link: Link, clock: Arc<dyn Clock>) -> Result<SqliteBackend, StoreError> {
        let link = Arc::new(Mutex::new(link));
        let prepared = async {
            let mut session = SqliteSession::open(&link, &clock).await;
            let schema = schema::prepare(&mut session, Dialect::Sqlite).await?;
            Box::new(session).commit().await?;
            Ok(schema)
        };
        let schema = prepared.await.map_err(surfaced)?;
        Ok(SqliteBackend { link, clock, schema, data_version: AtomicI64::new(NEVER) })
    }
}

#[async_trait]
impl Backend for SqliteBackend {
    async fn begin(&self) -> Result<Box<dyn Session>, SessionError> {
        Ok(Box::new(SqliteSession::open(&self.link, &self.clock).await))
    }

    async fn single(&self) -> Result<Box<dyn Session>, SessionError> {
        Ok(Box::new(SqliteSession::single(&self.link, &self.clock).await))
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn clock(&self) -> Option<Timestamp> {
        Some(self.clock.now())
    }

    #[cfg(feature = "conformance")]
    async fn doom(&self) -> Result<(), SessionError> {
        SqliteSession::single(&self.link, &self.clock).await.run(Sqlite::doom).await
    }

    #[cfg(feature = "conformance")]
    async fn lose(&self) -> Result<(), SessionError> {
        SqliteSession::single(&self.link, &self.clock).await.run(Sqlite::lose).await
    }

    async fn others_wrote(&self) -> Result<bool, SessionError> {
        let mut session = SqliteSession::single(&self.link, &self.clock).await;
        // A database in memory has no other connections: all who write to it use this one.
        if matches!(*session.link, Link::Inline(_)) {
            return Ok(true);
        }
        let version = match session.query("PRAGMA data_version", &[], Lock::None).await?.into_iter().next() {
            Some(row) => row.read().int()?,
            None => return Ok(true),
        };
        Ok(self.data_version.swap(version, Ordering::Relaxed) != version)
    }
}

/// No version of a file.
const NEVER: i64 = -1;

/// Where the connection is.
enum Link {
    Inline(Sqlite),
    Thread { work: Option<SyncSender<Work>>, thread: Option<JoinHandle<()>> },
}

type Work = Box<dyn FnOnce(&Sqlite) + Send>;

/// A transaction has at most one statement in progress and its end queued behind it.
const QUEUE: usize = 4;

impl Link {
    fn thread(path: &Path, lock: FileLock) -> Result<Link, StoreError> {
        let sqlite = Sqlite::open(path).map_err(|error| match surfaced(error) {
            StoreError::Schema(reason) => {
                StoreError::Schema(format!("{} is not a usable database: {reason}", path.display()))
            }
            other => other,
        })?;
        let (work, queue): (SyncSender<Work>, Receiver<Work>) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("tickwright-sqlite".into())
            .spawn(move || {
                // The lock is released after the connection is closed, not before.
                let _lock = lock;
                let sqlite = sqlite;
                queue.into_iter().for_each(|work| work(&sqlite));
            })
            .map_err(|error| {
                StoreError::Unavailable(format!("failed to start the thread of the database: {error}"))
            })?;
        Ok(Link::Thread { work: Some(work), thread: Some(thread) })
    }
}

impl Drop for Link {
    /// Waits until the file is closed, so that it can be opened again at once.
    fn drop(&mut self) {
        if let Link::Thread { work, thread } = self {
            drop(work.take());
            if let Some(thread) = thread.take() {
                // It ends by a panic only if a statement panicked, which its caller has seen.
                let _ = thread.join();
            }
        }
    }
}

/// A transaction that has the connection. As on the database servers, it begins with the first statement that locks or
/// writes.
struct SqliteSession {
    link: OwnedMutexGuard<Link>,
    clock: Arc<dyn Clock>,
    /// Whether each statement commits by itself.
    is_single: bool,
    /// Whether it has begun and is not over.
    open: bool,
    /// Statements that no caller needs an answer to. They run together with the next one that has an answer: the way
    /// to the thread and back costs as much as a small statement.
    deferred: Vec<Deferred>,
}

type Deferred = Box<dyn FnOnce(&Sqlite) -> Result<(), SessionError> + Send>;

impl SqliteSession {
    async fn open(link: &Arc<Mutex<Link>>, clock: &Arc<dyn Clock>) -> SqliteSession {
        let link = link.clone().lock_owned().await;
        let deferred = Vec::new();
        SqliteSession { link, clock: clock.clone(), is_single: false, open: false, deferred }
    }

    /// Without a transaction: each statement commits by itself.
    async fn single(link: &Arc<Mutex<Link>>, clock: &Arc<dyn Clock>) -> SqliteSession {
        let mut session = SqliteSession::open(link, clock).await;
        session.is_single = true;
        session
    }

    /// Begins the transaction, unless it has begun or there is none.
    fn begin(&mut self) {
        if !self.open && !self.is_single {
            self.open = true;
            self.deferred.push(Box::new(Sqlite::begin));
        }
    }

    /// Adds a statement to the transaction. Its error is returned by the next one that runs.
    fn defer(&mut self, work: impl FnOnce(&Sqlite) -> Result<(), SessionError> + Send + 'static) {
        self.begin();
        self.deferred.push(Box::new(work));
    }

    /// Runs `work` in the thread of the connection, after the deferred statements.
    async fn run<T, F>(&mut self, work: F) -> Result<T, SessionError>
    where
        T: Send + 'static,
        F: FnOnce(&Sqlite) -> Result<T, SessionError> + Send + 'static,
    {
        let deferred = std::mem::take(&mut self.deferred);
        let work = move |sqlite: &Sqlite| {
            for statement in deferred {
                statement(sqlite)?;
            }
            work(sqlite)
        };
        let answer = match &mut *self.link {
            Link::Inline(sqlite) => return work(sqlite),
            Link::Thread { work: queue, .. } => {
                let (reply, answer) = oneshot::channel();
                let run: Work = Box::new(move |sqlite| {
                    // The caller may have given up; then the end of the transaction is in the queue.
                    let _ = reply.send(work(sqlite));
                });
                queue.as_ref().and_then(|queue| queue.send(run).ok()).map(|()| answer)
            }
        };
        match answer {
            Some(answer) => answer.await.unwrap_or_else(|_| Err(gone())),
            None => Err(gone()),
        }
    }
}

fn gone() -> SessionError {
    StoreError::Unavailable("its thread has ended; restart the process".into()).into()
}

impl Drop for SqliteSession {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        match &mut *self.link {
            Link::Inline(sqlite) => sqlite.rollback(),
            Link::Thread { work: Some(queue), .. } => {
                // A closed queue means that every transaction has ended.
                let _ = queue.send(Box::new(Sqlite::rollback));
            }
            Link::Thread { work: None, .. } => {}
        }
    }
}

#[async_trait]
impl Session for SqliteSession {
    async fn query(&mut self, sql: &str, params: &[Value], lock: Lock) -> Result<Vec<Row>, SessionError> {
        if lock != Lock::None {
            self.begin();
        }
        let (sql, params) = (sql.to_owned(), params.to_vec());
        self.run(move |sqlite| sqlite.query(&sql, &params)).await
    }

    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64, SessionError> {
        self.begin();
        let (sql, params) = (sql.to_owned(), params.to_vec());
        self.run(move |sqlite| sqlite.execute(&sql, &params)).await
    }

    async fn insert(&mut self, into: Columns<'_>, rows: Vec<Vec<Value>>) -> Result<(), SessionError> {
        if rows.is_empty() {
            return Ok(());
        }
        let sql = insert_sql(into);
        self.defer(move |sqlite| sqlite.execute_each(&sql, &rows).map(|_| ()));
        Ok(())
    }

    async fn insert_numbered(
        &mut self,
        into: Columns<'_>,
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<i64>, SessionError> {
        self.begin();
        let sql = insert_sql(into);
        self.run(move |sqlite| sqlite.insert_each(&sql, &rows)).await
    }

    async fn update(&mut self, set: Columns<'_>, rows: Vec<Vec<Value>>) -> Result<(), SessionError> {
        if rows.is_empty() {
            return Ok(());
        }
        let sql = update_sql(set);
        self.defer(move |sqlite| sqlite.execute_each(&sql, &rows).map(|_| ()));
        Ok(())
    }

    async fn compare_and_set(
        &mut self,
        set: Columns<'_>,
        rows: Vec<Vec<Value>>,
    ) -> Result<u64, SessionError> {
        self.begin();
        let sql = update_sql(set);
        self.run(move |sqlite| sqlite.execute_each(&sql, &rows)).await
    }

    async fn delete(&mut self, table: &str, key: &str, ids: &[i64]) -> Result<(), SessionError> {
        let sql = format!("DELETE FROM {table} WHERE {key} = ?");
        let rows: Vec<Vec<Value>> = ids.iter().map(|id| vec![Value::Int(*id)]).collect();
        self.defer(move |sqlite| sqlite.execute_each(&sql, &rows).map(|_| ()));
        Ok(())
    }

    fn clock(&self) -> (&'static str, Option<Value>) {
        ("?", Some(self.clock.now().into()))
    }

    async fn now(&mut self) -> Result<Timestamp, SessionError> {
        Ok(self.clock.now())
    }

    async fn commit(mut self: Box<Self>) -> Result<(), SessionError> {
        if !self.open {
            // Without a transaction, statements may still wait to be run.
            return if self.deferred.is_empty() { Ok(()) } else { self.run(|_| Ok(())).await };
        }
        let committed = self.run(Sqlite::commit).await;
        // The transaction is over, unless a deferred statement failed.
        self.open = committed.is_err();
        committed
    }
}

fn insert_sql(into: Columns<'_>) -> String {
    let marks = vec!["?"; into.columns.len()].join(", ");
    format!("INSERT INTO {} ({}) VALUES ({marks})", into.table, into.columns.join(", "))
}

/// Rows consist of their keys followed by their columns, so the placeholders are numbered.
fn update_sql(set: Columns<'_>) -> String {
    let numbered = |columns: &[&str], from: usize, between: &str| {
        let terms = columns.iter().enumerate().map(|(i, column)| format!("{column} = ?{}", from + i));
        terms.collect::<Vec<_>>().join(between)
    };
    let columns = numbered(set.columns, set.keys.len() + 1, ", ");
    let keys = numbered(set.keys, 1, " AND ");
    format!("UPDATE {} SET {columns} WHERE {keys}", set.table)
}
