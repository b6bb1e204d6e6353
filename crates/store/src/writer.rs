//! Finds the server that accepts writes, if the URL of the database names several hosts.
//!
//! After a failover another host is the writer. Connections to the previous one are not used again: it may be alive and
//! return old data.

use std::sync::Mutex;
use std::time::Duration;

use engine::StoreError;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sqlx::Connection;
use tokio::time::{Instant, timeout};

use crate::server::Server;
use crate::session::SessionError;

type Address<DB> = <<DB as sqlx::Database>::Connection as Connection>::Options;

/// The addresses of a database. One is the current one.
pub struct Addresses<DB: Server> {
    all: Vec<Address<DB>>,
    current: Mutex<Current>,
}

#[derive(Clone, Copy)]
struct Current {
    index: usize,
    /// When it became the current one; none if it always was.
    since: Option<Instant>,
}

impl<DB: Server> Addresses<DB> {
    /// `all` has at least one address.
    pub fn new(all: Vec<Address<DB>>) -> Addresses<DB> {
        Addresses { all, current: Mutex::new(Current { index: 0, since: None }) }
    }

    /// All addresses, in the order of the URL.
    pub fn all(&self) -> &[Address<DB>] {
        &self.all
    }

    /// Whether there is a choice.
    pub fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// The current address.
    pub fn current(&self) -> Address<DB> {
        self.all[self.state().index].clone()
    }

    /// Whether a connection of this age leads to the current address.
    pub fn is_current(&self, age: Duration) -> bool {
        self.state().since.is_none_or(|since| age < since.elapsed())
    }

    /// Makes the first address that accepts writes the current one, and returns it.
    pub async fn find(&self) -> Result<Address<DB>, sqlx::Error> {
        let probe = async |(index, address)| (index, accepts_writes::<DB>(address).await);
        let mut probes: FuturesUnordered<_> = self.all.iter().enumerate().map(probe).collect();
        let mut reasons = Vec::new();
        while let Some((index, answer)) = probes.next().await {
            match answer {
                Ok(()) => {
                    self.use_from_now(index);
                    return Ok(self.all[index].clone());
                }
                Err(reason) => reasons.push(format!("host {}: {reason}", index + 1)),
            }
        }
        reasons.sort_unstable();
        let reasons = reasons.join("; ");
        Err(read_only(format!(
            "none of the {} hosts of the database accepts writes: {reasons}",
            self.all.len()
        )))
    }

    fn use_from_now(&self, index: usize) {
        let mut current = self.current.lock().expect("no holder of this lock panics");
        if current.index != index {
            *current = Current { index, since: Some(Instant::now()) };
            tracing::info!(
                "using host {} of {} of the database, which accepts writes",
                index + 1,
                self.all.len()
            );
        }
    }

    /// Rejects a new connection to a host that accepts no writes: its data may be old.
    pub async fn check(&self, connection: &mut DB::Connection) -> Result<(), sqlx::Error> {
        match !self.are_several() || is_writer::<DB>(connection).await? {
            true => Ok(()),
            false => Err(read_only("the host of the database accepts no writes".into())),
        }
    }

    fn state(&self) -> Current {
        *self.current.lock().expect("no holder of this lock panics")
    }
}

/// Returns the reason if it does not.
async fn accepts_writes<DB: Server>(address: &Address<DB>) -> Result<(), String> {
    let probe = async {
        let mut connection = DB::Connection::connect_with(address).await?;
        let accepts = is_writer::<DB>(&mut connection).await?;
        let _ = connection.close().await;
        Ok::<bool, sqlx::Error>(accepts)
    };
    match timeout(PROBE_TIMEOUT, probe).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err("it is read-only".into()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no response in time".into()),
    }
}

async fn is_writer<DB: Server>(connection: &mut DB::Connection) -> Result<bool, sqlx::Error> {
    let rows = DB::numbers(connection, DB::ACCEPTS_WRITES.to_owned()).await?;
    Ok(rows.into_iter().next().is_some_and(|row| row.read().int() == Ok(1)))
}

fn read_only(message: String) -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::other(message))
}

/// Splits a URL with several hosts into one for each, for example `mysql://u:p@a:3306,b/db` into `mysql://u:p@a:3306/db`
/// and `mysql://u:p@b/db`.
pub fn each_host(url: &str) -> Result<Vec<String>, SessionError> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Ok(vec![url.to_owned()]);
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), authority),
    };
    let hosts: Vec<&str> = hosts.split(',').map(str::trim).collect();
    if hosts.len() > HOSTS_MAX {
        let count = hosts.len();
        return Err(invalid(format!("the database URL has {count} hosts; at most {HOSTS_MAX} are allowed")));
    }
    if hosts.len() > 1 && hosts.contains(&"") {
        return Err(invalid("the database URL has an empty host between its commas".into()));
    }
    Ok(hosts.into_iter().map(|host| format!("{scheme}://{user}{host}{path}")).collect())
}

fn invalid(message: String) -> SessionError {
    StoreError::Invalid(message).into()
}

/// Maximum number of hosts; each is asked whenever the writer is lost.
const HOSTS_MAX: usize = 16;

/// Timeout of the question to one host. All are asked at the same time.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_with_several_hosts_is_one_for_each() {
        let check = |url: &str, expected: &[&str]| assert_eq!(each_host(url).unwrap(), expected, "{url}");
        check("mysql://u:p@a:3306,b/db?x=1,2", &["mysql://u:p@a:3306/db?x=1,2", "mysql://u:p@b/db?x=1,2"]);
        check("postgres://a,[::1]:5433", &["postgres://a", "postgres://[::1]:5433"]);
        check("postgres://u:p,q@a/db", &["postgres://u:p,q@a/db"]);
        check("postgres:///db", &["postgres:///db"]);
        check("mysql:nonsense", &["mysql:nonsense"]);
    }

    #[test]
    fn hosts_that_are_missing_or_too_many_are_refused() {
        assert!(
            each_host("mysql://u:secret@a,,b/db")
                .is_err_and(|error| !format!("{error:?}").contains("secret"))
        );
        assert!(each_host(&format!("mysql://{}/db", vec!["a"; 17].join(","))).is_err());
    }
}
