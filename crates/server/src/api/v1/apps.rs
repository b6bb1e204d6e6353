//! `/v1/apps`: apps, their executors and their tokens.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use engine::AppId;
use protocol::v1::{
    Addressing, AppBody, AppView, Event, ExecutorCheck, ExecutorState, ExecutorView, GoneExecutor, NewToken,
    ProblemCode, TokenView,
};
use serde_json::json;
use store::{Addresses, App, AppSpec, Registry as _, Token};

use super::authorise::{AppToken, Authorised, PutTarget, Seen};
use super::call::{Call, instant};
use super::reply::Reply;
use super::session::rights_view;
use crate::apps::{check_addresses, check_name};
use crate::executors::{Sighting, generate};
use crate::outbound::{Address, Calls};
use crate::request_error::RequestError;

pub async fn list(call: Call, seen: Authorised<Seen>) -> Result<Reply, RequestError> {
    let jobs = call.state.database.jobs_by_app().await?;
    let mut apps = call.state.database.apps().await?;
    apps.retain(|app| seen.apps.as_ref().is_none_or(|seen| seen.contains(&app.id)));
    Ok(Reply::json(&apps.into_iter().map(|app| view(&call, app, &jobs)).collect::<Vec<_>>()))
}

pub async fn show(call: Call, app: Authorised<App>) -> Result<Reply, RequestError> {
    let jobs = call.state.database.jobs_by_app().await?;
    Ok(Reply::json(&view(&call, app.into_inner(), &jobs)))
}

pub async fn put(call: Call, target: Authorised<PutTarget<App>>) -> Result<Reply, RequestError> {
    let AppBody { title, addressing } = call.json()?;
    if title.trim().is_empty() {
        return Err(RequestError::field("title", "must not be empty"));
    }
    let addresses = match addressing {
        Addressing::Registered => Addresses::Registered,
        Addressing::Manual { addresses } => {
            check_addresses(&call.state.outbound, &addresses).await?;
            Addresses::Manual(addresses)
        }
    };
    let database = &call.state.database;
    let (before, name) = match target.into_inner() {
        PutTarget::Taken(app) => (Some(app.clone()), app.spec.name),
        PutTarget::Free(name) => (None, name),
        PutTarget::Hidden(_, refused) => return Err(refused),
    };
    let spec = AppSpec { name, title, addresses };
    match &before {
        Some(app) => drop(database.update_app(app.id, &spec).await?),
        None => {
            check_name(&spec.name)?;
            database.create_app(&spec).await?;
        }
    }
    call.state.registrar.load().await?;
    call.state.hints.announce(Event::Executors);
    let gone = || RequestError::new(ProblemCode::NotFound, "the app was deleted in the meantime");
    let app = database.app_by_name(&spec.name).await?.ok_or_else(gone)?;
    let status = if before.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    let changed = (before.map(|app| written(&app)), Some(written(&app)));
    let reply = Reply::json(&view(&call, app, &database.jobs_by_app().await?));
    Ok(reply.status(status).changed(changed.0, changed.1))
}

pub async fn delete(call: Call, app: Authorised<App>) -> Result<Reply, RequestError> {
    call.state.database.delete_app(app.id).await?;
    call.state.registrar.load().await?;
    call.state.hints.announce(Event::Executors);
    Ok(Reply::done().changed(Some(written(&app)), None))
}

/// Definition of an app as stored in the audit log.
fn written(app: &App) -> serde_json::Value {
    let body = AppBody { title: app.spec.title.clone(), addressing: addressing(&app.spec) };
    serde_json::to_value(body).expect("API types have text keys")
}

fn addressing(spec: &AppSpec) -> Addressing {
    match &spec.addresses {
        Addresses::Registered => Addressing::Registered,
        Addresses::Manual(addresses) => Addressing::Manual { addresses: addresses.clone() },
    }
}

fn view(call: &Call, app: App, jobs: &BTreeMap<AppId, u64>) -> AppView {
    let executors = call.state.directory.sightings(app.id).into_iter().map(|seen| executor(call, seen));
    let gone = call.state.directory.gone(app.id);
    AppView {
        id: app.id.0,
        body: AppBody { addressing: addressing(&app.spec), title: app.spec.title },
        name: app.spec.name,
        executors: executors.collect(),
        gone: gone.into_iter().map(|(address, at)| GoneExecutor { address, seen_at: instant(at) }).collect(),
        jobs: jobs.get(&app.id).copied().unwrap_or(0),
        rights: rights_view(call.who.principal.rights(app.id)),
    }
}

fn executor(call: &Call, seen: Sighting) -> ExecutorView {
    ExecutorView {
        handlers: handlers(call, &seen),
        address: seen.address,
        state: if seen.suspect_since.is_some() { ExecutorState::Suspect } else { ExecutorState::Alive },
        seen_at: seen.seen_at.map(instant),
        suspect_since: seen.suspect_since.map(instant),
        trouble: seen.trouble,
    }
}

/// Handlers that an executor registered, plus those that were called on it.
fn handlers(call: &Call, seen: &Sighting) -> Vec<String> {
    let called = call.state.traces.handlers_at(&seen.address);
    seen.handlers.iter().cloned().chain(called).collect::<BTreeSet<_>>().into_iter().collect()
}

// ── Tokens ──────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn tokens(call: Call, app: Authorised<App>) -> Result<Reply, RequestError> {
    let now = call.state.engine.now();
    let counts = |token: &Token| token.app == Some(app.id) && token.expires_at.is_none_or(|at| at > now);
    let tokens = call.state.database.tokens().await?;
    let view = |token: Token| TokenView {
        id: token.id,
        created_at: Some(instant(token.created_at)),
        expires_at: token.expires_at.map(instant),
    };
    Ok(Reply::json(&tokens.into_iter().filter(counts).map(view).collect::<Vec<_>>()))
}

pub async fn add_token(call: Call, app: Authorised<App>) -> Result<Reply, RequestError> {
    let token = generate();
    let id = call.state.registrar.add_token(app.id, &token).await?;
    let reply = Reply::json(&NewToken { id, token }).status(StatusCode::CREATED);
    Ok(reply.changed(None, Some(json!({ "token": id }))))
}

pub async fn end_token(call: Call, found: Authorised<AppToken>) -> Result<Reply, RequestError> {
    call.state.database.expire_token(found.token.id, call.state.engine.now()).await?;
    call.state.registrar.load().await?;
    Ok(Reply::done().changed(Some(json!({ "token": found.token.id })), None))
}

// ── Executors ───────────────────────────────────────────────────────────────────────────────────────────────────

/// Sends a heartbeat request to an executor. Only executors of this app are accepted, because the request carries
/// the app's token.
pub async fn check(call: Call, app: Authorised<App>) -> Result<Reply, RequestError> {
    let ExecutorCheck { address } = call.json()?;
    let named = call.jobs().live_addresses(app.id, [address.as_str()])?;
    let written = named.first().map_or("", String::as_str);
    Address::parse(written).map_err(|error| RequestError::field("address", error.to_string()))?;
    let to = call.state.directory.destination(app.id).and_then(|to| to.callee(written));
    let callee =
        to.ok_or_else(|| RequestError::new(ProblemCode::NotFound, "the executor is no longer registered"))?;
    match call.state.outbound.beat(&callee).await {
        Ok(()) => call.state.directory.trust(written),
        Err(error) => call.state.registrar.suspect(written, error.trouble()),
    }
    call.state.hints.announce(Event::Executors);
    let seen = call.state.directory.sightings(app.id).into_iter().find(|seen| seen.address == written);
    let gone = || RequestError::new(ProblemCode::NotFound, "the executor is no longer registered");
    Ok(Reply::json(&executor(&call, seen.ok_or_else(gone)?)))
}
