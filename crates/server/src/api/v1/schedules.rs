//! `/v1/schedules`: preview of a schedule before it is saved.

use cron::Zone;
use protocol::v1::{Preview, PreviewFire, PreviewRequest};
use timer::Timestamp;

use super::authorise::{Authorised, Nothing};
use super::call::{Call, instant};
use super::job_body::Reading;
use super::reply::Reply;
use crate::request_error::RequestError;

pub async fn show(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let PreviewRequest { schedule, after, count } = call.json()?;
    let now = call.state.engine.now();
    let reading = Reading { zone: &call.state.zone, now, before: None };
    let schedule = reading.schedule(&schedule).map_err(|wrong| RequestError::fields(vec![wrong]))?;
    let after = after.map_or(now, |after| Timestamp::from_millis(after.millis()));
    let next = |after| schedule.next_after(after);
    Ok(Reply::json(&preview(&call, &schedule, count, after, next)?))
}

/// Description of a schedule and its next fires, as `next` returns them.
pub fn preview(
    call: &Call,
    schedule: &cron::Schedule,
    count: Option<usize>,
    after: Timestamp,
    next: impl Fn(Timestamp) -> Option<Timestamp>,
) -> Result<Preview, RequestError> {
    let count = count.unwrap_or(COUNT);
    if count > COUNT_MAX {
        return Err(RequestError::field("count", format!("must be at most {COUNT_MAX}")));
    }
    let zone = schedule.zone().unwrap_or(&call.state.zone);
    let instants = std::iter::successors(next(after), |last| next(*last)).take(count);
    Ok(Preview {
        schedule_text: schedule.describe(call.language()),
        zone: zone.name().into(),
        fires: fires(instants, after, zone),
    })
}

fn fires(instants: impl Iterator<Item = Timestamp>, after: Timestamp, zone: &Zone) -> Vec<PreviewFire> {
    let mut offset = local(after, zone).offset();
    let fire = |at: Timestamp| {
        let local = local(at, zone);
        let clock_changed = std::mem::replace(&mut offset, local.offset()) != local.offset();
        PreviewFire {
            at: instant(at),
            local: local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            clock_changed,
        }
    };
    instants.map(fire).collect()
}

/// Local time in a zone.
pub fn local(at: Timestamp, zone: &Zone) -> jiff::Zoned {
    let instant = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let zone = jiff::tz::TimeZone::get(zone.name()).unwrap_or_else(|_| jiff::tz::TimeZone::system());
    instant.to_zoned(zone)
}

/// Default number of fires.
const COUNT: usize = 10;

/// Maximum number of fires.
const COUNT_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_night_the_clocks_change_is_marked() {
        let london = Zone::parse("Europe/London").unwrap();
        let cron = cron::Cron::parse("0 0 12 * * ?").unwrap();
        let schedule = cron::Schedule::cron(cron, london.clone(), cron::DstRule::NATURAL);
        // 23 October 2026; clocks go back on the 25th.
        let after = Timestamp::from_millis(1_792_713_600_000);
        let shown = fires(schedule.iter_from(after).take(4), after, &london);
        let marks: Vec<bool> = shown.iter().map(|fire| fire.clock_changed).collect();
        assert_eq!(marks, [false, false, true, false]);
        assert_eq!(shown[1].local, "2026-10-24T12:00:00+01:00");
        assert_eq!(shown[2].local, "2026-10-25T12:00:00+00:00");
    }
}
