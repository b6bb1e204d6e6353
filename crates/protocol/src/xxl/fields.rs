//! What a caller of XXL-JOB's web API says: texts by their names, wherever they stood.

use serde_json::{Map, Value};

use super::lenient;

/// Texts by their names. A name may stand more than once; then the first counts.
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
    /// Reads a JSON object: numbers and flags as texts, null as absent. What has parts of its own is left out.
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

    /// The text of that name, if it was said.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All texts of that name.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// The text of that name without the blanks around it; empty if it was not said.
    pub fn trimmed(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default().trim()
    }

    /// The number of that name; none if nothing was said.
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

/// A number was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: `{text}` is not a whole number")]
pub struct NotANumber {
    /// The field,
    pub name: String,
    /// and the start of what it says.
    pub text: String,
}
