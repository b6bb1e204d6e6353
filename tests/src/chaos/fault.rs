//! Faults of the chaos tests.

use crate::database::Database;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One node is killed with kill -9 and restarted later.
    KillOne,
    /// All nodes are killed with kill -9 and restarted immediately.
    KillAll,
    /// SIGTERM to one node after the other; each is restarted.
    RollingRestart,
    /// SIGSTOP of one node, and SIGCONT after its lease has expired.
    Pause,
    /// The database is killed with kill -9 and restarted.
    KillDatabase,
    /// The primary database server is killed with kill -9, and its synchronous standby takes its place. The nodes know
    /// both addresses.
    Failover,
    /// All connections to the database break, repeatedly.
    CutDatabase,
    /// Commits are cut off before they reach the database.
    CutBeforeCommit,
    /// The response to a commit is lost.
    CutAfterCommit,
    /// Latency of the connection to the database, first short, then longer.
    SlowDatabase,
    /// A latency of three seconds: leases expire meanwhile.
    CrawlingDatabase,
    /// Very low bandwidth to the database.
    ThinDatabase,
    /// Another transaction locks rows that are due.
    HeldRows,
    /// The database rejects writes, and then connections.
    SickDatabase,
    /// The disk of the database file is full.
    FullDisk,
    /// One node is partitioned from the database without an error.
    Partition,
    /// One node receives from the database but cannot send.
    Mute,
    /// One executor misbehaves in every way, one after the other.
    Executors,
}

impl Fault {
    /// All faults.
    pub const ALL: [Fault; 18] = [
        Fault::KillOne,
        Fault::KillAll,
        Fault::RollingRestart,
        Fault::Pause,
        Fault::KillDatabase,
        Fault::Failover,
        Fault::CutDatabase,
        Fault::CutBeforeCommit,
        Fault::CutAfterCommit,
        Fault::SlowDatabase,
        Fault::CrawlingDatabase,
        Fault::ThinDatabase,
        Fault::HeldRows,
        Fault::SickDatabase,
        Fault::FullDisk,
        Fault::Partition,
        Fault::Mute,
        Fault::Executors,
    ];

    /// Whether the fault applies to this database: SQLite has no network and a single node.
    pub fn fits(self, database: &Database) -> bool {
        match database {
            Database::Sqlite => matches!(
                self,
                Fault::KillAll | Fault::RollingRestart | Fault::Pause | Fault::FullDisk | Fault::Executors
            ),
            Database::MySql { .. } => !matches!(self, Fault::FullDisk | Fault::Failover),
            Database::Postgres { .. } => self != Fault::FullDisk,
        }
    }

    /// Number of nodes needed.
    pub fn nodes(self, database: &Database) -> usize {
        match (database, self) {
            (Database::Sqlite, _) => 1,
            (_, Fault::KillOne | Fault::Partition) => 3,
            _ => 2,
        }
    }

    /// Whether the whole server is affected; then the test needs a server of its own.
    pub fn is_the_server_s(self) -> bool {
        matches!(self, Fault::KillDatabase | Fault::Failover | Fault::SickDatabase)
    }
}
