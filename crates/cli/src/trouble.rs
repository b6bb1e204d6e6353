//! Errors of calls to a scheduling centre: one sentence with a suggestion, and an exit code for programs.

use std::time::Duration;

use protocol::v1::{Problem, ProblemCode};

/// Error of a call.
#[derive(Debug)]
pub enum Trouble {
    /// The scheduling centre did not respond.
    Unreachable {
        /// Address that was called.
        base: String,
        /// Error message of the operating system.
        cause: String,
    },
    /// The scheduling centre rejected the request.
    Refused {
        /// Address that was called.
        base: String,
        /// Error in the response.
        problem: Box<Problem>,
        /// Time to wait before a retry, if the response contains it.
        wait: Option<Duration>,
        /// Whether the request was sent with an API key.
        by_key: bool,
    },
    /// The response does not come from a scheduling centre.
    Strange {
        /// Address that was called.
        base: String,
        /// Why the response could not be parsed.
        said: String,
    },
}

impl Trouble {
    /// Exit code of the command; docs/guides/command-line.md lists them.
    pub fn exit_code(&self) -> u8 {
        match self {
            Trouble::Refused { problem, .. } => match problem.code {
                ProblemCode::NotSignedIn
                | ProblemCode::WrongPassword
                | ProblemCode::NotAllowed
                | ProblemCode::ForeignOrigin => 3,
                ProblemCode::NotFound => 4,
                ProblemCode::DatabaseUnavailable => 5,
                _ => 1,
            },
            Trouble::Unreachable { .. } | Trouble::Strange { .. } => 5,
        }
    }

    /// Whether the scheduling centre responded with this error code.
    pub fn is(&self, code: ProblemCode) -> bool {
        matches!(self, Trouble::Refused { problem, .. } if problem.code == code)
    }
}

impl std::error::Error for Trouble {}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Unreachable { base, cause } => write!(
                f,
                "cannot reach a centre at {base}: {cause}; start one with `tickwright serve`, or say where it is with \
                 --url or TICKWRIGHT_URL"
            ),
            Trouble::Strange { base, said } => write!(
                f,
                "{base} does not answer as a centre of this version does ({said}); look at the address, and for a newer \
                 `tickwright`"
            ),
            Trouble::Refused { base, problem, by_key, .. } => match problem.code {
                ProblemCode::NotSignedIn if *by_key => {
                    write!(
                        f,
                        "the key in TICKWRIGHT_API_KEY does not open {base}; make a new one, or unset it"
                    )
                }
                ProblemCode::NotSignedIn => write!(f, "not signed in; run: tickwright login {base}"),
                ProblemCode::WrongPassword => write!(f, "the user name or the password is wrong at {base}"),
                ProblemCode::NoSuchPath | ProblemCode::WrongMethod => {
                    write!(
                        f,
                        "the centre at {base} is older than this `tickwright` and cannot do that; update it"
                    )
                }
                ProblemCode::Outdated => {
                    write!(f, "somebody changed it at the same time; look at it, and run the command again")
                }
                ProblemCode::DatabaseUnavailable => {
                    write!(f, "the centre's database does not answer; run the command again in a moment")
                }
                ProblemCode::DatabaseBroken => {
                    write!(f, "the centre cannot use its database; its log says why")
                }
                _ => write!(f, "{}", detail(problem)),
            },
        }
    }
}

/// Description of the error, or of each invalid field.
fn detail(problem: &Problem) -> String {
    match problem.fields.as_slice() {
        [] if problem.detail.is_empty() => problem.title.clone(),
        [] => format!("{}{}", problem.detail, way_out(&problem.detail)),
        fields => {
            let said = fields
                .iter()
                .map(|field| format!("{}: {}{}", field.field, field.detail, way_out(&field.detail)));
            said.collect::<Vec<_>>().join("; ")
        }
    }
}

/// Command that lists existing objects if the named one does not exist.
fn way_out(detail: &str) -> &'static str {
    match detail {
        "there is no such job" => "; see those there are with: tickwright job list",
        "there is no such run" => "; see those there are with: tickwright run list",
        "there is no such app" => {
            "; see those there are with: tickwright app list, or add it with: tickwright app add"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_becomes_one_sentence_without_codes() {
        for code in ProblemCode::ALL {
            let problem = Box::new(Problem::new(code, "what was wrong"));
            let trouble = Trouble::Refused { base: "http://x".into(), problem, wait: None, by_key: false };
            let said = trouble.to_string();
            assert!(!said.is_empty() && !said.contains(code.word()) && !said.ends_with('.'), "{said}");
            assert!((1..=5).contains(&trouble.exit_code()));
        }
    }
}
