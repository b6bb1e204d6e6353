//! Lines of the journal.
//!
//! A line is a checksum and a record as readable text, so that a line left incomplete by a crash is detected and
//! people can read the rest.

use std::fmt::Write;

use timer::Timestamp;

use crate::run::{Outcome, Report};

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// The run was accepted and from now on is executed at most once.
    Accepted { run_id: i64, triggered_at: Timestamp },
    /// The run finished; the outcome has to be reported.
    Finished(Report),
    /// The centre confirmed the outcome. Only the id is kept, so that the run is never executed again.
    Done { run_id: i64, at: Timestamp },
}

impl Record {
    /// Appends the line of this record.
    pub fn write(&self, lines: &mut String) {
        let start = lines.len();
        // Placeholder for the checksum, which is known only afterwards.
        lines.push_str("00000000 ");
        match self {
            Record::Accepted { run_id, triggered_at } => {
                put(lines, format_args!("accepted {run_id} {}", triggered_at.as_millis()));
            }
            Record::Finished(Report { run_id, triggered_at, outcome }) => {
                let (word, message) = match outcome {
                    Outcome::Succeeded(message) => ("succeeded", message.as_deref()),
                    Outcome::Failed(message) => ("failed", Some(message.as_str())),
                    Outcome::TimedOut => ("timed-out", None),
                };
                let message = serde_json::to_string(&message).expect("a text is writable");
                put(lines, format_args!("{word} {run_id} {} {message}", triggered_at.as_millis()));
            }
            Record::Done { run_id, at } => put(lines, format_args!("done {run_id} {}", at.as_millis())),
        }
        let sum = format!("{:08x}", checksum(&lines.as_bytes()[start + SUM_LENGTH + 1..]));
        lines.replace_range(start..start + SUM_LENGTH, &sum);
        lines.push('\n');
    }

    /// Parses a line without its line end; `None` if it is incomplete.
    pub fn read(line: &str) -> Option<Record> {
        let (sum, rest) = line.split_at_checked(SUM_LENGTH)?;
        let rest = rest.strip_prefix(' ')?;
        if u32::from_str_radix(sum, 16).ok()? != checksum(rest.as_bytes()) {
            return None;
        }
        let mut words = rest.splitn(4, ' ');
        let word = words.next()?;
        let run_id = words.next()?.parse().ok()?;
        let at = Timestamp::from_millis(words.next()?.parse().ok()?);
        let mut message = || serde_json::from_str::<Option<String>>(words.next()?).ok();
        let outcome = match word {
            "accepted" => return Some(Record::Accepted { run_id, triggered_at: at }),
            "done" => return Some(Record::Done { run_id, at }),
            "succeeded" => Outcome::Succeeded(message()?),
            "failed" => Outcome::Failed(message()??),
            "timed-out" => Outcome::TimedOut,
            _ => return None,
        };
        Some(Record::Finished(Report { run_id, triggered_at: at, outcome }))
    }
}

const SUM_LENGTH: usize = 8;

fn put(lines: &mut String, text: std::fmt::Arguments<'_>) {
    lines.write_fmt(text).expect("a string takes all text");
}

/// FNV-1a: has to detect incomplete lines, not tampering.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_are_read_as_written_and_torn_ones_not_at_all(record in record(), cut in any::<prop::sample::Index>()) {
            let mut line = String::new();
            record.write(&mut line);
            let line = line.strip_suffix('\n').unwrap();
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(Record::read(line), Some(record));
            let cut = cut.index(line.len());
            if let Some(torn) = line.get(..cut) {
                prop_assert_eq!(Record::read(torn), None);
            }
        }
    }

    fn record() -> impl Strategy<Value = Record> {
        let outcome = prop_oneof![
            any::<Option<String>>().prop_map(Outcome::Succeeded),
            any::<String>().prop_map(Outcome::Failed),
            Just(Outcome::TimedOut),
        ];
        (any::<i64>(), any::<i64>(), outcome, 0..3).prop_map(|(run_id, millis, outcome, kind)| {
            let at = Timestamp::from_millis(millis);
            match kind {
                0 => Record::Accepted { run_id, triggered_at: at },
                1 => Record::Done { run_id, at },
                _ => Record::Finished(Report { run_id, triggered_at: at, outcome }),
            }
        })
    }
}
