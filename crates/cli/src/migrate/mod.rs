//! `tickwright migrate`: from XXL-JOB's settings to ours, and what would fire otherwise than before.

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

/// Takes over from XXL-JOB: turns its settings into ours, and tells which jobs would fire otherwise than before
#[derive(Args)]
#[command(arg_required_else_help = true)]
// The options of `serve` are a group of that name already.
#[group(skip)]
pub struct Options {
    /// Reads an application.properties of XXL-JOB's admin, and PARAMS and SPRING_… variables of its image, and writes
    /// our options to a file; without FILE, from the variables alone
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with = "check")]
    from_properties: Option<Option<PathBuf>>,

    /// The file that is written
    #[arg(long, value_name = "FILE", default_value = "tickwright.toml")]
    output: PathBuf,

    /// Compares the next 100 fires of every job under XXL-JOB's cron classes and under ours, and explains each difference
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    serve: serve::Options,
}

/// Does what was asked for; true if every job can be fired.
pub fn run(options: Options) -> anyhow::Result<bool> {
    match options.from_properties {
        Some(file) => write_options(file.as_deref(), &options.output).map(|()| true),
        None if options.check => parity::report(options.serve),
        None => bail!("say what to do: --from-properties FILE, or --check"),
    }
}

fn write_options(file: Option<&Path>, output: &Path) -> anyhow::Result<()> {
    let text = match file {
        Some(path) => {
            fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?
        }
        None => String::new(),
    };
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let settings = settings::translate(&properties::read(&text, &environment), &environment);
    let mut written =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(output).with_context(|| {
            format!("could not create {}; remove it, or name another with --output", output.display())
        })?;
    written
        .write_all(settings.as_bytes())
        .with_context(|| format!("could not write {}", output.display()))?;
    let shown = output.display();
    println!("wrote {shown}, which only you can read; look through its remarks, then:");
    println!("  tickwright migrate --check --config {shown}    which jobs would fire otherwise than before");
    println!("  tickwright doctor --config {shown}             what is weak or wrong");
    println!("  tickwright serve --config {shown}");
    Ok(())
}
