//! The statements of a [`Session`](crate::session::Session), on a SQLite connection in this thread.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use engine::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::vtab::array;
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, ffi, params_from_iter};

use crate::session::{Row, SessionError, Value};

/// A connection with its cache of prepared statements.
pub struct Sqlite {
    connection: Connection,
    /// Whether all transactions are parts of one that a test will roll back.
    #[cfg(feature = "conformance")]
    doomed: std::cell::Cell<bool>,
}

impl Sqlite {
    pub fn open(path: &Path) -> Result<Sqlite, SessionError> {
        // Not by URI, so that a `?` in a path has no special meaning.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(trouble)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(trouble)?;
        connection
            .execute_batch(&format!(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864; \
                 PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}"
            ))
            .map_err(trouble)?;
        Sqlite::new(connection)
    }

    /// Opens an existing file without changing it.
    pub fn look(path: &Path) -> Result<Sqlite, SessionError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(trouble)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(trouble)?;
        Sqlite::new(connection)
    }

    pub fn in_memory() -> Result<Sqlite, SessionError> {
        let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let flags = flags - OpenFlags::SQLITE_OPEN_FULL_MUTEX;
        Sqlite::new(Connection::open_in_memory_with_flags(flags).map_err(trouble)?)
    }

    fn new(connection: Connection) -> Result<Sqlite, SessionError> {
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // Otherwise a statement is compiled again for each new value of a parameter that its plan might depend on.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(trouble)?;
        connection
            .execute_batch("PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY")
            .map_err(trouble)?;
        array::load_module(&connection).map_err(trouble)?;
        Ok(Sqlite {
            connection,
            #[cfg(feature = "conformance")]
            doomed: std::cell::Cell::new(false),
        })
    }

    pub fn begin(&self) -> Result<(), SessionError> {
        #[cfg(feature = "conformance")]
        if self.doomed.get() {
            return self.connection.execute_batch("SAVEPOINT part").map_err(trouble);
        }
        // Locks for writing at once: a transaction that begins with a read could not get the write lock while others
        // write.
        self.connection
            .prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut begin| begin.execute([]))
            .map_err(trouble)?;
        Ok(())
    }

    pub fn commit(&self) -> Result<(), SessionError> {
        #[cfg(feature = "conformance")]
        if self.doomed.get() {
            return self.connection.execute_batch("RELEASE part").map_err(trouble);
        }
        let committed = self.connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        committed.map(|_| ()).map_err(|error| {
            self.rollback();
            match trouble(error) {
                // It is unknown whether the journal contains it.
                SessionError::Store(StoreError::Unavailable(reason)) => {
                    StoreError::CommitUnknown(reason).into()
                }
                other => other,
            }
        })
    }

    /// Rolls back. Does nothing if SQLite has already ended the transaction by itself.
    pub fn rollback(&self) {
        #[cfg(feature = "conformance")]
        if self.doomed.get() {
            // Without a part there is nothing to roll back.
            let _ = self.connection.execute_batch("ROLLBACK TO part; RELEASE part");
            return;
        }
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "failed to roll back a transaction; the next one will fail and report it");
        }
    }

    /// From now on commits will be lost.
    #[cfg(feature = "conformance")]
    pub fn doom(&self) -> Result<(), SessionError> {
        self.begin()?;
        self.doomed.set(true);
        Ok(())
    }

    /// Loses all commits since [`doom`](Sqlite::doom).
    #[cfg(feature = "conformance")]
    pub fn lose(&self) -> Result<(), SessionError> {
        self.doomed.set(false);
        self.rollback();
        Ok(())
    }

    pub fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, SessionError> {
        let mut statement = self.connection.prepare_cached(&with_lists(sql)).map_err(trouble)?;
        let width = statement.column_count();
        let mut found = statement.query(params_from_iter(params)).map_err(trouble)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(trouble)? {
            let mut values = Vec::with_capacity(width);
            for column in 0..width {
                values.push(value_of(row.get_ref(column).map_err(trouble)?));
            }
            rows.push(Row(values));
        }
        Ok(rows)
    }

    pub fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, SessionError> {
        let mut statement = self.connection.prepare_cached(&with_lists(sql)).map_err(trouble)?;
        let changed = statement.execute(params_from_iter(params)).map_err(trouble)?;
        Ok(changed as u64)
    }

    /// Runs one statement per row; returns how many rows it changed in all.
    pub fn execute_each(&self, sql: &str, rows: &[Vec<Value>]) -> Result<u64, SessionError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(trouble)?;
        let mut changed = 0;
        for row in rows {
            changed += statement.execute(params_from_iter(row)).map_err(trouble)? as u64;
        }
        Ok(changed)
    }

    /// Runs one `INSERT` per row; returns the new ids.
    pub fn insert_each(&self, sql: &str, rows: &[Vec<Value>]) -> Result<Vec<i64>, SessionError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(trouble)?;
        rows.iter().map(|row| statement.insert(params_from_iter(row)).map_err(trouble)).collect()
    }
}

/// Size of the write-ahead log after which its pages are copied into the file, 16 MiB. Runs change the same few pages
/// again and again, so a larger log copies them less often.
const CHECKPOINT_PAGES: u32 = 4_000;

/// How long to wait while another process holds the file. Only relevant if several share it.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// More than there are different statements.
const STATEMENTS: usize = 256;

fn with_lists(sql: &str) -> Cow<'_, str> {
    if sql.contains("IN ?") { sql.replace("IN ?", "IN rarray(?)").into() } else { sql.into() }
}

fn value_of(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Real(number) => Value::Int(number as i64),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            Value::Text(String::from_utf8_lossy(text).into_owned())
        }
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Value::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Value::Int(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            Value::Text(text) | Value::Time(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Value::Ids(ids) => {
                let ids: Vec<_> = ids.iter().map(|id| rusqlite::types::Value::Integer(*id)).collect();
                // Not `from_rc`: in rusqlite 0.39 its destructor drops an `Rc<c_void>` and leaks the list.
                ToSqlOutput::new_boxed(ids, c"rarray")
            }
            Value::Texts(texts) => {
                let texts: Vec<_> = texts.iter().cloned().map(rusqlite::types::Value::Text).collect();
                ToSqlOutput::new_boxed(texts, c"rarray")
            }
        })
    }
}

/// Classifies an error of SQLite.
fn trouble(error: rusqlite::Error) -> SessionError {
    let reason = error.to_string();
    let rusqlite::Error::SqliteFailure(failure, _) = &error else {
        return StoreError::Schema(reason).into();
    };
    match (failure.code, failure.extended_code) {
        (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _)
        | (_, ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY) => {
            SessionError::Collision(reason)
        }
        // The record that completes a commit is written last, so it is missing: also a failed commit changed
        // nothing.
        (ErrorCode::DiskFull, _) => StoreError::DiskFull(reason).into(),
        (
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::OutOfMemory
            | ErrorCode::OperationInterrupted,
            _,
        ) => StoreError::Unavailable(reason).into(),
        (ErrorCode::TooBig, _) => StoreError::Invalid(reason).into(),
        _ => StoreError::Schema(reason).into(),
    }
}
