//! What the scheduling centre remembers beside jobs and runs: apps and their executors, tokens and settings, the past as
//! people look through it, and the people themselves.
//!
//! As with [`engine::Store`], each method is one transaction, and its steps are written once over a `Session`. XXL-JOB's
//! words for these things stop in the files of this folder.

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

/// A database with all that the scheduling centre remembers.
pub trait Database: Store + Records {}

impl<T: Store + Records> Database for T {}

/// The apps and their executors, as a node needs them to find whom a run can be sent to.
#[async_trait]
pub trait Registry: Send + Sync {
    /// All apps, by name.
    async fn apps(&self) -> Result<Vec<App>, StoreError>;

    /// Notes that executors are there; says of each whether that is new, as it is of one that was not seen for longer than
    /// `silent_max`. Apps need not exist.
    async fn register(&self, beats: &[Beat], silent_max: Duration) -> Result<Vec<Noted>, StoreError>;

    /// Notes that an executor has left; false if it was not there.
    async fn unregister(&self, app: &str, address: &str) -> Result<bool, StoreError>;

    /// The executors that have said so after that instant, by app and address.
    async fn registrations(&self, seen_after: Timestamp) -> Result<Vec<Registered>, StoreError>;

    /// Notes which handlers an executor says it has; says whether that is new. One that is not registered says nothing.
    async fn note_handlers(&self, executor: &Registration, handlers: &[String]) -> Result<bool, StoreError>;

    /// The handlers of all executors that have said so.
    async fn handlers(&self) -> Result<BTreeMap<Registration, Vec<String>>, StoreError>;

    /// Deletes at most `max` executors that were last seen before that instant; returns how many there were.
    async fn forget_registrations(&self, before: Timestamp, max: usize) -> Result<usize, StoreError>;

    /// A number that grows whenever an executor is new or gone, or an app or token is changed through us, in the same
    /// transaction; not when an executor is merely seen again. What Java admins change does not raise it.
    async fn registry_revision(&self) -> Result<i64, StoreError>;

    /// The same number, and the database's time.
    async fn registry_state(&self) -> Result<(i64, Timestamp), StoreError>;

    /// Tells Java admins which executors are there, for apps whose executors register: writes the lists that differ
    /// from what is stored, and returns how many did.
    async fn publish_addresses(&self, lists: &[(AppId, Vec<String>)]) -> Result<usize, StoreError>;

    /// All tokens, also those that have expired.
    async fn tokens(&self) -> Result<Vec<Token>, StoreError>;

    /// Adds a token; returns its number.
    async fn add_token(&self, token: &NewToken) -> Result<i64, StoreError>;
}

/// What the centre remembers beside jobs and runs. Instants that are not given are the database's now.
#[async_trait]
pub trait Records: Registry {
    // ── Apps and their executors ────────────────────────────────────────────────────────────────────────────────

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

    /// The apps that runs belong to; runs that never were are left out.
    async fn apps_of_runs(&self, runs: &[RunId]) -> Result<Vec<(RunId, AppId)>, StoreError>;

    /// What database this is.
    async fn about(&self) -> Result<About, StoreError>;

    // ── Tokens and settings ─────────────────────────────────────────────────────────────────────────────────────

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

    /// Jobs in some order, after where a page ended.
    async fn job_list(
        &self,
        filter: &JobFilter,
        order: JobOrder,
        after: Option<&JobMark>,
        limit: usize,
    ) -> Result<JobList, StoreError>;

    /// Some jobs, in the order they are named; those that do not exist are left out.
    async fn job_rows(&self, jobs: &[JobId]) -> Result<Vec<JobRow>, StoreError>;

    /// What jobs are called, in any order; those that do not exist are left out.
    async fn job_names(&self, jobs: &[JobId]) -> Result<Vec<JobName>, StoreError>;

    /// How many jobs there are, and how many of them are started.
    async fn job_count(&self, filter: &JobFilter) -> Result<(u64, u64), StoreError>;

    /// How many jobs each app has; apps without any are left out.
    async fn jobs_by_app(&self) -> Result<BTreeMap<AppId, u64>, StoreError>;

    /// Instants of a job that were not sent, the newest first.
    async fn misses(&self, job: JobId, page: Page) -> Result<Paged<HistoryEntry>, StoreError>;

    /// Runs, the newest first: by their numbers, or by their instants where the filter names some. Reads a bounded
    /// number of rows, however many there are.
    async fn run_page(&self, filter: &RunFilter, page: Page) -> Result<Paged<RunRow>, StoreError>;

    /// How many runs came to what, if there are at most `max`; otherwise it says that there are more.
    async fn run_tally(&self, filter: &RunFilter, max: usize) -> Result<RunTally, StoreError>;

    /// One run.
    async fn run(&self, id: RunId) -> Result<Option<RunRow>, StoreError>;

    /// Deletes at most `max` runs that are over, with their logs; returns how many there were.
    async fn clear_runs(&self, clearing: &Clearing, max: usize) -> Result<usize, StoreError>;

    /// Counts the runs of the day of that instant, unless the day is over and all its runs were when last counted;
    /// says whether the counts are other than before.
    async fn refresh_report(&self, within: Timestamp) -> Result<bool, StoreError>;

    /// The counts of the days from the one of that instant to that of the other, where there are any: of all runs, or of
    /// those of some apps, for days that were counted here.
    async fn report(
        &self,
        days: (Timestamp, Timestamp),
        apps: Option<&[AppId]>,
    ) -> Result<Vec<DayReport>, StoreError>;

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

    /// Says what is new about a script that was saved without a word; nothing where the job has another by now.
    async fn remark_script(&self, job: JobId, source: &str, remark: &str) -> Result<(), StoreError>;

    /// Keeps the logs of runs, each in place of what was kept; returns how many of the runs there are.
    async fn keep_run_logs(&self, logs: &[(RunId, RunLog)]) -> Result<usize, StoreError>;

    /// What is kept of a run's log.
    async fn kept_run_log(&self, run: RunId) -> Result<Option<RunLog>, StoreError>;

    /// Writes down what a node knows of runs' ways; what it knew before and does not know any more stays.
    async fn keep_flights(&self, node: &str, flights: &[Flight]) -> Result<(), StoreError>;

    /// What nodes know of runs' ways: of each run the senders first, in the order they sent it.
    async fn flights_of(&self, runs: &[RunId]) -> Result<Vec<Flight>, StoreError>;

    // ── Alerts ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// Alerts, the newest first.
    async fn alert_page(&self, filter: &AlertFilter, page: Page) -> Result<Paged<AlertRow>, StoreError>;

    /// How many alerts there are.
    async fn alert_count(&self, filter: &AlertFilter) -> Result<AlertCount, StoreError>;

    /// What is remembered of an alert that was taken to be told, by the number of [`engine::Alert`].
    async fn alert_to_tell(&self, alert: i64) -> Result<Option<AlertRow>, StoreError>;

    /// Writes down who was told of it so far, or could not be, after so many tries; nobody at all, if there is nobody.
    async fn note_told(&self, alert: i64, tries: u32, told: &[Delivery]) -> Result<(), StoreError>;

    // ── People ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// Users: by name for a [`Page::Offset`], by number for a [`Page::After`].
    async fn user_page(&self, filter: &UserFilter, page: Page) -> Result<Paged<User>, StoreError>;

    /// One user.
    async fn user(&self, id: UserId) -> Result<Option<User>, StoreError>;

    /// The user who signs in with that name.
    async fn user_by_name(&self, name: &str) -> Result<Option<User>, StoreError>;

    /// Adds a user with our hash of a password, which Java admins do not accept. A name that is taken is a
    /// [`StoreError::Conflict`].
    async fn create_user(&self, name: &str, hash: &str, access: &Access) -> Result<UserId, StoreError>;

    /// Adds a user who may do everything, if there is nobody who could sign in; says whether it did. Of several nodes
    /// that try at once, one does.
    async fn create_first_admin(&self, name: &str, hash: &str) -> Result<bool, StoreError>;

    /// Changes what a user may do, and ends the user's sessions if that is something else; false if there is no such
    /// user. To take everything from the last administrator is a [`StoreError::Conflict`].
    async fn update_user(&self, id: UserId, access: &Access) -> Result<bool, StoreError>;

    /// Deletes a user with grants, sessions and API keys; false if there is none. The last administrator is a
    /// [`StoreError::Conflict`].
    async fn delete_user(&self, id: UserId) -> Result<bool, StoreError>;

    /// Gives a user another password, and ends all the user's sessions but the one of that digest; false if there is no
    /// such user. The password that Java admins know stays.
    async fn set_password_hash(
        &self,
        id: UserId,
        hash: &str,
        except: Option<&str>,
    ) -> Result<bool, StoreError>;

    /// Puts our hash of the same password in the place of XXL-JOB's; false if that is not `from` any more.
    async fn upgrade_password(&self, id: UserId, from: &str, hash: &str) -> Result<bool, StoreError>;

    /// Opens a session.
    async fn open_session(&self, session: &NewSession) -> Result<(), StoreError>;

    /// The session of that digest and its user, unless it has expired, was idle for that long, or the user is disabled.
    async fn session(&self, digest: &str, idle: Duration) -> Result<Option<(UserSession, User)>, StoreError>;

    /// The sessions of a user, the newest first.
    async fn sessions_of(&self, user: UserId) -> Result<Vec<UserSession>, StoreError>;

    /// Notes that a session is in use, at most once a minute.
    async fn touch_session(&self, digest: &str) -> Result<(), StoreError>;

    /// Ends a session; false if there is none.
    async fn end_session(&self, digest: &str) -> Result<bool, StoreError>;

    /// Ends the sessions of a user but the one of that digest; returns how many there were.
    async fn end_sessions_of(&self, user: UserId, except: Option<&str>) -> Result<u64, StoreError>;

    /// Deletes at most `max` sessions that have expired or were idle for that long; returns how many there were.
    async fn prune_sessions(&self, idle: Duration, max: usize) -> Result<usize, StoreError>;

    /// Adds an API key; returns its number.
    async fn add_api_key(&self, key: &NewApiKey) -> Result<i64, StoreError>;

    /// The API keys of a user, or of all, also those that have expired.
    async fn api_keys(&self, user: Option<UserId>) -> Result<Vec<ApiKey>, StoreError>;

    /// The API key of that digest and its user, unless it has expired or the user is disabled.
    async fn api_key(&self, digest: &str) -> Result<Option<(ApiKey, User)>, StoreError>;

    /// Notes that an API key is in use, at most once a minute.
    async fn touch_api_key(&self, id: i64) -> Result<(), StoreError>;

    /// Deletes an API key; false if there is none.
    async fn delete_api_key(&self, id: i64) -> Result<bool, StoreError>;

    // ── Audit ───────────────────────────────────────────────────────────────────────────────────────────────────

    /// Adds entries to the chain, in their order; returns its new end.
    async fn append_audit(&self, entries: &[AuditEntry]) -> Result<AuditHead, StoreError>;

    /// The end of the chain.
    async fn audit_head(&self) -> Result<AuditHead, StoreError>;

    /// Entries, the newest first.
    async fn audit_page(&self, filter: &AuditFilter, page: Page) -> Result<Paged<AuditRecord>, StoreError>;

    /// Checks at most `max` records after that one.
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
