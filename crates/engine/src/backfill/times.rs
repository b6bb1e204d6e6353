//! Scheduled times of a backfill, computed from the job's schedule in bounded steps.

use std::time::Duration;

use cron::{Schedule, Timestamp, Zone};

/// A range of time: from `from`, inclusive, until `until`, exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// First time.
    pub from: Timestamp,
    /// Time after the last one.
    pub until: Timestamp,
}

/// Maximum number of scheduled times of one backfill: its rows are written in one transaction.
pub const INSTANTS_MAX: usize = 10_000;

/// Why a backfill has no scheduled times to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimesError {
    /// The ranges have none.
    #[error("the range has no scheduled time of the job")]
    None,
    /// The ranges have too many.
    #[error("the range has {} scheduled times, but a backfill has at most {INSTANTS_MAX}; choose a shorter range", Counted(*.0))]
    TooMany(usize),
}

/// A count that may have ended early.
struct Counted(usize);

impl std::fmt::Display for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            COUNTED_MAX.. => write!(f, "more than {}", COUNTED_MAX - 1),
            counted => write!(f, "{counted}"),
        }
    }
}

/// Scheduled times within the ranges, oldest first and each once. A schedule without times of its own (none, or a fixed
/// delay) has one at the beginning of each day in `zone`.
pub fn times_of(
    schedule: &Schedule,
    zone: &Zone,
    ranges: &[TimeRange],
) -> Result<Vec<Timestamp>, TimesError> {
    let mut found: Vec<Timestamp> = Vec::new();
    for range in ranges {
        let left = COUNTED_MAX.saturating_sub(found.len());
        found.extend(all_in(schedule, zone, *range).take(left));
    }
    found.sort_unstable();
    found.dedup();
    match found.len() {
        0 => Err(TimesError::None),
        count if count > INSTANTS_MAX => Err(TimesError::TooMany(count)),
        _ => Ok(found),
    }
}

fn all_in<'a>(
    schedule: &'a Schedule,
    zone: &'a Zone,
    range: TimeRange,
) -> Box<dyn Iterator<Item = Timestamp> + 'a> {
    let in_range = move |at: &Timestamp| *at < range.until;
    match schedule {
        Schedule::Never | Schedule::FixedDelay { .. } => {
            let days = std::iter::successors(Some(zone.day_at(range.from)), |day| Some(day.next()));
            let starts = days.map(|day| zone.start_of(day)).skip_while(move |at| *at < range.from);
            Box::new(starts.take_while(in_range))
        }
        Schedule::Cron { .. }
        | Schedule::Timetable(_)
        | Schedule::FixedRate { .. }
        | Schedule::Once { .. } => {
            let just_before = range.from - Duration::from_millis(1);
            Box::new(schedule.iter_from(just_before).take_while(in_range))
        }
    }
}

/// Counting stops here, so that a range of ten years by the second is refused within a fraction of a second.
const COUNTED_MAX: usize = 5 * INSTANTS_MAX + 1;

#[cfg(test)]
mod tests {
    use cron::{Cron, DstRule};

    use super::*;

    /// A time such as `2026-06-20T18:00:00Z`.
    fn at(text: &str) -> Timestamp {
        let (day, time) = text.trim_end_matches('Z').split_once('T').unwrap();
        let seconds = time.split(':').fold(0, |sum, part| sum * 60 + part.parse::<u64>().unwrap());
        Zone::utc().start_of(day.parse().unwrap()) + Duration::from_secs(seconds)
    }

    fn cron(expression: &str, zone: &str) -> Schedule {
        Schedule::cron(Cron::parse(expression).unwrap(), Zone::parse(zone).unwrap(), DstRule::NATURAL)
    }

    fn found(schedule: &Schedule, zone: &str, from: &str, until: &str) -> Result<Vec<String>, TimesError> {
        let range = TimeRange { from: at(from), until: at(until) };
        let times = times_of(schedule, &Zone::parse(zone).unwrap(), &[range])?;
        Ok(times.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn times_are_those_of_the_schedule_in_its_zone() {
        let check = |schedule: &Schedule, zone: &str, from: &str, until: &str, expected: &[&str]| {
            assert_eq!(found(schedule, zone, from, until).unwrap(), expected);
        };
        let daily = cron("0 0 2 * * ?", "Asia/Shanghai");
        check(
            &daily,
            "UTC",
            "2026-06-20T18:00:00Z",
            "2026-06-22T18:00:00Z",
            &["2026-06-20T18:00:00Z", "2026-06-21T18:00:00Z"],
        );
        // Clocks go back from 03:00 to 02:00: a time by the clock exists once, an hourly one twice.
        let (before, after) = ("2026-10-24T23:30:00Z", "2026-10-25T02:30:00Z");
        check(&cron("0 30 2 * * ?", "Europe/Berlin"), "UTC", before, after, &["2026-10-25T00:30:00Z"]);
        check(
            &cron("0 30 * * * ?", "Europe/Berlin"),
            "UTC",
            before,
            after,
            &["2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"],
        );
        let rate = Schedule::fixed_rate(at("2026-01-01T00:00:10Z"), Duration::from_secs(30)).unwrap();
        check(
            &rate,
            "UTC",
            "2025-12-01T00:00:00Z",
            "2026-01-01T00:01:10Z",
            &["2026-01-01T00:00:10Z", "2026-01-01T00:00:40Z"],
        );
        check(
            &Schedule::Once { at: at("2026-01-01T00:00:00Z") },
            "UTC",
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:01Z",
            &["2026-01-01T00:00:00Z"],
        );
    }

    #[test]
    fn a_job_without_a_schedule_has_one_time_each_day() {
        let days = found(&Schedule::Never, "Europe/London", "2026-03-27T23:00:00Z", "2026-03-31T00:00:00Z");
        // Summer time begins on the 29th.
        let expected =
            ["2026-03-28T00:00:00Z", "2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z", "2026-03-30T23:00:00Z"];
        assert_eq!(days.unwrap(), expected);
    }

    #[test]
    fn ranges_that_overlap_give_each_time_once() {
        let range = |from, until| TimeRange { from: at(from), until: at(until) };
        let ranges = [
            range("2026-01-03T00:00:00Z", "2026-01-05T00:00:00Z"),
            range("2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
        ];
        let times = times_of(&Schedule::Never, &Zone::utc(), &ranges).unwrap();
        assert_eq!(times.len(), 4);
        assert!(times.is_sorted());
    }

    #[test]
    fn no_time_and_too_many_are_errors_that_name_both_numbers() {
        let each_second = cron("* * * * * ?", "UTC");
        let check = |from: &str, until: &str, expected: &str| {
            let error = found(&each_second, "UTC", from, until).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        let start = "2026-01-01T00:00:00Z";
        check(
            start,
            "2036-01-01T00:00:00Z",
            "more than 50000 scheduled times, but a backfill has at most 10000",
        );
        check(start, "2026-01-01T03:00:00Z", "has 10800 scheduled times");
        check(start, start, "no scheduled time");
        let limit = found(&each_second, "UTC", start, "2026-01-01T02:46:40Z").unwrap();
        assert_eq!(limit.len(), INSTANTS_MAX);
    }
}
