//! A process that does a run: in a group, an environment and a folder of its own, its output in the run's log.
//!
//! When the run is over, so is the process with all that stayed in its group, and the folder is gone. What is run,
//! and whether it may be, others decide.

#[cfg(unix)]
mod group;
mod output;
mod workspace;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use crate::context::Context;

pub(crate) use output::Lines;
pub(crate) use workspace::{OUTPUT_MAX, Workspace, create_private};

/// Runs a program to its end and gives its exit code: for one that a signal ended 128 and the signal's number, as
/// shells have it. Told to stop, it first asks the group and then ends it.
#[cfg(unix)]
pub(crate) async fn run(ctx: &Context, program: &Path, arguments: Vec<OsString>) -> io::Result<i32> {
    use std::process::{Command, Stdio};

    use rustix::process::Signal;
    use tokio::net::unix::pipe::Receiver;

    let workspace = ctx.workspace();
    let folder = workspace.folder(ctx.run_id())?;
    // One pipe for both, so that lines appear in the order they were written.
    let (output, input) = io::pipe()?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder.path());
    command.env_clear().envs(workspace.environment()).envs(description(ctx)).envs(folder.mark());
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
    let mut group = group::Group::spawn(&mut command, folder)?;
    // It holds the writing end; the reading end would never see the end of the output.
    drop(command);

    let output = Receiver::from_owned_fd(output.into())?;
    let mut lines = Lines::new(ctx, workspace.output_max());
    let clock = ctx.clock();
    let ending = async {
        tokio::select! {
            biased;
            code = group.ended() => return code,
            () = ctx.cancellation().cancelled() => group.stop(Signal::TERM),
        }
        tokio::select! {
            biased;
            code = group.ended() => return code,
            () = clock.sleep(TERM_GRACE) => group.stop(Signal::KILL),
        }
        group.ended().await
    };
    let code = {
        let copying = lines.copy(output);
        tokio::pin!(ending, copying);
        tokio::select! {
            code = &mut ending => {
                // What is in the pipe comes at once. Something that left the group may hold it open for ever.
                tokio::select! {
                    () = &mut copying => {}
                    () = clock.sleep(LAST_WORDS) => {}
                }
                code
            }
            () = &mut copying => ending.await,
        }
    };
    lines.finish();
    code
}

/// There is no safe way to end a tree of processes here.
#[cfg(not(unix))]
pub(crate) async fn run(_: &Context, _: &Path, _: Vec<OsString>) -> io::Result<i32> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "processes of runs need a Unix system"))
}

/// To tidy up, after being asked to end. Shorter than the grace a stopped run has, so that the group is gone by then.
#[cfg(unix)]
const TERM_GRACE: std::time::Duration = std::time::Duration::from_secs(2);
#[cfg(unix)]
const LAST_WORDS: std::time::Duration = std::time::Duration::from_secs(1);

/// The run, for programs that would rather not count their arguments.
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
