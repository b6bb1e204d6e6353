//! Writes values into the text of a statement.
//!
//! Statements are sent as text, not prepared: statements for many rows hardly ever repeat, and a text needs one
//! round trip where a new prepared statement needs two. So a value must not be able to escape its quotes under any
//! `sql_mode`, which changes the meaning of backslashes: only harmless characters are quoted, all others are sent as
//! hexadecimal.

use std::fmt::Write;

use crate::server::pieces;
use crate::session::Value;

/// Replaces the placeholders of a statement by its parameters.
pub fn fill_in(sql: &str, params: &[Value]) -> String {
    let pieces = pieces(sql);
    debug_assert_eq!(pieces.len(), params.len() + 1, "parameters of {sql}");
    let mut text = String::with_capacity(sql.len() + 16 * params.len());
    let mut params = params.iter();
    for (index, piece) in pieces.into_iter().enumerate() {
        if index > 0 {
            write_value(&mut text, params.next().unwrap_or(&Value::Null));
        }
        text.push_str(piece);
    }
    text
}

/// Appends the value as SQL.
pub fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("NULL"),
        Value::Int(number) => write_infallibly(text, format_args!("{number}")),
        Value::Text(value) | Value::Time(value) => write_text(text, value),
        Value::Ids(ids) => {
            for (index, id) in ids.iter().enumerate() {
                write_infallibly(text, format_args!("{}{id}", if index == 0 { '(' } else { ',' }));
            }
            text.push(')');
        }
        Value::Texts(texts) => {
            for (index, value) in texts.iter().enumerate() {
                text.push(if index == 0 { '(' } else { ',' });
                write_text(text, value);
            }
            text.push(')');
        }
    }
}

/// Appends the text as SQL.
pub fn write_text(text: &mut String, value: &str) {
    let harmless = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'\'' && byte != b'\\';
    if value.bytes().all(harmless) {
        text.push('\'');
        text.push_str(value);
        text.push('\'');
        return;
    }
    text.push_str("_utf8mb4 X'");
    for byte in value.bytes() {
        write_infallibly(text, format_args!("{byte:02x}"));
    }
    text.push('\'');
}

/// Appends the value as JSON.
pub fn write_json(text: &mut String, value: &Value) {
    match value {
        Value::Null | Value::Ids(_) | Value::Texts(_) => text.push_str("null"),
        Value::Int(number) => write_infallibly(text, format_args!("{number}")),
        Value::Text(value) | Value::Time(value) => {
            text.push('"');
            for char in value.chars() {
                match char {
                    '"' => text.push_str("\\\""),
                    '\\' => text.push_str("\\\\"),
                    control if control < ' ' => {
                        write_infallibly(text, format_args!("\\u{:04x}", u32::from(control)));
                    }
                    other => text.push(other),
                }
            }
            text.push('"');
        }
    }
}

fn write_infallibly(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_leave_their_quotes() {
        let check = |value: &str, expected: &str| {
            assert_eq!(fill_in("x = ?", &[Value::Text(value.into())]), format!("x = {expected}"));
        };
        check("", "''");
        check("10.0.0.7:9999 (a?b)", "'10.0.0.7:9999 (a?b)'");
        check("' OR 1 = 1; --", "_utf8mb4 X'27204f522031203d20313b202d2d'");
        check("\\", "_utf8mb4 X'5c'");
        check("任", "_utf8mb4 X'e4bbbb'");
        check("a\nb", "_utf8mb4 X'610a62'");
    }

    #[test]
    fn parameters_take_the_place_of_their_marks() {
        let texts = Value::Texts(vec!["x".into(), "it's".into()]);
        let params = [Value::Int(-5), Value::Null, Value::Ids(vec![3, 4]), texts];
        let filled = fill_in("a = ? AND b IS ? AND c = '?' AND d IN ? AND e IN ?", &params);
        assert_eq!(
            filled,
            "a = -5 AND b IS NULL AND c = '?' AND d IN (3,4) AND e IN ('x',_utf8mb4 X'69742773')"
        );
    }
}
