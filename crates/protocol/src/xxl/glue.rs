//! Types of code that a trigger request can name.

use std::fmt;

use words::{ScriptLanguage, Word};

/// Type of a job's code: a handler built into the executor, or source code sent with the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GlueType {
    /// A named handler in the executor.
    Bean,
    /// A script; Groovy runs inside a Java executor.
    Script(ScriptLanguage),
}

impl GlueType {
    /// All types.
    pub fn all() -> impl Iterator<Item = GlueType> {
        std::iter::once(GlueType::Bean).chain(ScriptLanguage::all().map(GlueType::Script))
    }

    /// Parses the name used by the protocol.
    pub fn read(word: &str) -> Option<GlueType> {
        Self::all().find(|glue| glue.word() == word)
    }

    /// Name used by the protocol.
    pub fn word(self) -> &'static str {
        match self {
            GlueType::Bean => "BEAN",
            GlueType::Script(language) => language.stored(),
        }
    }

    /// Name shown to users.
    pub fn title(self) -> &'static str {
        let GlueType::Script(language) = self else { return "BEAN" };
        match language {
            ScriptLanguage::Groovy => "GLUE(Java)",
            ScriptLanguage::Shell => "GLUE(Shell)",
            ScriptLanguage::Python => "GLUE(Python3)",
            ScriptLanguage::Python2 => "GLUE(Python2)",
            ScriptLanguage::Php => "GLUE(PHP)",
            ScriptLanguage::Node => "GLUE(Nodejs)",
            ScriptLanguage::PowerShell => "GLUE(PowerShell)",
        }
    }

    /// Interpreter and file extension; none for code that runs inside the executor.
    pub fn script(self) -> Option<(&'static str, &'static str)> {
        let GlueType::Script(language) = self else { return None };
        match language {
            ScriptLanguage::Groovy => None,
            ScriptLanguage::Shell => Some(("bash", ".sh")),
            ScriptLanguage::Python => Some(("python3", ".py")),
            ScriptLanguage::Python2 => Some(("python", ".py")),
            ScriptLanguage::Php => Some(("php", ".php")),
            ScriptLanguage::Node => Some(("node", ".js")),
            ScriptLanguage::PowerShell => Some(("pwsh", ".ps1")),
        }
    }
}

impl fmt::Display for GlueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
