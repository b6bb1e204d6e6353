//! Sign in and sign out.

use std::time::Duration;

use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use protocol::xxl::Fields;
use serde_json::Value;

use super::dialect::Dialect;
use super::record::entry;
use super::routes::Route;
use super::{Reply, Visit, WebState};
use crate::api::browser::agent;
use crate::api::xxl_error;
use crate::http;
use crate::request_error::RequestError;
use crate::users::{Opened, SESSION_MAX, Visitor};

/// Help text for people who open a sign-in page.
pub fn page() -> Response {
    const PAGE: &str =
        "Sign in with POST login or POST auth/doLogin, and the fields userName and password.\n";
    let plain = [(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))];
    (plain, PAGE).into_response()
}

/// Opens a new session. An existing session of the caller is never reused.
pub async fn sign_in(
    state: &WebState,
    route: Route,
    dialect: Dialect,
    head: &Parts,
    fields: &Fields,
) -> Response {
    let (name, password) = (fields.trimmed("userName"), fields.get("password").unwrap_or_default());
    if name.is_empty() || password.is_empty() {
        return dialect.refused(route.path, &RequestError::invalid("userName and password: enter both"));
    }
    let caller = http::caller(head);
    let from = Visitor { ip: caller.ip, agent: agent(head), device: None, is_browser: false };
    match state.users.sign_in(name, password, from).await {
        Ok(Opened { secret, .. }) => {
            state.audit.record(entry(name, caller.ip, route, "done")).await;
            let remember = fields.trimmed("ifRemember") == "on";
            let age = remember.then_some(SESSION_MAX);
            with_cookie(dialect, &secret, age, caller.secure)
        }
        Err(error) => {
            // The caller is not authenticated, so the entry counts against the audit budget for strangers.
            state.audit.refused(entry(name, caller.ip, route, xxl_error::text(&error))).await;
            dialect.refused(route.path, &error)
        }
    }
}

/// Ends the session and deletes its cookie.
pub fn signed_out(dialect: Dialect, secure: bool) -> Response {
    with_cookie(dialect, "", Some(Duration::ZERO), secure)
}

/// The cookie keeps XXL-JOB's name, which scripts look for, so it has no `__Host-` prefix.
fn with_cookie(dialect: Dialect, secret: &str, age: Option<Duration>, secure: bool) -> Response {
    let name = dialect.login().cookie();
    let age = age.map(|age| format!("; Max-Age={}", age.as_secs())).unwrap_or_default();
    let secure = if secure { "; Secure" } else { "" };
    let cookie = format!("{name}={secret}; Path=/; HttpOnly; SameSite=Strict{secure}{age}");
    let mut response = dialect.done(Value::Null);
    let cookie = HeaderValue::try_from(cookie).expect("it is made of plain letters");
    response.headers_mut().insert(SET_COOKIE, cookie);
    response
}

impl Visit<'_> {
    pub(super) async fn sign_out(&self) -> Result<Reply, RequestError> {
        self.state.users.sign_out(&self.signed_in).await?;
        Ok(Reply::Done(Value::Null))
    }

    pub(super) async fn change_password(&self) -> Result<Reply, RequestError> {
        let text = |name: &str| self.fields.get(name).unwrap_or_default();
        let (old, new) = (text("oldPassword"), text("password"));
        let from = Visitor { ip: self.from, agent: "", device: None, is_browser: false };
        self.state.users.change_password(&self.signed_in, old, new, from).await?;
        Ok(Reply::Done(Value::Null))
    }
}
