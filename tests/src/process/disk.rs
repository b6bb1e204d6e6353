//! A disk that a test can fill.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use crate::database::Home;

/// A small file system in memory. Needs the privilege to mount.
pub struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// Mounts a new one; `None` if that is not allowed, with a printed line.
    pub async fn small() -> Result<Option<Disk>> {
        let folder = std::env::temp_dir().join(format!("tickwright-disk-{:08x}", fastrand::u32(..)));
        fs::create_dir_all(&folder)?;
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", SIZE, "tmpfs"]).arg(&folder).output().await;
        if mount.is_ok_and(|mount| mount.status.success()) {
            return Ok(Some(Disk { folder }));
        }
        fs::remove_dir(&folder)?;
        println!("a full disk   skipped: no file system can be mounted here");
        Ok(None)
    }

    /// A database on this disk.
    pub fn home(&self) -> Home {
        Home::Sqlite(self.folder.join("centre.db"))
    }

    /// Uses all free space.
    pub fn fill(&self) -> Result<()> {
        let mut ballast = fs::File::create(self.folder.join(BALLAST))?;
        let chunk = [0; 4_096];
        // Until not even a part of it fits.
        while std::io::Write::write_all(&mut ballast, &chunk).is_ok() {}
        Ok(())
    }

    /// Frees the space again.
    pub fn clear(&self) -> Result<()> {
        fs::remove_file(self.folder.join(BALLAST)).context("it was filled before")
    }

    /// Unmounts it.
    pub async fn remove(self) -> Result<()> {
        let unmounted = Command::new("umount").arg(&self.folder).status().await?;
        ensure!(unmounted.success(), "{} cannot be unmounted", self.folder.display());
        Ok(fs::remove_dir(&self.folder)?)
    }
}

/// More than a short test writes, journal included.
const SIZE: &str = "size=48m";

const BALLAST: &str = "ballast";
