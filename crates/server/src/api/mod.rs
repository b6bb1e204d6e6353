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

use axum::Router;

use crate::centre::ServerState;
pub use v1::{Described as RouteLine, described as routes, openapi, workflow_problems};
pub use xxl_web::{Described as WebRouteLine, described as web_routes};

/// All routes of a node. Each API gets the parts of the node that it uses.
pub fn all(node: &ServerState) -> Router {
    Router::new()
        .merge(health::router(node))
        .merge(xxl_executors::router(node))
        .merge(xxl_web::router(node))
        .merge(v1::router(node))
        .merge(console::router())
}
