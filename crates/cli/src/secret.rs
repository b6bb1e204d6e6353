//! Reading and writing of secrets.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Returns the value itself, or the content of the file for `file:PATH`; only the owner may have read access to
/// that file.
pub fn read(written: &str) -> Result<String> {
    let Some(path) = written.strip_prefix("file:") else { return Ok(written.to_owned()) };
    let path = Path::new(path);
    let explain = || format!("failed to read the secret in `{}`", path.display());
    refuse_open_file(path).with_context(explain)?;
    let secret = fs::read_to_string(path).with_context(explain)?;
    Ok(secret.trim().to_owned())
}

/// Whether the secret is on the command line, where all users of the machine can see it.
pub fn is_typed(written: &str, variable: &str) -> bool {
    let is_itself = !written.is_empty() && !written.starts_with("file:");
    is_itself && std::env::var(variable).as_deref() != Ok(written)
}

/// Writes a value to a file that only its owner can read. Writes a temporary file and renames it, so that the file
/// is never incomplete.
pub fn write(path: &Path, value: &str) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    let written = create(&beside).and_then(|mut file| file.write_all(value.as_bytes()));
    let written = written.and_then(|()| fs::rename(&beside, path));
    written.with_context(|| format!("failed to write {}", path.display()))
}

fn create(path: &Path) -> io::Result<fs::File> {
    match fs::remove_file(path) {
        // A process with this id may have crashed here and left its file.
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Rejects a file that other users or its group can read.
fn refuse_open_file(path: &Path) -> Result<()> {
    refuse(path, 0o077, "other users can read it; run: chmod 600")
}

/// Rejects a file that all users of this machine can read; its group may.
pub fn refuse_world_readable(path: &Path) -> Result<()> {
    refuse(path, 0o007, "every user of this machine can read it; run: chmod o=")
}

fn refuse(path: &Path, forbidden: u32, why: &str) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path)?.permissions().mode();
        if mode & forbidden != 0 {
            bail!("{why} {}", path.display());
        }
    }
    Ok(())
}
