//! Types of code that a trigger request can name.

use std::fmt;

/// Type of a job's code: a handler built into the executor, or source code sent with the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GlueType {
    /// A named handler in the executor.
    Bean,
    /// Groovy, inside a Java executor.
    Groovy,
    /// A shell script.
    Shell,
    /// Python 3.
    Python,
    /// Python 2.
    Python2,
    /// PHP.
    Php,
    /// Node.js.
    Nodejs,
    /// PowerShell.
    PowerShell,
}

impl GlueType {
    /// All types.
    pub const ALL: [GlueType; 8] = [
        GlueType::Bean,
        GlueType::Groovy,
        GlueType::Shell,
        GlueType::Python,
        GlueType::Python2,
        GlueType::Php,
        GlueType::Nodejs,
        GlueType::PowerShell,
    ];

    /// Parses the name used by the protocol.
    pub fn read(word: &str) -> Option<GlueType> {
        Self::ALL.into_iter().find(|glue| glue.word() == word)
    }

    /// Name used by the protocol.
    pub fn word(self) -> &'static str {
        self.row().0
    }

    /// Name shown to users.
    pub fn title(self) -> &'static str {
        self.row().1
    }

    /// Interpreter and file extension; none for code that runs inside the executor.
    pub fn script(self) -> Option<(&'static str, &'static str)> {
        self.row().2
    }

    fn row(self) -> (&'static str, &'static str, Option<(&'static str, &'static str)>) {
        match self {
            GlueType::Bean => ("BEAN", "BEAN", None),
            GlueType::Groovy => ("GLUE_GROOVY", "GLUE(Java)", None),
            GlueType::Shell => ("GLUE_SHELL", "GLUE(Shell)", Some(("bash", ".sh"))),
            GlueType::Python => ("GLUE_PYTHON", "GLUE(Python3)", Some(("python3", ".py"))),
            GlueType::Python2 => ("GLUE_PYTHON2", "GLUE(Python2)", Some(("python", ".py"))),
            GlueType::Php => ("GLUE_PHP", "GLUE(PHP)", Some(("php", ".php"))),
            GlueType::Nodejs => ("GLUE_NODEJS", "GLUE(Nodejs)", Some(("node", ".js"))),
            GlueType::PowerShell => ("GLUE_POWERSHELL", "GLUE(PowerShell)", Some(("pwsh", ".ps1"))),
        }
    }
}

impl fmt::Display for GlueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
