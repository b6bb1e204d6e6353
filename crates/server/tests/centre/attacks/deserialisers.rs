//! Bytes that other programs would deserialize into objects of the sender's choice.

use serde_json::Value;
use tickwright_server::{routes, web_routes};

use super::evidence::Evidence;
use crate::kit::Bench;
use crate::script::NEW;

/// Hessian, Java serialization, JSON and YAML that name a class, a pickle, and zero bytes.
const BODIES: [&[u8]; 7] = [
    b"H\x02\x00C\x04exec\x90",
    b"\xac\xed\x00\x05sr\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16`\xd1",
    br#"{"@type":"com.sun.rowset.JdbcRowSetImpl","dataSourceName":"ldap://127.0.0.1:1/x","autoCommit":true}"#,
    br#"["java.lang.Runtime",{"exec":"id"}]"#,
    b"!!javax.script.ScriptEngineManager [!!java.net.URLClassLoader [[!!java.net.URL [\"http://x\"]]]]",
    b"\x80\x04cos\nsystem\n(S'id'\ntR.",
    b"\x00\x00\x00\x00",
];

/// X23 (CVE-2023-45146, CVE-2022-46478): every path of every API, with every content type claimed for these bytes.
#[tokio::test]
async fn no_door_makes_objects_of_what_it_is_sent() {
    let bench = Bench::start().await;
    let (admin, cookie) = (bench.admin().await, bench.admin_script(NEW).await.cookie);
    let before = Evidence::before(&bench).await;
    let send = async |method: &str, path: &str, headers: &str, kind: &str, body: &[u8]| {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: centre\r\nContent-Type: {kind}\r\n{headers}Content-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend(body);
        bench.exchange(&request).await
    };
    let kinds = [
        "application/octet-stream",
        "application/x-java-serialized-object",
        "application/json",
        "x-application/hessian",
    ];
    for (number, body) in BODIES.into_iter().enumerate() {
        let kind = kinds[number % kinds.len()];
        for route in routes().iter().filter(|route| route.method != "GET" && route.path != "/v1/session") {
            let path = route.path.replace(['{', '}'], "");
            let reply = send(route.method, &path, &admin.headers, kind, body).await;
            assert!((400..500).contains(&reply.status), "{} {path} {kind} {number}: {reply:?}", route.method);
        }
        for route in web_routes().iter().filter(|route| route.changes && route.needs != "nobody") {
            if route.path.ends_with("logout") {
                continue;
            }
            let cookie = format!("Cookie: {cookie}\r\n");
            let reply = send("POST", route.path, &cookie, kind, body).await;
            let code = serde_json::from_str::<Value>(&reply.body).unwrap_or_default()["code"].clone();
            assert_eq!((reply.status, code), (200, 500.into()), "{} {kind} {number}", route.path);
        }
        let token = format!("XXL-JOB-ACCESS-TOKEN: {}\r\n", bench.token);
        for name in
            ["registry", "registryRemove", "addJob", "updateJob", "removeJob", "startJob", "triggerJob"]
        {
            let reply = send("POST", &format!("/api/{name}"), &token, kind, body).await;
            assert_eq!((reply.status, reply.json()["code"].as_i64()), (200, Some(500)), "{name} {number}");
        }
        let reply = send("POST", "/api/callback", &token, kind, body).await;
        assert_eq!(reply.status, 200, "a list without a result in it is no result: {reply:?}");
        for path in ["/healthz", "/readyz", "/metrics", "/", "/v1/openapi.json"] {
            let status = send("POST", path, "", kind, body).await.status;
            assert!([404, 405].contains(&status), "{path}: {status}");
        }
    }
    before.refused(BODIES.len());
    bench.stop().await;
}

/// X22, X23: no dependency evaluates templates or deserializes bytes into arbitrary objects.
#[test]
fn nothing_that_evaluates_or_revives_foreign_data_is_built_in() {
    let lock = include_str!("../../../../../Cargo.lock");
    for dangerous in [
        "askama",
        "bincode",
        "ciborium",
        "handlebars",
        "liquid",
        "minijinja",
        "postcard",
        "rkyv",
        "rmp-serde",
        "serde-pickle",
        "serde_yaml_ng",
        "tera",
        "typetag",
    ] {
        assert!(!lock.contains(&format!("name = \"{dangerous}\"")), "{dangerous} is built in");
    }
}
