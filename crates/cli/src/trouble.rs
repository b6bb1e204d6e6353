//! Errors of calls to a scheduling centre: one sentence with a suggestion, and an exit code for programs.

use std::time::Duration;

use protocol::v1::{FieldProblem, Problem, ProblemCode};

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
        /// Path that was called.
        path: String,
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
                "failed to connect to a scheduling centre at {base}: {cause}; start one with `tickwright \
                 serve`, or set its address with --url or TICKWRIGHT_URL"
            ),
            Trouble::Strange { base, said } => write!(
                f,
                "the response of {base} is not that of a scheduling centre of this version ({said}); check \
                 the address, or update `tickwright`"
            ),
            Trouble::Refused { base, path, problem, by_key, .. } => match problem.code {
                ProblemCode::NotSignedIn if *by_key => {
                    write!(
                        f,
                        "{base} rejected the key in TICKWRIGHT_API_KEY; create a new key, or unset the variable"
                    )
                }
                ProblemCode::NotSignedIn => write!(f, "not signed in; run: tickwright login {base}"),
                ProblemCode::WrongPassword => write!(f, "wrong user name or password for {base}"),
                ProblemCode::NoSuchPath | ProblemCode::WrongMethod => {
                    write!(
                        f,
                        "the scheduling centre at {base} is older than this `tickwright` and does not \
                         support this command; update it"
                    )
                }
                ProblemCode::Outdated => {
                    write!(
                        f,
                        "another user changed it at the same time; check the change, and run the command \
                         again"
                    )
                }
                ProblemCode::DatabaseUnavailable => {
                    write!(
                        f,
                        "the database of the scheduling centre does not respond; run the command again later"
                    )
                }
                ProblemCode::DatabaseBroken => {
                    write!(f, "the scheduling centre cannot use its database; see its log")
                }
                _ => write!(f, "{}", detail(problem, path)),
            },
        }
    }
}

/// Description of the error, or of each invalid field.
fn detail(problem: &Problem, path: &str) -> String {
    match problem.fields.as_slice() {
        [] if problem.detail.is_empty() => problem.title.clone(),
        [] if problem.code == ProblemCode::NotFound => format!("{}{}", problem.detail, list_of(path)),
        [] => problem.detail.clone(),
        fields => {
            let each = fields.iter().map(|FieldProblem { field, detail }| match field.as_str() {
                "app" => format!("{field}: {detail}{LIST_APPS}"),
                _ => format!("{field}: {detail}"),
            });
            each.collect::<Vec<_>>().join("; ")
        }
    }
}

/// Hint at the command that lists the existing objects under this path.
fn list_of(path: &str) -> &'static str {
    match path.split('/').nth(2) {
        Some("jobs") => "; list the jobs with: tickwright job list",
        Some("runs") => "; list the runs with: tickwright run list",
        Some("apps") => LIST_APPS,
        Some("keys") => "; list the keys with: tickwright key list",
        _ => "",
    }
}

const LIST_APPS: &str = "; list the apps with: tickwright app list, or add one with: tickwright app add";

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &str, problem: Problem) -> Trouble {
        let (base, path) = ("http://x".into(), path.into());
        Trouble::Refused { base, path, problem: Box::new(problem), wait: None, by_key: false }
    }

    #[test]
    fn hints_depend_on_codes_and_fields_and_not_on_sentences() {
        let missing = || Problem::new(ProblemCode::NotFound, "gone");
        let check = |path: &str, problem: Problem, expected: &str| {
            assert_eq!(refused(path, problem).to_string(), expected, "{path}");
        };
        check("/v1/jobs/x/stop", missing(), "gone; list the jobs with: tickwright job list");
        check("/v1/runs/1", missing(), "gone; list the runs with: tickwright run list");
        check("/v1/apps/x", missing(), &format!("gone{LIST_APPS}"));
        check("/v1/me", missing(), "gone");
        check(
            "/v1/jobs/x",
            Problem::new(ProblemCode::Conflict, "this job does not exist"),
            "this job does not exist",
        );
        check("/v1/jobs/x", Problem::field("app", "gone"), &format!("app: gone{LIST_APPS}"));
        check("/v1/jobs/x", Problem::field("name", "gone"), "name: gone");
    }

    #[test]
    fn every_problem_becomes_one_sentence_without_codes() {
        for code in ProblemCode::ALL {
            let trouble = refused("/v1/jobs", Problem::new(code, "the reason"));
            let said = trouble.to_string();
            assert!(!said.is_empty() && !said.contains(code.word()) && !said.ends_with('.'), "{said}");
            assert!((1..=5).contains(&trouble.exit_code()));
        }
    }
}
