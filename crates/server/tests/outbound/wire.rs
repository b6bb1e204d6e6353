//! Requests as executors see them, byte for byte.

use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use tickwright_server::outbound::{Calls, Outbound, Sent};

use super::kit::{Scripted, TOKEN, callee, ok, outbound, request, run, take};

#[tokio::test]
async fn a_run_leaves_in_one_piece_letter_for_letter() {
    let (executor, mut seen) = journal().await;
    let to = callee(&format!("http://{}/job/", executor.at));
    let sent = outbound().run(&to, &request(9), 3, super::kit::SOON).await;
    assert_eq!(sent, Sent::Accepted);
    let body = r#"{"jobId":7,"executorHandler":"demo","executorParams":"","executorBlockStrategy":"SERIAL_EXECUTION","executorTimeout":0,"logId":9,"logDateTime":1586629003729,"glueType":"BEAN","glueSource":"","glueUpdatetime":0,"broadcastIndex":0,"broadcastTotal":1}"#;
    let expected = format!(
        "POST /job/run HTTP/1.1\r\n\
         Host: {}\r\n\
         Content-Type: application/json;charset=UTF-8\r\n\
         XXL-JOB-ACCESS-TOKEN: {TOKEN}\r\n\
         XXL-JOB-APPNAME: sample\r\n\
         Tickwright-Attempt: 3\r\n\
         Content-Length: {}\r\n\
         \r\n{body}",
        executor.at,
        body.len(),
    );
    assert_eq!(seen.recv().await.unwrap(), expected);
}

#[tokio::test]
async fn the_other_calls_have_their_own_paths_and_bodies() {
    let (executor, mut seen) = journal().await;
    let (outbound, to) = (outbound(), executor.callee());
    outbound.beat(&to).await.unwrap();
    check(&mut seen, "/beat", "{}").await;
    outbound.idle_beat(&to, 7).await.unwrap();
    check(&mut seen, "/idleBeat", r#"{"jobId":7}"#).await;
    outbound.kill(&to, 7).await.unwrap();
    check(&mut seen, "/kill", r#"{"jobId":7}"#).await;
    outbound.log(&to, 9, 1_586_629_003_729, 4).await.unwrap();
    let body = r#"{"logDateTim":1586629003729,"logDateTime":1586629003729,"logId":9,"fromLineNum":4}"#;
    check(&mut seen, "/log", body).await;
    assert_eq!(executor.connections(), 1);
}

async fn check(seen: &mut mpsc::UnboundedReceiver<String>, path: &str, body: &str) {
    let request = seen.recv().await.unwrap();
    assert!(request.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{request}");
    assert!(request.ends_with(&format!("\r\nContent-Length: {}\r\n\r\n{body}", body.len())), "{request}");
}

#[tokio::test]
async fn without_a_token_the_header_is_sent_empty() {
    let (executor, mut seen) = journal().await;
    let to = tickwright_server::outbound::Callee { token: None, ..executor.callee() };
    assert_eq!(run(&outbound(), &to).await, Sent::Accepted);
    assert!(seen.recv().await.unwrap().contains("\r\nXXL-JOB-ACCESS-TOKEN: \r\n"));
}

#[tokio::test]
async fn nothing_shows_a_token() {
    let echo = format!(r#"{{"code":500,"msg":"no {TOKEN} here"}}"#);
    let executor = Scripted::answering(super::kit::reply(&echo)).await;
    let (outbound, to): (Outbound, _) = (outbound(), executor.callee());
    assert_eq!(run(&outbound, &to).await, Sent::Refused { reason: "no … here".to_owned() });
    let error = outbound.kill(&to, 7).await.unwrap_err();
    for text in [format!("{to:?}"), format!("{error:?} {error}")] {
        assert!(!text.contains(TOKEN), "{text}");
    }
}

/// An executor that accepts everything and records the requests.
async fn journal() -> (Scripted, mpsc::UnboundedReceiver<String>) {
    let (saw, seen) = mpsc::unbounded_channel();
    let executor = Scripted::start(move |_, mut stream| {
        let saw = saw.clone();
        async move {
            while let Some(request) = take(&mut stream).await {
                saw.send(request).unwrap();
                stream.write_all(ok().as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    (executor, seen)
}
