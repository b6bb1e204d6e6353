//! `tickwright migrate`: converts XXL-JOB's settings, and reports jobs that would fire differently.

mod deviations;
mod parity;
mod properties;
mod settings;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use crate::serve;

/// Migrate from XXL-JOB: convert its settings, and report jobs that would fire differently.
#[derive(Args)]
#[command(arg_required_else_help = true)]
// The options of `serve` already use a group of this name.
#[group(skip)]
pub struct Options {
    /// Convert an application.properties of XXL-JOB's admin, and PARAMS and SPRING_… variables of its image, to a
    /// configuration file; without FILE, use the variables only.
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with = "check")]
    from_properties: Option<Option<PathBuf>>,

    /// Configuration file to write.
    #[arg(long, value_name = "FILE", default_value = "tickwright.toml")]
    output: PathBuf,

    /// Compare the next 100 fires of every job under XXL-JOB's cron classes and ours, and explain each difference.
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    serve: serve::Options,
}

/// Runs the command; returns true if every job can be fired.
pub fn run(options: Options) -> anyhow::Result<bool> {
    match options.from_properties {
        Some(file) => write_options(file.as_deref(), &options.output).map(|()| true),
        None if options.check => parity::report(options.serve),
        None => bail!("missing --from-properties FILE or --check"),
    }
}

fn write_options(file: Option<&Path>, output: &Path) -> anyhow::Result<()> {
    let text = match file {
        Some(path) => {
            fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?
        }
        None => String::new(),
    };
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let settings = settings::translate(&properties::read(&text, &environment), &environment);
    let mut written =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(output).with_context(|| {
            format!("failed to create {}; delete it, or choose another file with --output", output.display())
        })?;
    written
        .write_all(settings.as_bytes())
        .with_context(|| format!("failed to write {}", output.display()))?;
    let shown = output.display();
    println!("wrote {shown}, readable by you only; read its comments, then run:");
    println!("  tickwright migrate --check --config {shown}    list the jobs that would fire differently");
    println!("  tickwright doctor --config {shown}             check the configuration");
    println!("  tickwright serve --config {shown}");
    Ok(())
}
