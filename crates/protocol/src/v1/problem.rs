//! Why something was not done: RFC 9457.

use serde::{Deserialize, Serialize};

/// What an error says. Programs look at `code`, people read `detail`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// Where the code is explained: `/errors/job_not_found`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The HTTP status.
    pub status: u16,
    /// What kind of problem it is, in words for whoever calls.
    pub title: String,
    /// A stable name for it.
    pub code: ProblemCode,
    /// What was wrong this time, and what to do.
    pub detail: String,
    /// Which fields were wrong, if some were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldProblem>,
}

/// A field that was wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FieldProblem {
    /// Which one, as a path: `schedule.expression`.
    pub field: String,
    /// What is wrong with it, and how to write it.
    pub detail: String,
}

/// All kinds of problems, each with its HTTP status and a page of its own in `docs/errors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    /// The request is not JSON, or not of this shape.
    MalformedRequest,
    /// Fields hold what they may not.
    InvalidFields,
    /// Nobody is signed in, or the key does not count any more.
    NotSignedIn,
    /// User name or password are wrong.
    WrongPassword,
    /// The caller may see this but not change it, or lacks the right.
    NotAllowed,
    /// The request did not come from our own console.
    ForeignOrigin,
    /// There is no such path.
    NoSuchPath,
    /// There is no such thing, or the caller may not see it.
    NotFound,
    /// The path is there, but not with this method.
    WrongMethod,
    /// The name or key is taken, or the thing is in use.
    Conflict,
    /// Somebody else changed it meanwhile: read it again.
    Outdated,
    /// The body is too large.
    TooLarge,
    /// Too many requests: wait as long as `Retry-After` says.
    TooManyRequests,
    /// No executor of the app is there.
    AppOffline,
    /// The executor does not answer.
    ExecutorUnreachable,
    /// The executor answered, and refused.
    ExecutorRefused,
    /// The database does not answer: repeat the request.
    DatabaseUnavailable,
    /// The database is not what it should be: the centre's log says more.
    DatabaseBroken,
}

impl ProblemCode {
    /// All of them.
    pub const ALL: [ProblemCode; 18] = [
        ProblemCode::MalformedRequest,
        ProblemCode::InvalidFields,
        ProblemCode::NotSignedIn,
        ProblemCode::WrongPassword,
        ProblemCode::NotAllowed,
        ProblemCode::ForeignOrigin,
        ProblemCode::NoSuchPath,
        ProblemCode::NotFound,
        ProblemCode::WrongMethod,
        ProblemCode::Conflict,
        ProblemCode::Outdated,
        ProblemCode::TooLarge,
        ProblemCode::TooManyRequests,
        ProblemCode::AppOffline,
        ProblemCode::ExecutorUnreachable,
        ProblemCode::ExecutorRefused,
        ProblemCode::DatabaseUnavailable,
        ProblemCode::DatabaseBroken,
    ];

    /// Its name, its HTTP status and its title.
    pub fn facts(self) -> (&'static str, u16, &'static str) {
        match self {
            ProblemCode::MalformedRequest => ("malformed_request", 400, "the request cannot be read"),
            ProblemCode::InvalidFields => ("invalid_fields", 422, "some fields hold what they may not"),
            ProblemCode::NotSignedIn => ("not_signed_in", 401, "nobody is signed in"),
            ProblemCode::WrongPassword => ("wrong_password", 401, "the user name or the password is wrong"),
            ProblemCode::NotAllowed => {
                ("not_allowed", 403, "this needs a right that the caller does not have")
            }
            ProblemCode::ForeignOrigin => ("foreign_origin", 403, "the request came from another site"),
            ProblemCode::NoSuchPath => ("no_such_path", 404, "there is no such path"),
            ProblemCode::NotFound => ("not_found", 404, "there is no such thing"),
            ProblemCode::WrongMethod => ("wrong_method", 405, "this path has no such method"),
            ProblemCode::Conflict => ("conflict", 409, "that is taken or in use"),
            ProblemCode::Outdated => ("outdated", 412, "somebody else changed it meanwhile"),
            ProblemCode::TooLarge => ("too_large", 413, "the request is too large"),
            ProblemCode::TooManyRequests => ("too_many_requests", 429, "too many requests"),
            ProblemCode::AppOffline => ("app_offline", 409, "no executor of the app is there"),
            ProblemCode::ExecutorUnreachable => ("executor_unreachable", 502, "the executor does not answer"),
            ProblemCode::ExecutorRefused => ("executor_refused", 409, "the executor refused"),
            ProblemCode::DatabaseUnavailable => ("database_unavailable", 503, "the database does not answer"),
            ProblemCode::DatabaseBroken => ("database_broken", 500, "the database is not what it should be"),
        }
    }

    /// Its name.
    pub fn word(self) -> &'static str {
        self.facts().0
    }
}

impl Problem {
    /// A problem of that kind, with what was wrong this time.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Problem {
        let (word, status, title) = code.facts();
        let kind = format!("/errors/{word}");
        Problem { kind, status, title: title.into(), code, detail: detail.into(), fields: Vec::new() }
    }

    /// The same, for one field.
    pub fn field(field: impl Into<String>, detail: impl Into<String>) -> Problem {
        let (field, detail) = (field.into(), detail.into());
        let fields = vec![FieldProblem { field: field.clone(), detail: detail.clone() }];
        Problem { fields, ..Problem::new(ProblemCode::InvalidFields, format!("{field}: {detail}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_written_as_its_word() {
        for code in ProblemCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.word());
        }
    }
}
