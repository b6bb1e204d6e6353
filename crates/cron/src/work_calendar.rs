//! Work calendars: which days are workdays, from a week mask and entries for single days.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::day::Day;
use crate::error::Error;
use crate::local::weekday;
use crate::time_of_day::{Weekdays, shortened};

/// The workdays and days off of a country or company. Dates have no zone: a day is the day in the zone of the
/// schedule that uses the calendar.
///
/// ```
/// use tickwright_cron::{Beyond, Day, DayEntry, WorkCalendar, Weekdays};
///
/// let day = |text: &str| text.parse::<Day>().unwrap();
/// let mut calendar = WorkCalendar::new(Weekdays::MONDAY_TO_FRIDAY);
/// calendar.set(day("2026-10-01"), DayEntry::off("国庆节"));
/// calendar.set(day("2026-10-10"), DayEntry::work("国庆节"));
/// calendar.known_until = Some(day("2026-12-31"));
///
/// assert!(!calendar.is_work(day("2026-10-01")), "a Thursday, but a holiday");
/// assert!(calendar.is_work(day("2026-10-10")), "a Saturday, but a make-up workday");
/// assert!(calendar.is_work(day("2026-10-09")), "a Friday, by the week mask");
/// assert!(calendar.is_assumed(day("2027-01-01")), "not announced yet");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkCalendar {
    /// Days that are workdays unless an entry exists.
    pub week: Weekdays,
    /// The last day of the published data; `None` if the data has no end.
    pub known_until: Option<Day>,
    /// Rule for days after [`known_until`](WorkCalendar::known_until).
    pub beyond: Beyond,
    days: BTreeMap<i64, DayEntry>,
}

/// Rule for days after the published data of a work calendar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Beyond {
    /// The week mask decides; previews mark such fires as assumed.
    #[default]
    Weekdays,
    /// Nothing fires.
    Stop,
}

/// An entry of a work calendar for one day.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DayEntry {
    /// Whether the day is a workday.
    pub is_work: bool,
    /// Name of the holiday, or of the holiday that a make-up workday belongs to; may be empty.
    name: String,
}

impl DayEntry {
    /// A day off. Line breaks in the name become blanks, and it is shortened to 100 characters.
    pub fn off(name: &str) -> DayEntry {
        DayEntry { is_work: false, name: clean(name) }
    }

    /// A workday, for example a make-up Saturday. The name is changed as by [`DayEntry::off`].
    pub fn work(name: &str) -> DayEntry {
        DayEntry { is_work: true, name: clean(name) }
    }

    /// Name of the holiday; may be empty.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds another entry of the same kind for the same day: names that differ are joined.
    pub(crate) fn join(&mut self, other: &DayEntry) {
        if self.name.is_empty() {
            self.name.clone_from(&other.name);
        } else if !other.name.is_empty() && !self.name.split(" / ").any(|name| name == other.name) {
            self.name = clean(&format!("{} / {}", self.name, other.name));
        }
    }
}

/// Removes control characters and repeated blanks; shortens to 100 characters.
fn clean(name: &str) -> String {
    let words = name.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut clean = String::new();
    let mut length = 0;
    for word in words {
        for c in (!clean.is_empty()).then_some(' ').into_iter().chain(word.chars()) {
            if length < NAME_MAX {
                clean.push(c);
                length += 1;
            }
        }
    }
    clean.truncate(clean.trim_end().len());
    clean
}

/// The names of all holidays in one week fit into it.
const NAME_MAX: usize = 100;

impl WorkCalendar {
    /// A calendar without entries.
    pub fn new(week: Weekdays) -> WorkCalendar {
        WorkCalendar { week, known_until: None, beyond: Beyond::Weekdays, days: BTreeMap::new() }
    }

    /// Sets the entry of a day; returns the one it replaces.
    pub fn set(&mut self, day: Day, entry: DayEntry) -> Option<DayEntry> {
        self.days.insert(day.epoch_day(), entry)
    }

    /// Removes the entry of a day.
    pub fn remove(&mut self, day: Day) -> Option<DayEntry> {
        self.days.remove(&day.epoch_day())
    }

    /// The entry of a day, if it has one.
    pub fn entry(&self, day: Day) -> Option<&DayEntry> {
        self.days.get(&day.epoch_day())
    }

    /// All entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = (Day, &DayEntry)> {
        self.days.iter().map(|(day, entry)| (Day::from_epoch_day(*day), entry))
    }

    /// Whether the day is a workday: by its entry, else by the week mask.
    pub fn is_work(&self, day: Day) -> bool {
        self.is_work_on(day.epoch_day())
    }

    /// Whether the day is after the published data, so that the week mask is only an assumption. A day with an entry
    /// never is.
    pub fn is_assumed(&self, day: Day) -> bool {
        self.known_until.is_some_and(|until| day > until) && self.entry(day).is_none()
    }

    /// Whether nothing fires on that day because the data ends before it.
    pub fn is_stopped(&self, day: Day) -> bool {
        self.last_day().is_some_and(|last| day.epoch_day() > last)
    }

    pub(crate) fn is_work_on(&self, epoch_day: i64) -> bool {
        self.days
            .get(&epoch_day)
            .map_or_else(|| self.week.contains(weekday(epoch_day)), |entry| entry.is_work)
    }

    /// The last day on which a schedule may fire, if there is one.
    pub(crate) fn last_day(&self) -> Option<i64> {
        self.known_until.filter(|_| self.beyond == Beyond::Stop).map(Day::epoch_day)
    }
}

impl Default for WorkCalendar {
    /// Monday to Friday, without entries.
    fn default() -> Self {
        WorkCalendar::new(Weekdays::MONDAY_TO_FRIDAY)
    }
}

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Beyond::Weekdays => "weekdays",
            Beyond::Stop => "stop",
        })
    }
}

impl FromStr for Beyond {
    type Err = Error;

    fn from_str(text: &str) -> Result<Beyond, Error> {
        match text {
            "weekdays" => Ok(Beyond::Weekdays),
            "stop" => Ok(Beyond::Stop),
            _ => Err(Error::Word { text: shortened(text), words: "weekdays, stop" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_short_line() {
        let check = |name: &str, clean: &str| assert_eq!(DayEntry::off(name).name(), clean);
        check("  国庆节 \r\n", "国庆节");
        check("a\tb\u{0}c  d", "a b c d");
        check("", "");
        check(&"节".repeat(500), &"节".repeat(100));
        check(&format!("{} b", "a".repeat(99)), &"a".repeat(99));
    }

    #[test]
    fn names_of_one_day_are_joined_once() {
        let mut entry = DayEntry::off("国庆节");
        entry.join(&DayEntry::off("中秋节"));
        entry.join(&DayEntry::off("国庆节"));
        entry.join(&DayEntry::off(""));
        assert_eq!(entry.name(), "国庆节 / 中秋节");
    }
}
