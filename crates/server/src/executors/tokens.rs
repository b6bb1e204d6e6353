//! Access tokens: those that executors send, and those that are sent to them.
//!
//! XXL-JOB uses one token in both directions, so it is stored twice: as a digest, to recognize a caller, and
//! encrypted with the cluster's key, to be sent to executors. A token gives access to its own app only; the global
//! token, of old setups, to all.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{RwLock, RwLockReadGuard};

use engine::AppId;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{SHA256, digest};
use ring::hmac::{self, HMAC_SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use store::{App, Token};
use timer::Timestamp;

use super::secrets::Secrets;
use crate::outbound::Secret;

/// The apps that a caller may access, with their jobs, runs and registrations, and how the caller proved it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every app: the caller sent the token for all apps.
    Every,
    /// One app: the caller sent a token of that app.
    App(AppId),
    /// The caller sent no valid token. Without an app it may access every app that needs none, else only that app.
    Anonymous(Option<AppId>),
}

/// Access tokens that are accepted from callers and sent to executors.
#[derive(Default)]
pub struct Tokens {
    /// From the configuration: valid for all apps, and sent to executors of apps without a token of their own.
    global: Option<Secret>,
    /// Whether callers without a token may access apps that have none, unless there is a token for all apps.
    open: bool,
    rows: RwLock<Rows>,
    /// Secrets of apps, encrypted with the same key.
    pub secrets: Secrets,
}

#[derive(Default)]
struct Rows {
    incoming: HashMap<String, Scope>,
    outgoing: HashMap<AppId, Secret>,
    /// Apps that have a token, whether or not this node can decrypt it.
    protected: HashSet<AppId>,
    /// Every valid token that could be decrypted, by its digest.
    by_digest: HashMap<String, Secret>,
}

impl Tokens {
    /// `global` is from the configuration; `open` admits callers without a token to apps that have none.
    pub fn new(global: Option<Secret>, open: bool) -> Self {
        Tokens { global, open, rows: RwLock::default(), secrets: Secrets::default() }
    }

    /// Replaces the tokens with those in the database.
    pub fn learn(&self, apps: &[App], tokens: &[Token], key: &Key, now: Timestamp) {
        let mut rows = Rows::default();
        // The app's own column, in databases that have one: least trusted, so it comes first and is overridden.
        for app in apps {
            if let Some(token) = app.access_token.as_deref().filter(|token| !is_well_known(token)) {
                rows.protected.insert(app.id);
                rows.incoming.insert(fingerprint(token), Scope::App(app.id));
                rows.outgoing.insert(app.id, Secret::new(token));
                rows.by_digest.insert(fingerprint(token), Secret::new(token));
            }
        }
        // Oldest first, so that the newest is the one sent.
        for row in tokens.iter().filter(|row| row.expires_at.is_none_or(|at| at > now)) {
            let scope = row.app.map_or(Scope::Every, Scope::App);
            rows.incoming.insert(row.digest.clone(), scope);
            rows.protected.extend(row.app);
            match (row.app, key.open(&row.sealed)) {
                (app, Some(token)) => {
                    rows.by_digest.insert(row.digest.clone(), token.clone());
                    rows.outgoing.extend(app.map(|app| (app, token)));
                }
                (Some(app), None) => {
                    tracing::error!(
                        app = app.0,
                        "failed to decrypt the token of an app: it was encrypted with another key; its \
                         executors will reject requests of this node until all nodes have the same key file"
                    );
                }
                (None, _) => {}
            }
        }
        *self.rows.write().expect("no holder of this lock panics") = rows;
    }

    /// Returns the scope of a caller with this token; `None` if it is rejected. `app` is the app in the request.
    pub fn admit(&self, token: Option<&str>, app: Option<AppId>) -> Option<Scope> {
        let token = token.unwrap_or_default();
        let digest = fingerprint(token);
        if let Some(global) = &self.global
            && digest == fingerprint(global.value())
        {
            return Some(Scope::Every);
        }
        let known = self.rows().incoming.get(&digest).copied();
        match known {
            Some(Scope::App(owner)) if app.is_some_and(|app| app != owner) => None,
            Some(scope) => Some(scope),
            None if app.is_some_and(|app| !self.needs_none(app)) => None,
            None => (self.open && self.global.is_none()).then_some(Scope::Anonymous(app)),
        }
    }

    /// Returns whether callers may access an app without a token.
    pub fn needs_none(&self, app: AppId) -> bool {
        self.open && self.global.is_none() && !self.rows().protected.contains(&app)
    }

    /// Returns whether a scope covers an app.
    pub fn covers(&self, scope: Scope, app: AppId) -> bool {
        match scope {
            Scope::Every => true,
            Scope::App(own) | Scope::Anonymous(Some(own)) => own == app,
            Scope::Anonymous(None) => self.needs_none(app),
        }
    }

    /// Returns the token sent to the executors of an app.
    pub fn outgoing(&self, app: AppId) -> Option<Secret> {
        self.rows().outgoing.get(&app).cloned().or_else(|| self.global.clone())
    }

    /// Returns the token sent to an executor that registered with the token of this digest: that one while it is
    /// valid, else the same as for the other executors.
    pub fn outgoing_to(&self, app: AppId, digest: &str) -> Option<Secret> {
        let rows = self.rows();
        let is_covered =
            rows.incoming.get(digest).is_some_and(|scope| [Scope::Every, Scope::App(app)].contains(scope));
        let own = rows.by_digest.get(digest).filter(|_| is_covered).cloned();
        drop(rows);
        let global = self.global.clone().filter(|global| fingerprint(global.value()) == digest);
        own.or(global).or_else(|| self.outgoing(app))
    }

    fn rows(&self) -> RwLockReadGuard<'_, Rows> {
        self.rows.read().expect("no holder of this lock panics")
    }
}

/// Returns whether a token or password is a well-known default.
pub fn is_well_known(token: &str) -> bool {
    ["", "default_token", "xxl-job", "xxl_job", "123456", "admin", "password", "token"]
        .contains(&token.trim().to_ascii_lowercase().as_str())
}

/// SHA-256 of a token, which identifies it without storing it. Looking it up in a table reveals nothing about the
/// stored tokens through timing.
pub fn fingerprint(token: &str) -> String {
    hex(digest(&SHA256, token.as_bytes()).as_ref())
}

/// Generates a token of 256 random bits.
pub fn generate() -> String {
    hex(&random::<32>())
}

/// Encodes bytes as hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes the output of [`hex`].
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if digits.len().is_multiple_of(2) { digits.chunks(2).map(byte).collect() } else { None }
}

/// Returns random bytes for secrets.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// Encryption key of the cluster: values sealed with it can only be read by nodes with the same key.
#[derive(Clone)]
pub struct Key([u8; Key::LENGTH]);

impl Key {
    /// Length in bytes.
    pub const LENGTH: usize = 32;

    /// Generates a key.
    pub fn generate() -> Key {
        Key(random())
    }

    /// Parses the output of [`written`](Key::written).
    pub fn read(text: &str) -> Option<Key> {
        Some(Key(unhex(text.trim())?.try_into().ok()?))
    }

    /// Returns the text for the key file.
    pub fn written(&self) -> String {
        hex(&self.0)
    }

    /// Derives a key for another purpose, from which this one cannot be computed.
    pub(crate) fn derive(&self, purpose: &str) -> [u8; Key::LENGTH] {
        let tag = hmac::sign(&hmac::Key::new(HMAC_SHA256, &self.0), purpose.as_bytes());
        tag.as_ref().try_into().expect("HMAC-SHA256 has the length of a key")
    }

    /// Encrypts a secret.
    pub fn seal(&self, secret: &str) -> String {
        let nonce = random::<NONCE_LEN>();
        let mut bytes = secret.as_bytes().to_vec();
        self.cipher()
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut bytes)
            .expect("a token is far shorter than the cipher's limit");
        hex(&[&nonce[..], &bytes].concat())
    }

    /// Decrypts a secret; `None` if it was sealed with another key.
    pub fn open(&self, sealed: &str) -> Option<Secret> {
        let bytes = unhex(sealed)?;
        let (nonce, rest) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::assume_unique_for_key(nonce.try_into().ok()?);
        let mut rest = rest.to_vec();
        let plain = self.cipher().open_in_place(nonce, Aad::empty(), &mut rest).ok()?;
        Some(Secret::new(std::str::from_utf8(plain).ok()?))
    }

    fn cipher(&self) -> LessSafeKey {
        LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &self.0).expect("a key has the cipher's length"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{Addresses, AppSpec};

    fn app(id: i64, access_token: Option<&str>) -> App {
        App {
            id: AppId(id),
            spec: AppSpec {
                name: format!("app-{id}"),
                title: String::new(),
                addresses: Addresses::Registered,
            },
            listed: Vec::new(),
            access_token: access_token.map(Into::into),
            updated_at: None,
        }
    }

    fn row(id: i64, app: Option<i64>, token: &str, key: &Key, expires: Option<i64>) -> Token {
        Token {
            id,
            app: app.map(AppId),
            digest: fingerprint(token),
            sealed: key.seal(token),
            created_at: Timestamp::from_millis(id),
            expires_at: expires.map(Timestamp::from_millis),
        }
    }

    #[test]
    fn a_token_opens_its_own_app_and_no_other() {
        let key = Key::generate();
        let tokens = Tokens::new(Some(Secret::new("for all")), false);
        let rows = [
            row(1, Some(1), "old", &key, Some(1_000)),
            row(2, Some(1), "new", &key, None),
            row(3, Some(2), "two", &key, None),
        ];
        let check = |token: Option<&str>, app: Option<i64>, now: i64, expected: Option<Scope>| {
            tokens.learn(&[app_of(1), app_of(2)], &rows, &key, Timestamp::from_millis(now));
            assert_eq!(tokens.admit(token, app.map(AppId)), expected, "{token:?} {app:?} at {now}");
        };
        fn app_of(id: i64) -> App {
            app(id, None)
        }
        let one = Some(Scope::App(AppId(1)));
        check(Some("new"), Some(1), 0, one);
        check(Some("old"), Some(1), 0, one);
        check(Some("old"), Some(1), 1_000, None);
        check(Some("new"), None, 0, one);
        check(Some("new"), Some(2), 0, None);
        check(Some("NEW"), Some(1), 0, None);
        check(Some("for all"), Some(2), 0, Some(Scope::Every));
        check(None, Some(1), 0, None);
        check(Some(""), None, 0, None);
        assert_eq!(tokens.outgoing(AppId(1)).map(|token| token.value().to_owned()), Some("new".into()));
        let shown = |app: i64, token: &str| {
            tokens.outgoing_to(AppId(app), &fingerprint(token)).map(|token| token.value().to_owned())
        };
        tokens.learn(&[app_of(1), app_of(2)], &rows, &key, Timestamp::from_millis(0));
        assert_eq!(shown(1, "old"), Some("old".into()));
        assert_eq!(shown(1, "new"), Some("new".into()));
        assert_eq!(shown(1, "for all"), Some("for all".into()));
        assert_eq!(shown(1, "two"), Some("new".into()), "another app's");
        assert_eq!(shown(1, "never heard of"), Some("new".into()));
        tokens.learn(&[app_of(1), app_of(2)], &rows, &key, Timestamp::from_millis(1_000));
        assert_eq!(shown(1, "old"), Some("new".into()), "it has expired");
        assert_eq!(tokens.outgoing(AppId(9)).map(|token| token.value().to_owned()), Some("for all".into()));
    }

    #[test]
    fn a_caller_without_a_token_may_access_apps_that_have_none_and_only_where_that_is_allowed() {
        let key = Key::generate();
        for open in [true, false] {
            let tokens = Tokens::new(None, open);
            tokens.learn(
                &[app(1, None), app(2, Some("own")), app(3, Some("default_token"))],
                &[],
                &key,
                Timestamp::default(),
            );
            let anonymous = |app: i64| open.then_some(Scope::Anonymous(Some(AppId(app))));
            assert_eq!(tokens.admit(None, Some(AppId(1))), anonymous(1));
            assert_eq!(tokens.admit(None, Some(AppId(2))), None);
            assert_eq!(tokens.admit(Some("own"), Some(AppId(2))), Some(Scope::App(AppId(2))));
            assert_eq!(tokens.admit(Some("own"), Some(AppId(1))), None);
            assert_eq!(tokens.admit(Some("default_token"), Some(AppId(3))), anonymous(3));
            let unnamed = tokens.admit(None, None);
            assert_eq!(unnamed, open.then_some(Scope::Anonymous(None)));
            if let Some(unnamed) = unnamed {
                assert!(tokens.covers(unnamed, AppId(1)) && !tokens.covers(unnamed, AppId(2)));
                assert!(!tokens.covers(Scope::Anonymous(Some(AppId(1))), AppId(3)));
            }
        }
    }

    #[test]
    fn a_token_that_this_node_cannot_decrypt_protects_its_app_all_the_same() {
        let tokens = Tokens::new(None, true);
        let rows = [row(1, Some(1), "a token", &Key::generate(), None)];
        tokens.learn(&[app(1, None)], &rows, &Key::generate(), Timestamp::default());
        assert_eq!(tokens.admit(None, Some(AppId(1))), None);
        assert_eq!(tokens.admit(Some("a token"), Some(AppId(1))), Some(Scope::App(AppId(1))));
    }

    #[test]
    fn where_there_is_a_token_for_all_apps_nobody_comes_without_one() {
        let tokens = Tokens::new(Some(Secret::new("for all")), true);
        tokens.learn(&[app(1, None)], &[], &Key::generate(), Timestamp::default());
        assert_eq!(tokens.admit(None, Some(AppId(1))), None);
        assert_eq!(tokens.admit(None, None), None);
    }

    #[test]
    fn what_is_sealed_only_the_same_key_opens() {
        let key = Key::generate();
        let sealed = key.seal("a token");
        assert_ne!(sealed, key.seal("a token"), "no two look alike");
        let same = Key::read(&key.written()).expect("what was written can be read");
        assert_eq!(same.open(&sealed).map(|secret| secret.value().to_owned()), Some("a token".into()));
        assert!(Key::generate().open(&sealed).is_none());
        for broken in ["", "zz", "00", &sealed[1..], &format!("{sealed}00")] {
            assert!(key.open(broken).is_none(), "{broken}");
        }
        assert!(Key::read("0123").is_none());
        assert_eq!(format!("{key:?}"), "Key(…)");
    }
}
