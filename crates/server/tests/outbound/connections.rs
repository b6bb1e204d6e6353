//! Connections are kept open, and checked before reuse.

use std::sync::Arc;

use tickwright_server::outbound::Sent;
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::kit::{PATIENCE, Scripted, ok, options, outbound, run, take, until};
use tickwright_server::outbound::{Calls, Options, Outbound};

#[tokio::test]
async fn one_connection_serves_call_after_call() {
    let executor = Scripted::answering(ok()).await;
    let (outbound, to) = (outbound(), executor.callee());
    for _ in 0..10 {
        assert_eq!(run(&outbound, &to).await, Sent::Accepted);
    }
    assert_eq!(executor.connections(), 1);
}

#[tokio::test]
async fn a_server_that_closes_after_each_answer_gets_a_connection_per_call() {
    let executor = Scripted::start(|_, mut stream| async move {
        take(&mut stream).await.unwrap();
        let reply = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 12\r\n\r\n{\"code\":200}";
        stream.write_all(reply.as_bytes()).await.unwrap();
    })
    .await;
    let (outbound, to) = (outbound(), executor.callee());
    for calls in 1..=3 {
        assert_eq!(run(&outbound, &to).await, Sent::Accepted);
        assert_eq!(executor.connections(), calls);
    }
}

#[tokio::test]
async fn a_connection_the_server_closed_while_it_rested_is_not_used() {
    let closed = Arc::new(Notify::new());
    let closing = Arc::clone(&closed);
    let executor = Scripted::start(move |_, mut stream| {
        let closing = Arc::clone(&closing);
        async move {
            take(&mut stream).await.unwrap();
            stream.write_all(ok().as_bytes()).await.unwrap();
            drop(stream);
            closing.notify_one();
        }
    })
    .await;
    let (outbound, to) = (outbound(), executor.callee());
    for calls in 1..=5 {
        assert_eq!(run(&outbound, &to).await, Sent::Accepted);
        closed.notified().await;
        assert_eq!(executor.connections(), calls);
    }
}

#[tokio::test]
async fn a_connection_on_which_the_server_spoke_unasked_is_not_used() {
    let spoken = Arc::new(Notify::new());
    let speaking = Arc::clone(&spoken);
    let executor = Scripted::start(move |_, mut stream| {
        let speaking = Arc::clone(&speaking);
        async move {
            take(&mut stream).await.unwrap();
            stream.write_all(ok().as_bytes()).await.unwrap();
            // An unsolicited answer: if it were taken for the next one, a run would count as accepted by mistake.
            until_read().await;
            stream.write_all(ok().as_bytes()).await.unwrap();
            speaking.notify_one();
            take(&mut stream).await;
        }
    })
    .await;
    let (outbound, to) = (outbound(), executor.callee());
    assert_eq!(run(&outbound, &to).await, Sent::Accepted);
    until(&outbound, &to, |figures| figures.resting_connections == 1).await;
    spoken.notified().await;
    assert_eq!(run(&outbound, &to).await, Sent::Accepted);
    assert_eq!(executor.connections(), 2);
}

/// Long enough for the first answer to be read separately; otherwise the connection would not become idle at all.
async fn until_read() {
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
}

#[tokio::test]
async fn a_request_lost_on_a_resting_connection_is_not_sent_again() {
    let executor = Scripted::start(|_, mut stream| async move {
        take(&mut stream).await.unwrap();
        stream.write_all(ok().as_bytes()).await.unwrap();
        // Reads the request and closes: the run may have been accepted.
        take(&mut stream).await;
    })
    .await;
    let (outbound, to) = (outbound(), executor.callee());
    assert_eq!(run(&outbound, &to).await, Sent::Accepted);
    assert!(matches!(run(&outbound, &to).await, Sent::Unknown { .. }));
    assert_eq!(executor.connections(), 1);
    assert_eq!(run(&outbound, &to).await, Sent::Accepted);
    assert_eq!(executor.connections(), 2);
}

#[tokio::test]
async fn a_connection_nobody_uses_is_closed_soon() {
    let left = Arc::new(Notify::new());
    let leaving = Arc::clone(&left);
    let executor = Scripted::start(move |_, mut stream| {
        let leaving = Arc::clone(&leaving);
        async move {
            take(&mut stream).await.unwrap();
            stream.write_all(ok().as_bytes()).await.unwrap();
            assert_eq!(take(&mut stream).await, None);
            leaving.notify_one();
        }
    })
    .await;
    let (outbound, to) = (outbound(), executor.callee());
    assert_eq!(run(&outbound, &to).await, Sent::Accepted);
    timeout(PATIENCE, left.notified()).await.unwrap();
    assert_eq!(run(&outbound, &to).await, Sent::Accepted);
    assert_eq!(executor.connections(), 2);
}

#[tokio::test]
async fn forgetting_an_address_closes_its_connections() {
    let executor = Scripted::answering(ok()).await;
    let (outbound, to) = (outbound(), executor.callee());
    assert_eq!(run(&outbound, &to).await, Sent::Accepted);
    outbound.forget(&to.address);
    assert_eq!(outbound.figures(&to.address), None);
    assert_eq!(run(&outbound, &to).await, Sent::Accepted);
    assert_eq!(executor.connections(), 2);
}

#[tokio::test]
async fn a_burst_finds_connections_opened_ahead_of_it() {
    let executor = Scripted::answering(ok()).await;
    let (outbound, to) = (outbound(), executor.callee());
    outbound.warm(&to, 4).await;
    until(&outbound, &to, |figures| figures.resting_connections == 4).await;
    let (a, b, c, d) =
        tokio::join!(run(&outbound, &to), run(&outbound, &to), run(&outbound, &to), run(&outbound, &to));
    assert_eq!([a, b, c, d], [Sent::Accepted, Sent::Accepted, Sent::Accepted, Sent::Accepted]);
    assert_eq!(executor.connections(), 4);
}

#[tokio::test]
async fn resting_connections_make_room_when_all_are_taken() {
    let (first, second) = (Scripted::answering(ok()).await, Scripted::answering(ok()).await);
    let outbound = Outbound::new(Options { connections_max: 1, ..options() }).unwrap();
    for executor in [&first, &second, &first] {
        assert_eq!(run(&outbound, &executor.callee()).await, Sent::Accepted);
    }
    assert_eq!((first.connections(), second.connections()), (2, 1));
}
