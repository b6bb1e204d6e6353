//! Parses the job parameter of the HTTP handler.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName,
    HeaderValue, TRANSFER_ENCODING,
};
use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use url::{Url, form_urlencoded};

/// A validated HTTP call.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub url: Url,
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub timeout: Duration,
    /// Whether the run has status and body of the response as its output.
    pub output: bool,
    status: Vec<u16>,
}

impl Parameter {
    /// Parses JSON, or the older format with lines.
    pub fn read(param: &str) -> Result<Parameter, String> {
        let param = param.trim();
        let written = if param.starts_with('{') {
            serde_json::from_str(param).map_err(|error| format!("invalid parameter: {error}"))?
        } else {
            Written::from_lines(param)?
        };
        written.understand()
    }

    /// Whether this status means success.
    pub fn expects(&self, status: StatusCode) -> bool {
        if self.status.is_empty() { status.is_success() } else { self.status.contains(&status.as_u16()) }
    }

    /// The expected statuses as text, for messages.
    pub fn expected(&self) -> String {
        if self.status.is_empty() {
            return "2xx".to_owned();
        }
        self.status.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ")
    }
}

/// The parameter as written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    url: String,
    method: Option<String>,
    headers: BTreeMap<String, Value>,
    cookies: BTreeMap<String, String>,
    content_type: Option<String>,
    #[serde(alias = "data")]
    body: Option<Value>,
    form: Option<BTreeMap<String, String>>,
    auth: Option<Auth>,
    timeout: Option<u64>,
    status: Option<Statuses>,
    output: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Auth {
    Verbatim(String),
    Basic { user: String, password: String },
    Bearer { bearer: String },
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Statuses {
    One(u16),
    Several(Vec<u16>),
}

impl Written {
    fn from_lines(param: &str) -> Result<Written, String> {
        let mut written = Written::default();
        for line in param.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.trim();
            match name.trim() {
                "url" => written.url = value.to_owned(),
                "method" => written.method = Some(value.to_owned()),
                "data" => written.body = Some(value.into()),
                other => return Err(format!("unknown field `{other}`; {USAGE}")),
            }
        }
        Ok(written)
    }

    fn understand(self) -> Result<Parameter, String> {
        if self.url.is_empty() {
            return Err(format!("missing URL; {USAGE}"));
        }
        let url = Url::parse(&self.url).map_err(|error| format!("`{}` is not a URL: {error}", self.url))?;
        let method = self.method.as_deref().unwrap_or("POST").to_ascii_uppercase();
        let method =
            Method::from_bytes(method.as_bytes()).map_err(|_| format!("`{method}` is not an HTTP method"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let value = match value {
                Value::String(text) => text.clone(),
                // A step of a workflow may have rendered it from an output.
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                _ => return Err(format!("the header `{name}` is neither a text nor a number")),
            };
            put(&mut headers, name, &value)?;
        }
        if !self.cookies.is_empty() {
            let cookies: Vec<_> =
                self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            put(&mut headers, COOKIE.as_str(), &cookies.join("; "))?;
        }
        if let Some(auth) = &self.auth {
            put(&mut headers, AUTHORIZATION.as_str(), &auth.header())?;
        }
        let (body, kind) = match (self.body, self.form) {
            (Some(_), Some(_)) => {
                return Err("the parameter has a body and a form; use one of them".to_owned());
            }
            (None, None) => (Vec::new(), None),
            (Some(Value::String(text)), None) => (text.into_bytes(), Some("application/json")),
            (Some(json), None) => (json.to_string().into_bytes(), Some("application/json")),
            (None, Some(form)) => {
                let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
                (form.into_bytes(), Some("application/x-www-form-urlencoded"))
            }
        };
        if let Some(kind) = self.content_type.as_deref().or(kind)
            && !headers.contains_key(CONTENT_TYPE)
        {
            put(&mut headers, CONTENT_TYPE.as_str(), kind)?;
        }
        let timeout = self.timeout.filter(|millis| *millis > 0).map_or(TIMEOUT, Duration::from_millis);
        let status = match self.status {
            None => Vec::new(),
            Some(Statuses::One(status)) => vec![status],
            Some(Statuses::Several(statuses)) => statuses,
        };
        Ok(Parameter { url, method, headers, body, timeout, output: self.output, status })
    }
}

const USAGE: &str = r#"use for example `{"url": "https://example.com/", "method": "GET"}`"#;
/// The same as in XXL-JOB's own handler.
const TIMEOUT: Duration = Duration::from_secs(3);

impl Auth {
    fn header(&self) -> String {
        match self {
            Auth::Verbatim(value) => value.clone(),
            Auth::Basic { user, password } => {
                format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")))
            }
            Auth::Bearer { bearer } => format!("Bearer {bearer}"),
        }
    }
}

fn put(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), String> {
    let known =
        HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is not a header name"))?;
    // They determine the target and the framing of the request, which a job must not choose.
    if [HOST, CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION].contains(&known) {
        return Err(format!("the header `{name}` must not be set"));
    }
    let value = HeaderValue::from_str(value)
        .map_err(|_| format!("the header `{name}` contains an invalid character"))?;
    headers.insert(known, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_written_is_understood() {
        let parameter = Parameter::read(
            r#"{"url": "http://x/a", "method": "put", "headers": {"X-A": "1"}, "cookies": {"a": "b", "c": "d"},
                "data": {"k": [1]}, "auth": {"user": "u", "password": "p"}, "timeout": 50, "status": [201, 204]}"#,
        )
        .unwrap();
        assert_eq!((parameter.method, parameter.url.as_str()), (Method::PUT, "http://x/a"));
        assert_eq!(parameter.body, br#"{"k":[1]}"#);
        assert_eq!(parameter.timeout, Duration::from_millis(50));
        for (name, value) in [
            ("x-a", "1"),
            ("cookie", "a=b; c=d"),
            ("authorization", "Basic dTpw"),
            ("content-type", "application/json"),
        ] {
            assert_eq!(parameter.headers[name], value);
        }
        check(r#"{"url":"http://x","form":{"a":"b c","d":"&"}}"#, "POST", "a=b+c&d=%26");
        check(r#"{"url":"http://x","data":"as it is"}"#, "POST", "as it is");
        check(r#"{"url":"http://x","method":"GET"}"#, "GET", "");
        check("url: http://x/\nmethod: get\ndata: a:b\n", "GET", "a:b");
        check("url:http://x/", "POST", "");
    }

    #[test]
    fn statuses_are_a_number_several_or_those_of_success() {
        let expects = |status: &str, code: u16| {
            let parameter = Parameter::read(&format!(r#"{{"url":"http://x"{status}}}"#)).unwrap();
            parameter.expects(StatusCode::from_u16(code).unwrap())
        };
        assert!(expects("", 204) && !expects("", 302) && !expects("", 500));
        assert!(expects(r#","status":404"#, 404) && !expects(r#","status":404"#, 200));
        assert!(expects(r#","status":[200,304]"#, 304));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (wrong, why) in [
            ("", "missing URL"),
            ("{}", "missing URL"),
            ("http://x", "unknown field `http`"),
            (r#"{"url":"nowhere"}"#, "is not a URL"),
            (r#"{"url":"http://x","metod":"GET"}"#, "unknown field `metod`"),
            (r#"{"url":"http://x","method":"G T"}"#, "is not an HTTP method"),
            (r#"{"url":"http://x","headers":{"Host":"y"}}"#, "the header `Host` must not be set"),
            (r#"{"url":"http://x","headers":{"a b":"y"}}"#, "is not a header name"),
            (r#"{"url":"http://x","headers":{"a":"y\r\nb: c"}}"#, "contains an invalid character"),
            (r#"{"url":"http://x","data":"a","form":{}}"#, "use one of them"),
        ] {
            let error = Parameter::read(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    fn check(param: &str, method: &str, body: &str) {
        let parameter = Parameter::read(param).unwrap();
        assert_eq!(
            (parameter.method.as_str(), parameter.body.as_slice()),
            (method, body.as_bytes()),
            "{param}"
        );
    }
}
