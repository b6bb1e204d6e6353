//! What may be set about a centre, as it is meant. What was written (flags, environment, file) becomes this in the command
//! line; past here nothing is "maybe valid".

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cron::Zone;
use protocol::v1::SettingView;
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
    /// The names by which it is reached, beside IP addresses and `localhost`. Where there are none, any name counts,
    /// unless it listens on loopback only.
    pub hostnames: Vec<String>,
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
    /// The shortest interval at which jobs may fire.
    pub min_interval: Duration,
    /// How many open runs an app may have.
    pub max_open_runs: u64,
    /// How long the start waits for a database server that does not answer.
    pub database_wait: Duration,
}

impl Settings {
    /// What is set, by the names of the options, without secrets.
    pub(crate) fn shown(&self) -> Vec<SettingView> {
        let shown = |option: &str, value: String| SettingView {
            option: option.into(),
            value: Some(value).filter(|value| !value.is_empty()),
            hidden: false,
        };
        let secret =
            |option: &str, is_set: bool| SettingView { option: option.into(), value: None, hidden: is_set };
        let certificate = self.identity.as_ref().map(|identity| &identity.certificate);
        let kinds: Vec<&str> = self.channels.iter().map(|channel| channel.kind()).collect();
        // What a program is told is called by its form where it is set.
        let written = |kind: &'static str| if kind == "webhook" { "json" } else { kind };
        let rooms = kinds.iter().copied().filter(|kind| *kind != MAIL).map(written);
        let declared = match self.declared_jobs {
            DeclaredJobs::None => "none",
            DeclaredJobs::OwnToken => "own-token",
            DeclaredJobs::All => "all",
        };
        let java_admins = match self.java_admins {
            JavaAdmins::Auto => "auto",
            JavaAdmins::Beside => "beside",
            JavaAdmins::None => "none",
        };
        vec![
            shown("listen", self.listen.to_string()),
            shown("tls-cert", certificate.map(|path| path.display().to_string()).unwrap_or_default()),
            shown("behind-proxy", list(&self.proxies)),
            shown("hostnames", self.hostnames.join(", ")),
            secret("database-url", true),
            shown("connections", self.connections.to_string()),
            shown("java-admins", java_admins.into()),
            shown("node", self.node.clone()),
            shown("zone", self.zone.name().into()),
            secret("token", self.token.is_some()),
            shown("allow-no-token", self.allow_no_token.to_string()),
            shown("executor-networks", list(&self.executor_networks)),
            shown("call-timeout", length(self.call_timeout)),
            shown("allow-scripts", self.scripts.to_string()),
            shown("declared-jobs", declared.into()),
            secret("alert-mail", kinds.contains(&MAIL)),
            shown("alert-webhook", rooms.collect::<Vec<_>>().join(", ")),
            shown("alert-late-after", length(self.late_after)),
            shown("keep-runs", length(self.keep_runs)),
            shown("keep-runs-max", self.keep_runs_max.map(|max| max.to_string()).unwrap_or_default()),
            shown("min-interval", length(self.min_interval)),
            shown("max-open-runs", self.max_open_runs.to_string()),
            shown("database-wait", length(self.database_wait)),
        ]
    }
}

/// The kind of the channel that has an option of its own.
const MAIL: &str = "mail";

fn list(networks: &[Cidr]) -> String {
    networks.iter().map(Cidr::to_string).collect::<Vec<_>>().join(", ")
}

/// A length of time, as options are written.
fn length(length: Duration) -> String {
    let millis = length.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let whole = units.into_iter().find(|(_, unit)| millis > 0 && millis.is_multiple_of(*unit));
    whole.map_or_else(|| "0s".into(), |(word, unit)| format!("{}{word}", millis / unit))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_shown_as_options_are_written() {
        let check = |millis, expected: &str| assert_eq!(length(Duration::from_millis(millis)), expected);
        check(30 * 86_400_000, "30d");
        check(90 * 60_000, "90m");
        check(3_000, "3s");
        check(1_500, "1500ms");
        check(0, "0s");
    }
}
