//! Slows down those who guess passwords, without ever locking anybody out.
//!
//! Tries are counted for each account and for each address they come from. The first few are free; each further one has
//! to wait twice as long as the one before, up to a minute. A try counts when it begins, so that a thousand at once are
//! no way around that, and only tries that were let through count.

use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

/// Counts tries. Its size is fixed, whatever names and addresses are made up: they share lanes, found by a secret hash.
pub struct Throttle {
    hasher: RandomState,
    accounts: Mutex<Vec<Lane>>,
    addresses: Mutex<Vec<Lane>>,
}

#[derive(Clone, Copy, Default)]
struct Lane {
    tries: u32,
    last: Duration,
}

impl Throttle {
    /// Nobody has tried yet.
    pub fn new() -> Throttle {
        let lanes = || Mutex::new(vec![Lane::default(); LANES]);
        Throttle { hasher: RandomState::new(), accounts: lanes(), addresses: lanes() }
    }

    /// Lets a try through, or says how long it has to wait. `now` never goes back.
    pub fn admit(&self, account: &str, from: IpAddr, now: Duration) -> Result<(), Duration> {
        let mut accounts = self.accounts.lock().expect("no holder of this lock panics");
        let mut addresses = self.addresses.lock().expect("no holder of this lock panics");
        let account = &mut accounts[self.lane(account)];
        let address = &mut addresses[self.lane(from)];
        let wait = account.wait(FREE_BY_ACCOUNT, now).max(address.wait(FREE_BY_ADDRESS, now));
        if !wait.is_zero() {
            return Err(wait);
        }
        account.count(now);
        address.count(now);
        Ok(())
    }

    /// The last try was right: the account starts anew. The address does not, or whoever has one account could use it to
    /// guess others.
    pub fn succeeded(&self, account: &str) {
        let lane = self.lane(account);
        self.accounts.lock().expect("no holder of this lock panics")[lane] = Lane::default();
    }

    fn lane(&self, key: impl Hash) -> usize {
        (self.hasher.hash_one(key) % LANES as u64) as usize
    }
}

impl Lane {
    fn wait(&mut self, free: u32, now: Duration) -> Duration {
        if now.saturating_sub(self.last) > FORGET {
            *self = Lane::default();
        }
        let Some(over) = self.tries.checked_sub(free) else { return Duration::ZERO };
        let pause = Duration::from_secs(1 << over.min(6)).min(PAUSE_MAX);
        (self.last + pause).saturating_sub(now)
    }

    fn count(&mut self, now: Duration) {
        self.tries = self.tries.saturating_add(1);
        self.last = now;
    }
}

/// A hundred kilobytes for both kinds; two names share a lane only by chance.
const LANES: usize = 4096;

/// Mistypings, and scripts that sign in side by side.
const FREE_BY_ACCOUNT: u32 = 10;

/// Many people may come from one address.
const FREE_BY_ADDRESS: u32 = 30;

/// Nobody who knows the password waits longer.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// After so long without a try, all is forgotten.
const FORGET: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    /// How many of a thousand tries in a minute are let through.
    fn let_through(
        throttle: &Throttle,
        account: impl Fn(u64) -> String,
        from: impl Fn(u64) -> IpAddr,
    ) -> usize {
        let at = |n: u64| Duration::from_millis(1_000_000 + 60 * n);
        (0..1_000).filter(|n| throttle.admit(&account(*n), from(*n), at(*n)).is_ok()).count()
    }

    #[test]
    fn of_a_thousand_guesses_in_a_minute_few_reach_the_hash() {
        let one = |_| "admin".to_owned();
        assert!(let_through(&Throttle::new(), one, |_| ip(1)) <= 20);
        assert!(let_through(&Throttle::new(), one, |n| ip((n % 50) as u8)) <= 20);
        assert!(let_through(&Throttle::new(), |n| format!("user-{n}"), |_| ip(1)) <= 40);
    }

    #[test]
    fn nobody_waits_longer_than_a_minute_and_success_ends_the_wait() {
        let throttle = Throttle::new();
        let mut now = Duration::from_secs(1_000_000);
        for _ in 0..40 {
            if let Err(wait) = throttle.admit("admin", ip(1), now) {
                assert!(wait <= PAUSE_MAX);
                now += wait;
                assert_eq!(throttle.admit("admin", ip(1), now), Ok(()));
            }
        }
        assert!(throttle.admit("admin", ip(2), now).is_err());
        throttle.succeeded("admin");
        assert_eq!(throttle.admit("admin", ip(2), now), Ok(()));
        assert!(throttle.admit("another", ip(1), now).is_err(), "the address is remembered");
        assert_eq!(throttle.admit("another", ip(1), now + FORGET * 2), Ok(()));
    }
}
