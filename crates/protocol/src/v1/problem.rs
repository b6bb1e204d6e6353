//! Error responses, in the format of RFC 9457 (problem details).

use serde::{Deserialize, Serialize};

/// An error. `code` is for programs, `detail` for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// Path of the page that explains the code, for example `/errors/job_not_found`.
    #[serde(rename = "type")]
    pub kind: String,
    /// HTTP status.
    pub status: u16,
    /// Summary of this kind of error.
    pub title: String,
    /// Stable code of the error.
    pub code: ProblemCode,
    /// Description of this occurrence, and how to fix it.
    pub detail: String,
    /// Invalid fields, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldProblem>,
}

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FieldProblem {
    /// Path of the field, for example `schedule.expression`.
    pub field: String,
    /// Why it is invalid, and how to write it.
    pub detail: String,
}

/// Error codes, each with its HTTP status and a page in `docs/errors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    /// The request is not JSON, or does not have the expected structure.
    MalformedRequest,
    /// Some fields have invalid values.
    InvalidFields,
    /// The caller is not signed in, or the API key has expired or is revoked.
    NotSignedIn,
    /// The user name or password is wrong.
    WrongPassword,
    /// The caller may view this object but lacks the right for the action.
    NotAllowed,
    /// The request comes from a foreign origin, not from our own console.
    ForeignOrigin,
    /// The path does not exist.
    NoSuchPath,
    /// The object does not exist, or the caller may not view it.
    NotFound,
    /// The path does not support this method.
    WrongMethod,
    /// The name or key is taken, or the object is in use.
    Conflict,
    /// The object was changed meanwhile: read it again.
    Outdated,
    /// The request body is too large.
    TooLarge,
    /// The rate limit is exceeded: wait for the time in `Retry-After`.
    TooManyRequests,
    /// The app has no live executor.
    AppOffline,
    /// The executor does not respond.
    ExecutorUnreachable,
    /// The executor rejected the request.
    ExecutorRefused,
    /// The database does not respond: retry the request.
    DatabaseUnavailable,
    /// The database has an unexpected structure or content; details are in the log of the scheduling centre.
    DatabaseBroken,
}

impl ProblemCode {
    /// All error codes.
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

    /// Code as text, HTTP status and title.
    pub fn facts(self) -> (&'static str, u16, &'static str) {
        match self {
            ProblemCode::MalformedRequest => ("malformed_request", 400, "malformed request"),
            ProblemCode::InvalidFields => ("invalid_fields", 422, "some fields have invalid values"),
            ProblemCode::NotSignedIn => ("not_signed_in", 401, "not signed in"),
            ProblemCode::WrongPassword => ("wrong_password", 401, "wrong user name or password"),
            ProblemCode::NotAllowed => ("not_allowed", 403, "the caller lacks a required right"),
            ProblemCode::ForeignOrigin => ("foreign_origin", 403, "the request came from another site"),
            ProblemCode::NoSuchPath => ("no_such_path", 404, "the path does not exist"),
            ProblemCode::NotFound => ("not_found", 404, "the object does not exist"),
            ProblemCode::WrongMethod => ("wrong_method", 405, "the path does not support this method"),
            ProblemCode::Conflict => ("conflict", 409, "the name is taken, or the object is in use"),
            ProblemCode::Outdated => ("outdated", 412, "the object was changed in the meantime"),
            ProblemCode::TooLarge => ("too_large", 413, "the request is too large"),
            ProblemCode::TooManyRequests => ("too_many_requests", 429, "too many requests"),
            ProblemCode::AppOffline => ("app_offline", 409, "the app has no available executor"),
            ProblemCode::ExecutorUnreachable => {
                ("executor_unreachable", 502, "the executor does not respond")
            }
            ProblemCode::ExecutorRefused => ("executor_refused", 409, "the executor rejected the request"),
            ProblemCode::DatabaseUnavailable => {
                ("database_unavailable", 503, "the database does not respond")
            }
            ProblemCode::DatabaseBroken => {
                ("database_broken", 500, "the database has an unexpected structure or content")
            }
        }
    }

    /// Code as text.
    pub fn word(self) -> &'static str {
        self.facts().0
    }
}

impl Problem {
    /// Creates a problem with the status and title of `code`.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Problem {
        let (word, status, title) = code.facts();
        let kind = format!("/errors/{word}");
        Problem { kind, status, title: title.into(), code, detail: detail.into(), fields: Vec::new() }
    }

    /// Creates an `invalid_fields` problem for one field.
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
