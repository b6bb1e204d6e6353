//! Data of the scheduling centre other than jobs and runs: apps and their executors, tokens and settings, history,
//! and users.
//!
//! As with [`engine::Store`], each method is one transaction, and its steps are written once over a `Session`.
//! XXL-JOB's names for these things are used only in the files of this folder.

mod about;
mod alert_rows;
mod api_keys;
pub(crate) mod apps;
mod audit;
mod counters;
mod flight_rows;
mod handlers;
mod job_list;
mod job_rows;
pub(crate) mod job_tags;
mod misses;
mod page;
mod registry;
mod reports;
mod rights;
mod run_logs;
mod run_rows;
pub(crate) mod scripts;
mod sessions;
mod settings;
mod tokens;
mod users;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use engine::{AppId, HistoryEntry, JobId, Language, RunId, Store, StoreError};
use timer::Timestamp;

pub use about::About;
pub use alert_rows::{AlertCount, AlertFilter, AlertRow, AlertState, Delivery};
pub use api_keys::{ApiKey, NewApiKey};
pub use apps::{Addresses, App, AppSpec};
pub use audit::{AuditCheck, AuditEntry, AuditFilter, AuditHead, AuditRecord};
pub use flight_rows::{Flight, Sending};
pub use job_list::{JobKey, JobList, JobMark, JobName, JobOrder};
pub use job_rows::{JobFilter, JobRow};
pub use page::{Page, Paged, SEARCH_MAX, Total, check_search};
pub use registry::{ADDRESSES_MAX, Beat, Noted, Registered, Registration};
pub use reports::DayReport;
pub use rights::Rights;
pub use run_logs::RunLog;
pub use run_rows::{Clearing, Keep, OpenRun, RunFilter, RunRow, RunStatus, RunTally};
pub use scripts::{SCRIPT_VERSIONS, ScriptVersion};
pub use sessions::{NewSession, UserSession};
pub use tokens::{NewToken, Token};
pub use users::{Access, Password, User, UserFilter, UserId};

use crate::session::Backend;
use crate::sql_store::{SqlStore, transaction};

/// A database with all data of the scheduling centre.
pub trait Database: Store + Records {}

impl<T: Store + Records> Database for T {}

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

    /// Publishes executor addresses to Java admins, for apps with registered executors: writes the lists that differ
    /// from the stored ones, and returns how many did.
    async fn publish_addresses(&self, lists: &[(AppId, Vec<String>)]) -> Result<usize, StoreError>;

    /// Returns all tokens, including expired ones.
    async fn tokens(&self) -> Result<Vec<Token>, StoreError>;

    /// Adds a token; returns its id.
    async fn add_token(&self, token: &NewToken) -> Result<i64, StoreError>;
}

/// Data of the scheduling centre other than jobs and runs. Times that are not given are the database's current time.
#[async_trait]
pub trait Records: Registry {
    // ── Apps and their executors ────────────────────────────────────────────────────────────────────────────────

    /// Returns one app.
    async fn app(&self, id: AppId) -> Result<Option<App>, StoreError>;

    /// Returns the app with this name.
    async fn app_by_name(&self, name: &str) -> Result<Option<App>, StoreError>;

    /// Adds an app. A name that is taken is a [`StoreError::Conflict`].
    async fn create_app(&self, spec: &AppSpec) -> Result<AppId, StoreError>;

    /// Changes an app; returns false if there is none. An app that changes to registered executors keeps its
    /// addresses until others are published.
    async fn update_app(&self, id: AppId, spec: &AppSpec) -> Result<bool, StoreError>;

    /// Deletes an app with its registrations, tokens and grants; returns false if there is none. If jobs use the
    /// app, it is a [`StoreError::Conflict`].
    async fn delete_app(&self, id: AppId) -> Result<bool, StoreError>;

    /// Returns the apps of runs; runs that do not exist are omitted.
    async fn apps_of_runs(&self, runs: &[RunId]) -> Result<Vec<(RunId, AppId)>, StoreError>;

    /// Returns facts about the database.
    async fn about(&self) -> Result<About, StoreError>;

    // ── Tokens and settings ─────────────────────────────────────────────────────────────────────────────────────

    /// Sets when a token expires; returns false if there is none with this id.
    async fn expire_token(&self, id: i64, at: Timestamp) -> Result<bool, StoreError>;

    /// Returns the value of a setting.
    async fn setting(&self, name: &str) -> Result<Option<String>, StoreError>;

    /// Sets a setting.
    async fn set_setting(&self, name: &str, value: &str) -> Result<(), StoreError>;

    /// Sets a setting if it has no value; returns the value in effect, the same for all concurrent callers.
    async fn set_setting_if_absent(&self, name: &str, value: &str) -> Result<String, StoreError>;

    // ── Lists ───────────────────────────────────────────────────────────────────────────────────────────────────

    /// Returns a page of jobs, the newest first.
    async fn job_page(&self, filter: &JobFilter, page: Page) -> Result<Paged<JobRow>, StoreError>;

    /// Returns jobs in the given order, after a position.
    async fn job_list(
        &self,
        filter: &JobFilter,
        order: JobOrder,
        after: Option<&JobMark>,
        limit: usize,
    ) -> Result<JobList, StoreError>;

    /// Returns some jobs, in the order of the given ids; jobs that do not exist are omitted.
    async fn job_rows(&self, jobs: &[JobId]) -> Result<Vec<JobRow>, StoreError>;

    /// Returns the names of jobs, in any order; jobs that do not exist are omitted.
    async fn job_names(&self, jobs: &[JobId]) -> Result<Vec<JobName>, StoreError>;

    /// Returns the number of jobs, and the number of started jobs.
    async fn job_count(&self, filter: &JobFilter) -> Result<(u64, u64), StoreError>;

    /// Returns the number of jobs per app; apps without jobs are omitted.
    async fn jobs_by_app(&self) -> Result<BTreeMap<AppId, u64>, StoreError>;

    /// Returns fires of a job that were not dispatched, the newest first.
    async fn misses(&self, job: JobId, page: Page) -> Result<Paged<HistoryEntry>, StoreError>;

    /// Returns a page of runs, the newest first: by id, or by scheduled time if the filter has a time range. The
    /// number of rows read is bounded, however many there are.
    async fn run_page(&self, filter: &RunFilter, page: Page) -> Result<Paged<RunRow>, StoreError>;

    /// Counts runs by status, if there are at most `max`; otherwise the result is marked as incomplete.
    async fn run_tally(&self, filter: &RunFilter, max: usize) -> Result<RunTally, StoreError>;

    /// Returns one run.
    async fn run(&self, id: RunId) -> Result<Option<RunRow>, StoreError>;

    /// Deletes at most `max` finished runs, with their logs; returns how many were deleted.
    async fn clear_runs(&self, clearing: &Clearing, max: usize) -> Result<usize, StoreError>;

    /// Counts the runs of the day that contains this time, unless the day is over and all its runs were finished
    /// when last counted; returns whether the counts changed.
    async fn refresh_report(&self, within: Timestamp) -> Result<bool, StoreError>;

    /// Returns the counts per day, from the day of the first time to that of the second, where there are any: of all
    /// runs, or of the runs of some apps, for days that were counted here.
    async fn report(
        &self,
        days: (Timestamp, Timestamp),
        apps: Option<&[AppId]>,
    ) -> Result<Vec<DayReport>, StoreError>;

    /// Returns the current and earlier scripts of a job, the newest first.
    async fn script_versions(&self, job: JobId) -> Result<Vec<ScriptVersion>, StoreError>;

    /// Sets the script of a job, and stores it as a version; deletes the oldest beyond [`SCRIPT_VERSIONS`].
    async fn save_script(
        &self,
        job: JobId,
        language: Language,
        source: &str,
        remark: &str,
    ) -> Result<(), StoreError>;

    /// Adds a remark to a script that was saved without one; does nothing if the job has another script by now.
    async fn remark_script(&self, job: JobId, source: &str, remark: &str) -> Result<(), StoreError>;

    /// Stores the logs of runs, replacing stored ones; returns how many of the runs exist.
    async fn keep_run_logs(&self, logs: &[(RunId, RunLog)]) -> Result<usize, StoreError>;

    /// Returns the stored log of a run.
    async fn kept_run_log(&self, run: RunId) -> Result<Option<RunLog>, StoreError>;

    /// Stores a node's traces of runs; fields that the node no longer has keep their stored values.
    async fn keep_flights(&self, node: &str, flights: &[Flight]) -> Result<(), StoreError>;

    /// Returns the traces of runs: for each run the nodes that dispatched it first, in the order they did.
    async fn flights_of(&self, runs: &[RunId]) -> Result<Vec<Flight>, StoreError>;

    // ── Alerts ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// Returns a page of alerts, the newest first.
    async fn alert_page(&self, filter: &AlertFilter, page: Page) -> Result<Paged<AlertRow>, StoreError>;

    /// Returns the number of alerts.
    async fn alert_count(&self, filter: &AlertFilter) -> Result<AlertCount, StoreError>;

    /// Returns the stored data of an alert that was taken for notification, by the id of [`engine::Alert`].
    async fn alert_to_tell(&self, alert: i64) -> Result<Option<AlertRow>, StoreError>;

    /// Stores the delivery results so far, after this many attempts; an empty list means that no recipient is
    /// configured.
    async fn note_told(&self, alert: i64, tries: u32, told: &[Delivery]) -> Result<(), StoreError>;

    // ── Users ───────────────────────────────────────────────────────────────────────────────────────────────────

    /// Returns users: by name for a [`Page::Offset`], by id for a [`Page::After`].
    async fn user_page(&self, filter: &UserFilter, page: Page) -> Result<Paged<User>, StoreError>;

    /// Returns one user.
    async fn user(&self, id: UserId) -> Result<Option<User>, StoreError>;

    /// Returns the user with this name.
    async fn user_by_name(&self, name: &str) -> Result<Option<User>, StoreError>;

    /// Adds a user with our hash of a password, which Java admins do not accept. A name that is taken is a
    /// [`StoreError::Conflict`].
    async fn create_user(&self, name: &str, hash: &str, access: &Access) -> Result<UserId, StoreError>;

    /// Adds an administrator if no user can sign in; returns whether it did. If several nodes try at once, one
    /// succeeds.
    async fn create_first_admin(&self, name: &str, hash: &str) -> Result<bool, StoreError>;

    /// Changes a user's rights, and ends the user's sessions if they differ; returns false if there is no such user.
    /// Removing the rights of the last administrator is a [`StoreError::Conflict`].
    async fn update_user(&self, id: UserId, access: &Access) -> Result<bool, StoreError>;

    /// Deletes a user with grants, sessions and API keys; returns false if there is none. Deleting the last
    /// administrator is a [`StoreError::Conflict`].
    async fn delete_user(&self, id: UserId) -> Result<bool, StoreError>;

    /// Changes a user's password, and ends all the user's sessions except the one with this digest; returns false if
    /// there is no such user. The password for Java admins does not change.
    async fn set_password_hash(
        &self,
        id: UserId,
        hash: &str,
        except: Option<&str>,
    ) -> Result<bool, StoreError>;

    /// Replaces XXL-JOB's hash by our hash of the same password; returns false if the stored hash is no longer
    /// `from`.
    async fn upgrade_password(&self, id: UserId, from: &str, hash: &str) -> Result<bool, StoreError>;

    /// Opens a session.
    async fn open_session(&self, session: &NewSession) -> Result<(), StoreError>;

    /// Returns the session with this digest and its user, unless it has expired, was idle for this long, or the user
    /// is disabled.
    async fn session(&self, digest: &str, idle: Duration) -> Result<Option<(UserSession, User)>, StoreError>;

    /// Returns the sessions of a user, the newest first.
    async fn sessions_of(&self, user: UserId) -> Result<Vec<UserSession>, StoreError>;

    /// Stores that a session is in use, at most once a minute.
    async fn touch_session(&self, digest: &str) -> Result<(), StoreError>;

    /// Ends a session; returns false if there is none.
    async fn end_session(&self, digest: &str) -> Result<bool, StoreError>;

    /// Ends the sessions of a user except the one with this digest; returns how many there were.
    async fn end_sessions_of(&self, user: UserId, except: Option<&str>) -> Result<u64, StoreError>;

    /// Deletes at most `max` sessions that have expired or were idle for this long; returns how many were deleted.
    async fn prune_sessions(&self, idle: Duration, max: usize) -> Result<usize, StoreError>;

    /// Adds an API key; returns its id.
    async fn add_api_key(&self, key: &NewApiKey) -> Result<i64, StoreError>;

    /// Returns the API keys of a user, or of all, including expired ones.
    async fn api_keys(&self, user: Option<UserId>) -> Result<Vec<ApiKey>, StoreError>;

    /// Returns the API key with this digest and its user, unless it has expired or the user is disabled.
    async fn api_key(&self, digest: &str) -> Result<Option<(ApiKey, User)>, StoreError>;

    /// Stores that an API key is in use, at most once a minute.
    async fn touch_api_key(&self, id: i64) -> Result<(), StoreError>;

    /// Deletes an API key; returns false if there is none.
    async fn delete_api_key(&self, id: i64) -> Result<bool, StoreError>;

    // ── Audit ───────────────────────────────────────────────────────────────────────────────────────────────────

    /// Appends entries to the chain, in their order; returns its new end.
    async fn append_audit(&self, entries: &[AuditEntry]) -> Result<AuditHead, StoreError>;

    /// Returns the end of the chain.
    async fn audit_head(&self) -> Result<AuditHead, StoreError>;

    /// Returns a page of entries, the newest first.
    async fn audit_page(&self, filter: &AuditFilter, page: Page) -> Result<Paged<AuditRecord>, StoreError>;

    /// Checks at most `max` records after the given one.
    async fn check_audit(&self, after: &AuditHead, max: usize) -> Result<AuditCheck, StoreError>;
}

#[async_trait]
impl<B: Backend> Registry for SqlStore<B> {
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

    async fn registry_state(&self) -> Result<(i64, Timestamp), StoreError> {
        transaction!(self, s => counters::read_with_time(s, counters::REGISTRY))
    }

    async fn publish_addresses(&self, lists: &[(AppId, Vec<String>)]) -> Result<usize, StoreError> {
        transaction!(self, s => apps::publish_addresses(s, &self.tables, lists))
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        transaction!(self, s => tokens::tokens(s))
    }

    async fn add_token(&self, token: &NewToken) -> Result<i64, StoreError> {
        transaction!(self, s => tokens::add_token(s, &self.tables, token))
    }
}

#[async_trait]
impl<B: Backend> Records for SqlStore<B> {
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

    async fn apps_of_runs(&self, runs: &[RunId]) -> Result<Vec<(RunId, AppId)>, StoreError> {
        transaction!(self, s => apps::apps_of_runs(s, runs))
    }

    async fn about(&self) -> Result<About, StoreError> {
        transaction!(self, s => about::about(s, &self.tables))
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

    async fn job_list(
        &self,
        filter: &JobFilter,
        order: JobOrder,
        after: Option<&JobMark>,
        limit: usize,
    ) -> Result<JobList, StoreError> {
        transaction!(self, s => job_list::job_list(s, &self.tables, filter, order, after, limit))
    }

    async fn job_rows(&self, jobs: &[JobId]) -> Result<Vec<JobRow>, StoreError> {
        let ids: Vec<i64> = jobs.iter().map(|job| job.0).collect();
        transaction!(self, s => job_rows::rows_of(s, &self.tables, &ids))
    }

    async fn job_names(&self, jobs: &[JobId]) -> Result<Vec<JobName>, StoreError> {
        transaction!(self, s => job_list::job_names(s, &self.tables, jobs))
    }

    async fn job_count(&self, filter: &JobFilter) -> Result<(u64, u64), StoreError> {
        transaction!(self, s => job_list::job_count(s, &self.tables, filter))
    }

    async fn jobs_by_app(&self) -> Result<BTreeMap<AppId, u64>, StoreError> {
        transaction!(self, s => job_list::jobs_by_app(s))
    }

    async fn misses(&self, job: JobId, page: Page) -> Result<Paged<HistoryEntry>, StoreError> {
        transaction!(self, s => misses::misses(s, job, page))
    }

    async fn run_tally(&self, filter: &RunFilter, max: usize) -> Result<RunTally, StoreError> {
        transaction!(self, s => run_rows::run_tally(s, &self.tables, filter, max))
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

    async fn report(
        &self,
        days: (Timestamp, Timestamp),
        apps: Option<&[AppId]>,
    ) -> Result<Vec<DayReport>, StoreError> {
        transaction!(self, s => reports::report(s, &self.tables, days, apps))
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

    async fn remark_script(&self, job: JobId, source: &str, remark: &str) -> Result<(), StoreError> {
        transaction!(self, s => scripts::remark_script(s, &self.tables, job, source, remark))
    }

    async fn keep_run_logs(&self, logs: &[(RunId, RunLog)]) -> Result<usize, StoreError> {
        transaction!(self, s => run_logs::keep_run_logs(s, logs))
    }

    async fn kept_run_log(&self, run: RunId) -> Result<Option<RunLog>, StoreError> {
        transaction!(self, s => run_logs::kept_run_log(s, run))
    }

    async fn keep_flights(&self, node: &str, flights: &[Flight]) -> Result<(), StoreError> {
        transaction!(self, s => flight_rows::keep_flights(s, node, flights))
    }

    async fn flights_of(&self, runs: &[RunId]) -> Result<Vec<Flight>, StoreError> {
        transaction!(self, s => flight_rows::flights_of(s, runs))
    }

    async fn alert_page(&self, filter: &AlertFilter, page: Page) -> Result<Paged<AlertRow>, StoreError> {
        transaction!(self, s => alert_rows::alert_page(s, filter, page))
    }

    async fn alert_count(&self, filter: &AlertFilter) -> Result<AlertCount, StoreError> {
        transaction!(self, s => alert_rows::alert_count(s, filter))
    }

    async fn alert_to_tell(&self, alert: i64) -> Result<Option<AlertRow>, StoreError> {
        transaction!(self, s => alert_rows::alert_to_tell(s, alert))
    }

    async fn note_told(&self, alert: i64, tries: u32, told: &[Delivery]) -> Result<(), StoreError> {
        transaction!(self, s => alert_rows::note_told(s, alert, tries, told))
    }

    async fn user_page(&self, filter: &UserFilter, page: Page) -> Result<Paged<User>, StoreError> {
        transaction!(self, s => users::user_page(s, filter, page))
    }

    async fn user(&self, id: UserId) -> Result<Option<User>, StoreError> {
        transaction!(self, s => users::user(s, id))
    }

    async fn user_by_name(&self, name: &str) -> Result<Option<User>, StoreError> {
        transaction!(self, s => users::user_by_name(s, name))
    }

    async fn create_user(&self, name: &str, hash: &str, access: &Access) -> Result<UserId, StoreError> {
        transaction!(self, s => users::create_user(s, &self.tables, name, hash, access))
    }

    async fn create_first_admin(&self, name: &str, hash: &str) -> Result<bool, StoreError> {
        transaction!(self, s => users::create_first_admin(s, &self.tables, name, hash))
    }

    async fn update_user(&self, id: UserId, access: &Access) -> Result<bool, StoreError> {
        transaction!(self, s => users::update_user(s, &self.tables, id, access))
    }

    async fn delete_user(&self, id: UserId) -> Result<bool, StoreError> {
        transaction!(self, s => users::delete_user(s, id))
    }

    async fn set_password_hash(
        &self,
        id: UserId,
        hash: &str,
        except: Option<&str>,
    ) -> Result<bool, StoreError> {
        transaction!(self, s => users::set_password_hash(s, &self.tables, id, hash, except))
    }

    async fn upgrade_password(&self, id: UserId, from: &str, hash: &str) -> Result<bool, StoreError> {
        transaction!(self, s => users::upgrade_password(s, &self.tables, id, from, hash))
    }

    async fn open_session(&self, session: &NewSession) -> Result<(), StoreError> {
        transaction!(self, s => sessions::open_session(s, &self.tables, session))
    }

    async fn session(&self, digest: &str, idle: Duration) -> Result<Option<(UserSession, User)>, StoreError> {
        transaction!(self, s => sessions::session(s, digest, idle))
    }

    async fn sessions_of(&self, user: UserId) -> Result<Vec<UserSession>, StoreError> {
        transaction!(self, s => sessions::sessions_of(s, user))
    }

    async fn touch_session(&self, digest: &str) -> Result<(), StoreError> {
        transaction!(self, s => sessions::touch_session(s, digest))
    }

    async fn end_session(&self, digest: &str) -> Result<bool, StoreError> {
        transaction!(self, s => sessions::end_session(s, digest))
    }

    async fn end_sessions_of(&self, user: UserId, except: Option<&str>) -> Result<u64, StoreError> {
        transaction!(self, s => sessions::end_sessions_of(s, user, except))
    }

    async fn prune_sessions(&self, idle: Duration, max: usize) -> Result<usize, StoreError> {
        transaction!(self, s => sessions::prune_sessions(s, idle, max))
    }

    async fn add_api_key(&self, key: &NewApiKey) -> Result<i64, StoreError> {
        transaction!(self, s => api_keys::add_api_key(s, &self.tables, key))
    }

    async fn api_keys(&self, user: Option<UserId>) -> Result<Vec<ApiKey>, StoreError> {
        transaction!(self, s => api_keys::api_keys(s, user))
    }

    async fn api_key(&self, digest: &str) -> Result<Option<(ApiKey, User)>, StoreError> {
        transaction!(self, s => api_keys::api_key(s, digest))
    }

    async fn touch_api_key(&self, id: i64) -> Result<(), StoreError> {
        transaction!(self, s => api_keys::touch_api_key(s, id))
    }

    async fn delete_api_key(&self, id: i64) -> Result<bool, StoreError> {
        transaction!(self, s => api_keys::delete_api_key(s, id))
    }

    async fn append_audit(&self, entries: &[AuditEntry]) -> Result<AuditHead, StoreError> {
        transaction!(self, s => audit::append_audit(s, entries))
    }

    async fn audit_head(&self) -> Result<AuditHead, StoreError> {
        transaction!(self, s => audit::audit_head(s))
    }

    async fn audit_page(&self, filter: &AuditFilter, page: Page) -> Result<Paged<AuditRecord>, StoreError> {
        transaction!(self, s => audit::audit_page(s, filter, page))
    }

    async fn check_audit(&self, after: &AuditHead, max: usize) -> Result<AuditCheck, StoreError> {
        transaction!(self, s => audit::check_audit(s, after, max))
    }
}
