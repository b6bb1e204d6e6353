//! Signing in and out, and another password.

use std::net::IpAddr;

use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use protocol::xxl::Fields;
use serde_json::Value;

use super::dialect::Dialect;
use super::{Reply, Visit};
use crate::centre::Inside;
use crate::doors::browser::agent;
use crate::people::SESSION_MAX;
use crate::refusal::Refusal;

/// For people who were sent here.
pub fn page() -> Response {
    const PAGE: &str = "Sign in with a POST of userName and password to login, or to auth/doLogin.\n";
    let plain = [(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))];
    (plain, PAGE).into_response()
}

/// Opens a session. Whatever session the caller had is not taken over.
pub async fn sign_in(
    inside: &Inside,
    dialect: Dialect,
    head: &Parts,
    fields: &Fields,
    from: IpAddr,
) -> Response {
    let (name, password) = (fields.trimmed("userName"), fields.get("password").unwrap_or_default());
    if name.is_empty() || password.is_empty() {
        return dialect.refused(&Refusal::new("userName and password: enter both"));
    }
    match inside.people.sign_in(name, password, from, agent(head)).await {
        Ok(secret) => {
            let remember = fields.trimmed("ifRemember") == "on";
            let age = if remember { format!("; Max-Age={}", SESSION_MAX.as_secs()) } else { String::new() };
            with_cookie(dialect, &format!("{secret}; Path=/; HttpOnly; SameSite=Strict{age}"))
        }
        Err(fault) => dialect.refused(&fault.into()),
    }
}

/// The session is over; the client forgets its cookie.
pub fn signed_out(dialect: Dialect) -> Response {
    with_cookie(dialect, "; Path=/; HttpOnly; SameSite=Strict; Max-Age=0")
}

fn with_cookie(dialect: Dialect, value: &str) -> Response {
    let mut response = dialect.done(Value::Null);
    let cookie: Result<HeaderValue, _> = format!("{}={value}", dialect.login().cookie()).try_into();
    response.headers_mut().insert(SET_COOKIE, cookie.expect("it is made of plain letters"));
    response
}

impl Visit<'_> {
    pub(super) async fn sign_out(&self) -> Result<Reply, Refusal> {
        self.inside.people.sign_out(&self.signed_in).await?;
        Ok(Reply::Done(Value::Null))
    }

    pub(super) async fn change_password(&self) -> Result<Reply, Refusal> {
        let text = |name: &str| self.fields.get(name).unwrap_or_default();
        let (old, new) = (text("oldPassword"), text("password"));
        self.inside.people.change_password(&self.signed_in, old, new, self.from).await?;
        Ok(Reply::Done(Value::Null))
    }
}
