//! Why an executor does not start.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why an executor does not start.
///
/// Its `Debug` is its sentence too: that is what a `main` that returns it shows.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The application has no name.
    #[error("the application's name is blank; give the one its group has in the scheduling centre")]
    App,
    /// A centre's address cannot be one.
    #[error(
        "`{address}` is not the address of a scheduling centre; write it as `http://127.0.0.1:8080` \
         or, for XXL-JOB up to 3.4.0, `http://127.0.0.1:8080/xxl-job-admin`"
    )]
    Centre {
        /// What was given.
        address: String,
    },
    /// Everybody could run jobs here.
    #[error(
        "refusing to listen on {address} with {what}: anybody who reaches the port could run jobs; \
         set a token nobody knows, or listen on 127.0.0.1"
    )]
    WeakToken {
        /// Where it was to listen.
        address: SocketAddr,
        /// What is wrong with the token.
        what: &'static str,
    },
    /// A token's file cannot be read.
    #[error(
        "cannot read the token in `{}`: {why}; for Tickwright's centre, make it with: tickwright app token {app} --to {}",
        path.display(),
        path.display()
    )]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The application whose token it would be.
        app: String,
        /// Why not.
        why: io::Error,
    },
    /// A token that no header can carry.
    #[error("the token holds a character that cannot stand in an HTTP header; use letters and digits")]
    TokenText,
    /// Two handlers have one name.
    #[error("two handlers are named `{name}`; a centre could not tell them apart, so rename one")]
    HandlerTwice {
        /// The name.
        name: String,
    },
    /// A job that is declared cannot be right.
    #[error("the job that is to call `{handler}` cannot be declared: {why}")]
    Declaration {
        /// The handler.
        handler: String,
        /// What is wrong.
        why: String,
    },
    /// The port cannot be had.
    #[error("cannot listen on `{address}`: {why}; choose another address, or port 0 for any that is free")]
    Listen {
        /// Where it was to listen.
        address: String,
        /// Why not.
        why: io::Error,
    },
    /// The journal or the logs cannot be kept there.
    #[error("cannot keep the journal in `{}`: {why}; use a directory that this user can write", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// Another process keeps its journal there.
    #[error(
        "another executor uses `{}`; give each its own with `Builder::directory`, or stop the other first",
        path.display()
    )]
    DirectoryTaken {
        /// The directory.
        path: PathBuf,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
