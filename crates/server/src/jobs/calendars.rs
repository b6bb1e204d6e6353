//! Jobs with work calendars: plans them again after a change of their days.

use std::sync::Arc;
use std::time::Duration;

use cron::{Day, WorkCalendar};
use engine::{Change, Control, JobId, StoreError};
use protocol::v1::Event;
use timer::Clock;

use super::JobRules;
use crate::warn::warn_store;

impl JobRules {
    /// Plans jobs again whose work calendars were changed. When this returns, nothing is sent any more that was
    /// planned with the days before.
    pub async fn replan(&self) -> Result<(), StoreError> {
        let (mut after, mut failed) = (JobId(0), None);
        loop {
            let jobs = self.database.jobs_to_replan(after, REPLANNED_AT_ONCE).await?;
            let Some(last) = jobs.last() else { break };
            after = *last;
            let changes: Vec<Change> =
                jobs.iter().map(|job| Change::Control(*job, Control::Replan)).collect();
            for result in self.engine.change(&changes, false).await {
                match result {
                    Ok(_) | Err(StoreError::NoSuchJob(_)) => {}
                    Err(error) => failed = Some(error),
                }
            }
            self.hints.announce(Event::Jobs);
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Jobs planned again in one call; each takes about a millisecond.
const REPLANNED_AT_ONCE: usize = 500;

/// Completes changes of work calendars whose node stopped before it had planned all jobs again.
pub async fn replan_loop(clock: Arc<dyn Clock>, rules: JobRules) {
    loop {
        if let Err(error) = rules.replan().await {
            warn_store!(
                error,
                "failed to plan jobs again after a change of a work calendar; retrying in {EVERY:?}"
            );
        }
        clock.sleep(EVERY).await;
    }
}

/// Changes of work calendars are rare, and the node that makes one completes it unless it dies. A node at rest sends few
/// statements.
const EVERY: Duration = Duration::from_secs(60);

/// Whether the data of a work calendar ends within 30 days, or has ended.
pub fn ends_soon(calendar: &WorkCalendar, today: Day) -> bool {
    let soon = std::iter::successors(Some(today), |day| Some(day.next())).nth(WARNING_DAYS);
    calendar.known_until.zip(soon).is_some_and(|(until, soon)| until < soon)
}

/// Users are warned so many days before the data of a work calendar ends. China announces the next year in autumn.
const WARNING_DAYS: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_data_is_announced_thirty_days_before() {
        let day = |text: &str| text.parse::<Day>().unwrap();
        let mut calendar = WorkCalendar::default();
        assert!(!ends_soon(&calendar, day("2026-12-31")), "its data has no end");
        calendar.known_until = Some(day("2026-12-31"));
        let check =
            |today: &str, expected: bool| assert_eq!(ends_soon(&calendar, day(today)), expected, "{today}");
        check("2026-12-01", false);
        check("2026-12-02", true);
        check("2027-03-01", true);
    }
}
