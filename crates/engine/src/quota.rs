//! Quota of open runs per app.
//!
//! An app with executors that do not keep up must not fill the tables and the memory shared by all apps. Fires and
//! runs of child jobs beyond the quota are recorded as blocked, manual triggers are rejected, and steps of workflow
//! runs fail. Retries are not limited, because each takes the place of the run that it repeats. The count is an
//! estimate: the last count from the database plus the runs claimed by this node since. If the estimate reaches the
//! quota, the database is queried again first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use crate::engine::Engine;
use crate::job::AppId;
use crate::ports::{Agenda, StoreError};
use crate::run::Order;

/// Estimated number of open runs of each app.
pub(crate) struct Quota {
    max: Option<u64>,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    /// Counts from the database; apps that are not listed have `unlisted`.
    open: HashMap<AppId, u64>,
    unlisted: u64,
    /// Runs claimed by this node since.
    claimed: HashMap<AppId, u64>,
    /// Time of the last query, by the monotonic clock.
    asked_at: Option<Duration>,
}

impl Quota {
    pub(crate) fn new(max: Option<u64>) -> Self {
        Quota { max, counts: Mutex::default() }
    }

    /// Number of runs that the app may still open, and its quota; none if there is no quota.
    pub(crate) fn room(&self, app: AppId) -> Option<(u64, u64)> {
        let max = self.max?;
        Some((max.saturating_sub(self.counts().open_runs(app)), max))
    }

    /// Reason for which the app may open no further run, after `opened` ones that are not counted yet.
    pub(crate) fn blocks(&self, app: AppId, opened: u64) -> Option<String> {
        let (room, max) = self.room(app)?;
        (opened >= room).then(|| reason(max))
    }

    /// Counts claimed runs.
    pub(crate) fn took(&self, orders: &[Order]) {
        if self.max.is_none() {
            return;
        }
        let mut counts = self.counts();
        for order in orders {
            *counts.claimed.entry(order.job.spec.app).or_default() += 1;
        }
    }

    /// Whether an app may have reached the quota since the last query.
    fn is_reached(&self) -> bool {
        let Some(max) = self.max else { return false };
        let counts = self.counts();
        counts.claimed.keys().any(|app| counts.open_runs(*app) + RESERVE >= max)
    }

    /// Whether no app had more than half of the quota at the last query, and none has claimed runs since.
    fn is_clear(&self) -> bool {
        let counts = self.counts();
        counts.asked_at.is_some() && counts.open.is_empty() && counts.claimed.is_empty()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().expect("no holder of this lock panics")
    }
}

impl Counts {
    fn open_runs(&self, app: AppId) -> u64 {
        let open = self.open.get(&app).copied().unwrap_or(self.unlisted);
        open + self.claimed.get(&app).copied().unwrap_or_default()
    }
}

impl Engine {
    pub(crate) async fn quota_loop(&self) {
        loop {
            let has_runs = self.has_work(Agenda::has_open_runs) || !self.inner.quota.is_clear();
            if has_runs && let Err(error) = self.count_open_runs().await {
                self.complain(&error, "failed to count the open runs of apps", COUNT_EVERY);
            }
            self.inner.clock.sleep(COUNT_EVERY).await;
        }
    }

    /// Queries the counts again before runs are opened, if an app may have reached its quota.
    pub(crate) async fn recount_if_reached(&self) -> Result<(), StoreError> {
        let quota = &self.inner.quota;
        let now = self.inner.clock.monotonic();
        let is_fresh = quota.counts().asked_at.is_some_and(|at| now.saturating_sub(at) < RECOUNT_EVERY);
        if is_fresh || !quota.is_reached() { Ok(()) } else { self.count_open_runs().await }
    }

    /// Rejects a manual trigger if the app has reached its quota.
    pub async fn check_room(&self, app: AppId) -> Result<(), StoreError> {
        let quota = &self.inner.quota;
        if quota.room(app).is_none_or(|(room, _)| room > 0) {
            return Ok(());
        }
        self.count_open_runs().await?;
        match quota.room(app) {
            Some((0, max)) => Err(StoreError::Conflict(reason(max))),
            _ => Ok(()),
        }
    }

    async fn count_open_runs(&self) -> Result<(), StoreError> {
        let quota = &self.inner.quota;
        let Some(max) = quota.max else { return Ok(()) };
        let asked_at = self.inner.clock.monotonic();
        let open: HashMap<AppId, u64> = self.inner.store.open_by_app(max / 2).await?.into_iter().collect();
        // If few runs are open in total, no app has more than this.
        let unlisted = if open.is_empty() { max / 2 } else { 0 };
        *quota.counts() = Counts { open, unlisted, claimed: HashMap::new(), asked_at: Some(asked_at) };
        Ok(())
    }
}

/// Message for a fire, trigger, child or step beyond the quota.
pub(crate) fn reason(max: u64) -> String {
    format!(
        "the app has {max} open runs, the maximum (--max-open-runs); add executors, or let its jobs fire less often"
    )
}

/// Interval of queries, because other nodes claim too.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// Minimum interval of queries while an app is at its quota: counting tens of thousands of rows takes about 10 ms.
const RECOUNT_EVERY: Duration = Duration::from_millis(200);

/// Claims under way open about this many runs, all based on the same count.
const RESERVE: u64 = 1_000;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::run::RunState;
    use crate::testing::{each_second, run};

    #[test]
    fn an_app_has_room_for_what_is_neither_open_nor_claimed_since() {
        let quota = Quota::new(Some(10));
        let app = each_second(0).spec.app;
        let check = |open: &[(AppId, u64)], unlisted, claimed: usize, room| {
            let open = open.iter().copied().collect();
            *quota.counts() = Counts { open, unlisted, ..Counts::default() };
            let order = Order { run: run(1, RunState::Claimed, 0), job: Arc::new(each_second(0)) };
            quota.took(&vec![order; claimed]);
            assert_eq!(quota.room(app), Some((room, 10)));
        };
        check(&[], 5, 0, 5);
        check(&[(app, 3)], 0, 4, 3);
        check(&[(app, 3)], 0, 8, 0);
        check(&[(AppId(99), 30)], 0, 1, 9);
        assert_eq!(Quota::new(None).room(app), None);
    }
}
