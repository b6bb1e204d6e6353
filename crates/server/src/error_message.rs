//! Error message for a rejected request.

use engine::StoreError;
use protocol::xxl::NotANumber;

/// Why a request was rejected. Objects that the caller may not see give the same message as missing ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ErrorMessage(pub String);

impl ErrorMessage {
    /// Creates an error with this message.
    pub fn new(why: impl Into<String>) -> ErrorMessage {
        ErrorMessage(why.into())
    }
}

impl From<StoreError> for ErrorMessage {
    fn from(error: StoreError) -> ErrorMessage {
        match error {
            error if error.is_transient() => {
                tracing::warn!(%error, "a request failed, because the database does not respond; the caller may retry");
                ErrorMessage::new("the database does not respond; retry")
            }
            StoreError::Schema(problem) => {
                tracing::error!(
                    problem,
                    "a request failed, because the database has an unexpected structure or content; check \
                     the database"
                );
                ErrorMessage::new(
                    "the database has an unexpected structure or content; see the log of the scheduling \
                     centre",
                )
            }
            error => ErrorMessage(error.to_string()),
        }
    }
}

impl From<NotANumber> for ErrorMessage {
    fn from(error: NotANumber) -> ErrorMessage {
        ErrorMessage(error.to_string())
    }
}
