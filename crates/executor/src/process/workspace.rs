//! Working folders and environment of the processes of runs: a new folder per run, and no secrets in the environment.
//!
//! A folder that exists at the start belongs to a run interrupted by a crash. Its processes may still be alive and
//! are killed before a new run can begin.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::output::Output;

/// Working folders of all runs of one executor.
#[derive(Debug)]
pub(crate) struct Workspace {
    base: PathBuf,
    environment: Vec<(OsString, OsString)>,
    output_max: usize,
}

impl Workspace {
    /// Opens the workspace in `directory`, which must not be shared. Blocks.
    pub fn open(directory: &Path, passed: &[String], output_max: usize) -> io::Result<Workspace> {
        let names = PASSED.iter().copied().chain(passed.iter().map(String::as_str));
        let environment = names.filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect();
        // Processes are marked with the absolute path of their folder.
        let workspace =
            Workspace { base: fs::canonicalize(directory)?.join("work"), environment, output_max };
        workspace.clear()?;
        Ok(workspace)
    }

    /// Creates the folder of a run.
    pub fn folder(&self, run_id: i64) -> io::Result<Folder> {
        let path = self.base.join(run_id.to_string());
        create_private(&self.base, true)?;
        create_private(&path, false)?;
        Ok(Folder { path })
    }

    /// Environment of every process.
    pub fn environment(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Maximum output of a process that is kept, in bytes.
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
            tracing::warn!(folder = %left.path.display(), "found processes of an interrupted run; ending them");
            left.end_processes();
        }
        Ok(())
    }
}

/// Enough to find programs and to format text for the locale. Everything else may be secret.
const PASSED: [&str; 5] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ"];
/// Default limit of output per run, in bytes: more than a person reads, and far from filling a disk.
pub(crate) const OUTPUT_MAX: usize = 16 * 1024 * 1024;

/// The folder of one run; removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Environment variables that mark the processes of this run.
    pub fn mark(&self) -> [(&'static str, OsString); 3] {
        let path = || self.path.clone().into_os_string();
        [(MARK, path()), ("TMPDIR", path()), ("TICKWRIGHT_OUTPUT", self.path.join(OUTPUT_FILE).into())]
    }

    /// What the processes of this run wrote to their output file, without white space around it.
    pub fn output(&self) -> io::Result<Option<Output>> {
        let file = self.path.join(OUTPUT_FILE);
        // A program may have put anything there; only a plain file is read.
        if !fs::symlink_metadata(&file).is_ok_and(|found| found.is_file()) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        fs::File::open(&file)?.take(FILE_MAX).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        Ok((!text.is_empty()).then(|| Output::text(text)))
    }

    /// Kills every process that carries the mark of this folder, in any group.
    pub fn end_processes(&self) {
        // A process that is being forked at this moment is found in the next round.
        for _ in 0..ROUNDS_MAX {
            if !end_marked(&self.path) {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Name of the output file.
const OUTPUT_FILE: &str = "tickwright-output";
/// Enough to see that an output is too long.
const FILE_MAX: u64 = 1024 * 1024;

const MARK: &str = "TICKWRIGHT_WORK_FOLDER";

impl Drop for Folder {
    fn drop(&mut self) {
        for round in 1.. {
            match fs::remove_dir_all(&self.path) {
                Ok(()) => return,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return,
                // A process that is about to end may still write to the folder.
                Err(_) if round < ROUNDS_MAX => thread::sleep(PAUSE),
                Err(error) => {
                    tracing::warn!(folder = %self.path.display(), %error, "failed to delete the working directory of a run");
                    return;
                }
            }
        }
    }
}

const ROUNDS_MAX: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Kills all processes with the mark; returns whether there were any.
#[cfg(target_os = "linux")]
fn end_marked(folder: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;

    let mark = [MARK.as_bytes(), b"=", folder.as_os_str().as_bytes()].concat();
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    let mut found = false;
    for process in processes.flatten() {
        let number = process.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(id) = number.and_then(rustix::process::Pid::from_raw) else { continue };
        // The environment of other users' processes is not readable; they are not ours.
        let Ok(environment) = fs::read(process.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == mark) {
            found = true;
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        }
    }
    found
}

/// Other systems do not offer the environment of a process.
#[cfg(not(target_os = "linux"))]
fn end_marked(_: &Path) -> bool {
    false
}

/// Creates a directory that only its owner can access. With `or_there` it may exist already.
pub(crate) fn create_private(path: &Path, or_there: bool) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(or_there).create(path)
}
