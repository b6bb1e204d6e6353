//! `/v1/session` and `/v1/me`: sign in, sign out, and the user's own account.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, header};
use protocol::v1::{Grant, Me, PasswordChange, ProblemCode, Right, SessionView, SignIn};
use store::{Rights, UserSession};

use super::authorise::{Authorised, Nothing, session_name};
use super::call::{Call, instant};
use super::caller::{COOKIE, DEVICE, SECURE_COOKIE, SECURE_DEVICE, cookies};
use super::reply::Reply;
use crate::api::browser;
use crate::request_error::RequestError;
use crate::users::{DEVICE_LIFETIME, Opened, Principal, SignedIn, Visitor};

/// Opens a new session. An existing session of the caller is never reused.
pub async fn open(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let SignIn { user, password } = call.json()?;
    let users = &call.state.users;
    let is_program = call.header(CLIENT).is_some();
    let from = visitor(&call);
    let about = format!("user:{}", user.trim());
    let opened = users.sign_in(&user, &password, from).await;
    let Opened { secret, device } = opened.map_err(|error| error.about(&about))?;
    let over = || RequestError::new(ProblemCode::NotSignedIn, "the session ended immediately; sign in again");
    let signed_in = users.session(&secret).await?.ok_or_else(over)?;
    let principal = Principal::person(&signed_in.user);
    let me = me(&call, &principal, Some(&signed_in).filter(|_| !is_program));
    let reply = Reply::json(&me).by(&principal.name).about(about);
    if is_program {
        return Ok(reply.header(HeaderName::from_static(SESSION), plain(secret)));
    }
    let reply = reply.header(header::SET_COOKIE, cookie(&call, [COOKIE, SECURE_COOKIE], &secret, ""));
    let Some(device) = device else { return Ok(reply) };
    let device = cookie(&call, [DEVICE, SECURE_DEVICE], &device, &age(DEVICE_LIFETIME));
    Ok(reply.header(header::SET_COOKIE, device))
}

/// Origin of a sign-in or a change of password. Scripts do not keep cookies, so they get no device cookie: each would
/// take the place of a browser's.
fn visitor(call: &Call) -> Visitor<'_> {
    let device = cookies(&call.head, &[DEVICE, SECURE_DEVICE]).next();
    let is_browser = call.header(CLIENT).is_none() && browser::is_from_page(&call.head);
    Visitor { ip: call.origin.ip, agent: browser::agent(&call.head), device, is_browser }
}

/// Ends the session and deletes its cookie.
pub async fn close(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    call.state.users.sign_out(signed_in(&call)?).await?;
    let ended = cookie(&call, [COOKIE, SECURE_COOKIE], "", &age(Duration::ZERO));
    Ok(Reply::done().header(header::SET_COOKIE, ended))
}

/// Builds a cookie, with a separate name on encrypted connections (`__Host-`): browsers send that one only over
/// encrypted connections, and no other host of the domain can set it.
fn cookie(call: &Call, names: [&str; 2], value: &str, more: &str) -> HeaderValue {
    let [plain_name, secure_name] = names;
    let (name, secure) = if call.origin.secure { (secure_name, "; Secure") } else { (plain_name, "") };
    plain(format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{more}"))
}

fn age(age: Duration) -> String {
    format!("; Max-Age={}", age.as_secs())
}

fn plain(value: String) -> HeaderValue {
    value.try_into().expect("it is made of plain letters")
}

/// Request header by which programs ask for the session secret.
const CLIENT: &str = "tickwright-client";

/// Response header that carries the session secret.
const SESSION: &str = "tickwright-session";

/// Returns the signed-in user.
pub async fn show(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    Ok(Reply::json(&me(&call, &call.who.principal, call.who.session.as_ref())))
}

fn me(call: &Call, who: &Principal, session: Option<&SignedIn>) -> Me {
    let mut grants = Vec::new();
    if !who.is_admin() {
        for (app, name) in call.state.directory.names() {
            let rights = rights_view(who.rights(app));
            if !rights.is_empty() {
                grants.push(Grant { app: name, rights });
            }
        }
    }
    let user = call.who.user.as_ref().map_or_else(|| who.name.clone(), |user| user.name.clone());
    let csrf = session.map(|session| session.csrf.clone());
    Me { user, admin: who.is_admin(), grants, csrf, zone: call.state.zone.name().into() }
}

/// Converts a set of rights to a list.
pub fn rights_view(rights: Rights) -> Vec<Right> {
    RIGHTS.iter().filter(|(_, bit)| rights.contains(*bit)).map(|(right, _)| *right).collect()
}

/// Converts a list of rights to a set.
pub fn rights_of(rights: &[Right]) -> Rights {
    let bits = RIGHTS.iter().filter(|(right, _)| rights.contains(right)).map(|(_, bit)| *bit);
    bits.fold(Rights::NONE, Rights::with)
}

const RIGHTS: [(Right, Rights); 4] = [
    (Right::View, Rights::VIEW),
    (Right::Operate, Rights::OPERATE),
    (Right::Edit, Rights::EDIT),
    (Right::Script, Rights::SCRIPT),
];

/// Changes the password and ends all other sessions of the user.
pub async fn change_password(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let PasswordChange { old, new } = call.json()?;
    call.state.users.change_password(signed_in(&call)?, &old, &new, visitor(&call)).await?;
    Ok(Reply::done().about(format!("user:{}", call.who.principal.name)))
}

/// Lists the caller's sessions.
pub async fn list(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let current = signed_in(&call)?;
    let sessions = call.state.database.sessions_of(current.user.id).await?;
    let view = |session: UserSession| SessionView {
        id: session_name(&session.digest).into(),
        current: session.digest == current.session,
        ip: session.address,
        agent: session.agent,
        opened_at: instant(session.created_at),
        seen_at: instant(session.seen_at),
    };
    Ok(Reply::json(&sessions.into_iter().map(view).collect::<Vec<_>>()))
}

/// Ends one of the caller's sessions.
pub async fn end(call: Call, session: Authorised<UserSession>) -> Result<Reply, RequestError> {
    call.state.users.end_session(&session.digest).await?;
    Ok(Reply::done())
}

/// Session of the caller; an error if there is none.
fn signed_in(call: &Call) -> Result<&SignedIn, RequestError> {
    call.who.session.as_ref().ok_or_else(|| RequestError::new(ProblemCode::NotSignedIn, "sign in first"))
}
