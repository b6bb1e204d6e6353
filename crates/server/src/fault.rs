//! Why something was not done, before a door has put it into its own words.
//!
//! The rules that all doors share give these. Our own API makes them problems with a code, XXL-JOB's doors one line of
//! text that names the field as XXL-JOB does.

use std::time::Duration;

use engine::StoreError;
use protocol::v1::ProblemCode;

use crate::refusal::Refusal;

/// Why something was not done. What somebody may not see reads the same as what is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Fault {
    /// What kind of reason it is.
    pub code: ProblemCode,
    /// The field that was wrong, by its name in our own API.
    pub field: Option<&'static str>,
    /// What was wrong, and what to do.
    pub why: String,
    /// How long to wait before it is worth another try, where that is the remedy.
    pub wait: Option<Duration>,
}

impl Fault {
    /// A fault of that kind.
    pub fn new(code: ProblemCode, why: impl Into<String>) -> Fault {
        Fault { code, field: None, why: why.into(), wait: None }
    }

    /// A field that holds what it may not.
    pub fn field(field: &'static str, why: impl Into<String>) -> Fault {
        Fault { field: Some(field), ..Fault::new(ProblemCode::InvalidFields, why) }
    }

    /// It is not there, or not for the caller.
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
        // The refusal logs what people have to look at, and says no more than callers may know.
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

/// Our names of fields, and XXL-JOB's.
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
