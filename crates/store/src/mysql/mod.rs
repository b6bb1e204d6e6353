//! MySQL and MariaDB.

mod bulk;
mod literal;
mod rows;

use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use engine::{LifelineId, Lifelines, StoreError};
use futures_util::TryStreamExt;
use sqlx::error::DatabaseError;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlDatabaseError};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Either, Executor, MySql, raw_sql};
use timer::Timestamp;
use tokio::time::Instant;

use crate::Options;
use crate::database::{Database, again, surfaced};
use crate::lifeline::Lifeline;
use crate::records::hosts::{self, HostClock, HostFacts};
use crate::schema::{self, Dialect, Schema};
use crate::server::{self, Connections, ErrorClass, Server, Transaction, bounded};
use crate::session::{Backend, Columns, Lock, Row, Session, SessionError, Value};
use crate::writer::{self, Addresses};
use literal::fill_in;

/// Opens MySQL and MariaDB databases: new ones, or ones that XXL-JOB uses.
pub struct MySqlStore;

impl MySqlStore {
    /// Connects, and creates missing tables.
    pub async fn open(url: &str, options: Options) -> Result<Database, StoreError> {
        let mut tries = 0;
        loop {
            // On Galera, nodes that start at once on different servers collide, although each waits for its turn: the
            // lock for that is the server's own.
            if let ControlFlow::Break(opened) =
                again(MySqlBackend::open(url, &options).await, &mut tries).await
            {
                return Ok(Database::new(opened?, &options));
            }
        }
    }

    /// Lists the tables and migrations that opening the database would add.
    pub async fn pending(url: &str, options: &Options) -> Result<Vec<String>, StoreError> {
        let pending = async {
            let connections = Connections::new(&addresses(url)?, options.connections, SETTINGS);
            let mut session = MySqlSession::open(&connections, Abilities::default()).await?;
            schema::pending(&mut session, Dialect::MySql).await
        };
        pending.await.map_err(surfaced)
    }
}

/// The connections and the features of the server.
pub struct MySqlBackend {
    connections: Connections<MySql>,
    lifeline: Lifeline<MySql>,
    abilities: Abilities,
    schema: Schema,
}

impl MySqlBackend {
    async fn open(url: &str, options: &Options) -> Result<MySqlBackend, SessionError> {
        let addresses = addresses(url)?;
        let lifeline = Lifeline::new(addresses.clone(), LIFELINE_SETTINGS);
        let connections = Connections::new(&addresses, options.connections, SETTINGS);
        let mut session = MySqlSession::open(&connections, Abilities::default()).await?;
        let version = text_of(session.query("SELECT VERSION()", &[], Lock::None).await?);
        let mut abilities = Abilities::of(&version);
        abilities.is_galera = is_galera(&mut session).await?;
        if version.contains(TIDB) {
            let mode = text_of(session.query("SELECT @@tidb_txn_mode", &[], Lock::None).await?);
            check_tidb(&version, &mode)?;
        }
        session.transaction.begin().await?;
        let schema = schema::prepare(&mut session, Dialect::MySql).await?;
        Box::new(session).commit().await?;
        Ok(MySqlBackend { connections, lifeline, abilities, schema })
    }
}

/// Whether several servers accept writes at the same time: then a row that is only locked is free on the others.
async fn is_galera(session: &mut MySqlSession) -> Result<bool, SessionError> {
    let rows = session.query("SHOW GLOBAL VARIABLES LIKE 'wsrep_on'", &[], Lock::None).await?;
    Ok(text_of(rows).eq_ignore_ascii_case("on"))
}

/// The last value of a query for one row of texts.
fn text_of(rows: Vec<Row>) -> String {
    match rows.into_iter().next().and_then(|Row(mut values)| values.pop()) {
        Some(Value::Text(text)) => text,
        _ => String::new(),
    }
}

/// TiDB speaks MySQL's protocol and calls itself MySQL 8.0, but lacks some of its features.
const TIDB: &str = "TiDB";

/// In the optimistic mode TiDB ignores row locks until the commit, so that a run could be claimed twice.
fn check_tidb(version: &str, mode: &str) -> Result<(), SessionError> {
    if mode == "optimistic" {
        return Err(StoreError::Schema(format!(
            "the server is TiDB ({version}) in the optimistic transaction mode, in which row locks have no effect; \
             run: SET GLOBAL tidb_txn_mode = 'pessimistic'"
        ))
        .into());
    }
    tracing::warn!(version, "the server is TiDB, on which Tickwright is not tested; see docs/database.md");
    Ok(())
}

/// Facts about one host.
pub async fn facts(address: &MySqlConnectOptions, begun: Instant) -> Result<HostFacts, sqlx::Error> {
    let mut connection = MySqlConnection::connect_with(address).await?;
    let asked = Instant::now();
    let clock = hosts::number(MySql::numbers(&mut connection, format!("SELECT {CLOCK}")).await?)?;
    let clock = HostClock::read(begun, asked, clock);
    let mut variable = async |name: &str| {
        let sql = format!("SHOW GLOBAL VARIABLES LIKE '{name}'");
        Ok::<_, sqlx::Error>(hosts::text(MySql::numbers(&mut connection, sql).await?).unwrap_or_default())
    };
    let is_galera = variable("wsrep_on").await?.eq_ignore_ascii_case("on");
    let galera = if is_galera { Some(variable("wsrep_provider_options").await?) } else { None };
    let _ = connection.close().await;
    Ok(HostFacts { clock, galera, replication: None })
}

pub fn addresses(url: &str) -> Result<Arc<Addresses<MySql>>, SessionError> {
    let address = |url: &String| {
        let address =
            MySqlConnectOptions::from_str(url).map_err(|error| server::surfaced::<MySql>(&error))?;
        // Statements contain the parameters of jobs, so they are not logged.
        Ok(address.disable_statement_logging())
    };
    let all = writer::each_host(url)?.iter().map(address).collect::<Result<_, SessionError>>()?;
    Ok(Arc::new(Addresses::new(all)))
}

/// READ COMMITTED, because REPEATABLE READ locks gaps between rows and then reads old ones. The lock timeout is
/// short: transactions are short too, so the owner of a lock held for longer is probably dead. MariaDB also ends the
/// transactions of dead clients; MySQL ignores the MariaDB-only part.
const SETTINGS: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
     SET SESSION innodb_lock_wait_timeout = 5 /*M!100300 , idle_transaction_timeout = 10 */";

/// The server closes connections that are idle for long, and the lifeline of a single node is idle. One year is the
/// maximum.
const LIFELINE_SETTINGS: &str = "SET SESSION wait_timeout = 31536000";

#[async_trait]
impl Backend for MySqlBackend {
    async fn begin(&self) -> Result<Box<dyn Session>, SessionError> {
        Ok(Box::new(MySqlSession::open(&self.connections, self.abilities).await?))
    }

    async fn single(&self) -> Result<Box<dyn Session>, SessionError> {
        let transaction = Transaction::single(&self.connections).await?;
        Ok(Box::new(MySqlSession { transaction, abilities: self.abilities, deferred: Vec::new() }))
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn connections(&self) -> u64 {
        self.connections.opened()
    }

    async fn lifelines(&self) -> Result<Option<Lifelines>, SessionError> {
        self.lifeline.look().await
    }

    async fn broken(&self, lifelines: &[LifelineId]) -> Result<Vec<LifelineId>, SessionError> {
        self.lifeline.broken(lifelines).await
    }
}

/// Features of newer servers. Older servers are slower, not wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Abilities {
    /// `SKIP LOCKED`.
    skip_locked: bool,
    /// `JSON_TABLE`.
    json_table: bool,
    /// `INSERT … RETURNING`.
    returning: bool,
    /// The server is a member of a Galera cluster.
    is_galera: bool,
}

impl Abilities {
    fn of(version: &str) -> Abilities {
        let mut numbers = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        let mut next = || numbers.next().unwrap_or(0);
        let number = (next(), next(), next());
        if version.contains(TIDB) {
            // It ignores SKIP LOCKED and has no JSON_TABLE.
            Abilities::default()
        } else if version.contains("MariaDB") {
            let is_new = number >= (10, 6, 0);
            let returning = number >= (10, 5, 0);
            Abilities { skip_locked: is_new, json_table: is_new, returning, is_galera: false }
        } else {
            Abilities {
                skip_locked: number >= (8, 0, 1),
                json_table: number >= (8, 0, 4),
                ..Abilities::default()
            }
        }
    }
}

struct MySqlSession {
    transaction: Transaction<MySql>,
    abilities: Abilities,
    /// Statements that no caller needs an answer to. They are sent together with the next one that has an answer, or
    /// with the commit.
    deferred: Vec<String>,
}

impl MySqlSession {
    async fn open(
        connections: &Connections<MySql>,
        abilities: Abilities,
    ) -> Result<MySqlSession, SessionError> {
        let transaction = Transaction::open(connections).await?;
        Ok(MySqlSession { transaction, abilities, deferred: Vec::new() })
    }

    /// Adds statements to the transaction. Their errors are returned by the next one that is sent.
    async fn defer(&mut self, statements: Vec<String>) -> Result<(), SessionError> {
        for statement in statements {
            self.deferred.push(statement);
            if self.deferred.iter().map(String::len).sum::<usize>() > bulk::STATEMENT_MAX {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Sends the deferred statements.
    async fn flush(&mut self) -> Result<(), SessionError> {
        match self.deferred.pop() {
            Some(last) => self.run(last).await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// Runs a statement of the transaction. The first one is sent together with `BEGIN`.
    async fn run(&mut self, sql: String) -> Result<Ran, SessionError> {
        let mut statements = Vec::with_capacity(self.deferred.len() + 2);
        if self.transaction.must_begin() {
            statements.push(MySql::BEGIN.to_owned());
        }
        statements.append(&mut self.deferred);
        let before = statements.len();
        statements.push(sql);
        let ran = self.ask(&statements.join("; "), before).await;
        self.transaction.has_now_begun();
        ran
    }

    /// Runs statements, which only read if the transaction has not begun. Returns the result of those after the first
    /// `before`.
    async fn ask(&mut self, sql: &str, before: usize) -> Result<Ran, SessionError> {
        loop {
            let connection = self.transaction.connection()?;
            let answer = bounded(async {
                let mut ran = Ran { found: 0, first_id: 0, rows: Vec::new() };
                let mut results = raw_sql(AssertSqlSafe(sql)).fetch_many(connection);
                let mut done_before = 0;
                while let Some(result) = results.try_next().await? {
                    match result {
                        Either::Left(_) if done_before < before => done_before += 1,
                        Either::Left(done) => {
                            ran.found += done.rows_affected();
                            ran.first_id = ran.first_id.max(done.last_insert_id());
                        }
                        Either::Right(row) => ran.rows.push(row),
                    }
                }
                Ok(ran)
            });
            let answer = answer.await;
            if !self.transaction.is_replaced(&answer).await? {
                return self.transaction.answered(answer);
            }
        }
    }

    async fn run_all(&mut self, statements: Vec<String>) -> Result<u64, SessionError> {
        let mut found = 0;
        for statement in statements {
            found += self.run(statement).await?.found;
        }
        Ok(found)
    }
}

/// The time at which the statement began. Sessions are in UTC, where no wall-clock time is repeated.
const CLOCK: &str = "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)";

/// Query for the difference between two ids that follow one another.
const STEP: &str = "SELECT @@SESSION.auto_increment_increment";

/// Result of a statement.
struct Ran {
    found: u64,
    /// The first id that the server assigned.
    first_id: u64,
    rows: Vec<sqlx::mysql::MySqlRow>,
}

#[async_trait]
impl Session for MySqlSession {
    async fn query(&mut self, sql: &str, params: &[Value], lock: Lock) -> Result<Vec<Row>, SessionError> {
        let mut sql = fill_in(sql, params);
        let ran = match lock {
            Lock::None if self.deferred.is_empty() => self.ask(&sql, 0).await?,
            Lock::None => self.run(sql).await?,
            Lock::Wait | Lock::Skip => {
                let skips = lock == Lock::Skip && self.abilities.skip_locked;
                sql.push_str(if skips { " FOR UPDATE SKIP LOCKED" } else { " FOR UPDATE" });
                self.run(sql).await?
            }
        };
        rows::decode(&ran.rows).map_err(|error| server::surfaced::<MySql>(&error))
    }

    async fn try_query(&mut self, sql: &str) -> Result<Option<Vec<Row>>, SessionError> {
        match self.query(sql, &[], Lock::None).await {
            Err(SessionError::Store(StoreError::Schema(reason))) => {
                tracing::info!(reason, "the server refuses a query that it need not answer");
                self.transaction.forgive();
                Ok(None)
            }
            answer => answer.map(Some),
        }
    }

    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64, SessionError> {
        Ok(self.run(fill_in(sql, params)).await?.found)
    }

    async fn insert(&mut self, into: Columns<'_>, rows: Vec<Vec<Value>>) -> Result<(), SessionError> {
        self.defer(bulk::inserts(into, &rows).into_iter().map(|(statement, _)| statement).collect()).await
    }

    /// The server returns the first id only. The others follow from it: for a statement with a known number of rows,
    /// InnoDB reserves all ids at once under every `innodb_autoinc_lock_mode`. Clusters use an increment larger than
    /// one, and may change it at any time, so it is queried before and after the rows; on Galera with MariaDB the server
    /// returns each id.
    async fn insert_numbered(
        &mut self,
        into: Columns<'_>,
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<i64>, SessionError> {
        let mut ids = Vec::with_capacity(rows.len());
        for (mut statement, count) in bulk::inserts(into, &rows) {
            if self.abilities.is_galera && self.abilities.returning {
                statement.push_str(" RETURNING id");
                let ran = self.run(statement).await?;
                let returned = rows::decode(&ran.rows).map_err(|error| server::surfaced::<MySql>(&error))?;
                let from = ids.len();
                for row in returned {
                    ids.push(row.read().int()?);
                }
                // They are given in the order of the rows, but the order in which they are returned is not promised.
                ids[from..].sort_unstable();
                continue;
            }
            let ran = self.run(format!("{STEP}; {statement}; {STEP}")).await?;
            let steps = rows::decode(&ran.rows).map_err(|error| server::surfaced::<MySql>(&error))?;
            let steps = steps.into_iter().map(|row| row.read().int()).collect::<Result<Vec<_>, _>>()?;
            match (i64::try_from(ran.first_id), &steps[..]) {
                (Ok(first), [before, after]) if before == after || count == 1 => {
                    ids.extend((0..count as i64).map(|index| first + index * after));
                }
                (Ok(_), [before, after]) => {
                    let changed = format!("the increment of ids changed from {before} to {after}");
                    return Err(SessionError::Collision(changed));
                }
                _ => {
                    return Err(StoreError::Schema(format!("{} does not number its rows", into.table)).into());
                }
            }
        }
        Ok(ids)
    }

    async fn update(&mut self, set: Columns<'_>, rows: Vec<Vec<Value>>) -> Result<(), SessionError> {
        self.defer(bulk::updates(set, &rows, self.abilities.json_table)).await
    }

    async fn compare_and_set(
        &mut self,
        set: Columns<'_>,
        rows: Vec<Vec<Value>>,
    ) -> Result<u64, SessionError> {
        let statements = bulk::updates(set, &rows, self.abilities.json_table);
        self.run_all(statements).await
    }

    async fn delete(&mut self, table: &str, key: &str, ids: &[i64]) -> Result<(), SessionError> {
        self.defer(bulk::deletes(table, key, ids)).await
    }

    fn locks_alone(&self) -> bool {
        !self.abilities.is_galera
    }

    fn clock(&self) -> (&'static str, Option<Value>) {
        (CLOCK, None)
    }

    async fn now(&mut self) -> Result<Timestamp, SessionError> {
        let rows = self.query(&format!("SELECT {CLOCK}"), &[], Lock::None).await?;
        match rows.first() {
            Some(Row(values)) if let [Value::Int(millis)] = values[..] => Ok(Timestamp::from_millis(millis)),
            _ => Err(StoreError::Schema("the server did not return its time".into()).into()),
        }
    }

    async fn commit(mut self: Box<Self>) -> Result<(), SessionError> {
        self.flush().await?;
        self.transaction.commit().await
    }
}

impl Server for MySql {
    const BEGIN: &'static str = "START TRANSACTION";

    async fn commit(connection: &mut MySqlConnection) -> Result<Option<String>, sqlx::Error> {
        MySql::run(connection, "COMMIT").await.map(|()| None)
    }

    const TIMELINE: Option<(&'static str, &'static str)> = None;

    async fn run(connection: &mut MySqlConnection, sql: &'static str) -> Result<(), sqlx::Error> {
        connection.execute(raw_sql(sql)).await.map(|_| ())
    }

    async fn numbers(connection: &mut MySqlConnection, sql: String) -> Result<Vec<Row>, sqlx::Error> {
        rows::decode(&raw_sql(AssertSqlSafe(sql)).fetch_all(connection).await?)
    }

    const ACCEPTS_WRITES: &'static str = "SELECT CASE WHEN @@GLOBAL.read_only THEN 0 ELSE 1 END";

    const CONNECTION_NUMBER: &'static str = "CONNECTION_ID()";

    /// These locks are global to the server, but lifeline ids are unique.
    const IS_FREE: &'static str = "IS_FREE_LOCK(CONCAT('tickwright.lifeline.', n.lifeline))";

    fn hold(lifeline: LifelineId) -> String {
        format!("GET_LOCK('tickwright.lifeline.{}', 0)", lifeline.0)
    }

    fn classify(error: &dyn DatabaseError) -> ErrorClass {
        let number = error.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number);
        if error.message().contains(PROHIBITED) {
            return ErrorClass::Schema;
        }
        classify(number.unwrap_or(0), error.code().as_deref().unwrap_or(""))
    }
}

/// Part of the message with which Percona XtraDB Cluster refuses named locks, under the number of unknown errors.
const PROHIBITED: &str = "prohibits use of";

fn classify(number: u16, state: &str) -> ErrorClass {
    match (number, state.get(..2).unwrap_or("")) {
        // Deadlock, lock timeout, row changed under a MariaDB snapshot, duplicate key.
        (1213 | 1205 | 1020 | 1062, _) | (_, "40") => ErrorClass::Collision,
        (1264 | 1366 | 1406, _) | (_, "22") => ErrorClass::Value,
        // 3D: no database selected; 28: wrong password.
        (_, "42" | "3D" | "28") => ErrorClass::Schema,
        // Disk full, table full.
        (1021 | 1114, _) => ErrorClass::Full,
        // Out of connections, shutting down, read-only, killed…
        _ => ErrorClass::Server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_servers_can_do_more() {
        let check = |version: &str, skip_locked: bool, json_table: bool| {
            let found = Abilities::of(version);
            assert_eq!((found.skip_locked, found.json_table), (skip_locked, json_table), "{version}");
        };
        check("10.11.19-MariaDB-0+deb12u1-log", true, true);
        check("10.5.3-MariaDB", false, false);
        check("8.0.36", true, true);
        check("8.0.2-dmr", true, false);
        check("5.7.44-log", false, false);
        check("8.0.11-TiDB-v8.5.1", false, false);
        check("nonsense", false, false);
    }

    #[test]
    fn tidb_needs_locks_that_lock() {
        assert!(check_tidb("8.0.11-TiDB-v8.5.1", "pessimistic").is_ok());
        let refused = check_tidb("8.0.11-TiDB-v8.5.1", "optimistic");
        assert!(refused.is_err_and(|error| format!("{error:?}").contains("SET GLOBAL tidb_txn_mode = 'pessimistic'")));
    }

    #[test]
    fn errors_say_what_can_be_done() {
        let check =
            |number, state, expected| assert_eq!(classify(number, state), expected, "{number} {state}");
        check(1213, "40001", ErrorClass::Collision);
        check(1205, "HY000", ErrorClass::Collision);
        check(1062, "23000", ErrorClass::Collision);
        check(1406, "22001", ErrorClass::Value);
        check(1146, "42S02", ErrorClass::Schema);
        check(1045, "28000", ErrorClass::Schema);
        check(1053, "08S01", ErrorClass::Server);
        check(1290, "HY000", ErrorClass::Server);
        check(1040, "08004", ErrorClass::Server);
        check(1021, "HY000", ErrorClass::Full);
        check(1114, "HY000", ErrorClass::Full);
    }
}
