//! Texts longer than any legitimate one, and more requests than one user may send.

use engine::Store as _;
use serde_json::{Value, json};
use store::Rights;

use crate::kit::Bench;
use crate::script::{NEW, OLD, job_form};
use crate::v1::client::{PASSWORD, body};

/// A search text has a maximum length in every list of every API: a longer one is a client error, not a database error.
#[tokio::test]
async fn a_search_text_has_a_maximum_in_every_list() {
    let bench = Bench::start().await;
    let huge = "x".repeat(200_000);
    for login in [OLD, NEW] {
        let script = bench.admin_script(login).await;
        for (path, field) in [
            ("/jobinfo/pageList", "jobDesc"),
            ("/jobinfo/pageList", "executorHandler"),
            ("/jobinfo/pageList", "author"),
            ("/jobgroup/pageList", "appname"),
            ("/jobgroup/pageList", "title"),
            ("/user/pageList", "username"),
        ] {
            let why = script.refused(path, &[(field, &huge)]).await;
            assert!(why.contains("the search text has"), "{path} {field}: {why}");
        }
    }
    let admin = bench.admin().await;
    let long = "x".repeat(2_000);
    for path in
        ["/v1/jobs?text=", "/v1/jobs?handler=", "/v1/jobs?author=", "/v1/jobs?tag=", "/v1/users?text="]
    {
        let reply = admin.send("GET", &format!("{path}{long}"), &Value::Null).await;
        assert_eq!(
            (reply.status, reply.json()["code"].as_str()),
            (422, Some("invalid_fields")),
            "{path}: {reply:?}"
        );
    }
    for path in [
        "/v1/audit?principal=",
        "/v1/audit?action=",
        "/v1/audit?object=",
        "/v1/runs?job=",
        "/v1/alerts?job=",
        "/v1/jobs?app=",
    ] {
        let reply = admin.send("GET", &format!("{path}{long}"), &Value::Null).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
    }
    bench.stop().await;
}

/// A parameter has 16 000 characters at most, in every API.
#[tokio::test]
async fn a_parameter_has_a_maximum_at_every_door() {
    let bench = Bench::start().await;
    let admin = bench.admin().await;
    let (longest, longer) = ("参".repeat(16_000), "参".repeat(16_001));
    let with = |param: &str| {
        let mut job = body(&bench.app, "Long");
        job["param"] = json!(param);
        job
    };
    admin.done("PUT", "/v1/jobs/long", &with(&longest)).await;
    assert_eq!(admin.refused("PUT", "/v1/jobs/long", &with(&longer)).await, "invalid_fields");
    assert_eq!(admin.refused("PUT", "/v1/jobs/other", &with(&longer)).await, "invalid_fields");
    assert_eq!(
        admin.refused("POST", "/v1/jobs/long/trigger", &json!({ "param": longer })).await,
        "invalid_fields"
    );
    admin.post("/v1/jobs/long/trigger", &json!({ "param": longest })).await;
    let script = bench.admin_script(OLD).await;
    let why = script.refused("/jobinfo/add", &job_form(&[("executorParam", &longer)])).await;
    assert!(why.starts_with("executorParam: "), "{why}");
    let id = bench.database.job_by_key("long").await.unwrap().unwrap().id.to_string();
    let why = script.refused("/jobinfo/trigger", &[("id", &id), ("executorParam", &longer)]).await;
    assert!(why.starts_with("executorParam: "), "{why}");
    let call = json!({ "id": id, "executorParam": longer }).to_string();
    let answer = bench.post("/api/triggerJob", Some(&bench.token), &call).await;
    assert!(answer.contains("executorParam: "), "{answer}");
    bench.stop().await;
}

/// A user has one rate limit over all APIs and sessions. It does not affect other users.
#[tokio::test]
async fn a_user_who_sends_too_many_requests_slows_down_nobody_else() {
    // Few, so that a busy machine can send more.
    let bench = Bench::start_with(|settings| settings.requests_each = 20).await;
    let greedy = bench.person("anna", Rights::VIEW).await;
    bench.person("berta", Rights::VIEW).await;
    let (first, second) =
        (bench.script(OLD, "anna", PASSWORD).await, bench.script(NEW, "anna", PASSWORD).await);
    let other = bench.script(OLD, "berta", PASSWORD).await;
    let page = async |script: &crate::script::Script<'_>| {
        let headers = format!("Cookie: {}\r\n", script.cookie);
        bench.request("GET", "/xxl-job-admin/jobinfo/pageList", &headers, &[]).await
    };
    let flood = (0..200).map(|number| page(if number % 2 == 0 { &first } else { &second }));
    let refused = async {
        let replies = futures_util::future::join_all(flood).await;
        let (mut refused, mut served) = (0, 0);
        for reply in replies {
            match reply.status {
                429 => {
                    assert_eq!(reply.header("retry-after"), ["1"], "{reply:?}");
                    refused += 1;
                }
                200 => served += 1,
                _ => panic!("{reply:?}"),
            }
        }
        (refused, served)
    };
    let others = async {
        for _ in 0..10 {
            let reply = page(&other).await;
            assert_eq!(reply.status, 200, "{reply:?}");
        }
    };
    let ((refused, served), ()) = tokio::join!(refused, others);
    assert!(refused > 0 && served > 20, "{refused} {served}");
    // The limit counts for the other API, too: its calls are the user's next ones.
    let flood = futures_util::future::join_all((0..200).map(|_| greedy.send("GET", "/v1/me", &Value::Null)));
    assert!(flood.await.iter().any(|reply| reply.status == 429));
    assert_eq!(page(&other).await.status, 200);
    bench.stop().await;
}
