//! The history: runs of the last weeks, evenly distributed, one in a hundred failed.

use tickwright_tests::database::Database;
use tickwright_tests::process::micros_now;
use timer::Timestamp;

/// Runs with ids from 1.
pub struct Past {
    rows: u64,
    jobs: u64,
    /// Scheduled time of the first run, in seconds since 1970.
    begin: u64,
}

impl Past {
    /// `rows` runs of `jobs` jobs, a tenth of them older than the retention.
    pub fn until_now(rows: u64, jobs: u64) -> Past {
        let now = u64::try_from(micros_now() / 1_000_000).unwrap_or(0);
        Past { rows, jobs, begin: now - SPAN }
    }

    /// SQL that writes them: one run, then repeatedly a copy of all existing ones.
    pub fn statements(&self, database: &Database) -> Vec<String> {
        let mut statements = vec![self.insert(database, "1", "")];
        let mut written = 1;
        while written < self.rows {
            let more = written.min(self.rows - written);
            let number = format!("(id + {written})");
            statements.push(self.insert(database, &number, &format!("FROM xxl_job_log WHERE id <= {more}")));
            written += more;
        }
        statements.push(
            "INSERT INTO tw_failed (id, job_group, job_id, trigger_time) \
             SELECT id, job_group, job_id, trigger_time FROM xxl_job_log WHERE handle_code = 500"
                .into(),
        );
        // Servers update statistics by themselves after a while; and PostgreSQL's sequence has to continue after
        // the written ids.
        match database {
            Database::Sqlite => {}
            Database::MySql { .. } => statements.push("ANALYZE TABLE xxl_job_log, tw_failed".into()),
            Database::Postgres { .. } => statements.extend([
                "VACUUM ANALYZE xxl_job_log, tw_failed".into(),
                "CHECKPOINT".into(),
                format!("SELECT setval(pg_get_serial_sequence('xxl_job_log', 'id'), {})", self.rows),
            ]),
        }
        statements
    }

    fn insert(&self, database: &Database, number: &str, from: &str) -> String {
        let Past { rows, jobs, begin } = self;
        let time = written(database, &format!("{begin} + {number} * {SPAN} / {rows}"));
        format!(
            "INSERT INTO xxl_job_log (id, job_group, job_id, executor_address, executor_handler, executor_param, \
             trigger_time, trigger_code, handle_time, handle_code, handle_msg, alarm_status) \
             SELECT {number}, 1, {number} % {jobs} + 1, 'http://10.0.0.1:9999/', 'journal', 'a parameter', {time}, 200, \
             {time}, CASE WHEN {number} % 100 = 0 THEN 500 ELSE 200 END, '', 1 {from}"
        )
    }

    /// Pages that users read: name, path, and whether the page has rows.
    pub fn pages(&self) -> [(&'static str, String, bool); 7] {
        let middle = self.rows / 2;
        let (from, until) = (self.at(middle), self.at(middle + self.rows / 800));
        [
            ("newest runs", "/v1/runs".into(), true),
            ("runs from the middle on", format!("/v1/runs?after={middle}"), true),
            ("runs of a job", "/v1/runs?job=id:7".into(), true),
            ("failed runs", "/v1/runs?state=failed".into(), true),
            ("failed runs of a job", "/v1/runs?job=id:1&state=failed".into(), true),
            ("failed runs of a job that never failed", "/v1/runs?job=id:7&state=failed".into(), false),
            ("runs of an hour", format!("/v1/runs?from={from}&until={until}"), true),
        ]
    }

    /// Runs before this time are among the first to be deleted.
    pub fn soon_gone(&self) -> Timestamp {
        self.at(self.rows / 1_000)
    }

    /// Runs before this time exceed the retention when the centre runs.
    pub fn kept_from(&self) -> Timestamp {
        self.at(self.rows / 10)
    }

    /// Scheduled time of a run.
    fn at(&self, run: u64) -> Timestamp {
        let seconds = self.begin + run * SPAN / self.rows;
        Timestamp::from_millis(i64::try_from(seconds * 1_000).unwrap_or(i64::MAX))
    }
}

/// SQL that converts seconds since 1970 to the log's UTC time.
fn written(database: &Database, second: &str) -> String {
    match database {
        Database::Sqlite => format!("datetime({second}, 'unixepoch')"),
        Database::MySql { .. } => format!("DATE_ADD('1970-01-01', INTERVAL {second} SECOND)"),
        Database::Postgres { .. } => format!("to_timestamp({second}) AT TIME ZONE 'UTC'"),
    }
}

/// A tenth of it lies before the default retention of 30 days.
const SPAN: u64 = 30 * 86_400 * 10 / 9;
