//! Output: tables and colours for people, JSON for programs.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Context, Result, bail};
use comfy_table::{Cell, Color, ColumnConstraint, Table, Width, presets};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::tz::TimeZone;
use protocol::v1::Instant;
use serde::Serialize;

/// Colours, if standard output is a terminal and they are not disabled.
#[derive(Clone, Copy)]
pub struct Paint {
    is_on: bool,
}

impl Paint {
    /// Colours for standard output.
    pub fn stdout() -> Paint {
        Paint {
            is_on: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty()),
        }
    }

    /// Emphasizes text.
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Marks a good state.
    pub fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Marks unimportant text.
    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.is_on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Creates a table cell.
    pub fn cell(self, text: impl ToString, mood: Mood) -> Cell {
        let cell = Cell::new(text);
        match mood {
            _ if !self.is_on => cell,
            Mood::Plain => cell,
            Mood::Good => cell.fg(Color::Green),
            Mood::Bad => cell.fg(Color::Red),
            Mood::Busy => cell.fg(Color::Cyan),
            Mood::Quiet => cell.fg(Color::DarkGrey),
        }
    }
}

/// Meaning of a cell's colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mood {
    /// No colour.
    Plain,
    /// Good.
    Good,
    /// Needs attention.
    Bad,
    /// In progress.
    Busy,
    /// Unimportant.
    Quiet,
}

/// Formats a table without lines, readable for people and `grep`.
pub fn table(heads: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(heads.to_vec());
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP));
    }
    // In a pipe, each row is one line.
    if let Some(screen) = table.width().filter(|_| io::stdout().is_terminal()) {
        fit(&mut table, screen);
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Wraps the widest column, which has the sentences, if the terminal is too narrow for the table.
fn fit(table: &mut Table, screen: u16) {
    let widths: Vec<u16> =
        table.column_max_content_widths().iter().map(|width| width.saturating_add(GAP)).collect();
    let whole = widths.iter().fold(0_u16, |whole, width| whole.saturating_add(*width));
    let Some((widest, width)) = widths.iter().enumerate().max_by_key(|(_, width)| **width) else { return };
    let left = screen.saturating_sub(whole - width);
    if whole - GAP > screen
        && left >= READABLE
        && let Some(column) = table.column_mut(widest)
    {
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(left)));
    }
}

/// Space between columns.
const GAP: u16 = 2;

/// Minimum width of a wrapped column; a narrower one is left to the terminal to wrap.
const READABLE: u16 = 24;

/// Formats properties of one object, one per line; empty ones are omitted.
pub fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let paint = Paint::stdout();
    let facts: Vec<_> = facts.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    // Further lines of a value are indented below the first.
    let indent = format!("\n{:1$}", "", width + 2);
    let line = |(name, value): (&str, String)| {
        format!("{}  {}", paint.dim(&format!("{name:<width$}")), value.trim_end().replace('\n', &indent))
    };
    facts.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Prints a line on standard output.
pub fn say(text: &str) -> Result<()> {
    write(&format!("{text}\n"))
}

/// Prints a text unchanged.
pub fn write(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("failed to write the output")
}

/// Prints a value as JSON.
pub fn say_json(value: &impl Serialize) -> Result<()> {
    say(&serde_json::to_string_pretty(value).context("failed to write the output as JSON")?)
}

/// Asks the user for confirmation; fails if standard input is not a terminal.
pub fn is_sure(question: &str) -> Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("not a terminal; add --yes to confirm");
    }
    eprint!("{question} [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

/// Progress bar, shown on terminals only.
pub fn progress(what: &'static str, length: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {eta}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(u64::try_from(length).unwrap_or(u64::MAX)).with_style(style).with_message(what)
}

/// Activity indicator, shown on terminals only.
pub fn spinner(what: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what);
    bar.enable_steady_tick(SPIN);
    bar
}

/// Interval between two pictures of a spinner.
const SPIN: std::time::Duration = std::time::Duration::from_millis(100);

/// Formats a time in this machine's time zone.
pub fn local(at: Instant) -> String {
    let at = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Formats an optional time; `-` if absent.
pub fn local_or_dash(at: Option<Instant>) -> String {
    at.map_or_else(|| "-".into(), local)
}

/// Name of an enum value in the API.
pub fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned_and_have_no_blanks_at_the_end() {
        let row = |a: &str, b: &str| vec![Cell::new(a), Cell::new(b)];
        let text = table(&["JOB", "APP"], [row("orders/sync", "o"), row("x", "orders")]);
        assert_eq!(text, "JOB          APP\norders/sync  o\nx            orders");
    }

    #[test]
    fn a_sentence_goes_on_under_itself_where_the_screen_is_narrow() {
        let fitted = |screen| {
            let mut table = Table::new();
            table.load_style(presets::NOTHING);
            table.set_header(vec!["JOB", "WHEN", "STATE"]);
            table.add_row(vec!["x", "every five minutes on working days", "started"]);
            for column in table.column_iter_mut() {
                column.set_padding((0, GAP));
            }
            fit(&mut table, screen);
            table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>()
        };
        let broken = [
            "JOB  WHEN                      STATE",
            "x    every five minutes on     started",
            "     working days",
        ];
        assert_eq!(fitted(40), broken);
        assert_eq!(fitted(50).len(), 2, "there is room");
        assert_eq!(fitted(20).len(), 2, "there is none at all");
    }

    #[test]
    fn facts_leave_out_what_is_empty_and_indent_what_is_long() {
        let text = facts([("job", "x".into()), ("param", String::new()), ("script", "a\nb\n".into())]);
        assert_eq!(text, "job     x\nscript  a\n        b");
    }
}
