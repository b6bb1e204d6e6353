//! The same lifecycles in the simplest way: one job per transaction, one row per statement. Writes the same rows to
//! the same tables, through the same drivers, with as many workers.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use rusqlite::params;
use sqlx::{AssertSqlSafe, Connection, MySqlPool, PgPool, Row};

use tickwright_tests::database::Home;

pub async fn lifecycles_per_second(home: &Home, workers: usize, length: Duration) -> Result<f64> {
    let start = Instant::now();
    let until = start + length;
    let count = match home {
        Home::Sqlite(path) => {
            let path = path.clone();
            tokio::task::spawn_blocking(move || sqlite(&path, until)).await??
        }
        Home::MySql { url, .. } => {
            let pool = MySqlPool::connect(url).await?;
            let tasks: Vec<_> = (0..workers).map(|_| tokio::spawn(mysql(pool.clone(), until))).collect();
            sum(tasks).await?
        }
        Home::Postgres { url, .. } => {
            let pool = PgPool::connect(url).await?;
            let tasks: Vec<_> = (0..workers).map(|_| tokio::spawn(postgres(pool.clone(), until))).collect();
            sum(tasks).await?
        }
    };
    Ok(count as f64 / start.elapsed().as_secs_f64())
}

async fn sum(tasks: Vec<tokio::task::JoinHandle<Result<u64>>>) -> Result<u64> {
    let mut count = 0;
    for task in tasks {
        count += task.await??;
    }
    Ok(count)
}

const FIND: &str = "SELECT job_id, next_ms FROM tw_job WHERE claim_ms <= ? ORDER BY claim_ms, job_id LIMIT 1";
const READ: &str = "SELECT job_group, executor_handler, executor_param FROM xxl_job_info WHERE id = ?";
const ADVANCE: &str = "UPDATE xxl_job_info SET trigger_last_time = ?, trigger_next_time = ? \
     WHERE id = ? AND trigger_next_time = ? AND trigger_status = 1";
const ADVANCE_OWN: &str = "UPDATE tw_job SET next_ms = ?, claim_ms = ? WHERE job_id = ?";
const LOG: &str = "INSERT INTO xxl_job_log (job_group, job_id, executor_address, executor_handler, executor_param, \
     executor_fail_retry_count, trigger_time, trigger_code, handle_code, alarm_status) \
     VALUES (?, ?, 'http://10.0.0.7:9999/', ?, ?, 0, CURRENT_TIMESTAMP, 0, 0, 1)";
const FIRE: &str = "INSERT INTO tw_run (run_id, fire_id, job_id, scheduled_ms, kind, cause, shard, shards, attempt, depth, \
     state, version, node, epoch, due_ms, check_ms, address) \
     VALUES (?, ?, ?, ?, 1, 0, 0, 1, 1, 0, 1, 1, 'bench', 1, ?, ?, 'http://10.0.0.7:9999/')";
const ACCEPT: &str =
    "UPDATE tw_run SET state = 4, version = 2, check_ms = ? WHERE run_id = ? AND version = 1";
const FIND_RUN: &str = "SELECT state FROM tw_run WHERE run_id = ?";
const FINISH: &str = "UPDATE xxl_job_log SET trigger_code = 200, handle_time = CURRENT_TIMESTAMP, handle_code = 200, \
     handle_msg = 'done' WHERE id = ? AND handle_code = 0";
const FORGET: &str = "DELETE FROM tw_run WHERE run_id = ?";

/// Later than every due time.
const NOW: i64 = i64::MAX;

fn sqlite(path: &Path, until: Instant) -> Result<u64> {
    let connection = rusqlite::Connection::open(path)?;
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")?;
    let run = |sql: &str, params: &[&dyn rusqlite::ToSql]| connection.prepare_cached(sql)?.execute(params);
    let mut count = 0;
    while Instant::now() < until {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let (job, at): (i64, i64) =
            connection.prepare_cached(FIND)?.query_row(params![NOW], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (group, handler, param): (i64, String, String) = connection
            .prepare_cached(READ)?
            .query_row(params![job], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let next = at + 1_000;
        run(ADVANCE, params![at, next, job, at])?;
        run(ADVANCE_OWN, params![next, next - 1_500, job])?;
        run(LOG, params![group, job, handler, param])?;
        let id = connection.last_insert_rowid();
        run(FIRE, params![id, id, job, at, at, at])?;
        connection.execute_batch("COMMIT")?;

        connection.execute_batch("BEGIN IMMEDIATE")?;
        run(ACCEPT, params![at + 60_000, id])?;
        connection.execute_batch("COMMIT")?;

        connection.execute_batch("BEGIN IMMEDIATE")?;
        let _: i64 = connection.prepare_cached(FIND_RUN)?.query_row(params![id], |row| row.get(0))?;
        run(FINISH, params![id])?;
        run(FORGET, params![id])?;
        connection.execute_batch("COMMIT")?;
        count += 1;
    }
    Ok(count)
}

/// The two servers differ in settings, parameter syntax, and how the id of a new row is returned.
macro_rules! on_a_server {
    ($name:ident, $pool:ty, $settings:literal, $sql:path, $log_sql:expr, |$tx:ident, $log:ident| $id:expr) => {
        async fn $name(pool: $pool, until: Instant) -> Result<u64> {
            let mut connection = pool.acquire().await?;
            sqlx::raw_sql($settings).execute(&mut *connection).await?;
            let find = format!("{FIND} FOR UPDATE SKIP LOCKED");
            let mut count = 0;
            while Instant::now() < until {
                let mut $tx = connection.begin().await?;
                let job = sqlx::query($sql(&find)).bind(NOW).fetch_one(&mut *$tx).await?;
                let (job, at): (i64, i64) = (job.try_get(0)?, job.try_get(1)?);
                let read = sqlx::query($sql(READ)).bind(job).fetch_one(&mut *$tx).await?;
                let (handler, param): (String, String) = (read.try_get(1)?, read.try_get(2)?);
                let next = at + 1_000;
                let advance = sqlx::query($sql(ADVANCE)).bind(at).bind(next).bind(job).bind(at);
                advance.execute(&mut *$tx).await?;
                let advance = sqlx::query($sql(ADVANCE_OWN)).bind(next).bind(next - 1_500).bind(job);
                advance.execute(&mut *$tx).await?;
                let $log = sqlx::query($sql($log_sql)).bind(1_i64).bind(job).bind(handler).bind(param);
                let id: i64 = $id;
                let fire = sqlx::query($sql(FIRE)).bind(id).bind(id).bind(job).bind(at).bind(at).bind(at);
                fire.execute(&mut *$tx).await?;
                $tx.commit().await?;

                let mut tx = connection.begin().await?;
                sqlx::query($sql(ACCEPT)).bind(at + 60_000).bind(id).execute(&mut *tx).await?;
                tx.commit().await?;

                let mut tx = connection.begin().await?;
                sqlx::query($sql(FIND_RUN)).bind(id).fetch_one(&mut *tx).await?;
                sqlx::query($sql(FINISH)).bind(id).execute(&mut *tx).await?;
                sqlx::query($sql(FORGET)).bind(id).execute(&mut *tx).await?;
                tx.commit().await?;
                count += 1;
            }
            Ok(count)
        }
    };
}

on_a_server!(
    mysql,
    MySqlPool,
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    as_it_is,
    LOG,
    |tx, log| { i64::try_from(log.execute(&mut *tx).await?.last_insert_id())? }
);

on_a_server!(
    postgres,
    PgPool,
    "SET default_transaction_isolation = 'read committed'",
    numbered,
    &format!("{LOG} RETURNING id"),
    |tx, log| { log.fetch_one(&mut *tx).await?.try_get(0)? }
);

fn as_it_is(sql: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(sql.to_owned())
}

/// Replaces each `?` by `$1`, `$2` and so on.
fn numbered(sql: &str) -> AssertSqlSafe<String> {
    let mut pieces = sql.split('?');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for (index, piece) in pieces.enumerate() {
        text.push_str(&format!("${}{piece}", index + 1));
    }
    AssertSqlSafe(text)
}
