//! Start message of the scheduling centre: its address and, at the first start, the credentials of the new
//! database.
//!
//! Credentials are printed on a terminal only. Otherwise standard output may end up in a log file, so they are
//! written to a file that only its owner can read, and the message contains its path.

use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use server::{FirstAdmin, FirstStart};

use super::files;
use crate::secret;

/// Credentials that exist in plain text only at the first start on a new database.
pub struct Credentials<'a> {
    /// The first administrator.
    pub admin: Option<&'a FirstAdmin>,
    /// The sample app and its token.
    pub sample: Option<&'a FirstStart>,
}

/// Name of the file with the credentials, in the data directory.
pub const FILE: &str = "initial-credentials.txt";

/// Prints the start message; credentials go to standard output if it is a terminal, otherwise to a file in
/// `data_dir`.
pub fn show(
    url: &str,
    credentials: &Credentials<'_>,
    data_dir: &Path,
    started_in: Duration,
) -> anyhow::Result<()> {
    if std::io::stdout().is_terminal() {
        println!("{}{}", greeting(url, started_in, true), printed(url, credentials));
        return Ok(());
    }
    let mut text = greeting(url, started_in, std::io::stderr().is_terminal());
    if !credentials.is_empty() {
        let path = save(url, credentials, data_dir)?;
        let _ = writeln!(text, "  sign in     with the credentials in {}", path.display());
    }
    eprintln!("{text}");
    Ok(())
}

impl Credentials<'_> {
    fn is_empty(&self) -> bool {
        self.admin.is_none() && self.sample.is_none()
    }
}

fn greeting(url: &str, started_in: Duration, colour: bool) -> String {
    let (version, millis) = (env!("CARGO_PKG_VERSION"), started_in.as_millis());
    let name = if colour { bold("Tickwright") } else { "Tickwright".into() };
    let url = if colour { bold(url) } else { url.into() };
    format!("\n  {name} {version} is ready in {millis} ms\n  listening   {url}\n")
}

/// The credentials for a terminal.
fn printed(url: &str, credentials: &Credentials<'_>) -> String {
    let mut text = String::new();
    if let Some(FirstAdmin { name, password }) = credentials.admin {
        let (name, password) = (bold(name), bold(password));
        let _ = writeln!(text, "  sign in     as {name} with {password} (shown only now)");
    }
    if let Some(sample) = credentials.sample {
        let _ = writeln!(text, "\n  Paste into an executor's settings (the token is shown only now):");
        settings(url, sample).for_each(|line| {
            let _ = writeln!(text, "    {line}");
        });
    }
    text
}

/// Writes the credentials to a file and returns its path. The account exists already and its password is stored
/// nowhere else, so if the data directory is not writable, the system's temporary directory is used.
fn save(url: &str, credentials: &Credentials<'_>, data_dir: &Path) -> anyhow::Result<PathBuf> {
    let text = saved(url, credentials);
    let path = data_dir.join(FILE);
    let written = files::private_folder(data_dir).and_then(|()| secret::write(&path, &text));
    let Err(error) = written else { return Ok(path) };
    let instead = std::env::temp_dir().join(format!("tickwright-{}-{FILE}", std::process::id()));
    secret::write(&instead, &text)
        .with_context(|| format!("failed to save the initial credentials: {error:#}"))?;
    Ok(instead)
}

/// The credentials for a file.
fn saved(url: &str, credentials: &Credentials<'_>) -> String {
    let mut text =
        String::from("# Written once, at the first start. Change the password, then delete this file.\n");
    if let Some(FirstAdmin { name, password }) = credentials.admin {
        let _ = writeln!(text, "user={name}\npassword={password}");
    }
    if let Some(sample) = credentials.sample {
        let _ = writeln!(text, "\n# For the settings of an executor:");
        settings(url, sample).for_each(|line| {
            let _ = writeln!(text, "{line}");
        });
    }
    text
}

fn settings(url: &str, sample: &FirstStart) -> impl Iterator<Item = String> {
    let FirstStart { app, token, .. } = sample;
    [
        format!("xxl.job.admin.addresses={url}/xxl-job-admin"),
        format!("xxl.job.accessToken={token}"),
        format!("xxl.job.executor.appname={app}"),
    ]
    .into_iter()
}

fn bold(text: &str) -> String {
    format!("\x1b[1m{text}\x1b[0m")
}
