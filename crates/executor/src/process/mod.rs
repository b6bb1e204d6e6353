//! Runs a program for a run: in its own process group, environment and folder, with its output in the run's log.
//!
//! When the run is over, the process group is killed and the folder removed. The callers decide which programs are
//! allowed.

#[cfg(unix)]
mod group;
mod output;
mod workspace;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use crate::context::Context;
use crate::output::Output;

pub(crate) use output::Lines;
pub(crate) use workspace::{OUTPUT_MAX, Workspace, create_private};

/// End of a program.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code; for a program ended by a signal 128 plus the signal number, as in shells.
    pub code: i32,
    /// What it wrote to the file `TICKWRIGHT_OUTPUT`, if it wrote something.
    pub output: Option<Output>,
}

/// Runs a program to its end. On cancellation it sends `SIGTERM` to the group first and kills it later.
#[cfg(unix)]
pub(crate) async fn run(ctx: &Context, program: &Path, arguments: Vec<OsString>) -> io::Result<Ended> {
    use std::process::{Command, Stdio};

    use rustix::process::Signal;
    use tokio::net::unix::pipe::Receiver;

    let workspace = ctx.workspace();
    let folder = workspace.folder(ctx.run_id())?;
    // One pipe for stdout and stderr, so that lines appear in the order in which they were written.
    let (output, input) = io::pipe()?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder.path());
    command.env_clear().envs(workspace.environment()).envs(description(ctx)).envs(folder.mark());
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
    let mut group = group::Group::spawn(&mut command, folder)?;
    // The command holds the write end of the pipe; while it lives, the read end never reports the end of the output.
    drop(command);

    let output = Receiver::from_owned_fd(output.into())?;
    let mut lines = Lines::new(ctx, workspace.output_max());
    let clock = ctx.clock();
    let ending = async {
        tokio::select! {
            biased;
            ended = group.ended() => return ended,
            () = ctx.cancellation().cancelled() => group.stop(Signal::TERM),
        }
        tokio::select! {
            biased;
            ended = group.ended() => return ended,
            () = clock.sleep(TERM_GRACE) => group.stop(Signal::KILL),
        }
        group.ended().await
    };
    let ended = {
        let copying = lines.copy(output);
        tokio::pin!(ending, copying);
        tokio::select! {
            ended = &mut ending => {
                // The content of the pipe arrives immediately. A process that left the group may keep the pipe open
                // forever.
                tokio::select! {
                    () = &mut copying => {}
                    () = clock.sleep(LAST_WORDS) => {}
                }
                ended
            }
            () = &mut copying => ending.await,
        }
    };
    lines.finish();
    ended
}

/// Not supported: there is no safe way to kill a process tree on this system.
#[cfg(not(unix))]
pub(crate) async fn run(_: &Context, _: &Path, _: Vec<OsString>) -> io::Result<Ended> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "scripts and programs require a Unix system"))
}

/// Time to clean up after `SIGTERM`. Shorter than the grace period of a stopped run, so that the group is gone by
/// then.
#[cfg(unix)]
const TERM_GRACE: std::time::Duration = std::time::Duration::from_secs(2);
#[cfg(unix)]
const LAST_WORDS: std::time::Duration = std::time::Duration::from_secs(1);

/// Describes the run in environment variables, as an alternative to the arguments.
#[cfg(unix)]
fn description(ctx: &Context) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("TICKWRIGHT_RUN_ID", ctx.run_id().to_string()),
        ("TICKWRIGHT_JOB_ID", ctx.job_id().to_string()),
        ("TICKWRIGHT_PARAM", ctx.param().to_owned()),
        ("TICKWRIGHT_SHARD_INDEX", ctx.shard().index.to_string()),
        ("TICKWRIGHT_SHARD_TOTAL", ctx.shard().total.to_string()),
        ("TICKWRIGHT_TRIGGERED_AT", ctx.triggered_at().as_millis().to_string()),
    ];
    variables.extend(ctx.attempt().map(|attempt| ("TICKWRIGHT_ATTEMPT", attempt.to_string())));
    variables
}
