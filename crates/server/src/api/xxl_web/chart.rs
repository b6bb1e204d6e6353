//! `/chartInfo`: runs per day and result, for the apps that the caller may see.

use std::time::Duration;

use protocol::xxl::ChartView;
use store::DayReport;

use super::time;
use super::{Reply, Visit, value};
use crate::request_error::RequestError;

impl Visit<'_> {
    pub(super) async fn chart(&self) -> Result<Reply, RequestError> {
        let (zone, now) = (&self.state.zone, self.state.engine.now());
        let read = |name: &str| time::read(self.fields.trimmed(name), zone);
        let (from, to) = (read("startDate").unwrap_or(now - DAY * 6), read("endDate").unwrap_or(now));
        let mut days = self.state.database.report((from, to), self.who.apps().as_deref()).await?;
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
