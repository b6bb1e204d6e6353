//! A date, and the number of days from the epoch to it.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// A date without a zone.
///
/// ```
/// use tickwright_cron::Day;
///
/// let day: Day = "2026-10-01".parse().unwrap();
/// assert_eq!((day.year(), day.month(), day.day()), (2026, 10, 1));
/// assert!(Day::new(2026, 2, 29).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day {
    year: i16,
    month: u8,
    day: u8,
}

impl Day {
    /// Creates a date; an error if it does not exist.
    pub fn new(year: i16, month: u8, day: u8) -> Result<Day, Error> {
        let exists = (1..=12).contains(&month) && day >= 1 && day <= month_length(year, month);
        if exists && (-9999..=9999).contains(&year) {
            Ok(Day { year, month, day })
        } else {
            Err(Error::Day { text: format!("{year:04}-{month:02}-{day:02}") })
        }
    }

    /// The year, such as 2026.
    pub fn year(self) -> i16 {
        self.year
    }

    /// The month, 1 to 12.
    pub fn month(self) -> u8 {
        self.month
    }

    /// The day of the month, 1 to 31.
    pub fn day(self) -> u8 {
        self.day
    }

    /// The day after it.
    pub fn next(self) -> Day {
        Day::from_epoch_day(self.epoch_day() + 1)
    }

    /// Days since 1970-01-01, by counting years from March so that the leap day comes last.
    pub(crate) fn epoch_day(self) -> i64 {
        let (year, month) = (i64::from(self.year), i64::from(self.month));
        let year = if month <= 2 { year - 1 } else { year };
        let month = (month + 9) % 12;
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        year * 365 + leap_days + (month * 153 + 2) / 5 + i64::from(self.day) - 1 - EPOCH_FROM_MARCH_YEAR_0
    }

    /// The inverse of [`Day::epoch_day`]; correct for the years of cron expressions and well beyond.
    pub(crate) fn from_epoch_day(epoch_day: i64) -> Day {
        let days = epoch_day + EPOCH_FROM_MARCH_YEAR_0;
        let (era, day_of_era) = (days.div_euclid(DAYS_PER_400_YEARS), days.rem_euclid(DAYS_PER_400_YEARS));
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524
            - day_of_era / (DAYS_PER_400_YEARS - 1))
            / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let year = era * 400 + year_of_era + i64::from(month >= 10);
        Day { year: year as i16, month: ((month + 2) % 12 + 1) as u8, day: day as u8 }
    }
}

const DAYS_PER_400_YEARS: i64 = 146_097;
/// From 0000-03-01 to 1970-01-01.
const EPOCH_FROM_MARCH_YEAR_0: i64 = 719_468;

/// Number of days in a month.
pub(crate) fn month_length(year: i16, month: u8) -> u8 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl FromStr for Day {
    type Err = Error;

    fn from_str(text: &str) -> Result<Day, Error> {
        let wrong = || Error::Day { text: text.to_owned() };
        let mut numbers = text.splitn(3, '-').map(|number| number.parse::<u16>().map_err(|_| wrong()));
        let mut number = || numbers.next().ok_or_else(wrong)?;
        let (year, month, day) = (number()?, number()?, number()?);
        let small = |number: u16| u8::try_from(number).map_err(|_| wrong());
        Day::new(i16::try_from(year).map_err(|_| wrong())?, small(month)?, small(day)?).map_err(|_| wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_as_the_calendar_library_counts_them() {
        let mut date = jiff::civil::date(1969, 1, 1);
        for epoch_day in -365..90_000 {
            let day = Day::from_epoch_day(epoch_day);
            assert_eq!(
                (day.year(), day.month() as i8, day.day() as i8),
                (date.year(), date.month(), date.day())
            );
            assert_eq!(day.epoch_day(), epoch_day);
            assert_eq!(month_length(day.year(), day.month()) as i8, date.days_in_month());
            date = date.tomorrow().unwrap();
        }
    }

    #[test]
    fn a_day_that_does_not_exist_is_refused() {
        for text in
            ["2026-02-29", "2026-13-01", "2026-00-01", "2026-1", "x", "2026-10-01-", "99999-01-01", ""]
        {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
        assert_eq!("2028-02-29".parse::<Day>().unwrap().to_string(), "2028-02-29");
    }
}
