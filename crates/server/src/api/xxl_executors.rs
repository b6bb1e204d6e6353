//! Executor API: XXL-JOB's `/api/registry`, `/api/registryRemove` and `/api/callback`, for all protocol versions.
//! Requests that declare or manage jobs also arrive here, and are passed on.
//!
//! There are many different clients, so requests are parsed leniently: any content type, any case of headers, any
//! of the known body formats. Every rejection is an HTTP 200 with a code and a text, because clients expect that.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Router, extract::Path};
use engine::{AppId, Engine, Outcome, RunId, StoreError};
use futures_util::future::join_all;
use protocol::declare::DECLARE;
use protocol::v1::ProblemCode;
use protocol::xxl::{self, Answer, CallbackItem, MalformedItem, Registry, texts};
use store::{Database, Registration};
use timer::Clock;

use super::browser;
use super::declarations::Declarer;
use super::job_calls::is_job_call;
use super::xxl_error;
use crate::audit::{self, Audit};
use crate::centre::ServerState;
use crate::executors::{Directory, Registrar, Scope, Tokens, fingerprint};
use crate::http::{self, BodyLimit, BodySlots, Holder, SLOT_WAIT};
use crate::jobs::JobRules;
use crate::outbound::{Address, Outbound, TriggerPath};
use crate::rate::Rates;
use crate::request_error::RequestError;
use crate::runs::TraceRecorder;
use crate::settings::DeclaredJobs;
use crate::users::Principal;

/// Parts of a node that this API uses.
pub(super) struct ExecutorState {
    pub(super) database: Arc<Database>,
    pub(super) engine: Engine,
    pub(super) directory: Arc<Directory>,
    pub(super) registrar: Arc<Registrar>,
    pub(super) tokens: Arc<Tokens>,
    pub(super) outbound: Outbound,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) audit: Arc<Audit>,
    pub(super) traces: Arc<TraceRecorder>,
    pub(super) body_slots: Arc<BodySlots>,
    pub(super) jobs: JobRules,
    /// Which programs may declare jobs.
    pub(super) declared_jobs: DeclaredJobs,
    /// Rate limit of calls that manage jobs, per app.
    pub(super) job_calls: Rates,
}

/// Job management calls per second and app: same as XXL-JOB.
const JOB_CALLS: u32 = 100;

/// Routes of this API.
pub fn router(node: &ServerState) -> Router {
    let state = ExecutorState {
        database: node.database.clone(),
        engine: node.engine.clone(),
        directory: node.directory.clone(),
        registrar: node.registrar.clone(),
        tokens: node.tokens.clone(),
        outbound: node.outbound.clone(),
        clock: node.clock.clone(),
        audit: node.audit.clone(),
        traces: node.traces.clone(),
        body_slots: node.body_slots.clone(),
        jobs: JobRules::of(node),
        declared_jobs: node.declared_jobs,
        job_calls: Rates::per_second(JOB_CALLS),
    };
    Router::new()
        .route("/api", any(nothing_named))
        .route("/api/", any(nothing_named))
        .route("/api/{name}", any(call))
        .with_state(Arc::new(state))
}

async fn nothing_named() -> Response {
    json(&Answer::fail(texts::NO_URI))
}

async fn call(
    State(state): State<Arc<ExecutorState>>,
    Path(name): Path<String>,
    request: Request<Body>,
) -> Response {
    let (head, body) = request.into_parts();
    // Executors are not browsers. A page could make a browser send requests to a node that requires no token.
    if browser::is_from_page(&head) {
        let (from, why) = (http::caller(&head).ip, "this API is for executors, not for web pages");
        state.audit.refused(audit::entry("executor", "", from, format!("/api/{name}"), why)).await;
        return (StatusCode::FORBIDDEN, why).into_response();
    }
    if head.method != Method::POST {
        return json(&Answer::fail(texts::NOT_POST));
    }
    let said_app = header(&head.headers, xxl::APP_HEADER);
    let scope = state.admit(&head.headers, said_app);
    let room = match scope {
        Some(scope) => BodyLimit::Large(&state.body_slots, Holder::executor(scope, http::caller(&head).ip)),
        None => BodyLimit::Small,
    };
    let is_too_large = body.size_hint().lower() > xxl::BODY_MAX as u64;
    let body = match http::body(body, xxl::BODY_MAX, room).await {
        Ok(body) => body,
        // This caller is rejected in any case, so the rest of the body is not read.
        Err(StatusCode::PAYLOAD_TOO_LARGE) if scope.is_none() && !is_too_large => {
            let denied = state.denied(&head.headers, said_app);
            return json(&state.refuse(&name, &head, &denied).await);
        }
        Err(code) => return rejection(code),
    };
    if body.is_empty() {
        return json(&Answer::fail(texts::NO_BODY));
    }
    if http::is_too_deep(&body) {
        return json(&Answer::fail("the body is nested too deeply"));
    }
    json(&state.answer(&name, &head, &body).await)
}

impl ExecutorState {
    async fn answer(&self, name: &str, head: &Parts, body: &[u8]) -> Answer {
        match self.serve(name, head, body).await {
            Ok(answer) => answer,
            Err(error) => self.refuse(name, head, &error).await,
        }
    }

    async fn serve(&self, name: &str, head: &Parts, body: &[u8]) -> Result<Answer, RequestError> {
        let said_app = header(&head.headers, xxl::APP_HEADER);
        let admitted =
            || self.admit(&head.headers, said_app).ok_or_else(|| self.denied(&head.headers, said_app));
        match name {
            "registry" => self.register(said_app, head, body).await?,
            "registryRemove" => self.unregister(said_app, head, body).await?,
            "callback" => self.take_reports(admitted()?, head, body).await?,
            DECLARE => {
                let scope = admitted()?;
                let app = said_app.ok_or_else(|| RequestError::malformed(texts::NO_TOKEN_OR_APP))?;
                return self
                    .answer_declaration(Declarer { scope, app, ip: http::caller(head).ip }, body)
                    .await;
            }
            name if is_job_call(name) => {
                return self.answer_job_call(name, admitted()?, http::caller(head).ip, body).await;
            }
            unknown => {
                admitted()?;
                return Err(RequestError::new(ProblemCode::NoSuchPath, texts::unknown_uri(unknown)));
            }
        }
        Ok(Answer::ok())
    }

    /// Waits until the rate limit of calls that manage jobs allows one more.
    pub(super) async fn wait_for_turn(&self, scope: Scope, from: IpAddr) -> Result<(), RequestError> {
        match self.job_calls.turn(Holder::executor(scope, from), self.clock.monotonic()) {
            Some(wait) => {
                self.clock.sleep(wait).await;
                Ok(())
            }
            None => Err(RequestError::new(ProblemCode::TooManyRequests, texts::TOO_MANY_REQUESTS)),
        }
    }

    /// Answer to a call that failed, which is logged here. Rejected credentials are audited.
    async fn refuse(&self, name: &str, head: &Parts, error: &RequestError) -> Answer {
        let action = format!("/api/{name}");
        error.log(&action);
        let message = xxl_error::text(error);
        if error.code == ProblemCode::NotSignedIn {
            let said_app = header(&head.headers, xxl::APP_HEADER).unwrap_or_default();
            let from = http::caller(head).ip;
            self.audit.refused(audit::entry("executor", said_app, from, action, message.as_str())).await;
        }
        match (error.code, is_job_call(name)) {
            (ProblemCode::TooManyRequests, true) => Answer { code: TOO_MANY, ..Answer::fail(message) },
            (_, true) => Answer::fail(message),
            (ProblemCode::TooManyRequests, false) => Answer::later(message),
            (_, false) if error.store_error().is_some() => Answer::later(NOT_STORED),
            (_, false) => Answer::fail(message),
        }
    }

    /// Scope of the caller's token; `None` if the token is wrong, or there are two. `app` is the app that the
    /// caller names.
    fn admit(&self, headers: &HeaderMap, app: Option<&str>) -> Option<Scope> {
        let mut tokens = headers.get_all(xxl::TOKEN_HEADER).iter();
        let token = match (tokens.next(), tokens.next()) {
            (None, _) => None,
            (Some(token), None) => Some(token.to_str().ok()?),
            (Some(_), Some(_)) => return None,
        };
        match app.map(|name| self.directory.app_named(name)) {
            None => self.tokens.admit(token, None),
            Some(Some(app)) => self.tokens.admit(token, Some(app)),
            // An app that does not exist yet has no token of its own, so another app's token is not valid for it.
            Some(None) => self.tokens.admit(token, None).filter(|scope| !matches!(scope, Scope::App(_))),
        }
    }

    /// Response to a caller that is not admitted to an app. A caller with a valid token of another app learns that the
    /// app does not exist; all others get one response, which discloses no names of apps.
    fn denied(&self, headers: &HeaderMap, app: Option<&str>) -> RequestError {
        match app.filter(|name| self.directory.app_named(name).is_none()) {
            Some(unknown) if matches!(self.admit(headers, None), Some(Scope::App(_))) => {
                RequestError::new(ProblemCode::NotSignedIn, unknown_app(unknown))
            }
            _ => wrong_token(),
        }
    }

    /// Principal for a caller with this scope, as the job rules need it.
    pub(super) fn principal(&self, scope: Scope) -> Principal {
        let apps = match scope {
            Scope::Every => None,
            Scope::App(app) | Scope::Anonymous(Some(app)) => Some(vec![app]),
            Scope::Anonymous(None) => {
                let names = self.directory.names().into_iter();
                Some(names.map(|(app, _)| app).filter(|app| self.tokens.needs_none(*app)).collect())
            }
        };
        Principal::executor(scope, apps)
    }

    async fn register(&self, said_app: Option<&str>, head: &Parts, body: &[u8]) -> Result<(), RequestError> {
        let registration = self.registration(said_app, head, body)?;
        let rejected = |reason: String| {
            let Registration { app, address } = &registration;
            tracing::warn!(app, address, reason, "executor rejected; it is not registered");
            RequestError::invalid(reason)
        };
        let address = Address::parse(&registration.address).map_err(|error| rejected(error.to_string()))?;
        self.outbound.vet_ip(&address).map_err(|error| rejected(error.to_string()))?;
        self.registrar.register(registration, token_known(&head.headers)).await?;
        // Executors that name their app support the path of the newest protocol version.
        if said_app.is_some() {
            self.outbound.learn(&address, TriggerPath::Trigger);
        }
        Ok(())
    }

    async fn unregister(
        &self,
        said_app: Option<&str>,
        head: &Parts,
        body: &[u8],
    ) -> Result<(), RequestError> {
        let registration = self.registration(said_app, head, body)?;
        Ok(self.registrar.unregister(&registration).await?)
    }

    fn registration(
        &self,
        said_app: Option<&str>,
        head: &Parts,
        body: &[u8],
    ) -> Result<Registration, RequestError> {
        let registry = Registry::read(body).map_err(unreadable_body)?;
        let app = registry.registry_key.trim();
        if self.admit(&head.headers, Some(app)).is_none() {
            return Err(self.denied(&head.headers, Some(app)));
        }
        if said_app.is_some_and(|said| said != app) {
            return Err(wrong_token());
        }
        if !registry.is_complete() {
            return Err(RequestError::invalid(texts::ILLEGAL_ARGUMENT));
        }
        Ok(Registration { app: app.into(), address: registry.registry_value.trim().into() })
    }

    /// Stores results; they are durable before the response is sent. Results that can never be stored (unknown
    /// run, second result) are acknowledged too, because many clients would otherwise report a failure in their
    /// place.
    async fn take_reports(&self, scope: Scope, head: &Parts, body: &[u8]) -> Result<(), RequestError> {
        let mut items = xxl::each_callback(body).map_err(unreadable_body)?;
        if items.len() > REPORTS_MAX {
            return Err(RequestError::invalid(format!("a request may have at most {REPORTS_MAX} results")));
        }
        let (mut unread, mut foreign) = (0, Foreign::default());
        while items.len() > 0 {
            let mut reports = Vec::new();
            for item in items.by_ref().take(REPORTS_AT_ONCE) {
                match item {
                    Ok(item) => reports.push(item),
                    Err(malformed) => {
                        if unread == 0 {
                            tracing::warn!(index = malformed.index, run = ?malformed.log_id, reason = malformed.reason, "failed to read a result; its run fails, or the result is dropped if it names no run");
                        }
                        unread += 1;
                        reports.extend(unreadable(malformed));
                    }
                }
            }
            if let Err(error) = self.write_reports(scope, reports, &mut foreign).await {
                self.record_foreign(scope, head, &foreign).await;
                return Err(error.into());
            }
        }
        self.record_foreign(scope, head, &foreign).await;
        if unread > 1 {
            tracing::warn!(unread, "failed to read more results of the same request; their runs fail");
        }
        match is_anonymous(scope) && foreign.first.is_some() {
            // The caller keeps its results until it sends the token of their app.
            true => Err(wrong_token()),
            false => Ok(()),
        }
    }

    /// Records that a request had results for runs of other apps: one audit entry, however many there were.
    async fn record_foreign(&self, scope: Scope, head: &Parts, foreign: &Foreign) {
        // Requests rejected for a missing token are already recorded as such.
        let Some(first) = foreign.first.filter(|_| !is_anonymous(scope)) else { return };
        let result = match foreign.count {
            1 => "not stored: the run belongs to another app".to_owned(),
            count => format!("not stored: this and {} more runs belong to another app", count - 1),
        };
        let who = self.principal(scope).name;
        let mut entry = audit::entry("executor", &who, http::caller(head).ip, "/api/callback", result);
        entry.object = format!("run:{first}");
        self.audit.foreign_results(entry).await;
    }

    /// Stores the results of runs in the caller's scope, and counts the others.
    async fn write_reports(
        &self,
        scope: Scope,
        mut reports: Vec<CallbackItem>,
        foreign: &mut Foreign,
    ) -> Result<(), StoreError> {
        if scope != Scope::Every {
            let owners = self.apps_of(&reports).await?;
            // Without a token the app of the run decides, not the app that the caller names.
            let scope = if is_anonymous(scope) { Scope::Anonymous(None) } else { scope };
            reports.retain(|item| {
                let covers = owners.get(&RunId(item.log_id)).map(|app| self.tokens.covers(scope, *app));
                if covers == Some(false) {
                    foreign.add(RunId(item.log_id));
                }
                covers == Some(true)
            });
            let now = self.clock.now();
            for (run, app) in reports.iter().filter_map(|item| owners.get_key_value(&RunId(item.log_id))) {
                self.traces.belongs(*run, *app, now);
            }
        }
        let written = join_all(reports.into_iter().map(|item| {
            let message = item.handle_msg.map(|message| self.tokens.secrets.mask(message));
            let (run, outcome) = outcome_of(CallbackItem { handle_msg: message, ..item });
            self.engine.report(run, outcome)
        }));
        match written.await.into_iter().find_map(|result| result.err().filter(StoreError::is_transient)) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Apps of the reported runs. The database is asked only about runs that this node did not send.
    async fn apps_of(&self, reports: &[CallbackItem]) -> Result<HashMap<RunId, AppId>, StoreError> {
        let runs = reports.iter().map(|item| RunId(item.log_id));
        let mut apps = self.traces.apps_of(runs.clone());
        let unknown: Vec<RunId> = runs.filter(|run| !apps.contains_key(run)).collect();
        if !unknown.is_empty() {
            apps.extend(self.database.apps_of_runs(&unknown).await?);
        }
        Ok(apps)
    }
}

fn is_anonymous(scope: Scope) -> bool {
    matches!(scope, Scope::Anonymous(_))
}

/// Results for runs of other apps in one request.
#[derive(Default)]
struct Foreign {
    first: Option<RunId>,
    count: usize,
}

impl Foreign {
    fn add(&mut self, run: RunId) {
        self.first.get_or_insert(run);
        self.count += 1;
    }
}

/// Results per request. An executor that was offline for long sends many; a body with more than this cannot be
/// legitimate, because the body limit leaves too few bytes for each.
const REPORTS_MAX: usize = 100_000;

/// Results written at a time: as many as one transaction takes, to limit memory.
const REPORTS_AT_ONCE: usize = 1_000;

fn outcome_of(item: CallbackItem) -> (RunId, Outcome) {
    let message = item.handle_msg.unwrap_or_default();
    let outcome = match i32::try_from(item.handle_code) {
        Ok(xxl::CODE_OK) => Outcome::Succeeded(message),
        Ok(xxl::CODE_TIMEOUT) => Outcome::TimedOut(message),
        Ok(xxl::CODE_FAIL) => Outcome::Failed(message),
        Ok(code) if code > 0 => Outcome::FailedWith(code, message),
        // XXL-JOB's column cannot hold the code, or would treat it as unfinished.
        _ => Outcome::Failed(format!("code {}: {message}", item.handle_code)),
    };
    (RunId(item.log_id), outcome)
}

/// Result for a run with an unreadable report. The run is finished all the same.
fn unreadable(item: MalformedItem) -> Option<CallbackItem> {
    Some(CallbackItem {
        log_id: item.log_id?,
        log_date_time: 0,
        handle_code: xxl::CODE_FAIL.into(),
        handle_msg: Some(format!("the executor reported an invalid result: {}", item.reason)),
    })
}

/// Digest of the token that the caller sent: it knows this token, and expects it in requests from the node.
fn token_known(headers: &HeaderMap) -> Option<String> {
    header(headers, xxl::TOKEN_HEADER).map(fingerprint)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|value| !value.is_empty())
}

fn unknown_app(app: &str) -> String {
    let shown: String = app.chars().take(APP_SHOWN).collect();
    format!("the app `{shown}` does not exist; add it with: tickwright app add {shown}")
}

/// Longer than any name of an app.
const APP_SHOWN: usize = 100;

fn wrong_token() -> RequestError {
    RequestError::new(ProblemCode::NotSignedIn, texts::WRONG_TOKEN)
}

/// The body of a call cannot be parsed.
pub(super) fn unreadable_body(error: impl std::fmt::Display) -> RequestError {
    RequestError::malformed(texts::invoke_error(error))
}

/// Answer to executors if the store fails for any reason: they retry.
const NOT_STORED: &str = "not stored: the database does not respond; retry";

/// XXL-JOB's code for a rate-limited program that manages jobs.
const TOO_MANY: i32 = 502;

fn json(answer: &Answer) -> Response {
    let mut response = Response::new(Body::from(answer.to_json()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn rejection(code: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    if code == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(header::RETRY_AFTER, SLOT_WAIT.as_secs().into());
    }
    response
}
