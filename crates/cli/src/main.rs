//! The one binary: parses what was typed, calls the library that knows, prints what it says.

mod agent;
mod cron;
mod doctor;
mod migrate;
mod routes;
mod secret;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Runs are taken apart on other threads than they are put together on, which the system's allocator is slow at.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Serve(options) => serve::run(*options).map(|()| true),
        Command::Doctor(options) => doctor::run(*options),
        Command::Migrate(options) => migrate::run(*options),
        Command::Agent(options) => agent::run(*options).map(|()| true),
        Command::Cron(command) => cron::run(command).map(|()| true),
        Command::Routes => routes::run().map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        // What is wrong has been said.
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
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
    /// Questions about cron expressions.
    #[command(subcommand)]
    Cron(cron::Command),
    /// Lists the paths of the API, with the credentials and the right each needs.
    Routes,
}
