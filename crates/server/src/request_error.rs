//! Errors of the rules that all APIs share.
//!
//! `/v1` converts them to problems with a code, the compat APIs to one line of text with XXL-JOB's name of the
//! field.

use std::time::Duration;

use engine::StoreError;
use protocol::v1::ProblemCode;

use crate::error_message::ErrorMessage;

/// Why a request failed. An object that the caller may not see gives the same error as a missing one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct RequestError {
    /// Kind of error.
    pub code: ProblemCode,
    /// Invalid field, by its name in `/v1`.
    pub field: Option<&'static str>,
    /// Error message, with the remedy.
    pub why: String,
    /// Delay before a retry, if a retry helps.
    pub wait: Option<Duration>,
}

impl RequestError {
    /// An error with that code.
    pub fn new(code: ProblemCode, why: impl Into<String>) -> RequestError {
        RequestError { code, field: None, why: why.into(), wait: None }
    }

    /// A field with an invalid value.
    pub fn field(field: &'static str, why: impl Into<String>) -> RequestError {
        RequestError { field: Some(field), ..RequestError::new(ProblemCode::InvalidFields, why) }
    }

    /// The object does not exist, or the caller may not see it.
    pub fn not_found(why: impl Into<String>) -> RequestError {
        RequestError::new(ProblemCode::NotFound, why)
    }
}

impl From<StoreError> for RequestError {
    fn from(error: StoreError) -> RequestError {
        let code = match &error {
            StoreError::Unavailable(_)
            | StoreError::DiskFull(_)
            | StoreError::CommitUnknown(_)
            | StoreError::Fenced(_) => ProblemCode::DatabaseUnavailable,
            StoreError::Schema(_) => ProblemCode::DatabaseBroken,
            StoreError::Conflict(_) => ProblemCode::Conflict,
            StoreError::NoSuchJob(_) => ProblemCode::NotFound,
            StoreError::Invalid(_) => ProblemCode::InvalidFields,
        };
        // `ErrorMessage` logs the details for operators; its text has only details that callers may know.
        RequestError::new(code, ErrorMessage::from(error).0)
    }
}

impl From<RequestError> for ErrorMessage {
    fn from(error: RequestError) -> ErrorMessage {
        let field = error.field.and_then(|field| XXL_FIELDS.iter().find(|(own, _)| *own == field));
        ErrorMessage(match field {
            Some((_, xxl)) => format!("{xxl}: {}", error.why),
            None => error.why,
        })
    }
}

/// Field names in `/v1`, and XXL-JOB's names for them.
const XXL_FIELDS: [(&str, &str); 11] = [
    ("address", "addressList"),
    ("addressing.addresses", "addressList"),
    ("app", "jobGroup"),
    ("children", "childJobId"),
    ("name", "username"),
    ("param", "executorParam"),
    ("remark", "glueRemark"),
    ("schedule", "scheduleConf"),
    ("schedule.kind", "scheduleType"),
    ("script", "glueType"),
    ("source", "glueSource"),
];
