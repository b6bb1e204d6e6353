//! Origins of sign-ins that a user has used before: browsers, recognised by a signed cookie, and networks.
//!
//! A known origin does not sign in a user. It only shows the throttle that an attempt comes from where the account's
//! owner has signed in. The database stores a digest of each, so that every node recognises it, also after a restart;
//! a new password makes all except the current ones unknown. The digests depend on the cluster's key: the database
//! alone does not show from which networks a user signs in.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use ring::hmac::{self, HMAC_SHA256};
use store::SignInOrigin;
use timer::Timestamp;

use crate::executors::{Key, hex, random, unhex};

/// Issues and verifies device cookies, and computes digests of origins.
pub struct Origins {
    cookies: hmac::Key,
    digests: hmac::Key,
}

/// Id of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device<'a>(&'a str);

impl Origins {
    /// Origins whose cookies and digests depend on the cluster's key.
    pub fn new(key: &Key) -> Origins {
        let key = |purpose| hmac::Key::new(HMAC_SHA256, &key.derive(purpose));
        Origins { cookies: key("device"), digests: key("sign-in origin") }
    }

    /// Issues a cookie for a device of an account, and returns it with the origin. A device that is used again keeps
    /// its id, so that it has one throttle lane however often its user signs in.
    pub fn issue(&self, device: Option<Device<'_>>, account: &str, now: Timestamp) -> (String, SignInOrigin) {
        let id = device.map_or_else(|| hex(&random::<16>()), |Device(id)| id.to_owned());
        let until = (now + LIFETIME).as_millis();
        let tag = hmac::sign(&self.cookies, signed(&id, until, account).as_bytes());
        (format!("{id}.{until}.{}", hex(tag.as_ref())), self.device(Device(&id), account))
    }

    /// Device of a cookie, if the cookie was issued for this account and is still valid.
    pub fn recognise<'a>(&self, cookie: &'a str, account: &str, now: Timestamp) -> Option<Device<'a>> {
        let (id, rest) = cookie.split_once('.')?;
        let (until, tag) = rest.split_once('.')?;
        let until: i64 = until.parse().ok()?;
        let same = hmac::verify(&self.cookies, signed(id, until, account).as_bytes(), &unhex(tag)?).is_ok();
        (same && until > now.as_millis()).then_some(Device(id))
    }

    /// Origin of sign-ins on a device.
    pub fn device(&self, device: Device<'_>, account: &str) -> SignInOrigin {
        self.origin("device", device.0, account)
    }

    /// Origin of sign-ins from the network of an address.
    pub fn network(&self, address: IpAddr, account: &str) -> SignInOrigin {
        self.origin("network", &network(address).to_string(), account)
    }

    fn origin(&self, kind: &'static str, origin: &str, account: &str) -> SignInOrigin {
        let text = format!("{kind}\0{origin}\0{}", account.to_lowercase());
        SignInOrigin { kind, digest: hex(hmac::sign(&self.digests, text.as_bytes()).as_ref()) }
    }
}

fn signed(id: &str, until: i64, account: &str) -> String {
    format!("{id}\0{until}\0{}", account.to_lowercase())
}

/// Network that an address is counted under: a subscriber gets a whole /64 of IPv6 addresses.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}

/// How long an origin is known after the last sign-in from it.
pub const LIFETIME: Duration = Duration::from_secs(180 * 24 * 60 * 60);

/// Devices and networks remembered per account: those of a person, and of machines with scripts that use the account.
pub const KNOWN_EACH: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_known_for_its_account_by_every_node_until_it_expires() {
        let key = Key::generate();
        let now = Timestamp::from_millis(1_782_000_000_000);
        let (cookie, origin) = Origins::new(&key).issue(None, "Ann", now);
        let same = Origins::new(&Key::read(&key.written()).unwrap());
        let device = cookie.split('.').next().map(Device);
        assert_eq!(same.recognise(&cookie, "ann", now), device);
        assert_eq!(same.recognise(&cookie, "bob", now), None);
        assert_eq!(same.recognise(&cookie, "ann", now + LIFETIME), None);
        assert_eq!(Origins::new(&Key::generate()).recognise(&cookie, "ann", now), None);
        for broken in ["", "a.b.c", &cookie[1..], &format!("{cookie}0"), &cookie.replace('.', "")] {
            assert_eq!(same.recognise(broken, "ann", now), None, "{broken}");
        }
        assert_eq!(same.issue(device, "ann", now + LIFETIME / 2).1, origin, "it keeps its lane");
        assert_ne!(same.issue(None, "ann", now).1, origin);
    }

    #[test]
    fn a_network_is_an_origin_of_one_account_only() {
        let key = Key::generate();
        let (one, same) = (Origins::new(&key), Origins::new(&key));
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let office = one.network(at("198.51.100.1"), "ann");
        assert_eq!(same.network(at("::ffff:198.51.100.1"), "Ann"), office);
        assert_eq!(one.network(at("2001:db8::1"), "ann"), one.network(at("2001:db8::ffff:2"), "ann"));
        assert_ne!(one.network(at("198.51.100.1"), "bob"), office);
        assert_ne!(one.network(at("198.51.100.2"), "ann"), office);
        assert_ne!(Origins::new(&Key::generate()).network(at("198.51.100.1"), "ann"), office);
    }
}
