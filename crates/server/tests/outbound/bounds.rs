//! An executor that hangs, dies or is overloaded affects only its own calls, and those only a little.

use std::sync::Arc;
use std::time::Duration;

use tickwright_server::outbound::{BreakerState, Callee, Calls, Options, Outbound, Sent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::kit::{SOON, Scripted, callee, ok, options, outbound, request, run, run_within, take, until};

#[tokio::test]
async fn only_so_many_runs_are_under_way_and_other_calls_still_get_through() {
    let release = Arc::new(Semaphore::new(0));
    let executor = holding(&release).await;
    let outbound = Outbound::new(Options { in_flight_max: 2, waiting_max: 1, ..options() }).unwrap();
    let to = executor.callee();

    let mut runs = JoinSet::new();
    for _ in 0..3 {
        let (outbound, to) = (outbound.clone(), to.clone());
        runs.spawn(async move { run(&outbound, &to).await });
    }
    until(&outbound, &to, |figures| (figures.runs_in_flight, figures.runs_waiting) == (2, 1)).await;

    let Sent::Deferred { reason, .. } = run(&outbound, &to).await else { panic!("too many wait") };
    assert!(reason.contains("1 calls are already waiting"), "{reason}");
    outbound.beat(&to).await.unwrap();
    outbound.kill(&to, 7).await.unwrap();

    release.add_permits(3);
    for sent in runs.join_all().await {
        assert_eq!(sent, Sent::Accepted);
    }
    until(&outbound, &to, |figures| (figures.runs_in_flight, figures.runs_waiting) == (0, 0)).await;
    assert!(executor.connections() <= 3);
}

#[tokio::test]
async fn a_run_that_cannot_leave_in_time_never_leaves() {
    let release = Arc::new(Semaphore::new(0));
    let executor = holding(&release).await;
    let outbound = Outbound::new(Options { in_flight_max: 1, ..options() }).unwrap();
    let to = executor.callee();
    assert!(matches!(run_within(&outbound, &to, Duration::ZERO).await, Sent::Unreachable { .. }));

    let first = tokio::spawn({
        let (outbound, to) = (outbound.clone(), to.clone());
        async move { run(&outbound, &to).await }
    });
    until(&outbound, &to, |figures| figures.runs_in_flight == 1).await;
    let Sent::Deferred { reason, .. } = run_within(&outbound, &to, Duration::from_millis(50)).await else {
        panic!("it had no turn")
    };
    assert!(reason.contains("none ended in time"), "{reason}");
    release.add_permits(1);
    assert_eq!(first.await.unwrap(), Sent::Accepted);
    assert_eq!(executor.connections(), 1);
}

#[tokio::test]
async fn a_large_request_that_is_not_read_in_time_never_arrives_whole() {
    let (saw, mut seen) = mpsc::unbounded_channel();
    let executor = Scripted::start(move |_, mut stream| {
        let saw = saw.clone();
        async move {
            // Reads only after the sender has given up.
            let mut received = Vec::new();
            stream.readable().await.unwrap();
            tokio::time::sleep(Duration::from_secs(2)).await;
            let _ = stream.read_to_end(&mut received).await;
            saw.send(received.len()).unwrap();
        }
    })
    .await;
    let mut request = request(1);
    request.glue_source = "x".repeat(5_000_000);
    let within = Duration::from_secs(1);
    let sent = outbound().run(&executor.callee(), &request, 1, within).await;
    if matches!(sent, Sent::Unknown { .. }) && seen.recv().await.unwrap() < 5_000_000 {
        return;
    }
    panic!("the kernel took it all, or {sent:?}");
}

#[tokio::test]
async fn an_address_that_does_not_answer_is_left_alone_for_a_while() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    drop(listener);
    let (outbound, to) = (outbound(), callee(&format!("http://{at}")));
    for _ in 0..5 {
        let Sent::Unreachable { reason, .. } = run(&outbound, &to).await else { panic!("nobody listens") };
        assert!(reason.contains("failed to connect"), "{reason}");
    }
    assert_eq!(outbound.figures(&to.address).unwrap().breaker, BreakerState::Open);
    let Sent::Deferred { reason, .. } = run(&outbound, &to).await else { panic!("nobody listens") };
    assert!(reason.contains("the next call follows shortly"), "{reason}");

    // It is back: its first answer closes the breaker.
    let executor = Scripted::start_at(at, |_, mut stream| async move {
        while take(&mut stream).await.is_some() {
            stream.write_all(ok().as_bytes()).await.unwrap();
        }
    })
    .await;
    outbound.beat(&to).await.unwrap();
    assert_eq!(outbound.figures(&to.address).unwrap().breaker, BreakerState::Closed);
    assert_eq!(run(&outbound, &to).await, Sent::Accepted);
    assert_eq!(outbound.figures(&to.address).unwrap().breaker, BreakerState::Closed);
    drop(executor);
}

#[tokio::test]
async fn a_hung_executor_costs_nobody_else() {
    let (hung, well) = (Scripted::hanging().await, Scripted::answering(ok()).await);
    let outbound = Outbound::new(Options { in_flight_max: 4, ..options() }).unwrap();
    let to = hung.callee();
    let mut runs = JoinSet::new();
    for _ in 0..100 {
        let (outbound, to) = (outbound.clone(), to.clone());
        runs.spawn(async move { run(&outbound, &to).await });
    }
    until(&outbound, &to, |figures| (figures.runs_in_flight, figures.runs_waiting) == (4, 96)).await;
    for _ in 0..50 {
        assert_eq!(run(&outbound, &well.callee()).await, Sent::Accepted);
    }
    // The breaker spares the waiting calls: a few time out, the others fail at once.
    let (mut unknown, mut deferred) = (0, 0);
    for sent in runs.join_all().await {
        match sent {
            Sent::Unknown { .. } => unknown += 1,
            Sent::Deferred { .. } => deferred += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(unknown + deferred, 100);
    assert!((5..=12).contains(&unknown), "{unknown}");
    assert_eq!(outbound.figures(&to.address).unwrap().breaker, BreakerState::Open);
}

#[tokio::test]
async fn an_app_with_many_hung_executors_leaves_connections_for_others() {
    let outbound = Outbound::new(Options { connections_max: 8, ..options() }).unwrap();
    let mut runs = JoinSet::new();
    let mut hung = Vec::new();
    for _ in 0..8 {
        let executor = Scripted::hanging().await;
        let (outbound, to) = (outbound.clone(), executor.callee());
        runs.spawn(async move { run(&outbound, &to).await });
        hung.push(executor);
    }
    // Six hang; the other two are for other apps.
    let refused = runs.join_next().await.unwrap().unwrap();
    let Sent::Deferred { reason, .. } = refused else { panic!("{refused:?}") };
    assert!(reason.contains("too many connections"), "{reason}");
    assert!(runs.join_next().await.is_some());
    let well = Scripted::answering(ok()).await;
    let other = Callee { app: "other".to_owned(), ..well.callee() };
    assert_eq!(run(&outbound, &other).await, Sent::Accepted);
    for sent in runs.join_all().await {
        assert!(matches!(sent, Sent::Unknown { .. }), "{sent:?}");
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_nothing_behind() {
    let hung = Scripted::hanging().await;
    let (outbound, to) = (outbound(), hung.callee());
    let request = request(1);
    let call = tokio::time::timeout(Duration::from_millis(50), outbound.run(&to, &request, 1, SOON));
    assert!(call.await.is_err());
    let figures = outbound.figures(&to.address).unwrap();
    assert_eq!((figures.runs_in_flight, figures.resting_connections), (0, 0));
}

/// An executor that answers runs only when allowed, and everything else at once.
async fn holding(release: &Arc<Semaphore>) -> Scripted {
    let release = Arc::clone(release);
    Scripted::start(move |_, mut stream| {
        let release = Arc::clone(&release);
        async move {
            while let Some(request) = take(&mut stream).await {
                if request.starts_with("POST /run") {
                    release.acquire().await.unwrap().forget();
                }
                if stream.write_all(ok().as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    })
    .await
}
