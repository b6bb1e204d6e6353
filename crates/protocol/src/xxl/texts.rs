//! The messages both sides send, letter for letter: people search for them, and clients match them.

use super::{BlockStrategy, GlueType};

/// The method was not POST.
pub const NOT_POST: &str = "invalid request, HttpMethod not support.";
/// There was no path.
pub const NO_URI: &str = "invalid request, uri-mapping empty.";
/// There was no body.
pub const NO_BODY: &str = "invalid request, requestBody empty.";
/// The token differs.
pub const WRONG_TOKEN: &str = "The access token is wrong.";
/// The newest lineage misses a header.
pub const NO_TOKEN_OR_APP: &str = "invalid request, accessToken or appname is empty.";
/// The newest lineage finds a header wrong.
pub const WRONG_TOKEN_OR_APP: &str = "invalid request, accessToken or appname invalid.";
/// A program manages jobs faster than it may.
pub const TOO_MANY_REQUESTS: &str = "Too many requests, please try again later.";
/// A registration lacks something.
pub const ILLEGAL_ARGUMENT: &str = "Illegal Argument.";

/// There is no such path.
pub fn unknown_uri(uri: &str) -> String {
    format!("invalid request, uri-mapping({uri}) not found.")
}

/// A request an executor could not understand.
pub fn request_error(why: impl std::fmt::Display) -> String {
    format!("request error:{why}")
}

/// A request a centre could not understand.
pub fn invoke_error(why: impl std::fmt::Display) -> String {
    format!("openapi invoke error: {why}")
}

/// Answer to `/idleBeat`: something runs or waits.
pub const BUSY: &str = "job thread is running or has trigger queue.";
/// Answer to `/kill`: nothing runs.
pub const NOTHING_TO_KILL: &str = "job thread already killed.";

/// Answer to a trigger: the executor has no such handler.
pub fn unknown_handler(name: &str) -> String {
    format!("job handler [{name}] not found.")
}

/// Answer to a trigger: the executor does not run this kind of code.
pub fn glue_refused(glue: GlueType) -> String {
    format!("fail, current glue type [{}] not supported.", glue.title())
}

/// Answer to a trigger: there is no such kind of code.
pub fn glue_unknown(word: &str) -> String {
    format!("glueType[{word}] is not valid.")
}

/// Answer to a trigger, or reason of a stop: the block strategy says so. The colon is full-width.
pub fn blocked(by: BlockStrategy) -> String {
    format!("block strategy effect：{}", by.title())
}

/// Answer to a trigger: this run is here already.
pub fn repeated(log_id: i64) -> String {
    format!("repeat trigger job, logId:{log_id}")
}

/// Reason of a stop: somebody asked for it.
pub const KILLED: &str = "scheduling center kill job.";
/// Reason of a stop: the executor stops.
pub const SHUT_DOWN: &str = "web container destroy and kill the job.";

/// Reason of a stop: the job has another handler now.
pub const HANDLER_CHANGED: &str = "change jobhandler or glue type, and terminate the old job thread.";
/// Reason of a stop: the job's script was edited, or it is a script now.
pub const SOURCE_CHANGED: &str = "change job source or glue type, and terminate the old job thread.";

/// Result of a run that was stopped while it ran.
pub fn stopped_running(reason: &str) -> String {
    format!("{reason} [job running, killed]")
}

/// Result of a run that was stopped before it started.
pub fn stopped_waiting(reason: &str) -> String {
    format!("{reason} [job not executed, in the job queue, killed.]")
}

/// Result of a run that took too long. The space at the end is part of it.
pub const TIMED_OUT: &str = "job execute timeout ";

/// Result of a run whose script did not exit with 0.
pub fn script_failed(exit: i32) -> String {
    format!("script exit value({exit}) is failed")
}

/// Result of a run whose command did not exit with 0.
pub fn command_failed(exit: i32) -> String {
    format!("command exit value({exit}) is failed")
}

/// Content of a log that is not there.
pub const NO_LOG_FILE: &str = "readLog fail, logFile not exists";

/// How many characters of a result's message are kept.
pub const MESSAGE_MAX: usize = 50_000;

/// A result's message at the length executors keep to.
pub fn shortened(mut message: String) -> String {
    if let Some((cut, _)) = message.char_indices().nth(MESSAGE_MAX) {
        message.truncate(cut);
        message.push_str("...");
    }
    message
}
