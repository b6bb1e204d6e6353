//! Data of the scheduling centre other than jobs and runs: apps and their executors, tokens and settings, history,
//! and users.
//!
//! Each file adds the methods of its subject to [`Database`]. As with [`engine::Store`], each method is one
//! transaction, and its steps are written once over a `Session`. Times that are not given are the database's current
//! time.
//! XXL-JOB's names for these things are used only in the files of this folder.

mod about;
mod alert_rows;
mod api_keys;
pub(crate) mod apps;
mod audit;
mod backfills;
pub(crate) mod counters;
mod handlers;
pub(crate) mod hosts;
mod job_list;
mod job_rows;
pub(crate) mod job_tags;
mod misses;
mod origins;
mod page;
mod registry;
mod reports;
mod rights;
mod run_logs;
mod run_rows;
pub(crate) mod scripts;
mod secrets;
mod sessions;
mod settings;
mod tokens;
mod trace_rows;
mod users;
mod work_calendars;
mod workflow_grid;
mod workflows;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use engine::{AppId, StoreError};
use timer::Timestamp;

pub use about::About;
pub use alert_rows::{AlertCount, AlertFilter, AlertRow, AlertState, Delivery};
pub use api_keys::{ApiKey, NewApiKey};
pub use apps::{Addresses, App, AppSpec};
pub use audit::{AuditCheck, AuditEntry, AuditFilter, AuditHead, AuditRecord};
pub use backfills::{BackfillFilter, BackfillTime};
pub use hosts::{HostClock, HostFacts, Replication, hosts};
pub use job_list::{JobKey, JobList, JobMark, JobName, JobOrder};
pub use job_rows::{JobFilter, JobRow};
pub use origins::SignInOrigin;
pub use page::{Page, Paged, SEARCH_MAX, Total, check_search};
pub use registry::{ADDRESSES_MAX, Beat, Noted, Registered, Registration};
pub use reports::DayReport;
pub use rights::Rights;
pub use run_logs::RunLog;
pub use run_rows::{ClearPosition, Clearing, Keep, OpenRun, RunFilter, RunRow, RunStatus, RunTally};
pub use scripts::{SCRIPT_VERSIONS, ScriptVersion};
pub use secrets::{SECRETS_MAX, StoredSecret};
pub use sessions::{NewSession, UserSession};
pub use tokens::{NewToken, Token};
pub use trace_rows::{NodeTrace, Sending};
pub use users::{Access, Password, User, UserFilter, UserId};
pub use work_calendars::CalendarRow;
pub use workflow_grid::{GridRun, WorkflowGrid};
pub use workflows::{
    Decision, Resume, Resumed, RunEnd, Step, WORKFLOW_VERSIONS, WorkflowRow, WorkflowRun, WorkflowRunSteps,
    WorkflowVersion,
};

use crate::database::{Database, transaction};

/// Apps and their executors, as a node needs them to choose an executor for a run.
#[async_trait]
pub trait Registry: Send + Sync {
    /// Returns all apps, ordered by name.
    async fn apps(&self) -> Result<Vec<App>, StoreError>;

    /// Stores heartbeats of executors; returns for each whether the executor is new, which includes one that was not
    /// seen for longer than `silent_max`. Apps need not exist.
    async fn register(&self, beats: &[Beat], silent_max: Duration) -> Result<Vec<Noted>, StoreError>;

    /// Removes an executor; returns false if it was not registered.
    async fn unregister(&self, app: &str, address: &str) -> Result<bool, StoreError>;

    /// Returns the executors seen after this time, by app and address.
    async fn registrations(&self, seen_after: Timestamp) -> Result<Vec<Registered>, StoreError>;

    /// Stores the handlers of an executor; returns whether they changed. Does nothing if the executor is not
    /// registered.
    async fn note_handlers(&self, executor: &Registration, handlers: &[String]) -> Result<bool, StoreError>;

    /// Returns the handlers of all executors that reported any.
    async fn handlers(&self) -> Result<BTreeMap<Registration, Vec<String>>, StoreError>;

    /// Deletes at most `max` executors last seen before this time; returns how many were deleted.
    async fn forget_registrations(&self, before: Timestamp, max: usize) -> Result<usize, StoreError>;

    /// Returns a number that grows when an executor is added or removed, or an app or token is changed through us,
    /// in the same transaction; not when an executor is merely seen again. Changes by Java admins do not raise it.
    async fn registry_revision(&self) -> Result<i64, StoreError>;

    /// Returns the same number, and the database's time.
    async fn registry_state(&self) -> Result<(i64, Timestamp), StoreError>;

    /// Whether Java admins may register executors in the same tables, without raising the counter.
    fn is_beside_java(&self) -> bool;

    /// Publishes executor addresses to Java admins, for apps with registered executors: writes the lists that differ
    /// from the stored ones, and returns how many did.
    async fn publish_addresses(&self, lists: &[(AppId, Vec<String>)]) -> Result<usize, StoreError>;

    /// Returns all tokens, including expired ones.
    async fn tokens(&self) -> Result<Vec<Token>, StoreError>;

    /// Returns the secrets of all apps.
    async fn secrets(&self) -> Result<Vec<StoredSecret>, StoreError>;

    /// Adds a token; returns its id.
    async fn add_token(&self, token: &NewToken) -> Result<i64, StoreError>;
}

#[async_trait]
impl Registry for Database {
    async fn apps(&self) -> Result<Vec<App>, StoreError> {
        transaction!(self, s => apps::apps(s, &self.tables))
    }

    async fn register(&self, beats: &[Beat], silent_max: Duration) -> Result<Vec<Noted>, StoreError> {
        transaction!(self, s => registry::register(s, &self.tables, beats, silent_max))
    }

    async fn unregister(&self, app: &str, address: &str) -> Result<bool, StoreError> {
        transaction!(self, s => registry::unregister(s, app, address))
    }

    async fn registrations(&self, seen_after: Timestamp) -> Result<Vec<Registered>, StoreError> {
        transaction!(self, s => registry::registrations(s, &self.tables, seen_after))
    }

    async fn note_handlers(&self, executor: &Registration, handlers: &[String]) -> Result<bool, StoreError> {
        transaction!(self, s => handlers::note_handlers(s, executor, handlers))
    }

    async fn handlers(&self) -> Result<BTreeMap<Registration, Vec<String>>, StoreError> {
        transaction!(self, s => handlers::handlers(s))
    }

    async fn forget_registrations(&self, before: Timestamp, max: usize) -> Result<usize, StoreError> {
        transaction!(self, s => registry::forget_registrations(s, &self.tables, before, max))
    }

    async fn registry_revision(&self) -> Result<i64, StoreError> {
        transaction!(self, s => counters::read(s, counters::REGISTRY))
    }

    fn is_beside_java(&self) -> bool {
        self.tables.beside_java
    }

    async fn registry_state(&self) -> Result<(i64, Timestamp), StoreError> {
        transaction!(self, s => counters::read_with_time(s, counters::REGISTRY))
    }

    async fn publish_addresses(&self, lists: &[(AppId, Vec<String>)]) -> Result<usize, StoreError> {
        transaction!(self, s => apps::publish_addresses(s, &self.tables, lists))
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        transaction!(self, s => tokens::tokens(s))
    }

    async fn secrets(&self) -> Result<Vec<StoredSecret>, StoreError> {
        transaction!(self, s => secrets::secrets(s))
    }

    async fn add_token(&self, token: &NewToken) -> Result<i64, StoreError> {
        transaction!(self, s => tokens::add_token(s, &self.tables, token))
    }
}
