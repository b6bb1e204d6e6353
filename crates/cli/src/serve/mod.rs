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

/// Runs until it receives a stop signal.
pub fn run(options: Options) -> anyhow::Result<()> {
    let started = Instant::now();
    log_to_stderr();
    raise_open_files();
    let options = options.with_file()?;
    let settings = options.settings()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("serve")
        .enable_all()
        .build()
        .context("failed to start the threads")?;
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
            tracing::info!("stopping: claiming no more runs, completing requests in progress");
            told.notify_one();
        };
        // Concurrently with the scheduling centre, which still accepts the results of the sample's runs.
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
    // Does not wait for a password check in progress.
    runtime.shutdown_timeout(SHUTDOWN_MAX);
    Ok(())
}

/// Maximum time for threads to end, after all important work is done.
const SHUTDOWN_MAX: Duration = Duration::from_millis(200);

/// Raises the limit of open files, which is often 1 024 although the system allows more: each connection is one. The
/// centre limits its connections to a part of it.
fn raise_open_files() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let most = limit.maximum.map_or(OPEN_FILES, |maximum| maximum.min(OPEN_FILES));
        if limit.current.is_some_and(|current| current < most)
            && let Err(error) =
                setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum })
        {
            tracing::warn!(%error, "failed to raise the limit of open files");
        }
    }
}

/// Open files: twice as many as clients may have connections.
#[cfg(target_os = "linux")]
const OPEN_FILES: u64 = 32_768;

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

/// Maximum time for the built-in sample executor to stop. It only prints a greeting.
const SAMPLE_GRACE: Duration = Duration::from_millis(500);

/// Number of threads that serve requests. Scheduling and the database have their own threads.
const WORKERS: usize = 2;
