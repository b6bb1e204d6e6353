//! The databases that can be tried here, each time a new one in them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use cron::Zone;
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, raw_sql};
use store::Options;

/// Where databases can be created.
#[derive(Clone, Debug)]
pub enum Database {
    /// A file.
    Sqlite,
    /// On a MySQL or MariaDB server.
    MySql {
        /// Its address.
        server: String,
    },
    /// On a PostgreSQL server.
    Postgres {
        /// Its address.
        server: String,
    },
}

impl Database {
    /// SQLite always; the servers if their addresses are given.
    pub fn available() -> Vec<Database> {
        let mut databases = vec![Database::Sqlite];
        match std::env::var("TICKWRIGHT_TEST_MYSQL_URL") {
            Ok(server) => databases.push(Database::MySql { server }),
            Err(_) => println!("MariaDB     skipped: TICKWRIGHT_TEST_MYSQL_URL is not set"),
        }
        match std::env::var("TICKWRIGHT_TEST_POSTGRES_URL") {
            Ok(server) => databases.push(Database::Postgres { server }),
            Err(_) => println!("PostgreSQL  skipped: TICKWRIGHT_TEST_POSTGRES_URL is not set"),
        }
        databases
    }

    /// What people call it.
    pub fn name(&self) -> &'static str {
        match self {
            Database::Sqlite => "SQLite",
            Database::MySql { .. } => "MariaDB",
            Database::Postgres { .. } => "PostgreSQL",
        }
    }

    /// Whether it can be used.
    pub async fn answers(&self) -> bool {
        match self {
            Database::Sqlite => true,
            Database::MySql { server } => MySqlConnection::connect(server).await.is_ok(),
            Database::Postgres { server } => PgConnection::connect(server).await.is_ok(),
        }
    }

    /// A new database, with nothing in it.
    pub async fn create(&self) -> Result<Home> {
        let name = format!("tickwright_bench_{:08x}", fastrand::u32(..));
        Ok(match self {
            Database::Sqlite => Home::Sqlite(std::env::temp_dir().join(format!("{name}.db"))),
            Database::MySql { server } => {
                let mut connection = MySqlConnection::connect(server).await?;
                raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await?;
                Home::MySql { url: with_database(server, &name)?, server: server.clone(), name }
            }
            Database::Postgres { server } => {
                let mut connection = PgConnection::connect(server).await?;
                raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await?;
                Home::Postgres { url: with_database(server, &name)?, server: server.clone(), name }
            }
        })
    }
}

fn with_database(server: &str, name: &str) -> Result<String> {
    let (address, _) = server.rsplit_once('/').context("the address of a server ends with a database")?;
    Ok(format!("{address}/{name}"))
}

/// A database of our own.
#[derive(Clone, Debug)]
pub enum Home {
    /// A file.
    Sqlite(PathBuf),
    /// On a MySQL or MariaDB server.
    MySql {
        /// Its address,
        url: String,
        /// that of its server,
        server: String,
        /// and its name there.
        name: String,
    },
    /// On a PostgreSQL server.
    Postgres {
        /// Its address,
        url: String,
        /// that of its server,
        server: String,
        /// and its name there.
        name: String,
    },
}

impl Home {
    /// Its address, with its password.
    pub fn url(&self) -> String {
        match self {
            Home::Sqlite(path) => format!("sqlite:{}", path.display()),
            Home::MySql { url, .. } | Home::Postgres { url, .. } => url.clone(),
        }
    }

    /// Opens it, with its tables.
    pub async fn open(&self) -> Result<Arc<dyn store::Database>> {
        Ok(store::open(&self.url(), Options { zone: Zone::utc(), ..Options::default() }).await?)
    }

    /// After jobs were written with numbers of our own: what a server does by itself after a while, since before it has
    /// counted, its plans are guesses; and PostgreSQL would number the next job like the first.
    pub async fn count(&self) -> Result<()> {
        match self {
            Home::Sqlite(_) => Ok(()),
            Home::MySql { .. } => self.run(&["ANALYZE TABLE xxl_job_info, tw_job".into()]).await,
            Home::Postgres { .. } => {
                let numbered =
                    "SELECT setval(pg_get_serial_sequence('xxl_job_info', 'id'), MAX(id)) FROM xxl_job_info";
                let analyzed = "VACUUM ANALYZE xxl_job_info, tw_job";
                self.run(&[numbered.into(), analyzed.into()]).await
            }
        }
    }

    /// Runs statements, one after the other.
    pub async fn run(&self, statements: &[String]) -> Result<()> {
        match self {
            Home::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path)?;
                connection.execute_batch(&statements.join(";\n"))?;
            }
            Home::MySql { url, .. } => {
                let mut connection = MySqlConnection::connect(url).await?;
                for sql in statements {
                    raw_sql(AssertSqlSafe(sql.as_str())).execute(&mut connection).await?;
                }
            }
            Home::Postgres { url, .. } => {
                let mut connection = PgConnection::connect(url).await?;
                for sql in statements {
                    raw_sql(AssertSqlSafe(sql.as_str())).execute(&mut connection).await?;
                }
            }
        }
        Ok(())
    }

    /// Runs a statement in a transaction, and keeps that open for a while.
    pub async fn hold(&self, statement: &str, length: Duration) -> Result<()> {
        match self {
            Home::Sqlite(_) => bail!("a file has one writer, and nobody waits for rows"),
            Home::MySql { url, .. } => {
                let mut connection = MySqlConnection::connect(url).await?;
                let mut transaction = connection.begin().await?;
                raw_sql(AssertSqlSafe(statement)).execute(&mut *transaction).await?;
                tokio::time::sleep(length).await;
                transaction.rollback().await?;
            }
            Home::Postgres { url, .. } => {
                let mut connection = PgConnection::connect(url).await?;
                let mut transaction = connection.begin().await?;
                raw_sql(AssertSqlSafe(statement)).execute(&mut *transaction).await?;
                tokio::time::sleep(length).await;
                transaction.rollback().await?;
            }
        }
        Ok(())
    }

    /// Deletes it.
    pub async fn remove(self) -> Result<()> {
        match self {
            Home::Sqlite(path) => {
                for ending in ["", "-wal", "-shm", "-lock", ".lock"] {
                    let mut file = path.clone().into_os_string();
                    file.push(ending);
                    if let Err(error) = std::fs::remove_file(file)
                        && error.kind() != std::io::ErrorKind::NotFound
                    {
                        return Err(error.into());
                    }
                }
            }
            Home::MySql { server, name, .. } => {
                let mut connection = MySqlConnection::connect(&server).await?;
                raw_sql(AssertSqlSafe(format!("DROP DATABASE {name}"))).execute(&mut connection).await?;
            }
            Home::Postgres { server, name, .. } => {
                let mut connection = PgConnection::connect(&server).await?;
                raw_sql(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)")))
                    .execute(&mut connection)
                    .await?;
            }
        }
        Ok(())
    }
}
