//! Errors that prevent an executor from starting.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why an executor cannot start.
///
/// `Debug` prints the same text as `Display`, because a `main` that returns the error prints its `Debug`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The app name is blank.
    #[error("the name of the app is empty; use the name that the app has in the scheduling centre")]
    App,
    /// The address of a centre is not a valid URL.
    #[error(
        "`{address}` is not the address of a scheduling centre; use for example `http://127.0.0.1:8080` or, \
         for XXL-JOB up to 3.4.0, `http://127.0.0.1:8080/xxl-job-admin`"
    )]
    Centre {
        /// The given address.
        address: String,
    },
    /// The token is too weak: anyone who reaches the port could run jobs.
    #[error(
        "listening on {address} with {what} is not allowed, because any client that can connect could run \
         jobs; set a secret token, or listen on 127.0.0.1"
    )]
    WeakToken {
        /// The address to listen on.
        address: SocketAddr,
        /// The weakness of the token.
        what: &'static str,
    },
    /// The token file cannot be read.
    #[error(
        "failed to read the token in `{}`: {why}; create it with: tickwright app token {app} --to {}",
        path.display(),
        path.display()
    )]
    TokenFile {
        /// Path of the file.
        path: PathBuf,
        /// Name of the app.
        app: String,
        /// The cause.
        why: io::Error,
    },
    /// The token contains a character that is not allowed in an HTTP header.
    #[error("the token contains a character that is not allowed in an HTTP header; use letters and digits")]
    TokenText,
    /// Two handlers have the same name.
    #[error("two handlers are named `{name}`; rename one of them")]
    HandlerTwice {
        /// The duplicate name.
        name: String,
    },
    /// A declared job is invalid.
    #[error("invalid declaration of the job for handler `{handler}`: {why}")]
    Declaration {
        /// Name of the handler.
        handler: String,
        /// The reason.
        why: String,
    },
    /// Listening on the address failed.
    #[error("failed to listen on `{address}`: {why}; choose another address, or port 0 for any free port")]
    Listen {
        /// The address to listen on.
        address: String,
        /// The cause.
        why: io::Error,
    },
    /// The directory of the journal and the logs cannot be used.
    #[error("failed to open the journal in `{}`: {why}; use a directory that is writable for this user", path.display())]
    Directory {
        /// Path of the directory.
        path: PathBuf,
        /// The cause.
        why: io::Error,
    },
    /// Another process uses the directory.
    #[error(
        "another executor uses the directory `{}`; set another one with `Builder::directory`, or stop the \
         other executor",
        path.display()
    )]
    DirectoryTaken {
        /// Path of the directory.
        path: PathBuf,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
