//! User accounts: sign-in, sessions and API keys.
//!
//! A session is 256 random bits in a cookie; the database stores only their digest. It ends after a while, when
//! its user signs out, and whenever the user's password or rights change.

mod common;
mod origins;
mod password;
mod principal;
mod throttle;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use engine::StoreError;
use protocol::v1::ProblemCode;
use store::{Access, ApiKey, Database, NewSession, Password, SignInOrigin, User, UserId};
use timer::Clock;
use tokio::sync::watch;

use crate::executors::{Key, fingerprint, generate, is_well_known};
use crate::request_error::RequestError;
use crate::share::Shares;
use crate::warn::warn_store;
use origins::{KNOWN_EACH, LIFETIME, Origins};
pub use origins::{LIFETIME as DEVICE_LIFETIME, network};
use password::{Passwords, Queue};
pub use principal::Principal;
use throttle::{Attempt, Throttle, Ticket, Wait};

/// Manages and authenticates users.
pub struct Users {
    clock: Arc<dyn Clock>,
    database: Arc<Database>,
    passwords: Passwords,
    throttle: Throttle,
    origins: Origins,
    /// Sign-in attempts that wait for the results of others: of strangers, and from known origins. Networks share
    /// each fairly.
    waiting: [Arc<Shares<IpAddr>>; 2],
    ends: watch::Sender<()>,
}

/// Origin of a sign-in attempt.
#[derive(Clone, Copy, Debug)]
pub struct Visitor<'a> {
    /// IP address.
    pub ip: IpAddr,
    /// `User-Agent` of the client.
    pub agent: &'a str,
    /// Device cookie, if the client sent one.
    pub device: Option<&'a str>,
    /// Whether the client is a browser, which gets a device cookie.
    pub is_browser: bool,
}

/// A new session.
pub struct Opened {
    /// Session secret.
    pub secret: String,
    /// Device cookie for the next sign-in of a browser.
    pub device: Option<String>,
}

/// A signed-in user.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// The user.
    pub user: User,
    /// Digest of the session secret.
    pub session: String,
    /// Second secret of the session (CSRF token), which our own pages send with every change.
    pub csrf: String,
}

/// First administrator of a new database; shown once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstAdmin {
    /// User name.
    pub name: String,
    /// Password in plain text.
    pub password: String,
}

impl Users {
    /// User management on top of a database.
    pub fn new(clock: Arc<dyn Clock>, database: Arc<Database>, key: &Key) -> Users {
        Users {
            clock,
            database,
            passwords: Passwords::new(),
            throttle: Throttle::new(),
            origins: Origins::new(key),
            waiting: [Shares::new(WAITING_MAX), Shares::new(WAITING_MAX)],
            ends: watch::Sender::new(()),
        }
    }

    /// Creates the first administrator if the database has no users.
    pub async fn first_admin(&self) -> Result<Option<FirstAdmin>, StoreError> {
        let first = FirstAdmin { name: FIRST_NAME.into(), password: password::generate() };
        if !self.database.user_page(&Default::default(), store::Page::first(1)).await?.rows.is_empty() {
            return Ok(None);
        }
        let hash = self.passwords.hash(&first.password).await;
        let hash = hash.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let is_first = self.database.create_first_admin(&first.name, &hash).await?;
        Ok(is_first.then_some(first))
    }

    /// Opens a session if the password is right. The error does not reveal whether the user exists.
    pub async fn sign_in(
        &self,
        name: &str,
        password: &str,
        from: Visitor<'_>,
    ) -> Result<Opened, RequestError> {
        let name = name.trim();
        let known = self.known_origin(name, from).await?;
        let attempt = Attempt { account: name, from: from.ip, known: known.as_deref() };
        let user = self.recognise(password, attempt).await?;
        let secret = generate();
        let session = NewSession {
            digest: fingerprint(&secret),
            user: user.id,
            csrf: generate(),
            expires_at: self.clock.now() + SESSION_MAX,
            address: from.ip.to_string(),
            agent: from.agent.to_owned(),
        };
        self.database.open_session(&session).await?;
        if let Err(error) = self.database.prune_sessions(IDLE_MAX, PRUNE_MAX).await {
            warn_store!(error, "failed to delete expired sessions; retrying at the next sign-in");
        }
        Ok(Opened { secret, device: self.remember(&user, from).await })
    }

    /// Digest of the device or network of a sign-in attempt, if the account was signed in to from there before.
    async fn known_origin(&self, account: &str, from: Visitor<'_>) -> Result<Option<String>, StoreError> {
        for SignInOrigin { digest, .. } in self.origins_of(account, from) {
            if self.database.knows_origin(&digest, LIFETIME).await? {
                return Ok(Some(digest));
            }
        }
        Ok(None)
    }

    /// Origins of an attempt: the device, if its cookie is valid, and the network.
    fn origins_of(&self, account: &str, from: Visitor<'_>) -> Vec<SignInOrigin> {
        let cookie = from.device.and_then(|cookie| self.origins.recognise(cookie, account, self.clock.now()));
        let device = cookie.map(|device| self.origins.device(device, account));
        device.into_iter().chain([self.origins.network(from.ip, account)]).collect()
    }

    /// Stores that a user has signed in from here; returns the device cookie of a browser.
    async fn remember(&self, user: &User, from: Visitor<'_>) -> Option<String> {
        let (name, now) = (&user.name, self.clock.now());
        let mut origins = vec![self.origins.network(from.ip, name)];
        let cookie = from.is_browser.then(|| {
            let device = from.device.and_then(|cookie| self.origins.recognise(cookie, name, now));
            let (cookie, device) = self.origins.issue(device, name, now);
            origins.push(device);
            cookie
        });
        for origin in origins {
            if let Err(error) = self.database.remember_origin(user.id, &origin, KNOWN_EACH, LIFETIME).await {
                warn_store!(error, "failed to store the origin of a sign-in; retrying at the next sign-in");
            }
        }
        cookie
    }

    async fn recognise(&self, password: &str, attempt: Attempt<'_>) -> Result<User, RequestError> {
        let ticket = self.turn(attempt).await?;
        // Known origins do not wait behind strangers for the password hash either.
        let queue = if attempt.known.is_some() { Queue::Known } else { Queue::Strangers };
        match self.check(attempt.account, password, queue).await {
            Ok(Some(user)) => {
                ticket.give_back();
                Ok(user)
            }
            Ok(None) => Err(RequestError::new(ProblemCode::WrongPassword, "wrong user name or password")),
            Err(error) => {
                ticket.give_back();
                Err(error)
            }
        }
    }

    /// Waits until an attempt may be checked, if it only has to wait for attempts that are being checked now.
    async fn turn(&self, attempt: Attempt<'_>) -> Result<Ticket<'_>, RequestError> {
        let wait = match self.throttle.admit(attempt, self.clock.monotonic()) {
            Ok(ticket) => return Ok(ticket),
            Err(wait) => wait,
        };
        let _waiting = match wait {
            Wait::ForOthers => {
                let lane = usize::from(attempt.known.is_some());
                self.waiting[lane].take(network(attempt.from)).ok_or_else(|| too_many(LOOK_AGAIN))?
            }
            Wait::For(wait) => return Err(too_many(wait)),
        };
        let until = self.clock.monotonic() + OTHERS_MAX;
        loop {
            self.clock.sleep(LOOK_AGAIN).await;
            match self.throttle.admit(attempt, self.clock.monotonic()) {
                Ok(ticket) => return Ok(ticket),
                Err(Wait::For(wait)) => return Err(too_many(wait)),
                Err(Wait::ForOthers) if self.clock.monotonic() > until => return Err(too_many(LOOK_AGAIN)),
                Err(Wait::ForOthers) => {}
            }
        }
    }

    /// Returns the user if the password is right.
    async fn check(&self, name: &str, password: &str, queue: Queue) -> Result<Option<User>, RequestError> {
        // MySQL compares names without case and accents; attempts are counted by lower-case name.
        let same = |user: &User| user.name.to_lowercase() == name.to_lowercase();
        let user = self.database.user_by_name(name).await?;
        let user = user.filter(|user| !user.access.disabled && same(user));
        let fits = match user.as_ref().map(|user| (&user.password, user)) {
            Some((Password::Hashed(hash), _)) => self.passwords.verify(password, Some(hash), queue).await?,
            Some((Password::Legacy(hash), user)) if password::fits_legacy(password, hash) => {
                self.upgrade(user, password, hash).await?;
                true
            }
            _ => self.passwords.verify(password, None, queue).await?,
        };
        Ok(user.filter(|_| fits))
    }

    /// Stores our own hash next to XXL-JOB's, which a Java admin may still need.
    async fn upgrade(&self, user: &User, password: &str, legacy: &str) -> Result<(), RequestError> {
        if is_well_known(password) {
            tracing::warn!(
                user = user.name,
                "a user signed in with a publicly known password; change the password"
            );
        }
        let hash = self.passwords.hash(password).await?;
        self.database.upgrade_password(user.id, legacy, &hash).await?;
        Ok(())
    }

    /// Looks up a session by its secret.
    pub async fn session(&self, secret: &str) -> Result<Option<SignedIn>, StoreError> {
        let digest = fingerprint(secret);
        let Some((session, user)) = self.database.session(&digest, IDLE_MAX).await? else { return Ok(None) };
        if self.clock.now().duration_since(session.seen_at) > TOUCH_AFTER {
            self.database.touch_session(&digest).await?;
        }
        Ok(Some(SignedIn { user, session: digest, csrf: session.csrf }))
    }

    /// User of a valid session. The lookup does not count as use of the session.
    pub async fn user_of(&self, session: &str) -> Result<Option<User>, StoreError> {
        Ok(self.database.session(session, IDLE_MAX).await?.map(|(_, user)| user))
    }

    /// Notifies when sessions or API keys may have ended on this node.
    pub fn ends(&self) -> watch::Receiver<()> {
        self.ends.subscribe()
    }

    /// Makes open streams check whether their session or API key is still valid.
    fn note_end(&self) {
        self.ends.send_replace(());
    }

    /// Looks up an API key.
    pub async fn key(&self, secret: &str) -> Result<Option<(ApiKey, User)>, StoreError> {
        let found = self.database.api_key(&fingerprint(secret)).await?;
        if let Some((key, _)) = &found
            && key.used_at.is_none_or(|used| self.clock.now().duration_since(used) > TOUCH_AFTER)
        {
            self.database.touch_api_key(key.id).await?;
        }
        Ok(found)
    }

    /// Ends the session of a user.
    pub async fn sign_out(&self, who: &SignedIn) -> Result<(), StoreError> {
        self.end_session(&who.session).await
    }

    /// Ends a session by its digest.
    pub async fn end_session(&self, session: &str) -> Result<(), StoreError> {
        self.database.end_session(session).await?;
        self.note_end();
        Ok(())
    }

    /// Deletes a user and ends their sessions and API keys.
    pub async fn delete(&self, id: UserId) -> Result<(), StoreError> {
        self.database.delete_user(id).await?;
        self.note_end();
        Ok(())
    }

    /// Deletes an API key.
    pub async fn delete_key(&self, id: i64) -> Result<(), StoreError> {
        self.database.delete_api_key(id).await?;
        self.note_end();
        Ok(())
    }

    /// Changes the password of a signed-in user, after checking the old one. All their other sessions end, and other
    /// origins become unknown.
    pub async fn change_password(
        &self,
        who: &SignedIn,
        old: &str,
        new: &str,
        from: Visitor<'_>,
    ) -> Result<(), RequestError> {
        let User { id, name, .. } = &who.user;
        // The session proves that the attempt does not come from a stranger.
        let attempt = Attempt { account: name, from: from.ip, known: Some(&who.session) };
        let recognised = self.recognise(old, attempt).await;
        recognised.map_err(|error| error.context("the old password was rejected"))?;
        password::check_new(new, name)?;
        let hash = self.passwords.hash(new).await?;
        self.database.set_password_hash(*id, &hash, Some(&who.session)).await?;
        let here: Vec<_> = self.origins_of(name, from).into_iter().map(|origin| origin.digest).collect();
        self.database.forget_origins(*id, &here).await?;
        self.note_end();
        Ok(())
    }

    /// Adds a user.
    pub async fn add(&self, name: &str, password: &str, access: &Access) -> Result<UserId, RequestError> {
        let name = name.trim();
        let length = name.chars().count();
        if !(NAME_MIN..=NAME_MAX).contains(&length) {
            return Err(RequestError::field(
                "name",
                format!("must have {NAME_MIN} to {NAME_MAX} characters"),
            ));
        }
        password::check_new(password, name)?;
        let hash = self.passwords.hash(password).await?;
        Ok(self.database.create_user(name, &hash, access).await?)
    }

    /// Changes the rights of a user, and the password if one is given. Any change ends all their sessions.
    pub async fn change(
        &self,
        id: UserId,
        password: Option<&str>,
        access: &Access,
    ) -> Result<(), RequestError> {
        let hash = match password {
            Some(password) => {
                let user = self.database.user(id).await?.ok_or_else(|| no_such_user(id))?;
                password::check_new(password, &user.name)?;
                Some(self.passwords.hash(password).await?)
            }
            None => None,
        };
        if !self.database.update_user(id, access).await? {
            return Err(no_such_user(id));
        }
        if let Some(hash) = hash {
            self.database.set_password_hash(id, &hash, None).await?;
            self.database.forget_origins(id, &[]).await?;
        }
        self.note_end();
        Ok(())
    }
}

fn too_many(wait: Duration) -> RequestError {
    let seconds = wait.as_millis().div_ceil(1_000).max(1);
    let why = format!("too many attempts to sign in; retry in {seconds} s");
    RequestError::new(ProblemCode::TooManyRequests, why).retry_after(wait)
}

/// Same error for a missing user and for one that the caller may not see.
pub fn no_such_user(id: UserId) -> RequestError {
    RequestError::not_found(format!("user {} does not exist", id.0))
}

/// How often an attempt checks whether those before it are done; a check takes about 20 ms.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// How long an attempt waits for those before it, also on a machine that is busy with other work.
const OTHERS_MAX: Duration = Duration::from_secs(15);

/// Maximum number of waiting attempts of strangers, and from known origins; further ones are rejected.
/// Legitimate clients that arrive together are fewer.
const WAITING_MAX: usize = 64;

/// Name of the first administrator.
const FIRST_NAME: &str = "admin";

/// Idle timeout of a session.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);

/// Maximum duration of a session.
pub const SESSION_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// Resolution of the last-used times of sessions and API keys.
const TOUCH_AFTER: Duration = Duration::from_secs(60);

/// Expired sessions deleted at a time.
const PRUNE_MAX: usize = 100;

/// XXL-JOB's limits for names, raised to fit email addresses.
const NAME_MIN: usize = 4;
const NAME_MAX: usize = 50;
