//! A process and its descendants as a process group that can be killed.
//!
//! A process id is signalled only while it certainly belongs to the group: the first process is not reaped before
//! its group has ended, so the system does not reuse the id.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::oneshot;

use super::Ended;
use super::workspace::Folder;

/// A process group; killed when dropped.
pub(crate) struct Group {
    id: Pid,
    state: Arc<Mutex<State>>,
    end: oneshot::Receiver<io::Result<Ended>>,
}

#[derive(Default)]
struct State {
    /// The process was reaped, and its id may be reused.
    is_over: bool,
    /// The group was stopped from outside.
    was_stopped: bool,
}

impl Group {
    /// Starts the command in a new process group. The folder is removed when the group has ended.
    pub fn spawn(command: &mut Command, folder: Folder) -> io::Result<Group> {
        let child = command.process_group(0).spawn()?;
        let id = Pid::from_child(&child);
        let state = Arc::new(Mutex::new(State::default()));
        let (tell, end) = oneshot::channel();
        let group = Group { id, state: Arc::clone(&state), end };
        // One thread per group: it sleeps nearly all the time, and blocking handlers may occupy all threads of the
        // runtime.
        let waiting = move || {
            let status = wait(child, id, &state, &folder);
            let ended = status.and_then(|status| Ok(Ended { code: code(status), output: folder.output()? }));
            drop(folder);
            // The receiver is gone if the run was dropped.
            let _ = tell.send(ended);
        };
        thread::Builder::new().name("run".to_owned()).spawn(waiting)?;
        Ok(group)
    }

    /// Waits until the first process has ended and the rest of the group is gone.
    pub async fn ended(&mut self) -> io::Result<Ended> {
        (&mut self.end).await.map_err(io::Error::other)?
    }

    /// Sends a terminating signal to the whole group.
    pub fn stop(&self, signal: Signal) {
        let mut state = lock(&self.state);
        if !state.is_over {
            state.was_stopped = true;
            // Fails if no process is left, which is fine.
            let _ = kill_process_group(self.id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.stop(Signal::KILL);
    }
}

fn code(status: ExitStatus) -> i32 {
    let by_signal = || status.signal().map_or(-1, |signal| 128 + signal);
    status.code().unwrap_or_else(by_signal)
}

/// Blocks until the first process has ended, then kills the rest of the group.
fn wait(mut child: Child, id: Pid, state: &Mutex<State>, folder: &Folder) -> io::Result<ExitStatus> {
    // Waits without reaping.
    let looked = loop {
        match waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(rustix::io::Errno::INTR) => {}
            looked => break looked,
        }
    };
    let (status, was_stopped) = {
        let mut state = lock(state);
        if looked.is_ok() {
            let _ = kill_process_group(id, Signal::KILL);
        }
        let status = child.wait();
        state.is_over = true;
        (status, state.was_stopped)
    };
    if was_stopped {
        // Also kills processes that moved to another group.
        folder.end_processes();
    }
    status
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
