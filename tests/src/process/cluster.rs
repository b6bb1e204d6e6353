//! A test cluster of real processes: a database, its nodes behind proxies, and executors.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use cron::Timestamp;
use engine::AppId;
use server::executors::{Key, fingerprint, generate};
use store::{Addresses, AppSpec, NewToken, Registry as _};

use super::centre::Centre;
use super::checker::Check;
use super::executor::JournalExecutor;
use super::journal::{Journal, micros_now};
use super::proxy::Proxy;
use super::standby::Standby;
use super::until;
use super::workload::{Phases, Workload};
use crate::database::{Database, Home};

/// A database with jobs, its nodes, and executors.
pub struct Cluster {
    /// The jobs and their schedules.
    pub workload: Workload,
    /// The requests that executors accepted.
    pub journal: Journal,
    /// The executors.
    pub executors: Vec<JournalExecutor>,
    /// Proxies between each node and its database; empty for SQLite.
    pub proxies: Vec<Proxy>,
    /// The database.
    pub home: Home,
    /// Standby of the database, whose address the nodes know, too.
    pub standby: Option<Standby>,
    /// Addresses of all servers of a replicated database, separated by commas: the nodes use them instead of a proxy.
    pub hosts: Option<String>,
    /// The app of the executors.
    pub app: AppId,
    folder: PathBuf,
    addresses: Vec<SocketAddr>,
    token: String,
}

/// Size of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Nodes {
    /// Number of centre nodes.
    pub centres: usize,
    /// Number of executors.
    pub executors: usize,
    /// Time between writing the jobs and the first fire, used to start everything.
    pub lead: Duration,
    /// Time from the first fire to the last.
    pub length: Duration,
}

impl Cluster {
    /// Creates a cluster. Only the executors are running.
    pub async fn build(database: &Database, nodes: Nodes, workload: Workload) -> Result<Cluster> {
        Cluster::build_in(database.create().await?, nodes, workload).await
    }

    /// The same in an existing database without apps and jobs.
    pub async fn build_in(home: Home, nodes: Nodes, mut workload: Workload) -> Result<Cluster> {
        let mut cluster = Cluster::without_jobs(home, nodes).await?;
        workload.write(&cluster.home, cluster.app, nodes.lead, nodes.length).await?;
        cluster.workload = workload;
        Ok(cluster)
    }

    /// A cluster with an app, but without jobs.
    pub async fn without_jobs(home: Home, nodes: Nodes) -> Result<Cluster> {
        let folder = std::env::temp_dir().join(format!("tickwright-cluster-{:08x}", fastrand::u32(..)));
        fs::create_dir_all(&folder)?;
        let (key, token) = (Key::generate(), generate());
        let mut key_file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(KEY))?;
        std::io::Write::write_all(&mut key_file, key.written().as_bytes())?;

        let store = home.open().await?;
        let spec = AppSpec { name: APP.into(), title: APP.into(), addresses: Addresses::Registered };
        let app = store.create_app(&spec).await?;
        let row = NewToken {
            app: Some(app),
            digest: fingerprint(&token),
            sealed: key.seal(&token),
            expires_at: None,
        };
        store.add_token(&row).await?;
        drop(store);

        let addresses = (0..nodes.centres).map(|_| free_address()).collect::<Result<Vec<_>>>()?;
        let mut proxies = Vec::new();
        if let Some(server) = database_address(&home)? {
            for _ in 0..nodes.centres {
                proxies.push(Proxy::start(server).await?);
            }
        }
        let journal = Journal::default();
        let mut executors = Vec::new();
        for _ in 0..nodes.executors {
            executors.push(JournalExecutor::start(APP, &token, &addresses, journal.clone()).await?);
        }
        let workload = Workload::each_second(0, Phases::Spread);
        Ok(Cluster {
            workload,
            journal,
            executors,
            proxies,
            home,
            standby: None,
            hosts: None,
            app,
            folder,
            addresses,
            token,
        })
    }

    /// Creates and starts a cluster that is ready before its first fire. If the machine is too busy for that, everything
    /// is started again with more time.
    pub async fn start_in_time(
        home: impl AsyncFn() -> Result<Home>,
        mut nodes: Nodes,
        workload: &Workload,
        mut standby: Option<Standby>,
    ) -> Result<(Cluster, Vec<Option<Centre>>)> {
        loop {
            let mut cluster = Cluster::build_in(home().await?, nodes, workload.clone()).await?;
            cluster.standby = standby.take();
            let centres = cluster.start_all().await?;
            let ready_at = Timestamp::from_millis(micros_now() / 1_000);
            if ready_at + READY_BEFORE <= cluster.workload.first || nodes.lead > LEAD_MAX {
                return Ok((cluster, centres));
            }
            for centre in centres.into_iter().flatten() {
                centre.stop().await?;
            }
            standby = cluster.standby.take();
            cluster.remove().await?;
            nodes.lead *= 2;
        }
    }

    /// Starts a node and waits until it may claim.
    pub async fn start(&self, node: usize) -> Result<Centre> {
        let (url, key_file) = (self.url(node)?, self.key_file());
        Centre::start(&name(node), self.addresses[node], &url, &key_file).await.with_context(|| name(node))
    }

    /// Starts a node without waiting.
    pub fn spawn(&self, node: usize) -> Result<Centre> {
        Centre::spawn(&name(node), self.addresses[node], &self.url(node)?, &self.key_file())
    }

    /// Starts all nodes at the same time and waits until all may claim.
    pub async fn start_together(&self) -> Result<Vec<Centre>> {
        let centres = (0..self.addresses.len()).map(|node| self.spawn(node)).collect::<Result<Vec<_>>>()?;
        for centre in &centres {
            let is_ready = async || centre.is_ready().await.then_some(());
            let ready = until("all nodes are ready", PATIENCE, is_ready).await;
            ready.with_context(|| format!("one said:\n{}", centre.said()))?;
        }
        Ok(centres)
    }

    /// Starts all nodes and waits until all executors are registered.
    pub async fn start_all(&self) -> Result<Vec<Option<Centre>>> {
        let mut centres = Vec::new();
        for node in 0..self.addresses.len() {
            centres.push(Some(self.start(node).await?));
        }
        self.register_executors().await?;
        Ok(centres)
    }

    /// Waits until all executors are registered.
    pub async fn register_executors(&self) -> Result<()> {
        for executor in &self.executors {
            let registered = async || executor.register().await.ok();
            until("an executor is registered", PATIENCE, registered).await?;
        }
        Ok(())
    }

    /// Registers the executors in the database, as a Java admin does.
    pub async fn register_as_java_admin(&self) -> Result<()> {
        let now = match self.home {
            Home::Sqlite(_) => "datetime('now')",
            Home::MySql { .. } => "UTC_TIMESTAMP()",
            Home::Postgres { .. } => "now() AT TIME ZONE 'UTC'",
        };
        let row = |url: String| {
            format!(
                "INSERT INTO xxl_job_registry (registry_group, registry_key, registry_value, update_time) \
                 VALUES ('EXECUTOR', '{APP}', '{url}', {now})"
            )
        };
        let rows: Vec<String> = self.executors.iter().map(|executor| row(executor.url())).collect();
        self.home.run(&rows).await
    }

    /// URL of the database for a node.
    fn url(&self, node: usize) -> Result<String> {
        let url = self.home.url();
        match (self.proxies.get(node), database_address(&self.home)?) {
            (Some(proxy), Some(server)) => {
                let hosts = match (&self.hosts, &self.standby) {
                    (Some(hosts), _) => hosts.clone(),
                    // First, so that the nodes have to find out which one accepts writes.
                    (None, Some(standby)) => format!("{},{}", standby.address, proxy.address()),
                    (None, None) => proxy.address().to_string(),
                };
                Ok(url.replace(&format!("@{server}/"), &format!("@{hosts}/")))
            }
            _ => Ok(url),
        }
    }

    /// Lets the standby take the place of the database.
    pub async fn fail_over(&mut self) -> Result<()> {
        let standby = self.standby.as_ref().context("a cluster with a standby")?;
        standby.promote().await?;
        let before = database_address(&self.home)?.context("a server")?;
        if let Home::Postgres { url, server, .. } = &mut self.home {
            for address in [url, server] {
                *address = address.replace(&format!("@{before}/"), &format!("@{}/", standby.address));
            }
        }
        Ok(())
    }

    /// Uses this server of a replicated database from now on, to read the results.
    pub fn use_server(&mut self, address: &str) -> Result<()> {
        let before = database_address(&self.home)?.context("a server")?;
        if let Home::MySql { url, server, .. } | Home::Postgres { url, server, .. } = &mut self.home {
            for known in [url, server] {
                *known = known.replace(&format!("@{before}/"), &format!("@{address}/"));
            }
        }
        Ok(())
    }

    fn key_file(&self) -> PathBuf {
        self.folder.join(KEY)
    }

    /// Deletes our own rows of the jobs, so that they look like jobs that only a Java admin has ever seen.
    pub async fn forget_own_rows(&self) -> Result<()> {
        self.home.run(&["DELETE FROM tw_job".into()]).await
    }

    /// Locks the rows of jobs from the first to this one, like a user who edits them in a long transaction.
    pub async fn hold_rows(&self, up_to: i64, length: Duration) -> Result<()> {
        self.home.hold(&format!("SELECT job_id FROM tw_job WHERE job_id <= {up_to} FOR UPDATE"), length).await
    }

    /// Its database.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Access token of the executors.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Waits until a time relative to the first fire.
    pub async fn at(&self, after_first: Duration) {
        let at = self.workload.first.as_millis() * 1_000 + after_first.as_micros() as i64;
        let left = u64::try_from(at - micros_now()).unwrap_or(0);
        tokio::time::sleep(Duration::from_micros(left)).await;
    }

    /// Waits until every fire is due and every result is confirmed.
    pub async fn settle(&self, patience: Duration) -> Result<()> {
        self.at(self.workload.last.duration_since(self.workload.first)).await;
        let quiet = async {
            let mut last = (usize::MAX, 0);
            loop {
                let now = (self.journal.len(), self.journal.acknowledged_count());
                if now == last && self.is_complete() {
                    return;
                }
                last = now;
                tokio::time::sleep(QUIET).await;
            }
        };
        // If results are missing after this, the check reports them.
        let _ = tokio::time::timeout(patience, quiet).await;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        let check = Check::of(&self.workload, self.executors.len(), &self.journal);
        check.missing.is_empty() && check.unacknowledged == 0
    }

    /// Compares the journals with the schedules, and looks up missing fires in the database. With SQLite all nodes
    /// must have ended.
    pub async fn check(&self) -> Result<Check> {
        let mut check = Check::of(&self.workload, self.executors.len(), &self.journal);
        let store = self.home.open().await?;
        check.explain(&self.workload, &self.journal, &store).await?;
        Ok(check)
    }

    /// The database. With SQLite all nodes must have ended.
    pub async fn store(&self) -> Result<std::sync::Arc<store::Database>> {
        self.home.open().await
    }

    /// Deletes everything.
    pub async fn remove(self) -> Result<()> {
        fs::remove_dir_all(&self.folder)?;
        self.home.remove().await
    }
}

/// Every node must know all executors this long before the first fire: fires are claimed 1.5 s ahead, and a node knows an
/// executor that has registered with another one after a second.
const READY_BEFORE: Duration = Duration::from_millis(2_500);

/// A cluster that needs more time than this to start does not start at all.
const LEAD_MAX: Duration = Duration::from_secs(60);

fn name(node: usize) -> String {
    format!("node-{node}")
}

/// A local address with an unused port.
pub fn free_address() -> Result<SocketAddr> {
    let free = (0..PORT_TRIES).find_map(|_| TcpListener::bind(("127.0.0.1", fastrand::u16(PORTS))).ok());
    Ok(free.context("no free port was found")?.local_addr()?)
}

/// Below the system's ephemeral ports: the system must not give the port to a connection before a centre listens
/// there, or while the centre is restarted.
const PORTS: std::ops::Range<u16> = 10_000..32_000;
const PORT_TRIES: usize = 100;

fn database_address(home: &Home) -> Result<Option<SocketAddr>> {
    match home {
        Home::Sqlite(_) => Ok(None),
        Home::MySql { url, .. } | Home::Postgres { url, .. } => {
            let (_, rest) = url.rsplit_once('@').context("an address with a user")?;
            let (address, _) = rest.split_once('/').context("an address with a database")?;
            Ok(Some(address.parse().context("an address with an IP and a port")?))
        }
    }
}

const APP: &str = "journal";
const KEY: &str = "key";
const PATIENCE: Duration = Duration::from_secs(120);

/// No more results are expected after a pause of this length.
const QUIET: Duration = Duration::from_millis(300);
