//! Who calls, and how they show it.

use axum::http::header;
use axum::http::request::Parts;
use engine::StoreError;
use protocol::v1::{CSRF_HEADER, ProblemCode};
use store::User;

use super::problem::{self, Refused};
use crate::centre::Inside;
use crate::doors::browser;
use crate::executors::fingerprint;
use crate::people::{Principal, SignedIn};

/// Somebody, or nobody in particular.
pub struct Caller {
    /// Who acts, with what rights.
    pub principal: Principal,
    /// In whose place.
    pub user: Option<User>,
    /// The session, where it is a person's.
    pub session: Option<SignedIn>,
    /// The digest of the API key, where it is a program's.
    pub key: Option<String>,
    /// A browser added the credential by itself, so something else must show that a page of ours asked for it to.
    by_cookie: bool,
}

impl Caller {
    /// Recognises a caller by what the request carries. A credential that does not count any more is an error, or whoever
    /// sends it would wonder why less is shown.
    pub async fn recognise(inside: &Inside, head: &Parts) -> Result<Caller, Refused> {
        let over = || {
            problem::new(
                ProblemCode::NotSignedIn,
                "the session or key does not count any more; sign in again",
            )
        };
        if let Some(secret) = bearer(head)? {
            if !secret.starts_with(KEY_PREFIX) {
                let signed_in = inside.people.session(secret).await?.ok_or_else(over)?;
                return Ok(Caller::person(signed_in, false));
            }
            let (key, user) = inside.people.key(secret).await?.ok_or_else(over)?;
            let principal = Principal::key(&key, &user);
            let key = Some(key.spec.digest);
            return Ok(Caller { principal, user: Some(user), session: None, key, by_cookie: false });
        }
        for secret in cookies(head, &[COOKIE, SECURE_COOKIE]) {
            if let Some(signed_in) = inside.people.session(secret).await? {
                return Ok(Caller::person(signed_in, true));
            }
        }
        // A browser may go on sending a cookie that is out of date.
        Ok(Caller::nobody())
    }

    /// Nobody in particular.
    pub fn nobody() -> Caller {
        Caller { principal: Principal::nobody(), user: None, session: None, key: None, by_cookie: false }
    }

    fn person(signed_in: SignedIn, by_cookie: bool) -> Caller {
        let principal = Principal::person(&signed_in.user);
        Caller {
            principal,
            user: Some(signed_in.user.clone()),
            session: Some(signed_in),
            key: None,
            by_cookie,
        }
    }

    /// The digest of the session or API key.
    pub fn credential(&self) -> &str {
        let session = self.session.as_ref().map(|session| session.session.as_str());
        session.or(self.key.as_deref()).unwrap_or_default()
    }

    /// Whether the session or API key is still valid with the same rights, for what goes on for long.
    pub async fn lasts(&self, inside: &Inside) -> Result<bool, StoreError> {
        let now = match (&self.session, &self.key) {
            (Some(session), _) => {
                let user = inside.people.user_of(&session.session).await?;
                user.map(|user| Principal::person(&user))
            }
            (None, Some(key)) => {
                let key = inside.database.api_key(key).await?;
                key.map(|(key, user)| Principal::key(&key, &user))
            }
            (None, None) => None,
        };
        Ok(now.is_some_and(|now| now == self.principal))
    }

    /// Refuses a change that a page of another site made a browser ask for.
    pub fn check_origin(&self, head: &Parts) -> Result<(), Refused> {
        let foreign = |why: &str| Err(problem::new(ProblemCode::ForeignOrigin, why));
        if browser::is_cross_site(head) {
            return foreign("changes are not taken from pages of other sites");
        }
        let Some(session) = self.session.as_ref().filter(|_| self.by_cookie) else { return Ok(()) };
        if !browser::is_own_page(head) {
            return foreign(
                "with a cookie, changes are taken only from our own pages; programs send an API key",
            );
        }
        let sent = head.headers.get(CSRF_HEADER).map(|value| value.as_bytes());
        let sent = sent.and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default();
        // Digests differ somewhere at random, so comparing them tells nothing about the secret.
        match fingerprint(sent) == fingerprint(&session.csrf) {
            true => Ok(()),
            false => foreign("send the `csrf` of GET /v1/me as Tickwright-Csrf with every change"),
        }
    }
}

/// What the request is authorised with, if it says so.
fn bearer(head: &Parts) -> Result<Option<&str>, Refused> {
    let mut values = head.headers.get_all(header::AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value.to_str().unwrap_or_default(),
        (Some(_), Some(_)) => return Err(problem::malformed("there are two headers Authorization")),
    };
    let secret = value.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
    let unusable =
        || problem::new(ProblemCode::NotSignedIn, "write the header as `Authorization: Bearer tw_…`");
    Ok(Some(secret.ok_or_else(unusable)?.1.trim()))
}

/// The values of the cookies with one of these names. There may be an old one of the same name for another path.
pub fn cookies<'a>(head: &'a Parts, names: &[&'static str]) -> impl Iterator<Item = &'a str> {
    let lines = head.headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| names.contains(name)).map(|(_, value)| value).take(COOKIES_MAX)
}

/// The cookie of a session,
pub const COOKIE: &str = "tickwright_session";

/// and of one that was opened on an encrypted connection.
pub const SECURE_COOKIE: &str = "__Host-tickwright_session";

/// The cookie by which a device is known that somebody signed in with before,
pub const DEVICE: &str = "tickwright_device";

/// and on an encrypted connection.
pub const SECURE_DEVICE: &str = "__Host-tickwright_device";

/// What API keys begin with, so that people and scanners recognise one.
pub const KEY_PREFIX: &str = "tw_";

/// Each is looked up.
const COOKIES_MAX: usize = 2;
