//! Every request a centre can send over TCP, and the response.

mod kit;

use std::net::SocketAddr;
use std::time::Duration;

use kit::{Centre, TOKEN, builder, call, send, trigger, with};
use protocol::xxl::{Lineage, texts};
use serde_json::{Value, json};
use tickwright_executor::{Context, Executor, Job};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn executor() -> (Executor, SocketAddr, Centre, tempfile::TempDir) {
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().expect("a directory");
    let executor = builder(&centre, directory.path())
        .job(Job::new("echo", |ctx: Context| async move {
            ctx.log("first");
            ctx.log("second");
            ctx.param().to_owned()
        }))
        .job(Job::new("quiet", |_| async {}))
        .job(Job::new("sleep", |_| tokio::time::sleep(Duration::from_secs(3_600))))
        .start()
        .await
        .expect("it starts");
    let address = executor.local_address();
    (executor, address, centre, directory)
}

/// X1 of docs/security.md.
#[tokio::test]
async fn checks_come_in_order_and_in_the_stock_words() {
    let (_executor, to, _centre, _directory) = executor().await;
    let token = format!("XXL-JOB-ACCESS-TOKEN: {TOKEN}\r\n");
    let wrong = "The access token is wrong.";
    let foreign = "invalid request, accessToken or appname invalid.";
    let rows = [
        ("GET /beat", "", Err("invalid request, HttpMethod not support.")),
        ("PUT /nosuch", "", Err("invalid request, HttpMethod not support.")),
        ("POST /beat", "", Err(wrong)),
        ("POST /nosuch", "", Err(wrong)),
        ("POST /run", "", Err(wrong)),
        ("POST /trigger", "XXL-JOB-ACCESS-TOKEN: \r\n", Err(wrong)),
        ("POST /kill", "XXL-JOB-ACCESS-TOKEN: other\r\n", Err(wrong)),
        ("POST /log", "XXL-JOB-ACCESS-TOKEN: P2VQ0MXO5TYB\r\n", Err(wrong)),
        ("POST /idleBeat", &format!("{token}{token}"), Err(wrong)),
        ("POST /beat", &format!("{token}XXL-JOB-ACCESS-TOKEN: other\r\n"), Err(wrong)),
        ("POST /beat", &format!("{token}XXL-JOB-APPNAME: other\r\n"), Err(foreign)),
        ("POST /beat", &format!("{token}XXL-JOB-APPNAME: app\r\n"), Ok(())),
        ("POST /beat", &format!("{token}XXL-JOB-APPNAME: \r\n"), Ok(())),
        ("POST /beat", &token, Ok(())),
        ("POST /beat", &token.to_lowercase().replace(&TOKEN.to_lowercase(), TOKEN), Ok(())),
        ("POST /nosuch", &token, Err("invalid request, uri-mapping(/nosuch) not found.")),
        ("POST /beat/", &token, Err("invalid request, uri-mapping(/beat/) not found.")),
        ("POST /beat?a=b", &token, Err("invalid request, uri-mapping(/beat?a=b) not found.")),
        ("POST /", &token, Err("invalid request, uri-mapping(/) not found.")),
    ];
    for (line, headers, expected) in rows {
        let head = format!("{line} HTTP/1.1\r\nHost: x\r\n{headers}");
        let (status, body) = send(to, &head, Some("{}")).await;
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(status, 200);
        match expected {
            Ok(()) => {
                assert_eq!(answer, json!({"code": 200, "msg": "Success", "content": null, "data": null}))
            }
            Err(msg) => assert_eq!((&answer["code"], &answer["msg"]), (&json!(500), &json!(msg)), "{head}"),
        }
    }
}

#[tokio::test]
async fn a_beat_needs_neither_body_nor_length() {
    let (_executor, to, _centre, _directory) = executor().await;
    let head = format!("POST /beat HTTP/1.1\r\nHost: x\r\nXXL-JOB-ACCESS-TOKEN: {TOKEN}\r\n");
    for body in [None, Some(""), Some("\"\""), Some("{}"), Some("what?")] {
        let (status, answer) = send(to, &head, body).await;
        assert_eq!(status, 200);
        assert!(answer.starts_with(r#"{"code":200,"#), "{answer}");
    }
}

#[tokio::test]
async fn who_is_refused_may_say_all_and_reads_why() {
    let (_executor, to, _centre, _directory) = executor().await;
    let body = trigger(100, "echo", &"x".repeat(4 * 1024 * 1024)).to_string();
    let head = "POST /run HTTP/1.1\r\nHost: x\r\nXXL-JOB-ACCESS-TOKEN: another\r\nConnection: close\r\n";
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains(texts::WRONG_TOKEN), "{answer}");
}

#[tokio::test]
async fn a_body_has_a_limit() {
    let (_executor, to, _centre, _directory) = executor().await;
    let head = format!("POST /run HTTP/1.1\r\nHost: x\r\nXXL-JOB-ACCESS-TOKEN: {TOKEN}\r\n");
    let large = trigger(100, "echo", &"x".repeat(5 * 1024 * 1024));
    assert_eq!(send(to, &head, Some(&large.to_string())).await, (413, String::new()));
    let fits = trigger(101, "quiet", &"x".repeat(4 * 1024 * 1024));
    let (status, answer) = send(to, &head, Some(&fits.to_string())).await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer.starts_with(r#"{"code":200,"#), "{answer}");
}

#[tokio::test]
async fn triggers_are_taken_or_refused_in_the_stock_words() {
    let (_executor, to, centre, _directory) = executor().await;
    let ok = |run_id| trigger(run_id, "echo", "hi");
    let rows = [
        (ok(100), None),
        (
            with(ok(200), "glueType", "GLUE_SHELL"),
            Some("fail, current glue type [GLUE(Shell)] not supported."),
        ),
        (
            with(ok(201), "glueType", "GLUE_GROOVY"),
            Some("fail, current glue type [GLUE(Java)] not supported."),
        ),
        (with(ok(202), "glueType", "COBOL"), Some("glueType[COBOL] is not valid.")),
        (trigger(203, "noSuchHandler", ""), Some("job handler [noSuchHandler] not found.")),
        (with(ok(204), "executorHandler", Value::Null), Some("request error:executorHandler is missing")),
        (with(ok(205), "executorBlockStrategy", "NO_SUCH"), None),
        (with(ok(206), "executorParams", Value::Null), None),
        (with(ok(207), "unknownField", 7), None),
        (with(with(ok(208), "jobId", "2"), "logId", "208"), None),
        (ok(100), Some("repeat trigger job, logId:100")),
    ];
    for (number, (request, refusal)) in rows.into_iter().enumerate() {
        // The last row repeats a finished and confirmed run.
        if number == 10 {
            centre.result(100).await;
            tokio::time::timeout(Duration::from_secs(120), async {
                while call(to, "/run", &ok(100).to_string()).await["code"] == 200 {
                    tokio::task::yield_now().await;
                }
            })
            .await
            .unwrap();
        }
        let path = if number % 2 == 0 { "/run" } else { "/trigger" };
        let answer = call(to, path, &request.to_string()).await;
        match refusal {
            None => assert_eq!(answer["code"], 200, "{request} {answer}"),
            Some(msg) => assert_eq!((&answer["code"], &answer["msg"]), (&json!(500), &json!(msg))),
        }
    }
    for run_id in [100, 205, 206, 207, 208] {
        let (code, message) = centre.result(run_id).await;
        assert_eq!((code, message.as_str()), (200, if run_id == 206 { "" } else { "hi" }));
    }
    assert_eq!(centre.results().len(), 5);
    for nonsense in ["", "null", "[]", "{", "[1,2]", r#"{"jobId":1}"#, r#"{"jobId":"x","logId":1}"#] {
        let answer = call(to, "/run", nonsense).await;
        assert_eq!(answer["code"], 500);
        assert!(answer["msg"].as_str().unwrap().starts_with("request error:"), "{answer}");
    }
}

#[tokio::test]
async fn idle_beat_and_kill_know_whether_a_job_is_busy() {
    let (_executor, to, centre, _directory) = executor().await;
    let job = json!({"jobId": 3}).to_string();
    assert_eq!(call(to, "/idleBeat", &job).await["code"], 200);
    let nothing = call(to, "/kill", &job).await;
    let text = "job thread already killed.";
    assert_eq!(nothing, json!({"code": 200, "msg": text, "content": text, "data": text}));

    assert_eq!(call(to, "/run", &trigger(300, "sleep", "").to_string()).await["code"], 200);
    assert_eq!(call(to, "/run", &trigger(301, "sleep", "").to_string()).await["code"], 200);
    let busy = call(to, "/idleBeat", &job).await;
    assert_eq!(busy["msg"], "job thread is running or has trigger queue.");
    let later = with(trigger(302, "sleep", ""), "executorBlockStrategy", "DISCARD_LATER");
    assert_eq!(call(to, "/run", &later.to_string()).await["msg"], "block strategy effect：Discard Later");
    assert_eq!(
        call(to, "/run", &trigger(301, "sleep", "").to_string()).await["msg"],
        "repeat trigger job, logId:301"
    );

    assert_eq!(call(to, "/kill", &job).await["msg"], "Success");
    assert_eq!(
        centre.result(300).await,
        (500, "scheduling center kill job. [job running, killed]".to_owned())
    );
    assert_eq!(
        centre.result(301).await,
        (500, "scheduling center kill job. [job not executed, in the job queue, killed.]".to_owned())
    );
}

/// X28 of docs/security.md.
#[tokio::test]
async fn logs_come_by_the_page_and_nothing_else_does() {
    let (_executor, to, centre, _directory) = executor().await;
    for (run_id, handler) in [(400, "echo"), (401, "quiet")] {
        assert_eq!(call(to, "/run", &trigger(run_id, handler, "p").to_string()).await["code"], 200);
        centre.result(run_id).await;
    }
    let ask = |run_id: Value, from: Value| {
        json!({"logDateTim": 1_794_769_410_531_i64, "logId": run_id, "fromLineNum": from}).to_string()
    };
    let answer = call(to, "/log", &ask(400.into(), 1.into())).await;
    assert_eq!(answer["content"], answer["data"]);
    let page = &answer["data"];
    let lines: Vec<&str> = page["logContent"].as_str().unwrap().lines().collect();
    assert_eq!(
        (&page["fromLineNum"], &page["toLineNum"], &page["isEnd"]),
        (&json!(1), &json!(4), &json!(false))
    );
    assert!(lines[0].ends_with("run 400 of job 4: handler echo, shard 0/1, parameter `p`"), "{lines:?}");
    assert!(lines[1].ends_with(" first") && lines[2].ends_with(" second"), "{lines:?}");
    assert!(lines[3].ends_with(" succeeded: p"), "{lines:?}");

    let page = &call(to, "/log", &ask("400".into(), 3.into())).await["data"];
    assert_eq!((&page["toLineNum"], page["logContent"].as_str().unwrap().lines().count()), (&json!(4), 2));
    let page = &call(to, "/log", &ask(400.into(), 5.into())).await["data"];
    assert_eq!((&page["toLineNum"], &page["logContent"]), (&json!(4), &json!("")));
    // It ran and logged nothing: the centre can distinguish that from an unknown run.
    let page = &call(to, "/log", &ask(401.into(), 1.into())).await["data"];
    assert_eq!((&page["toLineNum"], &page["isEnd"]), (&json!(1), &json!(false)));
    assert_eq!(page["logContent"], "no log was written\n");
    // It is running and has logged nothing yet: a client that continues from here gets all lines.
    assert_eq!(call(to, "/run", &trigger(500, "sleep", "").to_string()).await["code"], 200);
    let page = &call(to, "/log", &ask(500.into(), 1.into())).await["data"];
    assert_eq!(page, &json!({"fromLineNum": 1, "toLineNum": 0, "logContent": "", "isEnd": false}));
    let page = &call(to, "/log", &ask(402.into(), 1.into())).await["data"];
    assert_eq!(
        page,
        &json!({"fromLineNum": 1, "toLineNum": 0, "logContent": "readLog fail, logFile not exists", "isEnd": true})
    );
    // The newest lineage spells the field `logDateTime`.
    let newest = json!({"logDateTime": 1_794_769_410_531_i64, "logId": 400, "fromLineNum": 1}).to_string();
    assert_eq!(call(to, "/log", &newest).await["data"]["toLineNum"], 4);

    for odd in [json!("../../etc/passwd"), json!(-1), json!(1e300), json!(u64::MAX), Value::Null] {
        assert_eq!(call(to, "/log", &ask(odd.clone(), 1.into())).await["code"], 500, "{odd}");
    }
    for odd in [json!(-1), json!(1_u64 << 31), json!("x")] {
        assert_eq!(call(to, "/log", &ask(400.into(), odd.clone())).await["code"], 500, "{odd}");
    }
    for odd in ["-1", "9223372036854775807", "NaN", "1e3", "\"..\""] {
        let body = format!(r#"{{"logDateTim":{odd},"logId":400,"fromLineNum":1}}"#);
        assert_eq!(call(to, "/log", &body).await["code"], 500, "{odd}");
    }
}

#[tokio::test]
async fn our_own_centre_says_which_attempt_it_is() {
    let centre = Centre::start(Lineage::L33).await;
    let directory = tempfile::tempdir().unwrap();
    let attempt = Job::new("attempt", |ctx: Context| async move { format!("{:?}", ctx.attempt()) });
    let executor = builder(&centre, directory.path()).job(attempt).start().await.unwrap();
    for (run_id, header, expected) in [
        (100, "Tickwright-Attempt: 3\r\n", "Some(3)"),
        (200, "Tickwright-Attempt: many\r\n", "None"),
        (300, "", "None"),
    ] {
        let head = format!("POST /run HTTP/1.1\r\nHost: x\r\nXXL-JOB-ACCESS-TOKEN: {TOKEN}\r\n{header}");
        send(executor.local_address(), &head, Some(&trigger(run_id, "attempt", "").to_string())).await;
        assert_eq!(centre.result(run_id).await, (200, expected.to_owned()));
    }
}

#[tokio::test]
async fn a_connection_serves_many_calls() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (_executor, to, _centre, _directory) = executor().await;
    let mut stream = tokio::net::TcpStream::connect(to).await.unwrap();
    for _ in 0..10 {
        let request = format!("POST /beat HTTP/1.1\r\nHost: x\r\nXXL-JOB-ACCESS-TOKEN: {TOKEN}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut buffer = [0; 1_024];
        let length = stream.read(&mut buffer).await.unwrap();
        assert!(buffer[..length].starts_with(b"HTTP/1.1 200 OK\r\n"));
    }
}
