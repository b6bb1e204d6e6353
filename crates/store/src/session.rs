//! One transaction on one of the databases, with the few operations that all of them share.
//!
//! The steps of a fire (`claim.rs`, `complete.rs`, …) are written once, over [`Session`]. The databases differ in
//! how they write many rows at a time and how they lock rows; this trait hides that.

use async_trait::async_trait;
use engine::{LifelineId, Lifelines, StoreError};
use timer::Timestamp;

use crate::schema::Schema;
use crate::table::Cell;

/// A prepared database: its tables exist and were inspected.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Opens a transaction (READ COMMITTED where there is a choice).
    async fn begin(&self) -> Result<Box<dyn Session>, SessionError>;

    /// Opens a session without a transaction, for one statement that may be repeated: the statement commits by itself,
    /// which saves the round trips for `BEGIN` and `COMMIT`.
    async fn single(&self) -> Result<Box<dyn Session>, SessionError>;

    /// Schema of its tables.
    fn schema(&self) -> &Schema;

    /// Its clock, if it can be read without a query: SQLite uses the clock of this process.
    fn clock(&self) -> Option<Timestamp> {
        None
    }

    /// Number of connections opened so far; constant where there is one file.
    fn connections(&self) -> u64 {
        0
    }

    /// From now on commits will be lost. Only SQLite can.
    #[cfg(feature = "conformance")]
    async fn doom(&self) -> Result<(), SessionError> {
        Err(StoreError::Invalid("this database cannot lose commits".into()).into())
    }

    /// Loses all commits since [`doom`](Backend::doom).
    #[cfg(feature = "conformance")]
    async fn lose(&self) -> Result<(), SessionError> {
        self.doom().await
    }

    /// Whether other connections may have written since the last call.
    async fn others_wrote(&self) -> Result<bool, SessionError> {
        Ok(true)
    }

    /// Confirms this process's lifeline, or opens it; `None` if the database does not support lifelines.
    async fn lifelines(&self) -> Result<Option<Lifelines>, SessionError> {
        Ok(None)
    }

    /// Returns which of these lifelines are broken, as seen by this process's lifeline.
    async fn broken(&self, _lifelines: &[LifelineId]) -> Result<Vec<LifelineId>, SessionError> {
        Ok(Vec::new())
    }
}

/// A parameter or a column. Times are milliseconds in `Int`, except in XXL-JOB's own columns.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL `NULL`.
    Null,
    /// A number; `tinyint`, `int` and `bigint` columns are all read as this.
    Int(i64),
    /// Text of any kind.
    Text(String),
    /// A `DATETIME` of XXL-JOB's tables, as `2026-06-21 10:00:00` in the configured zone.
    Time(String),
    /// A list of ids, only as a parameter, written `IN ?` without parentheses. Never empty.
    Ids(Vec<i64>),
    /// The same for a list of texts.
    Texts(Vec<String>),
}

/// A row, column by column.
#[derive(Clone, Debug)]
pub struct Row(pub Vec<Value>);

/// A table, its key columns and the columns to write, for statements about many rows.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// Name of the table.
    pub table: &'a str,
    /// Key columns; all must match. A compare-and-set includes the column with the old value here.
    pub keys: &'a [&'a str],
    /// Columns to write.
    pub columns: &'a [&'a str],
}

/// How a `SELECT` locks the rows it finds, until the transaction ends. SQLite has one writer, so there all three are
/// the same. Only queries of one table (others at most in subqueries) may lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// No lock.
    None,
    /// Wait for rows that other transactions have locked.
    Wait,
    /// Skip rows that other transactions have locked.
    Skip,
}

/// A transaction. Dropped without [`commit`](Session::commit), it is rolled back.
///
/// A statement that returns nothing may be sent together with a later one, to save a round trip; then a later call
/// returns its error.
#[async_trait]
pub trait Session: Send {
    /// Runs a query written with `?` for each parameter.
    async fn query(&mut self, sql: &str, params: &[Value], lock: Lock) -> Result<Vec<Row>, SessionError>;

    /// Runs a query that some servers refuse, outside a transaction. `None` if it was refused.
    async fn try_query(&mut self, sql: &str) -> Result<Option<Vec<Row>>, SessionError> {
        self.query(sql, &[], Lock::None).await.map(Some)
    }

    /// Runs a statement written with `?` for each parameter; returns the number of matched rows, including unchanged
    /// ones.
    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64, SessionError>;

    /// Inserts rows (`keys` unused), each in the order of `columns`.
    async fn insert(&mut self, into: Columns<'_>, rows: Vec<Vec<Value>>) -> Result<(), SessionError>;

    /// Inserts rows into a table with an auto-increment `id`; returns the ids in the order of the rows.
    async fn insert_numbered(
        &mut self,
        into: Columns<'_>,
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<i64>, SessionError>;

    /// Updates many rows in one statement, each row given as its keys followed by its new columns. A key value is
    /// never null.
    async fn update(&mut self, set: Columns<'_>, rows: Vec<Vec<Value>>) -> Result<(), SessionError>;

    /// Updates many rows like [`update`](Session::update). Returns the number of matched rows, including unchanged ones.
    async fn compare_and_set(&mut self, set: Columns<'_>, rows: Vec<Vec<Value>>)
    -> Result<u64, SessionError>;

    /// Deletes many rows by one key column.
    async fn delete(&mut self, table: &str, key: &str, ids: &[i64]) -> Result<(), SessionError>;

    /// Whether a lock on a row excludes all other transactions. On a cluster of several writers it excludes only those of
    /// the same server: there a lock must be a change of the row, which only one of them can commit.
    fn locks_alone(&self) -> bool {
        true
    }

    /// SQL for the database's clock in milliseconds, with its parameter, if it has one.
    fn clock(&self) -> (&'static str, Option<Value>);

    /// The database's clock.
    async fn now(&mut self) -> Result<Timestamp, SessionError>;

    /// Commits the transaction. If the connection is lost meanwhile, it is [`StoreError::CommitUnknown`].
    async fn commit(self: Box<Self>) -> Result<(), SessionError>;
}

/// Why a statement failed.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionError {
    /// A conflict with another transaction: a deadlock, a lock timeout, or a duplicate key. Nothing was changed, and
    /// the same transaction may succeed at once.
    Collision(String),
    /// Any other error, as returned to the caller of the store.
    Store(StoreError),
}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        SessionError::Store(error)
    }
}

impl Row {
    /// Reads its columns, one after the other.
    pub fn read(self) -> Reader {
        Reader(self.0.into_iter())
    }
}

/// Reads the columns of a row in their order.
pub struct Reader(std::vec::IntoIter<Value>);

impl Reader {
    /// A number.
    pub fn int(&mut self) -> Result<i64, SessionError> {
        self.column("a column")
    }

    /// A number, or `None` if null.
    pub fn maybe_int(&mut self) -> Result<Option<i64>, SessionError> {
        self.column("a column")
    }

    /// A time in milliseconds.
    pub fn instant(&mut self) -> Result<Timestamp, SessionError> {
        self.column("a column")
    }

    /// A time in milliseconds, or `None` if null.
    pub fn maybe_instant(&mut self) -> Result<Option<Timestamp>, SessionError> {
        self.column("a column")
    }

    /// A text; empty if null.
    pub fn text(&mut self) -> Result<String, SessionError> {
        self.column("a column")
    }

    /// A text, or `None` if null.
    pub fn maybe_text(&mut self) -> Result<Option<String>, SessionError> {
        self.column("a column")
    }

    /// A column of any type; `name` is for error messages.
    pub fn column<T: Cell>(&mut self, name: &str) -> Result<T, SessionError> {
        T::of(self.0.next().unwrap_or(Value::Null)).map_err(|found| unexpected(name, T::WANTED, &found))
    }

    /// Whether the next column is null.
    pub fn next_is_null(&self) -> bool {
        matches!(self.0.as_slice().first(), None | Some(Value::Null))
    }

    /// Skips some columns.
    pub fn skip(&mut self, columns: usize) {
        self.0.by_ref().take(columns).for_each(drop);
    }
}

fn unexpected(column: &str, wanted: &str, found: &Value) -> SessionError {
    StoreError::Schema(format!("{column} should contain {wanted}, but contains {found:?}")).into()
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}
