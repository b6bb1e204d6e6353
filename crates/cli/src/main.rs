//! The `tickwright` binary: parses the command line, calls the libraries and prints their results.

mod agent;
mod api;
mod app;
mod backfill;
mod calendar;
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
mod places;
mod routes;
mod run;
mod secret;
mod serve;
mod session;
mod terminal;
mod trouble;
mod workflow;
mod workflow_file;
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
        Command::Workflow(options) => call(workflow::run(options)),
        Command::Backfill(options) => call(backfill::run(*options)),
        Command::Calendar(options) => call(calendar::run(options)),
        Command::App(options) => call(app::run(options)),
        Command::Key(options) => call(key::run(options)),
        Command::Import(options) => call(import::run(options)),
        Command::Export(options) => call(export::run(options)),
        Command::Cron(command) => cron::run(command).map(|()| true),
        Command::Completions { shell } => completions(shell).map(|()| true),
        Command::Routes { openapi } => routes::run(openapi).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        // The problem has been printed.
        Ok(false) => ExitCode::FAILURE,
        // The reader has closed the pipe.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            let trouble = error.chain().find_map(|cause| cause.downcast_ref::<trouble::Trouble>());
            trouble.map_or(ExitCode::FAILURE, |trouble| trouble.exit_code().into())
        }
    }
}

/// Runs a command that calls a scheduling centre. It makes one call at a time, so one thread is enough.
fn call(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("failed to start")?.block_on(work).map(|()| true)
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

/// Distributed job scheduler.
#[derive(Parser)]
#[command(name = "tickwright", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the scheduling centre.
    Serve(Box<serve::Options>),
    /// Check the configuration and environment of a scheduling centre with these options.
    Doctor(Box<serve::Options>),
    Migrate(Box<migrate::Options>),
    Agent(Box<agent::Options>),
    /// Sign in to a scheduling centre; later commands use it.
    Login(login::Login),
    /// Sign out.
    Logout(api::Remote),
    /// List, add, change, start, stop and trigger jobs.
    Job(Box<job::Job>),
    /// Show runs and their logs, and cancel runs.
    Run(run::Run),
    /// Check workflows, show the steps of their runs, approve, pause and continue them.
    Workflow(workflow::Workflow),
    /// Run a job for a range of past scheduled times; show, pause, continue, cancel and retry backfills.
    Backfill(Box<backfill::Backfill>),
    /// Show, import, export and delete work calendars: holidays and make-up workdays.
    Calendar(calendar::Calendar),
    /// Show apps and their executors.
    App(app::App),
    /// List, create and delete API keys for programs that act on your behalf.
    Key(key::Key),
    /// Create or update jobs from a YAML file, by key.
    Import(import::Import),
    /// Write jobs to YAML, by key.
    Export(export::Export),
    /// Inspect cron expressions and rules of timetables.
    #[command(subcommand)]
    Cron(cron::Command),
    /// Print a completion script for a shell.
    Completions {
        /// Shell.
        shell: clap_complete::Shell,
    },
    /// List the paths of the API, with the credentials and the right that each requires.
    Routes {
        /// Print the OpenAPI description of the API instead, as JSON.
        #[arg(long)]
        openapi: bool,
    },
}
