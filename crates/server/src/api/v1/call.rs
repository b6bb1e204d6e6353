//! An API request, parsed strictly: unknown parameters are rejected, so that a typing error is never silently
//! ignored.

use std::sync::Arc;

use axum::http::header;
use axum::http::request::Parts;
use cron::Language;
use protocol::v1::{Instant, Page, Word};
use serde::de::DeserializeOwned;
use timer::Timestamp;

use super::caller::Caller;
use super::language;
use super::route::Parameter;
use super::state::V1State;
use crate::http::{self, Caller as Origin, Received};
use crate::jobs::Jobs;
use crate::request_error::RequestError;

/// One API request.
pub struct Call {
    /// Parts of the node that this API uses.
    pub state: Arc<V1State>,
    /// Authenticated caller.
    pub who: Caller,
    /// Request head: method, path and headers.
    pub head: Parts,
    /// Path parameters: name and value.
    pub path: Vec<(String, String)>,
    /// Query parameters.
    pub query: Query,
    /// Body of the request.
    pub body: Received,
    /// Origin of the request: IP address, and whether the connection is encrypted.
    pub origin: Origin,
}

impl Call {
    /// Value of a path parameter; empty if there is none.
    pub fn named(&self, name: &str) -> &str {
        self.path.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The body, parsed as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, RequestError> {
        if self.body.is_empty() {
            return Err(not_json());
        }
        // serde would also accept the fields as an array, without their names.
        if self.body.trim_ascii_start().starts_with(b"[") {
            return Err(RequestError::malformed("the body must be a JSON object, not an array"));
        }
        if http::is_too_deep(&self.body) {
            return Err(RequestError::malformed("the JSON is nested too deeply"));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| RequestError::malformed(format!("invalid body: {error}")))
    }

    /// The body, parsed as JSON; the default value if the body is empty.
    pub fn json_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, RequestError> {
        if self.body.is_empty() { Ok(T::default()) } else { self.json() }
    }

    /// Job rules, applied with this caller's rights.
    pub fn jobs(&self) -> Jobs<'_> {
        self.state.jobs.by(&self.who.principal)
    }

    /// Language of descriptions in the response.
    pub fn language(&self) -> Language {
        language::accepted(&self.head.headers)
    }

    /// Value of a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// Rejects a body that is not declared as JSON, even if the route reads no body: pages of other sites can send
/// only other content types without a CORS preflight request.
pub fn check_kind(head: &Parts, body: &[u8]) -> Result<(), RequestError> {
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if body.is_empty() || kind.eq_ignore_ascii_case("application/json") { Ok(()) } else { Err(not_json()) }
}

fn not_json() -> RequestError {
    RequestError::malformed("the body must be JSON, with `Content-Type: application/json`")
}

/// Parameters of a query.
#[derive(Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query. Unknown parameters, duplicates and invalid values are rejected.
    pub fn read(text: &str, known: &[Parameter]) -> Result<Query, RequestError> {
        let mut read: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            let Some((.., values)) = known.iter().find(|(known, ..)| *known == name) else {
                let names: Vec<&str> = known.iter().map(|(known, ..)| *known).collect();
                let shown: String = name.chars().take(40).collect();
                let words = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(RequestError::malformed(format!(
                    "unknown parameter `{shown}`; allowed parameters: {words}"
                )));
            };
            if let Some(why) = values.objection(&value) {
                return Err(RequestError::field(name, why));
            }
            if read.iter().any(|(other, _)| *other == name) {
                return Err(RequestError::malformed(format!("duplicate parameter `{name}`")));
            }
            read.push((name.into_owned(), value.into_owned()));
        }
        Ok(Query(read))
    }

    /// Value of a parameter, if it is not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// A parameter as a number.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, RequestError> {
        let read = |text: &str| text.parse().map_err(|_| RequestError::field(name, "must be an integer"));
        self.text(name).map(read).transpose()
    }

    /// A parameter that is `true` or `false`.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, RequestError> {
        let read =
            |text: &str| text.parse().map_err(|_| RequestError::field(name, "must be `true` or `false`"));
        self.text(name).map(read).transpose()
    }

    /// A parameter as a value of the vocabulary.
    pub fn word<T: Word>(&self, name: &str) -> Result<Option<T>, RequestError> {
        let read =
            |text: &str| T::from_word(text).map_err(|error| RequestError::field(name, error.to_string()));
        self.text(name).map(read).transpose()
    }

    /// A parameter as a time, for example `2026-06-21T08:00:00Z`.
    pub fn instant(&self, name: &str) -> Result<Option<Timestamp>, RequestError> {
        let read = |text: &str| {
            let instant: Result<Instant, _> = text.parse();
            instant
                .map(|at| Timestamp::from_millis(at.millis()))
                .map_err(|error| RequestError::field(name, error.to_string()))
        };
        self.text(name).map(read).transpose()
    }

    /// Maximum number of rows to return.
    pub fn limit(&self) -> Result<usize, RequestError> {
        match self.number("limit")?.unwrap_or(LIMIT) {
            limit if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
            _ => Err(RequestError::field("limit", format!("must be 1 to {LIMIT_MAX}"))),
        }
    }

    /// Requested page of a list that is paged by id.
    pub fn page(&self) -> Result<store::Page, RequestError> {
        Ok(store::Page::After { after: self.number("after")?, limit: self.limit()? })
    }
}

/// Default number of rows per page.
const LIMIT: usize = 50;

/// Maximum number of rows per page.
const LIMIT_MAX: usize = 200;

/// Response for one page of a list.
pub fn page<T, V>(found: store::Paged<T>, view: impl FnMut(T) -> V) -> Page<V> {
    Page {
        items: found.rows.into_iter().map(view).collect(),
        next: found.next.map(|next| next.to_string()),
        total: found.total.map(|total| total.count),
    }
}

/// Converts a time for a response.
pub fn instant(at: Timestamp) -> Instant {
    Instant::from_millis(at.as_millis())
}

#[cfg(test)]
mod tests {
    use super::super::route::Values;
    use super::*;

    #[test]
    fn a_query_has_each_known_parameter_once() {
        let known = [("limit", "", Values::Number(1, 200)), ("after", "", Values::Text)];
        let read = |text: &str| Query::read(text, &known).map(|query| query.limit().ok());
        assert_eq!(read("limit=7&after=").unwrap(), Some(7));
        assert_eq!(read("").unwrap(), Some(50));
        assert!(read("limit=0").unwrap_err().detail().contains("from 1 to 200"));
        assert!(read("limt=7").unwrap_err().detail().contains("limit, after"));
        assert!(read("limit=7&limit=8").is_err());
        assert!(read("limit=").is_err(), "an empty value is no number");
    }
}
