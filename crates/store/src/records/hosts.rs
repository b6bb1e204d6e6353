//! Facts about each host of the database, for operators: clocks, and the settings that decide how it fails over.

use std::time::Duration;

use engine::StoreError;
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::database::surfaced;
use crate::session::Row;
use crate::{mysql, postgres};

/// Facts about one host of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFacts {
    /// Its clock, compared with a monotonic clock of this process that all hosts share.
    pub clock: HostClock,
    /// Settings of Galera (`wsrep_provider_options`), if the host is a member of a cluster.
    pub galera: Option<String>,
    /// Replication, if it is a PostgreSQL server.
    pub replication: Option<Replication>,
}

/// The clock of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostClock {
    /// Milliseconds of its clock, minus those since the first question to any host.
    pub offset_ms: i64,
    /// Inaccuracy of the above, in milliseconds: half of the time that the answer took.
    pub within_ms: i64,
}

/// Replication of a PostgreSQL server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// Whether it is a standby.
    pub is_standby: bool,
    /// Number of its timeline; 0 on a standby.
    pub timeline: i64,
    /// Value of `synchronous_standby_names`.
    pub synchronous_names: String,
    /// Number of connected standbys.
    pub standbys: i64,
    /// Number of them that each commit waits for.
    pub synchronous: i64,
}

/// Asks each host of the URL at the same time. An error is that of one host, as text without passwords. Empty for SQLite.
pub async fn hosts(url: &str) -> Result<Vec<Result<HostFacts, String>>, StoreError> {
    let begun = Instant::now();
    match url.split(':').next() {
        Some("mysql" | "mariadb") => {
            let all = mysql::addresses(url).map_err(surfaced)?;
            Ok(join_all(all.all().iter().map(|address| bounded(mysql::facts(address, begun)))).await)
        }
        Some("postgres" | "postgresql") => {
            let all = postgres::addresses(url).map_err(surfaced)?;
            Ok(join_all(all.all().iter().map(|address| bounded(postgres::facts(address, begun)))).await)
        }
        _ => Ok(Vec::new()),
    }
}

async fn bounded(answer: impl Future<Output = Result<HostFacts, sqlx::Error>>) -> Result<HostFacts, String> {
    match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no response within {ANSWER_TIMEOUT:?}")),
    }
}

/// Timeout of the questions to one host.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

impl HostClock {
    /// The clock that had this time in milliseconds at a moment between the two.
    pub(crate) fn read(begun: Instant, asked: Instant, millis: i64) -> HostClock {
        let answered = Instant::now();
        let middle = (asked - begun) + (answered - asked) / 2;
        HostClock {
            offset_ms: millis - middle.as_millis() as i64,
            within_ms: ((answered - asked) / 2).as_millis() as i64 + 1,
        }
    }
}

/// The only number of an answer.
pub(crate) fn number(rows: Vec<Row>) -> Result<i64, sqlx::Error> {
    let unreadable = || sqlx::Error::Protocol("failed to read a fact about the server".into());
    rows.into_iter().next().and_then(|row| row.read().int().ok()).ok_or_else(unreadable)
}

/// The last text of an answer with one row, if there is one.
pub(crate) fn text(rows: Vec<Row>) -> Option<String> {
    let Row(mut values) = rows.into_iter().next()?;
    match values.pop() {
        Some(crate::session::Value::Text(text)) => Some(text),
        _ => None,
    }
}
