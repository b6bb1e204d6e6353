//! Types of our own API, `/v1`, used by the console, the command line and users' programs.
//!
//! Names are in snake case, times are RFC 3339 in UTC, durations are whole milliseconds (`…_ms`). Requests are
//! strict: an unknown field is rejected, so that a misspelt one is never silently ignored. Responses may get new
//! fields. Lists are paginated by key ([`Page`]), errors are [`Problem`]s.

mod alerts;
mod apps;
mod audit;
mod backfills;
mod centre;
mod events;
mod instant;
mod jobs;
mod page;
mod problem;
mod runs;
mod schedule;
mod users;
mod work_calendars;
mod workflows;

pub use alerts::{AlertCounts, AlertView, DeliveryView};
pub use apps::{
    Addressing, AppBody, AppView, ExecutorCheck, ExecutorState, ExecutorTrouble, ExecutorView, GoneExecutor,
    NewToken, SecretBody, SecretView, TokenView, TroubleCode,
};
pub use audit::AuditView;
pub use backfills::{
    BackfillBody, BackfillPlan, BackfillStarted, BackfillTime, BackfillView, CancelBackfill, PlannedAction,
    PlannedTime,
};
pub use centre::{
    About, Calendar, CalendarBucket, Database, NodeView, Overview, RunCounts, SettingView, Statistics,
    StatisticsBucket,
};
pub use events::Event;
pub use instant::Instant;
pub use jobs::{
    Bulk, BulkAction, BulkResult, JobBody, JobChange, JobFilter, JobView, KeyedJob, PutJobs, PutOutcome,
    PutResult, ScriptBody, ScriptVersion, Trigger, Triggered,
};
pub use page::Page;
pub use problem::{FieldProblem, Problem, ProblemCode};
pub use runs::{
    Clear, Cleared, Kill, LogPage, Miss, MissReason, Origin, RunState, RunView, TraceStep, TraceStepKind,
};
pub use schedule::{ExcludedTime, Preview, PreviewFire, PreviewRequest, Schedule};
pub use users::{
    ApiKeyBody, ApiKeyView, Grant, Me, NewApiKey, PasswordChange, Right, SessionView, SignIn, UserBody,
    UserView,
};
pub use words::{
    AlertKind, AlertState, BackfillOrder, BackfillState, Backoff, Beyond, Block, ChildrenMode, CronDialect,
    Delivery, DependsNeed, Existing, IfFailed, IfMissing, InputType, InstantState, Misfire, Named, OnDays,
    OnError, OnFailure, Overlap, Phase, Retry, RetryFrom, Route, RunStatus, ScriptLanguage, Shift, StepState,
    UnknownWord, Word,
};
pub use work_calendars::{
    JobWorkdays, MovedFires, WorkCalendarBody, WorkCalendarDay, WorkCalendarImport, WorkCalendarImported,
    WorkCalendarView,
};
pub use workflows::{
    ApprovalBody, CheckedWorkflow, Decision, DecisionView, DependsBody, GridRun, HttpBody, JoinRule, Need,
    NeedBranch, RestoreVersion, Resume, ResumeVersion, Resumed, StepBody, StepView, WorkflowBody,
    WorkflowCheck, WorkflowGrid, WorkflowInput, WorkflowProblem, WorkflowRunView, WorkflowVersion,
};

/// Request header that makes a trigger or backfill idempotent: a repeated request with the same key starts no second one.
pub const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Request header with the CSRF token of a session; required for every change from a browser.
pub const CSRF_HEADER: &str = "Tickwright-Csrf";
