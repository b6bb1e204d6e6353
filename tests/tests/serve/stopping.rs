//! A stop ends within the guaranteed time, whatever is open.

use serde_json::json;
use tickwright_tests::process::{STOP_GUARANTEED, stalls};
use tickwright_tests::serve::{Serve, WebServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_stop_waits_neither_for_clients_nor_for_executors() {
    let mut silent = WebServer::start(None).await.unwrap();
    // An answer may take longer than a stop.
    let centre = Serve::new().unwrap().with("call-timeout", "10s").start().await.unwrap();
    let admin = centre.sign_in().await.unwrap();
    admin.app("silent", &silent.url()).await.unwrap();
    let job =
        json!({ "app": "silent", "name": "never answers", "handler": "x", "schedule": { "kind": "none" } });
    admin.done("PUT", "/v1/jobs/never", &job).await.unwrap();
    admin.done("POST", "/v1/jobs/never/trigger", &json!({})).await.unwrap();
    silent.next("/run").await.unwrap();

    let host = format!("Host: {}\r\nAuthorization: Bearer {}\r\n", centre.address(), admin.session());
    let mut open = Vec::new();
    for request in [
        format!("GET /v1/events HTTP/1.1\r\n{host}\r\n"),
        format!("GET /v1/runs HTTP/1.1\r\n{host}"),
        format!(
            "POST /v1/jobs HTTP/1.1\r\n{host}Content-Type: application/json\r\nContent-Length: 900\r\n\r\n{{"
        ),
    ] {
        let mut stream = TcpStream::connect(centre.address()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        open.push(stream);
    }
    // The stream has begun; the other requests were sent before it answered.
    open[0].read_u8().await.unwrap();

    let started = std::time::Instant::now();
    let (stopped, stalled) = stalls(centre.stop()).await;
    let took = started.elapsed();
    stopped.unwrap();
    assert!(took < STOP_GUARANTEED + stalled, "it took {took:?}, and the machine stalled {stalled:?}");
}
