//! The JSON form of Chinese holiday feeds: `{"days": [{"name", "date", "isOffDay"}]}`.
//!
//! With a reader of its own, because this crate is also built into macros and small programs.

use std::fmt::Write as _;

use super::{ImportedDays, date, wrong};
use crate::error::Error;
use crate::work_calendar::{DayEntry, WorkCalendar};

pub(super) fn parse(text: &str) -> Result<ImportedDays, Error> {
    let value = Reader { text, at: 0, values: 0 }.file()?;
    let days = match value {
        Json::List(days) => days,
        Json::Object(fields) => match fields.into_iter().find(|(name, _)| name == "days") {
            Some((_, Json::List(days))) => days,
            _ => {
                let problem = format!("the field `days` is missing or not a list; write {EXAMPLE}");
                return Err(wrong(None, problem));
            }
        },
        _ => return Err(wrong(None, format!("the file is not a list of days; write {EXAMPLE}"))),
    };
    let mut imported = ImportedDays::default();
    for (number, day) in (1..).zip(&days) {
        let of_entry = |error: Error| wrong(None, format!("entry {number} of `days`: {error}"));
        add(&mut imported, day).map_err(of_entry)?;
    }
    Ok(imported)
}

fn add(imported: &mut ImportedDays, entry: &Json) -> Result<(), Error> {
    let missing = |field: &str| {
        wrong(None, format!("the field `{field}` is missing or of another type; write {EXAMPLE}"))
    };
    let Some(Json::Text(day)) = entry.field("date") else { return Err(missing("date")) };
    let Some(Json::Bool(is_off)) = entry.field("isOffDay") else { return Err(missing("isOffDay")) };
    let name = match entry.field("name") {
        None | Some(Json::Null) => "",
        Some(Json::Text(name)) => name,
        Some(_) => return Err(missing("name")),
    };
    let day = date(None, day)?;
    imported.add(None, day, if *is_off { DayEntry::off(name) } else { DayEntry::work(name) })?;
    imported.list(day);
    Ok(())
}

const EXAMPLE: &str = "`{\"days\": [{\"name\": \"国庆节\", \"date\": \"2026-10-01\", \"isOffDay\": true}]}`";

pub(super) fn print(calendar: &WorkCalendar) -> String {
    let days: Vec<String> = calendar
        .entries()
        .map(|(day, entry)| {
            let (name, is_off) = (quoted(entry.name()), !entry.is_work);
            format!("\n    {{\"name\": {name}, \"date\": \"{day}\", \"isOffDay\": {is_off}}}")
        })
        .collect();
    format!("{{\n  \"days\": [{}\n  ]\n}}\n", days.join(","))
}

fn quoted(name: &str) -> String {
    let mut text = "\"".to_owned();
    for letter in name.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            // Writing to a string cannot fail.
            '\u{0}'..'\u{20}' => drop(write!(text, "\\u{:04x}", u32::from(letter))),
            _ => text.push(letter),
        }
    }
    text + "\""
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

enum Json {
    Null,
    Bool(bool),
    /// Its value is not needed.
    Number,
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The last field of that name, as in most readers.
    fn field(&self, name: &str) -> Option<&Json> {
        let Json::Object(fields) = self else { return None };
        fields.iter().rev().find(|(field, _)| field == name).map(|(_, value)| value)
    }
}

struct Reader<'a> {
    text: &'a str,
    /// Position in bytes, always between two characters.
    at: usize,
    /// Values read so far.
    values: usize,
}

/// A feed has three levels.
const DEPTH_MAX: usize = 16;

/// A file of [`DAYS_MAX`](super::DAYS_MAX) days has a tenth of them.
const VALUES_MAX: usize = 1_000_000;

impl Reader<'_> {
    fn file(mut self) -> Result<Json, Error> {
        let value = self.value(0)?;
        self.skip_blanks();
        if self.at == self.text.len() { Ok(value) } else { Err(self.wrong("text after the end")) }
    }

    fn value(&mut self, depth: usize) -> Result<Json, Error> {
        self.values += 1;
        if depth > DEPTH_MAX || self.values > VALUES_MAX {
            return Err(self.wrong("too many values, or lists within lists"));
        }
        self.skip_blanks();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => Ok(self.number()),
            _ => {
                let words = [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))];
                for (word, value) in words {
                    if self.text[self.at..].starts_with(word) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                Err(self.wrong("a value is expected"))
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, Error> {
        let mut fields = Vec::new();
        self.at += 1;
        while !self.eat(b'}') {
            if !fields.is_empty() {
                self.expect(b',', "`,` or `}` is expected")?;
            }
            self.skip_blanks();
            if self.peek() != Some(b'"') {
                return Err(self.wrong("the name of a field is expected"));
            }
            let name = self.string()?;
            self.expect(b':', "`:` is expected")?;
            fields.push((name, self.value(depth + 1)?));
        }
        Ok(Json::Object(fields))
    }

    fn list(&mut self, depth: usize) -> Result<Json, Error> {
        let mut values = Vec::new();
        self.at += 1;
        while !self.eat(b']') {
            if !values.is_empty() {
                self.expect(b',', "`,` or `]` is expected")?;
            }
            values.push(self.value(depth + 1)?);
        }
        Ok(Json::List(values))
    }

    fn number(&mut self) -> Json {
        let is_number = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
        self.at += self.text.as_bytes()[self.at..].iter().take_while(|byte| is_number(byte)).count();
        Json::Number
    }

    fn string(&mut self) -> Result<String, Error> {
        let mut string = String::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let end = rest.find(['"', '\\']).ok_or_else(|| self.wrong("a text has no end"))?;
            string.push_str(&rest[..end]);
            self.at += end + 1;
            if rest.as_bytes()[end] == b'"' {
                return Ok(string);
            }
            string.push(self.escape()?);
        }
    }

    /// The letter after a backslash.
    fn escape(&mut self) -> Result<char, Error> {
        let letter = self.text[self.at..].chars().next().ok_or_else(|| self.wrong("a text has no end"))?;
        self.at += letter.len_utf8();
        match letter {
            '"' | '\\' | '/' => Ok(letter),
            'b' | 'f' | 'n' | 'r' | 't' => Ok(' '),
            'u' => {
                let first = self.unit()?;
                let is_pair = (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u");
                let units = if is_pair {
                    self.at += 2;
                    vec![first, self.unit()?]
                } else {
                    vec![first]
                };
                let decoded = char::decode_utf16(units).next().and_then(Result::ok);
                decoded.ok_or_else(|| self.wrong("an escape is not a character"))
            }
            _ => Err(self.wrong("an unknown escape")),
        }
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Result<u16, Error> {
        let digits = self.text.get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        self.at += if unit.is_some() { 4 } else { 0 };
        unit.ok_or_else(|| self.wrong("an escape needs four hexadecimal digits"))
    }

    fn skip_blanks(&mut self) {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        self.at += self.text.as_bytes()[self.at..].iter().take_while(|byte| is_blank(byte)).count();
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips blanks, and the byte if it is next.
    fn eat(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8, problem: &str) -> Result<(), Error> {
        if self.eat(byte) { Ok(()) } else { Err(self.wrong(problem)) }
    }

    fn wrong(&self, problem: &str) -> Error {
        let line = self.text.as_bytes()[..self.at].iter().filter(|byte| **byte == b'\n').count() + 1;
        wrong(Some(line), format!("the file is not JSON of a holiday feed: {problem}; write {EXAMPLE}"))
    }
}
