//! Handlers for what needs no program: calling a URL and starting a command.
//!
//! Neither does anything by default: each has a list of what it may call or start, and the list is empty. They go by
//! short names and by those that XXL-JOB's sample executors gave them, so that jobs made for those find them.
//!
//! ```no_run
//! use tickwright_executor::Executor;
//! use tickwright_executor::handlers::{Commands, Http};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let http = Http::new().allow("https://api.example.com/hooks/")?;
//! let commands = Commands::new().allow("/usr/bin/rsync")?;
//! Executor::builder("my-app").token("p2Vq0mXo5tYb").jobs(http.jobs()).jobs(commands.jobs()).run().await?;
//! # Ok(())
//! # }
//! ```

mod command;
mod http;

pub use command::{Commands, ProgramError};
pub use http::{Http, UrlError};
