//! Settings of a node, parsed and valid. The command line creates them from flags, environment and file.

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

/// Settings of a node.
#[derive(Clone)]
pub struct Settings {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// TLS certificate of the server; without one it serves plain HTTP.
    pub identity: Option<Identity>,
    /// Trusted reverse proxies, which forward the client's address. If there are any, other clients must use TLS,
    /// except on loopback.
    pub proxies: Vec<Cidr>,
    /// Host names under which the server is reached, besides IP addresses and `localhost`. If empty, any name is
    /// accepted, unless the server listens on loopback only.
    pub hostnames: Vec<String>,
    /// Database URL; may contain a password, so it is never shown.
    pub database: String,
    /// Name of this node, unique among all nodes on the same database.
    pub node: String,
    /// Time zone of jobs without one, and of XXL-JOB's wall-clock columns.
    pub zone: Zone,
    /// Maximum number of database connections.
    pub connections: u32,
    /// Whether Java admins of XXL-JOB use the same database.
    pub java_admins: JavaAdmins,
    /// Encrypts secrets that must be readable later. All nodes on one database need the same key.
    pub key: Key,
    /// One access token for all executors, as in old setups.
    pub token: Option<Secret>,
    /// Whether executors without a token are accepted if neither their app nor the server has one.
    pub allow_no_token: bool,
    /// Networks in which executors may be called; if empty, everywhere the guard allows.
    pub executor_networks: Vec<Cidr>,
    /// Whether jobs may be scripts (GLUE), edited here and run by executors.
    pub scripts: bool,
    /// Which programs may declare their own jobs.
    pub declared_jobs: DeclaredJobs,
    /// Timeout of an executor's answer.
    pub call_timeout: Duration,
    /// Certificates that are trusted when an executor uses https.
    pub trust: Trust,
    /// Channels that send notifications of failures.
    pub channels: Vec<Arc<dyn Channel>>,
    /// A run that starts later than this after its scheduled time raises an alert.
    pub late_after: Duration,
    /// Whether a new database gets a sample job, for an executor with the handler
    /// [`SAMPLE_HANDLER`](crate::SAMPLE_HANDLER).
    pub sample_job: bool,
    /// How long runs and their logs are kept.
    pub keep_runs: Duration,
    /// Approximate maximum number of runs kept; unlimited if `None`.
    pub keep_runs_max: Option<u64>,
    /// The shortest interval at which jobs may fire.
    pub min_interval: Duration,
    /// Maximum number of open runs of an app.
    pub max_open_runs: u64,
    /// How long the start waits for a database server that does not answer.
    pub database_wait: Duration,
    /// Maximum number of requests per second of one user, usually [`REQUESTS_EACH`].
    pub requests_each: u32,
}

/// Requests per second and user: a page of the console makes a dozen.
pub const REQUESTS_EACH: u32 = 100;

impl Settings {
    /// Returns the settings by option name, without secrets.
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
        // The option calls the generic webhook by its format, `json`.
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

/// The kind of channel that has an option of its own.
const MAIL: &str = "mail";

fn list(networks: &[Cidr]) -> String {
    networks.iter().map(Cidr::to_string).collect::<Vec<_>>().join(", ")
}

/// Formats a duration as options are written, for example `90m`.
fn length(length: Duration) -> String {
    let millis = length.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let whole = units.into_iter().find(|(_, unit)| millis > 0 && millis.is_multiple_of(*unit));
    whole.map_or_else(|| "0s".into(), |(word, unit)| format!("{}{word}", millis / unit))
}

/// Which programs may declare their own jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeclaredJobs {
    /// No program.
    None,
    /// Programs that send a token of their own app, which proves the app. The token for all apps does not.
    #[default]
    OwnToken,
    /// Every program that is admitted.
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
