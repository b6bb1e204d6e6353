//! Scanner for one entry of a field, byte by byte, with positions for error messages.

use crate::error::Error;
use crate::field::{Dialect, Field};

/// Maximum length of an expression. Every value of every field, spelled out, fits into it.
pub(crate) const LENGTH_MAX: usize = 2_048;

/// Rejects an expression that is empty or too long; returns it in upper case, with each byte at the same position.
pub(crate) fn prepare(expr: &str, dialect: Dialect) -> Result<String, Error> {
    if expr.len() > LENGTH_MAX {
        return Err(Error::TooLong { length: expr.len() });
    }
    if expr.trim().is_empty() {
        return Err(Error::Empty { dialect });
    }
    Ok(expr.to_ascii_uppercase())
}

/// The pieces of `text` between separators, each with its position in `text`.
pub(crate) fn pieces(text: &str, separator: fn(char) -> bool) -> impl Iterator<Item = (usize, &str)> {
    text.split(separator).map(move |piece| (piece.as_ptr() as usize - text.as_ptr() as usize, piece))
}

/// A cursor over one entry, such as the `9-17/2` of `0 0 8,9-17/2 * * ?`.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    expr: &'a str,
    dialect: Dialect,
    pub(crate) field: Field,
    start: usize,
    at: usize,
    end: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(expr: &'a str, dialect: Dialect, field: Field, start: usize, length: usize) -> Self {
        Scanner { expr, dialect, field, start, at: start, end: start + length }
    }

    /// The whole entry.
    pub(crate) fn text(&self) -> &'a str {
        &self.expr[self.start..self.end]
    }

    /// The text already read.
    pub(crate) fn done(&self) -> &'a str {
        &self.expr[self.start..self.at]
    }

    /// The text not yet read.
    pub(crate) fn rest(&self) -> &'a str {
        &self.expr[self.at..self.end]
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest().bytes().next()
    }

    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let here = self.peek() == Some(byte);
        if here {
            self.at += 1;
        }
        here
    }

    /// Reads digits; without any, the error names `what` was expected.
    pub(crate) fn number(&mut self, what: &str) -> Result<u16, Error> {
        let digits = self.take(|byte| byte.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.wrong(&format!("needs {what} after `{}`", self.done())));
        }
        // Longer numbers are out of every range, and so is this.
        Ok(digits.parse().unwrap_or(u16::MAX))
    }

    /// Reads digits that are a value of this field.
    pub(crate) fn value(&mut self, bounds: (u16, u16)) -> Result<u16, Error> {
        let from = self.at;
        let value = self.number("a number")?;
        if value < bounds.0 || value > bounds.1 {
            return Err(self.error(from, self.at, "is out of range"));
        }
        Ok(value)
    }

    /// Reads a month or weekday by its first three letters; returns its value and the whole word.
    pub(crate) fn name(&mut self) -> Result<(u16, &'a str), Error> {
        let from = self.at;
        let word = self.take(|byte| byte.is_ascii_alphabetic());
        let found =
            self.field.names().iter().position(|name| word.len() >= 3 && name.starts_with(&word[..3]));
        match found {
            Some(index) => Ok((self.field.bounds().0 + index as u16, word)),
            None if word.is_empty() => Err(self.wrong("cannot be read")),
            None => Err(self.error(from, self.at, "is not known here")),
        }
    }

    /// Moves back, for example after a name of which only the first letters count.
    pub(crate) fn back(&mut self, bytes: usize) {
        self.at -= bytes;
    }

    /// An error about the whole entry.
    pub(crate) fn wrong(&self, problem: &str) -> Error {
        self.error(self.start, self.end, problem)
    }

    /// An error about the text not yet read.
    pub(crate) fn rest_wrong(&self, problem: &str) -> Error {
        self.error(self.at, self.end, problem)
    }

    fn error(&self, from: usize, to: usize, problem: &str) -> Error {
        Error::Field {
            dialect: self.dialect,
            field: self.field,
            text: self.expr[from..to].to_owned(),
            position: self.expr[..from].chars().count() + 1,
            problem: problem.to_owned(),
        }
    }

    fn take(&mut self, wanted: fn(u8) -> bool) -> &'a str {
        let from = self.at;
        self.at += self.rest().bytes().take_while(|byte| wanted(*byte)).count();
        &self.expr[from..self.at]
    }
}
