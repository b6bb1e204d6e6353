//! Checks that an attack changed nothing and was audited.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::net::TcpListener;

use crate::kit::{Bench, until};

/// Content of the database before an attack.
pub struct Evidence<'a> {
    bench: &'a Bench,
    rows: BTreeMap<String, Vec<String>>,
    noted: usize,
}

impl<'a> Evidence<'a> {
    /// Reads the database before the attack, once nothing changes by itself any more.
    pub async fn before(bench: &'a Bench) -> Evidence<'a> {
        let rows = until("nothing changes by itself", async || {
            let first = rows(bench);
            tokio::time::sleep(Duration::from_millis(50)).await;
            (first == rows(bench)).then_some(first)
        })
        .await;
        Evidence { bench, rows, noted: noted(bench) }
    }

    /// Checks that nothing was changed and each of the attempts was audited.
    pub fn refused(self, attempts: usize) {
        for (table, rows) in rows(self.bench) {
            assert_eq!(Some(&rows), self.rows.get(&table), "a refused attempt changed {table}");
        }
        let noted = noted(self.bench) - self.noted;
        assert!(noted >= attempts, "{noted} of {attempts} refused attempts are on record");
    }
}

/// Every row of every table, except those that change with time or with any request.
fn rows(bench: &Bench) -> BTreeMap<String, Vec<String>> {
    let database = open(bench);
    let mut tables = database
        .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        .unwrap();
    let tables: Vec<String> =
        tables.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    let tables = tables.into_iter().filter(|name| !LIVELY.contains(&name.as_str()));
    tables.map(|name| (name.clone(), content(&database, &name))).collect()
}

fn content(database: &Connection, table: &str) -> Vec<String> {
    // A heartbeat of an executor is not a change.
    let columns = if table == "xxl_job_registry" { "registry_key, registry_value" } else { "*" };
    let mut rows = database.prepare(&format!("SELECT {columns} FROM {table}")).unwrap();
    let count = rows.column_count();
    let written = |row: &rusqlite::Row<'_>| {
        (0..count).map(|column| row.get_ref(column).map(|value| format!("{value:?}"))).collect()
    };
    let rows: Result<Vec<Vec<String>>, _> = rows.query_map([], written).unwrap().collect();
    let mut rows: Vec<String> = rows.unwrap().into_iter().map(|row| row.join("|")).collect();
    rows.sort();
    rows
}

fn noted(bench: &Bench) -> usize {
    let count: i64 = open(bench).query_row("SELECT COUNT(*) FROM tw_audit", [], |row| row.get(0)).unwrap();
    usize::try_from(count).unwrap()
}

fn open(bench: &Bench) -> Connection {
    let path = bench.folder.join("centre.db");
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    database.busy_timeout(Duration::from_secs(10)).unwrap();
    database
}

/// Tables that are not compared. Traces are stored a second after a run has finished; the run itself is compared.
const LIVELY: [&str; 9] = [
    "tw_audit",
    "tw_counter",
    "tw_node",
    "tw_session",
    "tw_sign_in_origin",
    "tw_api_key",
    "tw_report",
    "tw_trace",
    "xxl_job_log_report",
];

/// An address that the server must not be made to call.
pub struct Trap(TcpListener);

impl Trap {
    pub async fn set() -> Trap {
        Trap(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.0.local_addr().unwrap())
    }

    /// Checks that it was not called.
    pub async fn caught_nobody(self) {
        tokio::select! {
            biased;
            _ = self.0.accept() => panic!("an address from a request was called"),
            () = std::future::ready(()) => {}
        }
    }
}
