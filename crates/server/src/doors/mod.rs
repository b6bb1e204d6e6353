//! The doors: each a set of paths for one kind of caller.

mod executors;
mod health;
mod job_calls;
mod web;

use std::sync::Arc;

use axum::Router;

use crate::centre::Inside;

/// All doors of a centre.
pub fn all(inside: Arc<Inside>) -> Router {
    Router::new().merge(health::door()).merge(executors::door()).merge(web::door()).with_state(inside)
}
