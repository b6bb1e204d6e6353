//! Allowlist of URLs.
//!
//! URLs are compared part by part after they were parsed as a browser does, so no text that only looks like an
//! allowed URL passes.

use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

/// An entry of the allowlist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// URLs that begin with this one.
    Prefix(Url),
    /// URLs on this host, on any port unless one is given; `http` or `https`.
    Host(Host<String>, Option<u16>),
}

/// The entry cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid URL or host `{0}`; use for example `https://example.com/path/` or `example.com`")]
pub struct UrlError(String);

impl Allowed {
    pub fn permits(&self, url: &Url) -> bool {
        if !is_plain(url) {
            return false;
        }
        match self {
            Allowed::Prefix(prefix) => {
                url.origin() == prefix.origin() && begins_with(url.path(), prefix.path())
            }
            Allowed::Host(host, port) => {
                url.host().is_some_and(|found| found == *host)
                    && match port {
                        Some(port) => url.port_or_known_default() == Some(*port),
                        None => url.port().is_none(),
                    }
            }
        }
    }

    pub fn includes_https(&self) -> bool {
        match self {
            Allowed::Prefix(prefix) => prefix.scheme() == "https",
            Allowed::Host(..) => true,
        }
    }
}

/// Whether the scheme is allowed and there is no user name, which is used to disguise the real host.
fn is_plain(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none()
}

/// Compares whole segments. Encoded separators are rejected, because servers interpret them differently.
fn begins_with(path: &str, prefix: &str) -> bool {
    let prefix = prefix.trim_end_matches('/');
    if prefix.is_empty() {
        return true;
    }
    let path_lower = path.to_ascii_lowercase();
    if ["%2f", "%5c", "%2e", "%25"].iter().any(|hidden| path_lower.contains(hidden)) {
        return false;
    }
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl FromStr for Allowed {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Allowed, UrlError> {
        let wrong = || UrlError(text.to_owned());
        if text.contains("://") {
            let url = Url::parse(text).map_err(|_| wrong())?;
            let is_prefix = is_plain(&url) && url.query().is_none() && url.fragment().is_none();
            return if is_prefix { Ok(Allowed::Prefix(url)) } else { Err(wrong()) };
        }
        if text.is_empty() || text.contains(['/', '@', '?', '#', '\\']) || text.contains(char::is_whitespace)
        {
            return Err(wrong());
        }
        let url = Url::parse(&format!("http://{text}/")).map_err(|_| wrong())?;
        let host = url.host().ok_or_else(wrong)?.to_owned();
        // The parser omits port 80 even if it is given.
        let port = url.port().or_else(|| text.ends_with(":80").then_some(80));
        Ok(Allowed::Host(host, port))
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::Prefix(prefix) => write!(f, "{prefix}"),
            Allowed::Host(host, None) => write!(f, "{host}"),
            Allowed::Host(host, Some(port)) => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_permits_what_is_below_it_and_nothing_that_looks_so() {
        let check = |url: &str, permitted: bool| check("https://good.example/api/", url, permitted);
        check("https://good.example/api", true);
        check("https://good.example/api/users?x=http://evil", true);
        check("https://GOOD.example:443/api/x", true);
        check("https://good.example/api/a/../b", true);
        for wrong in [
            "https://good.example/",
            "https://good.example/apis",
            "https://good.example/API/x",
            "https://good.example/api/../admin",
            "https://good.example/api/%2e%2e/admin",
            "https://good.example/api/..%2fadmin",
            "https://good.example/api/..%252fadmin",
            "https://good.example/api/..\\admin",
            "http://good.example/api/",
            "https://good.example:8443/api/",
            "https://good.example.evil/api/",
            "https://evil/api/?https://good.example/api/",
            "https://good.example@evil/api/",
            "https://user@good.example/api/",
            "https://evil#@good.example/api/",
            "ftp://good.example/api/",
            "file:///api/",
        ] {
            check(wrong, false);
        }
    }

    #[test]
    fn a_host_permits_all_its_paths() {
        check("good.example", "https://good.example/x", true);
        check("good.example", "http://good.example/", true);
        check("good.example", "http://good.example:8080/", false);
        check("good.example", "http://sub.good.example/", false);
        check("good.example:8080", "http://good.example:8080/x", true);
        check("good.example:8080", "http://good.example/x", false);
        check("good.example:80", "http://good.example/x", true);
        check("good.example:80", "https://good.example/x", false);
        check("127.0.0.1:8080", "http://127.0.0.1:8080/", true);
        check("127.0.0.1:8080", "http://0x7f.1:8080/", true);
        check("127.0.0.1", "http://169.254.169.254/", false);
        check("[::1]:8080", "http://[::1]:8080/", true);
        check("http://127.0.0.1:8080", "http://127.0.0.1:8080/any", true);
    }

    #[test]
    fn what_is_no_url_is_not_allowed() {
        for wrong in
            ["", "/api", "ftp://x", "https://", "https://u@x/", "https://x/?q", "x/y", "u@x", "a b", "*"]
        {
            // `*` is parsed as a host name and allows no URL.
            assert!(wrong == "*" || wrong.parse::<Allowed>().is_err(), "{wrong}");
        }
    }

    fn check(allowed: &str, url: &str, permitted: bool) {
        let allowed: Allowed = allowed.parse().unwrap();
        assert_eq!(allowed.permits(&url.parse().unwrap()), permitted, "{allowed} and {url}");
    }
}
