//! A database server that answers, and does not work.

use anyhow::{Result, bail};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, raw_sql};

use super::database_server::DatabaseServer;
use crate::database::Database;

/// What a server suffers from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sickness {
    /// It takes no writes.
    ReadOnly,
    /// Others have all its connections.
    Crowded,
}

/// A server that suffers.
pub enum Illness {
    /// What the administrator of a MariaDB server needs to make it well again, and who fills it.
    MySql {
        /// Opened before anything was taken away.
        administrator: MySqlConnection,
        /// Runs when it is over.
        remedy: Vec<&'static str>,
        /// Those that keep others out.
        crowd: Vec<MySqlConnection>,
    },
    /// The same for PostgreSQL.
    Postgres {
        /// Opened before anything was taken away.
        administrator: PgConnection,
        /// Runs when it is over.
        remedy: Vec<&'static str>,
        /// Those that keep others out.
        crowd: Vec<PgConnection>,
    },
}

impl DatabaseServer {
    /// Makes it suffer.
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
    /// Makes it well again.
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

/// Whoever may write all the same is not told so in vain: the right goes, too. A connection that is open keeps it.
const READ_ONLY_MYSQL: &[&str] =
    &["REVOKE READ_ONLY ADMIN ON *.* FROM tickwright@'127.0.0.1'", "SET GLOBAL read_only = ON"];
const WRITABLE_MYSQL: &[&str] =
    &["SET GLOBAL read_only = OFF", "GRANT READ_ONLY ADMIN ON *.* TO tickwright@'127.0.0.1'"];

/// The fewest that a server can be told.
const CROWDED_MYSQL: &[&str] = &["SET GLOBAL max_connections = 10"];
const ROOMY_MYSQL: &[&str] = &["SET GLOBAL max_connections = 300"];

const READ_ONLY_POSTGRES: &[&str] = &[
    "SET default_transaction_read_only = off",
    "ALTER SYSTEM SET default_transaction_read_only = on",
    "SELECT pg_reload_conf()",
];
const WRITABLE_POSTGRES: &[&str] =
    &["ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()"];

/// More than a server of ours has.
const CROWD_MAX: usize = 400;
