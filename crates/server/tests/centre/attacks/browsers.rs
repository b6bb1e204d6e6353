//! Pages of other sites that make a user's browser send changes (CSRF).

use serde_json::json;
use tickwright_server::{RouteLine, routes, web_routes};

use super::evidence::Evidence;
use crate::kit::Bench;
use crate::script::{NEW, OLD, job_form};
use crate::v1::client::Client;

/// A browser with a session of the administrator: its cookie, and the token that only our own pages know.
async fn browser(bench: &Bench) -> (Client<'_>, String) {
    let sign_in = json!({ "user": bench.admin.name, "password": bench.admin.password });
    let page = bench.nobody().with("Sec-Fetch-Site: same-origin");
    let reply = page.send("POST", "/v1/session", &sign_in).await;
    let cookie = reply.header("set-cookie")[0].split(';').next().unwrap().to_owned();
    let token = reply.json()["csrf"].as_str().unwrap().to_owned();
    (bench.nobody().with(&format!("Cookie: {cookie}")), token)
}

/// Returns a path with the names of existing objects.
fn path(route: &RouteLine, bench: &Bench) -> String {
    [("{app}", bench.app.as_str()), ("{job}", "victim"), ("{run}", "1"), ("{name}", "admin"), ("{id}", "1")]
        .iter()
        .fold(route.path.to_owned(), |path, (name, value)| path.replace(name, value))
}

/// X17 (CVE-2020-24922, CVE-2022-29002, CVE-2023-0674, CVE-2026-26718, CVE-2026-106708): every change that `/v1` can
/// make, requested with a user's cookie but without the token that only our own pages send.
#[tokio::test]
async fn a_cookie_alone_changes_nothing_on_any_path() {
    let bench = Bench::start().await;
    let body = json!({ "app": bench.app, "name": "Victim", "handler": "x", "schedule": { "kind": "none" } });
    bench.admin().await.done("PUT", "/v1/jobs/victim", &body).await;
    let (cookie, token) = browser(&bench).await;
    let (_, other) = browser(&bench).await;
    let token = format!("Tickwright-Csrf: {token}");
    let whole = cookie.with("Sec-Fetch-Site: same-origin").with(&token);
    let lacking = [
        cookie.clone(),
        cookie.with("Sec-Fetch-Site: same-origin"),
        cookie.with("Sec-Fetch-Site: same-origin").with("Tickwright-Csrf: 0"),
        cookie.with("Sec-Fetch-Site: same-origin").with(&format!("Tickwright-Csrf: {other}")),
        cookie.with(&token),
        cookie.with(&token).with("Sec-Fetch-Site: cross-site"),
        cookie.with(&token).with("Sec-Fetch-Site: same-site"),
        cookie.with(&token).with("Sec-Fetch-Site: none"),
        cookie.with(&token).with("Origin: http://evil.example"),
        cookie.with(&token).with("Origin: null"),
        cookie.with(&token).with("Sec-Fetch-Site: same-origin").with("Origin: http://centre.evil.example"),
    ];
    let table = routes();
    let before = Evidence::before(&bench).await;
    let mut attempts = 0;
    for route in table.iter().filter(|route| route.method != "GET") {
        let path = path(route, &bench);
        if !table.iter().any(|other| other.path == route.path && other.method == "GET") {
            assert_eq!(whole.send("GET", &path, &json!({})).await.status, 405, "{path}");
        }
        // A sign-in has no session yet, so only the origin of the request can be checked.
        let lacking = lacking.iter().filter(|client| {
            route.plane != "open" || client.headers.contains("-site") || client.headers.contains("Origin: ")
        });
        for client in lacking {
            let reply = client.send(route.method, &path, &json!({})).await;
            let problem = reply.json()["code"].clone();
            assert_eq!(
                (reply.status, problem.as_str()),
                (403, Some("foreign_origin")),
                "{path} {}",
                client.headers
            );
            attempts += 1;
        }
        // Content types that a form can send without a preflight request.
        for kind in ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"] {
            let reply = whole.send_as(kind, route.method, &path, "{}").await;
            assert_eq!(
                (reply.status, reply.json()["code"].as_str()),
                (400, Some("malformed_request")),
                "{path} {kind}"
            );
            attempts += 1;
        }
    }
    // The schedule preview is a POST that changes nothing, so it is not audited; unauthenticated calls are audited
    // up to a limit.
    before.refused(attempts - 2 * (lacking.len() + 3));
    bench.stop().await;
}

/// X17 for XXL-JOB's web API. Scripts have no token to send, so this API relies on browser headers: the cookie is
/// limited to our own site, and a browser's request from a page of another site is rejected, and so is any change by
/// GET.
#[tokio::test]
async fn pages_of_other_sites_reach_no_path_of_the_web_api() {
    let bench = Bench::start().await;
    for login in [OLD, NEW] {
        let script = bench.admin_script(login).await;
        let cookie = format!("Cookie: {}\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n", script.cookie);
        let form =
            job_form(&[("id", "1"), ("username", "evil"), ("password", "correct horse"), ("role", "1")]);
        let before = Evidence::before(&bench).await;
        for route in web_routes() {
            let foreign = [
                "Origin: http://evil.example",
                "Origin: http://centre.evil.example",
                "Origin: null",
                "Sec-Fetch-Site: cross-site",
                "Sec-Fetch-Site: same-site",
            ];
            for from in foreign {
                let headers = format!("{cookie}{from}\r\n");
                for method in if route.method == "POST" { &["POST"][..] } else { &["GET", "POST"] } {
                    let reply = bench.request(method, route.path, &headers, &form).await;
                    assert_eq!(reply.status, 403, "{method} {} {from}", route.path);
                }
                for kind in ["text/plain", "multipart/form-data; boundary=x", "application/json"] {
                    let request = format!(
                        "POST {} HTTP/1.1\r\nHost: centre\r\n{headers}Content-Type: {kind}\r\nContent-Length: 2\r\n\
                         Connection: close\r\n\r\n{{}}",
                        route.path
                    );
                    assert_eq!(bench.exchange(request.as_bytes()).await.status, 403, "{kind} {}", route.path);
                }
            }
            if route.changes {
                for method in ["GET", "HEAD", "PUT"] {
                    let reply = bench.request(method, route.path, &cookie, &form).await;
                    assert_eq!(reply.status, 405, "{method} {}", route.path);
                }
            }
        }
        // A flood of these is counted, not audited one by one.
        before.refused(if login == OLD { 20 } else { 0 });
        assert_eq!(script.page("/user/pageList", &[]).await.1, 1, "the session itself works on");
    }
    bench.stop().await;
}
