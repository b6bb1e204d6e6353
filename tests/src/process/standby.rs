//! A standby of a PostgreSQL server: it has a copy of all data, to which every commit waits to be written, and takes the
//! server's place when it is promoted.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sqlx::{AssertSqlSafe, Connection, PgConnection, raw_sql};
use tokio::process::{Child, Command};

use super::cluster::free_address;
use super::database_server::Recipe;
use super::until;

/// A running standby. Dropping it ends it.
pub struct Standby {
    /// Where it listens.
    pub address: SocketAddr,
    url: String,
    _server: Child,
}

impl Standby {
    /// Copies the server with this recipe, and makes its commits wait for the copy.
    pub(super) async fn of(url: &str, primary: SocketAddr, recipe: &Recipe) -> Result<Standby> {
        let data =
            recipe.command.iter().skip_while(|part| *part != "-D").nth(1).context("a server with -D")?;
        let copy = format!("{data}-standby");
        let programs = Path::new(&recipe.command[0]).parent().context("a program in a folder")?;
        let mut copying = recipe.like(&programs.join("pg_basebackup"));
        copying
            .arg("--dbname")
            .arg(url.rsplit_once('/').context("a URL with a database")?.0.to_owned() + "/postgres");
        copying.args([
            "--pgdata",
            &copy,
            "--write-recovery-conf",
            "--wal-method=stream",
            "--no-sync",
            "--checkpoint=fast",
        ]);
        let done = Command::from(copying).output().await.context("could not run pg_basebackup")?;
        ensure!(done.status.success(), "pg_basebackup failed: {}", String::from_utf8_lossy(&done.stderr));

        let address = free_address()?;
        let mut server = recipe.like(Path::new(&recipe.command[0]));
        for part in &recipe.command[1..] {
            server.arg(match part.as_str() {
                part if part == data => copy.clone(),
                part if part.starts_with("port=") => format!("port={}", address.port()),
                // The name of the socket contains the port, so its folder may be the same.
                part => part.to_owned(),
            });
        }
        let server =
            Command::from(server).kill_on_drop(true).spawn().context("could not start the standby")?;
        let standby = Standby {
            address,
            url: url.replace(&format!("@{primary}/"), &format!("@{address}/")),
            _server: server,
        };
        let answers = async || PgConnection::connect(&standby.url).await.ok().map(drop);
        until("the standby answers", START_MAX, answers).await?;
        for sql in ["ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"] {
            run(url, sql).await?;
        }
        Ok(standby)
    }

    /// Makes it the primary.
    pub async fn promote(&self) -> Result<()> {
        run(&self.url, "SELECT pg_promote(true, 30)").await
    }
}

async fn run(url: &str, sql: &str) -> Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    Ok(())
}

impl Recipe {
    /// A command that runs as the same user in the same folder.
    fn like(&self, program: &Path) -> std::process::Command {
        let mut command = std::process::Command::new(program);
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.uid(self.user).gid(self.group).process_group(0);
        command
    }
}

const START_MAX: Duration = Duration::from_secs(60);
