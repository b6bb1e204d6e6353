//! The scheduling centre, as a library that is easy to start in a test.
//!
//! [`Centre`] wires the parts: the engine that schedules, the store that remembers, [`executors`] who are there,
//! [`outbound`] that reaches them, and the doors through which executors, tools and people come in. A door parses, calls
//! and renders; rules about jobs live in the engine.

pub mod alerts;
mod apps;
mod audit;
mod centre;
mod dispatch;
pub mod doctor;
mod doors;
pub mod executors;
mod fault;
mod hints;
mod http;
mod jobs;
mod lateness;
mod metrics;
pub mod outbound;
mod people;
mod refusal;
mod runs;
mod settings;

pub use centre::{Centre, FirstStart, SAMPLE_APP, SAMPLE_HANDLER, StartError};
pub use dispatch::HttpDispatch;
pub use doors::{RouteLine, WebRouteLine, routes, web_routes};
pub use hints::Hints;
pub use http::Identity;
pub use people::FirstAdmin;
pub use settings::{DeclaredJobs, Settings};
