//! `tickwright serve`: the scheduling centre.

mod files;
mod options;
mod sample;
mod welcome;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::Context;
use server::Centre;
use tokio::signal::unix::{SignalKind, signal};

pub use options::Options;
use welcome::Credentials;

/// Serves until it is told to stop.
pub fn run(options: Options) -> anyhow::Result<()> {
    let started = Instant::now();
    log_to_stderr();
    let options = options.with_file()?;
    let settings = options.settings()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("serve")
        .enable_all()
        .build()
        .context("could not start the threads that serve requests")?;
    runtime.block_on(async {
        let centre = Centre::open(settings).await?;
        let address = centre.address().context("the listener has no address")?;
        let scheme = if options.tls_cert.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{address}");
        let credentials = Credentials { admin: centre.first_admin(), sample: centre.first_start() };
        welcome::show(&url, &credentials, &options.data_dir(), started.elapsed())?;
        let sample = match options.has_sample() {
            true => sample::start(&centre, address, &options.data_dir()).await?,
            false => None,
        };
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let told = tokio::sync::Notify::new();
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("stopping: claiming nothing more, finishing what is being sent");
            told.notify_one();
        };
        // Beside the centre, which still takes the results of its runs.
        let stop_sample = async {
            told.notified().await;
            if let Some(executor) = sample {
                executor.stop(SAMPLE_GRACE).await;
            }
        };
        tokio::join!(centre.run(stop), stop_sample);
        tracing::info!("stopped");
        Ok::<(), anyhow::Error>(())
    })?;
    // A password that is just being checked is not waited for.
    runtime.shutdown_timeout(SHUTDOWN_MAX);
    Ok(())
}

/// How long threads may take to end, after all that matters is done.
const SHUTDOWN_MAX: Duration = Duration::from_millis(200);

fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("TICKWRIGHT_LOG");
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}

/// How long the executor inside may take to stop. It only greets.
const SAMPLE_GRACE: Duration = Duration::from_millis(500);

/// Threads that serve requests. Scheduling has its own, and so does the database.
const WORKERS: usize = 2;
