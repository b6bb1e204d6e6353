//! Options of the scheduling centre: flags, environment variables and a configuration file, in this order of
//! precedence.
//!
//! All three share one list, so a name is the same everywhere: `--call-timeout 3s`, `TICKWRIGHT_CALL_TIMEOUT=3s`,
//! `call-timeout = "3s"`. They are converted to [`server::Settings`], or to an error with a suggestion.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use cron::Zone;
use serde::Deserialize;
use server::alerts::{Channel, Mail, Webhook};
use server::executors::{Key, is_well_known};
use server::outbound::{Cidr, Secret, Trust};
use server::{DeclaredJobs, Identity, Settings};
use store::JavaAdmins;

use super::files;
use crate::{duration, secret};

/// Options of the scheduling centre.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with any of these options.
    #[arg(long, env = "TICKWRIGHT_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Address to listen on [default: 127.0.0.1:8080].
    #[arg(long, env = "TICKWRIGHT_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,

    /// Host names by which browsers and executors reach the scheduling centre, for example centre.example.com;
    /// requests with another Host are rejected. IP addresses and localhost are always allowed [default: any name,
    /// or none when listening on loopback only].
    #[arg(long, env = "TICKWRIGHT_HOSTNAMES", value_name = "NAME", value_delimiter = ',')]
    pub hostnames: Option<Vec<String>>,

    /// Database: sqlite:FILE, mysql://…, postgres://…, or file:PATH of a file with the URL [default: a SQLite file
    /// in the data directory].
    #[arg(long, env = "TICKWRIGHT_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,

    /// Directory of the SQLite database and the key [default: tickwright-data].
    #[arg(long, env = "TICKWRIGHT_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// File with the key that encrypts tokens; the same for all nodes of a database [default: tickwright.key in the
    /// data directory, created if missing].
    #[arg(long, env = "TICKWRIGHT_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,

    /// Name of this node, unique in the cluster [default: host name and port].
    #[arg(long, env = "TICKWRIGHT_NODE", value_name = "NAME")]
    pub node: Option<String>,

    /// Time zone of jobs without their own, and of the wall-clock columns in an XXL-JOB database [default: the
    /// machine's].
    #[arg(long, env = "TICKWRIGHT_ZONE", value_name = "ZONE")]
    pub zone: Option<String>,

    /// Token shared by all executors, as in XXL-JOB up to 3.4; preferably file:PATH or an environment variable.
    #[arg(long, env = "TICKWRIGHT_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// Accept a token that is short or publicly known, such as default_token.
    #[arg(long, env = "TICKWRIGHT_ALLOW_WEAK_TOKEN", num_args = 0..=1, default_missing_value = "true")]
    pub allow_weak_token: Option<bool>,

    /// Accept executors without a token if neither their app nor the scheduling centre has one.
    #[arg(long, env = "TICKWRIGHT_ALLOW_NO_TOKEN", num_args = 0..=1, default_missing_value = "true")]
    pub allow_no_token: Option<bool>,

    /// Networks of executors, for example 10.0.0.0/8; others are not called [default: all but link-local and
    /// similar].
    #[arg(long, env = "TICKWRIGHT_EXECUTOR_NETWORKS", value_name = "CIDR", value_delimiter = ',')]
    pub executor_networks: Option<Vec<String>>,

    /// Allow script jobs (GLUE): written here, run by executors that allow them.
    #[arg(long, env = "TICKWRIGHT_ALLOW_SCRIPTS", num_args = 0..=1, default_missing_value = "true")]
    pub allow_scripts: Option<bool>,

    /// Programs that may declare jobs, which the scheduling centre then adds [default: own-token].
    #[arg(long, env = "TICKWRIGHT_DECLARED_JOBS", value_name = "none|own-token|all")]
    pub declared_jobs: Option<Declarers>,

    /// Timeout of calls to executors, 1s to 10s [default: 3s].
    #[arg(long, env = "TICKWRIGHT_CALL_TIMEOUT", value_name = "DURATION")]
    pub call_timeout: Option<String>,

    /// PEM file with certificate authorities to trust in addition to the system's, for executors with https.
    #[arg(long, env = "TICKWRIGHT_EXECUTOR_CA", value_name = "FILE")]
    pub executor_ca: Option<PathBuf>,

    /// Accept any TLS certificate of an executor, as XXL-JOB does.
    #[arg(long, env = "TICKWRIGHT_EXECUTOR_ANY_CERTIFICATE", num_args = 0..=1, default_missing_value = "true")]
    pub executor_any_certificate: Option<bool>,

    /// Maximum number of connections to MySQL or PostgreSQL [default: 8].
    #[arg(long, env = "TICKWRIGHT_CONNECTIONS", value_name = "COUNT")]
    pub connections: Option<u32>,

    /// Whether Java admins of XXL-JOB use the same database [default: auto].
    #[arg(long, env = "TICKWRIGHT_JAVA_ADMINS", value_name = "auto|beside|none")]
    pub java_admins: Option<Neighbors>,

    /// Mail server for alerts: smtps://user:password@host:465, or file:PATH of a file with the URL.
    #[arg(long, env = "TICKWRIGHT_ALERT_MAIL", value_name = "URL", hide_env_values = true)]
    pub alert_mail: Option<String>,

    /// Sender of alert mails; tickwright@localhost by default.
    #[arg(long, env = "TICKWRIGHT_ALERT_FROM", value_name = "ADDRESS")]
    pub alert_from: Option<String>,

    /// Webhook for alerts: json=URL, slack=URL, dingtalk=URL, wecom=URL or feishu=URL; may be repeated.
    #[arg(
        long,
        env = "TICKWRIGHT_ALERT_WEBHOOK",
        value_name = "KIND=URL",
        value_delimiter = ',',
        hide_env_values = true
    )]
    pub alert_webhook: Option<Vec<String>>,

    /// Raise an alert for runs that start later than this after their scheduled time [default: 1m].
    #[arg(long, env = "TICKWRIGHT_ALERT_LATE_AFTER", value_name = "DURATION")]
    pub alert_late_after: Option<String>,

    /// Run a built-in executor with a sample handler and, at the first start, a job that calls it [default: true on
    /// a loopback address without TLS].
    #[arg(long, env = "TICKWRIGHT_SAMPLE", num_args = 0..=1, default_missing_value = "true")]
    pub sample: Option<bool>,

    /// Retention period of runs and their logs, for example 30d [default: 30d].
    #[arg(long, env = "TICKWRIGHT_KEEP_RUNS", value_name = "DURATION")]
    pub keep_runs: Option<String>,

    /// Approximate maximum number of runs and logs to keep; the oldest are deleted first [default: no limit].
    #[arg(long, env = "TICKWRIGHT_KEEP_RUNS_MAX", value_name = "COUNT")]
    pub keep_runs_max: Option<u64>,

    /// Minimum interval between fires of a job, for example 100ms [default: 10ms].
    #[arg(long, env = "TICKWRIGHT_MIN_INTERVAL", value_name = "DURATION")]
    pub min_interval: Option<String>,

    /// Maximum number of open runs of an app; further fires and child runs are recorded as blocked [default: 30000].
    #[arg(long, env = "TICKWRIGHT_MAX_OPEN_RUNS", value_name = "COUNT")]
    pub max_open_runs: Option<u64>,

    /// Maximum time to wait at startup for a database server that does not respond [default: 30s].
    #[arg(long, env = "TICKWRIGHT_DATABASE_WAIT", value_name = "DURATION")]
    pub database_wait: Option<String>,

    /// TLS certificate for https, in PEM; reloaded when it changes.
    #[arg(long, env = "TICKWRIGHT_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the certificate, in PEM.
    #[arg(long, env = "TICKWRIGHT_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// Networks of reverse proxies with TLS, for example 10.0.0.0/8: their forwarded headers are trusted, and other
    /// clients are rejected without TLS.
    #[arg(long, env = "TICKWRIGHT_BEHIND_PROXY", value_name = "CIDR", value_delimiter = ',')]
    pub behind_proxy: Option<Vec<String>>,

    /// Listen outside loopback without TLS: passwords and tokens can then be read on the network.
    #[arg(long, env = "TICKWRIGHT_INSECURE_HTTP", num_args = 0..=1, default_missing_value = "true")]
    pub insecure_http: Option<bool>,
}

/// Programs that may declare jobs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Declarers {
    /// No programs.
    None,
    /// Programs with a token of their own app.
    OwnToken,
    /// All accepted programs, including those with the token shared by all apps.
    All,
}

/// Whether Java admins of XXL-JOB use the same database.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbors {
    /// Yes if XXL-JOB's tables existed before ours.
    Auto,
    /// Yes, or possibly later: all schedulers take turns.
    Beside,
    /// Never: nodes claim concurrently, and a Java admin would fire every job a second time.
    None,
}

/// Takes each field from the first struct that has it.
macro_rules! first_of {
    ($over:ident, $under:ident: $($field:ident),+) => {
        Options { config: $over.config, $($field: $over.$field.or($under.$field)),+ }
    };
}

impl Options {
    /// Merges in the configuration file: its values apply where no flag or variable is set.
    pub fn with_file(self) -> anyhow::Result<Options> {
        let Some(path) = &self.config else { return Ok(self) };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("failed to read the configuration file {}", path.display()))?;
        let file: Options = toml::from_str(&text)
            .with_context(|| format!("invalid configuration file {}", path.display()))?;
        if file.has_secret() {
            secret::refuse_world_readable(path).with_context(|| {
                format!(
                    "{} contains a secret; write the secret as file:PATH, or restrict the permissions of \
                     this file",
                    path.display()
                )
            })?;
        }
        Ok(
            first_of!(self, file: listen, database_url, data_dir, key_file, node, zone, token, allow_weak_token,
            allow_no_token, hostnames, executor_networks, allow_scripts, declared_jobs, call_timeout, executor_ca, executor_any_certificate, connections, java_admins,
            alert_mail, alert_from, alert_webhook, alert_late_after, sample, keep_runs, keep_runs_max, min_interval, max_open_runs, database_wait, tls_cert, tls_key, behind_proxy,
            insecure_http),
        )
    }

    /// Whether a value contains a secret itself, and not the path of a file with it.
    fn has_secret(&self) -> bool {
        let webhooks = self.alert_webhook.iter().flatten();
        let urls =
            [&self.database_url, &self.alert_mail].into_iter().flatten().filter(|url| url.contains('@'));
        let mut secrets = self.token.iter().chain(urls).chain(webhooks);
        secrets.any(|value| !value.starts_with("file:"))
    }

    /// Converts the options to settings. Creates a missing data directory and key file.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        if self.database_url.is_none() {
            files::private_folder(&self.data_dir())?;
        }
        self.read(files::key)
    }

    /// Converts the options to settings without creating any file, for read-only commands.
    pub fn settings_to_look_at(&self) -> anyhow::Result<Settings> {
        self.read(files::key_to_look_with)
    }

    fn read(&self, key: impl Fn(&Path) -> anyhow::Result<Key>) -> anyhow::Result<Settings> {
        let listen = self.listen.unwrap_or(LISTEN);
        let identity = self.identity()?;
        let proxies = networks(&self.behind_proxy)?;
        let is_safe = identity.is_some() || !proxies.is_empty() || listen.ip().is_loopback();
        if !is_safe && self.insecure_http != Some(true) {
            bail!(
                "{listen} is reachable from other machines, and passwords and tokens would be sent \
                 unencrypted; set --tls-cert and --tls-key, or --behind-proxy with the networks of a TLS \
                 proxy, or --insecure-http if the network is trusted"
            );
        }
        let data_dir = self.data_dir();
        let trust = Trust {
            authorities: self.executor_ca.as_deref().map(read).transpose()?,
            accept_invalid: self.executor_any_certificate == Some(true),
        };
        Ok(Settings {
            listen,
            identity,
            proxies,
            hostnames: hostnames(&self.hostnames)?,
            database: self.database(&data_dir)?,
            node: self.node.clone().unwrap_or_else(|| format!("{}:{}", files::host_name(), listen.port())),
            zone: self.zone()?,
            connections: at_least_one("connections", self.connections)?.unwrap_or(CONNECTIONS),
            java_admins: match self.java_admins {
                Some(Neighbors::Auto) | None => JavaAdmins::Auto,
                Some(Neighbors::Beside) => JavaAdmins::Beside,
                Some(Neighbors::None) => JavaAdmins::None,
            },
            key: key(&self.key_file.clone().unwrap_or_else(|| data_dir.join("tickwright.key")))?,
            token: self.token()?,
            allow_no_token: self.allow_no_token == Some(true),
            executor_networks: networks(&self.executor_networks)?,
            scripts: self.allow_scripts == Some(true),
            declared_jobs: match self.declared_jobs {
                Some(Declarers::None) => DeclaredJobs::None,
                Some(Declarers::OwnToken) | None => DeclaredJobs::OwnToken,
                Some(Declarers::All) => DeclaredJobs::All,
            },
            call_timeout: self.call_timeout()?,
            trust,
            channels: self.channels()?,
            late_after: duration("alert-late-after", self.alert_late_after.as_deref().unwrap_or("1m"))?,
            sample_job: self.has_sample(),
            keep_runs: duration("keep-runs", self.keep_runs.as_deref().unwrap_or("30d"))?,
            keep_runs_max: at_least_one("keep-runs-max", self.keep_runs_max)?,
            min_interval: duration("min-interval", self.min_interval.as_deref().unwrap_or("10ms"))?,
            max_open_runs: at_least_one("max-open-runs", self.max_open_runs)?.unwrap_or(MAX_OPEN_RUNS),
            database_wait: duration("database-wait", self.database_wait.as_deref().unwrap_or("30s"))?,
            requests_each: server::REQUESTS_EACH,
        })
    }

    /// Whether to run the built-in sample executor.
    pub fn has_sample(&self) -> bool {
        // It would not trust a certificate issued for other host names.
        let is_plain = self.tls_cert.is_none() && self.behind_proxy.is_none();
        self.sample.unwrap_or_else(|| is_plain && self.listen.unwrap_or(LISTEN).ip().is_loopback())
    }

    /// Directory of data files.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| DATA_DIR.into())
    }

    fn database(&self, data_dir: &Path) -> anyhow::Result<String> {
        match &self.database_url {
            Some(url) => secret::read(url).context("failed to read --database-url"),
            None => Ok(format!("sqlite:{}", data_dir.join("tickwright.db").display())),
        }
    }

    fn zone(&self) -> anyhow::Result<Zone> {
        self.zone.as_deref().map_or(Ok(Zone::system()), |name| Zone::parse(name).map_err(Into::into))
    }

    fn token(&self) -> anyhow::Result<Option<Secret>> {
        let Some(written) = &self.token else { return Ok(None) };
        let token = secret::read(written).context("failed to read --token")?;
        if secret::is_typed(written, "TICKWRIGHT_TOKEN") {
            tracing::warn!(
                "the token on the command line is visible to every user of this machine; use file:PATH or \
                 TICKWRIGHT_TOKEN"
            );
        }
        let weak = is_well_known(&token) || token.len() < TOKEN_MIN;
        if weak && self.allow_weak_token != Some(true) {
            bail!(
                "the token is {}; use at least {TOKEN_MIN} random characters, or set --allow-weak-token \
                 until your executors use a new token",
                match is_well_known(&token) {
                    true => "publicly known",
                    false => "too short",
                }
            );
        }
        if weak {
            tracing::warn!(
                "the token shared by all executors is weak; give each app its own token, then remove \
                 --allow-weak-token"
            );
        }
        Ok(Some(Secret::new(token)))
    }

    fn identity(&self) -> anyhow::Result<Option<Identity>> {
        match (self.tls_cert.clone(), self.tls_key.clone()) {
            (Some(certificate), Some(key)) => Ok(Some(Identity { certificate, key })),
            (None, None) => Ok(None),
            (Some(_), None) => {
                bail!("--tls-cert requires the private key of the certificate: add --tls-key FILE")
            }
            (None, Some(_)) => bail!("--tls-key requires a certificate: add --tls-cert FILE"),
        }
    }

    fn channels(&self) -> anyhow::Result<Vec<Arc<dyn Channel>>> {
        let mut channels: Vec<Arc<dyn Channel>> = Vec::new();
        if let Some(written) = &self.alert_mail {
            let url = secret::read(written).context("failed to read --alert-mail")?;
            channels.push(Arc::new(Mail::new(&url, self.alert_from.as_deref().unwrap_or(ALERT_FROM))?));
        }
        for written in self.alert_webhook.iter().flatten() {
            channels.push(Arc::new(secret::read(written)?.parse::<Webhook>()?));
        }
        Ok(channels)
    }

    fn call_timeout(&self) -> anyhow::Result<Duration> {
        let timeout = duration("call-timeout", self.call_timeout.as_deref().unwrap_or("3s"))?;
        if !(Duration::from_secs(1)..=Duration::from_secs(10)).contains(&timeout) {
            bail!("call-timeout is {timeout:?}; it must be 1s to 10s");
        }
        Ok(timeout)
    }
}

fn hostnames(names: &Option<Vec<String>>) -> anyhow::Result<Vec<String>> {
    let is_name = |name: &str| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
        !name.is_empty() && name.chars().all(is_letter)
    };
    let check = |name: &String| match is_name(name.trim()) {
        true => Ok(name.trim().to_owned()),
        false => bail!(
            "--hostnames: `{name}` is not a host name; write it without scheme and port, for example \
             centre.example.com"
        ),
    };
    names.iter().flatten().map(check).collect()
}

fn networks(written: &Option<Vec<String>>) -> anyhow::Result<Vec<Cidr>> {
    let written = written.iter().flatten();
    written.map(|cidr| cidr.trim().parse().map_err(anyhow::Error::from)).collect()
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))
}

fn at_least_one<T: Default + PartialEq>(name: &str, count: Option<T>) -> anyhow::Result<Option<T>> {
    if count.as_ref() == Some(&T::default()) {
        bail!("{name} is 0; it must be 1 or more, or omitted");
    }
    Ok(count)
}

fn duration(name: &str, written: &str) -> anyhow::Result<Duration> {
    duration::parse(written).with_context(|| format!("invalid value of {name}"))
}

/// Reachable from this machine only, by default.
const LISTEN: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 8080));

const DATA_DIR: &str = "tickwright-data";

const CONNECTIONS: u32 = 8;

/// Twice the runs of ten thousand jobs that fire every second. A node's memory holds more than one app's share.
const MAX_OPEN_RUNS: u64 = 30_000;

const ALERT_FROM: &str = "Tickwright <tickwright@localhost>";

/// Minimum length of a token that cannot be guessed.
const TOKEN_MIN: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_options_has_them_all() {
        let page = include_str!("../../../../docs/options.md");
        let command = Options::augment_args(clap::Command::new("serve"));
        for option in command.get_arguments() {
            let flag = option.get_long().expect("every option is a flag");
            let variable = option.get_env().expect("and a variable").to_string_lossy().into_owned();
            let row = page.lines().find(|line| line.starts_with(&format!("| `--{flag}")));
            assert!(row.is_some_and(|row| row.contains(&format!("`{variable}`"))), "--{flag} {variable}");
            let takes_nothing = option.get_num_args().is_some_and(|count| count.min_values() == 0);
            let value = match option.get_value_names().and_then(|names| names.first()) {
                _ if takes_nothing => String::new(),
                Some(name) if name.contains('|') => format!(" <{}>", name.replace('|', "\\|")),
                name => name.map(|name| format!(" {name}")).unwrap_or_default(),
            };
            let shown = format!("| `--{flag}{value}` |");
            assert!(row.is_some_and(|row| row.starts_with(&shown)), "docs/options.md lacks: {shown}");
        }
    }

    #[test]
    fn a_flag_weighs_more_than_the_file() {
        let folder = std::env::temp_dir().join(format!("tickwright-options-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("options.toml");
        std::fs::write(
            &path,
            "node = 'from-file'\ncall-timeout = '5s'\nexecutor-networks = ['10.0.0.0/8']\ndeclared-jobs = 'all'\n",
        )
        .unwrap();
        let options =
            Options { config: Some(path.clone()), node: Some("from-flag".into()), ..Options::default() };
        let options = options.with_file().unwrap();
        assert_eq!(
            (options.node.as_deref(), options.call_timeout.as_deref()),
            (Some("from-flag"), Some("5s"))
        );
        assert_eq!(networks(&options.executor_networks).unwrap().len(), 1);
        assert_eq!(options.declared_jobs, Some(Declarers::All));

        std::fs::write(&path, "nod = 'x'").unwrap();
        let error = Options { config: Some(path), ..Options::default() }.with_file().unwrap_err();
        assert!(format!("{error:#}").contains("unknown field `nod`"), "{error:#}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_would_be_unsafe_is_refused_and_says_what_to_do() {
        let check = |options: Options, expected: &str| {
            let error = options.settings().err().map(|error| format!("{error:#}")).unwrap_or_default();
            assert!(error.contains(expected), "{error}");
        };
        check(
            Options { listen: Some("0.0.0.0:0".parse().unwrap()), ..Options::default() },
            "--insecure-http",
        );
        check(Options { tls_cert: Some("cert.pem".into()), ..Options::default() }, "add --tls-key");
        check(Options { tls_key: Some("key.pem".into()), ..Options::default() }, "add --tls-cert");
        check(Options { behind_proxy: Some(vec!["the proxy".into()]), ..Options::default() }, "the proxy");
        let in_memory = || Options {
            database_url: Some("sqlite::memory:".into()),
            key_file: Some(std::env::temp_dir().join(format!("tickwright-none-{}", std::process::id()))),
            ..Options::default()
        };
        check(Options { connections: Some(0), ..in_memory() }, "connections is 0; it must be 1 or more");
        check(Options { keep_runs_max: Some(0), ..in_memory() }, "keep-runs-max is 0");
        let key_file = std::env::temp_dir().join(format!("tickwright-key-{}", std::process::id()));
        let with_token = |token: &str| Options {
            token: Some(token.into()),
            database_url: Some("sqlite::memory:".into()),
            key_file: Some(key_file.clone()),
            ..Options::default()
        };
        check(with_token("default_token"), "publicly known");
        check(with_token("short"), "too short");
        let weak = Options { allow_weak_token: Some(true), ..with_token("default_token") };
        assert!(weak.settings().unwrap().token.is_some());
        std::fs::remove_file(key_file).unwrap();
    }
}
