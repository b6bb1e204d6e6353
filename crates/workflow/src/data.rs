//! Data of a run: inputs, outputs, and their limits.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::definition::{Input, InputType};
use crate::{date, secret};

/// Output of a step, from the message of a successful run. A JSON object or list is the output itself; any other text is
/// `{"message": text}`, and no text is `{}`.
pub fn output_of(message: &str) -> Result<Value, String> {
    let text = message.trim();
    if text.is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    if text.len() > OUTPUT_MAX {
        let length = text.len();
        return Err(format!(
            "the output has {length} bytes, at most {OUTPUT_MAX} are allowed; store it elsewhere and return a reference"
        ));
    }
    let message = || {
        let mut message = Value::Object(Map::from_iter([("message".to_owned(), text.into())]));
        secret::without_markers(&mut message);
        Ok(message)
    };
    if !text.starts_with(['{', '[']) {
        return message();
    }
    match serde_json::from_str(text) {
        Ok(mut output) => {
            secret::without_markers(&mut output);
            Ok(output)
        }
        // XXL-JOB's Java executors cut long messages.
        Err(error) if error.is_eof() || text.ends_with("...") => {
            Err(format!("the output is JSON that was cut off after {} bytes", text.len()))
        }
        // A text that only looks like JSON, for example `[INFO] done`.
        Err(_) => message(),
    }
}

/// Maximum size of an output, in bytes.
pub const OUTPUT_MAX: usize = 64 * 1024;

/// Maximum size of the inputs of a run as JSON, in bytes.
pub const INPUTS_MAX: usize = 64 * 1024;

/// Checks the inputs that a run is started with, and adds defaults that are no templates.
pub fn check_inputs(
    declared: &BTreeMap<String, Input>,
    given: &BTreeMap<String, Value>,
) -> Result<(), String> {
    if let Some(name) = given.keys().find(|name| !declared.contains_key(*name)) {
        let known: Vec<&str> = declared.keys().map(String::as_str).collect();
        return Err(match known.is_empty() {
            true => format!("the workflow has no input `{name}`, nor any other"),
            false => format!("the workflow has no input `{name}`; it has {}", known.join(", ")),
        });
    }
    for (name, input) in declared {
        match given.get(name) {
            Some(value) => check_input(name, input, value)?,
            None if input.default.is_none() => {
                return Err(format!("the input `{name}` is missing; it has no default"));
            }
            None => {}
        }
    }
    let size = serde_json::to_string(given).map_or(0, |text| text.len());
    if size > INPUTS_MAX {
        return Err(format!("the inputs have {size} bytes, at most {INPUTS_MAX} are allowed"));
    }
    Ok(())
}

/// Checks one value.
pub fn check_input(name: &str, input: &Input, value: &Value) -> Result<(), String> {
    let (fits, noun) = match input.kind {
        InputType::Text => (value.is_string(), "a text"),
        InputType::Int => (value.is_i64() || value.is_u64(), "a whole number"),
        InputType::Number => (value.is_number(), "a number"),
        InputType::Bool => (value.is_boolean(), "true or false"),
        InputType::Date => {
            (value.as_str().is_some_and(|day| date::parse(day).is_ok()), "a day, for example 2026-11-17")
        }
        InputType::Json => (true, "a value"),
    };
    if !fits {
        return Err(format!("the input `{name}` must be {noun}, not {}", shown(value)));
    }
    if !input.one_of.is_empty() && !input.one_of.contains(value) {
        let allowed: Vec<String> = input.one_of.iter().map(shown).collect();
        return Err(format!(
            "the input `{name}` must be one of {}, not {}",
            allowed.join(", "),
            shown(value)
        ));
    }
    Ok(())
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

const SHOWN_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_output_is_json_or_a_message() {
        let check =
            |message: &str, expected: Value| assert_eq!(output_of(message), Ok(expected), "{message}");
        check("", json!({}));
        check("  \n", json!({}));
        check("{\"rows\": 5}", json!({"rows": 5}));
        check(" [1, 2]\n", json!([1, 2]));
        check("done", json!({"message": "done"}));
        check("[INFO] done", json!({"message": "[INFO] done"}));
        check("5", json!({"message": "5"}));
    }

    #[test]
    fn an_output_that_was_cut_or_is_too_large_is_an_error() {
        let check = |message: &str, expected: &str| {
            let error = output_of(message).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check("{\"rows\": [1, 2", "cut off after 14 bytes");
        check("{\"rows\": [1, 2...", "cut off");
        check(&"x".repeat(OUTPUT_MAX + 1), "65537 bytes, at most 65536");
        assert!(output_of(&"x".repeat(OUTPUT_MAX)).is_ok());
    }

    #[test]
    fn inputs_are_checked_by_type() {
        let input = |kind, default: Option<Value>, one_of: &[&str]| Input {
            kind,
            default,
            one_of: one_of.iter().map(|text| json!(text)).collect(),
        };
        let declared = BTreeMap::from([
            ("region".to_owned(), input(InputType::Text, Some(json!("all")), &["all", "north"])),
            ("rows".to_owned(), input(InputType::Int, None, &[])),
            ("day".to_owned(), input(InputType::Date, Some(json!("${{ run.date }}")), &[])),
        ]);
        let check = |given: Value, expected: Result<(), &str>| {
            let given: BTreeMap<String, Value> = serde_json::from_value(given).unwrap();
            match (check_inputs(&declared, &given), expected) {
                (Ok(()), Ok(())) => {}
                (Err(error), Err(expected)) if error.contains(expected) => {}
                (found, expected) => panic!("{given:?}: {found:?}, expected {expected:?}"),
            }
        };
        check(json!({"rows": 5}), Ok(()));
        check(json!({"rows": 5, "region": "north", "day": "2024-02-29"}), Ok(()));
        check(json!({}), Err("the input `rows` is missing"));
        check(json!({"rows": 5.5}), Err("a whole number, not 5.5"));
        check(json!({"rows": 5, "region": "south"}), Err("one of \"all\", \"north\", not \"south\""));
        check(json!({"rows": 5, "day": "2023-02-29"}), Err("must be a day"));
        check(json!({"rows": 5, "regoin": "all"}), Err("no input `regoin`; it has day, region, rows"));
        check(json!({"rows": 5, "region": "x".repeat(70_000)}), Err("one of"));
    }
}
