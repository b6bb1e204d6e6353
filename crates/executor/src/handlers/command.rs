//! Starts a program of an allowlist, with arguments and without a shell.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::xxl::texts;
use serde_json::Value;

use crate::context::Context;
use crate::job::Job;
use crate::output::Output;
use crate::process::{self, Ended};

/// The handler `command`, also named `commandJobHandler`: starts a program of its allowlist.
///
/// The parameter is a JSON array, for example `["rsync", "-a", "from dir", "to"]`, or words separated by spaces.
/// The first is the program: its path as in the allowlist, or the file name of that path. No shell is involved, so
/// `;`, `|` and `$` are ordinary characters. Working folder and environment are those of a
/// [script](crate::Scripts), `TICKWRIGHT_OUTPUT` included; exit code 0 is success.
///
/// ```no_run
/// use tickwright_executor::handlers::Commands;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let jobs = Commands::new().allow("/usr/bin/rsync")?.jobs();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Commands {
    programs: Vec<PathBuf>,
}

/// The program cannot be allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid program `{}`: {why}", path.display())]
pub struct ProgramError {
    path: PathBuf,
    why: &'static str,
}

impl Commands {
    /// An empty allowlist.
    pub fn new() -> Commands {
        Commands::default()
    }

    /// Adds a program by its absolute path, so that it does not depend on `PATH`.
    pub fn allow(mut self, program: impl Into<PathBuf>) -> Result<Commands, ProgramError> {
        let path = program.into();
        if !path.is_absolute() {
            return Err(ProgramError { path, why: "use the full path, for example /usr/bin/rsync" });
        }
        if !path.is_file() {
            return Err(ProgramError { path, why: "the file does not exist" });
        }
        self.programs.push(path);
        Ok(self)
    }

    /// The handlers, one per name.
    pub fn jobs(self) -> [Job; 2] {
        let commands = Arc::new(self);
        ["command", "commandJobHandler"].map(|name| {
            let commands = Arc::clone(&commands);
            let run = move |ctx: Context| {
                let commands = Arc::clone(&commands);
                async move { commands.run(&ctx).await }
            };
            Job::new(name, run).stopping_itself()
        })
    }

    async fn run(&self, ctx: &Context) -> Result<Option<String>, String> {
        let mut words = words(ctx.param())?.into_iter();
        let name = words.next().ok_or_else(|| USAGE.to_owned())?;
        let program = self.find(&name).ok_or_else(|| self.refusal(&name))?;
        match process::run(ctx, program, words.map(OsString::from).collect()).await {
            Ok(Ended { code: 0, output }) => output.map(Output::into_text).transpose(),
            Ok(Ended { code, .. }) => Err(texts::command_failed(code)),
            Err(error) => Err(format!("failed to start `{}`: {error}", program.display())),
        }
    }

    fn find(&self, name: &str) -> Option<&Path> {
        let is_meant = |program: &&PathBuf| {
            program.as_os_str() == name || program.file_name().is_some_and(|last| last == name)
        };
        self.programs.iter().find(is_meant).map(PathBuf::as_path)
    }

    fn refusal(&self, name: &str) -> String {
        let allowed: Vec<_> = self.programs.iter().map(|program| program.display().to_string()).collect();
        let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
        format!("program `{name}` is not allowed on this executor (allowed: {allowed})")
    }
}

const USAGE: &str = "the parameter has no program; use `[\"program\", \"argument\", …]`";

/// Splits the parameter into program and arguments.
fn words(param: &str) -> Result<Vec<String>, String> {
    let param = param.trim();
    if param.starts_with('[') {
        let words: Vec<Value> = serde_json::from_str(param)
            .map_err(|error| format!("the parameter is not a JSON array of strings: {error}"))?;
        return words.into_iter().map(word).collect();
    }
    Ok(param.split_whitespace().map(str::to_owned).collect())
}

fn word(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        // A step of a workflow may have rendered it from an output.
        Value::Number(number) => Ok(number.to_string()),
        other => Err(format!("the parameter is not a JSON array of strings: it has {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_arrays_or_words() {
        let check = |param: &str, expected: &[&str]| assert_eq!(words(param).unwrap(), expected, "{param}");
        check(r#"["a", "b c", ""]"#, &["a", "b c", ""]);
        check("  a  b;c $(d) ", &["a", "b;c", "$(d)"]);
        check("", &[]);
        check("[\"a\", 1]", &["a", "1"]);
        assert!(words("[null]").is_err());
        assert!(words("[\"a\"").is_err());
    }

    #[test]
    fn only_programs_on_the_list_are_found() {
        let commands = Commands { programs: vec!["/usr/bin/rsync".into(), "/opt/tool".into()] };
        let check =
            |name: &str, path: Option<&str>| assert_eq!(commands.find(name), path.map(Path::new), "{name}");
        check("rsync", Some("/usr/bin/rsync"));
        check("/usr/bin/rsync", Some("/usr/bin/rsync"));
        check("tool", Some("/opt/tool"));
        for other in
            ["", "bash", "/bin/rsync", "./rsync", "/usr/bin/../bin/rsync", "rsync ", "RSYNC", "/usr/bin"]
        {
            check(other, None);
        }
        assert!(commands.refusal("bash").contains("allowed: /usr/bin/rsync, /opt/tool"));
    }

    #[test]
    fn what_cannot_be_a_program_cannot_be_allowed() {
        for wrong in ["rsync", "./rsync", "", "/", "/no/such/program"] {
            assert!(Commands::new().allow(wrong).is_err(), "{wrong}");
        }
    }
}
