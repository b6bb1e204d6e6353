//! The types of the API in the console, generated from the OpenAPI description. `make wire` writes them.

use std::collections::BTreeMap;
use std::{env, fs};

use serde_json::Value;

#[test]
fn the_types_of_the_console_are_those_of_the_description() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../console/src/api/wire.ts");
    let generated = wire(&serde_json::from_str(tickwright_server::openapi()).unwrap());
    if env::var_os("TICKWRIGHT_WRITE_WIRE").is_some() {
        fs::write(path, &generated).unwrap();
    }
    let current = fs::read_to_string(path).unwrap_or_default();
    assert!(current == generated, "console/src/api/wire.ts is not current; run `make wire`");
}

/// All types of the description, in TypeScript.
fn wire(description: &Value) -> String {
    let mut file = HEAD.to_owned();
    for (name, schema) in sorted(&description["components"]["schemas"]) {
        file += "\n";
        file += &doc(schema, "");
        match (schema["enum"].as_array(), schema.get("properties")) {
            // The list as well as the type, for inputs that offer all values.
            (Some(words), _) => {
                let words: Vec<String> = words.iter().map(quoted).collect();
                file += &format!("export const {name} = [{}] as const\n", words.join(", "));
                file += &format!("export type {name} = (typeof {name})[number]\n");
            }
            (None, Some(_)) => {
                file += &format!("export interface {name} {{\n");
                for (field, schema, is_there) in fields(schema) {
                    file += &doc(schema, "  ");
                    let mark = if is_there { "" } else { "?" };
                    file += &format!("  {field}{mark}: {}\n", field_kind(schema, is_there));
                }
                file += "}\n";
            }
            (None, None) => file += &format!("export type {name} = {}\n", kind(schema)),
        }
    }
    file
}

/// Fields of an object, each with its schema, and whether it is always there: a field with a default may be omitted
/// only in requests, and the console sends it.
fn fields(schema: &Value) -> Vec<(&String, &Value, bool)> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let fields = sorted(&schema["properties"]).into_iter();
    let is_there = |name: &str, field: &Value| {
        required.iter().any(|required| required == name) || field.get("default").is_some()
    };
    fields.map(|(name, field)| (name, field, is_there(name, field))).collect()
}

/// Type of a field. A request may say null for a field that it can omit; the console omits it.
fn field_kind(schema: &Value, is_there: bool) -> String {
    let kind = kind(schema);
    if is_there { kind } else { kind.replace("null | ", "").replace(" | null", "") }
}

/// A schema as a type.
fn kind(schema: &Value) -> String {
    if let Some(path) = schema["$ref"].as_str() {
        return path.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(quoted).collect::<Vec<_>>().join(" | ");
    }
    if let Some(kinds) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        return kinds.iter().map(kind).collect::<Vec<_>>().join(" | ");
    }
    match &schema["type"] {
        Value::Array(types) => {
            let each = types.iter().map(|one| plain(one.as_str().unwrap_or_default(), schema));
            each.collect::<Vec<_>>().join(" | ")
        }
        one => plain(one.as_str().unwrap_or_default(), schema),
    }
}

fn plain(name: &str, schema: &Value) -> String {
    match name {
        "string" if schema["format"] == "date-time" => "Instant".into(),
        "string" | "boolean" | "null" => name.into(),
        "integer" | "number" => "number".into(),
        "array" => {
            let item = kind(&schema["items"]);
            if item.contains(' ') { format!("({item})[]") } else { format!("{item}[]") }
        }
        "object" if schema.get("properties").is_some() => {
            let field = |(name, schema, is_there): (&String, &Value, bool)| {
                format!("{name}{}: {}", if is_there { "" } else { "?" }, field_kind(schema, is_there))
            };
            format!("{{ {} }}", fields(schema).into_iter().map(field).collect::<Vec<_>>().join("; "))
        }
        "object" => "Record<string, unknown>".into(),
        // Any JSON value.
        "" => "unknown".into(),
        other => panic!("no type for `{other}`: {schema}"),
    }
}

fn doc(schema: &Value, indent: &str) -> String {
    let text = schema["description"].as_str().unwrap_or_default().replace("*/", "*\\/");
    match text.lines().collect::<Vec<_>>()[..] {
        [] => String::new(),
        [line] => format!("{indent}/** {line} */\n"),
        ref lines => {
            let lines: Vec<String> =
                lines.iter().map(|line| format!("{indent} * {line}").trim_end().to_owned()).collect();
            format!("{indent}/**\n{}\n{indent} */\n", lines.join("\n"))
        }
    }
}

/// Entries by name. The order in the description depends on how it was built.
fn sorted(object: &Value) -> BTreeMap<&String, &Value> {
    object.as_object().into_iter().flatten().collect()
}

fn quoted(word: &Value) -> String {
    format!("'{}'", word.as_str().unwrap_or_default())
}

const HEAD: &str = "\
// Types of `/v1`, generated from the OpenAPI description by `make wire`. Do not edit.

/** RFC 3339 in UTC, for example `2026-06-21T08:00:00.000Z`. */
export type Instant = string
";
