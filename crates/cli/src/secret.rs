//! Values that nobody else should see.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// What was written: the value itself, or `file:PATH` for one in a file that only its owner can read.
pub fn read(written: &str) -> Result<String> {
    let Some(path) = written.strip_prefix("file:") else { return Ok(written.to_owned()) };
    let path = Path::new(path);
    let explain = || format!("cannot read the secret in `{}`", path.display());
    refuse_open_file(path).with_context(explain)?;
    let secret = fs::read_to_string(path).with_context(explain)?;
    Ok(secret.trim().to_owned())
}

/// Whether a secret stands in the command line, where everybody can see it.
pub fn is_typed(written: &str, variable: &str) -> bool {
    let is_itself = !written.is_empty() && !written.starts_with("file:");
    is_itself && std::env::var(variable).as_deref() != Ok(written)
}

/// Writes a value to a file that only its owner can read. It is written beside an older one and put in its place, so that
/// it is never half there.
pub fn write(path: &Path, value: &str) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    let written = create(&beside).and_then(|mut file| file.write_all(value.as_bytes()));
    let written = written.and_then(|()| fs::rename(&beside, path));
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn create(path: &Path) -> io::Result<fs::File> {
    match fs::remove_file(path) {
        // A process of this number may have died in the middle of this.
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

/// Refuses a file that anybody but its owner can read.
fn refuse_open_file(path: &Path) -> Result<()> {
    refuse(path, 0o077, "others can read it; run: chmod 600")
}

/// Refuses a file that every user of this machine can read; its group may.
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
