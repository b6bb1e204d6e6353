//! The error of a request, from the rule that finds it to the API that renders it.
//!
//! Rules create it; conversions have no side effects. Each API renders it at one place, in its own form, and logs it
//! there: `/v1` as a problem with a code (`api/v1/problem.rs`), the compat APIs as one line of text with XXL-JOB's
//! name of the field (`api/xxl_error.rs`).

use std::time::Duration;

use engine::StoreError;
use protocol::v1::{FieldProblem, ProblemCode};
use protocol::xxl::NotANumber;

/// Why a request failed. An object that the caller may not see gives the same error as a missing one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestError {
    /// Kind of error, which has an HTTP status.
    pub code: ProblemCode,
    /// Description for the caller, with the remedy. It does not repeat the name of a single invalid field.
    pub message: String,
    /// Invalid fields, by their names in `/v1`.
    pub fields: Vec<FieldProblem>,
    /// Delay before a retry, if a retry helps.
    pub wait: Option<Duration>,
    /// Object for the audit record, if the request does not name it.
    pub object: Option<String>,
    /// The object exists but the caller may not see it, so the response is the same as for a missing one.
    pub hides: bool,
    /// Error of the store that caused it. Only operators may know its details.
    #[source]
    source: Option<Box<StoreError>>,
}

impl RequestError {
    /// An error with that code.
    pub fn new(code: ProblemCode, message: impl Into<String>) -> RequestError {
        RequestError {
            code,
            message: message.into(),
            fields: Vec::new(),
            wait: None,
            object: None,
            hides: false,
            source: None,
        }
    }

    /// A request that cannot be parsed.
    pub fn malformed(message: impl Into<String>) -> RequestError {
        RequestError::new(ProblemCode::MalformedRequest, message)
    }

    /// An invalid value. The message names the field as the API of the caller does.
    pub fn invalid(message: impl Into<String>) -> RequestError {
        RequestError::new(ProblemCode::InvalidFields, message)
    }

    /// A field or query parameter with an invalid value.
    pub fn field(field: impl Into<String>, why: impl Into<String>) -> RequestError {
        RequestError::invalid(why).named(field)
    }

    /// Several fields with invalid values.
    pub fn fields(fields: Vec<FieldProblem>) -> RequestError {
        RequestError { message: listed(&fields), fields, ..RequestError::invalid("") }
    }

    /// The object does not exist, or the caller may not see it.
    pub fn not_found(message: impl Into<String>) -> RequestError {
        RequestError::new(ProblemCode::NotFound, message)
    }

    /// Names the field that the error is about.
    pub fn named(self, field: impl Into<String>) -> RequestError {
        let fields = vec![FieldProblem { field: field.into(), detail: self.message.clone() }];
        RequestError { fields, ..self }
    }

    /// Puts what failed before the message, with a colon.
    pub fn context(self, what: impl std::fmt::Display) -> RequestError {
        RequestError { message: format!("{what}: {}", self.message), ..self }
    }

    /// Sets the delay before a retry.
    pub fn retry_after(self, wait: Duration) -> RequestError {
        RequestError { wait: Some(wait), ..self }
    }

    /// Sets the object of the audit record.
    pub fn about(self, object: impl Into<String>) -> RequestError {
        RequestError { object: Some(object.into()), ..self }
    }

    /// Marks the error as hiding an existing object.
    pub fn hiding(self, object: impl Into<String>) -> RequestError {
        RequestError { hides: true, ..self.about(object) }
    }

    /// The message, with the names of the invalid fields.
    pub fn detail(&self) -> String {
        if self.fields.is_empty() { self.message.clone() } else { listed(&self.fields) }
    }

    /// Error of the store that caused it.
    pub fn store_error(&self) -> Option<&StoreError> {
        self.source.as_deref()
    }

    /// Whether the database failed: the request may be right.
    pub fn is_store_failure(&self) -> bool {
        matches!(self.code, ProblemCode::DatabaseUnavailable | ProblemCode::DatabaseBroken)
    }

    /// Logs the error if operators must see it: failures of the database, and every other HTTP status 5xx. Only the
    /// place that renders the error for the caller calls this.
    pub fn log(&self, request: &str) {
        let cause = self.source.as_ref().map_or_else(|| self.message.clone(), ToString::to_string);
        match self.code {
            ProblemCode::DatabaseBroken => tracing::error!(
                request,
                cause,
                "a request failed, because the database has an unexpected structure or content; check the database"
            ),
            // The store logs when the database stops responding and when it responds again.
            ProblemCode::DatabaseUnavailable => tracing::debug!(
                request,
                cause,
                "a request failed, because the database does not respond; the caller may retry"
            ),
            // The executor's own state is logged once, when it changes.
            ProblemCode::ExecutorUnreachable => {}
            code if code.facts().1 >= 500 => tracing::warn!(request, cause, "a request failed"),
            _ => {}
        }
    }
}

fn listed(fields: &[FieldProblem]) -> String {
    let each = fields.iter().map(|wrong| format!("{}: {}", wrong.field, wrong.detail));
    each.collect::<Vec<_>>().join("; ")
}

impl From<StoreError> for RequestError {
    /// The message has only details that callers may know; the error of the store is kept for the log.
    fn from(error: StoreError) -> RequestError {
        let (code, known) = match &error {
            StoreError::Unavailable(_) | StoreError::DiskFull(_) | StoreError::CommitUnknown(_) => {
                (ProblemCode::DatabaseUnavailable, Some("the database does not respond; retry"))
            }
            StoreError::Schema(_) => (
                ProblemCode::DatabaseBroken,
                Some(
                    "the database has an unexpected structure or content; see the log of the scheduling centre",
                ),
            ),
            StoreError::Fenced(_) => (ProblemCode::DatabaseUnavailable, None),
            StoreError::Conflict(_) | StoreError::Unsettled(_) => (ProblemCode::Conflict, None),
            StoreError::NoSuchJob(_) => (ProblemCode::NotFound, None),
            StoreError::Invalid(_) => (ProblemCode::InvalidFields, None),
        };
        let message = known.map_or_else(|| error.to_string(), str::to_owned);
        RequestError { source: Some(Box::new(error)), ..RequestError::new(code, message) }
    }
}

impl From<NotANumber> for RequestError {
    fn from(error: NotANumber) -> RequestError {
        RequestError::invalid(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_the_database_keeps_its_details_for_the_log() {
        let check = |error: StoreError, code| {
            let failed = RequestError::from(error.clone());
            assert_eq!(failed.code, code);
            assert!(failed.is_store_failure() && !failed.detail().contains("10.0.0.1"), "{failed}");
            assert_eq!(failed.store_error(), Some(&error));
        };
        check(StoreError::Unavailable("10.0.0.1 timed out".into()), ProblemCode::DatabaseUnavailable);
        check(StoreError::Schema("10.0.0.1 has no table".into()), ProblemCode::DatabaseBroken);
    }

    #[test]
    fn a_rejection_by_the_store_is_the_caller_s_to_know() {
        let check = |error: StoreError, code| {
            let rejected = RequestError::from(error.clone());
            assert_eq!((rejected.code, rejected.to_string()), (code, error.to_string()));
            assert!(!rejected.is_store_failure());
        };
        check(StoreError::Conflict("the name is taken".into()), ProblemCode::Conflict);
        check(StoreError::Invalid("the name is too long".into()), ProblemCode::InvalidFields);
        check(StoreError::NoSuchJob(engine::JobId(7)), ProblemCode::NotFound);
    }

    #[test]
    fn fields_are_named_in_the_detail_only() {
        let one = RequestError::field("name", "must not be empty");
        assert_eq!(
            (one.message.as_str(), one.detail().as_str()),
            ("must not be empty", "name: must not be empty")
        );
        let wrong = |field: &str| FieldProblem { field: field.into(), detail: "is wrong".into() };
        let two = RequestError::fields(vec![wrong("a"), wrong("b")]);
        assert_eq!(two.detail(), "a: is wrong; b: is wrong");
    }
}
