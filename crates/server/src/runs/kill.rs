//! Error shown to a user when a run stays open after a request to cancel it.

use engine::KillAnswer;
use protocol::v1::ProblemCode;

use crate::fault::Fault;

/// Returns why a run stays open although its cancellation was requested.
pub fn not_ended(answer: &KillAnswer) -> Fault {
    let (code, what) = match answer {
        KillAnswer::Unheard(why) => {
            (ProblemCode::ExecutorUnreachable, format!("the executor could not be told: {why}"))
        }
        KillAnswer::Refused(why) => (ProblemCode::ExecutorRefused, format!("the executor refused: {why}")),
        KillAnswer::NotThere | KillAnswer::Ended => {
            let why = "the executor has no such run: its result is on its way, or it will be found lost";
            (ProblemCode::ExecutorRefused, why.to_owned())
        }
    };
    let rest = "the run stays open and its result counts; repeat with force to close it now";
    Fault::new(code, format!("cancel requested, {what}; {rest}"))
}
