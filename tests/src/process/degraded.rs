//! A degraded database server: it accepts connections but does not work.

use anyhow::{Result, bail};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, raw_sql};

use super::database_server::DatabaseServer;
use crate::database::Database;

/// Kind of degradation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Degradation {
    /// The server rejects writes.
    ReadOnly,
    /// Other clients use all connections.
    Crowded,
}

/// A degraded server.
pub enum DegradedServer {
    /// Connections needed to repair a MariaDB server, and those that fill it.
    MySql {
        /// Opened before the server was degraded.
        administrator: MySqlConnection,
        /// SQL that repairs the server.
        remedy: Vec<&'static str>,
        /// Connections that occupy the server.
        connections: Vec<MySqlConnection>,
    },
    /// The same for PostgreSQL.
    Postgres {
        /// Opened before the server was degraded.
        administrator: PgConnection,
        /// SQL that repairs the server.
        remedy: Vec<&'static str>,
        /// Connections that occupy the server.
        connections: Vec<PgConnection>,
    },
}

impl DatabaseServer {
    /// Degrades the server.
    pub async fn degrade(&self, degradation: Degradation) -> Result<DegradedServer> {
        match &self.database {
            Database::Sqlite => bail!("a file is no server"),
            Database::MySql { server } => {
                let mut administrator = MySqlConnection::connect(server).await?;
                let (cause, remedy) = match degradation {
                    Degradation::ReadOnly => (READ_ONLY_MYSQL, WRITABLE_MYSQL),
                    Degradation::Crowded => (CROWDED_MYSQL, ROOMY_MYSQL),
                };
                for sql in cause {
                    raw_sql(AssertSqlSafe(*sql)).execute(&mut administrator).await?;
                }
                let mut connections = Vec::new();
                while degradation == Degradation::Crowded && connections.len() < CROWD_MAX {
                    let Ok(one) = MySqlConnection::connect(server).await else { break };
                    connections.push(one);
                }
                Ok(DegradedServer::MySql { administrator, remedy: remedy.to_vec(), connections })
            }
            Database::Postgres { server } => {
                let mut administrator = PgConnection::connect(server).await?;
                let (cause, remedy) = match degradation {
                    Degradation::ReadOnly => (READ_ONLY_POSTGRES, WRITABLE_POSTGRES),
                    Degradation::Crowded => (NOTHING, NOTHING),
                };
                for sql in cause {
                    raw_sql(AssertSqlSafe(*sql)).execute(&mut administrator).await?;
                }
                let mut connections = Vec::new();
                while degradation == Degradation::Crowded && connections.len() < CROWD_MAX {
                    let Ok(one) = PgConnection::connect(server).await else { break };
                    connections.push(one);
                }
                Ok(DegradedServer::Postgres { administrator, remedy: remedy.to_vec(), connections })
            }
        }
    }
}

impl DegradedServer {
    /// Whether nodes that have lost their connections get no new ones. On a crowded PostgreSQL server they take those again
    /// that they have lost.
    pub fn must_be_noticed(&self) -> bool {
        !matches!(self, DegradedServer::Postgres { connections, .. } if !connections.is_empty())
    }

    /// Repairs the server.
    pub async fn repair(self) -> Result<()> {
        match self {
            DegradedServer::MySql { mut administrator, remedy, connections } => {
                drop(connections);
                for sql in remedy {
                    raw_sql(AssertSqlSafe(sql)).execute(&mut administrator).await?;
                }
            }
            DegradedServer::Postgres { mut administrator, remedy, connections } => {
                drop(connections);
                for sql in remedy {
                    raw_sql(AssertSqlSafe(sql)).execute(&mut administrator).await?;
                }
            }
        }
        Ok(())
    }
}

const NOTHING: &[&str] = &[];

/// Users with `READ_ONLY ADMIN` can write to a read-only server, so the privilege is revoked too. Open connections
/// keep it.
const READ_ONLY_MYSQL: &[&str] =
    &["REVOKE READ_ONLY ADMIN ON *.* FROM tickwright@'127.0.0.1'", "SET GLOBAL read_only = ON"];
const WRITABLE_MYSQL: &[&str] =
    &["SET GLOBAL read_only = OFF", "GRANT READ_ONLY ADMIN ON *.* TO tickwright@'127.0.0.1'"];

/// The minimum that the server accepts.
const CROWDED_MYSQL: &[&str] = &["SET GLOBAL max_connections = 10"];
const ROOMY_MYSQL: &[&str] = &["SET GLOBAL max_connections = 300"];

const READ_ONLY_POSTGRES: &[&str] = &[
    "SET default_transaction_read_only = off",
    "ALTER SYSTEM SET default_transaction_read_only = on",
    "SELECT pg_reload_conf()",
];
const WRITABLE_POSTGRES: &[&str] =
    &["ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()"];

/// More than the connection limit of our servers.
const CROWD_MAX: usize = 400;
