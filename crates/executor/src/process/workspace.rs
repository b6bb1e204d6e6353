//! Where the processes of an executor's runs live: a fresh folder for each, and an environment without secrets.
//!
//! A folder that is still there at the start belonged to a run that a crash cut short. Its processes may live on, and
//! are ended before a new run can begin.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The place for all runs of one executor.
#[derive(Debug)]
pub(crate) struct Workspace {
    base: PathBuf,
    environment: Vec<(OsString, OsString)>,
    output_max: usize,
}

impl Workspace {
    /// A place in `directory`, which nobody else may use. Blocks.
    pub fn open(directory: &Path, passed: &[String], output_max: usize) -> io::Result<Workspace> {
        let names = PASSED.iter().copied().chain(passed.iter().map(String::as_str));
        let environment = names.filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect();
        // Processes know their folder by its full name.
        let workspace =
            Workspace { base: fs::canonicalize(directory)?.join("work"), environment, output_max };
        workspace.clear()?;
        Ok(workspace)
    }

    /// A fresh folder for a run.
    pub fn folder(&self, run_id: i64) -> io::Result<Folder> {
        let path = self.base.join(run_id.to_string());
        create_private(&self.base, true)?;
        create_private(&path, false)?;
        Ok(Folder { path })
    }

    /// What every process sees.
    pub fn environment(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// How many bytes of a process's output are kept.
    pub fn output_max(&self) -> usize {
        self.output_max
    }

    fn clear(&self) -> io::Result<()> {
        let entries = match fs::read_dir(&self.base) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let left = Folder { path: entry?.path() };
            tracing::warn!(folder = %left.path.display(), "a run was cut short; ending what it left");
            left.end_processes();
        }
        Ok(())
    }
}

/// To find programs and to write text as people here read it. Nothing else is anybody's business.
const PASSED: [&str; 5] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ"];
/// Bytes of output per run, unless told otherwise: more than anybody reads, and far from filling a disk.
pub(crate) const OUTPUT_MAX: usize = 16 * 1024 * 1024;

/// One run's folder; removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What processes of this run carry in their environment.
    pub fn mark(&self) -> [(&'static str, &OsStr); 2] {
        [(MARK, self.path.as_os_str()), ("TMPDIR", self.path.as_os_str())]
    }

    /// Ends every process that carries the mark of this folder, whatever group it is in.
    pub fn end_processes(&self) {
        // One that is just being forked is found in the next round.
        for _ in 0..ROUNDS_MAX {
            if !end_marked(&self.path) {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

const MARK: &str = "TICKWRIGHT_WORK_FOLDER";

impl Drop for Folder {
    fn drop(&mut self) {
        for round in 1.. {
            match fs::remove_dir_all(&self.path) {
                Ok(()) => return,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return,
                // A process that is just ending may still write there.
                Err(_) if round < ROUNDS_MAX => thread::sleep(PAUSE),
                Err(error) => {
                    tracing::warn!(folder = %self.path.display(), %error, "a run's folder cannot be removed");
                    return;
                }
            }
        }
    }
}

const ROUNDS_MAX: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Whether there was any to end.
#[cfg(target_os = "linux")]
fn end_marked(folder: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;

    let mark = [MARK.as_bytes(), b"=", folder.as_os_str().as_bytes()].concat();
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    let mut found = false;
    for process in processes.flatten() {
        let number = process.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(id) = number.and_then(rustix::process::Pid::from_raw) else { continue };
        // Other people's processes are closed to us; they are not ours either.
        let Ok(environment) = fs::read(process.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == mark) {
            found = true;
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        }
    }
    found
}

/// Elsewhere nobody says which process carries the mark.
#[cfg(not(target_os = "linux"))]
fn end_marked(_: &Path) -> bool {
    false
}

/// For its owner only. With `or_there` it may exist already.
pub(crate) fn create_private(path: &Path, or_there: bool) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(or_there).create(path)
}
