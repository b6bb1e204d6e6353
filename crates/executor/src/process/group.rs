//! A process and what it starts, as one thing that can be ended.
//!
//! A number is killed only while it is certainly ours: the first process is not reaped before its group has ended, so
//! the system gives the number to nobody else.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::oneshot;

use super::workspace::Folder;

/// Ended when dropped.
pub(crate) struct Group {
    id: Pid,
    state: Arc<Mutex<State>>,
    end: oneshot::Receiver<io::Result<ExitStatus>>,
}

#[derive(Default)]
struct State {
    /// The number is no longer ours.
    is_over: bool,
    /// It did not end by itself.
    was_stopped: bool,
}

impl Group {
    /// Starts the command in a group of its own. The folder goes when the group does.
    pub fn spawn(command: &mut Command, folder: Folder) -> io::Result<Group> {
        let child = command.process_group(0).spawn()?;
        let id = Pid::from_child(&child);
        let state = Arc::new(Mutex::new(State::default()));
        let (tell, end) = oneshot::channel();
        let group = Group { id, state: Arc::clone(&state), end };
        // A thread for each: it sleeps all the time, and the runtime's own may all be taken by handlers that block.
        let waiting = move || {
            let status = wait(child, id, &state, &folder);
            drop(folder);
            // Nobody listens any more if the run was dropped.
            let _ = tell.send(status);
        };
        thread::Builder::new().name("run".to_owned()).spawn(waiting)?;
        Ok(group)
    }

    /// Waits until the first process has ended and what it left in the group is gone.
    pub async fn ended(&mut self) -> io::Result<i32> {
        let status = (&mut self.end).await.map_err(io::Error::other)??;
        let by_signal = || status.signal().map_or(-1, |signal| 128 + signal);
        Ok(status.code().unwrap_or_else(by_signal))
    }

    /// Sends all of them a signal that should end them.
    pub fn stop(&self, signal: Signal) {
        let mut state = lock(&self.state);
        if !state.is_over {
            state.was_stopped = true;
            // It fails if nobody is left, which is what is wanted.
            let _ = kill_process_group(self.id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.stop(Signal::KILL);
    }
}

/// Blocks until the first process has ended; ends the others.
fn wait(mut child: Child, id: Pid, state: &Mutex<State>, folder: &Folder) -> io::Result<ExitStatus> {
    // Looks, and leaves it there to be reaped.
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
        // Stopped means stopped, for those too that made themselves a group of their own.
        folder.end_processes();
    }
    status
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
