//! Devices: browsers in which a user has signed in before, recognised by a signed cookie.
//!
//! The cookie does not sign in a user. It only shows the throttle that an attempt comes from a device of the
//! account's owner. It is valid on every node of the cluster, since all have the same key, and survives restarts.

use std::time::Duration;

use ring::hmac::{self, HMAC_SHA256};
use timer::Timestamp;

use crate::executors::{Key, hex, random, unhex};

/// Issues and verifies device cookies.
pub struct Devices {
    key: hmac::Key,
}

impl Devices {
    /// Device cookies signed with the cluster's key.
    pub fn new(key: &Key) -> Devices {
        Devices { key: hmac::Key::new(HMAC_SHA256, &key.derive("device")) }
    }

    /// Issues a cookie for a new device of an account.
    pub fn issue(&self, account: &str, now: Timestamp) -> String {
        let id = hex(&random::<16>());
        let until = (now + LIFETIME).as_millis();
        let tag = hmac::sign(&self.key, signed(&id, until, account).as_bytes());
        format!("{id}.{until}.{}", hex(tag.as_ref()))
    }

    /// Id of the device, if the cookie was issued for this account and is still valid.
    pub fn recognise<'a>(&self, cookie: &'a str, account: &str, now: Timestamp) -> Option<&'a str> {
        let (id, rest) = cookie.split_once('.')?;
        let (until, tag) = rest.split_once('.')?;
        let until: i64 = until.parse().ok()?;
        let same = hmac::verify(&self.key, signed(id, until, account).as_bytes(), &unhex(tag)?).is_ok();
        (same && until > now.as_millis()).then_some(id)
    }
}

fn signed(id: &str, until: i64, account: &str) -> String {
    format!("{id}\0{until}\0{}", account.to_lowercase())
}

/// How long a device is known after the last sign-in on it.
pub const LIFETIME: Duration = Duration::from_secs(180 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_known_for_its_account_by_every_node_until_it_expires() {
        let key = Key::generate();
        let now = Timestamp::from_millis(1_782_000_000_000);
        let cookie = Devices::new(&key).issue("Ann", now);
        let same = Devices::new(&Key::read(&key.written()).unwrap());
        let id = cookie.split('.').next();
        assert_eq!(same.recognise(&cookie, "ann", now), id);
        assert_eq!(same.recognise(&cookie, "bob", now), None);
        assert_eq!(same.recognise(&cookie, "ann", now + LIFETIME), None);
        assert_eq!(Devices::new(&Key::generate()).recognise(&cookie, "ann", now), None);
        for broken in ["", "a.b.c", &cookie[1..], &format!("{cookie}0"), &cookie.replace('.', "")] {
            assert_eq!(same.recognise(broken, "ann", now), None, "{broken}");
        }
    }
}
