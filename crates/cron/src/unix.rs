//! Parser of the Unix dialect: `minute hour day-of-month month day-of-week`, or a nickname.
//!
//! Follows Vixie cron: 0 and 7 are Sunday, and when both day fields are restricted, a day that matches either is
//! enough. A field that begins with `*` counts as unrestricted, `*/2` too.

use crate::error::Error;
use crate::field::{Dialect, Expression, Field, Part};
use crate::scan::{Scanner, pieces, prepare};

/// Parses five fields or a nickname.
pub(crate) fn read(expr: &str) -> Result<Expression, Error> {
    let upper = prepare(expr, Dialect::Unix)?;
    if upper.trim_start().starts_with('@') {
        return nickname(expr.trim());
    }
    let words: Vec<(usize, &str)> =
        pieces(&upper, |c| c.is_ascii_whitespace()).filter(|(_, word)| !word.is_empty()).collect();
    if words.len() != 5 {
        return Err(Error::FieldCount {
            dialect: Dialect::Unix,
            expr: expr.trim().to_owned(),
            found: words.len(),
        });
    }
    let mut fields: [Vec<Part>; 7] = Default::default();
    fields[Field::Second as usize] = vec![Part::One(0)];
    fields[Field::Year as usize] = vec![Part::Every { step: 1 }];
    for (field, (at, word)) in Field::ALL.into_iter().skip(1).zip(&words) {
        fields[field as usize] = list(&upper, field, *at, word)?;
    }
    let restricted = |word: &str| !word.starts_with('*');
    let text = words.iter().map(|(_, word)| *word).collect::<Vec<_>>().join(" ");
    Ok(Expression { text, fields, either_day: restricted(words[2].1) && restricted(words[4].1) })
}

/// Parses `@daily` and similar; the text stays the nickname.
fn nickname(name: &str) -> Result<Expression, Error> {
    let lower = name.to_ascii_lowercase();
    let expr = match lower.as_str() {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => return Err(Error::Nickname { name: name.to_owned() }),
    };
    Ok(Expression { text: lower, ..read(expr)? })
}

fn list(expr: &str, field: Field, at: usize, word: &str) -> Result<Vec<Part>, Error> {
    let item = |(offset, item): (usize, &str)| {
        let mut scan = Scanner::new(expr, Dialect::Unix, field, at + offset, item.len());
        let part = part(&mut scan)?;
        match scan.rest() {
            "" => Ok(part),
            _ => Err(scan.rest_wrong("cannot be read")),
        }
    };
    pieces(word, |c| c == ',').map(item).collect()
}

/// `*`, `*/n`, `a`, `a/n`, `a-b`, `a-b/n`.
fn part(scan: &mut Scanner<'_>) -> Result<Part, Error> {
    if scan.eat(b'*') {
        return Ok(Part::Every { step: step(scan)?.unwrap_or(1) });
    }
    let start = value(scan)?;
    if !scan.eat(b'-') {
        let value = weekday(scan, start);
        return Ok(match step(scan)? {
            // Sunday as 7 is the end of the week: nothing follows.
            Some(step) if value >= start => Part::From { start: value, step },
            _ => Part::One(value),
        });
    }
    let end = match value(scan)? {
        // `FRI-SUN`: at the end of a range, Sunday is 7.
        0 if scan.field == Field::DayOfWeek && start > 0 => 7,
        end => end,
    };
    if end < start {
        return Err(scan.wrong("runs backwards; split it in two, such as `22-23,0-2`"));
    }
    let step = step(scan)?.unwrap_or(1);
    if scan.field == Field::DayOfWeek && end - start == 7 && step == 1 {
        return Ok(Part::Every { step });
    }
    // Counted from Sunday = 1, a week that ends on a Sunday wraps around.
    let last = start + (end - start) / step * step;
    Ok(Part::Range { start: weekday(scan, start), end: weekday(scan, last), step })
}

/// Parses a number or a name, as written: Sunday is 0 or 7.
fn value(scan: &mut Scanner<'_>) -> Result<u16, Error> {
    let bounds = if scan.field == Field::DayOfWeek { (0, 7) } else { scan.field.bounds() };
    if scan.peek().is_some_and(|byte| byte.is_ascii_digit()) {
        return scan.value(bounds);
    }
    let (value, word) = scan.name()?;
    let full = scan.field.names()[usize::from(value) - 1];
    if !full.starts_with(word) {
        return Err(scan.wrong("is not known here"));
    }
    Ok(if scan.field == Field::DayOfWeek { value - 1 } else { value })
}

/// Converts Unix's weekday numbers to those of [`Field::bounds`].
fn weekday(scan: &Scanner<'_>, value: u16) -> u16 {
    if scan.field == Field::DayOfWeek { value % 7 + 1 } else { value }
}

fn step(scan: &mut Scanner<'_>) -> Result<Option<u16>, Error> {
    if !scan.eat(b'/') {
        return Ok(None);
    }
    let (_, max) = scan.field.bounds();
    match scan.number("a step")? {
        0 => Err(scan.wrong("has step 0; the least is 1")),
        step if step > max => {
            Err(scan.wrong(&format!("steps further than the field is long; the most is {max}")))
        }
        step => Ok(Some(step)),
    }
}
