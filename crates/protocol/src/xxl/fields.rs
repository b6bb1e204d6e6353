//! Parameters of a request to XXL-JOB's web API, by name, from the query, a form or JSON.

use serde_json::{Map, Value};

use super::lenient;

/// Text values by name. If a name occurs more than once, the first value counts.
///
/// ```
/// use tickwright_protocol::xxl::Fields;
///
/// let fields = Fields::from_json(br#"{"id":7,"name":" nightly ","author":null}"#)?;
/// assert_eq!(fields.number("id"), Ok(Some(7)));
/// assert_eq!(fields.trimmed("name"), "nightly");
/// assert_eq!(fields.get("author"), None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Parses a JSON object. Numbers and booleans become text, null means absent, arrays and objects are ignored.
    pub fn from_json(body: &[u8]) -> serde_json::Result<Fields> {
        let object: Map<String, Value> = lenient::object(body)?;
        let text = |value| match value {
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        Ok(object.into_iter().filter_map(|(name, value)| Some((name, text(value)?))).collect())
    }

    /// First value of that name, if there is one.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of that name.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// First value of that name without surrounding whitespace; empty if absent.
    pub fn trimmed(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default().trim()
    }

    /// First value of that name as a number; none if absent or empty.
    pub fn number(&self, name: &str) -> Result<Option<i64>, NotANumber> {
        match self.trimmed(name) {
            "" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|_| NotANumber { name: name.to_owned(), text: text.chars().take(40).collect() }),
        }
    }
}

impl FromIterator<(String, String)> for Fields {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(texts: T) -> Self {
        Fields(texts.into_iter().collect())
    }
}

/// The value is not a whole number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: `{text}` is not a whole number")]
pub struct NotANumber {
    /// Name of the field.
    pub name: String,
    /// Start of its value.
    pub text: String,
}
