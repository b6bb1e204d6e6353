//! A temporary folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// A folder that is deleted when dropped.
pub struct Folder(PathBuf);

impl Folder {
    /// Creates a folder of its own.
    pub fn new(name: &str) -> Result<Folder> {
        let path = std::env::temp_dir().join(format!("tickwright-{name}-{:016x}", fastrand::u64(..)));
        fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A test that fails anyway should show its own reason.
        let _ = fs::remove_dir_all(&self.0);
    }
}
