//! Slows down password guessing without locking users out.
//!
//! Wrong attempts are counted per account and per address. The first few are free; each further one has to wait
//! twice as long as the one before, up to a minute. An attempt counts from its start, so that a thousand parallel
//! attempts gain nothing; if the password is right, its count is removed.
//!
//! A flood of wrong attempts from elsewhere must not lock out the owner of an account. Therefore each origin from
//! which the account was signed in to before ([`Origins`](super::origins::Origins)) has its own counter, which only
//! attempts from there increase.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::origins::network;

/// Counts attempts. Its memory is bounded, also under attempts with random names and addresses.
pub struct Throttle {
    hasher: RandomState,
    counters: Mutex<Counters>,
}

/// Strangers share counters, found by a secret hash, so that their number is fixed. Known origins have exact ones: they
/// exist only where a right password was sent.
struct Counters {
    accounts: Vec<Counter>,
    addresses: Vec<Counter>,
    known: HashMap<String, Known>,
}

/// Counter of a known origin.
#[derive(Default)]
struct Known {
    used_at: Duration,
    counter: Counter,
}

#[derive(Clone, Copy, Default)]
struct Counter {
    wrong: u32,
    wrong_at: Duration,
    /// Attempts that are being checked.
    pending: u32,
}

/// A sign-in attempt.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// Name of the account.
    pub account: &'a str,
    /// IP address of the client.
    pub from: IpAddr,
    /// Digest of the device, network or session that the attempt comes from, if the account was signed in to there
    /// before.
    pub known: Option<&'a str>,
}

/// Why an attempt is not checked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Too many wrong attempts; the next one is allowed after this time.
    For(Duration),
    /// Other attempts are being checked; their results decide.
    ForOthers,
}

/// An attempt that may be checked. If dropped without a result, it counts as wrong.
pub struct Ticket<'a> {
    throttle: &'a Throttle,
    key: Option<CounterKey>,
    at: Duration,
}

/// Counters of an attempt.
#[derive(Clone, Debug)]
enum CounterKey {
    Stranger { account: usize, address: usize },
    Known(String),
}

impl Throttle {
    /// Creates a throttle without attempts.
    pub fn new() -> Throttle {
        let counters = || vec![Counter::default(); COUNTERS];
        let counters = Counters { accounts: counters(), addresses: counters(), known: HashMap::new() };
        Throttle { hasher: RandomState::new(), counters: Mutex::new(counters) }
    }

    /// Admits an attempt, or returns how long it has to wait. `now` never goes back.
    pub fn admit(&self, attempt: Attempt<'_>, now: Duration) -> Result<Ticket<'_>, Wait> {
        let mut counters = self.lock();
        let key = self.key(attempt);
        if let CounterKey::Known(origin) = &key {
            counters.open(origin, now);
        }
        let mut wait = None;
        for (counter, free) in counters.at(&key) {
            wait = longer(wait, counter.wait(free, now));
        }
        if let Some(wait) = wait {
            return Err(wait);
        }
        for (counter, _) in counters.at(&key) {
            counter.pending += 1;
        }
        Ok(Ticket { throttle: self, key: Some(key), at: now })
    }

    fn key(&self, attempt: Attempt<'_>) -> CounterKey {
        match attempt.known {
            Some(origin) => CounterKey::Known(origin.to_owned()),
            None => CounterKey::Stranger {
                account: self.index(attempt.account.to_lowercase()),
                address: self.index(network(attempt.from)),
            },
        }
    }

    fn index(&self, key: impl Hash) -> usize {
        (self.hasher.hash_one(key) % COUNTERS as u64) as usize
    }

    fn lock(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().expect("no holder of this lock panics")
    }
}

impl Ticket<'_> {
    /// The password was right, or could not be checked: the attempt does not count.
    pub fn give_back(mut self) {
        let mut counters = self.throttle.lock();
        if let Some(key) = self.key.take() {
            counters.at(&key).for_each(|(counter, _)| counter.finish());
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        for (counter, _) in self.throttle.lock().at(&key) {
            counter.finish();
            counter.wrong = counter.wrong.saturating_add(1);
            counter.wrong_at = counter.wrong_at.max(self.at);
        }
    }
}

impl Counters {
    /// Counters with this key, each with its number of free wrong attempts.
    fn at(&mut self, key: &CounterKey) -> impl Iterator<Item = (&mut Counter, u32)> {
        let mut found = Vec::with_capacity(2);
        match key {
            CounterKey::Stranger { account, address } => {
                found.push((&mut self.accounts[*account], FREE_BY_ACCOUNT));
                found.push((&mut self.addresses[*address], FREE_BY_ADDRESS));
            }
            CounterKey::Known(origin) => {
                let known = self.known.get_mut(origin).into_iter();
                found.extend(known.map(|known| (&mut known.counter, FREE_BY_ACCOUNT)));
            }
        }
        found.into_iter()
    }

    /// Opens the counter of a known origin, in place of the one that was not used for longest.
    fn open(&mut self, origin: &str, now: Duration) {
        if let Some(known) = self.known.get_mut(origin) {
            known.used_at = now;
            return;
        }
        if self.known.len() >= KNOWN_MAX {
            let idle = self.known.iter().filter(|(_, known)| known.counter.pending == 0);
            if let Some(oldest) =
                idle.min_by_key(|(_, known)| known.used_at).map(|(origin, _)| origin.clone())
            {
                self.known.remove(&oldest);
            }
        }
        self.known.insert(origin.to_owned(), Known { used_at: now, counter: Counter::default() });
    }
}

impl Counter {
    fn wait(&mut self, free: u32, now: Duration) -> Option<Wait> {
        if now.saturating_sub(self.wrong_at) > FORGET {
            self.wrong = 0;
        }
        if self.wrong.saturating_add(self.pending) < free {
            return None;
        }
        let Some(over) = self.wrong.checked_sub(free) else { return Some(Wait::ForOthers) };
        let pause = Duration::from_secs(1 << over.min(6)).min(PAUSE_MAX);
        let wait = (self.wrong_at + pause).saturating_sub(now);
        match wait.is_zero() {
            false => Some(Wait::For(wait)),
            true => (self.pending > 0).then_some(Wait::ForOthers),
        }
    }

    fn finish(&mut self) {
        self.pending = self.pending.saturating_sub(1);
    }
}

fn longer(one: Option<Wait>, other: Option<Wait>) -> Option<Wait> {
    match (one, other) {
        (Some(Wait::For(one)), Some(Wait::For(other))) => Some(Wait::For(one.max(other))),
        (Some(Wait::For(wait)), _) | (_, Some(Wait::For(wait))) => Some(Wait::For(wait)),
        (one, other) => one.or(other),
    }
}

/// Counters of each kind, 24 bytes each; two names share one only by chance.
const COUNTERS: usize = 4096;

/// Free wrong attempts per account, for typing errors.
const FREE_BY_ACCOUNT: u32 = 10;

/// Free wrong attempts per address; many people may share one.
const FREE_BY_ADDRESS: u32 = 30;

/// Longest delay for an attempt with the right password.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Time without wrong attempts after which all are forgotten.
const FORGET: Duration = Duration::from_secs(600);

/// Counters of known origins: a few megabytes at most. Only a user with the right password adds one.
const KNOWN_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    fn ip(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn from(account: &str, from: IpAddr) -> Attempt<'_> {
        Attempt { account, from, known: None }
    }

    const START: Duration = Duration::from_secs(1_000_000);

    /// Number of a thousand wrong attempts in a minute that are checked.
    fn checked(account: impl Fn(u64) -> String, address: impl Fn(u64) -> IpAddr) -> usize {
        let throttle = Throttle::new();
        let at = |n: u64| START + Duration::from_millis(60 * n);
        (0..1_000).filter(|n| throttle.admit(from(&account(*n), address(*n)), at(*n)).is_ok()).count()
    }

    #[test]
    fn of_a_thousand_guesses_in_a_minute_few_reach_the_hash() {
        let one = |_| "admin".to_owned();
        assert!(checked(one, |_| ip(1)) <= 20);
        assert!(checked(one, |n| ip((n % 50) as u8)) <= 20);
        assert!(checked(|n| format!("user-{n}"), |_| ip(1)) <= 40);
        let spelled = |n: u64| ["admin", "Admin", "ADMIN", "aDmin"][n as usize % 4].to_owned();
        assert!(checked(spelled, |n| ip((n % 50) as u8)) <= 20, "databases may ignore case");
        let in_one_network = |n: u64| IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8_u128 << 96 | u128::from(n)));
        assert!(checked(|n| format!("user-{n}"), in_one_network) <= 40);
    }

    #[test]
    fn nobody_waits_longer_than_a_minute() {
        let throttle = Throttle::new();
        let mut now = START;
        for _ in 0..40 {
            match throttle.admit(from("admin", ip(1)), now) {
                Ok(_) => {}
                Err(Wait::For(wait)) => {
                    assert!(wait <= PAUSE_MAX);
                    now += wait;
                    assert!(throttle.admit(from("admin", ip(1)), now).is_ok());
                }
                Err(Wait::ForOthers) => panic!("nothing is being checked"),
            }
        }
        assert!(throttle.admit(from("admin", ip(2)), now).is_err());
        assert!(throttle.admit(from("admin", ip(2)), now + FORGET * 2).is_ok());
    }

    #[test]
    fn right_passwords_are_never_throttled() {
        let throttle = Throttle::new();
        for n in 0..1_000_u32 {
            let account = format!("user-{}", n % 100);
            let attempt = from(&account, ip(1));
            throttle.admit(attempt, START).unwrap_or_else(|_| panic!("{n}")).give_back();
        }
        // Each right attempt removes only its own count.
        for n in 0..u64::from(FREE_BY_ADDRESS) {
            drop(throttle.admit(from(&format!("other-{n}"), ip(1)), START).unwrap_or_else(|_| panic!("{n}")));
            let attempt = Attempt { known: Some("office"), ..from("user-1", ip(1)) };
            throttle.admit(attempt, START).unwrap_or_else(|_| panic!("{n}")).give_back();
        }
        assert_eq!(
            throttle.admit(from("another", ip(1)), START).err(),
            Some(Wait::For(Duration::from_secs(1)))
        );
    }

    #[test]
    fn a_flood_of_wrong_passwords_does_not_reach_known_origins() {
        let throttle = Throttle::new();
        let office = Attempt { known: Some("office"), ..from("admin", ip(1)) };
        let laptop = Attempt { known: Some("laptop"), ..from("admin", ip(200)) };
        for second in 1..400 {
            let now = START + Duration::from_secs(second);
            for n in 0..50 {
                drop(throttle.admit(from("admin", ip(10 + n)), now));
                // Wrong attempts for other accounts from the owner's address do not affect the owner either.
                drop(throttle.admit(from(&format!("user-{n}"), ip(1)), now));
            }
            assert!(throttle.admit(from("admin", ip(200)), now).is_err(), "a new address has to wait");
            throttle.admit(office, now).ok().unwrap().give_back();
            throttle.admit(laptop, now).ok().unwrap().give_back();
        }
        // Guessing is slow there, too.
        let now = START + Duration::from_secs(400);
        for known in [office, laptop] {
            let admitted = (0..100).filter(|_| throttle.admit(known, now).is_ok()).count();
            assert_eq!(admitted, FREE_BY_ACCOUNT as usize);
        }
    }

    #[test]
    fn many_at_once_wait_for_each_other_s_results() {
        let throttle = Throttle::new();
        let attempt = Attempt { known: Some("office"), ..from("admin", ip(1)) };
        let held: Vec<_> =
            (0..FREE_BY_ACCOUNT).map(|_| throttle.admit(attempt, START).ok().unwrap()).collect();
        assert_eq!(throttle.admit(attempt, START).err(), Some(Wait::ForOthers));
        for ticket in held {
            ticket.give_back();
        }
        assert!(throttle.admit(attempt, START).is_ok());
        let stranger = from("admin", ip(2));
        let held: Vec<_> =
            (0..FREE_BY_ACCOUNT).map(|_| throttle.admit(stranger, START).ok().unwrap()).collect();
        drop(held);
        assert_eq!(throttle.admit(stranger, START).err(), Some(Wait::For(Duration::from_secs(1))));
    }

    #[test]
    fn the_counters_of_known_origins_are_bounded() {
        let throttle = Throttle::new();
        fn attempt(origin: &str) -> Attempt<'_> {
            Attempt { known: Some(origin), ..from("admin", ip(1)) }
        }
        let pending = throttle.admit(attempt("pending"), START).ok().unwrap();
        for n in 0..=KNOWN_MAX {
            let (origin, now) = (format!("origin-{n}"), START + Duration::from_millis(n as u64));
            throttle.admit(attempt(&origin), now).ok().unwrap().give_back();
        }
        assert_eq!(throttle.lock().known.len(), KNOWN_MAX);
        assert!(throttle.lock().known.contains_key("pending"));
        assert!(!throttle.lock().known.contains_key("origin-0"));
        drop(pending);
    }
}
