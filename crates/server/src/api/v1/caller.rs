//! Authentication: recognises the caller of a request.

use axum::http::header;
use axum::http::request::Parts;
use engine::StoreError;
use protocol::v1::{CSRF_HEADER, ProblemCode};
use store::User;

use super::state::V1State;
use crate::api::browser;
use crate::executors::fingerprint;
use crate::request_error::RequestError;
use crate::users::{Principal, SignedIn};

/// An authenticated or anonymous caller.
pub struct Caller {
    /// Name and rights of the caller.
    pub principal: Principal,
    /// User that the session or API key belongs to.
    pub user: Option<User>,
    /// Session, if the caller is a person.
    pub session: Option<SignedIn>,
    /// Digest of the API key, if the caller is a program.
    pub key: Option<String>,
    /// The browser added the credential by itself (a cookie), so changes need proof that they come from our own
    /// page.
    by_cookie: bool,
}

impl Caller {
    /// Authenticates a request. An invalid credential is an error: otherwise the client would see less data
    /// without knowing why.
    pub async fn recognise(state: &V1State, head: &Parts) -> Result<Caller, RequestError> {
        let over = || {
            RequestError::new(
                ProblemCode::NotSignedIn,
                "the session or API key is no longer valid; sign in again",
            )
        };
        if let Some(secret) = bearer(head)? {
            if !secret.starts_with(KEY_PREFIX) {
                let signed_in = state.users.session(secret).await?.ok_or_else(over)?;
                return Ok(Caller::person(signed_in, false));
            }
            let (key, user) = state.users.key(secret).await?.ok_or_else(over)?;
            let principal = Principal::key(&key, &user);
            let key = Some(key.spec.digest);
            return Ok(Caller { principal, user: Some(user), session: None, key, by_cookie: false });
        }
        for secret in cookies(head, &[COOKIE, SECURE_COOKIE]) {
            if let Some(signed_in) = state.users.session(secret).await? {
                return Ok(Caller::person(signed_in, true));
            }
        }
        // A browser may keep sending an expired cookie, so that is no error.
        Ok(Caller::nobody())
    }

    /// An anonymous caller.
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

    /// Digest of the session or API key.
    pub fn credential(&self) -> &str {
        let session = self.session.as_ref().map(|session| session.session.as_str());
        session.or(self.key.as_deref()).unwrap_or_default()
    }

    /// Whether the session or API key is still valid with the same rights, for long-running requests.
    pub async fn lasts(&self, state: &V1State) -> Result<bool, StoreError> {
        let now = match (&self.session, &self.key) {
            (Some(session), _) => {
                let user = state.users.user_of(&session.session).await?;
                user.map(|user| Principal::person(&user))
            }
            (None, Some(key)) => {
                let key = state.database.api_key(key).await?;
                key.map(|(key, user)| Principal::key(&key, &user))
            }
            (None, None) => None,
        };
        Ok(now.is_some_and(|now| now == self.principal))
    }

    /// Rejects a change that a page of another site sent through the user's browser (CSRF).
    pub fn check_origin(&self, head: &Parts) -> Result<(), RequestError> {
        let foreign = |why: &str| Err(RequestError::new(ProblemCode::ForeignOrigin, why));
        if browser::is_cross_site(head) {
            return foreign("requests from other sites may not change anything");
        }
        let Some(session) = self.session.as_ref().filter(|_| self.by_cookie) else { return Ok(()) };
        if !browser::is_own_page(head) {
            return foreign(
                "with a cookie, only pages of the console may change anything; in a program, use an API key",
            );
        }
        let sent = head.headers.get(CSRF_HEADER).map(|value| value.as_bytes());
        let sent = sent.and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default();
        // Digests differ at random positions, so the timing of the comparison reveals nothing about the secret.
        match fingerprint(sent) == fingerprint(&session.csrf) {
            true => Ok(()),
            false => foreign("the header Tickwright-Csrf must be the `csrf` of GET /v1/me"),
        }
    }
}

/// Bearer token of the request, if there is one.
fn bearer(head: &Parts) -> Result<Option<&str>, RequestError> {
    let mut values = head.headers.get_all(header::AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value.to_str().unwrap_or_default(),
        (Some(_), Some(_)) => return Err(RequestError::malformed("duplicate header Authorization")),
    };
    let secret = value.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
    let unusable =
        || RequestError::new(ProblemCode::NotSignedIn, "the header must be `Authorization: Bearer tw_…`");
    Ok(Some(secret.ok_or_else(unusable)?.1.trim()))
}

/// Values of the cookies with these names. There may be an old cookie of the same name for another path.
pub fn cookies<'a>(head: &'a Parts, names: &[&'static str]) -> impl Iterator<Item = &'a str> {
    // Only the separator of browsers: any other could be part of a value that another site of the domain has set.
    let pairs = browser::cookies(&head.headers, &[';']);
    pairs.filter(|(name, _)| names.contains(name)).map(|(_, value)| value).take(COOKIES_MAX)
}

/// Session cookie.
pub const COOKIE: &str = "tickwright_session";

/// Session cookie on encrypted connections.
pub const SECURE_COOKIE: &str = "__Host-tickwright_session";

/// Cookie that marks a device from which a user has signed in before.
pub const DEVICE: &str = "tickwright_device";

/// Device cookie on encrypted connections.
pub const SECURE_DEVICE: &str = "__Host-tickwright_device";

/// Prefix of API keys, so that people and secret scanners recognise them.
pub const KEY_PREFIX: &str = "tw_";

/// Cookies tried; each is looked up in the database.
const COOKIES_MAX: usize = 2;
