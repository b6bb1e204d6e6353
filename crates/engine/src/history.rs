//! Recognises that the database has lost commits: an asynchronous standby was promoted, or a backup was restored.
//!
//! Each heartbeat of a node raises a number in its row. A database that has an older number than one it acknowledged has
//! lost that commit, and with it all later ones. Losses between two heartbeats show at the runs: after each new
//! connection, and after each failed claim, the node compares the runs that it was given with the rows. It claims
//! nothing before that.
//!
//! When commits are lost, the node raises alerts that name them, makes sure that no id of a run is given twice, stores
//! results again that the database had acknowledged, and joins anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;
use std::time::Duration;

use cron::Timestamp;

use crate::engine::{Engine, LEASE, RETRY};
use crate::job::JobId;
use crate::ports::{Ending, Heartbeat, Incident, Kept, Pulse, StoreError};
use crate::run::{Node, Order, RunId};
use crate::sabotage::Sabotage;
use crate::trouble::{Trouble, TroubleKind};

/// What the database has acknowledged to this node.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Number of the last heartbeat of this incarnation that was sent.
    sent: i64,
    /// Number of the last one that was acknowledged.
    acknowledged: i64,
    /// Database time at which it was acknowledged.
    acknowledged_at: Option<Timestamp>,
    /// Runs that this node claimed, of all its incarnations.
    claimed: BTreeMap<RunId, Claimed>,
    /// Runs of which this node stored the result.
    ended: BTreeMap<RunId, EndedRun>,
    /// Highest run id that this node knows of.
    highest: Option<RunId>,
    /// Number of connections at the last comparison.
    compared: u64,
    /// Whether a failed claim makes a comparison necessary.
    is_doubtful: bool,
    /// Whether a claim waits for the comparison, so that the next heartbeat is sent early.
    is_asking: bool,
    /// Monotonic time since when every heartbeat has shown that commits are lost.
    suspected_since: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Claimed {
    job: JobId,
    at: Timestamp,
    /// Whether an executor may have received it. A run that is withdrawn before that leaves no row.
    is_sent: bool,
}

#[derive(Debug)]
struct EndedRun {
    at: Timestamp,
    /// None if it is too large to be remembered.
    ending: Option<Box<Ending>>,
}

/// Remembered runs to compare: a copy, because more are added while the database is asked.
#[derive(Debug)]
struct Newest {
    claimed: BTreeMap<RunId, Claimed>,
    ended: BTreeSet<RunId>,
}

impl Newest {
    fn ids(&self) -> Vec<RunId> {
        self.claimed.keys().chain(&self.ended).copied().collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Runs with lost commits.
#[derive(Debug, Default, PartialEq)]
struct Lost {
    /// Claimed runs without a row that may have been sent.
    runs: BTreeMap<JobId, Vec<RunId>>,
    /// Claimed runs without a row that were not sent: they are withdrawn, or lost, too.
    unsent: Vec<RunId>,
    /// Runs that are open again although their results were stored.
    reopened: BTreeMap<JobId, Vec<RunId>>,
    /// Their results, as far as they are remembered.
    endings: Vec<Ending>,
    /// Time at which the first of all these was committed.
    first_at: Option<Timestamp>,
}

impl Lost {
    fn happened(&mut self, at: Timestamp) {
        self.first_at = Some(self.first_at.map_or(at, |first| first.min(at)));
    }

    fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.reopened.is_empty()
    }
}

impl History {
    /// Begins an incarnation that the database has acknowledged.
    pub(crate) fn begin(&mut self, at: Timestamp) {
        (self.sent, self.acknowledged, self.acknowledged_at) = (0, 0, Some(at));
        self.suspected_since = None;
    }

    fn next_heartbeat(&mut self) -> Heartbeat {
        self.sent += 1;
        Heartbeat { number: self.sent, acknowledged: self.acknowledged }
    }

    fn acknowledge(&mut self, beat: Heartbeat, at: Timestamp) {
        self.acknowledged = self.acknowledged.max(beat.number);
        self.acknowledged_at = Some(at);
    }

    /// Remembers runs that the database has given to this node.
    pub(crate) fn claimed(&mut self, orders: &[Order], now: Timestamp) {
        for Order { run, .. } in orders {
            // It may be read again from its row.
            self.claimed.entry(run.id).or_insert(Claimed { job: run.job, at: now, is_sent: false });
            self.highest = self.highest.max(Some(run.id));
        }
        while self.claimed.first_key_value().is_some_and(|(_, oldest)| {
            oldest.at < now - REMEMBERED_FOR || self.claimed.len() > REMEMBERED_MAX
        }) {
            self.claimed.pop_first();
        }
    }

    /// Remembers whether an executor may have received a run.
    pub(crate) fn sent(&mut self, run: RunId, is_sent: bool) {
        if let Some(claimed) = self.claimed.get_mut(&run) {
            claimed.is_sent = is_sent;
        }
    }

    fn is_any_sent(&self, runs: &[RunId]) -> bool {
        runs.iter().any(|run| self.claimed.get(run).is_some_and(|claimed| claimed.is_sent))
    }

    /// Remembers a result that the database has stored.
    pub(crate) fn ended(&mut self, ending: &Ending, now: Timestamp) {
        let is_small = ending.outcome.message().len() <= RESULT_MAX;
        let ended = EndedRun { at: now, ending: is_small.then(|| Box::new(ending.clone())) };
        self.ended.insert(ending.run, ended);
        while self
            .ended
            .first_key_value()
            .is_some_and(|(_, oldest)| oldest.at < now - REMEMBERED_FOR || self.ended.len() > REMEMBERED_MAX)
        {
            self.ended.pop_first();
        }
    }

    /// Whether nothing may be claimed before a comparison with the database.
    fn is_in_doubt(&self, connections: u64) -> bool {
        let is_to_compare = self.is_doubtful || self.compared != connections;
        self.suspected_since.is_some() || is_to_compare && !(self.claimed.is_empty() && self.ended.is_empty())
    }

    /// The newest runs, at most `max` of each kind.
    fn newest(&self, max: usize) -> Newest {
        Newest {
            claimed: self.claimed.iter().rev().take(max).map(|(run, claimed)| (*run, *claimed)).collect(),
            ended: self.ended.keys().rev().take(max).copied().collect(),
        }
    }

    /// Compares the newest runs with what the database has. The loss of a run that was not sent has no effect.
    fn compare(&self, newest: &Newest, kept: &Kept, sign: Sign) -> Lost {
        let mut lost = Lost::default();
        let is_kept = |run: RunId, claimed: &Claimed| kept.runs.get(&run) == Some(&claimed.job);
        let of_kept = newest.claimed.iter().filter(|(run, claimed)| is_kept(**run, claimed));
        let last_kept = of_kept.map(|(_, claimed)| claimed.at).max();
        // Lost commits are the latest ones. Rows of older runs may have been deleted.
        let is_latest = |claimed: &Claimed| match sign {
            Sign::Heartbeat(since) => since.is_none_or(|since| claimed.at >= since - CLOCKS_DIFFER),
            Sign::Runs => last_kept.is_none_or(|last| claimed.at >= last - CLOCKS_DIFFER),
        };
        for (run, claimed) in &newest.claimed {
            if !is_latest(claimed) || is_kept(*run, claimed) {
                continue;
            }
            if claimed.is_sent {
                lost.runs.entry(claimed.job).or_default().push(*run);
                lost.happened(claimed.at);
            } else {
                lost.unsent.push(*run);
            }
        }
        for run in newest.ended.iter().filter(|run| kept.open.contains(run)) {
            if let (Some(job), Some(ended)) = (kept.runs.get(run), self.ended.get(run)) {
                lost.reopened.entry(*job).or_default().push(*run);
                lost.happened(ended.at);
                lost.endings.extend(ended.ending.as_deref().cloned());
            }
        }
        lost
    }

    /// Takes note of a sign that commits are lost. True when it has been seen for so long that they are: a server that has
    /// just become the writer may still apply them.
    fn suspect(&mut self, monotonic: Duration) -> bool {
        let since = *self.suspected_since.get_or_insert(monotonic);
        monotonic.saturating_sub(since) >= CERTAIN_AFTER
    }

    /// Forgets the runs of the lost time.
    fn forget(&mut self) {
        self.claimed.clear();
        self.ended.clear();
    }
}

/// Commits that the database has lost, for the alerts.
struct Loss<'a> {
    node: &'a Node,
    sign: Sign,
    until: Option<Timestamp>,
    lost: &'a Lost,
}

impl Loss<'_> {
    fn incidents(&self) -> Vec<Incident> {
        let mut incidents = vec![Incident { job: NO_JOB, run: None, trouble: trouble(self.summary()) }];
        for (job, runs) in &self.lost.runs {
            incidents.extend(runs.chunks(NAMED_MAX).map(|runs| {
                let text = format!(
                    "the database has lost these runs, which {} had claimed: {}; executors may have run them, and \
                     their scheduled times may fire again under other ids",
                    self.node,
                    list(runs)
                );
                Incident { job: *job, run: Some(runs[0]), trouble: trouble(text) }
            }));
        }
        for (job, runs) in &self.lost.reopened {
            incidents.extend(runs.chunks(NAMED_MAX).map(|runs| {
                let text = format!(
                    "the database has lost the results of these runs: {}; {} stores them again, or asks their executors",
                    list(runs),
                    self.node
                );
                Incident { job: *job, run: Some(runs[0]), trouble: trouble(text) }
            }));
        }
        incidents
    }

    fn summary(&self) -> String {
        let count = |runs: &BTreeMap<JobId, Vec<RunId>>| runs.values().map(Vec::len).sum::<usize>();
        let since = match self.sign {
            Sign::Heartbeat(since) => since,
            Sign::Runs => self.lost.first_at,
        };
        let since = since.map_or("a time before it joined".to_owned(), |at| at.to_string());
        let until = self.until.map_or("now".to_owned(), |at| at.to_string());
        format!(
            "the database has lost commits that it had confirmed to {}, from {since} to {until}: {} runs that it had \
             claimed and {} results are affected, and so are changes by users in this time; a standby without all \
             commits became the primary, or a backup was restored",
            self.node,
            count(&self.lost.runs),
            count(&self.lost.reopened),
        )
    }
}

fn trouble(message: String) -> Trouble {
    Trouble::new(TroubleKind::HistoryLost, message)
}

fn list(runs: &[RunId]) -> String {
    runs.iter().map(RunId::to_string).collect::<Vec<_>>().join(", ")
}

impl Engine {
    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.inner.history.lock().expect("no holder of this lock panics")
    }

    /// Whether runs may be claimed: the database has all that this node remembers. If that is to be compared, it is done
    /// now.
    pub(crate) fn trusts_database(&self) -> bool {
        let is_in_doubt = self.history().is_in_doubt(self.inner.store.connections());
        if is_in_doubt && !self.history().is_asking {
            self.history().is_asking = true;
            self.inner.beat_now.notify_one();
        }
        !is_in_doubt || self.sabotaged(Sabotage::TrustDatabase)
    }

    /// Has what this node remembers compared with the database before it claims again.
    pub(crate) fn doubt_database(&self) {
        self.history().is_doubtful = true;
    }

    /// Sends one heartbeat. Returns a sign that the database has lost commits, if there is one.
    pub(crate) async fn beat_once(&self, node: &Node) -> Result<Option<Sign>, StoreError> {
        let connections = self.inner.store.connections();
        self.history().is_asking = false;
        let beat = self.history().next_heartbeat();
        let sent = self.inner.clock.monotonic();
        match self.inner.store.heartbeat(node, LEASE, beat).await? {
            Pulse::Renewed => {}
            Pulse::Older(_) if self.sabotaged(Sabotage::TrustDatabase) => {}
            Pulse::Older(lease_until) => {
                return Ok(Some(Sign::Heartbeat(lease_until.map(|until| until - LEASE))));
            }
        }
        if let Some(life) = self.life().as_mut() {
            life.renew(LEASE, sent);
        }
        self.inner.send_now.notify_one();
        let now = self.now();
        self.history().acknowledge(beat, now);
        if !self.history().is_in_doubt(connections) {
            return Ok(None);
        }
        let is_trusted = self.sabotaged(Sabotage::TrustDatabase);
        if !is_trusted {
            let lost = self.find_lost(Sign::Runs, COMPARED_MAX).await?;
            // The scheduled times of lost runs are claimed again.
            let may_be_sent =
                self.outbox().drop_unsent(&lost.unsent) || self.history().is_any_sent(&lost.unsent);
            if may_be_sent || !lost.is_empty() {
                return Ok(Some(Sign::Runs));
            }
        }
        let mut history = self.history();
        (history.compared, history.is_doubtful, history.suspected_since) = (connections, false, None);
        drop(history);
        self.inner.claim_now.notify_one();
        Ok(None)
    }

    /// Whether a sign of lost commits was seen for long enough.
    pub(crate) fn are_commits_lost(&self) -> bool {
        self.history().suspect(self.inner.clock.monotonic())
    }

    /// Compares the newest runs with the database.
    async fn find_lost(&self, sign: Sign, max: usize) -> Result<Lost, StoreError> {
        let newest = self.history().newest(max);
        let mut kept = Kept::default();
        for runs in newest.ids().chunks(COMPARED_MAX) {
            let some = self.inner.store.kept(runs).await?;
            kept.runs.extend(some.runs);
            kept.open.extend(some.open);
        }
        Ok(self.history().compare(&newest, &kept, sign))
    }

    /// Raises alerts about lost commits, and makes the database usable again. Retries until that is done; meanwhile
    /// nothing is claimed.
    pub(crate) async fn recover_history(&self, node: &Node, sign: Sign) {
        loop {
            match self.try_to_recover(node, sign).await {
                Ok(()) => return,
                Err(error) => self.complain(&error, "failed to recover from lost commits", RETRY),
            }
            self.inner.clock.sleep(RETRY).await;
        }
    }

    async fn try_to_recover(&self, node: &Node, sign: Sign) -> Result<(), StoreError> {
        let lost = self.find_lost(sign, usize::MAX).await?;
        let (highest, until) = {
            let history = self.history();
            (history.highest, history.acknowledged_at)
        };
        if let Some(highest) = highest {
            self.inner.store.skip_run_ids(highest).await?;
        }
        let loss = Loss { node, sign, until, lost: &lost };
        tracing::error!(%node, "{}", loss.summary());
        self.inner.store.raise(self.now(), &loss.incidents()).await?;
        self.history().forget();
        if !self.sabotaged(Sabotage::ForgetResults) {
            for ending in lost.endings {
                self.conclude(ending).await;
            }
        }
        Ok(())
    }
}

/// A sign that the database has lost commits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sign {
    /// It has an older heartbeat than the last that it acknowledged, of this time; or none of this incarnation.
    Heartbeat(Option<Timestamp>),
    /// It lacks the latest runs that it gave to this node, or results of runs.
    Runs,
}

/// The alert about the database itself belongs to no job.
const NO_JOB: JobId = JobId(0);

/// How long runs and results are remembered: longer than a standby lags behind in normal operation.
const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// Maximum number of each that is remembered: a few MB, and 20 s of a thousand fires per second.
const REMEMBERED_MAX: usize = 20_000;

/// Maximum length of the text of a remembered result, in bytes.
const RESULT_MAX: usize = 500;

/// Number of runs compared by one statement, and of each kind to find out whether commits are lost.
const COMPARED_MAX: usize = 1_000;

/// Number of runs named in one alert.
const NAMED_MAX: usize = 100;

/// How long every heartbeat must show that commits are lost.
const CERTAIN_AFTER: Duration = Duration::from_secs(1);

/// Accuracy of the time that a node assigns to its commits, and maximum time between two that it makes at once.
const CLOCKS_DIFFER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::run::{Outcome, RunState};
    use crate::testing::{each_second, ms, run};

    fn order(id: i64) -> Order {
        Order { run: run(id, RunState::Claimed, 0), job: Arc::new(each_second(0)) }
    }

    fn kept(runs: &[i64], open: &[i64]) -> Kept {
        Kept {
            runs: runs.iter().map(|run| (RunId(*run), JobId(7))).collect(),
            open: open.iter().copied().map(RunId).collect(),
        }
    }

    fn ending(id: i64, text: &str) -> Ending {
        Ending { run: RunId(id), outcome: Outcome::Succeeded(text.into()), version: None, address: None }
    }

    #[test]
    fn runs_without_a_row_are_lost_if_they_may_have_been_sent() {
        let mut history = History::default();
        history.claimed(&[order(1), order(2), order(3)], ms(500));
        for run in 1..=3 {
            history.sent(RunId(run), true);
        }
        // An executor refused the last one.
        history.sent(RunId(3), false);
        let check = |kept: Kept, sign, expected: &[i64]| {
            let lost = history.compare(&history.newest(9), &kept, sign);
            let found: Vec<i64> = lost.runs.into_values().flatten().map(|run| run.0).collect();
            assert_eq!(found, expected);
            assert!(lost.unsent.iter().all(|run| *run == RunId(3)));
        };
        let since = |at| Sign::Heartbeat(Some(ms(at)));
        check(kept(&[1, 2, 3], &[]), since(0), &[]);
        check(kept(&[1], &[]), since(0), &[2]);
        check(kept(&[1], &[]), Sign::Runs, &[2]);
        check(kept(&[], &[]), Sign::Heartbeat(None), &[1, 2]);
        check(kept(&[], &[]), since(1_501), &[]);
        // The id was given to a run of another job.
        let mut other = kept(&[1, 2, 3], &[]);
        other.runs.insert(RunId(2), JobId(8));
        check(other, Sign::Runs, &[2]);
    }

    #[test]
    fn deleted_rows_of_older_runs_are_no_sign() {
        let mut history = History::default();
        history.claimed(&[order(1)], ms(500));
        history.claimed(&[order(2)], ms(2_000));
        history.sent(RunId(1), true);
        history.sent(RunId(2), true);
        let lost = |kept| history.compare(&history.newest(9), &kept, Sign::Runs);
        assert!(lost(kept(&[2], &[])).is_empty());
        assert_eq!(lost(kept(&[1], &[])).runs, BTreeMap::from([(JobId(7), vec![RunId(2)])]));
    }

    #[test]
    fn results_of_runs_that_are_open_again_are_stored_again() {
        let mut history = History::default();
        history.ended(&ending(1, "one"), ms(500));
        history.ended(&ending(2, &"x".repeat(RESULT_MAX + 1)), ms(500));
        history.ended(&ending(3, "three"), ms(500));
        let lost = history.compare(&history.newest(9), &kept(&[1, 2, 3], &[1, 2]), Sign::Runs);
        assert_eq!(lost.reopened, BTreeMap::from([(JobId(7), vec![RunId(1), RunId(2)])]));
        assert_eq!(lost.endings, [ending(1, "one")], "a large result is asked for again");
    }

    #[test]
    fn only_the_last_minute_is_remembered() {
        let mut history = History::default();
        history.claimed(&[order(1)], ms(0));
        history.ended(&ending(1, ""), ms(0));
        history.claimed(&[order(2)], ms(60_000));
        assert_eq!(history.newest(9).ids(), [RunId(1), RunId(2)]);
        assert_eq!(history.newest(1).ids(), [RunId(1), RunId(2)], "one of each kind");
        history.claimed(&[order(3)], ms(60_001));
        history.ended(&ending(2, ""), ms(60_001));
        assert_eq!(history.newest(9).ids(), [RunId(2), RunId(3)]);
        assert_eq!(history.newest(0).ids(), []);
        let many: Vec<Order> = (1..=REMEMBERED_MAX as i64 + 10).map(order).collect();
        history.claimed(&many, ms(60_002));
        assert_eq!(history.claimed.len(), REMEMBERED_MAX);
    }

    #[test]
    fn commits_are_lost_when_each_heartbeat_says_so_for_a_while() {
        let mut history = History::default();
        let at = Duration::from_millis;
        assert!(!history.suspect(at(5_000)) && !history.suspect(at(5_900)) && history.suspect(at(6_000)));
        assert!(history.is_in_doubt(0));
        history.begin(ms(0));
        assert!(!history.is_in_doubt(1), "there is nothing to compare");
        history.claimed(&[order(1)], ms(0));
        assert!(!history.is_in_doubt(0) && history.is_in_doubt(1), "a new connection may lead elsewhere");
        history.is_doubtful = true;
        assert!(history.is_in_doubt(0));
    }

    #[test]
    fn heartbeats_name_the_last_one_that_was_acknowledged() {
        let mut history = History::default();
        history.begin(ms(0));
        let first = history.next_heartbeat();
        assert_eq!(first, Heartbeat { number: 1, acknowledged: 0 });
        let second = history.next_heartbeat();
        assert_eq!(second, Heartbeat { number: 2, acknowledged: 0 }, "the first one had no response");
        history.acknowledge(second, ms(2));
        assert_eq!(history.next_heartbeat(), Heartbeat { number: 3, acknowledged: 2 });
    }

    #[test]
    fn alerts_name_each_run() {
        let node = Node { name: "a".into(), epoch: 1 };
        let lost = Lost {
            unsent: Vec::new(),
            runs: BTreeMap::from([(JobId(7), (1..=150).map(RunId).collect())]),
            reopened: BTreeMap::from([(JobId(8), vec![RunId(200)])]),
            endings: Vec::new(),
            first_at: None,
        };
        let loss =
            Loss { node: &node, sign: Sign::Heartbeat(Some(ms(1_000))), until: Some(ms(3_000)), lost: &lost };
        let told: Vec<_> =
            loss.incidents().into_iter().map(|told| (told.job.0, told.trouble.message)).collect();
        assert_eq!(told.iter().map(|(job, _)| *job).collect::<Vec<_>>(), [0, 7, 7, 8]);
        assert!(
            told[0].1.contains("from 1970-01-01T00:00:01Z to 1970-01-01T00:00:03Z: 150 runs"),
            "{}",
            told[0].1
        );
        assert!(told[1].1.contains(" 1, 2, 3, ") && told[2].1.contains(" 101, 102, "));
        assert!(told[3].1.contains(": 200;"));
    }
}
