//! What can go wrong.

use crate::database::Database;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// kill -9 of one node, which comes back later.
    KillOne,
    /// kill -9 of all nodes, which come back at once.
    KillAll,
    /// SIGTERM to one node after the other, each of which comes back.
    RollingRestart,
    /// SIGSTOP of one node, and SIGCONT after its lease has ended.
    Pause,
    /// kill -9 of the database, which comes back.
    KillDatabase,
    /// All connections to the database break, again and again.
    CutDatabase,
    /// Commits that never reach the database.
    CutBeforeCommit,
    /// Commits whose answer never comes.
    CutAfterCommit,
    /// Each packet to and from the database takes a while, and then a longer one.
    SlowDatabase,
    /// Each packet takes three seconds: leases end meanwhile.
    CrawlingDatabase,
    /// As little passes as on a poor line.
    ThinDatabase,
    /// Somebody else holds rows that are due.
    HeldRows,
    /// The database takes no writes, and then no connections.
    SickDatabase,
    /// There is no room left where the file is.
    FullDisk,
    /// One node is cut off from the database without a word.
    Partition,
    /// One node hears the database, and is not heard.
    Mute,
    /// One executor behaves badly in every way, one after the other.
    Executors,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 17] = [
        Fault::KillOne,
        Fault::KillAll,
        Fault::RollingRestart,
        Fault::Pause,
        Fault::KillDatabase,
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

    /// Whether it can happen there: a file has no network, and one node.
    pub fn fits(self, database: &Database) -> bool {
        match database {
            Database::Sqlite => matches!(
                self,
                Fault::KillAll | Fault::RollingRestart | Fault::Pause | Fault::FullDisk | Fault::Executors
            ),
            Database::MySql { .. } | Database::Postgres { .. } => self != Fault::FullDisk,
        }
    }

    /// How many nodes it takes.
    pub fn nodes(self, database: &Database) -> usize {
        match (database, self) {
            (Database::Sqlite, _) => 1,
            (_, Fault::KillOne | Fault::Partition) => 3,
            _ => 2,
        }
    }

    /// Whether the whole server suffers: then it must be nobody else's.
    pub fn is_the_server_s(self) -> bool {
        matches!(self, Fault::KillDatabase | Fault::SickDatabase)
    }
}
