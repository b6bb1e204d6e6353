//! Parser of the Quartz dialect: `second minute hour day-of-month month day-of-week [year]`.
//!
//! Quartz ignores text that it does not understand: `10X` is 10, `MON-FRI/2` is `MON-FRI`. Such an expression is
//! misleading, so the strict parser rejects it. The lenient one, for importing stored expressions, keeps Quartz's
//! meaning and returns a warning for each ignored part. Both parse an expression that the strict parser accepts in
//! the same way.

use crate::error::Error;
use crate::field::{Dialect, Expression, Field, Part, YEAR_MAX};
use crate::scan::{Scanner, pieces, prepare};

/// Parses an expression; if lenient, also accepts text that Quartz ignores, with a warning for each.
pub(crate) fn read(expr: &str, lenient: bool) -> Result<(Expression, Vec<Error>), Error> {
    let upper = prepare(expr, Dialect::Quartz)?;
    let mut reader = Reader { expr: &upper, lenient, warnings: Vec::new() };
    let words: Vec<(usize, &str)> =
        pieces(&upper, |c| c.is_ascii_whitespace()).filter(|(_, word)| !word.is_empty()).collect();
    if !(6..=7).contains(&words.len()) {
        let error =
            Error::FieldCount { dialect: Dialect::Quartz, expr: expr.trim().to_owned(), found: words.len() };
        // XXL-JOB up to 3.0.0 ignores fields after the year.
        if words.len() < 6 {
            return Err(error);
        }
        reader.tolerate(error)?;
    }

    let mut fields: [Vec<Part>; 7] = Default::default();
    let mut texts: Vec<String> = Vec::with_capacity(7);
    for (field, (at, word)) in Field::ALL.into_iter().zip(words) {
        let (parts, text) = reader.field(field, at, word)?;
        fields[field as usize] = parts;
        texts.push(text);
    }
    if texts.len() == 6 {
        fields[Field::Year as usize] = vec![Part::Every { step: 1 }];
    }
    one_day_field(&texts)?;
    let expression = Expression { text: texts.join(" "), fields, either_day: false };
    Ok((expression, reader.warnings))
}

/// A part and its text, without ignored characters.
type Read = (Part, String);

struct Reader<'a> {
    expr: &'a str,
    lenient: bool,
    warnings: Vec<Error>,
}

impl<'a> Reader<'a> {
    /// Parses a comma-separated list, or `?` (no parts).
    fn field(&mut self, field: Field, at: usize, word: &'a str) -> Result<(Vec<Part>, String), Error> {
        if word == "?" && matches!(field, Field::DayOfMonth | Field::DayOfWeek) {
            return Ok((Vec::new(), word.to_owned()));
        }
        let whole = Scanner::new(self.expr, Dialect::Quartz, field, at, word.len());
        let mut list: Vec<Read> = Vec::new();
        for (offset, item) in pieces(word, |c| c == ',') {
            if item.is_empty() {
                self.tolerate(whole.wrong("has an empty entry"))?;
                continue;
            }
            let scanner = Scanner::new(self.expr, Dialect::Quartz, field, at + offset, item.len());
            list.push(self.item(scanner)?);
        }
        if list.is_empty() {
            return Err(whole.wrong("has no entry"));
        }
        if field == Field::DayOfWeek {
            self.special_weekday_stands_alone(&whole, &mut list)?;
        }
        let (parts, texts): (Vec<Part>, Vec<String>) = list.into_iter().unzip();
        Ok((parts, texts.join(",")))
    }

    /// Parses one entry of the list.
    fn item(&mut self, mut scan: Scanner<'a>) -> Result<Read, Error> {
        let part = match scan.peek() {
            Some(b'?') => return Err(scan.wrong("must stand alone, in one of the two day fields")),
            Some(b'*' | b'/') => return self.every(scan),
            Some(b'L') if scan.field == Field::DayOfMonth => last_day(&mut scan)?,
            Some(b'L') if scan.field == Field::DayOfWeek && scan.eat(b'L') => Part::One(7),
            Some(b'0'..=b'9') => return self.numeric(scan),
            _ => return self.named(scan),
        };
        if !scan.rest().is_empty() {
            return Err(scan.wrong("cannot be read"));
        }
        Ok((part, scan.done().to_owned()))
    }

    /// `*`, `*/n`, `/n`.
    fn every(&mut self, mut scan: Scanner<'a>) -> Result<Read, Error> {
        scan.eat(b'*');
        let mut every = Part::Every { step: 1 };
        if scan.eat(b'/') {
            // Step 0 is the same as step 1.
            every = Part::Every { step: step(&mut scan)?.max(1) };
            if !scan.rest().is_empty() {
                return Err(scan.wrong("has a step that is not a number"));
            }
        }
        self.ignore_rest(&mut scan)?;
        Ok((every, scan.done().to_owned()))
    }

    /// `5`, `5/10`, `5-10`, `5-10/2`, and with weekdays `6L`, `6#3`, with days `15W`.
    fn numeric(&mut self, mut scan: Scanner<'a>) -> Result<Read, Error> {
        let field = scan.field;
        let value = scan.value(field.bounds())?;
        let part = match scan.peek() {
            Some(b'L') if field == Field::DayOfWeek && scan.eat(b'L') => Part::LastOf(value),
            Some(b'W') if field == Field::DayOfMonth && scan.eat(b'W') => Part::Nearest(value),
            Some(b'L' | b'W') => return Err(scan.wrong("does not exist in this field")),
            Some(b'#') if field == Field::DayOfWeek => nth(&mut scan, value)?,
            Some(b'#') => return Err(scan.wrong("does not exist in this field")),
            Some(b'/') if scan.eat(b'/') => match (step(&mut scan)?, scan.rest()) {
                (0, "") => Part::One(value),
                (step, "") => Part::From { start: value, step },
                _ => return Err(scan.wrong("has a step that is not a number")),
            },
            Some(b'-') if scan.eat(b'-') => return self.range(scan, value),
            _ => Part::One(value),
        };
        self.ignore_rest(&mut scan)?;
        Ok((part, scan.done().to_owned()))
    }

    /// Parses the part after `5-`.
    fn range(&mut self, mut scan: Scanner<'a>, start: u16) -> Result<Read, Error> {
        let field = scan.field;
        let (min, max) = field.bounds();
        let open_end = if field == Field::Year { u16::MAX } else { max };
        let mut end = scan.value((min, open_end))?;
        if field == Field::Year && end < start {
            return Err(scan.wrong("runs backwards, and years do not wrap around"));
        }
        let mut text = scan.done().to_owned();
        if end > max {
            self.tolerate(scan.wrong("ends after the last year there is"))?;
            end = YEAR_MAX;
            text = format!("{start}-{end}");
        }
        let mut step = 1;
        if scan.eat(b'/') {
            // Quartz checks no upper bound here: a step past the end leaves only the start.
            step = scan.number("a step")?;
            if step == 0 {
                self.tolerate(scan.wrong("has step 0, which Quartz reads as its first value alone"))?;
                return Ok((Part::One(start), start.to_string()));
            }
            text = format!("{text}/{step}");
        }
        self.ignore_rest(&mut scan)?;
        Ok((Part::Range { start, end, step }, text))
    }

    /// `MON`, `MONDAY`, `MON-FRI`, `FRIL`, `FRI#3`.
    fn named(&mut self, mut scan: Scanner<'a>) -> Result<Read, Error> {
        let (value, word) = scan.name()?;
        let full = scan.field.names()[usize::from(value) - 1];
        let weekday = scan.field == Field::DayOfWeek;
        let part = match (word.len(), scan.peek()) {
            (3, Some(b'-')) if scan.eat(b'-') => {
                let (end, word) = scan.name()?;
                let full = scan.field.names()[usize::from(end) - 1];
                if !full.starts_with(word) {
                    scan.back(word.len() - 3);
                }
                Part::Range { start: value, end, step: 1 }
            }
            (3, Some(b'#')) if weekday => nth(&mut scan, value)?,
            // `FRIL`: the word includes the `L`.
            (4.., _) if weekday && word[3..].starts_with('L') => {
                scan.back(word.len() - 4);
                Part::LastOf(value)
            }
            _ => {
                if !full.starts_with(word) {
                    scan.back(word.len() - 3);
                }
                Part::One(value)
            }
        };
        self.ignore_rest(&mut scan)?;
        Ok((part, scan.done().to_owned()))
    }

    /// Two rules of Quartz: `L` must be alone, and `#` applies to the smallest weekday in the list.
    fn special_weekday_stands_alone(
        &mut self,
        whole: &Scanner<'a>,
        list: &mut Vec<Read>,
    ) -> Result<(), Error> {
        if list.len() < 2 {
            return Ok(());
        }
        if whole.text().contains('L') {
            return Err(whole.wrong("has `L` in a list, which Quartz cannot read"));
        }
        let mut numbers = list.iter().filter_map(|(part, _)| match part {
            Part::Nth { nth, .. } => Some(*nth),
            _ => None,
        });
        let Some(nth) = numbers.next() else { return Ok(()) };
        if numbers.next().is_some() {
            return Err(whole.wrong("has two `#`, and Quartz can read only one"));
        }
        self.tolerate(whole.wrong("has `#` in a list, of which Quartz reads only the first weekday"))?;
        let weekday = list
            .iter()
            .flat_map(|(part, _)| match *part {
                Part::Nth { weekday, .. } => vec![weekday],
                part => part.values(Field::DayOfWeek).collect(),
            })
            .min()
            .expect("a list of two has a first");
        *list = vec![(Part::Nth { weekday, nth }, format!("{weekday}#{nth}"))];
        Ok(())
    }

    /// Accepts the end of an entry, or following text that Quartz would ignore.
    fn ignore_rest(&mut self, scan: &mut Scanner<'a>) -> Result<(), Error> {
        match scan.rest() {
            "" => Ok(()),
            _ => self.tolerate(scan.rest_wrong(&format!("after `{}` is not read by Quartz", scan.done()))),
        }
    }

    fn tolerate(&mut self, error: Error) -> Result<(), Error> {
        if !self.lenient {
            return Err(error);
        }
        self.warnings.push(error);
        Ok(())
    }
}

/// `L`, `L-3`, `LW`, `L-3W`.
fn last_day(scan: &mut Scanner<'_>) -> Result<Part, Error> {
    scan.eat(b'L');
    let mut before = 0;
    if scan.eat(b'-') {
        before = scan.number("a number of days")?;
        if before > 30 {
            return Err(scan.wrong("goes back further than any month; `L-30` is the most"));
        }
    }
    Ok(Part::Last { before, workday: scan.eat(b'W') })
}

/// Parses the part after the weekday in `6#3`.
fn nth(scan: &mut Scanner<'_>, weekday: u16) -> Result<Part, Error> {
    scan.eat(b'#');
    match (scan.number("a number from 1 to 5")?, scan.rest()) {
        (nth @ 1..=5, "") => Ok(Part::Nth { weekday, nth }),
        _ => Err(scan.wrong("needs a number from 1 to 5 after `#`")),
    }
}

/// Parses the part after `/`; it must fit into the field.
fn step(scan: &mut Scanner<'_>) -> Result<u16, Error> {
    let step = scan.number("a step")?;
    let (min, max) = scan.field.bounds();
    let largest = if scan.field == Field::Year { max - min } else { max };
    if step > largest {
        return Err(scan.wrong(&format!("steps further than the field is long; the most is {largest}")));
    }
    Ok(step)
}

/// Requires exactly one `?` in the day fields.
fn one_day_field(texts: &[String]) -> Result<(), Error> {
    let (day, weekday) = (Field::DayOfMonth as usize, Field::DayOfWeek as usize);
    let (field, instead) = match (texts[day].as_str(), texts[weekday].as_str()) {
        ("?", "?") => (day, "*"),
        ("?", _) | (_, "?") => return Ok(()),
        ("*", "*") => (weekday, "?"),
        ("*", _) => (day, "?"),
        _ => (weekday, "?"),
    };
    let mut suggestion = texts.to_vec();
    suggestion[field] = instead.to_owned();
    Err(Error::DayFields { expr: texts.join(" "), suggestion: suggestion.join(" ") })
}
