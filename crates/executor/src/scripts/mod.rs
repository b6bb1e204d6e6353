//! Scripts sent by the centre: shell, Python, PHP, Node.js and PowerShell.
//!
//! Disabled unless the executor enables them with [`Builder::scripts`](crate::Builder::scripts), because every user
//! who can edit a job then runs code here, as the user of this process.

mod cache;

use std::fmt;
use std::str::FromStr;

use protocol::v1::{ScriptLanguage, Word};
use protocol::xxl::GlueType;

pub(crate) use cache::ScriptCache;

/// The script languages an executor accepts.
///
/// A script is called as XXL-JOB calls it: `bash file parameter shard-index shard-total`. Exit code 0 is success.
/// It runs in its own process group, in a new folder that is removed afterwards. Its environment contains `PATH`,
/// `HOME`, `LANG`, `LC_ALL`, `TZ`, the variables named with [`Builder::pass_env`](crate::Builder::pass_env),
/// `TMPDIR` (the folder) and `TICKWRIGHT_` with `PARAM`, `SHARD_INDEX`, `SHARD_TOTAL`, `RUN_ID`, `JOB_ID`,
/// `ATTEMPT` (if known), `TRIGGERED_AT` (milliseconds), `WORK_FOLDER` and `OUTPUT`: what it writes to that file is the
/// message of the run, and as JSON its output for the later steps of a workflow. Its output becomes the run's log. When
/// the run is stopped, the process group receives `SIGTERM` and is killed two seconds later, with all it started.
///
/// ```no_run
/// use tickwright_executor::{Error, Executor, Language, Scripts};
///
/// # async fn example() -> Result<(), Error> {
/// let scripts = Scripts::of([Language::Shell, Language::Python]);
/// Executor::builder("my-app").token("p2Vq0mXo5tYb").scripts(scripts).run().await
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scripts {
    languages: Vec<Language>,
}

impl Scripts {
    /// Scripts in every language.
    pub fn all() -> Scripts {
        Scripts::of(Language::ALL)
    }

    /// Scripts in these languages only.
    pub fn of(languages: impl IntoIterator<Item = Language>) -> Scripts {
        Scripts { languages: languages.into_iter().collect() }
    }

    /// Whether scripts in this language are accepted.
    pub fn includes(&self, language: Language) -> bool {
        self.languages.contains(&language)
    }
}

/// A script language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Run by `bash`.
    Shell,
    /// Python 3, run by `python3`.
    Python,
    /// Python 2, run by `python`.
    Python2,
    /// Run by `php`.
    Php,
    /// Run by `node`.
    Node,
    /// Run by `pwsh`.
    PowerShell,
}

impl Language {
    /// All languages.
    pub const ALL: [Language; 6] = [
        Language::Shell,
        Language::Python,
        Language::Python2,
        Language::Php,
        Language::Node,
        Language::PowerShell,
    ];

    /// Word of the API, as parsed by [`Language::from_str`].
    pub fn name(self) -> &'static str {
        self.in_protocol().word()
    }

    /// The program that runs it, found in `PATH`.
    pub fn program(self) -> &'static str {
        self.interpreter().0
    }

    fn suffix(self) -> &'static str {
        self.interpreter().1
    }

    fn interpreter(self) -> (&'static str, &'static str) {
        GlueType::Script(self.in_protocol()).script().expect("each of these languages has an interpreter")
    }

    /// All languages of the protocol except Groovy, which only Java executors can run.
    fn in_protocol(self) -> ScriptLanguage {
        match self {
            Language::Shell => ScriptLanguage::Shell,
            Language::Python => ScriptLanguage::Python,
            Language::Python2 => ScriptLanguage::Python2,
            Language::Php => ScriptLanguage::Php,
            Language::Node => ScriptLanguage::Node,
            Language::PowerShell => ScriptLanguage::PowerShell,
        }
    }

    /// The language of XXL-JOB's glue type; `None` if it is not a script.
    pub(crate) fn of(glue: GlueType) -> Option<Language> {
        Language::ALL.into_iter().find(|language| GlueType::Script(language.in_protocol()) == glue)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(name: &str) -> Result<Language, UnknownLanguage> {
        let named = Language::ALL.into_iter().find(|language| language.name() == name);
        named.ok_or_else(|| UnknownLanguage(name.to_owned()))
    }
}

/// The name is not a script language.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown script language `{0}`; use shell, python, python2, php, node or powershell")]
pub struct UnknownLanguage(String);

/// A script sent by the centre.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    pub language: Language,
    pub source: String,
    /// Time of the last edit, in the centre's own unit.
    pub version: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_those_of_the_protocol() {
        for glue in GlueType::all() {
            let script = Language::of(glue).map(|language| (language.program(), language.suffix()));
            assert_eq!(script, glue.script(), "{glue}");
        }
        for language in Language::ALL {
            assert_eq!(language.name().parse(), Ok(language));
        }
        assert!("perl".parse::<Language>().is_err());
    }
}
