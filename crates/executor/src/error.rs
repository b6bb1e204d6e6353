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
    #[error("the application's name is blank; give the one its group has in the scheduling centre")]
    App,
    /// The address of a centre is not a valid URL.
    #[error(
        "`{address}` is not the address of a scheduling centre; write it as `http://127.0.0.1:8080` \
         or, for XXL-JOB up to 3.4.0, `http://127.0.0.1:8080/xxl-job-admin`"
    )]
    Centre {
        /// The given address.
        address: String,
    },
    /// The token is too weak: anyone who reaches the port could run jobs.
    #[error(
        "refusing to listen on {address} with {what}: anybody who reaches the port could run jobs; \
         set a token nobody knows, or listen on 127.0.0.1"
    )]
    WeakToken {
        /// The address to listen on.
        address: SocketAddr,
        /// The weakness of the token.
        what: &'static str,
    },
    /// The token file cannot be read.
    #[error(
        "cannot read the token in `{}`: {why}; for Tickwright's centre, make it with: tickwright app token {app} --to {}",
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
    #[error("the token holds a character that cannot stand in an HTTP header; use letters and digits")]
    TokenText,
    /// Two handlers have the same name.
    #[error("two handlers are named `{name}`; a centre could not tell them apart, so rename one")]
    HandlerTwice {
        /// The duplicate name.
        name: String,
    },
    /// A declared job is invalid.
    #[error("the job that is to call `{handler}` cannot be declared: {why}")]
    Declaration {
        /// Name of the handler.
        handler: String,
        /// The reason.
        why: String,
    },
    /// Listening on the address failed.
    #[error("cannot listen on `{address}`: {why}; choose another address, or port 0 for any that is free")]
    Listen {
        /// The address to listen on.
        address: String,
        /// The cause.
        why: io::Error,
    },
    /// The directory of the journal and the logs cannot be used.
    #[error("cannot keep the journal in `{}`: {why}; use a directory that this user can write", path.display())]
    Directory {
        /// Path of the directory.
        path: PathBuf,
        /// The cause.
        why: io::Error,
    },
    /// Another process uses the directory.
    #[error(
        "another executor uses `{}`; give each its own with `Builder::directory`, or stop the other first",
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
