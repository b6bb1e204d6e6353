//! Private files, and the host name.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use anyhow::Context;
use server::executors::Key;

use crate::secret;

/// Reads the key from a file; creates the file with a new key if it is missing.
pub fn key(path: &Path) -> anyhow::Result<Key> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        private_folder(folder)?;
    }
    let key = Key::generate();
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let written = file.write_all(key.written().as_bytes()).and_then(|()| file.sync_all());
            written.with_context(|| format!("failed to write the key to {}", path.display()))?;
            Ok(key)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let text = secret::read(&format!("file:{}", path.display()))?;
            Key::read(&text).with_context(|| {
                format!("{} contains no key; a key is {} hexadecimal digits", path.display(), 2 * Key::LENGTH)
            })
        }
        Err(error) => Err(error).with_context(|| format!("failed to create the key file {}", path.display())),
    }
}

/// Reads the key from a file; returns a temporary key, without creating the file, if it is missing.
pub fn key_to_look_with(path: &Path) -> anyhow::Result<Key> {
    if path.exists() { key(path) } else { Ok(Key::generate()) }
}

/// Creates a folder that only this user can read, if it is missing.
pub fn private_folder(path: &Path) -> anyhow::Result<()> {
    let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.with_context(|| format!("failed to create the directory {}", path.display()))
}

/// Host name of this machine.
pub fn host_name() -> String {
    let name =
        fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| fs::read_to_string("/etc/hostname"));
    let name = name.unwrap_or_default().trim().to_owned();
    if name.is_empty() { "tickwright".into() } else { name }
}
