//! A separate database server that can be killed and restarted.
//!
//! `scripts/databases` starts it, so that there is one way to start it; its command line is read from the process
//! and used for the restart.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::standby::Standby;
use super::{signal, until};
use crate::database::Database;

/// A running server.
pub struct DatabaseServer {
    /// Creates databases on this server.
    pub database: Database,
    /// Keeps the server running until its standard input is closed.
    script: Child,
    pid: u32,
    start_again: Recipe,
    again: Option<Child>,
}

/// Command line and user of a process.
pub(super) struct Recipe {
    pub(super) command: Vec<String>,
    pub(super) folder: PathBuf,
    pub(super) user: u32,
    pub(super) group: u32,
}

impl DatabaseServer {
    /// Starts a new server of the same kind; `None` for SQLite.
    pub async fn like(database: &Database) -> Result<Option<DatabaseServer>> {
        let (variable, other, program) = match database {
            Database::Sqlite => return Ok(None),
            Database::MySql { .. } => {
                ("TICKWRIGHT_TEST_MYSQL_URL", "TICKWRIGHT_TEST_POSTGRES_URL", "mariadbd")
            }
            Database::Postgres { .. } => {
                ("TICKWRIGHT_TEST_POSTGRES_URL", "TICKWRIGHT_TEST_MYSQL_URL", "postgres")
            }
        };
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts");
        let mut script = Command::new(scripts.join("databases"))
            .args(["run", "--", "sh", "-c", &format!("echo \"${variable}\"; exec cat")])
            .env_remove(variable)
            // A server with a given URL is not started.
            .env(other, "given")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("could not run scripts/databases")?;
        let stdout = script.stdout.take().context("its output was asked for")?;
        let url = tokio::time::timeout(START_MAX, BufReader::new(stdout).lines().next_line()).await??;
        let url = url.filter(|url| !url.is_empty()).context("scripts/databases started no server")?;
        let parent = script.id().context("scripts/databases has ended")?;
        let pid = child_named(parent, program)?;
        let start_again = Recipe::of(pid)?;
        let database = match database {
            Database::MySql { .. } => Database::MySql { server: url },
            _ => Database::Postgres { server: url },
        };
        Ok(Some(DatabaseServer { database, script, pid, start_again, again: None }))
    }

    /// Kills the server and its child processes with kill -9.
    pub async fn kill(&mut self) -> Result<()> {
        // While it is stopped it starts no more processes; one that outlives the others would hold the memory they share,
        // and the server could not be started again.
        let _ = signal(self.pid, "STOP").await;
        let mut family = vec![self.pid];
        family.extend(children(self.pid).unwrap_or_default());
        for pid in &family {
            // Some end by themselves when the others do.
            let _ = signal(*pid, "KILL").await;
        }
        if let Some(mut again) = self.again.take() {
            again.wait().await?;
        }
        until("the database is gone", START_MAX, async || {
            family.iter().all(|pid| is_gone(*pid)).then_some(())
        })
        .await
    }

    /// Restarts it with the same data and port. Returns immediately, while it recovers.
    pub fn start_again(&mut self) -> Result<()> {
        let Recipe { command, folder, user, group } = &self.start_again;
        let mut again = std::process::Command::new(&command[0]);
        again
            .args(&command[1..])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // A separate process group: Ctrl-C in a terminal is for the test only.
        again.uid(*user).gid(*group).process_group(0);
        let mut again = Command::from(again);
        let again = again.kill_on_drop(true).spawn().context("could not start the database again")?;
        self.pid = again.id().context("the database has ended at once")?;
        self.again = Some(again);
        Ok(())
    }

    /// Waits until it accepts connections.
    pub async fn until_ready(&mut self) -> Result<()> {
        let (database, again) = (&self.database, &mut self.again);
        until("the database answers or has ended", START_MAX, async || {
            let ended = again.as_mut().and_then(|again| again.try_wait().transpose());
            (ended.is_some() || database.answers().await).then_some(())
        })
        .await?;
        if let Some(status) = again.as_mut().and_then(|again| again.try_wait().transpose()) {
            bail!("the database ended when it was started again: {}", status?);
        }
        Ok(())
    }

    /// Starts a standby of this PostgreSQL server.
    pub async fn standby(&self) -> Result<Standby> {
        let Database::Postgres { server: url } = &self.database else {
            bail!("only PostgreSQL has standbys here")
        };
        let (_, rest) = url.rsplit_once('@').context("a URL with a user")?;
        let address = rest.split('/').next().unwrap_or(rest).parse().context("an address with a port")?;
        Standby::of(url, address, &self.start_again).await
    }

    /// Stops it for good.
    pub async fn stop(mut self) -> Result<()> {
        self.kill().await?;
        drop(self.script.stdin.take());
        self.script.wait().await?;
        Ok(())
    }
}

impl Recipe {
    pub(super) fn of(pid: u32) -> Result<Recipe> {
        let command = fs::read(format!("/proc/{pid}/cmdline"))?;
        let command = String::from_utf8(command)?.split_terminator('\0').map(str::to_owned).collect();
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let number = |name: &str| -> Result<u32> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
            Ok(line.split_whitespace().next().context("no number")?.parse()?)
        };
        let folder = fs::read_link(format!("/proc/{pid}/cwd"))?;
        Ok(Recipe { command, folder, user: number("Uid:")?, group: number("Gid:")? })
    }
}

fn child_named(parent: u32, program: &str) -> Result<u32> {
    for pid in children(parent)? {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if name.trim() == program {
            return Ok(pid);
        }
    }
    bail!("scripts/databases has no child called {program}")
}

pub(super) fn children(parent: u32) -> Result<Vec<u32>> {
    let text = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))?;
    Ok(text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

pub(super) fn is_gone(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Err(_) => true,
        // A zombie: its parent has not reaped it.
        Ok(stat) => stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z')),
    }
}

const START_MAX: Duration = Duration::from_secs(90);
