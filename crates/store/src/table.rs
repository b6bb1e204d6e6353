//! The columns of a table, written once: the `SELECT` list, the reader, the `INSERT` and the `UPDATE`s all come from
//! one [`table!`].

use engine::{AppId, Disposition, JobId, RunId, RunState};
use timer::Timestamp;

use crate::session::{Columns, Value};

/// Declares the columns of a table, one per line, each with the type that it is read as and the value that is
/// written:
///
/// ```ignore
/// table! {
///     /// Row of `tw_note`.
///     struct NoteRow in "tw_note" of note: &Note {
///         job_id: JobId = note.job,
///     }
///     edited by id {
///         text: String = note.text.as_str(),
///     }
///     not inserted { id: i64 = note.id, read_ms: Option<Timestamp> }
///     not read { author = note.author.as_str() }
///     update MOVE by id { job_id }
/// }
/// ```
///
/// `NoteRow::LIST` is the list for a `SELECT`, and `NoteRow::read` reads what it selects. `NoteRow::INSERT`,
/// `NoteRow::EDIT` (of the columns `edited`) and `NoteRow::MOVE` are each the [`Columns`](crate::session::Columns) of
/// a statement and the function that makes a row for it. All have the same order of columns, so no position is
/// counted by hand. Only the first block is mandatory; a table that is only read has no `of` and no values.
macro_rules! table {
    (
        $(#[$attribute:meta])*
        struct $Row:ident in $table:literal of $entity:ident: $Entity:ty {
            $($column:ident: $Type:ty = $value:expr),* $(,)?
        }
        $(edited by $edit_key:ident $(with $($with:ident),+)? {
            $($edited:ident: $Edited:ty = $edit:expr),* $(,)?
        })?
        $(not inserted { $($found:ident: $Found:ty $(= $key_value:expr)?),* $(,)? })?
        $(not read { $($write:ident = $written:expr),* $(,)? })?
        $(update $UPDATE:ident by $($key:ident),+ { $($set:ident),* $(,)? })*
    ) => {
        $crate::table::table! {
            $(#[$attribute])*
            struct $Row in $table {
                $($column: $Type,)*
                $($($edited: $Edited,)*)?
                $($($found: $Found,)*)?
            }
        }

        #[allow(dead_code, unused_variables, reason = "not every table has every kind of statement")]
        impl $Row {
            const INSERT: $crate::table::Write<fn($Entity) -> Vec<$crate::session::Value>> = (
                $crate::session::Columns {
                    table: $table,
                    keys: &[],
                    columns: &[
                        $(stringify!($column),)*
                        $($(stringify!($edited),)*)?
                        $($(stringify!($write),)*)?
                    ],
                },
                |entity: $Entity| vec![
                    $(Self::$column(entity),)*
                    $($(Self::$edited(entity),)*)?
                    $($(Self::$write(entity),)*)?
                ],
            );

            $(const EDIT: $crate::table::Write<fn($Entity) -> Vec<$crate::session::Value>> = (
                $crate::session::Columns {
                    table: $table,
                    keys: &[stringify!($edit_key)],
                    columns: &[$(stringify!($edited),)* $($(stringify!($with),)+)?],
                },
                |entity: $Entity| vec![
                    Self::$edit_key(entity),
                    $(Self::$edited(entity),)*
                    $($(Self::$with(entity),)+)?
                ],
            );)?

            $(const $UPDATE: $crate::table::Write<fn($Entity) -> Vec<$crate::session::Value>> = (
                $crate::session::Columns {
                    table: $table,
                    keys: &[$(stringify!($key)),+],
                    columns: &[$(stringify!($set)),*],
                },
                |entity: $Entity| vec![$(Self::$key(entity),)+ $(Self::$set(entity)),*],
            );)*

            $(fn $column($entity: $Entity) -> $crate::session::Value {
                $value.into()
            })*

            $($(fn $edited($entity: $Entity) -> $crate::session::Value {
                $edit.into()
            })*)?

            $($($(fn $found($entity: $Entity) -> $crate::session::Value {
                $key_value.into()
            })?)*)?

            $($(fn $write($entity: $Entity) -> $crate::session::Value {
                $written.into()
            })*)?
        }
    };
    (
        $(#[$attribute:meta])*
        struct $Row:ident in $table:literal { $($column:ident: $Type:ty),* $(,)? }
    ) => {
        $(#[$attribute])*
        pub struct $Row {
            $(pub $column: $Type,)*
        }

        #[allow(dead_code, reason = "not every table has every kind of statement")]
        impl $Row {
            /// The columns that are read, in their order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($column)),*];

            /// The same for a `SELECT`.
            pub const LIST: &'static str = {
                let list = concat!($(stringify!($column), ", "),*);
                list.split_at(list.len().saturating_sub(", ".len())).0
            };

            pub fn read(row: &mut $crate::session::Reader) -> Result<Self, $crate::session::SessionError> {
                Ok($Row { $($column: row.column(concat!($table, ".", stringify!($column)))?,)* })
            }

            /// Reads the row of a `LEFT JOIN`; `None` if the table has none. The first column is `NOT NULL`.
            pub fn read_joined(
                row: &mut $crate::session::Reader,
            ) -> Result<Option<Self>, $crate::session::SessionError> {
                if row.next_is_null() {
                    row.skip(Self::NAMES.len());
                    return Ok(None);
                }
                Self::read(row).map(Some)
            }

            /// The list for a `SELECT` from several tables.
            pub fn list_of(alias: &str) -> String {
                let names: Vec<String> = Self::NAMES.iter().map(|name| format!("{alias}.{name}")).collect();
                names.join(", ")
            }
        }
    };
}

pub(crate) use table;

/// The columns of a statement, and the function that makes a row for it.
pub type Write<Values> = (Columns<'static>, Values);

// ── Types of columns ────────────────────────────────────────────────────────────────────────────────────────────

/// A type that a column is read as.
pub trait Cell: Sized {
    /// What the column should contain, for error messages.
    const WANTED: &'static str;

    /// Returns the value back if it is not of this type.
    fn of(value: Value) -> Result<Self, Value>;
}

impl Cell for i64 {
    const WANTED: &'static str = "a number";

    fn of(value: Value) -> Result<Self, Value> {
        match value {
            Value::Int(number) => Ok(number),
            other => Err(other),
        }
    }
}

/// `NULL` is read as an empty text, as in XXL-JOB.
impl Cell for String {
    const WANTED: &'static str = "a text";

    fn of(value: Value) -> Result<Self, Value> {
        match value {
            Value::Text(text) | Value::Time(text) => Ok(text),
            Value::Null => Ok(String::new()),
            other => Err(other),
        }
    }
}

impl<T: Cell> Cell for Option<T> {
    const WANTED: &'static str = T::WANTED;

    fn of(value: Value) -> Result<Self, Value> {
        match value {
            Value::Null => Ok(None),
            value => T::of(value).map(Some),
        }
    }
}

/// Types that are stored as a number, each with its conversion from the number, and into it if it is written as such.
macro_rules! numbers {
    ($($Type:ty: $wanted:literal, $read:expr $(, $write:expr)?;)*) => {$(
        impl Cell for $Type {
            const WANTED: &'static str = $wanted;

            fn of(value: Value) -> Result<Self, Value> {
                let read: fn(i64) -> Option<$Type> = $read;
                i64::of(value).and_then(|number| read(number).ok_or(Value::Int(number)))
            }
        }

        $(impl From<$Type> for Value {
            fn from(value: $Type) -> Self {
                let write: fn($Type) -> i64 = $write;
                Value::Int(write(value))
            }
        })?
    )*};
}

numbers! {
    u32: "a small number", |number| u32::try_from(number).ok();
    u64: "a number", |number| Some(number.unsigned_abs());
    bool: "0 or 1", |number| Some(number != 0), i64::from;
    Timestamp: "a time in milliseconds", |number| Some(Timestamp::from_millis(number)), |at| at.as_millis();
    AppId: "the id of an app", |number| Some(AppId(number)), |app| app.0;
    JobId: "the id of a job", |number| Some(JobId(number)), |job| job.0;
    RunId: "the id of a run", |number| Some(RunId(number)), |run| run.0;
    RunState: "the state of a run", RunState::from_number, RunState::to_number;
    Disposition: "the disposition of a fire", Disposition::from_number, Disposition::to_number;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Reader, Row};

    #[derive(Clone, Copy)]
    struct Note {
        id: i64,
        job: JobId,
        text: &'static str,
    }

    table! {
        /// Row of `tw_note`.
        #[derive(Debug, PartialEq)]
        struct NoteRow in "tw_note" of note: Note {
            job_id: JobId = note.job,
        }
        edited by id with author {
            text: String = note.text,
        }
        not inserted { id: i64 = note.id, seen_ms: Option<Timestamp> }
        not read { author = "ada" }
        update MOVE by id { job_id }
    }

    #[test]
    fn each_statement_has_a_value_for_each_of_its_columns() {
        let note = Note { id: 7, job: JobId(3), text: "hello" };
        let check = |(write, row): Write<fn(Note) -> Vec<Value>>,
                     keys: &[&str],
                     columns: &[&str],
                     values: &[Value]| {
            assert_eq!((write.table, write.keys, write.columns), ("tw_note", keys, columns));
            assert_eq!(row(note), values);
        };
        let [id, job, text, author] = [Value::Int(7), Value::Int(3), "hello".into(), "ada".into()];
        check(
            NoteRow::INSERT,
            &[],
            &["job_id", "text", "author"],
            &[job.clone(), text.clone(), author.clone()],
        );
        check(NoteRow::EDIT, &["id"], &["text", "author"], &[id.clone(), text, author]);
        check(NoteRow::MOVE, &["id"], &["job_id"], &[id, job]);
    }

    #[test]
    fn a_row_is_read_by_the_names_that_were_selected() {
        assert_eq!(NoteRow::LIST, "job_id, text, id, seen_ms");
        assert_eq!(NoteRow::list_of("n"), "n.job_id, n.text, n.id, n.seen_ms");
        let row = |values: [Value; 4]| -> Reader { Row(values.into()).read() };
        let read = NoteRow::read(&mut row([3.into(), Value::Null, 7.into(), 5.into()])).unwrap();
        let seen_ms = Some(Timestamp::from_millis(5));
        assert_eq!(read, NoteRow { job_id: JobId(3), text: String::new(), id: 7, seen_ms });
        assert_eq!(NoteRow::read_joined(&mut row([const { Value::Null }; 4])).unwrap(), None);
        let error =
            NoteRow::read(&mut row([3.into(), "hello".into(), Value::Null, Value::Null])).unwrap_err();
        let expected = "tw_note.id should contain a number, but contains Null";
        assert!(format!("{error:?}").contains(expected), "{error:?}");
    }
}
