//! Native API, `/v1`: used by the console, the command line and other programs.
//!
//! All paths are in one table ([`routes`]), each with its credentials, required right and object. The OpenAPI
//! document at `/v1/openapi.json` and the output of `tickwright routes` come from the same table. A handler makes
//! no access decisions: it receives an [`Authorised`](authorise::Authorised) object, and only [`authorise`] can
//! create one.

mod alerts;
mod apps;
mod audit;
mod authorise;
mod backfills;
mod batches;
mod call;
mod caller;
mod centre;
mod events;
mod history;
pub(super) mod job_body;
mod jobs;
mod keys;
mod language;
mod openapi;
mod problem;
mod reply;
mod route;
mod routes;
mod runs;
mod schedules;
mod secrets;
mod session;
mod state;
mod statistics;
mod timeline;
mod traces;
mod users;
mod work_calendars;
mod workflow_body;
mod workflow_definitions;
mod workflow_text;
mod workflow_versions;
mod workflows;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, State};
use axum::http::request::Parts;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use axum::routing::{MethodRouter, any, on};
use protocol::v1::ProblemCode;
use store::AuditEntry;

use super::browser;
use crate::centre::ServerState;
use crate::http::{self, BodyLimit, Caller as Origin, Holder, SLOT_WAIT};
use crate::request_error::RequestError;
use call::{Call, Query};
use caller::Caller;
use reply::Reply;
use route::{Plane, Route, Served};
use state::V1State;

pub use jobs::text_on_record;
pub use openapi::description as openapi;
pub use routes::{Described, described};
pub use workflow_body::problems as workflow_problems;

/// Routes of this API.
pub fn router(node: &ServerState) -> Router {
    let mut methods: BTreeMap<&str, MethodRouter<Arc<V1State>>> = BTreeMap::new();
    for route in routes::table() {
        let (path, filter) = (route.path, route.method.filter());
        let route = Arc::new(route);
        let serve = move |State(state): State<Arc<V1State>>, path: RawPathParams, request: Request<Body>| {
            let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            serve(state, route.clone(), path, request)
        };
        let before = methods.remove(path).unwrap_or_else(|| MethodRouter::new().fallback(wrong_method));
        methods.insert(path, before.merge(on(filter, serve)));
    }
    let router =
        methods.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    let router = router.route("/v1", any(no_such_path)).route("/v1/{*rest}", any(no_such_path));
    router.merge(openapi::pages()).with_state(Arc::new(V1State::of(node)))
}

async fn wrong_method() -> Response {
    let why = "the path does not support this method";
    answered("-", Err(RequestError::new(ProblemCode::WrongMethod, why)))
}

async fn no_such_path() -> Response {
    let why = "this path does not exist; /v1/docs lists all paths";
    answered("-", Err(RequestError::new(ProblemCode::NoSuchPath, why)))
}

/// Serves one request: authenticate, authorise, handle, audit.
async fn serve(
    state: Arc<V1State>,
    route: Arc<Route>,
    path: Vec<(String, String)>,
    request: Request<Body>,
) -> Response {
    let (head, body) = request.into_parts();
    let (origin, language) = (http::caller(&head), language::accepted(&head.headers));
    let who = match route.plane {
        // A client that signs in may still send an expired credential.
        Plane::Open => Ok(Caller::nobody()),
        Plane::Api | Plane::Person => Caller::recognise(&state, &head).await,
    };
    let object = path.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join("/");
    let (who, unknown) = match who {
        Ok(who) => (who, None),
        Err(refused) => (Caller::nobody(), Some(refused)),
    };
    let (name, known) = (who.principal.name.clone(), who.user.is_some());
    let admitted = match unknown {
        Some(refused) => Err(refused),
        None => admit(&state, &route, &who, &head, origin).await,
    };
    let read = match admitted {
        Ok(()) => read(&state, &route, who, head, path, body, origin).await,
        Err(refused) => Err(refused),
    };
    let handled = handle(state, route.clone(), read, object, Client { name, known, origin });
    // A change that has begun is completed and recorded, even if the client closes the connection meanwhile.
    let served = match route.method.changes() {
        true => tokio::spawn(handled)
            .await
            .unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic())),
        false => handled.await,
    };
    let is_localised = route.is_localised() && served.result.is_ok();
    let mut response = answered(route.path, served.result);
    if is_localised {
        language::name(response.headers_mut(), language);
    }
    response
}

/// The client of a request, for the audit log.
struct Client {
    name: String,
    /// Whether it is authenticated.
    known: bool,
    origin: Origin,
}

/// Handles a request that was read, and records it in the audit log.
async fn handle(
    state: Arc<V1State>,
    route: Arc<Route>,
    read: Result<Call, RequestError>,
    object: String,
    client: Client,
) -> Served {
    let served = match read {
        Ok(call) => (route.serve)(call).await,
        Err(refused) => Served { object, result: Err(refused) },
    };
    // Bodies cannot be shared between threads, so the audit entries are built before the next await.
    let Client { name, known, origin } = client;
    let entries = Record { principal: name, origin, route: &route, served: &served }.entries();
    match known || served.result.is_ok() {
        true => state.audit.record_all(&entries).await,
        // The number of audit entries about unauthenticated callers is limited.
        false => {
            for entry in entries {
                state.audit.refused(entry).await;
            }
        }
    }
    served
}

/// Checks rate limit, origin and credentials. Rights on the object are checked later.
async fn admit(
    state: &V1State,
    route: &Route,
    who: &Caller,
    head: &Parts,
    origin: Origin,
) -> Result<(), RequestError> {
    let now = state.clock.monotonic();
    // All sessions and API keys of a user share one rate limit.
    let turn = match &who.user {
        Some(user) => state.callers.turn(user.id, now),
        None => state.callers.turn(origin.ip, now),
    };
    match turn {
        Some(wait) => state.clock.sleep(wait).await,
        None => {
            let refused =
                RequestError::new(ProblemCode::TooManyRequests, "rate limit exceeded; retry after a second");
            return Err(refused.retry_after(std::time::Duration::from_secs(1)));
        }
    }
    if route.method.changes() {
        who.check_origin(head)?;
    }
    match route.plane {
        Plane::Open => Ok(()),
        _ if who.user.is_none() => {
            let why = "sign in with POST /v1/session, or send an API key as `Authorization: Bearer tw_…`";
            Err(RequestError::new(ProblemCode::NotSignedIn, why))
        }
        Plane::Person if who.session.is_none() => Err(RequestError::new(
            ProblemCode::NotAllowed,
            "this requires a session; API keys are not allowed",
        )),
        Plane::Person | Plane::Api => Ok(()),
    }
}

async fn read(
    state: &Arc<V1State>,
    route: &Route,
    who: Caller,
    head: Parts,
    path: Vec<(String, String)>,
    body: Body,
    origin: Origin,
) -> Result<Call, RequestError> {
    let query = Query::read(head.uri.query().unwrap_or_default(), route.query)?;
    let room = match &who.user {
        Some(user) => BodyLimit::Large(&state.body_slots, Holder::user(user)),
        None => BodyLimit::Small,
    };
    let body = http::body(body, route.body_max(), room).await.map_err(|code| match code {
        StatusCode::PAYLOAD_TOO_LARGE => RequestError::new(
            ProblemCode::TooLarge,
            format!("the body may have at most {} bytes", route.body_max()),
        ),
        StatusCode::TOO_MANY_REQUESTS => {
            let why = "too many large requests at once; retry in a few seconds";
            RequestError::new(ProblemCode::TooManyRequests, why).retry_after(SLOT_WAIT)
        }
        _ => RequestError::new(ProblemCode::MalformedRequest, "the body is incomplete"),
    })?;
    call::check_kind(&head, &body)?;
    Ok(Call { state: state.clone(), who, head, path, query, body, origin })
}

fn answered(request: &str, result: Result<Reply, RequestError>) -> Response {
    let mut response = match result {
        Ok(reply) => reply.into_response(),
        Err(refused) => problem::response(request, &refused),
    };
    let no_store = axum::http::HeaderValue::from_static("no-store");
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(no_store);
    browser::protect(response)
}

/// Audit record of a request.
struct Record<'a> {
    principal: String,
    origin: Origin,
    route: &'a Route,
    served: &'a Served,
}

impl Record<'_> {
    /// Records all changes, successful or not, and attempts to read objects that the caller may not see.
    fn is_kept(&self) -> bool {
        let refused = self.served.result.as_ref().err();
        let is = |code| refused.is_some_and(|refused| refused.code == code);
        match self.route.action {
            Some(_) => !is(ProblemCode::TooManyRequests),
            None => is(ProblemCode::NotAllowed) || refused.is_some_and(|refused| refused.hides),
        }
    }

    fn entries(&self) -> Vec<AuditEntry> {
        if !self.is_kept() {
            return Vec::new();
        }
        let entry = self.entry();
        let text = serde_json::Value::to_string;
        match &self.served.result {
            Ok(reply) if !reply.each.is_empty() => {
                let noted = |each: &reply::Noted| AuditEntry {
                    action: each.action.into(),
                    object: each.object.clone(),
                    result: each.result.clone(),
                    before: each.before.as_ref().map(text),
                    after: each.after.as_ref().map(text),
                    ..entry.clone()
                };
                let summary = reply.after.is_some().then(|| self.entry());
                summary.into_iter().chain(reply.each.iter().map(noted)).collect()
            }
            _ => vec![entry],
        }
    }

    fn entry(&self) -> AuditEntry {
        let text = serde_json::Value::to_string;
        let mut entry = AuditEntry {
            principal: self.principal.clone(),
            plane: "api".into(),
            ip: self.origin.ip.to_string(),
            action: self.route.action.unwrap_or(self.route.path).into(),
            object: self.served.object.clone(),
            ..AuditEntry::default()
        };
        match &self.served.result {
            Ok(reply) => {
                entry.result = "done".into();
                entry.before = reply.before.as_ref().map(text);
                entry.after = reply.after.as_ref().map(text);
                if let Some(object) = &reply.object {
                    entry.object.clone_from(object);
                }
                if let Some(by) = &reply.by {
                    entry.principal.clone_from(by);
                }
            }
            Err(refused) => {
                entry.result = format!("{}: {}", refused.code.word(), refused.detail());
                if let Some(object) = &refused.object {
                    entry.object.clone_from(object);
                }
            }
        }
        entry
    }
}
