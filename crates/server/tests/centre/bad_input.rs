//! Hostile input to a listener: it gives a clear answer, without an internal error, and soon.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::kit::Bench;
use crate::script::{NEW, OLD};

/// Paths of every API.
const PATHS: [&str; 20] = [
    "/api",
    "/api/registry",
    "/api/registryRemove",
    "/api/callback",
    "/api/addJob",
    "/api/updateJob",
    "/api/triggerJob",
    "/api/nonsense",
    "/api/%FF",
    "/xxl-job-admin//api/callback",
    "/login",
    "/auth/doLogin",
    "/jobinfo/insert",
    "/jobinfo/pageList?start=9223372036854775807&length=-9223372036854775808",
    "/joblog/logDetailCat?logId=1e999&fromLineNum=%00",
    "/user/insert?%FF=%FE",
    "/healthz",
    "/readyz",
    "/metrics",
    "/%2e%2e/%2e%2e/etc/passwd",
];

const KINDS: [&str; 5] = [
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "multipart/form-data; boundary=\"",
    "application/octet-stream",
];

fn bodies() -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> = [
        "",
        "null",
        "[]",
        "{",
        "\"text\"",
        "-1e999",
        r#"{"registryGroup":1,"registryKey":[],"registryValue":{}}"#,
        r#"{"registryGroup":"EXECUTOR","registryKey":"x","registryKey":"y","registryValue":"file:///etc"}"#,
        r#"[{"logId":"../../etc/passwd","handleCode":"two hundred"},7,null,{"logId":1e308}]"#,
        r#"{"id":99999999999999999999999,"jobGroup":{"$gt":0},"scheduleConf":["0 0 0 * * ?"]}"#,
        r#"{"@type":"com.sun.rowset.JdbcRowSetImpl","dataSourceName":"ldap://x","autoCommit":true}"#,
        "{\"a\":\"\\ud800\"}",
        "id=%ZZ&id=&=&&&jobDesc=%FF%FE",
        "--\r\n\r\n--\r\nContent-Disposition: form-data; name=\r\n\r\n",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    bodies.push(b"\xff\xfe\x00{\"registryKey\":\"\xc3\x28\"}".to_vec());
    bodies.push(b"\xac\xed\x00\x05sr\x00\x11java.util.HashMap".to_vec());
    bodies.push(b"H\x02\x00C\x04exec".to_vec());
    bodies.push(vec![0; 4_096]);
    bodies.push("[".repeat(100_000).into_bytes());
    bodies.push("{\"a\":".repeat(50_000).into_bytes());
    bodies.push(format!("[{}]", "{\"logId\":1},".repeat(20_000) + "1").into_bytes());
    bodies.push(format!("{{\"registryKey\":\"{}\"}}", "字".repeat(200_000)).into_bytes());
    bodies.push("a=b&".repeat(100_000).into_bytes());
    bodies
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_posted_is_answered_and_never_with_a_failure_of_ours() {
    let bench = Bench::start().await;
    let cookies = [bench.admin_script(OLD).await.cookie, bench.admin_script(NEW).await.cookie];
    let mut asked = 0;
    for path in PATHS {
        for body in bodies() {
            let kind = KINDS[asked % KINDS.len()];
            let cookie = &cookies[asked % 2];
            asked += 1;
            let mut request = format!(
                "POST {path} HTTP/1.1\r\nHost: x\r\nXxl-Job-Access-Token: {}\r\nCookie: {cookie}\r\n\
                 Content-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                bench.token,
                body.len()
            )
            .into_bytes();
            request.extend(&body);
            let (code, answer) = bench.raw(&request).await;
            let sample = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            assert!((200..500).contains(&code), "{path} {kind} {sample:?}: {code} {answer}");
        }
    }
    assert_eq!(bench.raw(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.0, 200);
    bench.stop().await;
}

#[tokio::test]
async fn requests_that_are_none_or_lie_about_their_length_are_refused() {
    let bench = Bench::start().await;
    let check = async |request: &[u8], expected: &[u16]| {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        // A server that rejects the request may close before all is sent.
        let _ = stream.write_all(request).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(15), stream.read_to_end(&mut answer));
        let _ = read.await.expect("it answers or closes");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let sample = String::from_utf8_lossy(&request[..request.len().min(80)]).into_owned();
        assert!(expected.contains(&code), "{sample:?}: {answer}");
    };
    let post = |headers: &str, body: &str| {
        format!("POST /api/callback HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}").into_bytes()
    };
    check(b"GARBAGE\r\n\r\n", &[400]).await;
    check(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", &[400, 0]).await;
    check(b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n", &[400, 404]).await;
    check(b"GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n", &[400, 505]).await;
    check(b"GET /healthz HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n\r\n", &[400]).await;
    let long = format!("GET /healthz HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "a".repeat(100_000));
    check(long.as_bytes(), &[400, 431, 0]).await;
    let many = format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(500));
    check(many.as_bytes(), &[400, 431]).await;
    check(&post("Content-Length: 100\r\n", "{}"), &[400, 0]).await;
    check(&post("Content-Length: -1\r\n", "{}"), &[400]).await;
    check(&post("Content-Length: 99999999999999999999\r\n", "{}"), &[400]).await;
    check(&post("Content-Length: 5000000000\r\n", "{}"), &[413]).await;
    check(&post("Content-Length: 2\r\nContent-Length: 3\r\n", "{}"), &[400]).await;
    check(&post("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n"), &[400]).await;
    check(&post("Transfer-Encoding: chunked\r\n", "ffffffffffffffff\r\n{}"), &[400]).await;
    check(&post("Content-Length: 2\r\n", "{}GARBAGE GARBAGE\r\n\r\n"), &[200]).await;
    assert_eq!(bench.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.0, 200);
    bench.stop().await;
}

#[tokio::test]
async fn a_refusal_arrives_though_nobody_wanted_all_that_was_sent() {
    let bench = Bench::start().await;
    let body = vec![b'x'; 16 << 20];
    for (path, expected) in [("/api/callback", 413), ("/healthz", 405), ("/v1/jobs", 401), ("/nowhere", 404)]
    {
        let mut request =
            format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        request.extend(&body);
        // `raw` fails unless all can be sent.
        assert_eq!(bench.raw(&request).await.0, expected, "{path}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn who_drips_is_let_go() {
    let bench = Bench::start().await;
    // Only the first part is sent, then a byte now and then.
    let drip = async |begun: &str, expected: u16| {
        let started = Instant::now();
        let stream = TcpStream::connect(bench.address).await.unwrap();
        let (mut read, mut write) = stream.into_split();
        write.write_all(begun.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let dripping = async {
            loop {
                tokio::time::sleep(Duration::from_millis(300)).await;
                if write.write_all(b"x").await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::select! {
            _ = read.read_to_end(&mut answer) => {}
            () = dripping => {}
            () = tokio::time::sleep(Duration::from_secs(20)) => panic!("{begun:?} is still served"),
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let code: u16 = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        assert_eq!(code, expected, "{begun:?} after {:?}: {answer}", started.elapsed());
    };
    tokio::join!(
        drip("GET /heal", 0),
        drip("GET /healthz HTTP/1.1\r\nHost: ", 0),
        drip("POST /api/callback HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", 408),
        drip("POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", 408),
    );
    bench.stop().await;
}
