//! Messages of XXL-JOB's protocol, character for character: users search for them and clients match them.

use words::Block;

use super::GlueType;

/// The method is not POST.
pub const NOT_POST: &str = "invalid request, HttpMethod not support.";
/// The path is empty.
pub const NO_URI: &str = "invalid request, uri-mapping empty.";
/// The body is empty.
pub const NO_BODY: &str = "invalid request, requestBody empty.";
/// The token is wrong.
pub const WRONG_TOKEN: &str = "The access token is wrong.";
/// Newest lineage: a header is missing.
pub const NO_TOKEN_OR_APP: &str = "invalid request, accessToken or appname is empty.";
/// Newest lineage: a header is wrong.
pub const WRONG_TOKEN_OR_APP: &str = "invalid request, accessToken or appname invalid.";
/// A program that manages jobs exceeds the rate limit.
pub const TOO_MANY_REQUESTS: &str = "Too many requests, please try again later.";
/// A registration lacks a field.
pub const ILLEGAL_ARGUMENT: &str = "Illegal Argument.";

/// The path does not exist.
pub fn unknown_uri(uri: &str) -> String {
    format!("invalid request, uri-mapping({uri}) not found.")
}

/// The executor cannot parse a request.
pub fn request_error(why: impl std::fmt::Display) -> String {
    format!("request error:{why}")
}

/// The scheduling centre cannot parse a request.
pub fn invoke_error(why: impl std::fmt::Display) -> String {
    format!("openapi invoke error: {why}")
}

/// Response to `/idleBeat`: a run is active or queued.
pub const BUSY: &str = "job thread is running or has trigger queue.";
/// Response to `/kill`: no run is active.
pub const NOTHING_TO_KILL: &str = "job thread already killed.";

/// Response to a trigger: the executor has no such handler.
pub fn unknown_handler(name: &str) -> String {
    format!("job handler [{name}] not found.")
}

/// Response to a trigger: the executor does not run this type of code.
pub fn glue_refused(glue: GlueType) -> String {
    format!("fail, current glue type [{}] not supported.", glue.title())
}

/// Response to a trigger: unknown type of code.
pub fn glue_unknown(word: &str) -> String {
    format!("glueType[{word}] is not valid.")
}

/// Response to a trigger, or reason of a stop: the block strategy applied. The colon is full-width.
pub fn blocked(by: Block) -> String {
    let title = match by {
        Block::Serial => "Serial Execution",
        Block::DiscardLater => "Discard Later",
        Block::CoverEarly => "Cover Early",
    };
    format!("block strategy effect：{title}")
}

/// Response to a trigger: the executor already has this run.
pub fn repeated(log_id: i64) -> String {
    format!("repeat trigger job, logId:{log_id}")
}

/// Reason of a stop: the run was cancelled.
pub const KILLED: &str = "scheduling center kill job.";
/// Reason of a stop: the executor shuts down.
pub const SHUT_DOWN: &str = "web container destroy and kill the job.";

/// Reason of a stop: the job has another handler now.
pub const HANDLER_CHANGED: &str = "change jobhandler or glue type, and terminate the old job thread.";
/// Reason of a stop: the job's script was edited, or the job became a script.
pub const SOURCE_CHANGED: &str = "change job source or glue type, and terminate the old job thread.";

/// Result of a run that was stopped while active.
pub fn stopped_running(reason: &str) -> String {
    format!("{reason} [job running, killed]")
}

/// Result of a run that was stopped while queued.
pub fn stopped_waiting(reason: &str) -> String {
    format!("{reason} [job not executed, in the job queue, killed.]")
}

/// Result of a run that exceeded its timeout. The trailing space is part of it.
pub const TIMED_OUT: &str = "job execute timeout ";

/// Result of a run whose script exited with a code other than 0.
pub fn script_failed(exit: i32) -> String {
    format!("script exit value({exit}) is failed")
}

/// Result of a run whose command exited with a code other than 0.
pub fn command_failed(exit: i32) -> String {
    format!("command exit value({exit}) is failed")
}

/// Content of a log that does not exist.
pub const NO_LOG_FILE: &str = "readLog fail, logFile not exists";

/// Maximum length of a result message in characters.
pub const MESSAGE_MAX: usize = 50_000;

/// Truncates a result message to the length that executors use.
pub fn shortened(mut message: String) -> String {
    if let Some((cut, _)) = message.char_indices().nth(MESSAGE_MAX) {
        message.truncate(cut);
        message.push_str("...");
    }
    message
}
