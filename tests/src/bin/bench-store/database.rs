//! The databases to measure, each new and full of jobs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use cron::{Cron, DstRule, Schedule, Zone};
use engine::{AppId, JobSpec, Store};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, raw_sql};
use store::Options;
use timer::Timestamp;

/// Where databases can be created.
pub enum Database {
    Sqlite,
    MySql { server: String },
    Postgres { server: String },
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

    pub fn name(&self) -> &'static str {
        match self {
            Database::Sqlite => "SQLite",
            Database::MySql { .. } => "MariaDB",
            Database::Postgres { .. } => "PostgreSQL",
        }
    }

    /// How many batches are under way at a time. SQLite has one writer; a second prepares while it syncs.
    pub fn workers(&self) -> usize {
        match self {
            Database::Sqlite => 2,
            Database::MySql { .. } | Database::Postgres { .. } => 3,
        }
    }

    /// A new database with so many started jobs. They are due in so many blocks, [`BLOCK_STEP`] apart; the others
    /// much later.
    pub async fn create(&self, jobs: u64, blocks: u64) -> Result<Home> {
        let name = format!("tickwright_bench_{:08x}", fastrand::u32(..));
        let home = match self {
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
        };
        let store = home.open().await?;
        store.create_job(&a_job()?).await?;
        drop(store);
        home.run(&fill(jobs, blocks)).await?;
        home.count().await?;
        Ok(home)
    }
}

/// Jobs that are due together.
pub const BLOCK: u64 = 1_000;
pub const BLOCK_STEP: Duration = Duration::from_secs(60);

/// The first block's fire.
pub const FIRST_FIRE: Timestamp = Timestamp::from_millis(1_782_000_000_000);

fn with_database(server: &str, name: &str) -> Result<String> {
    let (address, _) = server.rsplit_once('/').context("the address of a server ends with a database")?;
    Ok(format!("{address}/{name}"))
}

fn a_job() -> Result<JobSpec> {
    let schedule = Schedule::cron(Cron::parse("0 */5 * * * ?")?, Zone::utc(), DstRule::QUARTZ);
    let mut spec =
        JobSpec::new(AppId(1), "synchronize the orders of the last five minutes", schedule, "syncOrders");
    spec.param = r#"{"source":"shop","target":"warehouse","limit":1000,"dryRun":false}"#.into();
    Ok(spec)
}

/// Copies the first job, again and again by twos, and starts them all.
fn fill(jobs: u64, blocks: u64) -> Vec<String> {
    let mut sql = Vec::new();
    let mut count = 1;
    while count < jobs {
        let copied = format!("id <= {count} AND id + {count} <= {jobs}");
        sql.push(format!(
            "INSERT INTO xxl_job_info (id, {JOB}) SELECT id + {count}, {JOB} FROM xxl_job_info WHERE {copied}"
        ));
        let copied = copied.replace("id", "job_id");
        sql.push(format!(
            "INSERT INTO tw_job (job_id, {OWN}) SELECT job_id + {count}, {OWN} FROM tw_job WHERE {copied}"
        ));
        count *= 2;
    }
    let fire = |id: &str| {
        let (first, step) = (FIRST_FIRE.as_millis(), BLOCK_STEP.as_millis() / u128::from(BLOCK));
        let later = FIRST_FIRE.as_millis() + 30 * 86_400_000;
        format!(
            "CASE WHEN {id} <= {} THEN {first} + ({id} - 1 - ({id} - 1) % {BLOCK}) * {step} ELSE {later} + {id} END",
            blocks * BLOCK.min(jobs)
        )
    };
    sql.push(format!("UPDATE xxl_job_info SET trigger_status = 1, trigger_next_time = {}", fire("id")));
    let own = fire("job_id");
    sql.push(format!("UPDATE tw_job SET next_ms = {own}, claim_ms = {own} - 1500"));
    sql
}

const JOB: &str = "job_group, job_desc, add_time, update_time, author, alarm_email, schedule_type, schedule_conf, \
     misfire_strategy, executor_route_strategy, executor_handler, executor_param, executor_block_strategy, \
     executor_timeout, executor_fail_retry_count, glue_type, glue_source, glue_remark, glue_updatetime, child_jobid, \
     trigger_status, trigger_last_time, trigger_next_time";
const OWN: &str = "zone, dst_rule, anchor_ms, schedule_kind, schedule_text, jitter_ms, timeout_ms, misfire, overlap, \
     retry, delivery, children_mode, alert, revision";

/// A database of our own.
pub enum Home {
    Sqlite(PathBuf),
    MySql { url: String, server: String, name: String },
    Postgres { url: String, server: String, name: String },
}

impl Home {
    pub async fn open(&self) -> Result<Arc<dyn Store>> {
        let url = match self {
            Home::Sqlite(path) => format!("sqlite:{}", path.display()),
            Home::MySql { url, .. } | Home::Postgres { url, .. } => url.clone(),
        };
        Ok(store::open(&url, Options { zone: Zone::utc(), ..Options::default() }).await?)
    }

    /// What a server does by itself after a while: before it has counted, its plans are guesses.
    async fn count(&self) -> Result<()> {
        match self {
            Home::Sqlite(_) => Ok(()),
            Home::MySql { .. } => self.run(&["ANALYZE TABLE xxl_job_info, tw_job".into()]).await,
            Home::Postgres { .. } => {
                self.run(&["VACUUM ANALYZE xxl_job_info".into(), "VACUUM ANALYZE tw_job".into()]).await
            }
        }
    }

    async fn run(&self, statements: &[String]) -> Result<()> {
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
