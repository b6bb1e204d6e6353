//! Malformed bodies of every kind, posted to every path.

use std::net::SocketAddr;
use std::time::Duration;

use super::answers::Answers;
use super::attacker::Attacker;

/// Posts bodies of at most `largest` bytes to one path after another, forever.
pub async fn post(to: SocketAddr, attacker: Attacker, largest: usize, answers: Answers) {
    let (paths, mut bodies) = (paths(), bodies());
    bodies.retain(|body| body.len() <= largest);
    loop {
        let (method, path) = &paths[fastrand::usize(..paths.len())];
        let body = &bodies[fastrand::usize(..bodies.len())];
        let kind = KINDS[fastrand::usize(..KINDS.len())];
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n{}Content-Length: {}\r\n\
             Connection: close\r\n\r\n",
            attacker.credentials(),
            body.len()
        )
        .into_bytes();
        request.extend(body);
        answers.send(to, &request).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Every path of every API, except those that would sign the attacker out.
fn paths() -> Vec<(&'static str, String)> {
    let mut paths = Vec::new();
    for route in server::routes().iter().filter(|route| route.path != "/v1/session") {
        paths.push((route.method, route.path.replace(['{', '}'], "")));
    }
    for route in server::web_routes().iter().filter(|route| !route.path.ends_with("logout")) {
        paths.push(("POST", route.path.to_owned()));
        paths.push((
            "GET",
            format!("{}?id=%FF&logId=1e999&start=-9223372036854775808&length=%00", route.path),
        ));
    }
    let calls =
        ["registry", "registryRemove", "callback", "addJob", "updateJob", "triggerJob", "no-such", "%FF"];
    paths.extend(calls.iter().map(|call| ("POST", format!("/xxl-job-admin//api/{call}"))));
    let others =
        ["/v1/session", "/healthz", "/readyz", "/metrics", "/", "/jobs/%2e%2e/%00", "/%2e%2e/etc/passwd"];
    paths.extend(others.iter().map(|path| ("POST", (*path).to_owned())));
    paths
}

const KINDS: [&str; 6] = [
    "application/json",
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=\"",
    "application/octet-stream",
    "\u{fffd}",
];

fn bodies() -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> = [
        "",
        "null",
        "[]",
        "{",
        "-1e999",
        r#"{"registryGroup":1,"registryKey":[],"registryValue":{}}"#,
        r#"[{"logId":"../../etc/passwd","handleCode":"two hundred"},7,null,{"logId":1e308}]"#,
        r#"{"id":99999999999999999999999,"jobGroup":{"$gt":0},"scheduleConf":["0 0 0 * * ?"]}"#,
        r#"{"@type":"com.sun.rowset.JdbcRowSetImpl","dataSourceName":"ldap://x","autoCommit":true}"#,
        r#"{"user":"admin","password":"123456"}"#,
        "{\"a\":\"\\ud800\"}",
        "id=%ZZ&id=&=&&&jobDesc=%FF%FE",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    bodies.push(b"\xff\xfe\x00{\"registryKey\":\"\xc3\x28\"}".to_vec());
    bodies.push(b"\xac\xed\x00\x05sr\x00\x11java.util.HashMap".to_vec());
    bodies.push("[".repeat(LARGE).into_bytes());
    bodies.push("{\"a\":".repeat(LARGE / 5).into_bytes());
    bodies.push(format!("[{}{{}}]", "{},".repeat(LARGE / 3)).into_bytes());
    bodies.push(format!("[{}1]", "{\"logId\":1,\"handleCode\":200},".repeat(20_000)).into_bytes());
    bodies.push(format!("{{\"registryKey\":\"{}\"}}", "字".repeat(LARGE / 3)).into_bytes());
    bodies.push("a=b&".repeat(LARGE / 4).into_bytes());
    bodies
}

/// Slightly less than the limit.
const LARGE: usize = 4_900_000;

/// Pause between two requests of one attacker.
const PAUSE: Duration = Duration::from_millis(5);
