//! People: how they show who they are, and for how long that is believed.
//!
//! A session is 256 random bits in a cookie; the database has only their digest. It ends after a while, when its user
//! signs out, and whenever the user's password or rights change.

mod password;
mod principal;
mod throttle;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use engine::StoreError;
use protocol::v1::ProblemCode;
use store::{Access, ApiKey, Database, NewSession, Password, User, UserId};
use timer::Clock;

use crate::executors::{fingerprint, generate, is_well_known};
use crate::fault::Fault;
use password::Passwords;
pub use principal::Principal;
use throttle::Throttle;

/// Knows people, and recognises them.
pub struct People {
    clock: Arc<dyn Clock>,
    database: Arc<dyn Database>,
    passwords: Passwords,
    throttle: Throttle,
}

/// Somebody who has signed in.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// Who.
    pub user: User,
    /// The digest of the session's secret.
    pub session: String,
    /// The session's second secret, which pages of our own send with every change.
    pub csrf: String,
}

/// The first administrator of a new database, to be shown once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstAdmin {
    /// The name to sign in with.
    pub name: String,
    /// The password.
    pub password: String,
}

impl People {
    /// The people of a database.
    pub fn new(clock: Arc<dyn Clock>, database: Arc<dyn Database>) -> People {
        People { clock, database, passwords: Passwords::new(), throttle: Throttle::new() }
    }

    /// Gives a database that nobody can sign in to its first administrator.
    pub async fn first_admin(&self) -> Result<Option<FirstAdmin>, StoreError> {
        let first = FirstAdmin { name: FIRST_NAME.into(), password: password::generate() };
        if !self.database.user_page(&Default::default(), store::Page::first(1)).await?.rows.is_empty() {
            return Ok(None);
        }
        let hash = self.passwords.hash(&first.password).await;
        let hash = hash.map_err(|refusal| StoreError::Unavailable(refusal.to_string()))?;
        let is_first = self.database.create_first_admin(&first.name, &hash).await?;
        Ok(is_first.then_some(first))
    }

    /// Opens a session for whoever knows the password; returns its secret. Whether there is such a user is not told.
    pub async fn sign_in(
        &self,
        name: &str,
        password: &str,
        from: IpAddr,
        agent: &str,
    ) -> Result<String, Fault> {
        let name = name.trim();
        let user = self.recognise(name, password, from).await?;
        let secret = generate();
        let session = NewSession {
            digest: fingerprint(&secret),
            user: user.id,
            csrf: generate(),
            expires_at: self.clock.now() + SESSION_MAX,
            address: from.to_string(),
            agent: agent.to_owned(),
        };
        self.database.open_session(&session).await?;
        if let Err(error) = self.database.prune_sessions(IDLE_MAX, PRUNE_MAX).await {
            tracing::warn!(%error, "could not forget sessions that are over; the next to sign in tries again");
        }
        Ok(secret)
    }

    async fn recognise(&self, name: &str, password: &str, from: IpAddr) -> Result<User, Fault> {
        self.throttle.admit(name, from, self.clock.monotonic()).map_err(|wait| {
            let seconds = wait.as_millis().div_ceil(1_000);
            let why = format!("too many attempts to sign in; try again in {seconds} s");
            Fault { wait: Some(wait), ..Fault::new(ProblemCode::TooManyRequests, why) }
        })?;
        let wrong = || Fault::new(ProblemCode::WrongPassword, "the user name or the password is wrong");
        let user = self.database.user_by_name(name).await?.filter(|user| !user.access.disabled);
        let fits = match user.as_ref().map(|user| (&user.password, user)) {
            Some((Password::Hashed(hash), _)) => self.passwords.verify(password, Some(hash)).await?,
            Some((Password::Legacy(hash), user)) if password::fits_legacy(password, hash) => {
                self.upgrade(user, password, hash).await?;
                true
            }
            _ => self.passwords.verify(password, None).await?,
        };
        let user = user.filter(|_| fits).ok_or_else(wrong)?;
        self.throttle.succeeded(name);
        Ok(user)
    }

    /// Keeps our own hash beside XXL-JOB's, which a Java admin may still need.
    async fn upgrade(&self, user: &User, password: &str, legacy: &str) -> Result<(), Fault> {
        if is_well_known(password) {
            tracing::warn!(user = user.name, "signs in with a password that everybody knows; change it");
        }
        let hash = self.passwords.hash(password).await?;
        self.database.upgrade_password(user.id, legacy, &hash).await?;
        Ok(())
    }

    /// Whose session that is, if it is one.
    pub async fn session(&self, secret: &str) -> Result<Option<SignedIn>, StoreError> {
        let digest = fingerprint(secret);
        let Some((session, user)) = self.database.session(&digest, IDLE_MAX).await? else { return Ok(None) };
        if self.clock.now().duration_since(session.seen_at) > TOUCH_AFTER {
            self.database.touch_session(&digest).await?;
        }
        Ok(Some(SignedIn { user, session: digest, csrf: session.csrf }))
    }

    /// Whether a session still counts. That it was asked about is no use of it.
    pub async fn lasts(&self, session: &str) -> Result<bool, StoreError> {
        Ok(self.database.session(session, IDLE_MAX).await?.is_some())
    }

    /// Whose API key that is, if it is one.
    pub async fn key(&self, secret: &str) -> Result<Option<(ApiKey, User)>, StoreError> {
        let found = self.database.api_key(&fingerprint(secret)).await?;
        if let Some((key, _)) = &found
            && key.used_at.is_none_or(|used| self.clock.now().duration_since(used) > TOUCH_AFTER)
        {
            self.database.touch_api_key(key.id).await?;
        }
        Ok(found)
    }

    /// Ends a session.
    pub async fn sign_out(&self, who: &SignedIn) -> Result<(), StoreError> {
        self.database.end_session(&who.session).await.map(drop)
    }

    /// Gives whoever is signed in, and knows the old password, another. All their other sessions end.
    pub async fn change_password(
        &self,
        who: &SignedIn,
        old: &str,
        new: &str,
        from: IpAddr,
    ) -> Result<(), Fault> {
        self.recognise(&who.user.name, old, from)
            .await
            .map_err(|fault| Fault { why: format!("the old password was not accepted: {fault}"), ..fault })?;
        password::check_new(new)?;
        let hash = self.passwords.hash(new).await?;
        self.database.set_password_hash(who.user.id, &hash, Some(&who.session)).await?;
        Ok(())
    }

    /// Adds somebody.
    pub async fn add(&self, name: &str, password: &str, access: &Access) -> Result<UserId, Fault> {
        let name = name.trim();
        let length = name.chars().count();
        if !(NAME_MIN..=NAME_MAX).contains(&length) {
            return Err(Fault::field("name", format!("needs {NAME_MIN} to {NAME_MAX} characters")));
        }
        password::check_new(password)?;
        let hash = self.passwords.hash(password).await?;
        Ok(self.database.create_user(name, &hash, access).await?)
    }

    /// Changes what somebody may do, and the password too if one is given. All their sessions end if anything is new.
    pub async fn change(&self, id: UserId, password: Option<&str>, access: &Access) -> Result<(), Fault> {
        let hash = match password {
            Some(password) => {
                password::check_new(password)?;
                Some(self.passwords.hash(password).await?)
            }
            None => None,
        };
        if !self.database.update_user(id, access).await? {
            return Err(no_such_user(id));
        }
        if let Some(hash) = hash {
            self.database.set_password_hash(id, &hash, None).await?;
        }
        Ok(())
    }
}

/// The same for nobody and for somebody who is not to be seen.
pub fn no_such_user(id: UserId) -> Fault {
    Fault::not_found(format!("there is no user {}", id.0))
}

/// The name of the first administrator.
const FIRST_NAME: &str = "admin";

/// A session that nobody uses ends after so long,
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);

/// and any after so long.
pub const SESSION_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// That a session is used is noted to the minute.
const TOUCH_AFTER: Duration = Duration::from_secs(60);

/// Sessions forgotten at a time.
const PRUNE_MAX: usize = 100;

/// XXL-JOB's bounds for names, with room for addresses of mail.
const NAME_MIN: usize = 4;
const NAME_MAX: usize = 50;
