//! Browser security: origin checks for requests, protective headers for responses.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;

use crate::http;

/// Whether a browser sent the request for a page of another site. Scripts do not send these headers.
pub fn is_cross_site(head: &Parts) -> bool {
    let text = |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"));
    let fetched = text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let foreign = text("origin").is_some_and(|origin| {
        let Some((scheme, site)) = origin.split_once("://") else { return true };
        // A page loaded without encryption can have been changed by anyone on the network. The opposite case is
        // fine: a proxy in front of the node may have added the encryption.
        let is_weaker = http::caller(head).secure && scheme != "https";
        is_weaker || !matches!(scheme, "http" | "https") || Some(site) != text("host")
    });
    fetched || foreign
}

/// Whether a page in a browser sent the request, of any site.
pub fn is_from_page(head: &Parts) -> bool {
    head.headers.contains_key(header::ORIGIN) || head.headers.contains_key("sec-fetch-site")
}

/// Whether a browser declares that a page of ours sent the request. Without such a header the answer is no.
pub fn is_own_page(head: &Parts) -> bool {
    let says = ["sec-fetch-site", "origin"].iter().any(|name| head.headers.contains_key(*name));
    says && !is_cross_site(head) && head.headers.get("sec-fetch-site").is_none_or(|site| site != "none")
}

/// Whether a browser sent the request: all of them start their `User-Agent` with `Mozilla/`, and no page can
/// remove that.
pub fn is_browser(head: &Parts) -> bool {
    agent(head).starts_with("Mozilla/")
}

/// `User-Agent` of the client.
pub fn agent(head: &Parts) -> &str {
    head.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default()
}

/// Cookies of a request: name and value. There may be several of the same name, set for different paths. `separators`
/// are the characters between them.
pub fn cookies<'a>(
    headers: &'a HeaderMap,
    separators: &'static [char],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(move |line| line.split(separators)).filter_map(|pair| pair.trim().split_once('='))
}

/// Adds headers that allow only our own scripts, forbid framing and send no referrer.
pub fn protect(mut response: Response) -> Response {
    for (name, value) in PROTECTION {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

const PROTECTION: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
         connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

#[cfg(test)]
pub mod tests {
    use super::*;
    use axum::http::Request;

    /// Head of a request.
    pub fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let request = Request::builder().uri(uri);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn pages_of_other_sites_are_recognised() {
        let check = |headers: &[(&str, &str)], cross| {
            let headers: Vec<_> = [("host", "centre:8080")].iter().chain(headers).copied().collect();
            assert_eq!(is_cross_site(&head("/", &headers)), cross, "{headers:?}");
        };
        check(&[], false);
        check(&[("origin", "http://centre:8080")], false);
        check(&[("origin", "http://evil:8080")], true);
        check(&[("origin", "null")], true);
        check(&[("sec-fetch-site", "cross-site")], true);
        check(&[("sec-fetch-site", "same-site")], true);
        check(&[("sec-fetch-site", "same-origin"), ("origin", "http://centre:8080")], false);
        check(&[("sec-fetch-site", "none")], false);
        check(&[("origin", "https://centre:8080")], false);
        check(&[("origin", "ftp://centre:8080")], true);
    }

    #[test]
    fn a_page_that_came_without_encryption_is_another_site_to_one_that_did() {
        let check = |origin: &str, cross| {
            let mut head = head("/", &[("host", "centre"), ("origin", origin)]);
            head.extensions.insert(http::Caller { ip: [10, 0, 0, 1].into(), secure: true });
            assert_eq!(is_cross_site(&head), cross, "{origin}");
        };
        check("https://centre", false);
        check("http://centre", true);
    }

    #[test]
    fn a_page_of_ours_says_so_itself() {
        let check = |headers: &[(&str, &str)], own| {
            let headers: Vec<_> = [("host", "centre:8080")].iter().chain(headers).copied().collect();
            assert_eq!(is_own_page(&head("/", &headers)), own, "{headers:?}");
        };
        check(&[], false);
        check(&[("sec-fetch-site", "same-origin")], true);
        check(&[("origin", "http://centre:8080")], true);
        check(&[("sec-fetch-site", "none")], false);
        check(&[("sec-fetch-site", "same-origin"), ("origin", "http://evil")], false);
    }
}
