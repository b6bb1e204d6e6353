//! Rules for wall-clock times that daylight saving skips or repeats.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Rule for a time that the clocks skip, such as 02:30 on the night they go forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gap {
    /// It does not fire that day.
    Skip,
    /// It fires once when the gap ends, however many of its times are in the gap.
    Next,
}

/// Rule for a time that the clocks show twice, such as 01:30 on the night they go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fold {
    /// It fires the first time.
    First,
    /// It fires the second time.
    Second,
    /// It fires both times.
    Both,
}

/// The daylight saving rule of a schedule. It is printed and parsed as a short word.
///
/// ```
/// use tickwright_cron::{DstRule, Fold, Gap};
///
/// assert_eq!(DstRule::QUARTZ.to_string(), "quartz");
/// assert_eq!("natural".parse(), Ok(DstRule::NATURAL));
/// assert_eq!("next-both".parse(), Ok(DstRule::new(Gap::Next, Fold::Both)));
/// assert!("sometimes".parse::<DstRule>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DstRule {
    gap: Gap,
    fold: Fold,
    every_hour_by_elapsed_time: bool,
}

impl DstRule {
    /// The behaviour of Quartz and XXL-JOB: skipped times do not fire, repeated ones fire the second time, so that
    /// even `* * * * * ?` does not fire for an hour. The default, for jobs without a zone of their own.
    pub const QUARTZ: DstRule = DstRule::new(Gap::Skip, Fold::Second);

    /// The behaviour that users expect, for jobs with a zone of their own (promise I6). A job for certain hours
    /// fires exactly once: at the end of the gap, or the first of two times. A job for every hour, with all 24 in
    /// its hour field, follows elapsed time: it fires whenever the wall-clock time matches.
    pub const NATURAL: DstRule =
        DstRule { gap: Gap::Next, fold: Fold::First, every_hour_by_elapsed_time: true };

    /// The same rule for all expressions, with or without certain hours.
    pub const fn new(gap: Gap, fold: Fold) -> DstRule {
        DstRule { gap, fold, every_hour_by_elapsed_time: false }
    }

    /// The rule for an expression of every hour, or of certain hours.
    pub(crate) fn resolve(self, every_hour: bool) -> (Gap, Fold) {
        if every_hour && self.every_hour_by_elapsed_time {
            (Gap::Skip, Fold::Both)
        } else {
            (self.gap, self.fold)
        }
    }
}

impl Default for DstRule {
    fn default() -> Self {
        DstRule::QUARTZ
    }
}

impl fmt::Display for DstRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = WORDS.iter().find(|(_, rule)| rule == self).map(|(word, _)| *word);
        f.write_str(word.expect("every rule that can be made has a word"))
    }
}

impl FromStr for DstRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<DstRule, Error> {
        let word = text.trim().to_ascii_lowercase();
        let found = WORDS.iter().find(|(known, _)| *known == word).map(|(_, rule)| *rule);
        found.ok_or_else(|| Error::DstRule { text: text.to_owned() })
    }
}

/// Stored in databases: words may be added, not changed. The first word of a rule is the one printed.
const WORDS: [(&str, DstRule); 8] = [
    ("quartz", DstRule::QUARTZ),
    ("natural", DstRule::NATURAL),
    ("skip-first", DstRule::new(Gap::Skip, Fold::First)),
    ("skip-second", DstRule::new(Gap::Skip, Fold::Second)),
    ("skip-both", DstRule::new(Gap::Skip, Fold::Both)),
    ("next-first", DstRule::new(Gap::Next, Fold::First)),
    ("next-second", DstRule::new(Gap::Next, Fold::Second)),
    ("next-both", DstRule::new(Gap::Next, Fold::Both)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_and_every_rule_comes_back_from_its_print() {
        for (word, rule) in WORDS {
            assert_eq!(word.parse(), Ok(rule));
            assert_eq!(rule.to_string().parse(), Ok(rule));
        }
        assert_eq!("skip-second".parse::<DstRule>().unwrap().to_string(), "quartz");
    }
}
