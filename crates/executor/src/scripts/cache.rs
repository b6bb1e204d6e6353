//! Cache of script files. A file exists while a run of it waits or runs.
//!
//! A file is complete before it is used and is never changed: an edited script is a new file, so a run that has
//! begun finishes with the text it started with.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use protocol::xxl::texts;

use super::{Language, Script, Scripts};
use crate::context::Context;
use crate::job::Job;
use crate::output::Output;
use crate::process::{self, Ended, create_private};

/// All scripts of an executor that are in use.
#[derive(Debug)]
pub(crate) struct ScriptCache {
    scripts: Scripts,
    base: PathBuf,
    entries: Mutex<Entries>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Entries {
    by_job: HashMap<i64, Entry>,
    /// Number of the next folder, so that every file has its own.
    serial: u64,
}

/// The script of a job, while a run of it exists.
#[derive(Debug)]
struct Entry {
    language: Language,
    version: i64,
    digest: u64,
    job: Weak<Job>,
}

impl ScriptCache {
    /// Opens the cache in `directory`, which must not be shared. Removes files left by a crash. Blocks.
    pub fn open(directory: &Path, scripts: Scripts) -> io::Result<ScriptCache> {
        let base = fs::canonicalize(directory)?.join("scripts");
        if base.exists() {
            fs::remove_dir_all(&base)?;
        }
        create_private(&base, false)?;
        Ok(ScriptCache { scripts, base, entries: Mutex::default(), hasher: RandomState::new() })
    }

    pub fn takes(&self, language: Language) -> bool {
        self.scripts.includes(language)
    }

    /// Creates a handler for a script. Returns the same one while a run uses it and the script is unchanged. Blocks.
    pub fn handler(&self, job_id: i64, script: &Script) -> io::Result<Arc<Job>> {
        let Script { language, version, source } = script;
        let digest = self.hasher.hash_one(source);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.by_job.get(&job_id)
            && (entry.language, entry.version, entry.digest) == (*language, *version, digest)
            && let Some(job) = entry.job.upgrade()
        {
            return Ok(job);
        }
        entries.serial += 1;
        let folder = self.base.join(entries.serial.to_string());
        let file = ScriptFile::write(folder, &format!("{job_id}_{version}{}", language.suffix()), source)?;
        let job = Arc::new(handler(*language, file));
        // Entries of jobs without runs are removed, so that the map does not grow.
        entries.by_job.retain(|_, entry| entry.job.strong_count() > 0);
        let entry = Entry { language: *language, version: *version, digest, job: Arc::downgrade(&job) };
        entries.by_job.insert(job_id, entry);
        Ok(job)
    }
}

/// A script in its own folder; both are removed on drop.
struct ScriptFile {
    folder: PathBuf,
    path: PathBuf,
}

impl ScriptFile {
    fn write(folder: PathBuf, name: &str, source: &str) -> io::Result<ScriptFile> {
        create_private(&folder, false)?;
        let path = folder.join(name);
        let file = ScriptFile { folder, path };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o700);
        // Editors in a browser may send CRLF line ends, which a shell takes as part of the text.
        options.open(&file.path)?.write_all(source.replace("\r\n", "\n").as_bytes())?;
        Ok(file)
    }
}

impl Drop for ScriptFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!(path = %self.path.display(), %error, "failed to delete an unused script");
        }
    }
}

fn handler(language: Language, file: ScriptFile) -> Job {
    let file = Arc::new(file);
    let run = move |ctx: Context| {
        let file = Arc::clone(&file);
        async move {
            let shard = ctx.shard();
            let arguments = [
                file.path.clone().into_os_string(),
                OsString::from(ctx.param()),
                shard.index.to_string().into(),
                shard.total.to_string().into(),
            ];
            let program = language.program();
            match process::run(&ctx, Path::new(program), arguments.into()).await {
                Ok(Ended { code: 0, output }) => output.map(Output::into_text).transpose(),
                Ok(Ended { code, .. }) => Err(texts::script_failed(code)),
                Err(error) => {
                    ctx.log(format_args!("failed to start `{program}`: {error}"));
                    Err(texts::script_failed(NOT_STARTED))
                }
            }
        }
    };
    Job::new(format!("{language} script"), run).stopping_itself()
}

/// Exit code that stock executors report for a script that could not be started.
const NOT_STARTED: i32 = -1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stays_while_it_is_used_and_an_edit_makes_another() {
        let directory = tempfile::tempdir().unwrap();
        let cache = ScriptCache::open(directory.path(), Scripts::all()).unwrap();
        let script =
            |version, source: &str| Script { language: Language::Shell, source: source.into(), version };
        let files = || {
            let folders = fs::read_dir(directory.path().join("scripts")).unwrap();
            folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap()).count()
        };
        let first = cache.handler(1, &script(10, "a")).unwrap();
        assert!(Arc::ptr_eq(&first, &cache.handler(1, &script(10, "a")).unwrap()));
        assert_eq!(files(), 1);
        for other in [script(11, "a"), script(10, "b"), Script { language: Language::Php, ..script(10, "a") }]
        {
            assert!(!Arc::ptr_eq(&first, &cache.handler(1, &other).unwrap()));
            // The other script is not in use.
            assert_eq!(files(), 1);
        }
        let second = cache.handler(2, &script(10, "a")).unwrap();
        assert!(!Arc::ptr_eq(&first, &second));
        assert_eq!(files(), 2);
        drop((first, second));
        assert_eq!(files(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn files_are_their_owners_and_what_a_crash_left_is_removed() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let script = Script { language: Language::Shell, source: "exit 0\r\n".into(), version: 7 };
        let cache = ScriptCache::open(directory.path(), Scripts::all()).unwrap();
        let left = cache.handler(3, &script).unwrap();
        let path = directory.path().join("scripts/1/3_7.sh");
        assert_eq!(fs::read_to_string(&path).unwrap(), "exit 0\n");
        for (path, mode) in [(path.as_path(), 0o700), (path.parent().unwrap(), 0o700)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
        }
        std::mem::forget(left);
        ScriptCache::open(directory.path(), Scripts::all()).unwrap();
        assert!(!path.exists());
    }
}
