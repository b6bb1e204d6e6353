//! The one binary: parses what was typed, calls the library that knows, prints what it says.

mod agent;
mod api;
mod app;
mod cron;
mod doctor;
mod duration;
mod export;
mod import;
mod job;
mod key;
mod log;
mod login;
mod migrate;
mod routes;
mod run;
mod secret;
mod serve;
mod session;
mod terminal;
mod trouble;
mod yaml;

use std::future::Future;
use std::io;
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Serve(options) => serve::run(*options).map(|()| true),
        Command::Doctor(options) => doctor::run(*options),
        Command::Migrate(options) => migrate::run(*options),
        Command::Agent(options) => agent::run(*options).map(|()| true),
        Command::Login(options) => call(login::login(options)),
        Command::Logout(remote) => call(login::logout(remote)),
        Command::Job(options) => call(job::run(*options)),
        Command::Run(options) => call(run::run(options)),
        Command::App(options) => call(app::run(options)),
        Command::Key(options) => call(key::run(options)),
        Command::Import(options) => call(import::run(options)),
        Command::Export(options) => call(export::run(options)),
        Command::Cron(command) => cron::run(command).map(|()| true),
        Command::Completions { shell } => completions(shell).map(|()| true),
        Command::Routes => routes::run().map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        // What is wrong has been said.
        Ok(false) => ExitCode::FAILURE,
        // Whoever reads has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            let trouble = error.chain().find_map(|cause| cause.downcast_ref::<trouble::Trouble>());
            trouble.map_or(ExitCode::FAILURE, |trouble| trouble.exit_code().into())
        }
    }
}

/// Runs what talks to a centre. It does one thing at a time, so one thread is enough.
fn call(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start")?.block_on(work).map(|()| true)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(broken))
}

fn completions(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tickwright", &mut script);
    terminal::write(&String::from_utf8_lossy(&script))
}

/// A distributed job scheduler.
#[derive(Parser)]
#[command(name = "tickwright", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the scheduling centre.
    Serve(Box<serve::Options>),
    /// Looks whether a centre with these options would be well, and says what to do.
    Doctor(Box<serve::Options>),
    Migrate(Box<migrate::Options>),
    Agent(Box<agent::Options>),
    /// Signs in to a centre; the other commands then talk to it.
    Login(login::Login),
    /// Signs out.
    Logout(api::Remote),
    /// Lists, adds, changes, starts, stops and triggers jobs.
    Job(Box<job::Job>),
    /// Shows runs and their logs, and ends runs.
    Run(run::Run),
    /// Shows apps and their executors.
    App(app::App),
    /// Lists, makes and deletes API keys, by which programs act in your place.
    Key(key::Key),
    /// Makes jobs be as a YAML file says, by their keys.
    Import(import::Import),
    /// Writes jobs as YAML, by their keys.
    Export(export::Export),
    /// Questions about cron expressions.
    #[command(subcommand)]
    Cron(cron::Command),
    /// Prints a script that completes commands in a shell.
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Lists the paths of the API, with the credentials and the right each needs.
    Routes,
}
