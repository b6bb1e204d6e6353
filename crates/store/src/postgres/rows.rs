//! Decodes result rows in PostgreSQL's binary format.

use sqlx::postgres::{PgRow, PgValueFormat, PgValueRef};
use sqlx::{Row as _, TypeInfo, ValueRef};

use crate::session::{Row, Value};

/// Decodes the rows of one query.
pub fn decode(rows: &[PgRow]) -> Result<Vec<Row>, sqlx::Error> {
    rows.iter()
        .map(|row| (0..row.len()).map(|index| decode_value(row.try_get_raw(index)?)).collect())
        .map(|values: Result<Vec<Value>, sqlx::Error>| values.map(Row))
        .collect()
}

fn decode_value(raw: PgValueRef<'_>) -> Result<Value, sqlx::Error> {
    if raw.is_null() {
        return Ok(Value::Null);
    }
    let kind = raw.type_info();
    let bytes = raw.as_bytes().map_err(sqlx::Error::Decode)?;
    let value = match (raw.format(), kind.name()) {
        (PgValueFormat::Binary, kind) => value(kind, bytes),
        (PgValueFormat::Text, _) => None,
    };
    value.ok_or_else(|| {
        sqlx::Error::Decode(format!("a column of type {} is not understood", kind.name()).into())
    })
}

fn value(kind: &str, bytes: &[u8]) -> Option<Value> {
    Some(match kind {
        "BOOL" => Value::Int(i64::from(*bytes.first()?)),
        "INT2" => Value::Int(i16::from_be_bytes(bytes.try_into().ok()?).into()),
        "INT4" => Value::Int(i32::from_be_bytes(bytes.try_into().ok()?).into()),
        "INT8" => Value::Int(i64::from_be_bytes(bytes.try_into().ok()?)),
        // Sums are returned as numerics.
        "NUMERIC" => Value::Int(whole(bytes)?),
        "TIMESTAMP" => Value::Time(time(i64::from_be_bytes(bytes.try_into().ok()?))?),
        "TEXT" | "VARCHAR" | "CHAR" | "NAME" | "UNKNOWN" => {
            Value::Text(std::str::from_utf8(bytes).ok()?.to_owned())
        }
        _ => return None,
    })
}

/// The integer part of a numeric: its digits come in groups of four, and `weight` is the position of the first
/// group.
fn whole(bytes: &[u8]) -> Option<i64> {
    let words: Vec<i16> = bytes.chunks_exact(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]])).collect();
    let [_, weight, sign, _, digits @ ..] = &words[..] else { return None };
    let mut number: i64 = 0;
    for position in 0..=*weight {
        let digit = digits.get(usize::try_from(position).ok()?).copied().unwrap_or(0);
        number = number.checked_mul(10_000)?.checked_add(digit.into())?;
    }
    match sign {
        0 => Some(number),
        0x4000 => Some(-number),
        _ => None,
    }
}

/// The wall-clock time this many microseconds after the start of 2000.
fn time(micros: i64) -> Option<String> {
    let start = jiff::civil::date(2000, 1, 1).at(0, 0, 0, 0);
    let time = start.checked_add(jiff::SignedDuration::from_micros(micros)).ok()?;
    Some(time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_every_type_are_read() {
        let check = |kind: &str, bytes: &[u8], expected: Value| {
            assert_eq!(value(kind, bytes), Some(expected), "{kind}");
        };
        check("INT2", &[0xff, 0xff], Value::Int(-1));
        check("INT4", &[0, 0, 1, 0], Value::Int(256));
        check("INT8", &7_i64.to_be_bytes(), Value::Int(7));
        check("TEXT", "任务".as_bytes(), Value::Text("任务".into()));
        check("TIMESTAMP", &0_i64.to_be_bytes(), Value::Time("2000-01-01 00:00:00".into()));
        check("TIMESTAMP", &(-500_000_i64).to_be_bytes(), Value::Time("1999-12-31 23:59:59".into()));
        // 1 2000 5678 and 12.5.
        check("NUMERIC", &[0, 3, 0, 2, 0, 0, 0, 0, 0, 1, 7, 208, 22, 46], Value::Int(120_005_678));
        check("NUMERIC", &[0, 2, 0, 0, 64, 0, 0, 1, 0, 12, 19, 136], Value::Int(-12));
        check("NUMERIC", &[0, 0, 0, 0, 0, 0, 0, 0], Value::Int(0));
    }
}
