//! Values that nobody else should see.

use std::fs;
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

fn refuse_open_file(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path)?.permissions().mode();
        if mode & 0o077 != 0 {
            bail!("others can read it; run: chmod 600 {}", path.display());
        }
    }
    Ok(())
}
