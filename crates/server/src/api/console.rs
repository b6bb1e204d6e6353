//! Web console: files embedded at build time (`build.rs`), and one HTML page for all its URLs.
//!
//! The console routes by URL in the browser, so each of its URLs returns the same page. Files with a content hash
//! in their name never change and are cached forever; the page is revalidated each time, and usually answered with
//! 304.

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::browser;

/// A file of the console.
struct File {
    path: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
    etag: &'static str,
}

/// All files; empty if the console was not built.
const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

/// URLs of the console's pages, from its own table. They do not collide with those of XXL-JOB (`/login`, `/jobinfo/…`,
/// `/user/…`).
const PAGES: &[&str] = include!(concat!(env!("OUT_DIR"), "/console_pages.rs"));

/// Page for people who are not signed in. The console shows it in place of any other, so its table lacks it.
const SIGN_IN: &str = "/sign-in";

/// Routes of the console.
pub fn router() -> Router {
    let page = page();
    let router = PAGES.iter().chain([&SIGN_IN]).fold(Router::new(), |router, path| {
        router.route(path, get(move |headers: HeaderMap| async move { answer(page, &headers) }))
    });
    let router = router.fallback(async |method: Method, headers: HeaderMap| lost(&method, &headers));
    FILES.iter().fold(router, |router, file| {
        router.route(file.path, get(move |headers: HeaderMap| async move { answer(file, &headers) }))
    })
}

fn page() -> &'static File {
    FILES.iter().find(|file| file.path == "/index.html").unwrap_or(&NOTICE)
}

/// The page of the API reference, which is built with the console.
pub fn reference(headers: &HeaderMap) -> Response {
    answer(FILES.iter().find(|file| file.path == "/docs.html").unwrap_or(&REFERENCE_NOTICE), headers)
}

/// 404 for an unknown URL. Browsers get the console's page, which shows the error and a way back.
fn lost(method: &Method, headers: &HeaderMap) -> Response {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match method == Method::GET && accepted.contains("text/html") {
        true => browser::protect((StatusCode::NOT_FOUND, whole(page(), headers)).into_response()),
        false => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Page shown if the console was not built.
const NOTICE: File = File {
    path: "/index.html",
    plain: b"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Tickwright</title>\
             <h1>The scheduling centre is running</h1>\
             <p>This program was built without its web console. To have it, install Node.js 20.19 or later and run \
             <code>make console</code>, then build the program again.</p>\
             <p>Everything can be done by the <a href=\"/v1/docs\">API</a>, too.</p>",
    brotli: None,
    gzip: None,
    etag: "\"notice\"",
};

/// API reference if the console was not built.
const REFERENCE_NOTICE: File = File {
    path: "/docs.html",
    plain: b"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>API - Tickwright</title>\
             <h1>Tickwright API</h1>\
             <p>This program was built without its web console, which contains the API reference. Any tool for OpenAPI \
             can show the description: <a href=\"/v1/openapi.json\">/v1/openapi.json</a></p>",
    brotli: None,
    gzip: None,
    etag: "\"reference-notice\"",
};

fn answer(file: &'static File, headers: &HeaderMap) -> Response {
    let sent = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let known = sent.split(',').any(|tag| tag.trim().trim_start_matches("W/") == file.etag);
    let mut response = if known { StatusCode::NOT_MODIFIED.into_response() } else { whole(file, headers) };
    let keep =
        if file.path.starts_with("/assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    let fixed = [(header::ETAG, file.etag), (header::CACHE_CONTROL, keep), (header::VARY, "accept-encoding")];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    browser::protect(response)
}

fn whole(file: &'static File, headers: &HeaderMap) -> Response {
    let packed = file.brotli.filter(|_| takes(headers, "br")).map(|body| (body, "br"));
    let packed = packed.or_else(|| file.gzip.filter(|_| takes(headers, "gzip")).map(|body| (body, "gzip")));
    let kind = [(header::CONTENT_TYPE, kind(file.path))];
    match packed {
        Some((body, encoding)) => (kind, [(header::CONTENT_ENCODING, encoding)], body).into_response(),
        None => (kind, file.plain).into_response(),
    }
}

/// Whether a client accepts an encoding; one with a weight of zero is not accepted.
fn takes(headers: &HeaderMap, encoding: &str) -> bool {
    let accepted =
        headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let refused = weight.trim().strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case(encoding) && !refused
    })
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        Some("woff") => "font/woff",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: File = File {
        path: "/assets/index-abc.js",
        plain: b"plain",
        brotli: Some(b"brotli"),
        gzip: Some(b"gzip"),
        etag: "\"e1\"",
    };

    fn asked(headers: &[(header::HeaderName, &'static str)]) -> Response {
        let pairs = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        answer(&SCRIPT, &pairs.collect())
    }

    fn encoding(response: &Response) -> Option<&str> {
        response.headers().get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok())
    }

    #[test]
    fn a_file_is_sent_as_small_as_the_client_takes_it() {
        let check = |accepted, expected| {
            assert_eq!(encoding(&asked(&[(header::ACCEPT_ENCODING, accepted)])), expected, "{accepted}");
        };
        check("gzip, deflate, br, zstd", Some("br"));
        check("gzip", Some("gzip"));
        check("br;q=0, gzip;q=0.5", Some("gzip"));
        check("identity", None);
        assert_eq!(encoding(&asked(&[])), None);
    }

    #[test]
    fn who_has_the_file_already_gets_no_second_one() {
        assert_eq!(asked(&[(header::IF_NONE_MATCH, "\"e0\", W/\"e1\"")]).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(asked(&[(header::IF_NONE_MATCH, "\"e2\"")]).status(), StatusCode::OK);
    }

    #[test]
    fn hashed_files_are_kept_for_ever_and_bring_no_foreign_script() {
        let response = asked(&[]);
        assert!(response.headers()[header::CACHE_CONTROL].to_str().unwrap().contains("immutable"));
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
    }

    #[test]
    fn the_console_has_a_page_for_each_of_its_addresses_even_if_it_was_not_built() {
        assert!(page().plain.starts_with(b"<!doctype html>"));
    }

    #[test]
    fn the_console_s_own_table_names_its_pages() {
        for page in ["/", "/jobs", "/jobs/new", "/jobs/{id}", "/jobs/{id}/edit", "/runs/{id}", "/about"] {
            assert!(PAGES.contains(&page), "{page} is not in {PAGES:?}");
        }
    }

    #[test]
    fn people_who_are_lost_are_shown_the_way_back_and_programs_get_a_code() {
        let check = |method: Method, accepted: &'static str, is_page: bool| {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accepted))]);
            let response = lost(&method, &headers);
            assert_eq!(response.status(), StatusCode::NOT_FOUND);
            let kind = response.headers().get(header::CONTENT_TYPE);
            assert_eq!(kind.is_some_and(|kind| kind == "text/html; charset=utf-8"), is_page, "{accepted}");
        };
        check(Method::GET, "text/html,application/xhtml+xml,*/*;q=0.8", true);
        check(Method::GET, "*/*", false);
        check(Method::POST, "text/html", false);
    }
}
