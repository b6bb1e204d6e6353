//! HTTP APIs: one set of routes for each kind of client.

mod browser;
mod console;
mod declarations;
mod health;
mod job_calls;
mod v1;
mod xxl_error;
mod xxl_executors;
mod xxl_web;

use std::sync::Arc;

use axum::Router;

use crate::centre::ServerState;
pub use v1::{Described as RouteLine, Streams, described as routes, openapi};
pub use xxl_web::{Described as WebRouteLine, described as web_routes};

/// All routes of a node.
pub fn all(state: Arc<ServerState>) -> Router {
    Router::new()
        .merge(health::router())
        .merge(xxl_executors::router())
        .merge(xxl_web::router())
        .merge(v1::router())
        .merge(console::router())
        .with_state(state)
}
