//! Apps, their tokens and executors.

use serde_json::{Value, json};
use store::{Addresses, AppSpec};
use tickwright_server::outbound::Secret;

use crate::kit::{Bench, echo, until};

#[tokio::test]
async fn an_app_is_made_changed_and_deleted() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let body = json!({ "title": "Orders", "addressing": { "kind": "registered" } });
    let reply = admin.send("PUT", "/v1/apps/orders", &body).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.json()["addressing"]["kind"], "registered");
    let reply = admin.send("PUT", "/v1/apps/orders", &json!({ "title": "All orders" })).await;
    assert_eq!((reply.status, reply.json()["title"].as_str()), (200, Some("All orders")));
    assert_eq!(admin.get("/v1/apps").await.as_array().unwrap().len(), 2);
    admin.done("DELETE", "/v1/apps/orders", &Value::Null).await;
    assert_eq!(admin.refused("GET", "/v1/apps/orders", &Value::Null).await, "not_found");
    assert_eq!(admin.refused("PUT", "/v1/apps/a%20b", &body).await, "invalid_fields");
    let noted = admin.get("/v1/audit?object=app:orders").await;
    let actions: Vec<&str> =
        noted["items"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["app.delete", "app.put", "app.put"]);
    assert!(noted["items"][1]["before"].as_str().unwrap().contains("Orders"));
    bench.stop().await;
}

#[tokio::test]
async fn addresses_that_lead_elsewhere_are_refused() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    for address in [
        "http://169.254.169.254/",
        "http://[::ffff:169.254.169.254]/",
        "http://0/",
        "file:///etc/passwd",
        "gopher://h/",
        "http://u:p@h/",
        "http://h/..;/x",
    ] {
        let body = json!({ "title": "x", "addressing": { "kind": "manual", "addresses": [address] } });
        assert_eq!(admin.refused("PUT", "/v1/apps/orders", &body).await, "invalid_fields", "{address}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_token_is_shown_once_and_counts_until_it_is_ended() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let path = format!("/v1/apps/{}/tokens", bench.app);
    let made = admin.post(&path, &Value::Null).await;
    let token = made["token"].as_str().unwrap();
    let listed = admin.send("GET", &path, &Value::Null).await;
    assert!(!listed.body.contains(token), "it is not shown again");
    assert_eq!(listed.json().as_array().unwrap().len(), 2);
    let beat = json!({ "registryGroup": "EXECUTOR", "registryKey": bench.app, "registryValue": "http://127.0.0.1:9/" });
    let answer = bench.post("/api/registry", Some(token), &beat.to_string()).await;
    assert!(answer.contains("200"), "{answer}");
    admin.done("DELETE", &format!("{path}/{}", made["id"]), &Value::Null).await;
    let answer = bench.post("/api/registry", Some(token), &beat.to_string()).await;
    assert!(answer.contains("500"), "{answer}");
    bench.stop().await;
}

#[tokio::test]
async fn an_executor_is_asked_whether_it_is_there_and_no_stranger_is() {
    let bench = Bench::start().await;
    let executor = bench.executor(vec![echo()]).await;
    let admin = bench.admin().await;
    let path = format!("/v1/apps/{}/executors/check", bench.app);
    let seen = admin.post(&path, &json!({ "address": executor.address() })).await;
    assert_eq!((seen["state"].as_str(), seen["address"].as_str()), (Some("alive"), Some(executor.address())));
    let stranger = json!({ "address": "http://127.0.0.1:9/" });
    assert_eq!(admin.refused("POST", &path, &stranger).await, "invalid_fields");
    let app = admin.get(&format!("/v1/apps/{}", bench.app)).await;
    assert_eq!(app["executors"][0]["state"], "alive");
    bench.stop().await;
}

#[tokio::test]
async fn what_is_wrong_with_an_executor_is_told_by_a_code() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    // One port without a listener, and one with another server than an executor: the server's own.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (address, code) in [
        (format!("http://{nobody}/"), "connect_refused"),
        (format!("http://{}/", bench.address), "address_forbidden"),
        ("http://no-such-host.invalid:9999/".to_owned(), "name_unknown"),
    ] {
        let app = bench.database.app_by_name(&bench.app).await.unwrap().unwrap();
        let spec = AppSpec { addresses: Addresses::Manual(vec![address.clone()]), ..app.spec };
        bench.database.update_app(app.id, &spec).await.unwrap();
        until("the address is known", async || bench.sees(&address).then_some(())).await;
        let path = format!("/v1/apps/{}/executors/check", bench.app);
        let seen = admin.post(&path, &json!({ "address": address })).await;
        assert_eq!((seen["state"].as_str(), seen["trouble"]["code"].as_str()), (Some("suspect"), Some(code)));
        assert!(seen["trouble"]["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{seen}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn an_executor_that_has_left_is_shown_as_gone() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let path = format!("/v1/apps/{}", bench.app);
    let address = "http://127.0.0.1:9/";
    let beat = json!({ "registryGroup": "EXECUTOR", "registryKey": bench.app, "registryValue": address })
        .to_string();
    bench.post("/api/registry", Some(&bench.token), &beat).await;
    let app = admin.get(&path).await;
    assert_eq!(app["executors"][0]["address"], address);
    assert!(app.get("gone").is_none(), "{app}");
    bench.post("/api/registryRemove", Some(&bench.token), &beat).await;
    let app = admin.get(&path).await;
    assert_eq!(app["executors"], json!([]));
    assert_eq!(app["gone"][0]["address"], address);
    assert!(app["gone"][0]["seen_at"].is_string(), "{app}");
    bench.stop().await;
}

#[tokio::test]
async fn administrators_see_what_is_set_and_nobody_sees_secrets() {
    let bench = Bench::start_with(|settings| {
        settings.token = Some(Secret::new("the one for everybody"));
        settings.keep_runs = std::time::Duration::from_secs(7 * 24 * 60 * 60);
    })
    .await;
    let reply = bench.admin().await.send("GET", "/v1/settings", &Value::Null).await;
    assert!(!reply.body.contains("the one for everybody") && !reply.body.contains("centre.db"), "{reply:?}");
    let settings = reply.json();
    let find = |name: &str| {
        let found = settings.as_array().unwrap().iter().find(|setting| setting["option"] == name);
        found.map(|setting| (setting["value"].clone(), setting["hidden"].clone()))
    };
    assert_eq!(find("keep-runs"), Some((json!("7d"), json!(false))));
    assert_eq!(find("token"), Some((Value::Null, json!(true))));
    assert_eq!(find("behind-proxy"), Some((Value::Null, json!(false))));
    let viewer = bench.person("viewer", store::Rights::ALL).await;
    assert_eq!(viewer.refused("GET", "/v1/settings", &Value::Null).await, "not_allowed");
    bench.stop().await;
}
