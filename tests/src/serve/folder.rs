//! A temporary folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// A folder that is deleted when dropped.
pub struct Folder(PathBuf);

impl Folder {
    /// Creates a new folder.
    pub fn new(name: &str) -> Result<Folder> {
        let path = std::env::temp_dir().join(format!("tickwright-{name}-{:016x}", fastrand::u64(..)));
        fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A failing test should show its own reason.
        let _ = fs::remove_dir_all(&self.0);
    }
}
