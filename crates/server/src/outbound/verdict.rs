//! What came of a call, in words a scheduler can act on.

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

/// What became of a run that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The executor took it.
    Accepted,
    /// The executor, or whoever answers there, did not take it.
    Refused {
        /// In the executor's words where it had any.
        reason: String,
    },
    /// No byte of it left: certainly not taken.
    Unreachable {
        /// Why not, in one word
        code: TroubleCode,
        /// and in full.
        reason: String,
    },
    /// Not even tried: the address failed before and is asked again in a moment, or too many calls are under way.
    Deferred {
        /// Why not, in one word
        code: TroubleCode,
        /// and in full.
        reason: String,
    },
    /// It left, and no answer says whether it was taken.
    Unknown {
        /// What happened instead.
        reason: String,
    },
}

/// Why a call has no good answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No byte of it left.
    #[error("{reason}")]
    Unreachable {
        /// Why not, in one word
        code: TroubleCode,
        /// and in full.
        reason: String,
    },
    /// There was an answer, and it is no.
    #[error("{reason}")]
    Refused {
        /// Why, in one word,
        code: TroubleCode,
        /// and in the executor's words where it had any.
        reason: String,
    },
    /// It left, and there was no answer.
    #[error("{reason}")]
    Unknown {
        /// What happened instead, in one word
        code: TroubleCode,
        /// and in full.
        reason: String,
    },
}

impl CallError {
    /// What was wrong, as people are told.
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

/// Whether it is our own limit that kept a call from being made, and says nothing of the executor as it is now.
fn is_our_own(code: TroubleCode) -> bool {
    matches!(code, TroubleCode::Suspended | TroubleCode::TooManyCalls)
}

/// A reply in HTTP, whatever it says.
#[derive(Debug)]
pub(super) enum Heard {
    Answer(Answer),
    Status(u16),
    /// Something else than an executor is there, or one that refuses in its own way.
    Foreign(AnswerError),
    /// It begins like an executor's answer and cannot be read.
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

    /// Whether it says that there is no such path, so that no job's code can have seen the request.
    pub(super) fn lacks(&self, path: TriggerPath) -> bool {
        match self {
            Heard::Status(status) => matches!(status, 404 | 405),
            Heard::Answer(answer) if !answer.is_ok() => {
                // The executor names the whole path, prefix and all.
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
                    _ => format!("{address} answered code {code} without a message"),
                };
                let is_token = reason.contains(texts::WRONG_TOKEN);
                let code = if is_token { TroubleCode::BadToken } else { TroubleCode::Refused };
                Err(CallError::Refused { code, reason })
            }
            // The gateway in between has lost sight of the executor, which may well have taken it.
            Heard::Status(status @ (502 | 504)) => Err(CallError::Unknown {
                code: TroubleCode::GatewayFailed,
                reason: format!("{address}: a gateway answered HTTP {status}"),
            }),
            Heard::Status(status) => {
                let (code, advice) = advice(status);
                let reason = format!("{address} answered HTTP {status}{advice}");
                Err(CallError::Refused { code, reason })
            }
            Heard::Foreign(error) => Err(CallError::Refused {
                code: TroubleCode::NotAnExecutor,
                reason: format!("{address}: {error}"),
            }),
            // It may have meant yes.
            Heard::Garbled(error) => Err(CallError::Unknown {
                code: TroubleCode::NotAnExecutor,
                reason: format!("{address}: {error}"),
            }),
        }
    }
}

/// A refusal in the form of a callback: the most used Go client rejects a run with a list of one result.
fn listed_refusal(body: &[u8]) -> Option<Answer> {
    let item = xxl::each_callback(body).ok()?.next()?.ok()?;
    let code = i32::try_from(item.handle_code).unwrap_or(xxl::CODE_FAIL);
    (code != xxl::CODE_OK).then_some(Answer { code, msg: item.handle_msg, payload: Value::Null })
}

fn is_broken_object(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(body).is_err()
}

/// What a status means, and what to do about it.
fn advice(status: u16) -> (TroubleCode, &'static str) {
    match status {
        300..=399 => (TroubleCode::NotAnExecutor, "; redirects are not followed, register the final address"),
        401 | 403 => (TroubleCode::BadToken, "; check the group's token"),
        404 | 405 => (TroubleCode::NotAnExecutor, "; check the address and its prefix"),
        413 => (TroubleCode::Refused, "; shorten the job's source or parameter"),
        503 => (TroubleCode::GatewayFailed, ""),
        _ => (TroubleCode::Refused, ""),
    }
}

/// What the executor said, without the token should it have repeated that, and not longer than we keep.
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

/// XXL-JOB's own limit for messages it keeps.
const REASON_MAX: usize = 15_000;

/// A call that ended without a reply.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: CallError,
    /// Whether it speaks against the address: nobody there, or nobody answering.
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
    CallError::Unreachable { code, reason: format!("{address} was not reached: {why}") }
}

pub(super) fn shut(address: &Address) -> CallError {
    let why = "its last calls failed, and it is asked again in a moment";
    not_reached(address, TroubleCode::Suspended, &why)
}

/// All turns at an address are taken.
pub(super) fn crowded(address: &Address, why: &dyn Display) -> CallError {
    not_reached(address, TroubleCode::TooManyCalls, why)
}
