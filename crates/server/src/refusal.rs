//! Error message for a rejected request.

use engine::StoreError;
use protocol::xxl::NotANumber;

/// Why a request was rejected. Objects that the caller may not see give the same message as missing ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

impl Refusal {
    /// Creates a refusal with this message.
    pub fn new(why: impl Into<String>) -> Refusal {
        Refusal(why.into())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        match error {
            error if error.is_transient() => {
                tracing::warn!(%error, "a request failed, as the database does not answer; the caller may repeat it");
                Refusal::new("the database does not answer; try again")
            }
            StoreError::Schema(problem) => {
                tracing::error!(
                    problem,
                    "a request failed, as the database is not what it should be; a person must look"
                );
                Refusal::new("the database is not what it should be; the centre's log says more")
            }
            error => Refusal(error.to_string()),
        }
    }
}

impl From<NotANumber> for Refusal {
    fn from(error: NotANumber) -> Refusal {
        Refusal(error.to_string())
    }
}
