//! Answers of executors, and how they are classified.

use std::time::Duration;

use protocol::xxl::LogPage;
use tickwright_server::outbound::{Calls, Sent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use super::kit::{Scripted, ok, outbound, reply, request, run, take};

#[tokio::test]
async fn a_run_is_accepted_refused_or_unknown_by_its_answer() {
    accepted(&ok()).await;
    accepted("HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 12\n\n{\"code\":200}\n").await;
    accepted(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{\"code\r\n6\r\n\":200}\r\n0\r\n\r\n",
    )
    .await;
    accepted(&reply(r#"{"code":"200","msg":null,"content":null}"#)).await;

    refused(&reply(r#"{"code":500,"msg":"job handler [demo] not found."}"#), "job handler [demo] not found.")
        .await;
    refused(&reply(r#"{"code":500}"#), "without a message").await;
    refused(&reply(r#"[{"code":500}]"#), "not of this protocol").await;
    // The most used Go client.
    let listed = r#"[{"logId":1,"logDateTim":1,"executeResult":{"code":500,"msg":"Task not registered"},"handleCode":500,"handleMsg":"Task not registered"}]"#;
    refused(&reply(listed), "Task not registered").await;
    refused(&reply(&listed.replace(":500", ":200")), "not of this protocol").await;
    refused(&reply("<html>"), "not of this protocol").await;
    refused(&reply("\u{fffd}"), "not of this protocol").await;
    refused(&reply(""), "not of this protocol").await;
    refused(&reply(r#"{"msg":"no code"}"#), "no code").await;
    refused("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", "HTTP 401; check the token of the app")
        .await;
    refused("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", "HTTP 413; shorten").await;
    refused("HTTP/1.1 500 Oops\r\nContent-Length: 12\r\n\r\n{\"code\":200}", "HTTP 500").await;
    refused("HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\n", "redirects are not followed")
        .await;

    unknown("HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n", "a gateway returned HTTP 504").await;
    unknown(&reply(r#"{"code":200,"msg":"#), "not of this protocol").await;
    unknown("SSH-2.0-OpenSSH_9.2\r\n", "not HTTP").await;
    unknown("HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n", "more than 65536 bytes").await;
    unknown(&format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(100_000)), "more than 65536 bytes").await;
}

async fn accepted(reply: &str) {
    assert_eq!(outcome(reply).await, Sent::Accepted, "{reply}");
}

async fn refused(reply: &str, why: &str) {
    let Sent::Refused { reason } = outcome(reply).await else { panic!("{reply}") };
    assert!(reason.contains(why), "{reply}: {reason}");
}

async fn unknown(reply: &str, why: &str) {
    let Sent::Unknown { reason } = outcome(reply).await else { panic!("{reply}") };
    assert!(reason.contains(why), "{reply}: {reason}");
}

async fn outcome(reply: &str) -> Sent {
    let executor = Scripted::answering(reply).await;
    run(&outbound(), &executor.callee()).await
}

#[tokio::test]
async fn an_answer_may_end_with_the_connection() {
    let executor = Scripted::start(|_, mut stream| async move {
        take(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"code\":200}").await.unwrap();
    })
    .await;
    assert_eq!(run(&outbound(), &executor.callee()).await, Sent::Accepted);
}

#[tokio::test]
async fn no_answer_leaves_it_unknown_and_nothing_is_sent_again() {
    // Hangs, drips, closes, breaks off; each after it has read the request.
    type Script = fn(tokio::net::TcpStream) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
    let scripts: [(Script, &str); 4] = [
        (
            |stream| {
                Box::pin(async move {
                    let _open = stream;
                    std::future::pending().await
                })
            },
            "did not respond within 1s",
        ),
        (
            |mut stream| {
                Box::pin(async move {
                    while stream.write_all(b"H").await.is_ok() {
                        let rest = "TTP/1.1 200 OK\r\nX: ".to_owned() + &"x".repeat(100);
                        for byte in rest.as_bytes() {
                            sleep(Duration::from_millis(50)).await;
                            let _ = stream.write_all(&[*byte]).await;
                        }
                    }
                })
            },
            "did not respond within 1s",
        ),
        (|stream| Box::pin(async move { drop(stream) }), "closed the connection without a response"),
        (
            |stream| {
                Box::pin(async move {
                    let socket = stream.into_std().unwrap();
                    socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
                })
            },
            "lost the connection before a response",
        ),
    ];
    for (script, why) in scripts {
        let executor = Scripted::start(move |_, mut stream| async move {
            take(&mut stream).await.unwrap();
            script(stream).await;
        })
        .await;
        let Sent::Unknown { reason } = run(&outbound(), &executor.callee()).await else { panic!("{why}") };
        assert!(reason.contains(why), "{reason}");
        assert_eq!(executor.connections(), 1, "{why}");
    }
}

#[tokio::test]
async fn an_answer_that_never_ends_costs_only_its_bound() {
    let executor = Scripted::start(|_, mut stream| async move {
        take(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
    })
    .await;
    let Sent::Unknown { reason } = run(&outbound(), &executor.callee()).await else { panic!("unknown") };
    assert!(reason.contains("more than 65536 bytes"), "{reason}");
}

#[tokio::test]
async fn an_answer_before_the_end_of_the_request_is_heard() {
    let executor = Scripted::start(|_, mut stream| async move {
        stream.read_exact(&mut [0; 16]).await.unwrap();
        stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        std::future::pending().await
    })
    .await;
    let mut request = request(1);
    request.glue_source = "x".repeat(4 * 1024 * 1024);
    let sent = outbound().run(&executor.callee(), &request, 1, super::kit::SOON).await;
    let Sent::Refused { reason } = sent else { panic!("{sent:?}") };
    assert!(reason.contains("HTTP 413"), "{reason}");
}

#[tokio::test]
async fn a_large_request_arrives_whole() {
    let executor = Scripted::start(|_, mut stream| async move {
        let mut received = Vec::new();
        while !received.ends_with(b"\"broadcastTotal\":1}") {
            assert!(stream.read_buf(&mut received).await.unwrap() > 0);
        }
        stream.write_all(ok().as_bytes()).await.unwrap();
    })
    .await;
    let mut request = request(1);
    request.glue_source = "x".repeat(4 * 1024 * 1024);
    let sent = outbound().run(&executor.callee(), &request, 1, super::kit::SOON).await;
    assert_eq!(sent, Sent::Accepted);
}

#[tokio::test]
async fn anything_but_a_plain_yes_is_busy() {
    for (reply, idle) in [
        (ok(), true),
        (reply(r#"{"code":500,"msg":"job thread is running or has trigger queue."}"#), false),
        (reply("[]"), false),
        ("HTTP/1.1 404 Not Found\r\n\r\n".to_owned(), false),
        ("HTTP/1.1 201 Created\r\nContent-Length: 12\r\n\r\n{\"code\":200}".to_owned(), false),
    ] {
        let executor = Scripted::answering(reply.clone()).await;
        assert_eq!(outbound().idle_beat(&executor.callee(), 7).await.is_ok(), idle, "{reply}");
    }
}

#[tokio::test]
async fn a_kill_says_what_the_executor_said() {
    for (body, text) in [
        (r#"{"code":200,"msg":"job thread already killed."}"#, "job thread already killed."),
        (
            r#"{"code":200,"msg":"Success","content":"job thread already killed."}"#,
            "job thread already killed.",
        ),
        (r#"{"code":200,"msg":"Success","data":"job thread already killed."}"#, "job thread already killed."),
        (r#"{"code":200}"#, ""),
    ] {
        let executor = Scripted::answering(reply(body)).await;
        assert_eq!(outbound().kill(&executor.callee(), 7).await.unwrap(), text, "{body}");
    }
}

#[tokio::test]
async fn the_last_line_of_a_log_is_known_where_the_executor_tells() {
    for (to, text, expected) in [(42, "", Some(42)), (0, "", None), (999_999_999, "", None), (42, "x", None)]
    {
        let body =
            format!(r#"{{"code":200,"content":{{"fromLineNum":1,"toLineNum":{to},"logContent":"{text}"}}}}"#);
        let executor = Scripted::answering(reply(&body)).await;
        assert_eq!(outbound().last_line(&executor.callee(), 7, 0).await.unwrap(), expected, "{body}");
    }
}

#[tokio::test]
async fn a_page_of_a_log_is_read_in_every_dialect() {
    let page = LogPage { from_line_num: 4, to_line_num: 5, log_content: "a\nb\n".into(), is_end: false };
    // The next line to request is the same again, regardless of the client's numbers.
    let nothing = LogPage { from_line_num: 4, to_line_num: 3, ..LogPage::default() };
    for (body, expected) in [
        (
            r#"{"code":200,"content":{"fromLineNum":4,"toLineNum":5,"logContent":"a\nb\n","isEnd":false}}"#,
            &page,
        ),
        (
            r#"{"code":200,"data":{"fromLineNum":4,"toLineNum":5,"logContent":"a\nb\n"},"content":null}"#,
            &page,
        ),
        (
            r#"{"code":200,"data":{"fromLineNum":"4","toLineNum":5,"logContent":"a\nb\n","isEnd":null}}"#,
            &page,
        ),
        (r#"{"code":200,"data":null,"content":null}"#, &nothing),
        (r#"{"code":200,"data":{"fromLineNum":4,"toLineNum":0,"logContent":null}}"#, &nothing),
        (r#"{"code":200,"content":{"fromLineNum":4,"toLineNum":4,"logContent":""}}"#, &nothing),
        (r#"{"code":200}"#, &nothing),
    ] {
        let executor = Scripted::logging(body, r#"{"code":200}"#).await;
        assert_eq!(&outbound().log(&executor.callee(), 9, 1, 4).await.unwrap(), expected, "{body}");
    }
}

/// Some clients ignore the requested line number.
#[tokio::test]
async fn a_log_that_comes_whole_with_every_page_is_read_once() {
    let whole = r#"{"code":200,"content":{"fromLineNum":1,"toLineNum":6,"logContent":"a\nb\nc\n"}}"#;
    let executor = Scripted::logging(whole, whole).await;
    let outbound = outbound();
    for (from, text, to) in [(1, "a\nb\nc\n", 3), (3, "c\n", 3), (4, "", 3), (7, "", 6)] {
        let page = outbound.log(&executor.callee(), 9, 1, from).await.unwrap();
        assert_eq!((page.log_content.as_str(), page.to_line_num), (text, to), "from {from}");
    }
    // A message in place of log lines is not the log, and shows nothing about its paging.
    let executor = Scripted::logging(whole, r#"{"code":200,"content":{"logContent":"no such line"}}"#).await;
    assert_eq!(outbound.log(&executor.callee(), 9, 1, 4).await.unwrap().log_content, "a\nb\nc\n");
}

#[tokio::test]
async fn a_log_that_is_too_long_for_one_answer_comes_in_pages() {
    let line = "x".repeat(99) + "\\n";
    let body = format!(
        r#"{{"code":200,"content":{{"fromLineNum":1,"toLineNum":20000,"logContent":"{}","isEnd":false}}}}"#,
        line.repeat(20_000)
    );
    let executor = Scripted::answering(reply(&body)).await;
    let page = outbound().log(&executor.callee(), 9, 1, 1).await.unwrap();
    assert_eq!((page.from_line_num, page.to_line_num), (1, 10_381));
    assert_eq!(page.log_content.lines().count(), 10_381);
    assert!(page.log_content.ends_with("x\n"));
}
