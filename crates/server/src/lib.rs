//! The scheduling centre, as a library that is easy to start in a test.
//!
//! [`Centre`] wires the parts: the engine that schedules, the store, the registry of [`executors`], the client
//! [`outbound`] that calls them, and the APIs for executors, tools and users. An API parses, calls and renders;
//! rules about jobs are in the engine.

pub mod alerts;
mod api;
mod apps;
mod audit;
mod centre;
pub mod client_tls;
mod dispatch;
pub mod doctor;
pub mod executors;
mod http;
mod jobs;
mod open_files;
pub mod outbound;
mod places;
mod rate;
mod request_error;
mod runs;
mod settings;
mod share;
mod telemetry;
mod users;
mod warn;

pub use api::{RouteLine, WebRouteLine, openapi, routes, web_routes, workflow_problems};
pub use centre::{Centre, FirstStart, SAMPLE_APP, SAMPLE_HANDLER, StartError};
pub use dispatch::HttpDispatch;
pub use http::Identity;
pub use places::Places;
pub use settings::{DeclaredJobs, REQUESTS_EACH, Settings};
pub use telemetry::Hints;
pub use users::FirstAdmin;
