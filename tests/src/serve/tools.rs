//! Python tools that `scripts/tools` installs.

use std::path::{Path, PathBuf};

/// Path of a program of a tool, for example `python` of `aiosmtpd`. `None` if the tool is not installed;
/// `scripts/test` prints a line about it.
pub fn tool(name: &str, program: &str) -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools").join(name);
    if home.join("installed").is_file() {
        return Some(home.join("bin").join(program));
    }
    println!("skipped: {name} is not installed; run: scripts/tools");
    None
}
