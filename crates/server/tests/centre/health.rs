//! Endpoints for load balancers and Prometheus.

use crate::kit::Bench;

async fn get(bench: &Bench, path: &str) -> (u16, String) {
    bench.raw(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).await
}

#[tokio::test]
async fn a_node_that_has_joined_is_alive_ready_and_counted() {
    let bench = Bench::start().await;
    assert_eq!(get(&bench, "/healthz").await.0, 200);
    assert_eq!(get(&bench, "/actuator/health").await, (200, r#"{"status":"UP"}"#.into()));
    let (code, body) = get(&bench, "/readyz").await;
    assert_eq!(code, 200);
    assert!(body.contains(r#""ready":true,"reason":"ready","may_send":true"#), "{body}");
    let (code, body) = get(&bench, "/metrics").await;
    assert_eq!(code, 200);
    let families = [
        "lateness_seconds",
        "claim_seconds",
        "completion_seconds",
        "runs_claimed",
        "runs_over",
        "sent",
        "results",
        "run_logs",
        "ready",
        "lease",
        "clock_skew_seconds",
        "runs_in_hand",
        "answers_waiting",
        "ends_waiting",
        "executors",
    ];
    for family in families {
        assert!(body.contains(&format!("# TYPE tickwright_{family} ")), "{family}: {body}");
    }
    assert!(body.contains("tickwright_ready 1"), "{body}");
    assert!(!body.contains(&bench.token), "no secret is counted");
    bench.stop().await;
}

#[tokio::test]
async fn everything_else_is_refused() {
    let bench = Bench::start().await;
    assert_eq!(get(&bench, "/etc/passwd").await.0, 404);
    assert_eq!(bench.raw(b"POST /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.0, 405);
    assert_eq!(bench.raw(b"GARBAGE\r\n\r\n").await.0, 400);
    bench.stop().await;
}
