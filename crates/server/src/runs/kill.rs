//! Error shown to a user when a run stays open after a request to cancel it.

use engine::KillAnswer;
use protocol::v1::ProblemCode;

use crate::request_error::RequestError;

/// Returns why a run stays open although its cancellation was requested.
pub fn not_ended(answer: &KillAnswer) -> RequestError {
    let (code, what) = match answer {
        KillAnswer::Unheard(why) => {
            (ProblemCode::ExecutorUnreachable, format!("the executor is unreachable: {why}"))
        }
        KillAnswer::Refused(why) => {
            (ProblemCode::ExecutorRefused, format!("the executor rejected the request: {why}"))
        }
        KillAnswer::NotThere | KillAnswer::Ended => {
            let why = "the executor does not have this run: its result will arrive, or the run will be \
                       declared lost";
            (ProblemCode::ExecutorRefused, why.to_owned())
        }
    };
    let rest = "the run stays open and keeps its result; repeat with force to close it now";
    RequestError::new(code, format!("cancellation requested, but {what}; {rest}"))
}
