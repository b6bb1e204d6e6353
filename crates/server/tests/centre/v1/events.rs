//! Event streams, and the API's description of itself.

use std::time::Duration;

use engine::JobId;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{Client, body};
use crate::kit::{Bench, echo};

/// An event stream opened by a client.
struct Stream(TcpStream, String);

impl Stream {
    async fn open(bench: &Bench, client: &Client<'_>, path: &str) -> Stream {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: centre\r\n{}\r\n", client.headers);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut stream = Stream(stream, String::new());
        assert!(stream.until("retry:").await && stream.1.contains("text/event-stream"), "{}", stream.1);
        stream
    }

    /// Reads until the text arrives; false if the stream ends before.
    async fn until(&mut self, wanted: &str) -> bool {
        let read = async {
            let mut bytes = [0; 4_096];
            while !self.1.contains(wanted) {
                match self.0.read(&mut bytes).await.unwrap() {
                    0 => return false,
                    count => self.1.push_str(&String::from_utf8_lossy(&bytes[..count])),
                }
            }
            true
        };
        tokio::time::timeout(Duration::from_secs(120), read)
            .await
            .unwrap_or_else(|_| panic!("no {wanted} came"))
    }
}

#[tokio::test]
async fn whoever_looks_on_is_told_that_something_is_new() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let mut stream = Stream::open(&bench, &admin, "/v1/events").await;
    admin.done("PUT", "/v1/jobs/one", &body(&bench.app, "One")).await;
    assert!(stream.until(r#"data: {"kind":"jobs"}"#).await);
    let _executor = bench.executor(vec![echo()]).await;
    assert!(stream.until(r#"data: {"kind":"executors"}"#).await);
    admin.post("/v1/jobs/one/trigger", &Value::Null).await;
    assert!(stream.until(r#"data: {"kind":"runs"}"#).await);
    bench.stop().await;
    assert!(!stream.until("never").await, "it ends with the centre");
}

/// Streams end with the session or the API key, and when its rights change: before their next heartbeat.
#[tokio::test]
async fn a_stream_ends_with_its_credential() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    bench.person("anna", store::Rights::MEMBER).await;
    let key = async |client: &Client<'_>| {
        let made = client.post("/v1/keys", &json!({ "name": "a key", "rights": ["view"] })).await;
        (made["id"].as_i64().unwrap(), made["key"].as_str().unwrap().to_owned())
    };
    let ends = async |mut stream: Stream, why: &str| {
        // The last chunk of the answer.
        let ended = tokio::time::timeout(Duration::from_secs(10), stream.until("\r\n0\r\n\r\n"));
        assert!(ended.await.unwrap_or_else(|_| panic!("it goes on: {why}")), "{why}");
    };
    let session = bench.client("anna", super::client::PASSWORD).await;
    let stream = Stream::open(&bench, &session, "/v1/events").await;
    session.done("DELETE", "/v1/session", &Value::Null).await;
    ends(stream, "signed out").await;
    let session = bench.client("anna", super::client::PASSWORD).await;
    let (id, secret) = key(&session).await;
    let stream = Stream::open(&bench, &bench.bearer(&secret), "/v1/events").await;
    session.done("DELETE", &format!("/v1/keys/{id}"), &Value::Null).await;
    ends(stream, "the key is deleted").await;
    let (_, secret) = key(&session).await;
    let of_key = Stream::open(&bench, &bench.bearer(&secret), "/v1/events").await;
    let of_session = Stream::open(&bench, &session, "/v1/events").await;
    let fewer = json!({ "grants": [{ "app": bench.app, "rights": ["view"] }] });
    admin.done("PUT", "/v1/users/anna", &fewer).await;
    ends(of_session, "other rights").await;
    ends(of_key, "other rights of the key's owner").await;
    // A change by another node, or by a program with access to the database, is noticed too.
    let session = bench.client("anna", super::client::PASSWORD).await;
    let stream = Stream::open(&bench, &session, "/v1/events").await;
    let anna = bench.database.user_by_name("anna").await.unwrap().unwrap();
    for open in bench.database.sessions_of(anna.id).await.unwrap() {
        bench.database.end_session(&open.digest).await.unwrap();
    }
    ends(stream, "ended elsewhere").await;
    bench.stop().await;
}

/// The number of streams is limited per user, across all sessions and API keys.
#[tokio::test]
async fn streams_are_counted_for_each_user() {
    let bench = Bench::start().await;
    let anna = bench.person("anna", store::Rights::MEMBER).await;
    let mut streams = Vec::new();
    for number in 0..20 {
        let name = format!("key {number}");
        let made = anna.post("/v1/keys", &json!({ "name": name, "rights": ["view"] })).await;
        let key = bench.bearer(made["key"].as_str().unwrap());
        streams.push(Stream::open(&bench, &key, "/v1/events").await);
    }
    let one_more = anna.post("/v1/keys", &json!({ "name": "one more", "rights": ["view"] })).await;
    let one_more = bench.bearer(one_more["key"].as_str().unwrap());
    let refused = one_more.send("GET", "/v1/events", &Value::Null);
    let refused = tokio::time::timeout(Duration::from_secs(10), refused).await.expect("no stream is opened");
    assert_eq!(refused.status, 429, "{refused:?}");
    let berta = bench.person("berta", store::Rights::MEMBER).await;
    streams.push(Stream::open(&bench, &berta, "/v1/events").await);
    drop(streams);
    bench.stop().await;
}

#[tokio::test]
async fn whoever_looks_on_is_told_of_alerts_until_they_are_settled() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let mut job = body(&bench.app, "Nobody runs it");
    job["alert"] = json!(true);
    admin.done("PUT", "/v1/jobs/one", &job).await;
    let mut stream = Stream::open(&bench, &admin, "/v1/events").await;
    admin.post("/v1/jobs/one/trigger", &Value::Null).await;
    // A client that reads the list after each hint, and at no other time, sees the final state.
    let settled = async {
        loop {
            assert!(stream.until(r#"data: {"kind":"alerts"}"#).await);
            stream.1.clear();
            let state = admin.get("/v1/alerts").await["items"][0]["state"].clone();
            if state == "nobody" {
                break;
            }
            assert_eq!(state, "waiting");
        }
    };
    settled.await;
    bench.stop().await;
}

#[tokio::test]
async fn a_stream_that_is_closed_makes_room_for_another_at_once() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    // Far more than one user may have open at a time.
    for _ in 0..60 {
        Stream::open(&bench, &admin, "/v1/events").await;
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_log_is_followed_to_its_end() {
    let bench = Bench::start().await;
    let _executor = bench.executor(vec![echo()]).await;
    let admin = bench.admin().await;
    admin.done("PUT", "/v1/jobs/one", &body(&bench.app, "One")).await;
    let run = admin.post("/v1/jobs/one/trigger", &json!({ "param": "hello" })).await["run"].clone();
    let mut stream = Stream::open(&bench, &admin, &format!("/v1/runs/{run}/log/live")).await;
    assert!(stream.until("given hello").await);
    assert!(stream.until(r#""end":true"#).await);
    bench.over(JobId(1)).await;
    bench.stop().await;
}

#[tokio::test]
async fn the_api_describes_itself() {
    let bench = Bench::start().await;
    let nobody = bench.nobody();
    let description = nobody.get("/v1/openapi.json").await;
    assert_eq!(description["openapi"], "3.1.0");
    for route in tickwright_server::routes() {
        let operation = &description["paths"][route.path][route.method.to_lowercase()];
        assert_eq!(operation["summary"], route.summary, "{}", route.path);
    }
    let page = nobody.send("GET", "/v1/docs", &Value::Null).await;
    assert!(!page.body.contains("<script>"), "{page:?}");
    // A program that was built without npm has a notice instead.
    match page.body.split_once("<script type=\"module\" crossorigin src=\"") {
        Some((_, rest)) => {
            let path = rest.split('"').next().unwrap();
            let script = nobody.send("GET", path, &Value::Null).await;
            assert_eq!(script.header("content-type"), ["text/javascript; charset=utf-8"]);
        }
        None => assert!(page.body.contains("/v1/openapi.json"), "{page:?}"),
    }
    let explained = nobody.send("GET", "/errors/outdated", &Value::Null).await;
    assert!(explained.body.contains("If-Match"), "{explained:?}");
    let admin = bench.admin().await;
    let about = admin.get("/v1/about").await;
    assert_eq!((about["database"].as_str(), about["node"].as_str()), (Some("sqlite"), Some("centre")));
    let nodes = crate::kit::until("the node knows itself", async || {
        let nodes = admin.get("/v1/nodes").await;
        nodes.get(0).is_some().then_some(nodes)
    })
    .await;
    assert_eq!((nodes[0]["this"].as_bool(), nodes[0]["alive"].as_bool()), (Some(true), Some(true)));
    bench.stop().await;
}
