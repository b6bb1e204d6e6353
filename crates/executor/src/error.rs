//! Why an executor does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why an executor does not start.
#[derive(Debug, thiserror::Error)]
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
    /// A token that no header can carry.
    #[error("the token holds a character that cannot stand in an HTTP header; use letters and digits")]
    TokenText,
    /// Two handlers have one name.
    #[error("two handlers are named `{name}`; a centre could not tell them apart")]
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
    #[error("cannot listen on `{address}`: {source}")]
    Listen {
        /// Where it was to listen.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// The journal or the logs cannot be kept there.
    #[error("cannot keep the journal in `{}`: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
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
