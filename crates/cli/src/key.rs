//! `tickwright key`: API keys for programs that act on behalf of a user.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use protocol::v1::{ApiKeyBody, ApiKeyView, Instant, NewApiKey, Right};
use timer::{Clock, SystemClock};

use crate::api::{Call, Client, Output, Remote, path};
use crate::terminal::{self, Mood, Paint, is_sure, local, local_or_dash, word};
use crate::{duration, secret};

/// API keys.
#[derive(Args)]
pub struct Key {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List your keys; an administrator sees the keys of all users.
    List,
    /// Create a key for a program, and show it once.
    Add {
        /// Display name of the key.
        name: String,
        /// Rights of the key, limited to your own; `view` is always included.
        #[arg(long, value_delimiter = ',', default_value = "view")]
        rights: Vec<Allowed>,
        /// Only these apps [default: all of yours].
        #[arg(long = "app", value_name = "APP")]
        apps: Vec<String>,
        /// Validity period, for example 90d [default: until it is deleted].
        #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
        expires: Option<Duration>,
        /// File to write the key to, readable by you only [default: standard output].
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Delete keys; they stop working immediately.
    Rm {
        /// Ids of the keys.
        #[arg(required = true)]
        keys: Vec<i64>,
        /// Do not ask for confirmation.
        #[arg(long, short)]
        yes: bool,
    },
}

/// A right of a key.
#[derive(Clone, Copy, ValueEnum)]
enum Allowed {
    /// View jobs, runs and logs.
    View,
    /// Start, stop and trigger jobs, and cancel runs.
    Operate,
    /// Create, change and delete jobs.
    Edit,
    /// Write scripts.
    Script,
}

impl From<Allowed> for Right {
    fn from(allowed: Allowed) -> Right {
        match allowed {
            Allowed::View => Right::View,
            Allowed::Operate => Right::Operate,
            Allowed::Edit => Right::Edit,
            Allowed::Script => Right::Script,
        }
    }
}

/// Runs the command.
pub async fn run(Key { remote, command }: Key) -> Result<()> {
    let client = Client::of(&remote)?;
    match command {
        Command::List => list(&client, remote.output).await,
        Command::Add { name, rights, apps, expires, to } => {
            let body = ApiKeyBody {
                name,
                apps: (!apps.is_empty()).then_some(apps),
                rights: rights.into_iter().map(Right::from).collect(),
                expires_at: expires.map(from_now),
            };
            add(&client, &body, to.as_deref(), remote.output).await
        }
        Command::Rm { keys, yes } => remove(&client, &keys, yes, remote.output).await,
    }
}

fn from_now(length: Duration) -> Instant {
    Instant::from_millis((SystemClock::new().now() + length).as_millis())
}

async fn list(client: &Client, output: Output) -> Result<()> {
    let keys: Vec<ApiKeyView> = client.fetch(Call::get("/v1/keys")).await?;
    if output == Output::Json {
        return terminal::say_json(&keys);
    }
    let paint = Paint::stdout();
    let row = |key: &ApiKeyView| {
        let apps = key.body.apps.as_ref().map_or_else(|| "all".into(), |apps| apps.join(", "));
        let rights: Vec<String> = key.body.rights.iter().map(word).collect();
        let expires = key.body.expires_at.map_or_else(|| "never".into(), local);
        vec![
            paint.cell(key.id, Mood::Plain),
            paint.cell(&key.body.name, Mood::Plain),
            paint.cell(&key.user, Mood::Plain),
            paint.cell(apps, Mood::Plain),
            paint.cell(rights.join(", "), Mood::Plain),
            paint.cell(expires, Mood::Plain),
            paint.cell(local_or_dash(key.used_at), Mood::Quiet),
        ]
    };
    let heads = ["KEY", "NAME", "USER", "APPS", "RIGHTS", "EXPIRES", "LAST USED"];
    terminal::say(&terminal::table(&heads, keys.iter().map(row)))
}

async fn add(client: &Client, body: &ApiKeyBody, to: Option<&Path>, output: Output) -> Result<()> {
    let made: NewApiKey = client.fetch(Call::post("/v1/keys").json(body)).await?;
    match (to, output) {
        (Some(file), _) => {
            secret::write(file, &format!("{}\n", made.key))?;
            eprintln!("wrote key {} to {}, readable by you only", made.id, file.display());
            Ok(())
        }
        (None, Output::Json) => terminal::say_json(&made),
        (None, Output::Table) => {
            terminal::say(&made.key)?;
            eprintln!("key {} is shown only once; set it as TICKWRIGHT_API_KEY in your program", made.id);
            Ok(())
        }
    }
}

async fn remove(client: &Client, keys: &[i64], yes: bool, output: Output) -> Result<()> {
    let names: Vec<String> = keys.iter().map(i64::to_string).collect();
    if !yes && !is_sure(&format!("delete key {}?", names.join(", ")))? {
        bail!("nothing was deleted");
    }
    for key in names {
        let deleted = client.send(Call::delete(path("/v1/keys/", &key, ""))).await;
        deleted.with_context(|| format!("key {key}"))?;
        if output == Output::Table {
            terminal::say(&format!("key {key} deleted"))?;
        }
    }
    Ok(())
}
