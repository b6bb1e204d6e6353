//! Web API of XXL-JOB's admin, for scripts and tools that sign in.
//!
//! Every path accepts GET and POST alike (except sign in and sign out), reads parameters from the query, a form or
//! a multipart body, and ignores unknown ones, because existing clients rely on that. Requests from pages of other
//! sites are rejected, and a browser cannot change anything with GET, because GET does not show which page sent
//! it. All paths are in one table, with the required role.

mod apps;
mod chart;
mod dialect;
mod jobs;
mod record;
mod request;
mod routes;
mod runs;
mod sign_in;
mod time;
mod users;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use cron::Zone;
use engine::{Engine, StoreError};
use protocol::v1::ProblemCode;
use protocol::xxl::{self, Fields};
use serde_json::Value;
use store::Database;
use timer::Clock;

use super::browser;
use crate::audit::Audit;
use crate::centre::ServerState;
use crate::executors::{Directory, Registrar};
use crate::http::{self, BodyLimit, BodySlots, Holder, SLOT_WAIT};
use crate::jobs::JobRules;
use crate::outbound::Outbound;
use crate::rate::Rates;
use crate::request_error::RequestError;
use crate::runs::log::LogReader;
use crate::users::{Principal, SignedIn, Users};
use dialect::Dialect;
use record::entry;
use request::Cookie;
use routes::{Call, Needs, ROUTES, Route};
pub use routes::{Described, described};

/// Parts of a node that this API uses.
struct WebState {
    database: Arc<Database>,
    engine: Engine,
    directory: Arc<Directory>,
    registrar: Arc<Registrar>,
    outbound: Outbound,
    users: Arc<Users>,
    audit: Arc<Audit>,
    body_slots: Arc<BodySlots>,
    clock: Arc<dyn Clock>,
    /// Rate limit per user.
    callers: Arc<Rates>,
    jobs: JobRules,
    logs: LogReader,
    /// Time zone of times in requests and responses.
    zone: Zone,
}

/// Routes of this API.
pub fn router(node: &ServerState) -> Router {
    let state = WebState {
        database: node.database.clone(),
        engine: node.engine.clone(),
        directory: node.directory.clone(),
        registrar: node.registrar.clone(),
        outbound: node.outbound.clone(),
        users: node.users.clone(),
        audit: node.audit.clone(),
        body_slots: node.body_slots.clone(),
        clock: node.clock.clone(),
        callers: node.callers.clone(),
        jobs: JobRules::of(node),
        logs: LogReader::of(node),
        zone: node.zone.clone(),
    };
    let router = ROUTES.iter().fold(Router::new(), |router, route| {
        let serve =
            move |State(state): State<Arc<WebState>>, request: Request<Body>| serve(state, *route, request);
        let method = if route.call.posts() { post(serve) } else { any(serve) };
        router.route(route.path, method)
    });
    router.with_state(Arc::new(state))
}

async fn serve(state: Arc<WebState>, route: Route, request: Request<Body>) -> Response {
    let (head, body) = request.into_parts();
    let caller = http::caller(&head);
    if browser::is_cross_site(&head) {
        let why = "requests from other sites are not allowed";
        state.audit.refused(entry("", caller.ip, route, why)).await;
        return (StatusCode::FORBIDDEN, why).into_response();
    }
    if route.call.changes() && head.method != Method::POST && browser::is_browser(&head) {
        let why = "browsers may change something with POST only";
        state.audit.refused(entry("", caller.ip, route, why)).await;
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "POST")], why).into_response();
    }
    let cookies = request::cookies(&head.headers);
    let signed_in = who(&state, &cookies).await;
    // All sessions and API keys of a user share one rate limit, in all APIs.
    let now = state.clock.monotonic();
    let turn = match &signed_in {
        Ok(Some(signed_in)) => state.callers.turn(signed_in.user.id, now),
        _ => state.callers.turn(caller.ip, now),
    };
    match turn {
        Some(wait) => state.clock.sleep(wait).await,
        None => return too_many_requests(Duration::from_secs(1)),
    }
    let room = match &signed_in {
        Ok(Some(signed_in)) => BodyLimit::Large(&state.body_slots, Holder::user(&signed_in.user)),
        _ => BodyLimit::Small,
    };
    let body = match http::body(body, xxl::BODY_MAX, room).await {
        Ok(body) => body,
        Err(StatusCode::TOO_MANY_REQUESTS) => return too_many_requests(SLOT_WAIT),
        Err(code) => return code.into_response(),
    };
    let fields = request::fields(&head, &body);
    let dialect = Dialect::of(route, cookies.first().map(|cookie| cookie.login), &fields);
    if route.call == Call::SignInPage {
        return sign_in::page();
    }
    if route.call == Call::SignIn {
        return sign_in::sign_in(&state, route, dialect, &head, &fields).await;
    }
    let visit = match signed_in {
        Ok(Some(signed_in)) => {
            let who = Principal::person(&signed_in.user);
            Visit { state: &state, route, signed_in, who, fields, dialect, from: caller.ip }
        }
        Ok(None) => {
            if route.call.changes() {
                state.audit.refused(entry("", caller.ip, route, "not signed in")).await;
            }
            return dialect.not_signed_in(&head);
        }
        Err(error) => return dialect.refused(route.path, &error.into()),
    };
    let before = visit.before().await;
    let result = visit.answer().await;
    visit.remember(&result, before).await;
    match result {
        Ok(_) if route.call == Call::SignOut => sign_in::signed_out(dialect, caller.secure),
        Ok(Reply::Done(payload)) => dialect.done(payload),
        Ok(Reply::Page(rows, total)) => dialect.page(rows, total),
        Ok(Reply::Cleared { more: None, .. }) => dialect.done(Value::Null),
        Ok(Reply::Cleared { more: Some(why), .. }) => dialect.refused(route.path, &why),
        Err(error) => dialect.refused(route.path, &error),
    }
}

fn too_many_requests(wait: Duration) -> Response {
    let retry = [(header::RETRY_AFTER, HeaderValue::from(wait.as_secs()))];
    (StatusCode::TOO_MANY_REQUESTS, retry).into_response()
}

/// Session of the first valid cookie. There may be others of the same name, set by a Java admin.
async fn who(state: &WebState, cookies: &[Cookie]) -> Result<Option<SignedIn>, StoreError> {
    for cookie in cookies {
        if let Some(signed_in) = state.users.session(&cookie.value).await? {
            return Ok(Some(signed_in));
        }
    }
    Ok(None)
}

/// Successful result of a request.
enum Reply {
    Done(Value),
    /// One page of rows, and the total number of rows.
    Page(Vec<Value>, u64),
    /// Runs were deleted.
    Cleared {
        /// Content of the audit record.
        record: Value,
        /// Set if there are more runs to delete than one request may.
        more: Option<RequestError>,
    },
}

/// A request of a signed-in user.
struct Visit<'a> {
    state: &'a WebState,
    route: Route,
    signed_in: SignedIn,
    who: Principal,
    fields: Fields,
    dialect: Dialect,
    from: IpAddr,
}

impl Visit<'_> {
    async fn answer(&self) -> Result<Reply, RequestError> {
        if self.route.call.needs() == Needs::Admin && !self.who.is_admin() {
            return Err(RequestError::new(ProblemCode::NotAllowed, "only administrators may do this"));
        }
        match self.route.call {
            Call::SignInPage | Call::SignIn => Ok(Reply::Done(Value::Null)),
            Call::SignOut => self.sign_out().await,
            Call::ChangePassword => self.change_password().await,
            Call::JobPage => self.job_page().await,
            Call::AddJob => self.add_job().await,
            Call::UpdateJob => self.update_job().await,
            Call::RemoveJob => self.remove_job().await,
            Call::StartJob => self.start_job().await,
            Call::StopJob => self.stop_job().await,
            Call::TriggerJob => self.trigger_job().await,
            Call::Preview => self.preview(),
            Call::SaveScript => self.save_script().await,
            Call::AppPage => self.app_page().await,
            Call::AddApp => self.add_app().await,
            Call::UpdateApp => self.update_app().await,
            Call::RemoveApp => self.remove_app().await,
            Call::LoadApp => self.load_app().await,
            Call::RunPage => self.run_page().await,
            Call::RunLog => self.run_log().await,
            Call::KillRun => self.kill_run().await,
            Call::ClearRuns => self.clear_runs().await,
            Call::JobsOfApp => self.jobs_of_app().await,
            Call::UserPage => self.user_page().await,
            Call::AddUser => self.add_user().await,
            Call::UpdateUser => self.update_user().await,
            Call::RemoveUser => self.remove_user().await,
            Call::Chart => self.chart().await,
        }
    }

    /// Id in the request: `id`, or the only one of `ids[]`.
    fn id(&self) -> Result<i64, RequestError> {
        if let Some(id) = self.fields.number("id")? {
            return Ok(id);
        }
        let mut ids = self.fields.all("ids[]").chain(self.fields.all("ids"));
        match (ids.next(), ids.next()) {
            (Some(id), None) => {
                let id = id.trim().parse();
                id.map_err(|_| RequestError::invalid("ids[]: must be an integer"))
            }
            _ => Err(RequestError::invalid("id: enter exactly one id")),
        }
    }

    /// Requested page of a list.
    fn page(&self) -> Result<store::Page, RequestError> {
        let number = |old: &str, new: &str| -> Result<Option<i64>, RequestError> {
            Ok(self.fields.number(old)?.or(self.fields.number(new)?))
        };
        let offset = number("start", "offset")?.unwrap_or(0).max(0).unsigned_abs();
        let limit = match number("length", "pagesize")? {
            None => PAGE,
            Some(all) if all <= 0 => store::Page::MAX,
            Some(limit) => usize::try_from(limit).unwrap_or(store::Page::MAX),
        };
        Ok(store::Page::Offset { offset, limit: limit.min(store::Page::MAX) })
    }
}

/// XXL-JOB's default page size.
const PAGE: usize = 10;

/// Converts results to rows of a response.
fn rows<T: serde::Serialize>(found: impl IntoIterator<Item = T>) -> Vec<Value> {
    found.into_iter().map(value).collect()
}

fn value(view: impl serde::Serialize) -> Value {
    serde_json::to_value(view).expect("API types have text keys")
}
