//! Scripts.

use crate::word::words;

words! {
    "script language";
    /// Language of a script.
    pub enum ScriptLanguage {
        /// Bash.
        Shell: "shell" / "GLUE_SHELL",
        /// Python 3.
        Python: "python" / "GLUE_PYTHON",
        /// Python 2.
        Python2: "python2" / "GLUE_PYTHON2",
        /// PHP.
        Php: "php" / "GLUE_PHP",
        /// JavaScript in Node.
        Node: "node" / "GLUE_NODEJS",
        /// PowerShell.
        PowerShell: "powershell" / "GLUE_POWERSHELL",
        /// Groovy, which only Java executors can run.
        Groovy: "groovy" / "GLUE_GROOVY",
    }
}
