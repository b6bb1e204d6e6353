//! PostgreSQL.

mod bulk;
mod rows;
mod statement;
mod timeline;
mod warning;

use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use engine::{LifelineId, Lifelines, StoreError};
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, Postgres, raw_sql};
use timer::Timestamp;
use tokio::time::Instant;

use crate::Options;
use crate::database::{Database, surfaced};
use crate::lifeline::Lifeline;
use crate::records::hosts::{self, HostClock, HostFacts, Replication};
use crate::schema::{self, Dialect, Schema};
use crate::server::{self, Connections, ErrorClass, Server, Transaction, bounded};
use crate::session::{Backend, Columns, Lock, Row, Session, SessionError, Value};
use crate::writer::{self, Addresses};
use statement::Statement;

/// A store in a PostgreSQL database.
pub struct PostgresStore;

impl PostgresStore {
    /// Connects, and creates missing tables.
    pub async fn open(url: &str, options: Options) -> Result<Database, StoreError> {
        let backend = PostgresBackend::open(url, &options).await.map_err(surfaced)?;
        Ok(Database::new(backend, &options))
    }

    /// Lists the tables and migrations that opening the database would add.
    pub async fn pending(url: &str, options: &Options) -> Result<Vec<String>, StoreError> {
        let pending = async {
            let connections = Connections::new(&addresses(url)?, options.connections, SETTINGS);
            let mut session = PostgresSession::open(&connections).await?;
            schema::pending(&mut session, Dialect::Postgres).await
        };
        pending.await.map_err(surfaced)
    }
}

/// The connections.
pub struct PostgresBackend {
    connections: Connections<Postgres>,
    lifeline: Lifeline<Postgres>,
    schema: Schema,
}

impl PostgresBackend {
    async fn open(url: &str, options: &Options) -> Result<PostgresBackend, SessionError> {
        let addresses = addresses(url)?;
        let lifeline = Lifeline::new(addresses.clone(), LIFELINE_SETTINGS);
        let connections = Connections::new(&addresses, options.connections, SETTINGS);
        let mut session = PostgresSession::open(&connections).await?;
        check_server(&session.query("SELECT version()", &[], Lock::None).await?)?;
        session.transaction.begin().await?;
        let schema = schema::prepare(&mut session, Dialect::Postgres).await?;
        timeline::begin(&mut session, connections.timeline()).await?;
        Box::new(session).commit().await?;
        Ok(PostgresBackend { connections, lifeline, schema })
    }
}

/// Rejects servers that speak PostgreSQL's protocol without its locks: a dead node would not be noticed, or noticed
/// wrongly.
fn check_server(version: &[Row]) -> Result<(), SessionError> {
    let text = match version.first() {
        Some(Row(values)) if let [Value::Text(text)] = &values[..] => text.as_str(),
        _ => "",
    };
    match ["CockroachDB", "YugabyteDB", "-YB-"].into_iter().find(|name| text.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let name = if name == "-YB-" { "YugabyteDB" } else { name };
            Err(StoreError::Schema(format!(
                "the server is {name}, which lacks PostgreSQL's advisory locks or does not lock with them; \
                 use PostgreSQL, MySQL, MariaDB or SQLite"
            ))
            .into())
        }
    }
}

/// Facts about one host.
pub async fn facts(address: &PgConnectOptions, begun: Instant) -> Result<HostFacts, sqlx::Error> {
    let mut connection = PgConnection::connect_with(address).await?;
    let asked = Instant::now();
    let clock = hosts::number(Postgres::numbers(&mut connection, format!("SELECT {CLOCK}")).await?)?;
    let clock = HostClock::read(begun, asked, clock);
    let mut number =
        async |sql: &str| Postgres::numbers(&mut connection, sql.to_owned()).await.and_then(hosts::number);
    let is_standby = number("SELECT CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END").await? == 1;
    // Not every service of a cloud provider has it.
    let timeline = number(timeline::TIMELINE).await.unwrap_or(0);
    let standbys = number("SELECT COUNT(*) FROM pg_stat_replication").await?;
    // Without the role pg_monitor the states are hidden.
    let synchronous = number(
        "SELECT COUNT(*) FROM pg_stat_replication WHERE COALESCE(sync_state, 'sync') IN ('sync', 'quorum')",
    )
    .await?;
    let names = "SELECT current_setting('synchronous_standby_names')".to_owned();
    let synchronous_names = hosts::text(Postgres::numbers(&mut connection, names).await?).unwrap_or_default();
    let _ = connection.close().await;
    let replication = Replication { is_standby, timeline, synchronous_names, standbys, synchronous };
    Ok(HostFacts { clock, galera: None, replication: Some(replication) })
}

pub fn addresses(url: &str) -> Result<Arc<Addresses<Postgres>>, SessionError> {
    let address = |url: &String| {
        let address =
            PgConnectOptions::from_str(url).map_err(|error| server::surfaced::<Postgres>(&error))?;
        Ok(address.application_name("tickwright").disable_statement_logging())
    };
    let all = writer::each_host(url)?.iter().map(address).collect::<Result<_, SessionError>>()?;
    Ok(Arc::new(Addresses::new(all)))
}

/// The lock timeout is short: transactions are short too, so the owner of a lock held for longer is probably dead.
/// The server must detect that too, and end the transactions of dead clients. A commit that was acknowledged must be
/// durable, whatever the defaults of the server or the user are.
const SETTINGS: &str = "SET default_transaction_isolation = 'read committed'; SET lock_timeout = '5s'; \
     SELECT set_config('synchronous_commit', 'on', false) \
     WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write'); \
     SET idle_in_transaction_session_timeout = '10s'; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; \
     SET tcp_keepalives_count = 3; SET TIME ZONE 'UTC'";

/// The lifeline of a single node is idle, and must not be closed for that. Only newer servers would.
const LIFELINE_SETTINGS: &str = "SELECT set_config(name, '0', false) FROM pg_settings \
     WHERE name = 'idle_session_timeout'; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; \
     SET tcp_keepalives_count = 3";

#[async_trait]
impl Backend for PostgresBackend {
    async fn begin(&self) -> Result<Box<dyn Session>, SessionError> {
        Ok(Box::new(PostgresSession::open(&self.connections).await?))
    }

    async fn single(&self) -> Result<Box<dyn Session>, SessionError> {
        Ok(Box::new(PostgresSession { transaction: Transaction::single(&self.connections).await? }))
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

struct PostgresSession {
    transaction: Transaction<Postgres>,
}

impl PostgresSession {
    async fn open(connections: &Connections<Postgres>) -> Result<PostgresSession, SessionError> {
        Ok(PostgresSession { transaction: Transaction::open(connections).await? })
    }

    async fn run(&mut self, statement: Statement) -> Result<u64, SessionError> {
        self.transaction.begin().await?;
        loop {
            let query = statement.clone().query();
            let answer = bounded(query.execute(self.transaction.connection()?)).await;
            if !self.transaction.is_replaced(&answer).await? {
                return self.transaction.answered(answer).map(|done| done.rows_affected());
            }
        }
    }

    /// Runs a statement of the transaction that returns rows.
    async fn rows(&mut self, statement: &Statement) -> Result<Vec<Row>, SessionError> {
        self.transaction.begin().await?;
        self.read(statement).await
    }

    /// Runs a query that only reads.
    async fn read(&mut self, statement: &Statement) -> Result<Vec<Row>, SessionError> {
        loop {
            let query = statement.clone().query();
            let answer = bounded(query.fetch_all(self.transaction.connection()?)).await;
            if self.transaction.is_replaced(&answer).await? {
                continue;
            }
            let rows = self.transaction.answered(answer)?;
            return rows::decode(&rows).map_err(|error| server::surfaced::<Postgres>(&error));
        }
    }
}

/// Not the transaction's time, which does not advance.
const CLOCK: &str = "CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)";

#[async_trait]
impl Session for PostgresSession {
    async fn query(&mut self, sql: &str, params: &[Value], lock: Lock) -> Result<Vec<Row>, SessionError> {
        let mut statement = Statement::new(sql, params);
        statement.sql.push_str(match lock {
            Lock::None => return self.read(&statement).await,
            Lock::Wait => " FOR UPDATE",
            Lock::Skip => " FOR UPDATE SKIP LOCKED",
        });
        self.rows(&statement).await
    }

    async fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64, SessionError> {
        self.run(Statement::new(sql, params)).await
    }

    async fn insert(&mut self, into: Columns<'_>, rows: Vec<Vec<Value>>) -> Result<(), SessionError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.run(bulk::insert(into, &rows)).await.map(|_| ())
    }

    /// The server assigns ids one by one in the order of our rows, but does not guarantee the order in which it
    /// returns them: sorted, they match the rows.
    async fn insert_numbered(
        &mut self,
        into: Columns<'_>,
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<i64>, SessionError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut statement = bulk::insert(into, &rows);
        statement.sql.push_str(" RETURNING id");
        let numbered = self.rows(&statement).await?;
        let id = |Row(values): Row| match values[..] {
            [Value::Int(id)] => Some(id),
            _ => None,
        };
        let mut ids: Vec<i64> = numbered.into_iter().filter_map(id).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    async fn update(&mut self, set: Columns<'_>, rows: Vec<Vec<Value>>) -> Result<(), SessionError> {
        self.compare_and_set(set, rows).await.map(|_| ())
    }

    async fn compare_and_set(
        &mut self,
        set: Columns<'_>,
        rows: Vec<Vec<Value>>,
    ) -> Result<u64, SessionError> {
        if rows.is_empty() {
            return Ok(0);
        }
        self.run(bulk::update(set, &rows)).await
    }

    async fn delete(&mut self, table: &str, key: &str, ids: &[i64]) -> Result<(), SessionError> {
        let sql = format!("DELETE FROM {table} WHERE {key} IN ?");
        self.run(Statement::new(&sql, &[Value::Ids(ids.to_vec())])).await.map(|_| ())
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

    async fn commit(self: Box<Self>) -> Result<(), SessionError> {
        self.transaction.commit().await
    }
}

impl Server for Postgres {
    const BEGIN: &'static str = "BEGIN";

    async fn commit(connection: &mut PgConnection) -> Result<Option<String>, sqlx::Error> {
        let (committed, warning) = warning::watched(connection.execute(raw_sql("COMMIT"))).await;
        committed.map(|_| warning)
    }

    const TIMELINE: Option<(&'static str, &'static str)> = Some((timeline::TIMELINE, timeline::SKIP_IDS));

    async fn run(connection: &mut PgConnection, sql: &'static str) -> Result<(), sqlx::Error> {
        connection.execute(raw_sql(sql)).await.map(|_| ())
    }

    async fn numbers(connection: &mut PgConnection, sql: String) -> Result<Vec<Row>, sqlx::Error> {
        rows::decode(&sqlx::query(AssertSqlSafe(sql)).persistent(false).fetch_all(connection).await?)
    }

    /// A standby is read-only, and so is a database or user for which that is the default.
    const ACCEPTS_WRITES: &'static str =
        "SELECT CASE WHEN current_setting('transaction_read_only') = 'on' THEN 0 ELSE 1 END";

    const CONNECTION_NUMBER: &'static str = "pg_backend_pid()";

    /// Held only for the duration of the query, and shared with other nodes that ask.
    const IS_FREE: &'static str = "pg_try_advisory_xact_lock_shared(n.lifeline)";

    fn hold(lifeline: LifelineId) -> String {
        format!("CASE WHEN pg_try_advisory_lock({}) THEN 1 ELSE 0 END", lifeline.0)
    }

    fn classify(error: &dyn DatabaseError) -> ErrorClass {
        classify(error.code().as_deref().unwrap_or(""))
    }
}

fn classify(state: &str) -> ErrorClass {
    match (state, state.get(..2).unwrap_or("")) {
        // Deadlock or serialization failure; lock timeout; duplicate key; a table that another node creates too.
        (_, "40") | ("55P03" | "23505" | "42P07", _) => ErrorClass::Collision,
        (_, "22" | "23") => ErrorClass::Value,
        // 3D: no such database; 28: wrong password; 3F: no such schema.
        (_, "42" | "3D" | "3F" | "28") => ErrorClass::Schema,
        ("53100", _) => ErrorClass::Full,
        // Shutting down, starting up, out of connections, read-only, killed…
        _ => ErrorClass::Server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_without_postgresqls_locks_are_refused() {
        let check = |version: &str, expected: Option<&str>| {
            let answer = check_server(&[Row(vec![version.into()])]);
            assert_eq!(answer.is_err(), expected.is_some(), "{version}");
            assert!(expected.is_none_or(|name| format!("{answer:?}").contains(name)), "{answer:?}");
        };
        check("PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc", None);
        check("CockroachDB CCL v25.3.1 (x86_64-pc-linux-gnu, built 2025/08/20)", Some("CockroachDB"));
        check("PostgreSQL 11.2-YB-2.25.0.0-b0 on x86_64-pc-linux-gnu", Some("YugabyteDB"));
    }

    #[tokio::test]
    async fn a_warning_at_the_commit_is_returned() {
        let Ok(url) = std::env::var("TICKWRIGHT_TEST_POSTGRES_URL") else {
            println!("skipped: TICKWRIGHT_TEST_POSTGRES_URL is not set");
            return;
        };
        let mut connection = PgConnection::connect(&url).await.expect("the server runs");
        Postgres::run(&mut connection, Postgres::BEGIN).await.expect("it begins");
        assert_eq!(Postgres::commit(&mut connection).await.expect("it commits"), None);
        // Nothing was begun: the server says that it has committed, and warns.
        let warning = Postgres::commit(&mut connection).await.expect("it commits");
        assert_eq!(warning.as_deref(), Some("there is no transaction in progress"));
    }

    #[test]
    fn errors_say_what_can_be_done() {
        let check = |state, expected| assert_eq!(classify(state), expected, "{state}");
        check("40P01", ErrorClass::Collision);
        check("40001", ErrorClass::Collision);
        check("55P03", ErrorClass::Collision);
        check("23505", ErrorClass::Collision);
        check("22001", ErrorClass::Value);
        check("42P01", ErrorClass::Schema);
        check("28P01", ErrorClass::Schema);
        check("57P01", ErrorClass::Server);
        check("25006", ErrorClass::Server);
        check("53300", ErrorClass::Server);
    }
}
