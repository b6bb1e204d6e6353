//! `/run` or `/trigger`: the path that an executor serves is learned, and a run reaches it once.

use std::sync::Arc;

use tickwright_server::outbound::{Calls, Sent, TriggerPath};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use super::kit::{Scripted, ok, outbound, reply, run, take};

#[tokio::test]
async fn the_other_path_is_tried_once_and_remembered() {
    let stock = |path: &str| {
        reply(&format!(r#"{{"code":500,"msg":"invalid request, uri-mapping({path}) not found."}}"#))
    };
    learns("/trigger", stock("/run")).await;
    learns("/trigger", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
    learns("/trigger", "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
}

async fn learns(served: &'static str, otherwise: String) {
    let (executor, mut seen) = serving(Some(served), otherwise).await;
    let (outbound, to) = (outbound(), executor.callee());
    for _ in 0..2 {
        assert_eq!(run(&outbound, &to).await, Sent::Accepted);
    }
    outbound.forget(&to.address);
    assert_eq!(run(&outbound, &to).await, Sent::Accepted);
    let mut paths = Vec::new();
    while let Ok(path) = seen.try_recv() {
        paths.push(path);
    }
    assert_eq!(paths, ["/run", "/trigger", "/trigger", "/run", "/trigger"]);
}

#[tokio::test]
async fn what_a_registration_told_is_believed_until_it_is_wrong() {
    let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned();
    let (executor, mut seen) = serving(Some("/run"), missing).await;
    let (outbound, to) = (outbound(), executor.callee());
    outbound.learn(&to.address, TriggerPath::Trigger);
    assert_eq!(run(&outbound, &to).await, Sent::Accepted);
    assert_eq!((seen.recv().await.unwrap(), seen.recv().await.unwrap()), ("/trigger".into(), "/run".into()));
    assert_eq!(outbound.figures(&to.address).unwrap().trigger_path, Some(TriggerPath::Run));
}

#[tokio::test]
async fn an_executor_with_neither_path_refuses() {
    let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned();
    let (executor, mut seen) = serving(None, missing).await;
    let (outbound, to) = (outbound(), executor.callee());
    let Sent::Refused { reason } = run(&outbound, &to).await else { panic!("refused") };
    assert!(reason.contains("HTTP 404; check the address and its path prefix"), "{reason}");
    assert_eq!((seen.recv().await.unwrap(), seen.recv().await.unwrap()), ("/run".into(), "/trigger".into()));
    assert!(seen.try_recv().is_err());
    assert_eq!(outbound.figures(&to.address).unwrap().trigger_path, None);
}

#[tokio::test]
async fn another_refusal_is_no_reason_to_ask_twice() {
    let body = r#"{"code":500,"msg":"job handler [uri-mapping(/x) not found] not found."}"#;
    let (executor, mut seen) = serving(None, reply(body)).await;
    assert!(matches!(run(&outbound(), &executor.callee()).await, Sent::Refused { .. }));
    assert_eq!(seen.recv().await.unwrap(), "/run");
    assert!(seen.try_recv().is_err());
}

/// An executor that serves one path and records the requested paths.
async fn serving(
    served: Option<&'static str>,
    otherwise: String,
) -> (Scripted, mpsc::UnboundedReceiver<String>) {
    let (saw, seen) = mpsc::unbounded_channel();
    let otherwise = Arc::new(otherwise);
    let executor = Scripted::start(move |_, mut stream| {
        let (saw, otherwise) = (saw.clone(), Arc::clone(&otherwise));
        async move {
            while let Some(request) = take(&mut stream).await {
                let path = request.split(' ').nth(1).unwrap().to_owned();
                let reply = if Some(path.as_str()) == served { ok() } else { otherwise.to_string() };
                saw.send(path).unwrap();
                stream.write_all(reply.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    (executor, seen)
}
