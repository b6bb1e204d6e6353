//! Dependencies on runs of other jobs, by their scheduled times.
//!
//! A step that depends on a job waits until the newest run of each scheduled time has succeeded. What started that run does
//! not matter: the schedule, a backfill, a user who resumed it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use words::{DependsNeed, IfFailed, IfMissing};

/// The scheduled times of another job that a step depends on, for example `same` or `-7d..-1d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Dates {
    /// The last one before the scheduled time of the run.
    Previous,
    /// All of some days, counted from the date of the run.
    Days {
        /// First day, for example -7.
        from: i32,
        /// Last day, at most 0.
        until: i32,
    },
}

impl Dates {
    /// Those of the date of the run.
    pub const SAME: Dates = Dates::Days { from: 0, until: 0 };

    /// Whether they include the date of the run itself.
    pub fn includes_same(self) -> bool {
        matches!(self, Dates::Days { until: 0, .. })
    }
}

/// Maximum number of days before the date of the run.
pub const DAYS_MAX: i32 = 366;

impl FromStr for Dates {
    type Err = String;

    fn from_str(text: &str) -> Result<Dates, String> {
        let day = |text: &str| -> Option<i32> { text.trim().strip_suffix('d')?.parse().ok() };
        let days = match text.trim() {
            "same" => return Ok(Dates::SAME),
            "previous" => return Ok(Dates::Previous),
            other => match other.split_once("..") {
                Some((from, until)) => day(from).zip(day(until)),
                None => day(other).map(|day| (day, day)),
            },
        };
        let shown: String = text.chars().take(40).collect();
        match days {
            None => Err(format!("`{shown}` is not a date; write `same`, `previous`, `-1d` or `-7d..-1d`")),
            Some((from, until)) if from > until => Err(format!("`{shown}` ends before it begins")),
            Some((_, until)) if until > 0 => Err(format!("`{shown}` is in the future; the last day is `0d`")),
            Some((from, _)) if from < -DAYS_MAX => {
                Err(format!("`{shown}` is too long ago; the first day is `-{DAYS_MAX}d`"))
            }
            Some((from, until)) => Ok(Dates::Days { from, until }),
        }
    }
}

impl fmt::Display for Dates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dates::Previous => f.write_str("previous"),
            Dates::Days { from: 0, until: 0 } => f.write_str("same"),
            Dates::Days { from, until } if from == until => write!(f, "{from}d"),
            Dates::Days { from, until } => write!(f, "{from}d..{until}d"),
        }
    }
}

impl TryFrom<String> for Dates {
    type Error = String;

    fn try_from(text: String) -> Result<Dates, String> {
        text.parse()
    }
}

impl From<Dates> for String {
    fn from(dates: Dates) -> String {
        dates.to_string()
    }
}

/// What has become of a scheduled time, by its newest run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It has no run.
    Missing,
    /// A run is open.
    Open,
    /// Its newest run has succeeded.
    Succeeded,
    /// Its newest run has failed, or was cancelled.
    Failed,
}

/// Rules of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How many scheduled times must have succeeded.
    pub need: DependsNeed,
    /// What happens while one has no run.
    pub if_missing: IfMissing,
    /// What happens when one has failed.
    pub on_failed: IfFailed,
}

/// Decision about a step that depends on scheduled times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The step has succeeded.
    Met,
    /// The step has failed, because of the scheduled time at this position; none if there are no scheduled times.
    Failed(Option<usize>),
    /// The step waits.
    Wait,
}

/// Decides about a step. Without any scheduled time there is nothing to wait for, unless one is needed.
pub fn decide(rules: Rules, found: &[Found]) -> Verdict {
    let fails = |found: &Found| match found {
        Found::Missing => rules.if_missing == IfMissing::Fail,
        Found::Failed => rules.on_failed == IfFailed::Fail,
        Found::Open | Found::Succeeded => false,
    };
    let is_met = |found: &Found| *found == Found::Succeeded;
    let failed = found.iter().position(fails);
    match rules.need {
        DependsNeed::All if failed.is_some() => Verdict::Failed(failed),
        DependsNeed::All if found.iter().all(is_met) => Verdict::Met,
        DependsNeed::Any if found.iter().any(is_met) => Verdict::Met,
        DependsNeed::Any if found.iter().all(fails) => Verdict::Failed(failed),
        DependsNeed::All | DependsNeed::Any => Verdict::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_written() {
        let check = |text: &str, expected: Dates, written: &str| {
            assert_eq!(text.parse(), Ok(expected), "{text}");
            assert_eq!(expected.to_string(), written);
        };
        check("same", Dates::SAME, "same");
        check("0d", Dates::SAME, "same");
        check("previous", Dates::Previous, "previous");
        check("-1d", Dates::Days { from: -1, until: -1 }, "-1d");
        check(" -7d .. -1d ", Dates::Days { from: -7, until: -1 }, "-7d..-1d");
        let wrong = |text: &str, why: &str| {
            let error = text.parse::<Dates>().unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        wrong("yesterday", "is not a date");
        wrong("-7..-1", "is not a date");
        wrong("-1d..-7d", "ends before");
        wrong("-1d..1d", "in the future");
        wrong("-400d..-1d", "too long ago");
        assert!(Dates::SAME.includes_same() && !Dates::Previous.includes_same());
    }

    #[test]
    fn the_newest_run_of_each_scheduled_time_decides() {
        use DependsNeed::{All, Any};
        use Found::{Failed as Bad, Missing as Gone, Open, Succeeded as Good};
        let check = |need, found: &[Found], patient: Verdict, strict: Verdict| {
            let wait = Rules { need, if_missing: IfMissing::Wait, on_failed: IfFailed::Wait };
            let start = Rules { if_missing: IfMissing::Start, ..wait };
            let fail = Rules { need, if_missing: IfMissing::Fail, on_failed: IfFailed::Fail };
            assert_eq!(decide(wait, found), patient, "{need} {found:?}");
            assert_eq!(decide(start, found), patient, "{need} {found:?}");
            assert_eq!(decide(fail, found), strict, "{need} {found:?}");
        };
        let (met, wait) = (Verdict::Met, Verdict::Wait);
        let fails = |position| Verdict::Failed(Some(position));
        check(All, &[], met, met);
        check(All, &[Good, Good], met, met);
        check(All, &[Good, Open], wait, wait);
        check(All, &[Good, Gone], wait, fails(1));
        check(All, &[Bad, Open], wait, fails(0));
        check(Any, &[], Verdict::Failed(None), Verdict::Failed(None));
        check(Any, &[Bad, Good], met, met);
        check(Any, &[Bad, Open], wait, wait);
        check(Any, &[Bad, Gone], wait, fails(0));
    }
}
