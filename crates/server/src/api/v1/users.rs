//! `/v1/users`: user accounts, for administrators only.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use engine::AppId;
use protocol::v1::{Grant, ProblemCode, Right, UserBody, UserView};
use serde_json::json;
use store::{Access, Registry as _, Rights, User, UserFilter};

use super::authorise::{Authorised, Nothing, PutTarget};
use super::call::{Call, instant, page};
use super::reply::Reply;
use super::session::{rights_of, rights_view};
use crate::request_error::RequestError;

pub async fn list(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let filter = UserFilter { name: call.query.text("text").unwrap_or_default().into(), admin: None };
    let found = call.state.database.user_page(&filter, call.query.page()?).await?;
    let names = call.state.directory.names();
    Ok(Reply::json(&page(found, |user| view(user, &names))))
}

pub async fn show(call: Call, user: Authorised<User>) -> Result<Reply, RequestError> {
    Ok(Reply::json(&view(user.into_inner(), &call.state.directory.names())))
}

pub async fn put(call: Call, target: Authorised<PutTarget<User>>) -> Result<Reply, RequestError> {
    let body: UserBody = call.json()?;
    let access = access(&call, &body).await?;
    let users = &call.state.users;
    let names = call.state.directory.names();
    let (before, name) = match target.into_inner() {
        PutTarget::Free(name) => {
            let needs = || RequestError::field("password", "a new user needs a password");
            users.add(&name, body.password.as_deref().ok_or_else(needs)?, &access).await?;
            (None, name)
        }
        PutTarget::Hidden(_, refused) => return Err(refused),
        PutTarget::Taken(user) => {
            refuse_own(&call, &user)?;
            users.change(user.id, body.password.as_deref(), &access).await?;
            (Some(written(&user, &names)), user.name)
        }
    };
    let gone = || RequestError::new(ProblemCode::NotFound, "the user was deleted in the meantime");
    let user = call.state.database.user_by_name(name.trim()).await?.ok_or_else(gone)?;
    let status = if before.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    let mut after = written(&user, &names);
    after["new_password"] = body.password.is_some().into();
    Ok(Reply::json(&view(user, &names)).status(status).changed(before, Some(after)))
}

pub async fn delete(call: Call, user: Authorised<User>) -> Result<Reply, RequestError> {
    refuse_own(&call, &user)?;
    call.state.users.delete(user.id).await?;
    Ok(Reply::done().changed(Some(written(&user, &call.state.directory.names())), None))
}

/// Rejects a change of the caller's own account, so that administrators cannot lock themselves out.
fn refuse_own(call: &Call, user: &User) -> Result<(), RequestError> {
    match call.who.user.as_ref().is_some_and(|own| own.id == user.id) {
        true => Err(RequestError::new(
            ProblemCode::Conflict,
            "your own account can only be changed by another administrator",
        )),
        false => Ok(()),
    }
}

async fn access(call: &Call, body: &UserBody) -> Result<Access, RequestError> {
    let apps = call.state.database.apps().await?;
    let mut grants = BTreeMap::new();
    for Grant { app: name, rights } in &body.grants {
        let app = apps.iter().find(|app| app.spec.name == *name);
        let none = || RequestError::field("grants", format!("the app `{name}` does not exist"));
        let rights = rights_of(rights);
        let id = app.ok_or_else(none)?.id;
        if rights != Rights::NONE {
            // Every other right includes the right to view.
            grants.insert(id, rights.with(Rights::VIEW));
        }
    }
    Ok(Access { admin: body.admin, disabled: body.disabled, grants })
}

fn view(user: User, names: &[(AppId, String)]) -> UserView {
    UserView {
        id: user.id.0,
        admin: user.access.admin,
        disabled: user.access.disabled,
        grants: grants(&user.access, names),
        changed_at: user.changed_at.map(instant),
        name: user.name,
    }
}

fn grants(access: &Access, names: &[(AppId, String)]) -> Vec<Grant> {
    let grant = |(app, rights): (&AppId, &Rights)| {
        let (_, name) = names.iter().find(|(id, _)| id == app)?;
        let rights: Vec<Right> = rights_view(*rights);
        Some(Grant { app: name.clone(), rights })
    };
    access.grants.iter().filter_map(grant).collect()
}

/// Rights of a user as stored in the audit log.
fn written(user: &User, names: &[(AppId, String)]) -> serde_json::Value {
    let Access { admin, disabled, .. } = user.access;
    json!({ "admin": admin, "disabled": disabled, "grants": grants(&user.access, names) })
}
