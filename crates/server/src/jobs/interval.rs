//! Minimum interval at which jobs may fire.

use std::time::Duration;

use cron::{Schedule, Timestamp};

use crate::request_error::RequestError;

/// Rejects a schedule that fires more often than `min`.
pub fn check(schedule: &Schedule, min: Duration, now: Timestamp) -> Result<(), RequestError> {
    // Cron expressions and timetables fire at most once per second; their next fires are computed only if that is too
    // often.
    if matches!(schedule, Schedule::Cron { .. } | Schedule::Timetable(_)) && min <= Duration::from_secs(1) {
        return Ok(());
    }
    match shortest(schedule, now) {
        Some(interval) if interval < min => Err(RequestError::field(
            "schedule",
            format!(
                "this schedule fires every {interval:?}; the minimum interval is {min:?} (--min-interval)"
            ),
        )),
        _ => Ok(()),
    }
}

/// Shortest time between two fires; for a cron expression or timetable, between the next [`LOOKED_AT`].
fn shortest(schedule: &Schedule, now: Timestamp) -> Option<Duration> {
    match schedule {
        Schedule::FixedRate { period, .. } => Some(*period),
        Schedule::FixedDelay { delay } => Some(*delay),
        _ => {
            let mut last = schedule.next_after(now)?;
            let mut shortest = None;
            for _ in 0..LOOKED_AT {
                let Some(next) = schedule.next_after(last) else { break };
                let interval = next.duration_since(last);
                shortest = Some(shortest.map_or(interval, |known: Duration| known.min(interval)));
                last = next;
            }
            shortest
        }
    }
}

/// Fires of a cron expression or timetable that are compared: at least all of one minute.
const LOOKED_AT: usize = 60;

#[cfg(test)]
mod tests {
    use cron::{Cron, DstRule, Zone};

    use super::*;

    #[test]
    fn a_schedule_that_fires_too_often_is_refused_and_says_what_is_allowed() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let ms = Duration::from_millis;
        let cron = |text: &str| Schedule::cron(Cron::parse(text).unwrap(), Zone::utc(), DstRule::QUARTZ);
        let is_allowed = |schedule: &Schedule, min| check(schedule, min, now).is_ok();
        let rate = |period| Schedule::fixed_rate(now, period).unwrap();
        assert!(is_allowed(&rate(ms(10)), ms(10)));
        assert!(!is_allowed(&rate(ms(9)), ms(10)));
        assert!(!is_allowed(&Schedule::fixed_delay(ms(1)).unwrap(), ms(10)));
        assert!(is_allowed(&cron("* * * * * ?"), ms(1_000)));
        assert!(!is_allowed(&cron("* * * * * ?"), ms(1_001)));
        assert!(!is_allowed(&cron("0,1 0 0 * * ?"), ms(5_000)), "twice a day, and a second apart");
        assert!(is_allowed(&cron("0 0 0 * * ?"), ms(5_000)));
        assert!(is_allowed(&Schedule::once(now), ms(5_000)) && is_allowed(&Schedule::Never, ms(5_000)));
        let refused = check(&rate(ms(1)), ms(10), now).unwrap_err();
        assert!(format!("{refused:?}").contains("every 1ms") && format!("{refused:?}").contains("10ms"));
    }
}
