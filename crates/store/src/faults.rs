//! Fault injection for tests: transactions that fail as with a killed process or a lost connection. Also measures
//! how large transactions are.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use engine::StoreError;
use timer::Timestamp;

use crate::session::{Columns, Lock, Row, Session, SessionError, Value};

/// The fault to inject next.
#[derive(Debug, Default)]
pub struct Faults {
    next: Mutex<Option<InjectedFault>>,
    struck: AtomicBool,
    statements: AtomicU64,
    most_rows: AtomicU64,
}

/// A way for a transaction to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// The connection is lost after this many statements; the commit counts as one.
    CutAfter(u64),
    /// The connection is lost while committing, and nothing was committed.
    CutBeforeCommit,
    /// The connection is lost while committing, and everything was committed.
    CutAfterCommit,
}

impl Faults {
    /// Injects this fault into the next transactions, until one has failed.
    pub fn strike(&self, fault: InjectedFault) {
        self.struck.store(false, Ordering::SeqCst);
        self.statements.store(0, Ordering::SeqCst);
        *self.next() = Some(fault);
    }

    /// Stops injecting faults. Returns whether one was injected since [`strike`](Faults::strike).
    pub fn calm(&self) -> bool {
        *self.next() = None;
        self.struck.load(Ordering::SeqCst)
    }

    /// Returns the largest number of rows that one transaction has written to one table since the last call.
    pub fn take_most_rows(&self) -> u64 {
        self.most_rows.swap(0, Ordering::SeqCst)
    }

    pub(crate) fn watch(self: &Arc<Self>, session: Box<dyn Session>) -> Box<dyn Session> {
        Box::new(Watched { session: Some(session), faults: self.clone(), rows: BTreeMap::new() })
    }

    fn next(&self) -> std::sync::MutexGuard<'_, Option<InjectedFault>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the connection is lost now, before another statement.
    fn cuts(&self) -> bool {
        let mut next = self.next();
        let Some(InjectedFault::CutAfter(statements)) = *next else {
            return false;
        };
        if self.statements.fetch_add(1, Ordering::SeqCst) < statements {
            return false;
        }
        *next = None;
        self.struck.store(true, Ordering::SeqCst);
        true
    }

    fn cut_at_commit(&self) -> Option<InjectedFault> {
        let mut next = self.next();
        let fault = next.filter(|fault| {
            matches!(fault, InjectedFault::CutBeforeCommit | InjectedFault::CutAfterCommit)
        })?;
        *next = None;
        self.struck.store(true, Ordering::SeqCst);
        Some(fault)
    }
}

/// A session that checks before each statement whether its connection was cut.
struct Watched {
    session: Option<Box<dyn Session>>,
    faults: Arc<Faults>,
    /// Rows written to each table.
    rows: BTreeMap<String, u64>,
}

impl Watched {
    fn wrote(&mut self, table: &str, rows: u64) -> u64 {
        *self.rows.entry(table.to_owned()).or_default() += rows;
        rows
    }

    fn session(&mut self) -> Result<&mut Box<dyn Session>, SessionError> {
        if self.faults.cuts() {
            self.session = None;
        }
        self.session.as_mut().ok_or_else(|| StoreError::Unavailable("cut by a test".into()).into())
    }
}

#[async_trait]
impl Session for Watched {
    async fn query(&mut self, sql: &str, params: &[Value], lock: Lock) -> Result<Vec<Row>, SessionError> {
        self.session()?.query(sql, params, lock).await
    }

    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64, SessionError> {
        let rows = self.session()?.execute(sql, params).await?;
        let table = sql.split_whitespace().find(|word| word.starts_with("tw_") || word.starts_with("xxl_"));
        Ok(self.wrote(table.unwrap_or_default(), rows))
    }

    async fn insert(&mut self, into: Columns<'_>, rows: Vec<Vec<Value>>) -> Result<(), SessionError> {
        let (table, count) = (into.table.to_owned(), rows.len() as u64);
        self.session()?.insert(into, rows).await?;
        self.wrote(&table, count);
        Ok(())
    }

    async fn insert_numbered(
        &mut self,
        into: Columns<'_>,
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<i64>, SessionError> {
        let table = into.table.to_owned();
        let ids = self.session()?.insert_numbered(into, rows).await?;
        self.wrote(&table, ids.len() as u64);
        Ok(ids)
    }

    async fn update(&mut self, set: Columns<'_>, rows: Vec<Vec<Value>>) -> Result<(), SessionError> {
        let (table, count) = (set.table.to_owned(), rows.len() as u64);
        self.session()?.update(set, rows).await?;
        self.wrote(&table, count);
        Ok(())
    }

    async fn compare_and_set(
        &mut self,
        set: Columns<'_>,
        rows: Vec<Vec<Value>>,
    ) -> Result<u64, SessionError> {
        let table = set.table.to_owned();
        let rows = self.session()?.compare_and_set(set, rows).await?;
        Ok(self.wrote(&table, rows))
    }

    async fn delete(&mut self, table: &str, key: &str, ids: &[i64]) -> Result<(), SessionError> {
        self.session()?.delete(table, key, ids).await?;
        self.wrote(table, ids.len() as u64);
        Ok(())
    }

    fn locks_alone(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.locks_alone())
    }

    fn clock(&self) -> (&'static str, Option<Value>) {
        self.session.as_ref().map_or(("NULL", None), |session| session.clock())
    }

    async fn now(&mut self) -> Result<Timestamp, SessionError> {
        self.session()?.now().await
    }

    async fn commit(mut self: Box<Self>) -> Result<(), SessionError> {
        self.session()?;
        let most_rows = self.rows.values().copied().max().unwrap_or_default();
        self.faults.most_rows.fetch_max(most_rows, Ordering::SeqCst);
        let session = self.session.take().expect("it was there just now");
        match self.faults.cut_at_commit() {
            None => session.commit().await,
            Some(InjectedFault::CutAfterCommit) => {
                session.commit().await?;
                Err(StoreError::CommitUnknown("cut by a test, after".into()).into())
            }
            Some(_) => Err(StoreError::CommitUnknown("cut by a test, before".into()).into()),
        }
    }
}
