//! `/v1/keys`: API keys, with which programs act on behalf of a user.

use axum::http::StatusCode;
use engine::AppId;
use protocol::v1::{ApiKeyBody, ApiKeyView, NewApiKey, ProblemCode};
use store::{ApiKey, Rights, User, UserId};
use timer::Timestamp;

use super::authorise::{Authorised, Nothing};
use super::call::{Call, instant};
use super::caller::KEY_PREFIX;
use super::reply::Reply;
use super::session::{rights_of, rights_view};
use crate::executors::{fingerprint, generate};
use crate::request_error::RequestError;

/// Lists the caller's keys; an administrator sees all keys.
pub async fn list(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let me = me(&call)?;
    let whose = (!call.who.principal.is_admin()).then_some(me.id);
    let keys = call.state.database.api_keys(whose).await?;
    let apps = call.state.directory.names();
    let mut views = Vec::with_capacity(keys.len());
    for key in keys {
        let user = owner(&call, me, key.spec.user).await?;
        views.push(view(key, user, &apps));
    }
    Ok(Reply::json(&views))
}

async fn owner(call: &Call, me: &User, id: UserId) -> Result<String, RequestError> {
    if id == me.id {
        return Ok(me.name.clone());
    }
    Ok(call.state.database.user(id).await?.map(|user| user.name).unwrap_or_default())
}

fn view(key: ApiKey, user: String, apps: &[(AppId, String)]) -> ApiKeyView {
    let name = |id: &AppId| apps.iter().find(|(app, _)| app == id).map(|(_, name)| name.clone());
    let body = ApiKeyBody {
        name: key.spec.name,
        apps: key.spec.apps.map(|apps| apps.iter().filter_map(name).collect()),
        rights: rights_view(key.spec.rights),
        expires_at: key.spec.expires_at.map(instant),
    };
    let (created_at, used_at) = (instant(key.created_at), key.used_at.map(instant));
    ApiKeyView { id: key.id, user, body, created_at, used_at }
}

/// Creates a key. Its rights never exceed those of its owner, also when the owner loses rights later.
pub async fn create(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let body: ApiKeyBody = call.json()?;
    let me = me(&call)?;
    if body.name.trim().is_empty() {
        return Err(RequestError::field("name", "must not be empty"));
    }
    if call.state.database.api_keys(Some(me.id)).await?.len() >= KEYS_MAX {
        return Err(RequestError::new(
            ProblemCode::Conflict,
            format!("a user has at most {KEYS_MAX} keys; delete some"),
        ));
    }
    let apps = body.apps.as_ref().map(|names| apps(&call, names)).transpose()?;
    let secret = format!("{KEY_PREFIX}{}", generate());
    let key = store::NewApiKey {
        user: me.id,
        name: body.name.trim().into(),
        digest: fingerprint(&secret),
        apps,
        // Without this right, a key could not even see the objects that it works on.
        rights: rights_of(&body.rights).with(Rights::VIEW),
        expires_at: body.expires_at.map(|at| Timestamp::from_millis(at.millis())),
    };
    let id = call.state.database.add_api_key(&key).await?;
    let after = serde_json::to_value(&body).expect("API types have text keys");
    let reply = Reply::json(&NewApiKey { id, key: secret }).status(StatusCode::CREATED);
    Ok(reply.about(format!("key:{id}")).changed(None, Some(after)))
}

/// Resolves the apps that a key is limited to. The caller must be able to view each.
fn apps(call: &Call, names: &[String]) -> Result<Vec<AppId>, RequestError> {
    let find = |name: &String| {
        let app = call.state.directory.app_named(name);
        let seen = app.filter(|app| call.who.principal.may(Rights::VIEW, *app));
        seen.ok_or_else(|| RequestError::field("apps", format!("the app `{name}` does not exist")))
    };
    names.iter().map(find).collect()
}

pub async fn delete(call: Call, key: Authorised<ApiKey>) -> Result<Reply, RequestError> {
    call.state.users.delete_key(key.id).await?;
    let before = view(key.into_inner(), String::new(), &call.state.directory.names()).body;
    Ok(Reply::done().changed(Some(serde_json::to_value(before).expect("API types have text keys")), None))
}

fn me(call: &Call) -> Result<&User, RequestError> {
    call.who.user.as_ref().ok_or_else(|| RequestError::new(ProblemCode::NotSignedIn, "sign in first"))
}

/// Per user: more than anyone can keep track of.
const KEYS_MAX: usize = 100;
