//! The databases available for tests; each test creates a new one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use cron::Zone;
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, raw_sql};
use store::Options;

use crate::process::micros_now;

/// A database system that can create databases.
#[derive(Clone, Debug)]
pub enum Database {
    /// A file.
    Sqlite,
    /// A MySQL or MariaDB server.
    MySql {
        /// URL of the server.
        server: String,
    },
    /// A PostgreSQL server.
    Postgres {
        /// URL of the server.
        server: String,
    },
}

impl Database {
    /// SQLite always; the servers if their URLs are set.
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

    /// Product name.
    pub fn name(&self) -> &'static str {
        match self {
            Database::Sqlite => "SQLite",
            Database::MySql { .. } => "MariaDB",
            Database::Postgres { .. } => "PostgreSQL",
        }
    }

    /// Whether it accepts connections.
    pub async fn answers(&self) -> bool {
        match self {
            Database::Sqlite => true,
            Database::MySql { server } => MySqlConnection::connect(server).await.is_ok(),
            Database::Postgres { server } => PgConnection::connect(server).await.is_ok(),
        }
    }

    /// Creates a new, empty database.
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

/// A database created for a test.
#[derive(Clone, Debug)]
pub enum Home {
    /// A file.
    Sqlite(PathBuf),
    /// A database on a MySQL or MariaDB server.
    MySql {
        /// URL of the database.
        url: String,
        /// URL of the server.
        server: String,
        /// Name of the database.
        name: String,
    },
    /// A database on a PostgreSQL server.
    Postgres {
        /// URL of the database.
        url: String,
        /// URL of the server.
        server: String,
        /// Name of the database.
        name: String,
    },
}

impl Home {
    /// URL of the database, including the password.
    pub fn url(&self) -> String {
        match self {
            Home::Sqlite(path) => format!("sqlite:{}", path.display()),
            Home::MySql { url, .. } | Home::Postgres { url, .. } => url.clone(),
        }
    }

    /// Opens the store and creates its tables.
    pub async fn open(&self) -> Result<Arc<store::Database>> {
        Ok(store::open(&self.url(), Options { zone: Zone::utc(), ..Options::default() }).await?)
    }

    /// Updates statistics after jobs were written with explicit ids. Servers do so by themselves after a while, and
    /// their query plans are poor until then; and PostgreSQL's sequence would start at the first id again.
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

    /// Executes statements in order.
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

    /// Executes statements in one transaction, as another program would. Returns the time of the database before and
    /// after the commit, in milliseconds.
    pub async fn commit(&self, statements: Vec<String>) -> Result<(i64, i64)> {
        match self {
            Home::Sqlite(path) => {
                let path = path.clone();
                // It may wait for the file, and other tasks of this thread must not.
                let work = move || -> Result<(i64, i64)> {
                    let mut connection = rusqlite::Connection::open(path)?;
                    connection.busy_timeout(BUSY_TIMEOUT)?;
                    let transaction =
                        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
                    transaction.execute_batch(&statements.join(";\n"))?;
                    let before = micros_now() / 1_000;
                    transaction.commit()?;
                    Ok((before, micros_now() / 1_000))
                };
                tokio::task::spawn_blocking(work).await?
            }
            Home::MySql { url, .. } => {
                let mut connection = MySqlConnection::connect(url).await?;
                let now = "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)";
                let mut transaction = connection.begin().await?;
                for sql in &statements {
                    raw_sql(AssertSqlSafe(sql.as_str())).execute(&mut *transaction).await?;
                }
                let before = sqlx::query_scalar(now).fetch_one(&mut *transaction).await?;
                transaction.commit().await?;
                Ok((before, sqlx::query_scalar(now).fetch_one(&mut connection).await?))
            }
            Home::Postgres { url, .. } => {
                let mut connection = PgConnection::connect(url).await?;
                let now = "SELECT CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)";
                let mut transaction = connection.begin().await?;
                for sql in &statements {
                    raw_sql(AssertSqlSafe(sql.as_str())).execute(&mut *transaction).await?;
                }
                let before = sqlx::query_scalar(now).fetch_one(&mut *transaction).await?;
                transaction.commit().await?;
                Ok((before, sqlx::query_scalar(now).fetch_one(&mut connection).await?))
            }
        }
    }

    /// Rows of three numbers that a query returns, each column of type `BIGINT`.
    pub async fn numbers(&self, query: &'static str) -> Result<Vec<(i64, i64, i64)>> {
        Ok(match self {
            Home::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path)?;
                let mut statement = connection.prepare(query)?;
                let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
                rows.collect::<Result<_, _>>()?
            }
            Home::MySql { url, .. } => {
                let mut connection = MySqlConnection::connect(url).await?;
                sqlx::query_as(query).fetch_all(&mut connection).await?
            }
            Home::Postgres { url, .. } => {
                let mut connection = PgConnection::connect(url).await?;
                sqlx::query_as(query).fetch_all(&mut connection).await?
            }
        })
    }

    /// Creates XXL-JOB's tables, as its installation does before the first start of a Java admin.
    pub async fn create_xxl_tables(&self) -> Result<()> {
        let script = match self {
            Home::Sqlite(_) => include_str!("../../crates/store/src/schema/sqlite/xxl.sql"),
            Home::MySql { .. } => include_str!("../../crates/store/src/schema/mysql/xxl.sql"),
            Home::Postgres { .. } => include_str!("../../crates/store/src/schema/postgres/xxl.sql"),
        };
        let statements = script.split(";\n").map(str::trim).filter(|sql| !sql.is_empty());
        self.run(&statements.map(str::to_owned).collect::<Vec<_>>()).await
    }

    /// Executes a statement in a transaction and keeps it open for this long.
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

    /// Deletes the database.
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

/// A file has one writer at a time, and the centre writes often.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
