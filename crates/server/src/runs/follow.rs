//! Reads the logs of runs in progress, so that their lines outlive an executor that dies.
//!
//! The node that sent a run follows it: it reads new lines every few seconds and holds the last of them in memory.
//! If the executor stops answering, they are stored; when the run has finished, [`LogKeeper`](super::LogKeeper)
//! continues from there. All of it is best effort within limits: runs followed, bytes held, and reads per second of
//! each executor.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use engine::{AppId, Order, RunId, Store as _};
use store::{Database, RunLog};
use timer::Clock;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinSet;

use super::keep::Ended;
use super::log::{LogLocation, Source};
use super::tail::Tail;
use crate::executors::Directory;
use crate::outbound::Outbound;
use crate::share::{Share, Shares, has_room};
use crate::warn::warn_store;

/// The followed runs. Dispatch adds them; readers of logs share them.
pub struct Following {
    runs: Mutex<HashMap<RunId, Followed>>,
    slots: Arc<Shares<AppId>>,
}

struct Followed {
    _slot: Share<AppId>,
    location: LogLocation,
    tail: Arc<AsyncMutex<Tail>>,
    /// Bytes in the tail after the last read.
    bytes: usize,
    /// Time of the next read, by the monotonic clock.
    due: Duration,
    /// Wait between two reads; longer while there is nothing new.
    pause: Duration,
    /// Number of the last line that was stored.
    stored: u32,
    /// Whether a read is in progress.
    is_being_read: bool,
}

impl Default for Following {
    fn default() -> Following {
        Following { runs: Mutex::default(), slots: Shares::new(FOLLOWED_MAX) }
    }
}

impl Following {
    /// Starts to follow a run that an executor accepted.
    pub fn begin(&self, order: &Order, address: &str, now: Duration) {
        let location = LogLocation {
            run: order.run.id,
            app: order.job.spec.app,
            address: Some(address.to_owned()),
            triggered_at: order.run.scheduled_at,
        };
        self.follow(location, now + PAUSE_MIN);
    }

    fn follow(&self, location: LogLocation, due: Duration) {
        let Some(slot) = self.slots.take(location.app) else { return };
        let run = location.run;
        let followed = Followed {
            _slot: slot,
            location,
            tail: Arc::default(),
            bytes: 0,
            due,
            pause: PAUSE_MIN,
            stored: 0,
            is_being_read: false,
        };
        self.runs().insert(run, followed);
    }

    /// Records that a run has finished. If none of its log was read, its slot is freed at once; most runs are short.
    pub fn over(&self, run: RunId) {
        let mut runs = self.runs();
        if runs.get(&run).is_some_and(|followed| followed.bytes == 0) {
            runs.remove(&run);
        }
    }

    /// Stops following a run; returns the location of its log and the lines read so far.
    pub(super) fn take(&self, run: RunId) -> Option<(LogLocation, Arc<AsyncMutex<Tail>>)> {
        self.runs().remove(&run).map(|followed| (followed.location, followed.tail))
    }

    /// Returns the lines read so far of a run that is followed here.
    pub async fn read_so_far(&self, run: RunId) -> Option<RunLog> {
        let tail = self.runs().get(&run)?.tail.clone();
        let tail = tail.lock().await;
        (tail.last() > 0).then(|| tail.to_log(false))
    }

    /// Returns at most `max` runs to read now: those waiting longest, one per executor that is not being read.
    fn due(&self, now: Duration, max: usize) -> Vec<(RunId, LogLocation, Arc<AsyncMutex<Tail>>)> {
        let mut runs = self.runs();
        let mut held: HashMap<AppId, usize> = HashMap::new();
        for followed in runs.values() {
            *held.entry(followed.location.app).or_default() += followed.bytes;
        }
        let all: usize = held.values().sum();
        let fits = |app: &AppId| has_room(HELD_MAX, all, held.get(app).copied().unwrap_or(0));
        let is_busy = runs.values().filter(|followed| followed.is_being_read);
        let mut asked: HashSet<_> = is_busy.map(|followed| followed.location.address.clone()).collect();
        let mut due: Vec<_> = runs.iter_mut().filter(|(_, followed)| followed.due <= now).collect();
        due.retain(|(_, followed)| fits(&followed.location.app));
        due.sort_by_key(|(run, followed)| (followed.due, **run));
        due.retain(|(_, followed)| asked.insert(followed.location.address.clone()));
        due.truncate(max);
        let next = |(run, followed): (&RunId, &mut Followed)| {
            followed.due = now + followed.pause;
            followed.is_being_read = true;
            (*run, followed.location.clone(), followed.tail.clone())
        };
        due.into_iter().map(next).collect()
    }

    /// Records the result of a read. Returns whether there are lines to store because the executor does not answer.
    fn was_read(&self, run: RunId, now: Duration, read: &Read) -> bool {
        let mut runs = self.runs();
        let Some(followed) = runs.get_mut(&run) else { return false };
        followed.is_being_read = false;
        followed.bytes = read.bytes;
        followed.pause = if read.has_news { PAUSE_MIN } else { (followed.pause * 2).min(PAUSE_MAX) };
        followed.due = now + followed.pause;
        let is_unstored = read.failed && read.last > followed.stored;
        if is_unstored {
            followed.stored = read.last;
        }
        is_unstored
    }

    /// App of a run that is followed here.
    pub fn app_of(&self, run: RunId) -> Option<AppId> {
        self.runs().get(&run).map(|followed| followed.location.app)
    }

    fn ids(&self) -> Vec<RunId> {
        self.runs().keys().copied().collect()
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Followed>> {
        self.runs.lock().expect("no holder of this lock panics")
    }
}

/// Result of reading a log.
struct Read {
    bytes: usize,
    last: u32,
    has_news: bool,
    failed: bool,
}

/// Reads the logs of followed runs.
#[derive(Clone)]
pub struct LogFollower {
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Database that stores the lines.
    pub database: Arc<Database>,
    /// Registry of executors.
    pub directory: Arc<Directory>,
    /// Client for executors.
    pub outbound: Outbound,
    /// The followed runs.
    pub following: Arc<Following>,
    /// Receives runs that finished while another node received their result.
    pub ended: Ended,
}

impl LogFollower {
    /// Reads logs, forever.
    pub async fn run(self) {
        let mut reads = JoinSet::new();
        let mut looks = 0_u32;
        loop {
            self.clock.sleep(LOOK).await;
            while reads.try_join_next().is_some() {}
            let free = READS_AT_ONCE.saturating_sub(reads.len());
            for (run, location, tail) in self.following.due(self.clock.monotonic(), free) {
                let follower = self.clone();
                reads.spawn(async move { follower.read(run, &location, &tail).await });
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_PER_CHECK) {
                self.let_go_of_ended().await;
            }
        }
    }

    async fn read(&self, run: RunId, location: &LogLocation, tail: &AsyncMutex<Tail>) {
        let mut tail = tail.lock().await;
        let before = tail.last();
        let source = Source { directory: &self.directory, outbound: &self.outbound, location };
        let failed = tail.read(&source, PAGES_PER_READ).await.is_err();
        let (bytes, last) = (tail.bytes(), tail.last());
        let read = Read { bytes, last, has_news: last > before, failed };
        if self.following.was_read(run, self.clock.monotonic(), &read) {
            let log = tail.to_log(false);
            drop(tail);
            store_part(&self.database, run, log).await;
        }
    }

    /// Stops following finished runs that this node did not notice, for example if another got the result.
    async fn let_go_of_ended(&self) {
        let followed = self.following.ids();
        if followed.is_empty() {
            return;
        }
        let open: HashSet<RunId> = match self.database.open_runs(&followed).await {
            Ok(open) => open.into_iter().map(|run| run.id).collect(),
            Err(error) => {
                tracing::debug!(%error, "failed to list open runs; retrying shortly");
                return;
            }
        };
        for run in followed.into_iter().filter(|run| !open.contains(run)) {
            let app = self.following.app_of(run);
            if !self.ended.tell_again(run, app) {
                self.following.take(run);
            }
        }
    }
}

/// Stores a part of a log, unless the complete log is already stored.
pub(super) async fn store_part(database: &Database, run: RunId, log: RunLog) {
    let stored = match database.kept_run_log(run).await {
        Ok(Some(kept)) if kept.complete => return,
        Ok(_) => database.keep_run_logs(&[(run, log)]).await,
        Err(error) => Err(error),
    };
    if let Err(error) = stored {
        warn_store!(error, %run, "failed to store a part of the log of a run; it is read again when the run has finished");
    }
}

/// Maximum number of runs followed by one node, shared fairly by apps. Logs of others are read after they have
/// finished.
const FOLLOWED_MAX: usize = 512;

/// Maximum number of bytes held of all logs, shared fairly by apps. Beyond it nothing is read until runs finish.
const HELD_MAX: usize = 32 * 1024 * 1024;

/// How often the runs to read are selected. One run of each executor is read each time, so an executor serves at
/// most five reads a second.
const LOOK: Duration = Duration::from_millis(200);

/// Concurrent reads, one per executor, so that one that hangs does not block the others.
const READS_AT_ONCE: usize = 8;

/// Pages per read. A log that grows faster is read later, or after its run has finished.
const PAGES_PER_READ: usize = 4;

/// Wait before the first read of a run, and while it keeps writing.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// Longest wait between two reads of a run that writes nothing.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Selections between two checks whether the runs are still open: ten seconds.
const LOOKS_PER_CHECK: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    fn following(addresses: &[&str]) -> Following {
        let following = Following::default();
        for (address, id) in addresses.iter().zip(1..) {
            let location = LogLocation {
                run: RunId(id),
                app: AppId(1),
                address: Some((*address).to_owned()),
                triggered_at: timer::Timestamp::default(),
            };
            following.follow(location, Duration::from_millis(id.unsigned_abs()));
        }
        following
    }

    fn due(following: &Following, now: Duration) -> Vec<i64> {
        following.due(now, READS_AT_ONCE).into_iter().map(|(run, ..)| run.0).collect()
    }

    #[test]
    fn one_run_of_each_executor_is_read_at_a_time_the_one_that_waits_longest() {
        let following = following(&["a", "a", "b"]);
        let now = Duration::from_millis(10);
        assert_eq!(due(&following, now), [1, 3]);
        assert_eq!(due(&following, now), [] as [i64; 0], "the executor of run 2 is being read");
        let quick = Read { bytes: 5, last: 1, has_news: true, failed: false };
        following.was_read(RunId(1), now, &quick);
        assert_eq!(due(&following, now), [2]);
        following.was_read(RunId(2), now, &quick);
        assert_eq!(due(&following, now), [] as [i64; 0]);
        assert_eq!(due(&following, now + PAUSE_MIN), [1], "run 3 is still being read");
    }

    #[test]
    fn nothing_is_read_while_too_much_is_held() {
        let following = following(&["a", "b"]);
        let now = Duration::from_secs(1);
        let read = Read { bytes: HELD_MAX, last: 3, has_news: true, failed: false };
        assert!(!following.was_read(RunId(1), now, &read));
        assert_eq!(due(&following, now * 10), [] as [i64; 0]);
        following.take(RunId(1));
        assert_eq!(due(&following, now * 10), [2]);
    }

    #[test]
    fn an_app_with_many_runs_and_long_logs_leaves_room_for_others() {
        let following = Following::default();
        let begin = |run: i64, app: i64| {
            let address = Some(format!("executor-{run}"));
            let triggered_at = timer::Timestamp::default();
            following
                .follow(LogLocation { run: RunId(run), app: AppId(app), address, triggered_at }, PAUSE_MIN);
        };
        (1..2_000).for_each(|run| begin(run, 1));
        assert!(following.ids().len() < FOLLOWED_MAX);
        begin(5_000, 2);
        assert!(following.ids().contains(&RunId(5_000)));
        let read = Read { bytes: HELD_MAX / 100, last: 3, has_news: true, failed: false };
        let now = Duration::from_secs(10);
        for run in following.ids().into_iter().filter(|run| run.0 < 100) {
            following.was_read(run, now, &read);
        }
        assert_eq!(due(&following, now * 10), [5_000]);
    }

    #[test]
    fn a_run_that_ends_before_it_was_read_leaves_at_once() {
        let following = following(&["a", "b"]);
        let now = Duration::from_secs(1);
        let read = Read { bytes: 5, last: 1, has_news: true, failed: false };
        following.was_read(RunId(2), now, &read);
        following.over(RunId(1));
        following.over(RunId(2));
        assert_eq!(following.ids(), [RunId(2)], "what was read is handed on");
        assert!(following.take(RunId(2)).is_some() && following.ids().is_empty());
    }

    #[test]
    fn a_quiet_run_is_read_less_and_less_often_and_lines_are_stored_once() {
        let following = following(&["a"]);
        let mut now = Duration::from_secs(1);
        let quiet = Read { bytes: 5, last: 3, has_news: false, failed: true };
        assert!(following.was_read(RunId(1), now, &quiet), "the executor does not answer");
        assert!(!following.was_read(RunId(1), now, &quiet), "they are stored already");
        for _ in 0..10 {
            following.was_read(RunId(1), now, &quiet);
        }
        assert_eq!(due(&following, now + PAUSE_MAX - Duration::from_millis(1)), [] as [i64; 0]);
        now += PAUSE_MAX;
        assert_eq!(due(&following, now), [1]);
        following.was_read(RunId(1), now, &Read { last: 4, has_news: true, ..quiet });
        assert_eq!(due(&following, now + PAUSE_MIN), [1]);
    }
}
