//! Runs whose code comes from the centre: shell, Python, PHP, Node.js and PowerShell scripts.
//!
//! Off unless an executor asks for it with [`Builder::scripts`](crate::Builder::scripts): whoever can edit a job
//! then runs code here, as this user.

mod shelf;

use std::fmt;
use std::str::FromStr;

use protocol::xxl::GlueType;

pub(crate) use shelf::Shelf;

/// Which scripts an executor runs.
///
/// A script is called as XXL-JOB calls it: `bash file parameter shard-index shard-total`. It succeeds by exiting
/// with 0. It runs in a process group of its own, in a fresh folder that is removed afterwards, and sees of the
/// environment `PATH`, `HOME`, `LANG`, `LC_ALL`, `TZ`, what [`Builder::pass_env`](crate::Builder::pass_env) names,
/// `TMPDIR` (the folder) and `TICKWRIGHT_` with `PARAM`, `SHARD_INDEX`, `SHARD_TOTAL`, `RUN_ID`, `JOB_ID`, `ATTEMPT`
/// (if known), `TRIGGERED_AT` (milliseconds) and `WORK_FOLDER`. What it prints becomes the run's log. Stopped, it is
/// asked to end (`SIGTERM`), and ended two seconds later, with everything it started.
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
    /// In every language.
    pub fn all() -> Scripts {
        Scripts::of(Language::ALL)
    }

    /// In these languages only.
    pub fn of(languages: impl IntoIterator<Item = Language>) -> Scripts {
        Scripts { languages: languages.into_iter().collect() }
    }

    /// Whether scripts in that language are run.
    pub fn includes(&self, language: Language) -> bool {
        self.languages.contains(&language)
    }
}

/// A language a script can be in.
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
    /// All of them.
    pub const ALL: [Language; 6] = [
        Language::Shell,
        Language::Python,
        Language::Python2,
        Language::Php,
        Language::Node,
        Language::PowerShell,
    ];

    /// Its name in lower case, as [`Language::from_str`] reads it.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The program that runs it, found in `PATH`.
    pub fn program(self) -> &'static str {
        self.row().1
    }

    fn suffix(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Language::Shell => ("shell", "bash", ".sh"),
            Language::Python => ("python", "python3", ".py"),
            Language::Python2 => ("python2", "python", ".py"),
            Language::Php => ("php", "php", ".php"),
            Language::Node => ("node", "node", ".js"),
            Language::PowerShell => ("powershell", "pwsh", ".ps1"),
        }
    }

    /// The language of that word on the wire; none for what is no script.
    pub(crate) fn of(glue: GlueType) -> Option<Language> {
        Some(match glue {
            GlueType::Bean | GlueType::Groovy => return None,
            GlueType::Shell => Language::Shell,
            GlueType::Python => Language::Python,
            GlueType::Python2 => Language::Python2,
            GlueType::Php => Language::Php,
            GlueType::Nodejs => Language::Node,
            GlueType::PowerShell => Language::PowerShell,
        })
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

/// There are no scripts in that language.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are no scripts in `{0}`; write shell, python, python2, php, node or powershell")]
pub struct UnknownLanguage(String);

/// A script as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    pub language: Language,
    pub source: String,
    /// When it was last edited, as the centre counts.
    pub version: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_those_of_the_protocol() {
        for glue in GlueType::ALL {
            let script = Language::of(glue).map(|language| (language.program(), language.suffix()));
            assert_eq!(script, glue.script(), "{glue}");
        }
        for language in Language::ALL {
            assert_eq!(language.name().parse(), Ok(language));
        }
        assert!("perl".parse::<Language>().is_err());
    }
}
