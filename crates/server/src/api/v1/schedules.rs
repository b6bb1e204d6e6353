//! `/v1/schedules`: preview of a schedule before it is saved.

use std::time::Duration;

use cron::{PreviewedTime, TimeOfDay, Timetable, Verdict, Zone};
use engine::JobWorkdays;
use protocol::v1::{ExcludedTime, Preview, PreviewFire, PreviewRequest};
use timer::Timestamp;

use super::authorise::{Authorised, Nothing};
use super::call::{Call, instant};
use super::job_body::{Reading, schedule_text};
use super::reply::Reply;
use super::work_calendars::Resolving;
use crate::request_error::RequestError;

pub async fn show(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let PreviewRequest { schedule, workdays, after, count } = call.json()?;
    let now = call.state.engine.now();
    let reading = Reading { zone: &call.state.zone, now, before: None, workdays: None };
    let schedule = reading.schedule(&schedule).map_err(|wrong| RequestError::fields(vec![wrong]))?;
    let workdays = Resolving::default().workdays(&call, workdays.as_ref()).await?;
    let planned = workdays.as_ref().and_then(|workdays| schedule.on(&workdays.rule));
    let planned = planned.map(cron::Schedule::Timetable);
    if workdays.is_some() && planned.is_none() {
        return Err(RequestError::field("workdays", "requires a cron schedule or a timetable"));
    }
    let after = after.map_or(now, |after| Timestamp::from_millis(after.millis()));
    let next = |after| planned.as_ref().unwrap_or(&schedule).next_after(after);
    Ok(Reply::json(&preview(&call, (&schedule, workdays.as_ref()), count, after, next)?))
}

/// Description of a schedule with its work calendar, and its next fires, as `next` returns them.
pub fn preview(
    call: &Call,
    (schedule, workdays): (&cron::Schedule, Option<&JobWorkdays>),
    count: Option<usize>,
    after: Timestamp,
    next: impl Fn(Timestamp) -> Option<Timestamp>,
) -> Result<Preview, RequestError> {
    let count = count.unwrap_or(COUNT);
    if count > COUNT_MAX {
        return Err(RequestError::field("count", format!("must be at most {COUNT_MAX}")));
    }
    let zone = schedule.zone().unwrap_or(&call.state.zone);
    let instants: Vec<Timestamp> =
        std::iter::successors(next(after), |last| next(*last)).take(count).collect();
    let timetable = workdays.and_then(|workdays| schedule.on(&workdays.rule));
    let until = instants.last().copied().unwrap_or(after + LOOKED_AHEAD);
    Ok(Preview {
        schedule_text: schedule_text(schedule, workdays, call.language()),
        zone: zone.name().into(),
        fires: fires(instants.into_iter(), after, zone, workdays),
        excluded: timetable.map(|timetable| excluded(&timetable, after, until)).unwrap_or_default(),
    })
}

fn fires(
    instants: impl Iterator<Item = Timestamp>,
    after: Timestamp,
    zone: &Zone,
    workdays: Option<&JobWorkdays>,
) -> Vec<PreviewFire> {
    let mut offset = local(after, zone).offset();
    let fire = |at: Timestamp| {
        let local = local(at, zone);
        let clock_changed = std::mem::replace(&mut offset, local.offset()) != local.offset();
        let (day, calendar) = (zone.day_at(at), workdays.map(|workdays| &workdays.rule.calendar));
        let entry = calendar.and_then(|calendar| calendar.entry(day));
        PreviewFire {
            at: instant(at),
            local: local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            clock_changed,
            holiday: entry.map(|entry| entry.name().to_owned()).filter(|name| !name.is_empty()),
            is_assumed: calendar.is_some_and(|calendar| calendar.is_assumed(day)),
        }
    };
    instants.map(fire).collect()
}

/// Scheduled times of a timetable that its work calendar skips or moves.
fn excluded(timetable: &Timetable, after: Timestamp, until: Timestamp) -> Vec<ExcludedTime> {
    let is_near = |time: &PreviewedTime| time.scheduled_at.is_none_or(|at| at <= until);
    let looked_at = TIMES_MAX / timetable.rules().len().max(1);
    let all =
        timetable.rules().iter().flat_map(|rule| rule.preview(after).take(looked_at).take_while(is_near));
    let mut found: Vec<PreviewedTime> = all.filter(|time| time.verdict != Verdict::Fires).collect();
    found.sort_by_key(|time| (time.day, time.at));
    found.dedup_by_key(|time| (time.day, time.at));
    let shown = |time: PreviewedTime| ExcludedTime {
        local: format!("{}T{}", time.day, seconds(time.at)),
        holiday: time.name,
        moved_to: time.fires_at.map(instant),
    };
    found.into_iter().take(EXCLUDED_MAX).map(shown).collect()
}

/// A time of day with its seconds.
fn seconds(at: TimeOfDay) -> String {
    let text = at.to_string();
    if text.len() == "09:00".len() { text + ":00" } else { text }
}

/// Times of a timetable that are looked at to find those that are skipped or moved.
const TIMES_MAX: usize = 2_000;

/// Maximum number of times that are shown as skipped or moved.
const EXCLUDED_MAX: usize = 200;

/// Skipped times are shown for this long if no fire follows.
const LOOKED_AHEAD: Duration = Duration::from_secs(366 * 86_400);

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
        let shown = fires(schedule.iter_from(after).take(4), after, &london, None);
        let marks: Vec<bool> = shown.iter().map(|fire| fire.clock_changed).collect();
        assert_eq!(marks, [false, false, true, false]);
        assert_eq!(shown[1].local, "2026-10-24T12:00:00+01:00");
        assert_eq!(shown[2].local, "2026-10-25T12:00:00+00:00");
    }
}
