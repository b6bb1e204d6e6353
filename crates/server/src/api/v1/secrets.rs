//! `/v1/apps/{app}/secrets`: secrets that steps of workflows name. No answer contains a value.

use protocol::v1::{SecretBody, SecretView};
use serde_json::json;
use store::{App, Registry as _, StoredSecret};
use timer::Timestamp;

use super::authorise::Authorised;
use super::call::{Call, instant};
use super::reply::Reply;
use crate::request_error::RequestError;

pub async fn list(call: Call, app: Authorised<App>) -> Result<Reply, RequestError> {
    let mut secrets = call.state.database.secrets().await?;
    secrets.retain(|secret| secret.app == app.id);
    let view = |secret: StoredSecret| SecretView {
        name: secret.name,
        set_by: secret.author,
        set_at: instant(secret.at),
    };
    Ok(Reply::json(&secrets.into_iter().map(view).collect::<Vec<_>>()))
}

pub async fn put(call: Call, app: Authorised<App>) -> Result<Reply, RequestError> {
    let SecretBody { value } = call.json()?;
    let name = call.named("name");
    if !workflow::secret::is_name(name) {
        let why = format!("use at most {} letters, digits and _-.", workflow::secret::NAME_MAX);
        return Err(RequestError::field("name", why));
    }
    let length = value.len();
    if length == 0 || length > VALUE_MAX {
        let why = format!("must have from 1 to {VALUE_MAX} bytes, not {length}");
        return Err(RequestError::field("value", why));
    }
    if value.contains('\0') {
        return Err(RequestError::field("value", "must not contain the character U+0000"));
    }
    let secret = StoredSecret {
        app: app.id,
        name: name.to_owned(),
        sealed: call.state.registrar.seal(&value),
        author: call.who.principal.name.clone(),
        at: Timestamp::default(),
    };
    call.state.database.put_secret(&secret).await?;
    call.state.registrar.load().await?;
    Ok(Reply::done().changed(None, Some(json!({ "secret": name }))))
}

pub async fn delete(call: Call, app: Authorised<App>) -> Result<Reply, RequestError> {
    let name = call.named("name");
    if !call.state.database.delete_secret(app.id, name).await? {
        return Err(RequestError::not_found("the app has no secret of this name"));
    }
    call.state.registrar.load().await?;
    Ok(Reply::done().changed(Some(json!({ "secret": name })), None))
}

/// Maximum size of a value in bytes: enough for a private key.
const VALUE_MAX: usize = 8 * 1024;
