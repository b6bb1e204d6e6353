//! DNS rebinding, and security headers of every answer.

use serde_json::{Value, json};

use crate::kit::Bench;
use crate::script::Reply;

async fn ask(bench: &Bench, method: &str, path: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    bench.exchange(request.as_bytes()).await
}

/// A page of another site reaches nothing, even if its name resolves to the server: browsers send that name in `Host`.
#[tokio::test]
async fn a_name_that_is_not_the_centre_s_reaches_nothing() {
    let bench = Bench::start_with(|settings| {
        settings.allow_no_token = true;
        settings.hostnames = vec!["centre.example.com".into()];
    })
    .await;
    let paths = ["/", "/metrics", "/healthz", "/v1/about", "/v1/docs", "/api/registry", "/login", "/nothing"];
    for path in paths {
        for method in ["GET", "POST"] {
            let reply = ask(&bench, method, path, "Host: evil.example:8080\r\n", "").await;
            assert_eq!(reply.status, 421, "{method} {path}: {reply:?}");
            let twice = ask(&bench, method, path, "Host: localhost\r\nHost: evil.example\r\n", "").await;
            assert_eq!(twice.status, 400, "{method} {path}: {twice:?}");
            for host in ["localhost:8080", "127.0.0.1", "[::1]:8080", "CENTRE.example.com:8443"] {
                let reply = ask(&bench, method, path, &format!("Host: {host}\r\n"), "").await;
                assert!(![400, 421].contains(&reply.status), "{method} {path} {host}: {reply:?}");
            }
        }
    }
    bench.stop().await;
}

#[tokio::test]
async fn where_no_names_are_set_a_centre_on_loopback_is_reached_by_none() {
    let bench = Bench::start_with(|settings| settings.hostnames = Vec::new()).await;
    for (host, status) in [("evil.example", 421), ("localhost", 200), ("127.0.0.1:8080", 200)] {
        assert_eq!(
            ask(&bench, "GET", "/healthz", &format!("Host: {host}\r\n"), "").await.status,
            status,
            "{host}"
        );
    }
    bench.stop().await;
}

/// A proxy decides which names it serves.
#[tokio::test]
async fn a_proxy_in_front_may_use_any_name_unless_names_are_set() {
    for (names, status) in [(vec![], 200), (vec!["centre.example.com".to_owned()], 421)] {
        let bench = Bench::start_with(|settings| {
            settings.proxies = vec!["127.0.0.0/8".parse().unwrap()];
            settings.hostnames = names;
        })
        .await;
        assert_eq!(ask(&bench, "GET", "/healthz", "Host: other.example.com\r\n", "").await.status, status);
        assert_eq!(ask(&bench, "GET", "/healthz", "Host: centre.example.com\r\n", "").await.status, 200);
        bench.stop().await;
    }
}

/// Executors are not browsers: a page of any site cannot use the executor API, even if no token is needed.
#[tokio::test]
async fn pages_do_not_reach_the_executor_api() {
    let bench = Bench::start_with(|settings| settings.allow_no_token = true).await;
    let body = json!({ "registryGroup": "EXECUTOR", "registryKey": "planted", "registryValue": "http://127.0.0.1:9/" });
    for line in [
        "Origin: http://localhost",
        "Origin: null",
        "Sec-Fetch-Site: same-origin",
        "Sec-Fetch-Site: cross-site",
    ] {
        let headers = format!("Host: localhost\r\n{line}\r\n");
        let reply = ask(&bench, "POST", "/api/registry", &headers, &body.to_string()).await;
        assert_eq!(reply.status, 403, "{line}: {reply:?}");
    }
    // Node.js libraries send this header.
    let reply = ask(
        &bench,
        "POST",
        "/api/registry",
        "Host: localhost\r\nSec-Fetch-Mode: cors\r\n",
        &body.to_string(),
    )
    .await;
    assert_eq!(reply.json()["code"], 200, "{reply:?}");
    bench.stop().await;
}

/// For every answer, browsers neither guess its type, nor run code in it, nor cache it.
#[tokio::test]
async fn every_answer_tells_browsers_how_to_treat_it() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let script = bench.admin_script(crate::script::OLD).await;
    let mut replies = Vec::new();
    for path in [
        "/",
        "/sign-in",
        "/nothing",
        "/healthz",
        "/readyz",
        "/actuator/health",
        "/metrics",
        "/api",
        "/api/registry",
        "/v1",
        "/v1/nothing",
        "/v1/jobs",
        "/v1/docs",
        "/v1/openapi.json",
        "/errors/not_found",
        "/toLogin",
        "/jobinfo/pageList",
        "/auth/login",
        "/chartInfo",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            replies.push((format!("{method} {path}"), bench.nobody().send(method, path, &Value::Null).await));
        }
    }
    for path in ["/v1/jobs", "/v1/me", "/v1/audit", "/v1/nodes"] {
        replies.push((path.into(), admin.send("GET", path, &Value::Null).await));
    }
    for path in ["/jobinfo/pageList", "/chartInfo", "/user/pageList", "/joblog/pageList"] {
        replies.push((path.into(), script.send("POST", path, &[]).await));
    }
    replies.push(("wrong host".into(), ask(&bench, "GET", "/", "Host: evil.example\r\n", "").await));
    replies
        .push(("executor".into(), ask(&bench, "POST", "/api/callback", "Host: localhost\r\n", "[]").await));
    for (what, reply) in replies {
        assert_eq!(reply.header("x-content-type-options"), ["nosniff"], "{what}: {reply:?}");
        assert!(
            reply.header("content-security-policy")[0].starts_with("default-src 'none'"),
            "{what}: {reply:?}"
        );
        let [cache] = reply.header("cache-control")[..] else { panic!("{what}: {reply:?}") };
        assert!(["no-store", "no-cache"].contains(&cache), "{what}: {reply:?}");
        let is_console =
            reply.header("content-type").first().is_some_and(|kind| kind.starts_with("text/html"));
        assert!(cache == "no-store" || is_console, "{what}: {reply:?}");
    }
    bench.stop().await;
}
