//! Lenient request parsing, as XXL-JOB's clients need it.

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use protocol::xxl::Fields;

use crate::api::browser;

/// Fields of the query, then of a form or multipart body. Bodies of other types are ignored.
pub fn fields(head: &Parts, body: &[u8]) -> Fields {
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let query = form(head.uri.query().unwrap_or_default().as_bytes());
    let said = match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "multipart/form-data" => multipart(kind, body).unwrap_or_default(),
        "application/x-www-form-urlencoded" | "" => form(body),
        _ => Vec::new(),
    };
    query.into_iter().chain(said).take(FIELDS_MAX).collect()
}

fn form(text: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(text)
        .map(|(name, text)| (name.into_owned(), text.into_owned()))
        .take(FIELDS_MAX)
        .collect()
}

/// Text fields of a multipart body. Files are read as text too.
fn multipart(kind: &str, body: &[u8]) -> Option<Vec<(String, String)>> {
    let boundary = parameter(kind, "boundary")?;
    let line = format!("--{boundary}");
    let body = String::from_utf8_lossy(body);
    // The part before the first boundary is a comment; the last boundary is followed by two dashes.
    let parts = body.split(line.as_str()).skip(1).take_while(|part| !part.starts_with("--")).take(FIELDS_MAX);
    Some(parts.filter_map(part).collect())
}

fn part(part: &str) -> Option<(String, String)> {
    let (head, text) = part.split_once("\r\n\r\n")?;
    let is_disposition = |line: &&str| line.to_ascii_lowercase().starts_with("content-disposition:");
    let name = parameter(head.lines().find(is_disposition)?, "name")?;
    Some((name, text.strip_suffix("\r\n").unwrap_or(text).to_owned()))
}

/// Value of a parameter in a header such as `form-data; name="id"`.
fn parameter(header: &str, name: &str) -> Option<String> {
    header.split(';').skip(1).find_map(|parameter| {
        let (known, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        (known.trim().eq_ignore_ascii_case(name) && !value.is_empty()).then(|| value.to_owned())
    })
}

/// Login that created a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// `/login`, up to 3.1.
    Two,
    /// `/auth/doLogin`.
    Three,
}

impl Login {
    /// Name of its cookie.
    pub fn cookie(self) -> &'static str {
        match self {
            Login::Two => "XXL_JOB_LOGIN_IDENTITY",
            Login::Three => "xxl_job_login_token",
        }
    }
}

/// A cookie that may hold one of our sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// Login that sets this cookie.
    pub login: Login,
    /// Session secret.
    pub value: String,
}

/// Finds our cookies among others, or among the attributes of a `Set-Cookie` header that a client sent back
/// unchanged.
pub fn cookies(headers: &HeaderMap) -> Vec<Cookie> {
    let own = browser::cookies(headers, &[';', ',']).filter_map(|(name, value)| {
        let login = [Login::Two, Login::Three].into_iter().find(|login| login.cookie() == name)?;
        Some(Cookie { login, value: value.trim_matches('"').to_owned() })
    });
    own.take(COOKIES_MAX).collect()
}

/// More than any form has.
const FIELDS_MAX: usize = 200;

/// Cookies tried; each is looked up in the database.
const COOKIES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::browser::tests::head;

    #[test]
    fn parameters_come_from_anywhere() {
        let check = |uri: &str, kind: &str, body: &str| {
            let fields = fields(&head(uri, &[("content-type", kind)]), body.as_bytes());
            assert_eq!((fields.get("id"), fields.get("jobDesc")), (Some("7"), Some("a b&c\r\nd")), "{kind}");
        };
        check("/x?id=7&jobDesc=a+b%26c%0D%0Ad", "", "");
        check("/x?id=7", "application/x-www-form-urlencoded; charset=UTF-8", "id=8&jobDesc=a%20b%26c%0D%0Ad");
        let body = "--q\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n7\r\n--q\r\n\
                    content-disposition: form-data; name=\"jobDesc\"\r\nContent-Type: text/plain\r\n\r\na b&c\r\nd\r\n--q--\r\n";
        check("/x", "multipart/form-data; boundary=q", body);
    }

    #[test]
    fn bodies_of_other_kinds_say_nothing() {
        for (kind, body) in [
            ("application/json", r#"{"id":7}"#),
            ("multipart/form-data", "--q\r\n"),
            ("multipart/form-data; boundary=q", "--q\r\nno head"),
            ("application/octet-stream", "id=7"),
        ] {
            assert_eq!(
                fields(&head("/x", &[("content-type", kind)]), body.as_bytes()).get("id"),
                None,
                "{kind}"
            );
        }
    }

    #[test]
    fn cookies_are_found_among_others() {
        let check = |line: &str, expected: &[(Login, &str)]| {
            let found = cookies(&head("/", &[("cookie", line)]).headers);
            let found: Vec<_> = found.iter().map(|cookie| (cookie.login, cookie.value.as_str())).collect();
            assert_eq!(found, expected, "{line}");
        };
        check("XXL_JOB_LOGIN_IDENTITY=ab; Path=/; HttpOnly", &[(Login::Two, "ab")]);
        check("a=b; xxl_job_login_token=cd;JSESSIONID=1", &[(Login::Three, "cd")]);
        check("Path=/; HttpOnly", &[]);
    }
}
