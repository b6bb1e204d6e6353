//! Secrets in parameters: `${{ secret("db") }}`.
//!
//! A secret has no value here. The expression becomes a marker with its name, and the sender of the run replaces the marker
//! by the value. So no row and no page has the value.

use std::borrow::Cow;

use serde_json::Value;

/// Marker of a secret in a parameter.
pub fn marker(name: &str) -> Result<String, String> {
    match is_name(name) {
        true => Ok(format!("{OPEN}{name}{CLOSE}")),
        false => {
            let shown: String = name.chars().take(NAME_MAX).collect();
            Err(format!("`{shown}` is not the name of a secret"))
        }
    }
}

/// Whether a secret can have this name.
pub fn is_name(name: &str) -> bool {
    let allowed = |next: char| next.is_ascii_alphanumeric() || matches!(next, '_' | '-' | '.');
    !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(allowed)
}

/// Maximum length of the name of a secret.
pub const NAME_MAX: usize = 64;

/// Replaces the markers of a parameter by values. In a parameter that is JSON, the values become parts of its texts. The
/// name of the first secret that `value` does not know, if there is one.
pub fn fill<'p>(param: &'p str, value: &dyn Fn(&str) -> Option<String>) -> Result<Cow<'p, str>, String> {
    if !param.contains(OPEN) {
        return Ok(param.into());
    }
    if param.trim_start().starts_with(['{', '['])
        && let Ok(mut json) = serde_json::from_str::<Value>(param)
    {
        each_text(&mut json, &mut |text| replaced(text, value))?;
        return Ok(json.to_string().into());
    }
    replaced(param, value).map(Cow::Owned)
}

/// A parameter as people see it: with the names of its secrets.
pub fn shown(param: &str) -> Cow<'_, str> {
    if !param.contains(OPEN) {
        return param.into();
    }
    // Within JSON, the quotes would be those of its texts.
    let quote = if param.trim_start().starts_with(['{', '[']) { '\'' } else { '"' };
    let shown = replaced(param, &|name| Some(format!("${{{{ secret({quote}{name}{quote}) }}}}")));
    Cow::Owned(shown.unwrap_or_default())
}

/// Removes markers from a value that came from outside: only an expression makes one.
pub fn without_markers(value: &mut Value) {
    let remove = |text: &str| -> Result<String, String> { Ok(text.replace([OPEN, CLOSE], "\u{fffd}")) };
    // It never fails.
    let _ = each_text(value, &mut |text| remove(text));
}

fn replaced(text: &str, value: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        filled.push_str(before);
        let Some((name, after)) = after.split_once(CLOSE) else {
            rest = after;
            continue;
        };
        filled.push_str(&value(name).ok_or_else(|| name.to_owned())?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn each_text(
    value: &mut Value,
    change: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<(), String> {
    match value {
        Value::String(text) if text.contains([OPEN, CLOSE]) => *text = change(text)?,
        Value::Array(items) => items.iter_mut().try_for_each(|item| each_text(item, change))?,
        Value::Object(fields) => fields.values_mut().try_for_each(|field| each_text(field, change))?,
        _ => {}
    }
    Ok(())
}

/// Characters that no text has: Unicode reserves them for internal use.
const OPEN: char = '\u{fdd0}';
const CLOSE: char = '\u{fdd1}';

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(name: &str) -> Option<String> {
        (name == "db").then(|| "pa\"ss".to_owned())
    }

    #[test]
    fn markers_are_filled_in_texts_and_in_json() {
        let marker = marker("db").unwrap();
        assert_eq!(fill("no secret", &value).unwrap(), "no secret");
        assert_eq!(fill(&format!("user:{marker}@"), &value).unwrap(), "user:pa\"ss@");
        let json = json!({ "url": format!("x?key={marker}"), "list": [marker] }).to_string();
        let filled: Value = serde_json::from_str(&fill(&json, &value).unwrap()).unwrap();
        assert_eq!(filled, json!({ "url": "x?key=pa\"ss", "list": ["pa\"ss"] }));
        let unknown = super::marker("other").unwrap();
        assert_eq!(fill(&unknown, &value), Err("other".into()));
    }

    #[test]
    fn people_see_the_name_and_nobody_can_write_a_marker() {
        let marker = marker("db").unwrap();
        assert_eq!(shown(&format!("user:{marker}@")), "user:${{ secret(\"db\") }}@");
        assert_eq!(shown(&json!([marker]).to_string()), "[\"${{ secret('db') }}\"]");
        let mut output = json!({ "text": format!("a{marker}b"), "n": 1 });
        without_markers(&mut output);
        assert_eq!(fill(&output.to_string(), &|_| None).unwrap(), output.to_string());
        assert!(super::marker("a b").is_err() && super::marker("").is_err());
    }
}
