//! Python tools that `scripts/tools` installs.

use std::path::{Path, PathBuf};

/// A program of a tool, for example `python` of `aiosmtpd`. `None` where the tool is not installed: `scripts/test` says so
/// in one line.
pub fn tool(name: &str, program: &str) -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools").join(name);
    if home.join("installed").is_file() {
        return Some(home.join("bin").join(program));
    }
    println!("skipped: {name} is not installed; run: scripts/tools");
    None
}
