//! The servers of a replicated database: finds their processes, kills, pauses and restarts them.
//!
//! `scripts/databases` starts them, so that there is one way to start them. The command lines are read from the
//! processes.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, Row, raw_sql};
use tokio::process::{Child, Command};

use super::centre::signal;
use super::database_server::{Recipe, children, is_gone};
use super::until_each;
use crate::database::Database;

/// A kind of replicated database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicated {
    /// MariaDB servers that are one Galera cluster; all of them accept writes.
    Galera,
    /// PostgreSQL servers under Patroni; one of them accepts writes.
    Patroni,
}

/// The servers.
pub struct Members {
    kind: Replicated,
    members: Vec<Member>,
}

struct Member {
    url: String,
    /// Starts it: the server itself, or Patroni.
    recipe: Recipe,
    again: Option<Child>,
}

impl Members {
    /// The servers that `scripts/databases` has started; `None` if it could not.
    pub fn of(kind: Replicated) -> Result<Option<Members>> {
        let Ok(urls) = std::env::var(kind.variable()) else { return Ok(None) };
        let mut members = Vec::new();
        for (index, url) in urls.split_whitespace().enumerate() {
            let pid = match kind {
                Replicated::Galera => server(port_of(url)?)?.context("no server listens there")?,
                Replicated::Patroni => {
                    process(&[&format!("member-{}.yml", index + 1)])?.context("no Patroni runs")?
                }
            };
            members.push(Member { url: url.to_owned(), recipe: Recipe::of(pid)?, again: None });
        }
        if kind == Replicated::Galera {
            // The first member began the cluster. When it is started again, it must join it, as the others do.
            let joins = |part: &&String| part.starts_with(CLUSTER_ADDRESS);
            let address =
                members[1].recipe.command.iter().find(joins).context("a member that joins")?.clone();
            for part in members[0].recipe.command.iter_mut().filter(|part| part.starts_with(CLUSTER_ADDRESS))
            {
                part.clone_from(&address);
            }
        }
        Ok(Some(Members { kind, members }))
    }

    /// Whether commits wait for another server.
    pub fn are_synchronous(&self) -> bool {
        self.kind == Replicated::Galera
            || std::env::var("TICKWRIGHT_TEST_PATRONI_MODE").is_ok_and(|mode| mode == "sync")
    }

    /// Number of servers.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Addresses of all servers, separated by commas.
    pub fn hosts(&self) -> Result<String> {
        let all = self.members.iter().map(|member| address_of(&member.url)).collect::<Result<Vec<_>>>()?;
        Ok(all.join(","))
    }

    /// Address of a server.
    pub fn address(&self, index: usize) -> Result<&str> {
        address_of(&self.members[index].url)
    }

    /// Waits until a server accepts writes; returns its index.
    pub async fn writer(&self) -> Result<usize> {
        until_each(LOOK, "a server accepts writes", PATIENCE, async || {
            for (index, member) in self.members.iter().enumerate() {
                if self.is_writer(member).await.unwrap_or(false) {
                    return Some(index);
                }
            }
            None
        })
        .await
    }

    /// Creates databases on the server that accepts writes.
    pub async fn database(&self) -> Result<Database> {
        let server = self.members[self.writer().await?].url.clone();
        Ok(match self.kind {
            Replicated::Galera => Database::MySql { server },
            Replicated::Patroni => Database::Postgres { server },
        })
    }

    /// Lets new connections to all servers number rows one by one, as the tests write their jobs, or each server in its own
    /// steps, as Galera does.
    pub async fn number_one_by_one(&self, one_by_one: bool) -> Result<()> {
        if self.kind != Replicated::Galera {
            return Ok(());
        }
        for (index, member) in self.members.iter().enumerate() {
            let (step, offset) = if one_by_one { (1, 1) } else { (self.members.len(), index + 1) };
            let control = if one_by_one { "OFF" } else { "ON" };
            let sql = format!(
                "SET GLOBAL wsrep_auto_increment_control = {control}; SET GLOBAL auto_increment_increment = {step}; \
                 SET GLOBAL auto_increment_offset = {offset}"
            );
            let mut connection = MySqlConnection::connect(&member.url).await?;
            raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
        }
        Ok(())
    }

    async fn is_writer(&self, member: &Member) -> Result<bool> {
        match self.kind {
            Replicated::Galera => Ok(self.state(member).await? == "Synced"),
            Replicated::Patroni => Ok(self.state(member).await? == "false"),
        }
    }

    /// Whether it follows the others, or accepts writes.
    async fn is_whole(&self, member: &Member) -> Result<bool> {
        match self.kind {
            Replicated::Galera => Ok(self.state(member).await? == "Synced"),
            Replicated::Patroni => Ok(self.state(member).await? == "false" || self.streams(member).await?),
        }
    }

    async fn state(&self, member: &Member) -> Result<String> {
        let asked = async {
            Ok(match self.kind {
                Replicated::Galera => {
                    let mut connection = MySqlConnection::connect(&member.url).await?;
                    let row = raw_sql("SHOW STATUS LIKE 'wsrep_local_state_comment'")
                        .fetch_one(&mut connection)
                        .await?;
                    row.try_get::<String, _>(1)?
                }
                Replicated::Patroni => {
                    let mut connection = PgConnection::connect(&member.url).await?;
                    let row = sqlx::query("SELECT CAST(pg_is_in_recovery() AS text)")
                        .fetch_one(&mut connection)
                        .await?;
                    row.try_get::<String, _>(0)?
                }
            })
        };
        tokio::time::timeout(ASK_MAX, asked).await.context("no answer")?
    }

    async fn streams(&self, member: &Member) -> Result<bool> {
        let asked = async {
            let mut connection = PgConnection::connect(&member.url).await?;
            let row =
                sqlx::query("SELECT COUNT(*) FROM pg_stat_wal_receiver").fetch_one(&mut connection).await?;
            Ok(row.try_get::<i64, _>(0)? > 0)
        };
        tokio::time::timeout(ASK_MAX, asked).await.context("no answer")?
    }

    /// Kills a server with kill -9, and what would start it again.
    pub async fn kill(&mut self, index: usize) -> Result<()> {
        let mut pids = Vec::new();
        if self.kind == Replicated::Patroni {
            pids.extend(process(&[&format!("member-{}.yml", index + 1)])?);
        }
        if let Some(pid) = server(port_of(&self.members[index].url)?)? {
            pids.push(pid);
            pids.extend(children(pid).unwrap_or_default());
        }
        ensure!(!pids.is_empty(), "the server {} does not run", index + 1);
        for pid in &pids {
            // Some end by themselves when the others do.
            let _ = signal(*pid, "KILL").await;
        }
        if let Some(mut again) = self.members[index].again.take() {
            again.wait().await?;
        }
        until_each(LOOK, "the server is gone", PATIENCE, async || {
            pids.iter().all(|pid| is_gone(*pid)).then_some(())
        })
        .await
    }

    /// Starts a server that was killed, and waits until it follows the others.
    pub async fn start_again(&mut self, index: usize) -> Result<()> {
        let Recipe { command, folder, user, group } = &self.members[index].recipe;
        let mut again = std::process::Command::new(&command[0]);
        again
            .args(&command[1..])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        std::os::unix::process::CommandExt::uid(&mut again, *user);
        std::os::unix::process::CommandExt::gid(&mut again, *group);
        std::os::unix::process::CommandExt::process_group(&mut again, 0);
        let again =
            Command::from(again).kill_on_drop(true).spawn().context("could not start the server again")?;
        self.members[index].again = Some(again);
        let member = &self.members[index];
        until_each(LOOK, "the server has joined the others", JOIN_MAX, async || {
            self.is_whole(member).await.unwrap_or(false).then_some(())
        })
        .await
    }

    /// Suspends a server with all its processes: the others cannot reach it.
    pub async fn pause(&self, index: usize) -> Result<()> {
        self.signal_all(index, "STOP").await
    }

    /// Resumes it.
    pub async fn resume(&self, index: usize) -> Result<()> {
        self.signal_all(index, "CONT").await
    }

    async fn signal_all(&self, index: usize, name: &str) -> Result<()> {
        let pid = server(port_of(&self.members[index].url)?)?.context("the server does not run")?;
        let mut pids = vec![pid];
        pids.extend(children(pid).unwrap_or_default());
        if self.kind == Replicated::Patroni {
            pids.extend(process(&[&format!("member-{}.yml", index + 1)])?);
        }
        for pid in pids {
            let _ = signal(pid, name).await;
        }
        Ok(())
    }

    /// Stops sending commits to the standbys. They notice nothing.
    pub async fn stop_replication(&self, index: usize) -> Result<()> {
        let mut connection = PgConnection::connect(&self.members[index].url).await?;
        let senders = sqlx::query("SELECT pid FROM pg_stat_replication").fetch_all(&mut connection).await?;
        ensure!(!senders.is_empty(), "the primary has no standbys");
        for sender in senders {
            let pid: i32 = sender.try_get(0)?;
            signal(u32::try_from(pid)?, "STOP").await?;
        }
        Ok(())
    }

    /// Ends the servers that were started again; the others end with `scripts/databases`.
    pub async fn end(mut self) -> Result<()> {
        for index in 0..self.members.len() {
            if self.members[index].again.is_some() {
                self.kill(index).await?;
            }
        }
        Ok(())
    }

    /// The texts of a query for one column, from the server that accepts writes.
    pub async fn texts(&self, database: &str, sql: &str) -> Result<Vec<String>> {
        ensure!(self.kind == Replicated::Patroni, "only asked where commits may be lost");
        let url = &self.members[self.writer().await?].url;
        let (address, _) = url.rsplit_once('/').context("a URL with a database")?;
        let mut connection = PgConnection::connect(&format!("{address}/{database}")).await?;
        let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }
}

impl Replicated {
    fn variable(self) -> &'static str {
        match self {
            Replicated::Galera => "TICKWRIGHT_TEST_GALERA_URLS",
            Replicated::Patroni => "TICKWRIGHT_TEST_PATRONI_URLS",
        }
    }

    /// Product name.
    pub fn name(self) -> &'static str {
        match self {
            Replicated::Galera => "Galera",
            Replicated::Patroni => "Patroni",
        }
    }
}

fn address_of(url: &str) -> Result<&str> {
    let (_, rest) = url.rsplit_once('@').context("a URL with a user")?;
    Ok(rest.split('/').next().unwrap_or(rest))
}

fn port_of(url: &str) -> Result<u16> {
    let (_, port) = address_of(url)?.rsplit_once(':').context("a URL with a port")?;
    Ok(port.parse()?)
}

/// The process of the server with this port. Both kinds of server have it as an option.
fn server(port: u16) -> Result<Option<u32>> {
    process(&[&format!("--port={port}")])
}

/// The process with these parts in its command line, and not one that waits for it.
fn process(parts: &[&str]) -> Result<Option<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(command) = fs::read(format!("/proc/{pid}/cmdline")) else { continue };
        let command = String::from_utf8_lossy(&command).into_owned();
        let arguments: Vec<&str> = command.split('\0').collect();
        let has = |part: &&str| {
            arguments.iter().any(|argument| argument == part || argument.ends_with(&format!("/{part}")))
        };
        if parts.iter().all(has) && !is_gone(pid) && !is_script(arguments[0]) {
            found.push(pid);
        }
    }
    // The children of a server have titles of their own, or its command line and higher ids.
    Ok(found.into_iter().min())
}

/// Whether it only starts or asks the server.
fn is_script(program: &str) -> bool {
    ["bash", "sh", "psql", "mariadb", "env", "setsid", "setpriv"]
        .iter()
        .any(|name| program == *name || program.ends_with(&format!("/{name}")))
}

const CLUSTER_ADDRESS: &str = "--wsrep-cluster-address=";
const LOOK: Duration = Duration::from_millis(100);
const ASK_MAX: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);

/// A server may copy all data from another one first.
const JOIN_MAX: Duration = Duration::from_secs(120);
