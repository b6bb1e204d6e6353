//! The `/v1` API, as used by programs and pages.

mod alerts;
mod apps;
mod backfills;
mod batches;
pub mod client;
mod events;
mod jobs;
mod rights;
mod runs;
mod session;
mod users;
mod work_calendars;
mod workflows;
