//! The words of our own API, `/v1`: used by the console, the command line and everybody's programs.
//!
//! Names are ours and in snake case, instants are RFC 3339 in UTC, durations whole milliseconds (`…_ms`). What a request
//! says is strict: an unknown field is refused, so that a misspelt one is never silently ignored. What an answer says may
//! grow. Lists are paged by key ([`Page`]), errors are [`Problem`]s.

mod alerts;
mod apps;
mod audit;
mod centre;
mod events;
mod instant;
mod jobs;
mod page;
mod people;
mod problem;
mod runs;
mod schedule;

pub use alerts::{AlertCounts, AlertKind, AlertState, AlertView, DeliveryView};
pub use apps::{
    Addressing, AppBody, AppView, ExecutorCheck, ExecutorState, ExecutorTrouble, ExecutorView, GoneExecutor,
    NewToken, TokenView, TroubleCode,
};
pub use audit::AuditView;
pub use centre::{
    About, Calendar, CalendarBucket, Database, NodeView, Overview, RunCounts, SettingView, Statistics,
    StatisticsBucket,
};
pub use events::Event;
pub use instant::Instant;
pub use jobs::{
    Backoff, Bulk, BulkAction, BulkResult, ChildrenMode, Delivery, JobBody, JobChange, JobView, Misfire,
    Overlap, Retry, ScriptBody, ScriptLanguage, ScriptVersion, Trigger, Triggered,
};
pub use page::Page;
pub use people::{
    ApiKeyBody, ApiKeyView, Grant, Me, NewApiKey, PasswordChange, Right, SessionView, SignIn, UserBody,
    UserView,
};
pub use problem::{FieldProblem, Problem, ProblemCode};
pub use runs::{
    Clear, Cleared, Kill, LogPage, Miss, MissReason, Moment, MomentKind, Origin, RunState, RunView,
};
pub use schedule::{CronDialect, Preview, PreviewFire, PreviewRequest, Schedule};

/// The header by which a trigger may be repeated without a second run.
pub const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// The header that carries a session's second secret, without which nothing is changed from a browser.
pub const CSRF_HEADER: &str = "Tickwright-Csrf";
