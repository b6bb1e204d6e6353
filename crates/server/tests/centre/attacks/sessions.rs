//! Sessions that are forged, taken over, or should have ended.

use serde_json::{Value, json};
use store::Rights;

use crate::kit::Bench;
use crate::script::{NEW, OLD};
use crate::v1::client::PASSWORD;

/// X18: a cookie is 256 random bits without meaning; only its digest is stored. XXL-JOB's own could be forged.
#[tokio::test]
async fn a_session_is_an_opaque_cookie_that_only_a_digest_is_kept_of() {
    let bench = Bench::start().await;
    let sign_in = json!({ "user": bench.admin.name, "password": bench.admin.password });
    let browser = bench.nobody().with("Sec-Fetch-Site: same-origin");
    let replies = [
        ("XXL_JOB_LOGIN_IDENTITY=", bench.sign_in(OLD, &bench.admin.name, &bench.admin.password).await),
        ("xxl_job_login_token=", bench.sign_in(NEW, &bench.admin.name, &bench.admin.password).await),
        ("tickwright_session=", browser.send("POST", "/v1/session", &sign_in).await),
    ];
    for (name, reply) in replies {
        let cookies = reply.header("set-cookie");
        // Browsers get a second one, which identifies the device the next time; it gives no access.
        let (cookie, device) = match cookies[..] {
            [cookie] => (cookie, None),
            [cookie, device] => (cookie, Some(device)),
            _ => panic!("{reply:?}"),
        };
        assert_eq!(device.is_some(), name == "tickwright_session=", "{reply:?}");
        if let Some(device) = device {
            assert!(
                device.starts_with("tickwright_device=")
                    && device.contains("; Path=/; HttpOnly; SameSite=Strict")
            );
            let value = device.split(';').next().unwrap().split_once('=').unwrap().1;
            for name in
                ["XXL_JOB_LOGIN_IDENTITY", "xxl_job_login_token", "tickwright_session", "tickwright_device"]
            {
                let cookie = format!("Cookie: {name}={value}\r\n");
                assert_eq!(bench.request("GET", "/v1/me", &cookie, &[]).await.status, 401);
            }
        }
        let secret = cookie
            .strip_prefix(name)
            .and_then(|rest| rest.strip_suffix("; Path=/; HttpOnly; SameSite=Strict"));
        let secret = secret.unwrap_or_else(|| panic!("{cookie}"));
        assert_eq!(secret.len(), 64);
        assert!(secret.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(!kept(&bench, secret), "the secret itself is in a file");
    }
    // XXL-JOB's cookie of the first user, in hexadecimal: {"id":1,"username":"admin"} and so on.
    let forged = "7b226964223a312c22757365726e616d65223a2261646d696e227d";
    for name in ["XXL_JOB_LOGIN_IDENTITY", "xxl_job_login_token", "tickwright_session"] {
        for value in [forged, "", "admin", "1", "0", "' OR '1'='1"] {
            let cookie = format!("Cookie: {name}={value}\r\n");
            let reply = bench.request("POST", "/jobinfo/pageList", &cookie, &[]).await;
            assert!(reply.status == 302 || reply.json()["code"] == 500, "{reply:?}");
            assert_eq!(bench.request("GET", "/v1/me", &cookie, &[]).await.status, 401);
            let bearer = bench.bearer(value).send("GET", "/v1/me", &Value::Null).await;
            assert_eq!(bearer.status, 401);
        }
    }
    bench.stop().await;
}

fn kept(bench: &Bench, secret: &str) -> bool {
    let files = std::fs::read_dir(&bench.folder).unwrap().map(|file| std::fs::read(file.unwrap().path()));
    let is_in = |bytes: Vec<u8>| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
    files.filter_map(Result::ok).any(is_in)
}

/// X20 (as CVE-2023-50270): a new password, changed rights or a lock end all other sessions of that user, opened
/// through any API, with the next request.
#[tokio::test]
async fn what_changes_a_person_ends_their_sessions() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let other = "another horse battery";
    let changes = [
        json!({ "password": other }),
        json!({ "password": PASSWORD, "grants": [{ "app": bench.app, "rights": ["view"] }] }),
        json!({ "admin": true }),
        json!({ "disabled": true }),
    ];
    bench.person("anna", Rights::MEMBER).await;
    let mut password = PASSWORD;
    for change in changes {
        let console = bench.client("anna", password).await;
        let script = bench.script(OLD, "anna", password).await;
        let key = console.post("/v1/keys", &json!({ "name": "k", "rights": ["view"] })).await;
        admin.done("PUT", "/v1/users/anna", &change).await;
        assert_eq!(console.refused("GET", "/v1/me", &Value::Null).await, "not_signed_in", "{change}");
        assert_eq!(script.send("GET", "/jobinfo/pageList", &[]).await.status, 302, "{change}");
        if change.get("disabled").is_some() {
            let key = bench.bearer(key["key"].as_str().unwrap());
            assert_eq!(key.refused("GET", "/v1/me", &Value::Null).await, "not_signed_in");
            assert_eq!(bench.sign_in(OLD, "anna", password).await.json()["code"], 500);
        }
        password =
            change["password"].as_str().map_or(password, |new| if new == other { other } else { PASSWORD });
    }
    bench.stop().await;
}

/// X20: a session id planted before the sign-in is not used for the new session, and a sign-out ends a session.
#[tokio::test]
async fn a_planted_session_is_not_taken_over() {
    let bench = Bench::start().await;
    let planted = "f".repeat(64);
    let (name, password) = (bench.admin.name.as_str(), bench.admin.password.as_str());
    let cookie = format!("Cookie: tickwright_session={planted}; XXL_JOB_LOGIN_IDENTITY={planted}\r\n");
    let reply = bench.request("POST", OLD, &cookie, &[("userName", name), ("password", password)]).await;
    assert!(!reply.header("set-cookie")[0].contains(&planted), "{reply:?}");
    let console = bench.nobody().with(cookie.trim()).with("Sec-Fetch-Site: same-origin");
    let reply = console.send("POST", "/v1/session", &json!({ "user": name, "password": password })).await;
    assert!(!reply.header("set-cookie")[0].contains(&planted), "{reply:?}");
    assert_eq!(console.send("GET", "/v1/me", &Value::Null).await.status, 401, "it opens nothing");

    let (one, two) = (bench.admin().await, bench.admin().await);
    one.done("DELETE", "/v1/session", &Value::Null).await;
    assert_eq!(one.refused("GET", "/v1/me", &Value::Null).await, "not_signed_in");
    two.get("/v1/me").await;
    bench.stop().await;
}
