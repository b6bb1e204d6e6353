//! `tickwright app`: apps and their executors.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use protocol::v1::{
    Addressing, AppBody, AppView, ExecutorState, ExecutorView, NewToken, ProblemCode, SecretBody, SecretView,
};

use crate::api::{Call, Client, Output, Remote, path};
use crate::secret;
use crate::terminal::{self, Mood, Paint};

/// Apps.
#[derive(Args)]
pub struct App {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List apps with their executors.
    List,
    /// Add an app, so that executors can register under its name.
    Add {
        /// Name of the app.
        name: String,
        /// Display name [default: the name].
        #[arg(long)]
        title: Option<String>,
    },
    /// Create a token for an app's executors; older tokens stay valid.
    Token {
        /// Name of the app.
        app: String,
        /// File to write the token to, readable by you only [default: standard output].
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// List, set or delete the secrets of an app, which steps of workflows name. Values are never shown.
    #[command(subcommand)]
    Secret(SecretCommand),
}

#[derive(Subcommand)]
enum SecretCommand {
    /// List the secrets of an app, without their values.
    List {
        /// Name of the app.
        app: String,
    },
    /// Set a secret. Steps of workflows name it as `${{ secret("name") }}`.
    Set {
        /// Name of the app.
        app: String,
        /// Name of the secret.
        name: String,
        /// File with the value, readable by you only [default: standard input].
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
    /// Delete a secret. Runs that need it are rejected from then on.
    Delete {
        /// Name of the app.
        app: String,
        /// Name of the secret.
        name: String,
    },
}

/// Runs the command.
pub async fn run(App { remote, command }: App) -> Result<()> {
    let client = Client::of(&remote)?;
    match command {
        Command::List => list(&client, remote.output).await,
        Command::Add { name, title } => add(&client, &name, title, remote.output).await,
        Command::Token { app, to } => token(&client, &app, to.as_deref(), remote.output).await,
        Command::Secret(SecretCommand::List { app }) => secrets(&client, &app, remote.output).await,
        Command::Secret(SecretCommand::Set { app, name, from }) => {
            let value = match from {
                Some(file) => secret::read(&format!("file:{}", file.display()))?,
                None => {
                    let mut text = String::new();
                    std::io::stdin().read_to_string(&mut text).context("failed to read standard input")?;
                    text.trim_end_matches(['\r', '\n']).to_owned()
                }
            };
            client.send(Call::put(secret_path(&app, &name)).json(&SecretBody { value })).await?;
            tell(remote.output, &format!("secret {name} of {app} set"))
        }
        Command::Secret(SecretCommand::Delete { app, name }) => {
            client.send(Call::delete(secret_path(&app, &name))).await?;
            tell(remote.output, &format!("secret {name} of {app} deleted"))
        }
    }
}

fn secret_path(app: &str, name: &str) -> String {
    path(&path("/v1/apps/", app, "/secrets/"), name, "")
}

fn tell(output: Output, done: &str) -> Result<()> {
    match output {
        Output::Json => Ok(()),
        Output::Table => terminal::say(done),
    }
}

async fn secrets(client: &Client, app: &str, output: Output) -> Result<()> {
    let secrets = client.fetch(Call::get(path("/v1/apps/", app, "/secrets"))).await;
    let secrets: Vec<SecretView> = secrets.with_context(|| format!("app `{app}`"))?;
    if output == Output::Json {
        return terminal::say_json(&secrets);
    }
    let paint = Paint::stdout();
    let row = |secret: &SecretView| {
        vec![
            paint.cell(&secret.name, Mood::Plain),
            paint.cell(&secret.set_by, Mood::Plain),
            paint.cell(terminal::local(secret.set_at), Mood::Quiet),
        ]
    };
    terminal::say(&terminal::table(&["SECRET", "SET BY", "SET"], secrets.iter().map(row)))
}

async fn add(client: &Client, name: &str, title: Option<String>, output: Output) -> Result<()> {
    let place = path("/v1/apps/", name, "");
    match client.send(Call::get(&place)).await {
        Ok(_) => {
            bail!("the app `{name}` already exists; create a token for it with: tickwright app token {name}")
        }
        Err(trouble) if trouble.is(ProblemCode::NotFound) => {}
        Err(trouble) => return Err(trouble.into()),
    }
    let body = AppBody { title: title.unwrap_or_else(|| name.to_owned()), addressing: Addressing::default() };
    let app: AppView = client.fetch(Call::put(place).json(&body)).await?;
    match output {
        Output::Json => terminal::say_json(&app),
        Output::Table => terminal::say(&format!(
            "{name} added; create a token for its executors with: tickwright app token {name}"
        )),
    }
}

async fn token(client: &Client, app: &str, to: Option<&Path>, output: Output) -> Result<()> {
    let made = client.fetch(Call::post(path("/v1/apps/", app, "/tokens"))).await;
    let made: NewToken = made.with_context(|| format!("app `{app}`"))?;
    if let Some(file) = to {
        secret::write(file, &format!("{}\n", made.token))?;
        eprintln!("wrote the token to {}, readable by you only", file.display());
        return Ok(());
    }
    match output {
        Output::Json => terminal::say_json(&made),
        Output::Table => terminal::say(&made.token),
    }
}

async fn list(client: &Client, output: Output) -> Result<()> {
    let apps: Vec<AppView> = client.fetch(Call::get("/v1/apps")).await?;
    if output == Output::Json {
        return terminal::say_json(&apps);
    }
    let paint = Paint::stdout();
    let row = |app: &AppView| {
        let (executors, mood) = executors(&app.executors);
        vec![
            paint.cell(&app.name, Mood::Plain),
            paint.cell(&app.body.title, Mood::Plain),
            paint.cell(app.jobs, Mood::Plain),
            paint.cell(executors, mood),
        ]
    };
    terminal::say(&terminal::table(&["APP", "TITLE", "JOBS", "EXECUTORS"], apps.iter().map(row)))
}

/// Executors as text for one cell, and their overall state.
fn executors(executors: &[ExecutorView]) -> (String, Mood) {
    let describe = |executor: &ExecutorView| match executor.state {
        ExecutorState::Alive => executor.address.clone(),
        ExecutorState::Suspect => {
            let trouble = executor.trouble.as_ref().map(|trouble| trouble.detail.as_str());
            let trouble = trouble.unwrap_or("unreachable");
            format!("{} ({trouble})", executor.address)
        }
    };
    let alive = executors.iter().filter(|executor| executor.state == ExecutorState::Alive).count();
    let mood = match (executors.len(), alive) {
        (0, _) => return ("none".into(), Mood::Quiet),
        (all, alive) if all == alive => Mood::Good,
        _ => Mood::Bad,
    };
    (executors.iter().map(describe).collect::<Vec<_>>().join(", "), mood)
}
