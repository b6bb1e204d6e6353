//! `tickwright export`: writes jobs to a file for review, version control and import elsewhere.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use protocol::v1::JobView;

use crate::api::{Call, Client, Remote, path};
use crate::terminal;
use crate::yaml::Jobs;

/// Options of `tickwright export`.
#[derive(Args)]
pub struct Export {
    /// File to write [default: standard output].
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Only jobs of this app.
    #[arg(long)]
    app: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

/// Runs the command.
pub async fn run(options: Export) -> Result<()> {
    let client = Client::of(&options.remote)?;
    let call = Call::get("/v1/jobs").query("app", options.app).query("sort", Some("id"));
    let bar = terminal::progress("reading", 0);
    let watch = |read: usize, total: Option<u64>| {
        total.into_iter().for_each(|total| bar.set_length(total));
        bar.set_position(read as u64);
    };
    let (views, _) = client.list_watched::<JobView>(call, usize::MAX, watch).await?;
    let (mut jobs, mut without_key) = (Jobs::default(), 0);
    for mut view in views {
        let Some(key) = view.key.take() else {
            without_key += 1;
            continue;
        };
        if view.body.script.is_some() || view.body.workflow.is_some() {
            // Lists contain neither the sources of scripts nor steps.
            view = client.fetch(Call::get(path("/v1/jobs/", &key, ""))).await.with_context(|| key.clone())?;
        }
        jobs.jobs.insert(key, view.body);
    }
    bar.finish_and_clear();
    if without_key > 0 {
        eprintln!("{without_key} jobs without a key were not exported");
    }
    let text = jobs.write()?;
    match options.file {
        None => terminal::write(&text),
        Some(file) => {
            fs::write(&file, text).with_context(|| format!("failed to write {}", file.display()))?;
            eprintln!("exported {} jobs to {}", jobs.jobs.len(), file.display());
            Ok(())
        }
    }
}
