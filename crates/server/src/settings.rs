//! What may be set about a centre, as it is meant. What was written (flags, environment, file) becomes this in the command
//! line; past here nothing is "maybe valid".

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cron::Zone;
use store::JavaAdmins;

use crate::alerts::Channel;
use crate::executors::Key;
use crate::http::Identity;
use crate::outbound::{Cidr, Secret, Trust};

/// What may be set about a centre.
#[derive(Clone)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// With which certificate it encrypts; without one it does not.
    pub identity: Option<Identity>,
    /// Proxies in front of it, which say who really asks. If there are some, others may not come without encryption.
    pub proxies: Vec<Cidr>,
    /// Where it remembers; may hold a password, so it is never shown.
    pub database: String,
    /// This node's name, different from every other node's on the same database.
    pub node: String,
    /// The zone of jobs that name none, and of XXL-JOB's wall-clock columns.
    pub zone: Zone,
    /// Connections to the database, at most.
    pub connections: u32,
    /// Whether Java admins of XXL-JOB work with the same database.
    pub java_admins: JavaAdmins,
    /// Seals what must be kept secret and shown again. All nodes of a database need the same.
    pub key: Key,
    /// One token for all executors, as old setups have it.
    pub token: Option<Secret>,
    /// Executors without a token are let in where neither their app nor the centre has one.
    pub allow_no_token: bool,
    /// Executors may be called only in these networks; everywhere a guard allows, if there are none.
    pub executor_networks: Vec<Cidr>,
    /// Jobs may be scripts (GLUE), written here and run by executors.
    pub scripts: bool,
    /// Whose programs may declare jobs of their own.
    pub declared_jobs: DeclaredJobs,
    /// How long an executor may take to answer.
    pub call_timeout: Duration,
    /// Whose certificates are believed when an executor listens with https.
    pub trust: Trust,
    /// By which people are told of failures.
    pub channels: Vec<Arc<dyn Channel>>,
    /// They are told of runs that begin more than this after their instants.
    pub late_after: Duration,
    /// A new database gets a job that greets, for an executor with the handler [`SAMPLE_HANDLER`](crate::SAMPLE_HANDLER).
    pub sample_job: bool,
    /// How long runs and their logs are kept.
    pub keep_runs: Duration,
    /// How many are kept, about; as many as there are, if nothing is said.
    pub keep_runs_max: Option<u64>,
}

/// Whose programs may declare jobs of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeclaredJobs {
    /// Nobody's.
    None,
    /// Those that show a token of their app's own: it proves whose they are. The one for all apps does not.
    #[default]
    OwnToken,
    /// Those of everybody who is let in.
    All,
}
