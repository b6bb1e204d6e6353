//! The tables: XXL-JOB's, existing or newly created, and our own.
//!
//! An existing XXL-JOB database is inspected column by column, not by version number, and never altered: only `tw_*`
//! tables are added, so that dropping them undoes everything. The result is a [`Schema`], which all SQL about
//! XXL-JOB's tables depends on.

use std::collections::BTreeMap;

use engine::StoreError;

use crate::session::{Columns, Lock, Row, Session, SessionError, Value};

/// SQL dialect of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// MySQL and MariaDB.
    MySql,
    /// PostgreSQL.
    Postgres,
}

/// Creates missing tables, and returns the schema found. Any number of processes may do this at once.
pub async fn prepare(session: &mut dyn Session, dialect: Dialect) -> Result<Schema, SessionError> {
    take_turn(session, dialect).await?;
    let prepared = prepare_alone(session, dialect).await;
    end_turn(session, dialect, prepared.is_ok()).await?;
    prepared
}

async fn prepare_alone(session: &mut dyn Session, dialect: Dialect) -> Result<Schema, SessionError> {
    let found = Found::read(session, dialect).await?;
    if !found.has_table("tw_schema") {
        run_script(session, SCHEMA_TABLE).await?;
    }
    create_xxl_tables(session, dialect, &found).await?;
    let was_xxl_jobs = recorded(session, XXL_VERSION).await?.is_none();
    migrate(session, dialect).await?;
    ensure_lock_row(session).await?;
    Schema::new(Found::read(session, dialect).await?, dialect, was_xxl_jobs)
}

/// Describes the changes that [`prepare`] would make; empty if there are none. Only reads.
pub async fn pending(session: &mut dyn Session, dialect: Dialect) -> Result<Vec<String>, SessionError> {
    let found = Found::read(session, dialect).await?;
    let mut pending = Vec::new();
    if XXL_TABLES.iter().any(|table| !found.has_table(table)) {
        pending.push("the tables of XXL-JOB".to_owned());
    }
    for migration in migrations(dialect) {
        let is_there = found.has_table("tw_schema") && recorded(session, migration.version).await?.is_some();
        if !is_there {
            pending.push(format!("our own tables, step {} ({})", migration.version, migration.name));
        }
    }
    Ok(pending)
}

/// Facts about the tables that SQL statements depend on.
#[derive(Clone, Debug)]
pub struct Schema {
    dialect: Dialect,
    found: Found,
    was_xxl_jobs: bool,
}

impl Schema {
    fn new(found: Found, dialect: Dialect, was_xxl_jobs: bool) -> Result<Schema, SessionError> {
        let schema = Schema { dialect, found, was_xxl_jobs };
        for (table, columns) in NEEDED {
            for column in columns.split(' ') {
                if !schema.has(table, column) {
                    return Err(incomplete(format!("the table {table} has no column {column}")));
                }
            }
        }
        if !schema.has_schedule_type() && !schema.has("xxl_job_info", "job_cron") {
            return Err(incomplete("the table xxl_job_info has neither schedule_type nor job_cron".into()));
        }
        Ok(schema)
    }

    /// SQL dialect of the database.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether XXL-JOB's tables existed before ours: then Java admins may use them too.
    pub fn was_xxl_jobs(&self) -> bool {
        self.was_xxl_jobs
    }

    /// XXL-JOB releases that have these tables.
    pub fn generation(&self) -> &'static str {
        match () {
            () if !self.has_schedule_type() => "2.2",
            () if self.has("xxl_job_info", "name") => "3.5",
            () if self.user_has_token() => "3.2 to 3.4",
            () => "2.3 to 3.1",
        }
    }

    /// Whether a column exists.
    pub fn has(&self, table: &str, column: &str) -> bool {
        self.found.columns.get(table).is_some_and(|columns| columns.contains_key(column))
    }

    /// Whether a job has `schedule_type`, `schedule_conf` and `misfire_strategy`. Before XXL-JOB 2.3 it had only
    /// `job_cron`.
    pub fn has_schedule_type(&self) -> bool {
        self.has("xxl_job_info", "schedule_type")
    }

    /// The name in this database of a column of XXL-JOB, which the caller names as in 3.4. `None` if there is none.
    pub fn column(&self, table: &str, column: &'static str) -> Option<&'static str> {
        let renamed = RENAMED.iter().find(|(of, names)| *of == table && names.contains(&column));
        let names = renamed.map_or(std::slice::from_ref(&column), |(_, names)| &names[..]);
        names.iter().copied().find(|name| self.has(table, name))
    }

    /// The list for a `SELECT` of columns of XXL-JOB, for the table or its alias. Columns that this database does not
    /// have are `NULL`.
    pub fn list(&self, table: &str, alias: &str, columns: &[&'static str]) -> String {
        let term = |column: &&'static str| match self.column(table, column) {
            Some(column) => format!("{alias}.{column}"),
            None => "NULL".to_owned(),
        };
        columns.iter().map(term).collect::<Vec<_>>().join(", ")
    }

    /// The columns to write, and their values in the rows, without those that this database does not have.
    pub fn existing(
        &self,
        write: Columns<'static>,
        mut rows: Vec<Vec<Value>>,
    ) -> (Vec<&'static str>, Vec<Vec<Value>>) {
        let names: Vec<_> = write.columns.iter().map(|column| self.column(write.table, column)).collect();
        for row in &mut rows {
            let mut is_there = write.keys.iter().map(|_| true).chain(names.iter().map(Option::is_some));
            row.retain(|_| is_there.next().unwrap_or(true));
        }
        (names.into_iter().flatten().collect(), rows)
    }

    /// Whether a user has a login token (and then a password column wide enough for SHA-256).
    pub fn user_has_token(&self) -> bool {
        self.has("xxl_job_user", "token")
    }

    /// Rejects a text that the column cannot hold, because the database might truncate it silently.
    pub fn check_fits(&self, table: &str, column: &'static str, text: &str) -> Result<(), StoreError> {
        let Some(column) = self.column(table, column) else { return Ok(()) };
        let width = self.found.columns.get(table).and_then(|columns| columns.get(column)).copied().flatten();
        let (length, most, unit) = match width {
            Some(Width::Chars(most)) => (text.chars().count(), most, "characters"),
            Some(Width::Bytes(most)) => (text.len(), most, "bytes"),
            None => return Ok(()),
        };
        if length <= most {
            return Ok(());
        }
        Err(StoreError::Invalid(format!(
            "the text has {length} {unit}; the column {table}.{column} of this database holds at most {most}"
        )))
    }

    /// The text, as much of it as the column holds.
    pub fn fitting(&self, table: &str, column: &'static str, text: &str) -> String {
        if self.check_fits(table, column, text).is_ok() {
            return text.to_owned();
        }
        let width = self
            .column(table, column)
            .and_then(|column| self.found.columns.get(table)?.get(column).copied()?);
        let (Some(Width::Chars(most)) | Some(Width::Bytes(most))) = width else { return text.to_owned() };
        let mut cut = String::new();
        for letter in text.chars() {
            if cut.len() + letter.len_utf8() + CUT.len() > most {
                break;
            }
            cut.push(letter);
        }
        cut + CUT
    }

    /// Rejects a row with a text that its column, or any database, cannot hold.
    pub fn check_row(&self, write: Columns<'static>, row: &[Value]) -> Result<(), StoreError> {
        for (column, value) in write.keys.iter().chain(write.columns).zip(row) {
            if let Value::Text(text) = value {
                check_text(text)?;
                self.check_fits(write.table, column, text)?;
            }
        }
        Ok(())
    }
}

/// End of a text that was cut.
const CUT: &str = "…";

/// Rejects U+0000 on all databases, because PostgreSQL cannot store it.
pub fn check_text(text: &str) -> Result<(), StoreError> {
    match text.contains('\0') {
        true => Err(StoreError::Invalid("a text with the character U+0000 cannot be stored".into())),
        false => Ok(()),
    }
}

/// Columns of XXL-JOB that have different names in different releases.
const RENAMED: [(&str, [&str; 2]); 3] = [
    ("xxl_job_info", ["name", "job_desc"]),
    ("xxl_job_info", ["schedule_conf", "job_cron"]),
    ("xxl_job_group", ["name", "title"]),
];

/// The columns of XXL-JOB's tables that every generation has, and that we read or write.
const NEEDED: &[(&str, &str)] = &[
    (
        "xxl_job_info",
        "id job_group add_time update_time author alarm_email executor_route_strategy executor_handler executor_param \
         executor_block_strategy executor_timeout executor_fail_retry_count glue_type glue_source glue_remark \
         glue_updatetime child_jobid trigger_status trigger_last_time trigger_next_time",
    ),
    (
        "xxl_job_log",
        "id job_group job_id executor_address executor_handler executor_param executor_sharding_param \
         executor_fail_retry_count trigger_time trigger_code trigger_msg handle_time handle_code handle_msg alarm_status",
    ),
    ("xxl_job_group", "id app_name address_type address_list"),
    ("xxl_job_registry", "id registry_group registry_key registry_value update_time"),
    ("xxl_job_log_report", "id trigger_day running_count suc_count fail_count"),
    ("xxl_job_logglue", "id job_id glue_type glue_source glue_remark add_time update_time"),
    ("xxl_job_user", "id username password role permission"),
    ("xxl_job_lock", "lock_name"),
];

// ── Inspecting ──────────────────────────────────────────────────────────────────────────────────────────────────

/// The existing tables and columns.
#[derive(Clone, Debug)]
struct Found {
    columns: BTreeMap<String, BTreeMap<String, Option<Width>>>,
}

/// Maximum size of a text column, if it has one.
#[derive(Clone, Copy, Debug)]
enum Width {
    Chars(usize),
    Bytes(usize),
}

impl Found {
    async fn read(session: &mut dyn Session, dialect: Dialect) -> Result<Found, SessionError> {
        let sql = match dialect {
            Dialect::Sqlite => {
                "SELECT t.name, c.name, lower(c.type), NULL FROM sqlite_master t JOIN pragma_table_info(t.name) c \
                 WHERE t.type = 'table'"
            }
            Dialect::MySql => {
                "SELECT table_name, column_name, data_type, character_maximum_length FROM information_schema.columns \
                 WHERE table_schema = DATABASE()"
            }
            Dialect::Postgres => {
                "SELECT table_name::text, column_name::text, data_type::text, character_maximum_length::bigint \
                 FROM information_schema.columns WHERE table_schema = current_schema()"
            }
        };
        let mut columns: BTreeMap<String, BTreeMap<String, Option<Width>>> = BTreeMap::new();
        for row in session.query(sql, &[], Lock::None).await? {
            let Row(values) = row;
            let [Value::Text(table), Value::Text(column), Value::Text(kind), length] = &values[..] else {
                return Err(incomplete(format!("failed to read its list of columns: {values:?}")));
            };
            columns.entry(table.clone()).or_default().insert(column.clone(), width(kind, length));
        }
        Ok(Found { columns })
    }

    fn has_table(&self, table: &str) -> bool {
        self.columns.contains_key(table)
    }
}

fn width(kind: &str, length: &Value) -> Option<Width> {
    match (kind, length) {
        (kind, Value::Int(most)) if kind.contains("char") => usize::try_from(*most).ok().map(Width::Chars),
        (kind, Value::Int(most)) if kind.contains("text") => usize::try_from(*most).ok().map(Width::Bytes),
        // SQLite has it in the type name.
        (kind, _) => {
            let most = kind.strip_prefix("varchar(")?.strip_suffix(')')?.parse().ok()?;
            Some(Width::Chars(most))
        }
    }
}

// ── Creating ────────────────────────────────────────────────────────────────────────────────────────────────────

/// Creates XXL-JOB's tables if none of them exist. If some exist, all must.
async fn create_xxl_tables(
    session: &mut dyn Session,
    dialect: Dialect,
    found: &Found,
) -> Result<(), SessionError> {
    let missing: Vec<&str> = XXL_TABLES.iter().copied().filter(|table| !found.has_table(table)).collect();
    let begun = recorded(session, XXL_VERSION).await?;
    if missing.is_empty() {
        return Ok(());
    }
    // Some of them may be ours, from a process that died while it created them.
    let unfinished = begun.as_ref().is_some_and(|step| step.applied_ms == 0);
    if missing.len() < XXL_TABLES.len() && !unfinished {
        return Err(incomplete(format!(
            "it has tables of XXL-JOB, but not {}; restore the missing tables, or use an empty database",
            missing.join(", ")
        )));
    }
    let script = match dialect {
        Dialect::Sqlite => include_str!("sqlite/xxl.sql"),
        Dialect::MySql => include_str!("mysql/xxl.sql"),
        Dialect::Postgres => include_str!("postgres/xxl.sql"),
    };
    if begun.is_none() {
        record(session, XXL_VERSION, "xxl", script, 0).await?;
    }
    run_script(session, script).await?;
    let now = session.now().await?;
    let done = [Value::Int(now.as_millis()), Value::Int(XXL_VERSION)];
    session.execute("UPDATE tw_schema SET applied_ms = ? WHERE version = ?", &done).await?;
    Ok(())
}

const XXL_TABLES: [&str; 8] = [
    "xxl_job_info",
    "xxl_job_log",
    "xxl_job_log_report",
    "xxl_job_logglue",
    "xxl_job_registry",
    "xxl_job_group",
    "xxl_job_user",
    "xxl_job_lock",
];

/// The migration number that records the creation of XXL-JOB's tables.
const XXL_VERSION: i64 = 0;

/// Applies the migrations that this version of the program needs. A database with further migrations is also used by
/// a newer node; migrations are written so that older nodes can still work.
async fn migrate(session: &mut dyn Session, dialect: Dialect) -> Result<(), SessionError> {
    for migration in migrations(dialect) {
        match recorded(session, migration.version).await? {
            Some(step) if step.checksum == checksum(migration.script) => continue,
            Some(_) => {
                return Err(incomplete(format!(
                    "migration {} ({}) was applied with a different text; this program and the database do not match",
                    migration.version, migration.name
                )));
            }
            None => {}
        }
        run_script(session, migration.script).await?;
        let now = session.now().await?;
        record(session, migration.version, migration.name, migration.script, now.as_millis()).await?;
    }
    Ok(())
}

/// One migration of our tables. Migrations are never edited, only added. MySQL cannot roll back a migration that
/// failed half-way, so each must be idempotent.
struct Migration {
    version: i64,
    name: &'static str,
    script: &'static str,
}

fn migrations(dialect: Dialect) -> Vec<Migration> {
    let [
        runs,
        centre,
        reports,
        tags,
        records,
        declarations,
        lost,
        failed,
        withdrawals,
        executor_tokens,
        sign_in_origins,
        workflows,
        step_jobs,
        resume,
        backfills,
        workflow_versions,
        workflow_step_jobs,
    ] = match dialect {
        Dialect::Sqlite => [
            include_str!("sqlite/1_runs.sql"),
            include_str!("sqlite/2_centre.sql"),
            include_str!("sqlite/3_reports.sql"),
            include_str!("sqlite/4_tags.sql"),
            include_str!("sqlite/5_records.sql"),
            include_str!("sqlite/6_declarations.sql"),
            include_str!("sqlite/7_lost.sql"),
            include_str!("sqlite/8_failed.sql"),
            include_str!("sqlite/9_withdrawals.sql"),
            include_str!("sqlite/10_executor_tokens.sql"),
            include_str!("sqlite/11_sign_in_origins.sql"),
            include_str!("sqlite/12_workflows.sql"),
            include_str!("sqlite/13_step_jobs.sql"),
            include_str!("sqlite/14_resume.sql"),
            include_str!("sqlite/15_backfills.sql"),
            include_str!("sqlite/16_workflow_versions.sql"),
            include_str!("sqlite/17_workflow_step_jobs.sql"),
        ],
        Dialect::MySql => [
            include_str!("mysql/1_runs.sql"),
            include_str!("mysql/2_centre.sql"),
            include_str!("mysql/3_reports.sql"),
            include_str!("mysql/4_tags.sql"),
            include_str!("mysql/5_records.sql"),
            include_str!("mysql/6_declarations.sql"),
            include_str!("mysql/7_lost.sql"),
            include_str!("mysql/8_failed.sql"),
            include_str!("mysql/9_withdrawals.sql"),
            include_str!("mysql/10_executor_tokens.sql"),
            include_str!("mysql/11_sign_in_origins.sql"),
            include_str!("mysql/12_workflows.sql"),
            include_str!("mysql/13_step_jobs.sql"),
            include_str!("mysql/14_resume.sql"),
            include_str!("mysql/15_backfills.sql"),
            include_str!("mysql/16_workflow_versions.sql"),
            include_str!("mysql/17_workflow_step_jobs.sql"),
        ],
        Dialect::Postgres => [
            include_str!("postgres/1_runs.sql"),
            include_str!("postgres/2_centre.sql"),
            include_str!("postgres/3_reports.sql"),
            include_str!("postgres/4_tags.sql"),
            include_str!("postgres/5_records.sql"),
            include_str!("postgres/6_declarations.sql"),
            include_str!("postgres/7_lost.sql"),
            include_str!("postgres/8_failed.sql"),
            include_str!("postgres/9_withdrawals.sql"),
            include_str!("postgres/10_executor_tokens.sql"),
            include_str!("postgres/11_sign_in_origins.sql"),
            include_str!("postgres/12_workflows.sql"),
            include_str!("postgres/13_step_jobs.sql"),
            include_str!("postgres/14_resume.sql"),
            include_str!("postgres/15_backfills.sql"),
            include_str!("postgres/16_workflow_versions.sql"),
            include_str!("postgres/17_workflow_step_jobs.sql"),
        ],
    };
    vec![
        Migration { version: 1, name: "runs", script: runs },
        Migration { version: 2, name: "centre", script: centre },
        Migration { version: 3, name: "reports", script: reports },
        Migration { version: 4, name: "tags", script: tags },
        Migration { version: 5, name: "records", script: records },
        Migration { version: 6, name: "declarations", script: declarations },
        Migration { version: 7, name: "lost", script: lost },
        Migration { version: 8, name: "failed", script: failed },
        Migration { version: 9, name: "withdrawals", script: withdrawals },
        Migration { version: 10, name: "executor tokens", script: executor_tokens },
        Migration { version: 11, name: "sign-in origins", script: sign_in_origins },
        Migration { version: 12, name: "workflows", script: workflows },
        Migration { version: 13, name: "step jobs", script: step_jobs },
        Migration { version: 14, name: "resume", script: resume },
        Migration { version: 15, name: "backfills", script: backfills },
        Migration { version: 16, name: "workflow versions", script: workflow_versions },
        Migration { version: 17, name: "workflow step jobs", script: workflow_step_jobs },
    ]
}

const SCHEMA_TABLE: &str = "CREATE TABLE IF NOT EXISTS tw_schema (version BIGINT NOT NULL PRIMARY KEY, \
     name VARCHAR(64) NOT NULL, checksum VARCHAR(16) NOT NULL, applied_ms BIGINT NOT NULL)";

struct Recorded {
    checksum: String,
    applied_ms: i64,
}

async fn recorded(session: &mut dyn Session, version: i64) -> Result<Option<Recorded>, SessionError> {
    let sql = "SELECT checksum, applied_ms FROM tw_schema WHERE version = ?";
    let rows = session.query(sql, &[Value::Int(version)], Lock::None).await?;
    Ok(rows.into_iter().find_map(|Row(values)| match &values[..] {
        [Value::Text(checksum), Value::Int(applied_ms)] => {
            Some(Recorded { checksum: checksum.clone(), applied_ms: *applied_ms })
        }
        _ => None,
    }))
}

async fn record(
    session: &mut dyn Session,
    version: i64,
    name: &str,
    script: &str,
    applied_ms: i64,
) -> Result<(), SessionError> {
    let sql = "INSERT INTO tw_schema (version, name, checksum, applied_ms) VALUES (?, ?, ?, ?)";
    let row = [
        Value::Int(version),
        Value::Text(name.into()),
        Value::Text(checksum(script)),
        Value::Int(applied_ms),
    ];
    session.execute(sql, &row).await.map(|_| ())
}

/// FNV-1a: it detects an edited file, not an attacker.
fn checksum(script: &str) -> String {
    let hash = script.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Without this row every Java admin would assume that it holds the lock.
async fn ensure_lock_row(session: &mut dyn Session) -> Result<(), SessionError> {
    let sql = "SELECT lock_name FROM xxl_job_lock WHERE lock_name = 'schedule_lock'";
    if !session.query(sql, &[], Lock::None).await?.is_empty() {
        return Ok(());
    }
    let inserted =
        session.execute("INSERT INTO xxl_job_lock (lock_name) VALUES ('schedule_lock')", &[]).await;
    match inserted {
        Err(SessionError::Store(StoreError::Schema(reason) | StoreError::Invalid(reason))) => {
            Err(incomplete(format!("xxl_job_lock has no row schedule_lock, and adding it failed: {reason}")))
        }
        other => other.map(|_| ()),
    }
}

async fn run_script(session: &mut dyn Session, script: &str) -> Result<(), SessionError> {
    for statement in statements(script) {
        session.execute(&statement, &[]).await?;
    }
    Ok(())
}

/// Our scripts have semicolons only between statements, and comments only on separate lines.
fn statements(script: &str) -> Vec<String> {
    let lines: Vec<&str> = script.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    let statements = lines.join("\n");
    statements.split(';').map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

// ── One at a time ───────────────────────────────────────────────────────────────────────────────────────────────

async fn take_turn(session: &mut dyn Session, dialect: Dialect) -> Result<(), SessionError> {
    match dialect {
        // A lock begins the transaction, and there is one writer.
        Dialect::Sqlite => session.query("SELECT 1", &[], Lock::Wait).await.map(|_| ()),
        // MySQL commits at every CREATE, so a transaction would not protect us.
        Dialect::MySql => {
            let sql = format!("SELECT GET_LOCK({MYSQL_LOCK}, 30)");
            let Some(rows) = session.try_query(&sql).await? else {
                // Processes that start at once may collide; then each tries again.
                return Ok(());
            };
            match rows.first() {
                Some(Row(values)) if values == &[Value::Int(1)] => Ok(()),
                _ => Err(SessionError::Collision("another process is preparing the database".into())),
            }
        }
        Dialect::Postgres => {
            let sql = format!("SELECT 1 FROM (SELECT pg_advisory_xact_lock({POSTGRES_LOCK})) AS turn");
            session.query(&sql, &[], Lock::None).await.map(|_| ())
        }
    }
}

async fn end_turn(session: &mut dyn Session, dialect: Dialect, worked: bool) -> Result<(), SessionError> {
    if dialect != Dialect::MySql {
        // The turn ends with the transaction.
        return Ok(());
    }
    let released = session.try_query(&format!("SELECT RELEASE_LOCK({MYSQL_LOCK})")).await.map(|_| ());
    // The earlier error is more useful; a lost connection has released the lock anyway.
    if worked { released } else { Ok(()) }
}

/// These locks are global to the server.
const MYSQL_LOCK: &str = "CONCAT('tickwright.', MD5(DATABASE()))";

/// A number that other programs are unlikely to use in the same database: "tickwrig" in ASCII.
const POSTGRES_LOCK: i64 = 0x7469_636b_7772_6967;

fn incomplete(what: String) -> SessionError {
    SessionError::Store(StoreError::Schema(format!("this database cannot be used: {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_fall_into_statements() {
        for dialect in [Dialect::Sqlite, Dialect::MySql, Dialect::Postgres] {
            for migration in migrations(dialect) {
                for statement in statements(migration.script) {
                    // Our rows may be filled from XXL-JOB's tables if they do not exist yet.
                    if statement.starts_with("INSERT INTO tw_") && statement.contains("NOT EXISTS") {
                        continue;
                    }
                    let harmless = ["CREATE TABLE IF NOT EXISTS ", "CREATE INDEX IF NOT EXISTS "];
                    assert!(harmless.iter().any(|start| statement.starts_with(start)), "{statement}");
                    assert!(
                        !statement.contains("xxl_"),
                        "our migrations leave XXL-JOB's tables alone: {statement}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_table_of_ours_is_documented() {
        let page = include_str!("../../../../docs/database.md");
        for dialect in [Dialect::Sqlite, Dialect::MySql, Dialect::Postgres] {
            let scripts = migrations(dialect).into_iter().flat_map(|migration| statements(migration.script));
            for statement in scripts.chain([SCHEMA_TABLE.to_owned()]) {
                let Some(created) = statement.strip_prefix("CREATE TABLE IF NOT EXISTS ") else { continue };
                let table = created.split_whitespace().next().unwrap();
                assert!(page.contains(&format!("| `{table}` |")), "docs/database.md says nothing of {table}");
            }
        }
    }

    #[test]
    fn a_column_holds_what_its_type_says() {
        let check = |kind: &str, length: Value, expected: &str| {
            assert_eq!(format!("{:?}", width(kind, &length)), expected, "{kind}");
        };
        check("varchar", Value::Int(512), "Some(Chars(512))");
        check("character varying", Value::Int(512), "Some(Chars(512))");
        check("varchar(512)", Value::Null, "Some(Chars(512))");
        check("text", Value::Int(65535), "Some(Bytes(65535))");
        check("text", Value::Null, "None");
        check("bigint", Value::Null, "None");
    }
}
