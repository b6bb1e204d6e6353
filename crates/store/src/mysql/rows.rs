//! Decodes result rows. Statements are sent as text, so all values of the results are text too.

use sqlx::mysql::MySqlRow;
use sqlx::{Column, Decode, Row as _, TypeInfo, ValueRef};

use crate::session::{Row, Value};

/// Decodes the rows of one query.
pub fn decode(rows: &[MySqlRow]) -> Result<Vec<Row>, sqlx::Error> {
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let kinds: Vec<Kind> = first.columns().iter().map(|column| Kind::of(column.type_info().name())).collect();
    rows.iter().map(|row| decode_row(row, &kinds)).collect()
}

fn decode_row(row: &MySqlRow, kinds: &[Kind]) -> Result<Row, sqlx::Error> {
    let mut values = Vec::with_capacity(kinds.len());
    for (index, kind) in kinds.iter().enumerate() {
        let raw = row.try_get_raw(index)?;
        if raw.is_null() {
            values.push(Value::Null);
            continue;
        }
        let text = <&str as Decode<'_, sqlx::MySql>>::decode(raw).map_err(sqlx::Error::Decode)?;
        values.push(kind.value(text).ok_or_else(|| {
            sqlx::Error::Decode(format!("column {index} is not a whole number we can hold: {text}").into())
        })?);
    }
    Ok(Row(values))
}

/// How a column is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Time,
    Text,
}

impl Kind {
    fn of(type_name: &str) -> Kind {
        match type_name.split(' ').next().unwrap_or_default() {
            "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT" | "BOOLEAN" | "DECIMAL" => Kind::Number,
            "DATETIME" | "TIMESTAMP" => Kind::Time,
            _ => Kind::Text,
        }
    }

    fn value(self, text: &str) -> Option<Value> {
        match self {
            // Sums are returned as decimals.
            Kind::Number => text.split('.').next().and_then(|whole| whole.parse().ok()).map(Value::Int),
            // A zero date, which a server in a lenient mode accepts.
            Kind::Time if text.starts_with("0000") => Some(Value::Null),
            // Columns of other programs may contain fractions of a second.
            Kind::Time => Some(Value::Time(text.split('.').next().unwrap_or(text).to_owned())),
            Kind::Text => Some(Value::Text(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_every_type_are_read() {
        let check = |kind: &str, text: &str, expected: Value| {
            assert_eq!(Kind::of(kind).value(text), Some(expected), "{kind}");
        };
        check("TINYINT", "-1", Value::Int(-1));
        check("INT UNSIGNED", "7", Value::Int(7));
        check("BIGINT", "1782000000000", Value::Int(1_782_000_000_000));
        check("DECIMAL", "12.000", Value::Int(12));
        check("BOOLEAN", "1", Value::Int(1));
        check("DATETIME", "2026-06-21 10:00:00.500", Value::Time("2026-06-21 10:00:00".into()));
        check("DATETIME", "0000-00-00 00:00:00", Value::Null);
        check("VARCHAR", "0 0 2 * * ?", Value::Text("0 0 2 * * ?".into()));
        check("MEDIUMTEXT", "", Value::Text(String::new()));
        assert_eq!(Kind::Number.value("99999999999999999999"), None);
    }
}
