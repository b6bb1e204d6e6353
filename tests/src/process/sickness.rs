//! A degraded database server: it accepts connections but does not work.

use anyhow::{Result, bail};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, raw_sql};

use super::database_server::DatabaseServer;
use crate::database::Database;

/// Kind of degradation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sickness {
    /// The server rejects writes.
    ReadOnly,
    /// Other clients use all connections.
    Crowded,
}

/// A degraded server.
pub enum Illness {
    /// Connections needed to repair a MariaDB server, and those that fill it.
    MySql {
        /// Opened before the server was degraded.
        administrator: MySqlConnection,
        /// SQL that repairs the server.
        remedy: Vec<&'static str>,
        /// Connections that occupy the server.
        crowd: Vec<MySqlConnection>,
    },
    /// The same for PostgreSQL.
    Postgres {
        /// Opened before the server was degraded.
        administrator: PgConnection,
        /// SQL that repairs the server.
        remedy: Vec<&'static str>,
        /// Connections that occupy the server.
        crowd: Vec<PgConnection>,
    },
}

impl DatabaseServer {
    /// Degrades the server.
    pub async fn fall_ill(&self, sickness: Sickness) -> Result<Illness> {
        match &self.database {
            Database::Sqlite => bail!("a file is no server"),
            Database::MySql { server } => {
                let mut administrator = MySqlConnection::connect(server).await?;
                let (cause, remedy) = match sickness {
                    Sickness::ReadOnly => (READ_ONLY_MYSQL, WRITABLE_MYSQL),
                    Sickness::Crowded => (CROWDED_MYSQL, ROOMY_MYSQL),
                };
                for sql in cause {
                    raw_sql(AssertSqlSafe(*sql)).execute(&mut administrator).await?;
                }
                let mut crowd = Vec::new();
                while sickness == Sickness::Crowded && crowd.len() < CROWD_MAX {
                    let Ok(one) = MySqlConnection::connect(server).await else { break };
                    crowd.push(one);
                }
                Ok(Illness::MySql { administrator, remedy: remedy.to_vec(), crowd })
            }
            Database::Postgres { server } => {
                let mut administrator = PgConnection::connect(server).await?;
                let (cause, remedy) = match sickness {
                    Sickness::ReadOnly => (READ_ONLY_POSTGRES, WRITABLE_POSTGRES),
                    Sickness::Crowded => (NOTHING, NOTHING),
                };
                for sql in cause {
                    raw_sql(AssertSqlSafe(*sql)).execute(&mut administrator).await?;
                }
                let mut crowd = Vec::new();
                while sickness == Sickness::Crowded && crowd.len() < CROWD_MAX {
                    let Ok(one) = PgConnection::connect(server).await else { break };
                    crowd.push(one);
                }
                Ok(Illness::Postgres { administrator, remedy: remedy.to_vec(), crowd })
            }
        }
    }
}

impl Illness {
    /// Repairs the server.
    pub async fn heal(self) -> Result<()> {
        match self {
            Illness::MySql { mut administrator, remedy, crowd } => {
                drop(crowd);
                for sql in remedy {
                    raw_sql(AssertSqlSafe(sql)).execute(&mut administrator).await?;
                }
            }
            Illness::Postgres { mut administrator, remedy, crowd } => {
                drop(crowd);
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
