//! Deviations of XXL-JOB's cron classes from Quartz's semantics, which are ours.
//!
//! XXL-JOB has had three classes. Each deviation is modelled as a change to our fires. The deviations were found by
//! running the classes; none of their code is here.

use cron::{Cron, DstRule, Timestamp, Zone};
use jiff::civil::{Date, Weekday};

/// One of XXL-JOB's cron classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// 2.2.0 to 3.0.0.
    A,
    /// 3.1.0 to 3.3.2.
    B,
    /// 3.4.0 and later.
    C,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 3] = [Class::A, Class::B, Class::C];

    /// XXL-JOB releases with this class.
    pub fn releases(self) -> &'static str {
        match self {
            Class::A => "2.2.0 to 3.0.0",
            Class::B => "3.1.0 to 3.3.2",
            Class::C => "3.4.0 and later",
        }
    }
}

/// Fires of an expression under a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fires {
    /// The same as ours.
    Alike,
    /// Different from ours.
    Otherwise {
        /// Fires under the class.
        fires: Vec<Timestamp>,
        /// Explanation of the difference.
        why: &'static str,
    },
    /// The class rejects the expression and stops the job.
    Refused(&'static str),
}

/// Computes up to `count` fires after `from` under a class, compared with ours.
pub fn under(
    class: Class,
    expr: &str,
    zone: &Zone,
    from: Timestamp,
    ours: &[Timestamp],
    count: usize,
) -> Fires {
    let fields: Vec<&str> = expr.split_whitespace().collect();
    if fields.len() > 7 && class != Class::A {
        return Fires::Refused("it rejects more than seven fields");
    }
    let Some(days) = fields.get(3).map(|days| days.to_ascii_uppercase()) else { return Fires::Alike };
    let parts: Vec<&str> = days.split(',').collect();
    // More than are compared, because some are removed.
    let fires = |days: &str| fires(&fields, days, zone, from, count * LEFT_OUT);
    let each_part = |lets: &dyn Fn(&str, Date) -> bool| {
        let mut all = Vec::new();
        for part in &parts {
            all.extend(
                fires(part).into_iter().filter(|at| day(*at, zone).is_some_and(|date| lets(part, date))),
            );
        }
        all.sort();
        all.dedup();
        all.truncate(count);
        all
    };
    let otherwise = |fires: Vec<Timestamp>, why| match fires == ours {
        true => Fires::Alike,
        false => Fires::Otherwise { fires, why },
    };
    let last = parts.iter().any(|part| part.starts_with('L'));
    let nearest = parts.iter().any(|part| part.ends_with('W') && !part.starts_with('L'));
    match class {
        Class::A if last && parts.len() > 1 => Fires::Refused("it rejects L in a list of days"),
        Class::A if nearest && parts.len() > 1 => {
            let numbers = parts.iter().filter_map(|part| part.trim_end_matches('W').parse::<u8>().ok());
            let mut first = fires(&format!("{}W", numbers.min().unwrap_or(1)));
            first.truncate(count);
            otherwise(first, "it uses only the first day of a list with W")
        }
        Class::B if last => {
            let found = each_part(&|part, date| !part.starts_with('L') || date.days_in_month() == 31);
            otherwise(found, "it supports L only in months of 31 days")
        }
        Class::B if parts.contains(&"1W") => {
            let begins_well = |date: Date| date.first_of_month().weekday() != Weekday::Saturday;
            let found = each_part(&|part, date| part != "1W" || begins_well(date));
            otherwise(found, "it skips 1W in months that begin with a Saturday")
        }
        Class::C if nearest && ours.windows(2).any(|pair| day(pair[0], zone) == day(pair[1], zone)) => {
            otherwise(without_earlier_hours(ours, zone, from), "on a new day it can skip earlier hours")
        }
        _ => otherwise(within_a_century(ours, zone, from), "it searches at most 100 years ahead"),
    }
}

/// Fires of the expression with another day-of-month field.
fn fires(fields: &[&str], days: &str, zone: &Zone, from: Timestamp, count: usize) -> Vec<Timestamp> {
    let mut fields = fields.to_vec();
    fields[3] = days;
    match Cron::parse_lenient(&fields.join(" ")) {
        Ok((cron, _)) => cron.iter_from(from, zone, DstRule::QUARTZ).take(count).collect(),
        Err(_) => Vec::new(),
    }
}

fn without_earlier_hours(ours: &[Timestamp], zone: &Zone, from: Timestamp) -> Vec<Timestamp> {
    let mut last = from;
    let mut kept = Vec::new();
    for at in ours {
        let (Some(before), Some(now)) = (shown(last, zone), shown(*at, zone)) else { continue };
        if before.date() == now.date() || now.hour() >= before.hour() {
            kept.push(*at);
            last = *at;
        }
    }
    kept
}

fn within_a_century(ours: &[Timestamp], zone: &Zone, from: Timestamp) -> Vec<Timestamp> {
    let year = |at| shown(at, zone).map_or(0, |shown| shown.year());
    let last = year(from) + 100;
    ours.iter().copied().filter(|at| year(*at) <= last).collect()
}

fn day(at: Timestamp, zone: &Zone) -> Option<Date> {
    shown(at, zone).map(|shown| shown.date())
}

/// Local date and time in the zone.
pub fn shown(at: Timestamp, zone: &Zone) -> Option<jiff::civil::DateTime> {
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
    Some(at.to_zoned(jiff::tz::TimeZone::get(zone.name()).ok()?).datetime())
}

/// Factor of fires computed to fires compared: only seven of twelve months have 31 days.
const LEFT_OUT: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks fires after 2026-06-21 10:00:00.500 in Shanghai, to the day.
    fn check(class: Class, expr: &str, expected: Result<&[&str], &str>) {
        let zone = Zone::parse("Asia/Shanghai").unwrap();
        let from = Timestamp::from_millis(1_782_007_200_500);
        let ours: Vec<Timestamp> = match Cron::parse_lenient(expr) {
            Ok((cron, _)) => cron.iter_from(from, &zone, DstRule::QUARTZ).take(100).collect(),
            Err(error) => panic!("{error}"),
        };
        let fires = match under(class, expr, &zone, from, &ours, 100) {
            Fires::Alike => Ok(ours),
            Fires::Otherwise { fires, .. } => Ok(fires),
            Fires::Refused(why) => Err(why),
        };
        let length = expected.map_or(0, <[_]>::len);
        let shown: Result<Vec<String>, _> = fires.map(|fires| {
            fires
                .iter()
                .take(length.max(1))
                .map(|at| shown(*at, &zone).unwrap().strftime("%m-%d %H").to_string())
                .collect()
        });
        assert_eq!(
            shown.as_deref().map_err(|why| *why),
            expected
                .map(|days| days.iter().map(|day| (*day).to_owned()).collect::<Vec<_>>())
                .as_deref()
                .map_err(|why| *why),
            "{expr} under {class:?}"
        );
    }

    #[test]
    fn each_class_deviates_where_it_was_seen_to() {
        for class in Class::ALL {
            check(class, "0 0 0 * * ?", Ok(&["06-22 00"]));
            check(class, "0 15 10 15W * ?", Ok(&["07-15 10", "08-14 10", "09-15 10"]));
            check(class, "0 15 10 ? * 6L", Ok(&["06-26 10", "07-31 10", "08-28 10"]));
            check(class, "0 0 0 1 1 ? 2199", Ok(&[]));
        }
        for class in [Class::A, Class::C] {
            check(class, "0 15 10 L * ?", Ok(&["06-30 10", "07-31 10", "08-31 10", "09-30 10"]));
            check(class, "0 15 10 L-3W * ?", Ok(&["06-26 10", "07-28 10", "08-28 10", "09-28 10"]));
            check(class, "0 15 10 1W * ?", Ok(&["07-01 10", "08-03 10", "09-01 10"]));
        }
        check(Class::B, "0 15 10 L * ?", Ok(&["07-31 10", "08-31 10", "10-31 10"]));
        check(Class::B, "0 15 10 1W * ?", Ok(&["07-01 10", "09-01 10", "10-01 10"]));
        check(Class::B, "0 15 10 1,L * ?", Ok(&["07-01 10", "07-31 10", "08-01 10"]));
        check(Class::C, "0 15 10 1,L * ?", Ok(&["06-30 10", "07-01 10", "07-31 10"]));
        check(Class::A, "0 15 10 1,L * ?", Err("it rejects L in a list of days"));
        check(Class::A, "0 15 10 1,15W * ?", Ok(&["07-01 10", "08-03 10", "09-01 10"]));
        check(Class::C, "0 0 8,18 15W * ?", Ok(&["07-15 18", "08-14 18"]));
        check(Class::A, "0 0 8,18 15W * ?", Ok(&["07-15 08", "07-15 18", "08-14 08"]));
        check(Class::A, "0 0 0 * * ? 2026 more", Ok(&["06-22 00"]));
        check(Class::C, "0 0 0 * * ? 2026 more", Err("it rejects more than seven fields"));
    }
}
