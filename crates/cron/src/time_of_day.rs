//! Times of day and sets of weekdays.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// A wall-clock time, to the second.
///
/// ```
/// use tickwright_cron::TimeOfDay;
///
/// let time: TimeOfDay = "17:30".parse().unwrap();
/// assert_eq!(time, TimeOfDay::new(17, 30, 0).unwrap());
/// assert_eq!(time.to_string(), "17:30");
/// assert!("24:00".parse::<TimeOfDay>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(u32);

impl TimeOfDay {
    /// Creates a time of day; an error if no clock shows it.
    pub fn new(hour: u8, minute: u8, second: u8) -> Result<TimeOfDay, Error> {
        if hour < 24 && minute < 60 && second < 60 {
            Ok(TimeOfDay(u32::from(hour) * 3_600 + u32::from(minute) * 60 + u32::from(second)))
        } else {
            Err(Error::TimeOfDay { text: format!("{hour:02}:{minute:02}:{second:02}") })
        }
    }

    /// The time so many seconds after midnight, less than a day.
    pub(crate) fn from_second(second: u32) -> TimeOfDay {
        TimeOfDay(second)
    }

    /// Seconds since midnight.
    pub(crate) fn second(self) -> i64 {
        i64::from(self.0)
    }
}

impl fmt::Display for TimeOfDay {
    /// `17:30`, or `17:30:05` if it has seconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute, second) = (self.0 / 3_600, self.0 / 60 % 60, self.0 % 60);
        match second {
            0 => write!(f, "{hour:02}:{minute:02}"),
            _ => write!(f, "{hour:02}:{minute:02}:{second:02}"),
        }
    }
}

impl FromStr for TimeOfDay {
    type Err = Error;

    fn from_str(text: &str) -> Result<TimeOfDay, Error> {
        let wrong = || Error::TimeOfDay { text: shortened(text) };
        let number = |text: &str| {
            let is_number = matches!(text.len(), 1..=2) && text.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { text.parse::<u8>().map_err(|_| wrong()) } else { Err(wrong()) }
        };
        let parts: Vec<&str> = text.trim().splitn(4, ':').collect();
        match parts[..] {
            [hour, minute] => TimeOfDay::new(number(hour)?, number(minute)?, 0).map_err(|_| wrong()),
            [hour, minute, second] => {
                TimeOfDay::new(number(hour)?, number(minute)?, number(second)?).map_err(|_| wrong())
            }
            _ => Err(wrong()),
        }
    }
}

/// A set of weekdays, printed and parsed as for example `Mon-Fri` or `Mon,Wed,Sat-Sun`.
///
/// ```
/// use tickwright_cron::Weekdays;
///
/// assert_eq!("mon-fri".parse(), Ok(Weekdays::MONDAY_TO_FRIDAY));
/// assert_eq!("Sat,Sun,Wed".parse::<Weekdays>().unwrap().to_string(), "Wed,Sat-Sun");
/// assert!("Mon-Someday".parse::<Weekdays>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Weekdays(u8);

impl Weekdays {
    /// Monday to Friday.
    pub const MONDAY_TO_FRIDAY: Weekdays = Weekdays(0b001_1111);

    /// Every day.
    pub const ALL: Weekdays = Weekdays(0b111_1111);

    /// No day: with it, only the entries of a work calendar are workdays.
    pub const NONE: Weekdays = Weekdays(0);

    /// Whether the set has the weekday; 0 is Monday, 6 is Sunday.
    pub fn contains(self, weekday: u32) -> bool {
        weekday < 7 && self.0 >> weekday & 1 == 1
    }

    /// Its days as ranges, each with its first and last weekday.
    pub(crate) fn ranges(self) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for day in (0..7).filter(|day| self.contains(*day)) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == day => *last = day,
                _ => ranges.push((day, day)),
            }
        }
        ranges
    }

    /// The set as bits; the lowest is Monday.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// The set of these bits; bits above the seventh are dropped.
    pub fn from_bits(bits: u8) -> Weekdays {
        Weekdays(bits & Weekdays::ALL.0)
    }
}

const NAMES: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

impl fmt::Display for Weekdays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |day: u32| NAMES[day as usize];
        let text = |(first, last): (u32, u32)| match first == last {
            true => name(first).to_owned(),
            false => format!("{}-{}", name(first), name(last)),
        };
        let parts: Vec<String> = self.ranges().into_iter().map(text).collect();
        f.write_str(if parts.is_empty() { "none".to_owned() } else { parts.join(",") }.as_str())
    }
}

impl FromStr for Weekdays {
    type Err = Error;

    fn from_str(text: &str) -> Result<Weekdays, Error> {
        let wrong = || Error::Weekdays { text: shortened(text) };
        let index = |name: &str| {
            let is_name = |known: &str| known.eq_ignore_ascii_case(name.trim());
            NAMES.iter().position(|known| is_name(known)).ok_or_else(wrong)
        };
        if text.trim().eq_ignore_ascii_case("none") {
            return Ok(Weekdays::NONE);
        }
        let mut bits = 0;
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (mut day, last) = (index(first)?, index(last)?);
            loop {
                bits |= 1 << day;
                if day == last {
                    break;
                }
                day = (day + 1) % 7;
            }
        }
        Ok(Weekdays(bits))
    }
}

/// Text for an error message: at most 60 characters of it.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_shown_by_a_clock() {
        let check = |text: &str, printed: Option<&str>| {
            let parsed = text.parse::<TimeOfDay>().ok().map(|time| time.to_string());
            assert_eq!(parsed.as_deref(), printed, "{text}");
        };
        check("00:00", Some("00:00"));
        check("9:05", Some("09:05"));
        check(" 23:59:59 ", Some("23:59:59"));
        check("09:00:00", Some("09:00"));
        for wrong in
            ["", "9", "24:00", "12:60", "12:00:60", "-1:00", "+1:00", "1:2:3:4", "009:00", "９:00", "a:b"]
        {
            check(wrong, None);
        }
    }

    #[test]
    fn every_set_of_weekdays_survives_printing() {
        for bits in 0..128 {
            let set = Weekdays::from_bits(bits);
            assert_eq!(set.to_string().parse(), Ok(set), "{set}");
        }
        assert_eq!("Fri-Mon".parse::<Weekdays>().unwrap().to_string(), "Mon,Fri-Sun");
        for wrong in ["", "Mon,", "Mo", "Monday", "Mon-", "Mon-Fri-Sun", "1-5", &"x".repeat(10_000)] {
            assert!(wrong.parse::<Weekdays>().is_err(), "{wrong}");
        }
    }
}
