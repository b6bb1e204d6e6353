//! Access control: whether a caller may perform an action on an object. Decided here, once, before any handler
//! runs.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::ops::Deref;

use engine::{AppId, Backfill, BackfillId, Job, JobId, RunId, Store as _};
use protocol::v1::ProblemCode;
use store::{ApiKey, App, Registry as _, Rights, RunRow, Token, User, UserId, UserSession};

use super::call::Call;
use super::route::Needs;
use crate::request_error::RequestError;

/// An object on which the caller may perform this action. Only [`admit`] creates one.
pub struct Authorised<O>(O);

impl<O> Deref for Authorised<O> {
    type Target = O;

    fn deref(&self) -> &O {
        &self.0
    }
}

impl<O> Authorised<O> {
    /// Returns the object.
    pub fn into_inner(self) -> O {
        self.0
    }
}

/// An object that a request refers to.
pub trait Object: Sized + Send + 'static {
    /// Name of this kind of object, for the table of routes.
    const KIND: &'static str;

    /// Finds the object that the request refers to, without checking rights.
    fn find(call: &Call) -> impl Future<Output = Result<Option<Self>, RequestError>> + Send;

    /// Owner of the object, against which rights are checked.
    fn owner(&self) -> Owner;

    /// Name of the object in the audit log.
    fn name(&self) -> String;

    /// Value given to the handler in place of an object that the caller may not see; by default the error.
    fn hidden(self, _: &Call, refused: RequestError) -> Result<Self, RequestError> {
        Err(refused)
    }

    /// Error for an object that does not exist, or that the caller may not see.
    fn missing() -> RequestError {
        RequestError::new(ProblemCode::NotFound, format!("this {} does not exist", Self::KIND))
    }
}

/// Owner of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// No owner, or `find` returns only objects of the caller.
    Nobody,
    /// Owned by an app.
    App(AppId),
    /// Owned by a user.
    User(UserId),
}

/// Finds the object of a request and checks that the caller may perform this action on it. An object that the
/// caller may not see gives the same error as one that does not exist.
pub async fn admit<O: Object>(call: &Call, needs: Needs) -> Result<Authorised<O>, RequestError> {
    // Checked before the lookup, so that other callers learn nothing about the object.
    if needs == Needs::Admin && !call.who.principal.is_admin() {
        return Err(RequestError::new(ProblemCode::NotAllowed, "only administrators may do this"));
    }
    let object = O::find(call).await?.ok_or_else(O::missing)?;
    match allow(call, &object, needs) {
        Ok(()) => Ok(Authorised(object)),
        Err(refused) if refused.hides => object.hidden(call, refused).map(Authorised),
        Err(refused) => Err(refused),
    }
}

fn allow<O: Object>(call: &Call, object: &O, needs: Needs) -> Result<(), RequestError> {
    let who = &call.who;
    match (needs, object.owner()) {
        (Needs::Right(right), Owner::App(app)) => {
            let rights = who.principal.rights(app);
            match () {
                () if !rights.contains(Rights::VIEW) => Err(O::missing().hiding(object.name())),
                () if !rights.contains(right) => Err(lacks(needs)),
                () => Ok(()),
            }
        }
        (Needs::Own, Owner::User(user)) => {
            let is_own = who.user.as_ref().is_some_and(|own| own.id == user);
            let is_seen = is_own || who.principal.is_admin();
            if is_seen { Ok(()) } else { Err(O::missing().hiding(object.name())) }
        }
        // Objects without an owner have no rights to check.
        _ => Ok(()),
    }
}

/// App named in a body, if the caller may do this in it.
pub async fn admit_app(call: &Call, name: &str, needs: Needs) -> Result<Authorised<App>, RequestError> {
    let found = call.state.database.app_by_name(name).await?;
    let app = AppInBody(found.ok_or_else(AppInBody::missing)?);
    allow(call, &app, needs)?;
    Ok(Authorised(app.0))
}

/// Error for a caller who may view the object, but lacks the right.
pub fn lacks(needs: Needs) -> RequestError {
    let why = format!("this requires the right to {} in this app", needs.word());
    RequestError::new(ProblemCode::NotAllowed, why)
}

// ── Objects ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// No object.
pub struct Nothing;

impl Object for Nothing {
    const KIND: &'static str = "-";

    async fn find(_: &Call) -> Result<Option<Nothing>, RequestError> {
        Ok(Some(Nothing))
    }

    fn owner(&self) -> Owner {
        Owner::Nobody
    }

    fn name(&self) -> String {
        String::new()
    }
}

/// Apps to include in a list: those that the caller may view, limited to the query parameter `app`.
pub struct Seen {
    /// `None` means all apps.
    pub apps: Option<Vec<AppId>>,
}

impl Object for Seen {
    const KIND: &'static str = "own apps";

    async fn find(call: &Call) -> Result<Option<Seen>, RequestError> {
        let Some(name) = call.query.text("app") else {
            return Ok(Some(Seen { apps: call.who.principal.apps() }));
        };
        let app = call.state.directory.app_named(name);
        let seen = app.filter(|app| call.who.principal.may(Rights::VIEW, *app));
        Ok(Some(Seen { apps: Some(seen.into_iter().collect()) }))
    }

    fn owner(&self) -> Owner {
        Owner::Nobody
    }

    fn name(&self) -> String {
        String::new()
    }
}

impl Object for App {
    const KIND: &'static str = "app";

    async fn find(call: &Call) -> Result<Option<App>, RequestError> {
        Ok(call.state.database.app_by_name(call.named("app")).await?)
    }

    fn owner(&self) -> Owner {
        Owner::App(self.id)
    }

    fn name(&self) -> String {
        format!("app:{}", self.spec.name)
    }
}

/// App named by the field `app` of the body.
pub struct AppInBody(pub App);

impl Object for AppInBody {
    const KIND: &'static str = "app in body";

    async fn find(call: &Call) -> Result<Option<AppInBody>, RequestError> {
        /// The handler parses the whole body, strictly.
        #[derive(serde::Deserialize)]
        struct Body {
            app: String,
        }
        let Body { app } = call.json()?;
        Ok(call.state.database.app_by_name(&app).await?.map(AppInBody))
    }

    fn owner(&self) -> Owner {
        self.0.owner()
    }

    fn name(&self) -> String {
        self.0.name()
    }

    fn missing() -> RequestError {
        RequestError::field("app", "this app does not exist")
    }
}

/// Token of an app.
pub struct AppToken {
    /// Owning app.
    pub app: App,
    /// The token itself.
    pub token: Token,
}

impl Object for AppToken {
    const KIND: &'static str = "token";

    async fn find(call: &Call) -> Result<Option<AppToken>, RequestError> {
        let Some(app) = App::find(call).await? else { return Ok(None) };
        let tokens = call.state.database.tokens().await?;
        let is_it = |token: &Token| token.app == Some(app.id) && token.id.to_string() == call.named("id");
        Ok(tokens.into_iter().find(is_it).map(|token| AppToken { app, token }))
    }

    fn owner(&self) -> Owner {
        Owner::App(self.app.id)
    }

    fn name(&self) -> String {
        format!("app:{} token:{}", self.app.spec.name, self.token.id)
    }
}

impl Object for Job {
    const KIND: &'static str = "job";

    async fn find(call: &Call) -> Result<Option<Job>, RequestError> {
        find_job(call, call.named("job")).await
    }

    fn owner(&self) -> Owner {
        Owner::App(self.spec.app)
    }

    fn name(&self) -> String {
        job_name(self.id)
    }
}

/// Name of a job in the audit log.
pub fn job_name(job: JobId) -> String {
    format!("job:{job}")
}

/// Finds a job by key, or by id after `id:`.
pub async fn find_job(call: &Call, name: &str) -> Result<Option<Job>, RequestError> {
    Ok(match name.strip_prefix(BY_NUMBER).map(str::parse) {
        Some(Ok(id)) => call.state.database.job(JobId(id)).await?,
        Some(Err(_)) => None,
        None => call.state.database.job_by_key(name).await?,
    })
}

/// Finds jobs by the same names. A name without a job is left out.
pub async fn find_jobs<'a>(
    call: &Call,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<BTreeMap<String, Job>, RequestError> {
    let database = &call.state.database;
    let (mut ids, mut keys) = (BTreeSet::new(), BTreeSet::new());
    for name in names {
        match name.strip_prefix(BY_NUMBER).map(str::parse) {
            Some(Ok(id)) => drop(ids.insert(JobId(id))),
            Some(Err(_)) => {}
            None => drop(keys.insert(name)),
        }
    }
    let mut jobs = BTreeMap::new();
    for keys in keys.into_iter().collect::<Vec<_>>().chunks(READ_MAX) {
        let rows = database.job_rows_by_key(keys).await?;
        jobs.extend(rows.into_iter().map(|row| (row.job.spec.key.clone().unwrap_or_default(), row.job)));
    }
    for ids in ids.into_iter().collect::<Vec<_>>().chunks(READ_MAX) {
        let rows = database.job_rows(ids).await?;
        jobs.extend(rows.into_iter().map(|row| (format!("{BY_NUMBER}{}", row.job.id), row.job)));
    }
    Ok(jobs)
}

/// Name of a job in a list of children, in which an id may stand without its prefix.
pub fn child_name(child: &str) -> String {
    let number = child.strip_prefix(BY_NUMBER).unwrap_or(child);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse::<i64>() {
        Ok(id) if is_number => format!("{BY_NUMBER}{id}"),
        _ => child.to_owned(),
    }
}

/// Jobs read from the database at a time.
pub const READ_MAX: usize = 500;

/// Prefix of a job id in places that otherwise hold a key.
pub const BY_NUMBER: &str = "id:";

/// Target of a PUT: it may exist already.
pub enum PutTarget<O> {
    /// It exists.
    Taken(O),
    /// It does not exist; holds the name of the new object.
    Free(String),
    /// It exists under this name, but the caller may not see it. The handler returns the error only after all
    /// checks for a free name have passed, so that the two cases cannot be distinguished.
    Hidden(String, RequestError),
}

impl<O: Object> Object for PutTarget<O>
where
    O: Named,
{
    const KIND: &'static str = O::KIND;

    async fn find(call: &Call) -> Result<Option<PutTarget<O>>, RequestError> {
        Ok(match O::find(call).await? {
            Some(object) => Some(PutTarget::Taken(object)),
            None => O::may_be_named(call.named(O::PARAMETER)).map(|name| PutTarget::Free(name.into())),
        })
    }

    fn owner(&self) -> Owner {
        match self {
            PutTarget::Taken(object) => object.owner(),
            PutTarget::Free(_) | PutTarget::Hidden(..) => Owner::Nobody,
        }
    }

    fn name(&self) -> String {
        match self {
            PutTarget::Taken(object) => object.name(),
            PutTarget::Free(name) | PutTarget::Hidden(name, _) => format!("{}:{name}", O::KIND),
        }
    }

    fn hidden(self, call: &Call, refused: RequestError) -> Result<PutTarget<O>, RequestError> {
        match O::may_be_named(call.named(O::PARAMETER)) {
            Some(name) => Ok(PutTarget::Hidden(name.into(), refused)),
            None => Err(refused),
        }
    }
}

/// An object that can be created under a name given in the path.
pub trait Named {
    /// Path parameter that holds the name.
    const PARAMETER: &'static str;

    /// Returns the name if a new object may have it.
    fn may_be_named(name: &str) -> Option<&str>;
}

impl Named for Job {
    const PARAMETER: &'static str = "job";

    fn may_be_named(name: &str) -> Option<&str> {
        // Job ids are assigned, not chosen.
        (!name.starts_with(BY_NUMBER)).then_some(name)
    }
}

impl Named for App {
    const PARAMETER: &'static str = "app";

    fn may_be_named(name: &str) -> Option<&str> {
        Some(name)
    }
}

impl Named for User {
    const PARAMETER: &'static str = "name";

    fn may_be_named(name: &str) -> Option<&str> {
        Some(name)
    }
}

impl Object for RunRow {
    const KIND: &'static str = "run";

    async fn find(call: &Call) -> Result<Option<RunRow>, RequestError> {
        let Ok(id) = call.named("run").parse() else { return Ok(None) };
        Ok(call.state.database.run(RunId(id)).await?)
    }

    fn owner(&self) -> Owner {
        Owner::App(self.app)
    }

    fn name(&self) -> String {
        format!("run:{}", self.id)
    }
}

/// A backfill of a job that exists.
pub struct JobBackfill {
    /// The backfill itself.
    pub backfill: Backfill,
    app: AppId,
}

impl Object for JobBackfill {
    const KIND: &'static str = "backfill";

    async fn find(call: &Call) -> Result<Option<JobBackfill>, RequestError> {
        let Ok(id) = call.named("backfill").parse() else { return Ok(None) };
        let Some(backfill) = call.state.database.backfill(BackfillId(id)).await? else { return Ok(None) };
        let job = call.state.database.job(backfill.job).await?;
        Ok(job.map(|job| JobBackfill { backfill, app: job.spec.app }))
    }

    fn owner(&self) -> Owner {
        Owner::App(self.app)
    }

    fn name(&self) -> String {
        format!("backfill:{}", self.backfill.id)
    }
}

impl Object for User {
    const KIND: &'static str = "user";

    async fn find(call: &Call) -> Result<Option<User>, RequestError> {
        Ok(call.state.database.user_by_name(call.named("name")).await?)
    }

    fn owner(&self) -> Owner {
        Owner::User(self.id)
    }

    fn name(&self) -> String {
        format!("user:{}", self.name)
    }
}

impl Object for ApiKey {
    const KIND: &'static str = "key";

    async fn find(call: &Call) -> Result<Option<ApiKey>, RequestError> {
        let keys = call.state.database.api_keys(None).await?;
        Ok(keys.into_iter().find(|key| key.id.to_string() == call.named("id")))
    }

    fn owner(&self) -> Owner {
        Owner::User(self.spec.user)
    }

    fn name(&self) -> String {
        format!("key:{}", self.id)
    }
}

impl Object for UserSession {
    const KIND: &'static str = "session";

    /// Searches only the caller's own sessions: even an administrator cannot see those of others.
    async fn find(call: &Call) -> Result<Option<UserSession>, RequestError> {
        let Some(user) = &call.who.user else { return Ok(None) };
        let sessions = call.state.database.sessions_of(user.id).await?;
        Ok(sessions.into_iter().find(|session| session_name(&session.digest) == call.named("id")))
    }

    fn owner(&self) -> Owner {
        Owner::User(self.user)
    }

    fn name(&self) -> String {
        format!("session:{}", session_name(&self.digest))
    }
}

/// Public id of a session: a prefix of its digest, so that the id does not reveal the whole digest.
pub fn session_name(digest: &str) -> &str {
    digest.get(..16).unwrap_or(digest)
}
