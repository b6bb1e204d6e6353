//! Sign-in, and the proof that a change comes from the signed-in user.

use serde_json::{Value, json};

use super::client::{Client, PASSWORD, problem};
use crate::kit::Bench;

fn sign_in(bench: &Bench) -> Value {
    json!({ "user": bench.admin.name, "password": bench.admin.password })
}

/// A browser with a session: a client for reads, and one with headers that our own pages add for changes.
async fn browser(bench: &Bench) -> (Client<'_>, Client<'_>, String) {
    let reply =
        bench.nobody().with("Sec-Fetch-Site: same-origin").send("POST", "/v1/session", &sign_in(bench)).await;
    let [cookie, device] = reply.header("set-cookie")[..] else { panic!("{reply:?}") };
    assert!(device.starts_with("tickwright_device="));
    assert!(
        cookie.starts_with("tickwright_session=") && cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict")
    );
    let csrf = reply.json()["csrf"].as_str().unwrap().to_owned();
    let looks = bench.nobody().with(&format!("Cookie: other=1; {}", cookie.split(';').next().unwrap()));
    let changes = looks.with("Sec-Fetch-Site: same-origin").with(&format!("Tickwright-Csrf: {csrf}"));
    (looks, changes, csrf)
}

#[tokio::test]
async fn a_browser_signs_in_looks_changes_and_signs_out() {
    let bench = Bench::start().await;
    let (looks, changes, csrf) = browser(&bench).await;
    let me = looks.get("/v1/me").await;
    assert_eq!((me["user"].as_str(), me["admin"].as_bool()), (Some("admin"), Some(true)));
    assert_eq!((me["csrf"].as_str(), me["zone"].as_str()), (Some(csrf.as_str()), Some("UTC")));
    let app = json!({ "title": "Orders" });
    assert_eq!(changes.send("PUT", "/v1/apps/orders", &app).await.status, 201);
    changes.done("DELETE", "/v1/session", &Value::Null).await;
    assert_eq!(looks.refused("GET", "/v1/me", &Value::Null).await, "not_signed_in");
    bench.stop().await;
}

#[tokio::test]
async fn a_cookie_alone_changes_nothing() {
    let bench = Bench::start().await;
    let (looks, changes, csrf) = browser(&bench).await;
    let (_, _, other) = browser(&bench).await;
    let app = json!({ "title": "Orders" });
    let own = looks.with("Sec-Fetch-Site: same-origin");
    let token = looks.with(&format!("Tickwright-Csrf: {csrf}"));
    for client in [
        looks.clone(),
        own.clone(),
        own.with(&format!("Tickwright-Csrf: {other}")),
        token.clone(),
        token.with("Sec-Fetch-Site: cross-site"),
        token.with("Sec-Fetch-Site: none"),
        token.with("Origin: http://evil"),
        token.with("Origin: null"),
    ] {
        assert_eq!(
            client.refused("PUT", "/v1/apps/orders", &app).await,
            "foreign_origin",
            "{}",
            client.headers
        );
    }
    for kind in ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"] {
        let reply = changes.send_as(kind, "PUT", "/v1/apps/orders", &app.to_string()).await;
        assert_eq!(problem(&reply), "malformed_request", "{kind}");
    }
    let foreign = bench.nobody().with("Origin: http://evil");
    assert_eq!(foreign.refused("POST", "/v1/session", &sign_in(&bench)).await, "foreign_origin");
    assert!(bench.database.app_by_name("orders").await.unwrap().is_none());
    assert_eq!(token.with("Origin: http://centre").send("PUT", "/v1/apps/orders", &app).await.status, 201);
    bench.stop().await;
}

#[tokio::test]
async fn wrong_passwords_are_told_alike_noted_and_slowed_down() {
    let bench = Bench::start().await;
    let nobody = bench.nobody();
    let attempt = |user: &str| json!({ "user": user, "password": "123456" });
    let known = nobody.send("POST", "/v1/session", &attempt("admin")).await;
    let unknown = nobody.send("POST", "/v1/session", &attempt("nobody")).await;
    assert_eq!((known.status, &known.body), (401, &unknown.body));
    assert_eq!(problem(&known), "wrong_password");
    let mut waits = 0;
    for _ in 0..40 {
        let reply = nobody.send("POST", "/v1/session", &attempt("guessed")).await;
        if problem(&reply) == "too_many_requests" {
            assert_eq!(reply.header("retry-after").len(), 1);
            waits += 1;
        }
    }
    assert!(waits >= 20, "{waits}");
    let admin = bench.admin().await;
    let noted = admin.get("/v1/audit?action=session.open&object=user:guessed").await;
    let noted = noted["items"].as_array().unwrap();
    assert!((1..=20).contains(&noted.len()), "only tries that were let through: {}", noted.len());
    assert!(noted[0]["result"].as_str().unwrap().starts_with("wrong_password"), "{noted:?}");
    bench.stop().await;
}

#[tokio::test]
async fn another_password_or_other_rights_end_all_other_sessions() {
    let bench = Bench::start().await;
    let first = bench.person("anna", store::Rights::VIEW).await;
    let second = bench.client("anna", PASSWORD).await;
    let change = json!({ "old": PASSWORD, "new": "another horse battery" });
    assert_eq!(first.get("/v1/me/sessions").await.as_array().unwrap().len(), 2);
    let wrong = json!({ "old": "no", "new": "another horse battery" });
    assert_eq!(first.refused("PUT", "/v1/me/password", &wrong).await, "wrong_password");
    let weak = json!({ "old": PASSWORD, "new": "1234567890" });
    assert_eq!(first.refused("PUT", "/v1/me/password", &weak).await, "invalid_fields");
    first.done("PUT", "/v1/me/password", &change).await;
    assert_eq!(second.refused("GET", "/v1/me", &Value::Null).await, "not_signed_in");
    first.get("/v1/me").await;
    let admin = bench.admin().await;
    let body = json!({ "grants": [{ "app": bench.app, "rights": ["view", "operate"] }] });
    admin.done("PUT", "/v1/users/anna", &body).await;
    assert_eq!(first.refused("GET", "/v1/me", &Value::Null).await, "not_signed_in");
    bench.stop().await;
}

#[tokio::test]
async fn one_session_is_ended_from_another() {
    let bench = Bench::start().await;
    let (one, two) = (bench.admin().await, bench.admin().await);
    let sessions = one.get("/v1/me/sessions").await;
    let other = sessions.as_array().unwrap().iter().find(|session| session["current"] == false).unwrap();
    let path = format!("/v1/me/sessions/{}", other["id"].as_str().unwrap());
    one.done("DELETE", &path, &Value::Null).await;
    assert_eq!(one.refused("DELETE", &path, &Value::Null).await, "not_found");
    assert_eq!(two.refused("GET", "/v1/me", &Value::Null).await, "not_signed_in");
    bench.stop().await;
}

#[tokio::test]
async fn every_answer_tells_browsers_what_they_may_do() {
    let bench = Bench::start().await;
    for path in ["/v1/me", "/v1/nothing", "/v1/openapi.json", "/v1/docs", "/errors/not_found"] {
        let reply = bench.nobody().send("GET", path, &Value::Null).await;
        let [policy] = reply.header("content-security-policy")[..] else { panic!("{reply:?}") };
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert_eq!(reply.header("x-content-type-options"), ["nosniff"]);
        assert_eq!(reply.header("referrer-policy"), ["no-referrer"]);
    }
    let reply = bench.nobody().send("PATCH", "/v1/me", &Value::Null).await;
    assert_eq!((reply.status, problem(&reply).as_str()), (405, "wrong_method"));
    bench.stop().await;
}

#[tokio::test]
async fn what_is_not_json_of_the_right_shape_is_refused() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    for (kind, body) in [
        ("application/json", "{"),
        ("application/json", r#"{"title":"a","title":"b"}"#),
        ("application/json", r#"{"title":"a","nonsense":1}"#),
        ("application/json", r#"{"@type":"java.lang.Runtime","title":"a"}"#),
        ("application/json", deep.as_str()),
        ("application/octet-stream", "H\x02\x00"),
        ("application/json", "\u{0}\u{1}"),
    ] {
        let reply = admin.send_as(kind, "PUT", "/v1/apps/orders", body).await;
        assert_eq!(problem(&reply), "malformed_request", "{body}");
    }
    let large = json!({ "title": "x".repeat(1_100_000) });
    assert_eq!(admin.refused("PUT", "/v1/apps/orders", &large).await, "too_large");
    assert_eq!(admin.refused("GET", "/v1/jobs?limti=1", &Value::Null).await, "malformed_request");
    assert_eq!(admin.refused("GET", "/v1/jobs?limit=1000", &Value::Null).await, "invalid_fields");
    bench.stop().await;
}
