//! `/chartInfo`: how many runs of each day went well. Sums over all apps, without a name in them.

use std::sync::Mutex;
use std::time::Duration;

use protocol::xxl::ChartView;
use store::DayReport;
use timer::Timestamp;

use super::time;
use super::{Reply, Visit, value};
use crate::refusal::Refusal;

/// When the runs of these days were last counted.
#[derive(Default)]
pub struct Counted(Mutex<Timestamp>);

impl Counted {
    /// Whether they are to be counted again; the one who is told so does it.
    fn is_due(&self, now: Timestamp) -> bool {
        let mut last = self.0.lock().expect("no holder of this lock panics");
        let due = now.duration_since(*last) >= COUNT_EVERY;
        if due {
            *last = now;
        }
        due
    }
}

impl Visit<'_> {
    pub(super) async fn chart(&self) -> Result<Reply, Refusal> {
        let (zone, now) = (&self.inside.zone, self.inside.engine.now());
        let read = |name: &str| time::read(self.fields.trimmed(name), zone);
        let (from, to) = (read("startDate").unwrap_or(now - DAY * 6), read("endDate").unwrap_or(now));
        if self.inside.counted.is_due(now) {
            for days_ago in 0..COUNTED_DAYS {
                self.inside.database.refresh_report(now - DAY * days_ago).await?;
            }
        }
        let mut days = self.inside.database.report(from, to).await?;
        if days.is_empty() {
            let empty = |days_ago| DayReport {
                day: time::day(now - DAY * days_ago, zone),
                running: 0,
                succeeded: 0,
                failed: 0,
            };
            days = (0..7).rev().map(empty).collect();
        }
        Ok(Reply::Done(value(view(days))))
    }
}

fn view(days: Vec<DayReport>) -> ChartView {
    let mut view = ChartView::default();
    for day in days {
        view.trigger_day_list.push(day.day);
        view.trigger_day_count_running_list.push(day.running);
        view.trigger_day_count_suc_list.push(day.succeeded);
        view.trigger_day_count_fail_list.push(day.failed);
        view.trigger_count_running_total += day.running;
        view.trigger_count_suc_total += day.succeeded;
        view.trigger_count_fail_total += day.failed;
    }
    view
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Counting reads all runs of a day: XXL-JOB does it as often.
const COUNT_EVERY: Duration = Duration::from_secs(60);

/// A run may end days after it was started; XXL-JOB looks back as far.
const COUNTED_DAYS: u32 = 3;
