//! Results of a call, classified so that a scheduler can act on them.

use std::fmt::Display;

use protocol::v1::{ExecutorTrouble, TroubleCode};
use protocol::xxl::{self, Answer, AnswerError, texts};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::address::Address;
use super::connection::{ReceiveError, SendError};
use super::opener::OpenError;
use super::reply::{Reply, ReplyError};
use super::request::Ask;
use super::{Callee, TriggerPath};

/// Result of sending a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The executor accepted it.
    Accepted,
    /// The executor, or another server at its address, rejected it.
    Refused {
        /// The executor's message, if it sent one.
        reason: String,
    },
    /// No byte was sent: certainly not accepted.
    Unreachable {
        /// Error code.
        code: TroubleCode,
        /// Full error message.
        reason: String,
    },
    /// Not sent: the breaker of the address is open and will probe it soon, or too many calls are in progress.
    Deferred {
        /// Error code.
        code: TroubleCode,
        /// Full error message.
        reason: String,
    },
    /// It was sent, and no answer shows whether it was accepted.
    Unknown {
        /// Full error message.
        reason: String,
    },
}

/// Why a call has no successful answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No byte was sent.
    #[error("{reason}")]
    Unreachable {
        /// Error code.
        code: TroubleCode,
        /// Full error message.
        reason: String,
    },
    /// The executor answered with a rejection.
    #[error("{reason}")]
    Refused {
        /// Error code.
        code: TroubleCode,
        /// The executor's message, if it sent one.
        reason: String,
    },
    /// The request was sent, and there was no answer.
    #[error("{reason}")]
    Unknown {
        /// Error code.
        code: TroubleCode,
        /// Full error message.
        reason: String,
    },
}

impl CallError {
    /// Returns the error as shown to users.
    pub fn trouble(&self) -> ExecutorTrouble {
        let (CallError::Unreachable { code, reason }
        | CallError::Refused { code, reason }
        | CallError::Unknown { code, reason }) = self;
        ExecutorTrouble { code: *code, detail: reason.clone() }
    }
}

impl From<CallError> for Sent {
    fn from(error: CallError) -> Sent {
        match error {
            CallError::Unreachable { code, reason } if is_our_own(code) => Sent::Deferred { code, reason },
            CallError::Unreachable { code, reason } => Sent::Unreachable { code, reason },
            CallError::Refused { reason, .. } => Sent::Refused { reason },
            CallError::Unknown { reason, .. } => Sent::Unknown { reason },
        }
    }
}

/// Returns whether our own limit prevented the call, which shows nothing about the executor as it is now.
fn is_our_own(code: TroubleCode) -> bool {
    matches!(code, TroubleCode::Suspended | TroubleCode::TooManyCalls)
}

/// An HTTP reply with any content.
#[derive(Debug)]
pub(super) enum Heard {
    Answer(Answer),
    Status(u16),
    /// Another kind of server answered, or an executor that rejects in its own format.
    Foreign(AnswerError),
    /// It begins like an executor's answer but cannot be parsed.
    Garbled(AnswerError),
}

impl Heard {
    pub(super) fn read(ask: &Ask<'_>, reply: &Reply, body: &[u8]) -> Result<Heard, ReceiveError> {
        if reply.status != 200 {
            return Ok(Heard::Status(reply.status));
        }
        if reply.is_cut {
            let too_large = || ReplyError::TooLarge(ask.limit().bytes).into();
            return ask.read_cut(body).map(Heard::Answer).ok_or_else(too_large);
        }
        let unreadable = if is_broken_object(body) { Heard::Garbled } else { Heard::Foreign };
        let read = Answer::read(body).or_else(|error| listed_refusal(body).ok_or(error));
        Ok(read.map_or_else(unreadable, Heard::Answer))
    }

    pub(super) fn is_ok(&self) -> bool {
        matches!(self, Heard::Answer(answer) if answer.is_ok())
    }

    /// Returns whether the reply means that the path does not exist, so no job code can have seen the request.
    pub(super) fn lacks(&self, path: TriggerPath) -> bool {
        match self {
            Heard::Status(status) => matches!(status, 404 | 405),
            Heard::Answer(answer) if !answer.is_ok() => {
                // The message has the whole path, including the prefix.
                let message = answer.message();
                message.contains("uri-mapping(") && message.contains(&format!("{}) not found", path.as_str()))
            }
            Heard::Answer(_) | Heard::Foreign(_) | Heard::Garbled(_) => false,
        }
    }

    pub(super) fn judge(self, to: &Callee) -> Result<Answer, CallError> {
        let address = &to.address;
        match self {
            Heard::Answer(answer) if answer.is_ok() => Ok(answer),
            Heard::Answer(Answer { code, msg, .. }) => {
                let reason = match msg {
                    Some(text) if !text.trim().is_empty() => told(text, to),
                    _ => format!("{address} returned code {code} without a message"),
                };
                let is_token = reason.contains(texts::WRONG_TOKEN);
                let code = if is_token { TroubleCode::BadToken } else { TroubleCode::Refused };
                Err(CallError::Refused { code, reason })
            }
            // The gateway lost contact with the executor, which may have accepted the request.
            Heard::Status(status @ (502 | 504)) => Err(CallError::Unknown {
                code: TroubleCode::GatewayFailed,
                reason: format!("{address}: a gateway returned HTTP {status}"),
            }),
            Heard::Status(status) => {
                let (code, advice) = advice(status);
                let reason = format!("{address} returned HTTP {status}{advice}");
                Err(CallError::Refused { code, reason })
            }
            Heard::Foreign(error) => Err(CallError::Refused {
                code: TroubleCode::NotAnExecutor,
                reason: format!("{address}: {error}"),
            }),
            // It may have been a success.
            Heard::Garbled(error) => Err(CallError::Unknown {
                code: TroubleCode::NotAnExecutor,
                reason: format!("{address}: {error}"),
            }),
        }
    }
}

/// A rejection in the form of a callback: the most used Go client rejects a run with a list of one result.
fn listed_refusal(body: &[u8]) -> Option<Answer> {
    let item = xxl::each_callback(body).ok()?.next()?.ok()?;
    let code = i32::try_from(item.handle_code).unwrap_or(xxl::CODE_FAIL);
    (code != xxl::CODE_OK).then_some(Answer { code, msg: item.handle_msg, payload: Value::Null })
}

fn is_broken_object(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(body).is_err()
}

/// Error code of an HTTP status, and advice for the user.
fn advice(status: u16) -> (TroubleCode, &'static str) {
    match status {
        300..=399 => (TroubleCode::NotAnExecutor, "; redirects are not followed, register the final address"),
        401 | 403 => (TroubleCode::BadToken, "; check the token of the app"),
        404 | 405 => (TroubleCode::NotAnExecutor, "; check the address and its path prefix"),
        413 => (TroubleCode::Refused, "; shorten the job's script or parameter"),
        503 => (TroubleCode::GatewayFailed, ""),
        _ => (TroubleCode::Refused, ""),
    }
}

/// The executor's message, shortened to the length that is stored, without the token in case it repeats it.
fn told(mut text: String, to: &Callee) -> String {
    if let Some(token) = to.token.as_ref().map(|token| token.value()).filter(|token| !token.is_empty()) {
        text = text.replace(token, "…");
    }
    if let Some((cut, _)) = text.char_indices().nth(REASON_MAX) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// XXL-JOB's own limit for stored messages.
const REASON_MAX: usize = 15_000;

/// A call that ended without a reply.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: CallError,
    /// Whether it counts as a failure of the address: not reachable, or no answer.
    pub(super) is_silent: bool,
}

impl Failure {
    pub(super) fn unopened(address: &Address, error: &OpenError) -> Failure {
        Failure { error: not_reached(address, error.code(), error), is_silent: error.is_theirs() }
    }

    pub(super) fn unsent(address: &Address, error: &SendError) -> Failure {
        let error = match error {
            SendError::Unsendable(why) => {
                CallError::Refused { code: TroubleCode::Other, reason: why.to_string() }
            }
            SendError::Nothing(_) | SendError::Part(_) => {
                not_reached(address, TroubleCode::ConnectionLost, error)
            }
        };
        Failure { error, is_silent: false }
    }

    pub(super) fn cut_off(address: &Address, error: &SendError, is_silent: bool) -> Failure {
        let code = if is_silent { TroubleCode::NoAnswer } else { TroubleCode::ConnectionLost };
        Failure { error: CallError::Unknown { code, reason: format!("{address}: {error}") }, is_silent }
    }

    pub(super) fn unanswered(address: &Address, error: &ReceiveError) -> Failure {
        let code = match error {
            ReceiveError::Timeout(_) => TroubleCode::NoAnswer,
            ReceiveError::Reply(ReplyError::Closed | ReplyError::Broken(_)) => TroubleCode::ConnectionLost,
            ReceiveError::Reply(_) => TroubleCode::NotAnExecutor,
        };
        let is_silent = matches!(error, ReceiveError::Timeout(_));
        Failure { error: CallError::Unknown { code, reason: format!("{address} {error}") }, is_silent }
    }

    pub(super) fn may_have_arrived(&self) -> bool {
        matches!(self.error, CallError::Unknown { .. })
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> CallError {
        failure.error
    }
}

pub(super) fn not_reached(address: &Address, code: TroubleCode, why: &dyn Display) -> CallError {
    CallError::Unreachable { code, reason: format!("{address} is unreachable: {why}") }
}

pub(super) fn shut(address: &Address) -> CallError {
    let why = "its last calls failed; the next call follows shortly";
    not_reached(address, TroubleCode::Suspended, &why)
}

/// Error: too many calls to the address.
pub(super) fn crowded(address: &Address, why: &dyn Display) -> CallError {
    not_reached(address, TroubleCode::TooManyCalls, why)
}
