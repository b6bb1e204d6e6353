//! Users, API keys and the audit log.

use serde_json::{Value, json};
use store::Rights;

use super::client::PASSWORD;
use crate::kit::Bench;

#[tokio::test]
async fn a_user_is_made_changed_and_deleted() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let path = "/v1/users/anna";
    assert_eq!(admin.refused("PUT", path, &json!({})).await, "invalid_fields", "a new user needs a password");
    assert_eq!(admin.refused("PUT", path, &json!({ "password": "1234567890" })).await, "invalid_fields");
    let body = json!({ "password": PASSWORD, "grants": [{ "app": bench.app, "rights": ["operate"] }] });
    let reply = admin.send("PUT", path, &body).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.json()["grants"][0]["rights"], json!(["view", "operate"]), "who may change may see");
    let anna = bench.client("anna", PASSWORD).await;
    let me = anna.get("/v1/me").await;
    assert_eq!((me["admin"].as_bool(), &me["grants"]), (Some(false), &reply.json()["grants"]));
    assert_eq!(admin.send("PUT", path, &json!({ "disabled": true })).await.status, 200);
    assert_eq!(anna.refused("GET", "/v1/me", &Value::Null).await, "not_signed_in");
    let nowhere = json!({ "grants": [{ "app": "nowhere", "rights": ["view"] }] });
    assert_eq!(admin.refused("PUT", path, &nowhere).await, "invalid_fields");
    for method in ["PUT", "DELETE"] {
        assert_eq!(admin.refused(method, "/v1/users/admin", &json!({ "admin": false })).await, "conflict");
    }
    assert_eq!(admin.get("/v1/users?text=ANN").await["items"].as_array().unwrap().len(), 1);
    admin.done("DELETE", path, &Value::Null).await;
    assert_eq!(admin.refused("GET", path, &Value::Null).await, "not_found");
    let noted = admin.get("/v1/audit?object=user:anna&limit=200").await.to_string();
    assert!(!noted.contains(PASSWORD), "{noted}");
    assert!(
        noted.contains("user.delete") && noted.contains("invalid_fields"),
        "what was refused, too: {noted}"
    );
    bench.stop().await;
}

#[tokio::test]
async fn a_key_acts_with_fewer_rights_and_ends_with_its_owner() {
    let bench = Bench::start().await;
    let editor = bench.person("editor", Rights::MEMBER).await;
    let body = json!({ "name": "nightly", "apps": [bench.app], "rights": ["operate", "script"] });
    let made = editor.post("/v1/keys", &body).await;
    let secret = made["key"].as_str().unwrap();
    assert!(secret.starts_with("tw_") && secret.len() > 60, "{secret}");
    let key = bench.bearer(secret);
    let me = key.get("/v1/me").await;
    assert_eq!(me["grants"][0]["rights"], json!(["view", "operate"]), "no more than its owner has");
    assert!(me.get("csrf").is_none());
    let job = super::client::body(&bench.app, "x");
    assert_eq!(key.refused("PUT", "/v1/jobs/one", &job).await, "not_allowed");
    editor.done("PUT", "/v1/jobs/one", &job).await;
    key.post("/v1/jobs/one/trigger", &Value::Null).await;
    assert_eq!(key.refused("GET", "/v1/keys", &Value::Null).await, "not_allowed", "keys make no keys");
    assert!(!editor.send("GET", "/v1/keys", &Value::Null).await.body.contains(secret));
    let noted = bench.admin().await.get("/v1/audit?action=job.trigger").await;
    assert_eq!(noted["items"][0]["principal"], format!("editor with key {}", made["id"]));
    let foreign = json!({ "name": "x", "apps": ["other1"], "rights": ["view"] });
    assert_eq!(editor.refused("POST", "/v1/keys", &foreign).await, "invalid_fields");
    let past = json!({ "name": "x", "rights": ["view"], "expires_at": "2020-01-01T00:00:00Z" });
    let expired = editor.post("/v1/keys", &past).await["key"].as_str().unwrap().to_owned();
    assert_eq!(bench.bearer(&expired).refused("GET", "/v1/me", &Value::Null).await, "not_signed_in");
    editor.done("DELETE", &format!("/v1/keys/{}", made["id"]), &Value::Null).await;
    assert_eq!(key.refused("GET", "/v1/me", &Value::Null).await, "not_signed_in");
    bench.stop().await;
}

#[tokio::test]
async fn what_somebody_was_refused_is_on_record() {
    let bench = Bench::start().await;
    let viewer = bench.person("viewer", Rights::VIEW).await;
    viewer.refused("GET", "/v1/users", &Value::Null).await;
    viewer.refused("DELETE", "/v1/jobs/nothing", &Value::Null).await;
    let noted = bench.admin().await.get("/v1/audit?principal=viewer").await;
    let results: Vec<&str> =
        noted["items"].as_array().unwrap().iter().map(|entry| entry["result"].as_str().unwrap()).collect();
    assert!(results[0].starts_with("not_found") && results[1].starts_with("not_allowed"), "{results:?}");
    assert_eq!(noted["items"][0]["object"], "nothing");
    bench.stop().await;
}
