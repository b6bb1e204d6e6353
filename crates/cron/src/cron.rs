//! A cron expression, and when it fires in a zone.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use crate::dst::DstRule;
use crate::error::Error;
use crate::field::{Dialect, Expression};
use crate::local::LocalTimes as _;
use crate::pattern::Pattern;
use crate::timestamp::Timestamp;
use crate::zone::Zone;
use crate::{local, quartz, unix};

/// A cron expression that can fire. Two expressions are equal if they have the same meaning, however they are
/// written.
///
/// ```
/// use tickwright_cron::{Cron, DstRule, Timestamp, Zone};
///
/// let cron = Cron::parse("0 0/15 9-17 ? * mon-fri").unwrap();
/// let zone = Zone::parse("Asia/Shanghai").unwrap();
/// let sunday = Timestamp::from_millis(1_782_007_200_500);
/// let next = cron.next_after(sunday, &zone, DstRule::QUARTZ).unwrap();
/// assert_eq!(next.to_string(), "2026-06-22T01:00:00Z");
///
/// assert_eq!(cron.to_string(), "0 0/15 9-17 ? * MON-FRI");
/// assert_eq!(cron, Cron::parse("0 0/15 9-17 ? * 2-6 *").unwrap());
///
/// let error = Cron::parse("0 0 0 * * *").unwrap_err();
/// assert!(error.to_string().ends_with("write for example `0 0 0 * * ?`"));
/// ```
#[derive(Debug, Clone)]
pub struct Cron {
    dialect: Dialect,
    text: String,
    pattern: Pattern,
}

impl Cron {
    /// Parses a Quartz expression; rejects text that Quartz would silently ignore.
    pub fn parse(expr: &str) -> Result<Cron, Error> {
        Cron::parse_in(Dialect::Quartz, expr)
    }

    /// Parses an expression of either dialect.
    pub fn parse_in(dialect: Dialect, expr: &str) -> Result<Cron, Error> {
        Cron::new(dialect, read(dialect, expr)?)
    }

    /// Parses a Quartz expression as Quartz would, to import stored expressions. The second value lists the ignored
    /// parts, each as the error that [`Cron::parse`] would return; the text of the result is without them, so that
    /// it shows how it fires.
    ///
    /// ```
    /// use tickwright_cron::Cron;
    ///
    /// let (cron, warnings) = Cron::parse_lenient("10X 0 0 ? * MON-FRI/2").unwrap();
    /// assert_eq!(cron.to_string(), "10 0 0 ? * MON-FRI");
    /// assert_eq!(warnings.len(), 2);
    /// ```
    pub fn parse_lenient(expr: &str) -> Result<(Cron, Vec<Error>), Error> {
        let (expression, warnings) = quartz::read(expr, true)?;
        Ok((Cron::new(Dialect::Quartz, expression)?, warnings))
    }

    fn new(dialect: Dialect, expression: Expression) -> Result<Cron, Error> {
        let pattern = Pattern::new(&expression);
        match pattern.at_or_after(0) {
            Some(_) => Ok(Cron { dialect, text: expression.text, pattern }),
            None => Err(Error::Impossible { expr: expression.text }),
        }
    }

    /// The dialect it is written in.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Parses its text again: the parts are needed for descriptions only, and take more memory than the bit sets.
    pub(crate) fn expression(&self) -> Expression {
        read(self.dialect, &self.text).expect("the text of an expression can be read again")
    }

    /// The first fire strictly after `t`; `None` if there is none until the end of 2199.
    ///
    /// Bounded: it visits each change of the zone's clocks until then at most once (two a year), and between them
    /// makes one search, itself bounded by the number of months.
    pub fn next_after(&self, t: Timestamp, zone: &Zone, dst: DstRule) -> Option<Timestamp> {
        local::next_after(&self.pattern, t, zone, dst)
    }

    /// The last fire strictly before `t`; `None` if there is none since the start of 1970. Bounded like
    /// [`Cron::next_after`].
    pub fn previous_before(&self, t: Timestamp, zone: &Zone, dst: DstRule) -> Option<Timestamp> {
        local::previous_before(&self.pattern, t, zone, dst)
    }

    /// Every fire strictly after `t`, in order.
    ///
    /// ```
    /// use tickwright_cron::{Cron, DstRule, Timestamp, Zone};
    ///
    /// let leap_days = Cron::parse("0 0 0 29 2 ?").unwrap();
    /// let zone = Zone::utc();
    /// let mut fires = leap_days.iter_from(Timestamp::from_millis(1_782_000_000_000), &zone, DstRule::QUARTZ);
    /// assert_eq!(fires.next().unwrap().to_string(), "2028-02-29T00:00:00Z");
    /// assert_eq!(fires.next().unwrap().to_string(), "2032-02-29T00:00:00Z");
    /// ```
    pub fn iter_from(&self, t: Timestamp, zone: &Zone, dst: DstRule) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.next_after(t, zone, dst), move |fire| self.next_after(*fire, zone, dst))
    }

    pub(crate) fn pattern(&self) -> &Pattern {
        &self.pattern
    }
}

fn read(dialect: Dialect, expr: &str) -> Result<Expression, Error> {
    match dialect {
        Dialect::Quartz => quartz::read(expr, false).map(|(expression, _)| expression),
        Dialect::Unix => unix::read(expr),
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Cron) -> bool {
        self.pattern == other.pattern
    }
}

impl Eq for Cron {}

impl Hash for Cron {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pattern.hash(state);
    }
}

impl fmt::Display for Cron {
    /// The original text, in upper case and with single blanks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Cron {
    type Err = Error;

    /// Same as [`Cron::parse`].
    fn from_str(expr: &str) -> Result<Cron, Error> {
        Cron::parse(expr)
    }
}
