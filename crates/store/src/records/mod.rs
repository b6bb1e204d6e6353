//! What the scheduling centre remembers beside jobs and runs: apps and their executors, tokens and settings, and the
//! past as people look through it.
//!
//! As with [`engine::Store`], each method is one transaction, and its steps are written once over a `Session`. XXL-JOB's
//! words for these things stop in the files of this folder.

mod apps;
mod counters;
mod job_rows;
mod page;
mod registry;
mod reports;
mod run_logs;
mod run_rows;
mod scripts;
mod settings;
mod tokens;

use async_trait::async_trait;
use engine::{AppId, JobId, Language, RunId, Store, StoreError};
use timer::Timestamp;

pub use apps::{Addresses, App, AppSpec};
pub use job_rows::{JobFilter, JobRow};
pub use page::{Page, Paged, Total};
pub use registry::{Registered, Registration};
pub use reports::DayReport;
pub use run_logs::RunLog;
pub use run_rows::{Clearing, Keep, OpenRun, RunFilter, RunRow, RunStatus};
pub use scripts::{SCRIPT_VERSIONS, ScriptVersion};
pub use tokens::{NewToken, Token};

use crate::session::Backend;
use crate::sql_store::{SqlStore, transaction};

/// A database with all that the scheduling centre remembers.
pub trait Database: Store + Records {}

impl<T: Store + Records> Database for T {}

/// What the centre remembers beside jobs and runs. Instants that are not given are the database's now.
#[async_trait]
pub trait Records: Send + Sync {
    // ── Apps and their executors ────────────────────────────────────────────────────────────────────────────────

    /// All apps, by name.
    async fn apps(&self) -> Result<Vec<App>, StoreError>;

    /// One app.
    async fn app(&self, id: AppId) -> Result<Option<App>, StoreError>;

    /// The app under whose name executors register.
    async fn app_by_name(&self, name: &str) -> Result<Option<App>, StoreError>;

    /// Adds an app. A name that is taken is a [`StoreError::Conflict`].
    async fn create_app(&self, spec: &AppSpec) -> Result<AppId, StoreError>;

    /// Changes an app; false if there is none. One whose executors now register keeps the addresses it has until others
    /// are published.
    async fn update_app(&self, id: AppId, spec: &AppSpec) -> Result<bool, StoreError>;

    /// Deletes an app with its registrations, tokens and grants; false if there is none. One that jobs use is a
    /// [`StoreError::Conflict`].
    async fn delete_app(&self, id: AppId) -> Result<bool, StoreError>;

    /// Notes that executors are there; says of each whether that is new. Apps need not exist.
    async fn register(&self, beats: &[Registration]) -> Result<Vec<bool>, StoreError>;

    /// Notes that an executor has left; false if it was not there.
    async fn unregister(&self, app: &str, address: &str) -> Result<bool, StoreError>;

    /// The executors that have said so after that instant, by app and address.
    async fn registrations(&self, seen_after: Timestamp) -> Result<Vec<Registered>, StoreError>;

    /// Deletes at most `max` executors that were last seen before that instant; returns how many there were.
    async fn forget_registrations(&self, before: Timestamp, max: usize) -> Result<usize, StoreError>;

    /// A number that grows whenever an executor is new or gone, or an app or token is changed through us, in the same
    /// transaction; not when an executor is merely seen again. What Java admins change does not raise it.
    async fn registry_revision(&self) -> Result<i64, StoreError>;

    /// Tells Java admins which executors are there, for apps whose executors register: writes the lists that differ
    /// from what is stored, and returns how many did.
    async fn publish_addresses(&self, lists: &[(AppId, Vec<String>)]) -> Result<usize, StoreError>;

    /// The apps that runs belong to; runs that never were are left out.
    async fn apps_of_runs(&self, runs: &[RunId]) -> Result<Vec<(RunId, AppId)>, StoreError>;

    // ── Tokens and settings ─────────────────────────────────────────────────────────────────────────────────────

    /// All tokens, also those that have expired.
    async fn tokens(&self) -> Result<Vec<Token>, StoreError>;

    /// Adds a token; returns its number.
    async fn add_token(&self, token: &NewToken) -> Result<i64, StoreError>;

    /// Says until when a token counts; false if there is none of that number.
    async fn expire_token(&self, id: i64, at: Timestamp) -> Result<bool, StoreError>;

    /// The value of a setting.
    async fn setting(&self, name: &str) -> Result<Option<String>, StoreError>;

    /// Gives a setting a value.
    async fn set_setting(&self, name: &str, value: &str) -> Result<(), StoreError>;

    /// Gives a setting a value if it has none; returns the one that stands, the same for all who ask at once.
    async fn set_setting_if_absent(&self, name: &str, value: &str) -> Result<String, StoreError>;

    // ── What people look at ─────────────────────────────────────────────────────────────────────────────────────

    /// Jobs, the newest first.
    async fn job_page(&self, filter: &JobFilter, page: Page) -> Result<Paged<JobRow>, StoreError>;

    /// Runs, the newest first: by their numbers, or by their instants where the filter names some. Reads a bounded
    /// number of rows, however many there are.
    async fn run_page(&self, filter: &RunFilter, page: Page) -> Result<Paged<RunRow>, StoreError>;

    /// One run.
    async fn run(&self, id: RunId) -> Result<Option<RunRow>, StoreError>;

    /// Deletes at most `max` runs that are over, with their logs; returns how many there were.
    async fn clear_runs(&self, clearing: &Clearing, max: usize) -> Result<usize, StoreError>;

    /// Counts the runs of the day of that instant, unless the day is over and all its runs were when last counted;
    /// says whether the counts are other than before.
    async fn refresh_report(&self, within: Timestamp) -> Result<bool, StoreError>;

    /// The counts of the days from the one of that instant to that of the other, where there are any.
    async fn report(&self, from: Timestamp, to: Timestamp) -> Result<Vec<DayReport>, StoreError>;

    /// The earlier scripts of a job and the one it has, the newest first.
    async fn script_versions(&self, job: JobId) -> Result<Vec<ScriptVersion>, StoreError>;

    /// Gives a job a script, and keeps it as a version; the oldest beyond [`SCRIPT_VERSIONS`] goes.
    async fn save_script(
        &self,
        job: JobId,
        language: Language,
        source: &str,
        remark: &str,
    ) -> Result<(), StoreError>;

    /// Keeps a run's log, in place of what was kept; false if there is no such run.
    async fn keep_run_log(&self, run: RunId, log: &RunLog) -> Result<bool, StoreError>;

    /// What is kept of a run's log.
    async fn kept_run_log(&self, run: RunId) -> Result<Option<RunLog>, StoreError>;
}

#[async_trait]
impl<B: Backend> Records for SqlStore<B> {
    async fn apps(&self) -> Result<Vec<App>, StoreError> {
        transaction!(self, s => apps::apps(s, &self.tables))
    }

    async fn app(&self, id: AppId) -> Result<Option<App>, StoreError> {
        transaction!(self, s => apps::app(s, &self.tables, id))
    }

    async fn app_by_name(&self, name: &str) -> Result<Option<App>, StoreError> {
        transaction!(self, s => apps::app_by_name(s, &self.tables, name))
    }

    async fn create_app(&self, spec: &AppSpec) -> Result<AppId, StoreError> {
        transaction!(self, s => apps::create_app(s, &self.tables, spec))
    }

    async fn update_app(&self, id: AppId, spec: &AppSpec) -> Result<bool, StoreError> {
        transaction!(self, s => apps::update_app(s, &self.tables, id, spec))
    }

    async fn delete_app(&self, id: AppId) -> Result<bool, StoreError> {
        transaction!(self, s => apps::delete_app(s, &self.tables, id))
    }

    async fn register(&self, beats: &[Registration]) -> Result<Vec<bool>, StoreError> {
        transaction!(self, s => registry::register(s, &self.tables, beats))
    }

    async fn unregister(&self, app: &str, address: &str) -> Result<bool, StoreError> {
        transaction!(self, s => registry::unregister(s, app, address))
    }

    async fn registrations(&self, seen_after: Timestamp) -> Result<Vec<Registered>, StoreError> {
        transaction!(self, s => registry::registrations(s, &self.tables, seen_after))
    }

    async fn forget_registrations(&self, before: Timestamp, max: usize) -> Result<usize, StoreError> {
        transaction!(self, s => registry::forget_registrations(s, &self.tables, before, max))
    }

    async fn registry_revision(&self) -> Result<i64, StoreError> {
        transaction!(self, s => counters::read(s, counters::REGISTRY))
    }

    async fn publish_addresses(&self, lists: &[(AppId, Vec<String>)]) -> Result<usize, StoreError> {
        transaction!(self, s => apps::publish_addresses(s, &self.tables, lists))
    }

    async fn apps_of_runs(&self, runs: &[RunId]) -> Result<Vec<(RunId, AppId)>, StoreError> {
        transaction!(self, s => apps::apps_of_runs(s, runs))
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        transaction!(self, s => tokens::tokens(s))
    }

    async fn add_token(&self, token: &NewToken) -> Result<i64, StoreError> {
        transaction!(self, s => tokens::add_token(s, &self.tables, token))
    }

    async fn expire_token(&self, id: i64, at: Timestamp) -> Result<bool, StoreError> {
        transaction!(self, s => tokens::expire_token(s, id, at))
    }

    async fn setting(&self, name: &str) -> Result<Option<String>, StoreError> {
        transaction!(self, s => settings::setting(s, name))
    }

    async fn set_setting(&self, name: &str, value: &str) -> Result<(), StoreError> {
        transaction!(self, s => settings::set_setting(s, &self.tables, name, value))
    }

    async fn set_setting_if_absent(&self, name: &str, value: &str) -> Result<String, StoreError> {
        transaction!(self, s => settings::set_setting_if_absent(s, &self.tables, name, value))
    }

    async fn job_page(&self, filter: &JobFilter, page: Page) -> Result<Paged<JobRow>, StoreError> {
        transaction!(self, s => job_rows::job_page(s, &self.tables, filter, page))
    }

    async fn run_page(&self, filter: &RunFilter, page: Page) -> Result<Paged<RunRow>, StoreError> {
        transaction!(self, s => run_rows::run_page(s, &self.tables, filter, page))
    }

    async fn run(&self, id: RunId) -> Result<Option<RunRow>, StoreError> {
        transaction!(self, s => run_rows::run(s, &self.tables, id))
    }

    async fn clear_runs(&self, clearing: &Clearing, max: usize) -> Result<usize, StoreError> {
        transaction!(self, s => run_rows::clear_runs(s, &self.tables, clearing, max))
    }

    async fn refresh_report(&self, within: Timestamp) -> Result<bool, StoreError> {
        transaction!(self, s => reports::refresh_report(s, &self.tables, within))
    }

    async fn report(&self, from: Timestamp, to: Timestamp) -> Result<Vec<DayReport>, StoreError> {
        transaction!(self, s => reports::report(s, &self.tables, from, to))
    }

    async fn script_versions(&self, job: JobId) -> Result<Vec<ScriptVersion>, StoreError> {
        transaction!(self, s => scripts::script_versions(s, &self.tables, job))
    }

    async fn save_script(
        &self,
        job: JobId,
        language: Language,
        source: &str,
        remark: &str,
    ) -> Result<(), StoreError> {
        transaction!(self, s => scripts::save_script(s, &self.tables, job, language, source, remark))
    }

    async fn keep_run_log(&self, run: RunId, log: &RunLog) -> Result<bool, StoreError> {
        transaction!(self, s => run_logs::keep_run_log(s, run, log))
    }

    async fn kept_run_log(&self, run: RunId) -> Result<Option<RunLog>, StoreError> {
        transaction!(self, s => run_logs::kept_run_log(s, run))
    }
}
