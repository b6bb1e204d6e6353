//! Answers that disclose more than they should.

use serde_json::{Value, json};
use store::Rights;
use tickwright_server::{routes, web_routes};

use crate::kit::{Bench, echo};
use crate::script::{NEW, OLD};
use crate::v1::client::body;

/// X13 (CVE-2023-27087): no GET shows a password, its hash, a session, a key or a token to any caller.
#[tokio::test]
async fn no_answer_shows_a_secret() {
    let bench = Bench::start().await;
    let _executor = bench.executor(vec![echo()]).await;
    let admin = bench.admin().await;
    admin.done("PUT", "/v1/jobs/planted", &body(&bench.app, "planted")).await;
    let run = admin.post("/v1/jobs/planted/trigger", &Value::Null).await["run"].to_string();
    let token = admin.post(&format!("/v1/apps/{}/tokens", bench.app), &Value::Null).await;
    let key = admin.post("/v1/keys", &json!({ "name": "planted", "rights": ["view"] })).await;
    let member = bench.person("member", Rights::MEMBER).await;
    let scripts = [bench.admin_script(OLD).await, bench.admin_script(NEW).await];
    let user = bench.database.user_by_name("admin").await.unwrap().unwrap();
    let sessions = bench.database.sessions_of(user.id).await.unwrap();
    let bearer = |headers: &str| headers.trim().rsplit(' ').next().unwrap().to_owned();
    let mut secrets = vec![
        bench.token.clone(),
        token["token"].as_str().unwrap().to_owned(),
        key["key"].as_str().unwrap().to_owned(),
        bench.admin.password.clone(),
        "$argon2".into(),
        bearer(&admin.headers),
        bearer(&member.headers),
    ];
    secrets.extend(sessions.into_iter().map(|session| session.digest));
    secrets.extend(scripts.iter().map(|script| script.cookie.split_once('=').unwrap().1.to_owned()));
    let check = |path: &str, said: &str| {
        for secret in &secrets {
            assert!(!said.contains(secret.as_str()), "{path} shows {secret}: {said}");
        }
    };
    for route in routes().iter().filter(|route| route.method == "GET") {
        // Endless answers are made of the same parts as the others.
        if route.path == "/v1/events" || route.path.ends_with("/live") {
            continue;
        }
        let names =
            [("{app}", bench.app.as_str()), ("{job}", "planted"), ("{run}", &run), ("{name}", "admin")];
        let path = names.iter().fold(route.path.to_owned(), |path, (name, value)| path.replace(name, value));
        for client in [&admin, &member, &bench.nobody()] {
            let reply = client.send("GET", &path, &Value::Null).await;
            check(&path, &format!("{} {}", reply.head, reply.body));
        }
    }
    for script in &scripts {
        for route in web_routes().iter().filter(|route| !route.changes) {
            let form = [("id", "1"), ("logId", run.as_str()), ("jobGroup", "1"), ("cron", "0 0 2 * * ?")];
            let reply = script.send("POST", route.path, &form).await;
            check(route.path, &format!("{} {}", reply.head, reply.body));
        }
    }
    for path in OPEN {
        check(path, &bench.request("GET", path, "", &[]).await.body);
    }
    bench.stop().await;
}

/// Paths open to every caller.
const OPEN: [&str; 8] = [
    "/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/actuator/health",
    "/v1/openapi.json",
    "/v1/docs",
    "/errors/not_found",
];

/// X30 (CVE-2023-48796): paths for machines disclose nothing about this machine, and no other path is open.
#[tokio::test]
async fn doors_for_machines_tell_nothing_of_this_one() {
    let bench = Bench::start().await;
    let folder = bench.folder.display().to_string();
    for path in OPEN {
        let reply = bench.request("GET", path, "", &[]).await;
        assert_eq!(reply.status, 200, "{path}");
        for private in [folder.as_str(), "centre.db", &bench.admin.password, &bench.token, "/home/"] {
            assert!(!reply.body.contains(private), "{path} shows {private}");
        }
    }
    for path in [
        "/actuator",
        "/actuator/env",
        "/actuator/heapdump",
        "/actuator/configprops",
        "/debug/pprof/",
        "/debug/vars",
        "/.env",
        "/.git/config",
        "/swagger",
        "/swagger-ui.html",
        "/swagger-resources",
        "/v2/api-docs",
        "/v3/api-docs",
        "/server-status",
        "/console",
        "/h2-console",
        "/druid/index.html",
        "/jolokia",
        "/..%2f..%2fetc/passwd",
        "/assets/../../Cargo.toml",
        "/xxl-job-admin/static/..%2f..%2fapplication.properties",
    ] {
        for prefix in ["", "/xxl-job-admin"] {
            let reply = bench.request("GET", &format!("{prefix}{path}"), "", &[]).await;
            assert_eq!(reply.status, 404, "{prefix}{path}: {reply:?}");
        }
    }
    bench.stop().await;
}

/// X30: metrics are shown to the server's own machine, and to callers with a key.
#[tokio::test]
async fn metrics_are_shown_to_other_machines_only_with_a_key() {
    let bench = Bench::start_with(|settings| settings.proxies = vec!["127.0.0.0/8".parse().unwrap()]).await;
    let key = bench.admin().await.post("/v1/keys", &json!({ "name": "prometheus", "rights": [] })).await;
    let elsewhere = "X-Forwarded-For: 198.51.100.7\r\n";
    let ask = async |headers: &str| bench.request("GET", "/metrics", headers, &[]).await;
    assert_eq!(ask("").await.status, 200);
    for headers in ["", "Authorization: Bearer tw_0\r\n", "Authorization: Basic YWRtaW46YWRtaW4=\r\n"] {
        let reply = ask(&format!("{elsewhere}{headers}")).await;
        assert_eq!(reply.status, 401, "{headers}");
        assert!(!reply.body.contains("tickwright_"), "{reply:?}");
    }
    let with_key = format!("{elsewhere}Authorization: Bearer {}\r\n", key["key"].as_str().unwrap());
    assert!(ask(&with_key).await.body.contains("tickwright_ready 1"));
    bench.stop().await;
}
