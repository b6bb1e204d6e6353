//! Ready-made handlers: call a URL, start a program.
//!
//! Neither allows anything by default: each has an allowlist, which is empty at first. Each has a short name and
//! the name that XXL-JOB's sample executors use, so that existing jobs work.
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
