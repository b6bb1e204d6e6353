//! Lock on the database file: one process, or all processes that have agreed to share it.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use engine::StoreError;

/// Held while the file is open. The operating system releases it when the process dies, however it dies.
pub struct FileLock {
    _file: File,
}

impl FileLock {
    pub fn take(path: &Path, shared: bool) -> Result<FileLock, StoreError> {
        let lock_path = beside(path);
        let unusable = |error: std::io::Error| {
            StoreError::Unavailable(format!("failed to lock {}: {error}", lock_path.display()))
        };
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).open(&lock_path).map_err(unusable)?;
        match if shared { file.try_lock_shared() } else { file.try_lock() } {
            Ok(()) => Ok(FileLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Conflict(format!(
                "{} is in use by another process; stop that process, use another file, or share the file by opening it in every process as `sqlite:{}?shared=true`",
                path.display(),
                path.display()
            ))),
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }
}

/// A file of its own, because SQLite has its own locks on the database file.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}
