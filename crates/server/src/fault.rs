//! Errors of the rules that all APIs share.
//!
//! `/v1` converts them to problems with a code, the compat APIs to one line of text with XXL-JOB's name of the
//! field.

use std::time::Duration;

use engine::StoreError;
use protocol::v1::ProblemCode;

use crate::refusal::Refusal;

/// Why a request failed. An object that the caller may not see gives the same error as a missing one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Fault {
    /// Kind of error.
    pub code: ProblemCode,
    /// Invalid field, by its name in `/v1`.
    pub field: Option<&'static str>,
    /// Error message, with the remedy.
    pub why: String,
    /// Delay before a retry, if a retry helps.
    pub wait: Option<Duration>,
}

impl Fault {
    /// A fault with that code.
    pub fn new(code: ProblemCode, why: impl Into<String>) -> Fault {
        Fault { code, field: None, why: why.into(), wait: None }
    }

    /// A field with an invalid value.
    pub fn field(field: &'static str, why: impl Into<String>) -> Fault {
        Fault { field: Some(field), ..Fault::new(ProblemCode::InvalidFields, why) }
    }

    /// The object does not exist, or the caller may not see it.
    pub fn not_found(why: impl Into<String>) -> Fault {
        Fault::new(ProblemCode::NotFound, why)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
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
        // `Refusal` logs the details for operators; its text has only details that callers may know.
        Fault::new(code, Refusal::from(error).0)
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        let field = fault.field.and_then(|field| XXL_FIELDS.iter().find(|(own, _)| *own == field));
        Refusal(match field {
            Some((_, xxl)) => format!("{xxl}: {}", fault.why),
            None => fault.why,
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
