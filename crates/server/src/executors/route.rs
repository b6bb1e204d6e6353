//! Routing: the ten routing strategies, with exactly the choices of XXL-JOB.
//!
//! A choice depends on the address list at the time of the claim, in its order, and on this node's earlier choices
//! for the same job. That history is bounded and, as in XXL-JOB, reset once a day.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;
use std::time::Duration;

use engine::JobId;
use engine::policy::Route;
use timer::Timestamp;

/// Earlier choices of this node.
#[derive(Debug, Default)]
pub struct Choices {
    since: Timestamp,
    rounds: HashMap<JobId, u64>,
    frequencies: HashMap<JobId, HashMap<String, u64>>,
    recencies: HashMap<JobId, Vec<String>>,
}

impl Choices {
    /// Returns the position in the candidates that the route chooses for a job. The list must not be empty, and the
    /// route must be one that chooses without calling executors.
    pub fn choose(&mut self, route: Route, job: JobId, among: &Candidates, now: Timestamp) -> usize {
        let addresses = among.addresses();
        if now.duration_since(self.since) > MEMORY {
            *self = Choices { since: now, ..Choices::default() };
        }
        let last = addresses.len() - 1;
        match route {
            Route::First | Route::Failover | Route::FirstIdle | Route::Broadcast => 0,
            Route::Last => last,
            Route::Random => fastrand::usize(..=last),
            Route::RoundRobin => self.next_in_turn(job, addresses.len()),
            Route::ConsistentHash => among.by_hash(job),
            Route::LeastFrequentlyUsed => self.least_frequent(job, addresses),
            Route::LeastRecentlyUsed => self.least_recent(job, addresses),
        }
    }

    /// The first turn is random, so that the first executor of a list does not get the first run of every job.
    fn next_in_turn(&mut self, job: JobId, length: usize) -> usize {
        let turn = match self.rounds.get(&job) {
            Some(turn) if *turn <= COUNT_MAX => turn + 1,
            _ => fastrand::u64(0..100),
        };
        self.rounds.insert(job, turn);
        (turn % length as u64) as usize
    }

    fn least_frequent(&mut self, job: JobId, addresses: &[String]) -> usize {
        let counts = self.frequencies.entry(job).or_default();
        counts.retain(|known, _| addresses.contains(known));
        for address in addresses {
            let count = counts.entry(address.clone()).or_insert(COUNT_MAX + 1);
            if *count > COUNT_MAX {
                *count = fastrand::u64(0..addresses.len() as u64);
            }
        }
        let least = addresses.iter().enumerate().min_by_key(|(_, address)| counts.get(*address).copied());
        let chosen = least.map_or(0, |(position, _)| position);
        *counts.entry(addresses[chosen].clone()).or_default() += 1;
        chosen
    }

    fn least_recent(&mut self, job: JobId, addresses: &[String]) -> usize {
        let order = self.recencies.entry(job).or_default();
        order.retain(|known| addresses.contains(known));
        for address in addresses {
            if !order.contains(address) {
                order.push(address.clone());
            }
        }
        let eldest = order.remove(0);
        let chosen = addresses.iter().position(|address| *address == eldest).unwrap_or_default();
        order.push(eldest);
        chosen
    }
}

/// The executors that a run can be sent to, in order.
#[derive(Debug, Default)]
pub struct Candidates {
    addresses: Vec<String>,
    /// Built on first use, because only jobs routed by hash need it and it costs 100 hashes for each address.
    ring: OnceLock<Vec<(u32, usize)>>,
}

impl Candidates {
    /// Creates candidates from these addresses.
    pub fn new(addresses: Vec<String>) -> Self {
        Candidates { addresses, ring: OnceLock::new() }
    }

    /// Returns the addresses in order.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Returns the position of the executor with the next point on the ring after the job's hash.
    fn by_hash(&self, job: JobId) -> usize {
        let ring = self.ring.get_or_init(|| ring(&self.addresses));
        let next = ring.partition_point(|(point, _)| *point < hash(&job.to_string()));
        ring.get(next).or(ring.first()).map_or(0, |(_, position)| *position)
    }
}

/// Returns 100 points for each address. If two addresses have the same point, the later one gets it.
fn ring(addresses: &[String]) -> Vec<(u32, usize)> {
    let points = addresses.iter().enumerate().flat_map(|(position, address)| {
        (0..POINTS).map(move |point| (hash(&format!("SHARD-{address}-NODE-{point}")), position))
    });
    points.collect::<BTreeMap<_, _>>().into_iter().collect()
}

/// The first four bytes of the MD5, as a little-endian number.
fn hash(key: &str) -> u32 {
    let digest = md5::compute(key.as_bytes());
    u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]])
}

/// Points of one address on the ring.
const POINTS: usize = 100;

/// XXL-JOB resets its counters above this.
const COUNT_MAX: u64 = 1_000_000;

/// How long choices are remembered.
const MEMORY: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    /// Candidates named by `letters`.
    fn executors(letters: &str) -> Candidates {
        let address = |letter: u8| format!("http://10.0.0.{}:9999/", letter - b'A' + 1);
        Candidates::new(letters.bytes().map(address).collect())
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn hashes_and_jobs_fall_where_xxl_job_puts_them() {
        assert_eq!(hash("1"), 943_901_380);
        assert_eq!(hash("SHARD-http://10.0.0.1:9999/-NODE-0"), 3_725_898_238);
        let expected = [
            (1, 'C'),
            (2, 'C'),
            (3, 'A'),
            (4, 'C'),
            (5, 'A'),
            (6, 'C'),
            (7, 'B'),
            (8, 'B'),
            (9, 'A'),
            (10, 'A'),
            (16, 'B'),
            (17, 'B'),
            (100, 'C'),
            (12345, 'B'),
        ];
        for (job, letter) in expected {
            assert_eq!(b"ABC"[executors("ABC").by_hash(JobId(job))] as char, letter, "job {job}");
        }
    }

    #[test]
    fn fixed_routes_take_the_ends_of_the_list() {
        let mut choices = Choices::default();
        assert_eq!(choices.choose(Route::First, JobId(1), &executors("ABC"), at(0)), 0);
        assert_eq!(choices.choose(Route::Last, JobId(1), &executors("ABC"), at(0)), 2);
        assert!((0..50).all(|_| choices.choose(Route::Random, JobId(1), &executors("ABC"), at(0)) < 3));
    }

    #[test]
    fn turns_go_round_for_each_job_on_its_own() {
        let mut choices = Choices::default();
        let first = choices.choose(Route::RoundRobin, JobId(1), &executors("ABC"), at(0));
        let other = choices.choose(Route::RoundRobin, JobId(2), &executors("ABC"), at(0));
        for turn in 1..10 {
            assert_eq!(
                choices.choose(Route::RoundRobin, JobId(1), &executors("ABC"), at(0)),
                (first + turn) % 3
            );
        }
        assert_eq!(choices.choose(Route::RoundRobin, JobId(2), &executors("ABC"), at(0)), (other + 1) % 3);
    }

    #[test]
    fn frequency_and_recency_spread_the_runs_evenly() {
        for route in [Route::LeastFrequentlyUsed, Route::LeastRecentlyUsed] {
            let mut choices = Choices::default();
            let mut counts = [0; 3];
            for _ in 0..300 {
                counts[choices.choose(route, JobId(1), &executors("ABC"), at(0))] += 1;
            }
            assert!(counts.iter().all(|count| (97..=103).contains(count)), "{route:?} {counts:?}");
        }
    }

    #[test]
    fn an_executor_that_left_is_forgotten_and_one_that_came_is_chosen() {
        for route in [Route::LeastFrequentlyUsed, Route::LeastRecentlyUsed] {
            let mut choices = Choices::default();
            for _ in 0..20 {
                choices.choose(route, JobId(1), &executors("AB"), at(0));
            }
            let chosen: Vec<usize> =
                (0..40).map(|_| choices.choose(route, JobId(1), &executors("BC"), at(0))).collect();
            assert!(chosen.contains(&1), "{route:?} {chosen:?}");
        }
    }

    #[test]
    fn what_was_remembered_for_a_day_is_forgotten() {
        let mut choices = Choices::default();
        choices.choose(Route::RoundRobin, JobId(1), &executors("ABC"), at(1));
        choices.choose(Route::RoundRobin, JobId(2), &executors("ABC"), at(24 * 60 * 60 * 1_000 + 2));
        assert!(!choices.rounds.contains_key(&JobId(1)));
    }
}
