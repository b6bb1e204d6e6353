//! Credentials for scheduling centres: sessions in a private file of the user, or an API key in the environment.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::secret;

/// Credential for a scheduling centre.
pub enum Credential {
    /// API key from the environment.
    Key(String),
    /// Session of a user.
    Session(String),
}

impl Credential {
    /// Returns the credential for a scheduling centre. A session is only ever sent to the centre that issued it.
    pub fn for_centre(base: &str, sessions: &Sessions) -> Option<Credential> {
        match std::env::var("TICKWRIGHT_API_KEY") {
            Ok(key) if !key.trim().is_empty() => Some(Credential::Key(key.trim().to_owned())),
            _ => sessions.of(base).map(|session| Credential::Session(session.to_owned())),
        }
    }

    /// Secret to send.
    pub fn secret(&self) -> &str {
        match self {
            Credential::Key(secret) | Credential::Session(secret) => secret,
        }
    }
}

/// Sessions of this user, by address of the scheduling centre.
#[derive(Default, Serialize, Deserialize)]
pub struct Sessions {
    /// Address of the last sign-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    #[serde(default)]
    centres: BTreeMap<String, Session>,
}

#[derive(Serialize, Deserialize)]
struct Session {
    user: String,
    session: String,
}

impl Sessions {
    /// Loads the file; empty if it does not exist.
    pub fn load() -> Result<Sessions> {
        let path = path()?;
        match path.try_exists() {
            Ok(false) => return Ok(Sessions::default()),
            Ok(true) => {}
            Err(error) => return Err(error).with_context(|| format!("failed to read {}", path.display())),
        }
        let text = secret::read(&format!("file:{}", path.display()))?;
        let unreadable =
            || format!("{} is not a file of sessions; delete it, and sign in again", path.display());
        toml::from_str(&text).with_context(unreadable)
    }

    /// Address of the last sign-in.
    pub fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// Session for an address.
    pub fn of(&self, base: &str) -> Option<&str> {
        self.centres.get(base).map(|session| session.session.as_str())
    }

    /// Stores a session. Later commands use its scheduling centre by default.
    pub fn keep(&mut self, base: &str, user: &str, session: &str) -> Result<()> {
        let kept = Session { user: user.to_owned(), session: session.to_owned() };
        self.centres.insert(base.to_owned(), kept);
        self.current = Some(base.to_owned());
        self.save()
    }

    /// Deletes the session for an address.
    pub fn forget(&mut self, base: &str) -> Result<()> {
        self.centres.remove(base);
        self.current = self.current.take().filter(|current| current != base);
        self.save()
    }

    fn save(&self) -> Result<()> {
        let path = path()?;
        if let Some(folder) = path.parent() {
            let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            created.with_context(|| format!("failed to create the directory {}", folder.display()))?;
        }
        secret::write(&path, &toml::to_string(self).context("failed to serialize the session")?)
    }
}

/// Path of the file, in the user's configuration directory.
pub fn path() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
    let folder = folder.context("no configuration directory; set HOME or XDG_CONFIG_HOME")?;
    Ok(folder.join("tickwright").join("sessions.toml"))
}
