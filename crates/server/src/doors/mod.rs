//! HTTP APIs: one set of routes for each kind of client.

mod browser;
mod console;
mod declarations;
mod executors;
mod health;
mod job_calls;
mod v1;
mod web;

use std::sync::Arc;

use axum::Router;

use crate::centre::Inside;
pub use v1::{Described as RouteLine, Streams, described as routes};
pub use web::{Described as WebRouteLine, described as web_routes};

/// All routes of a node.
pub fn all(inside: Arc<Inside>) -> Router {
    Router::new()
        .merge(health::door())
        .merge(executors::door())
        .merge(web::door())
        .merge(v1::door())
        .merge(console::door())
        .with_state(inside)
}
