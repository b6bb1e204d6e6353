//! Addresses that the server must not be made to call.

use tickwright_server::outbound::{Guard, Options, Outbound, Sent};

use super::kit::{Scripted, callee, ok, options, run};

/// X5 of docs/security.md.
#[tokio::test]
async fn what_the_guard_refuses_is_not_even_connected_to() {
    let executor = Scripted::answering(ok()).await;
    let port = executor.at.port();
    let closed = with(Guard::default());
    for host in
        ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "169.254.169.254", "[::ffff:169.254.169.254]"]
    {
        let to = callee(&format!("http://{host}:{port}"));
        let Sent::Unreachable { reason, .. } = run(&closed, &to).await else { panic!("{host}") };
        assert!(reason.contains("is not allowed: "), "{reason}");
        assert!(closed.vet(&to.address).await.is_err(), "{host}");
    }
    let elsewhere = with(Guard { loopback: true, allow: vec!["10.0.0.0/8".parse().unwrap()], own: vec![] });
    assert!(matches!(run(&elsewhere, &executor.callee()).await, Sent::Unreachable { .. }));
    assert_eq!(executor.connections(), 0);
    // A rejection by the guard is our own rule and shows nothing about the executor.
    assert!(closed.figures(&executor.callee().address).is_some());
}

#[tokio::test]
async fn the_centre_does_not_call_itself() {
    let centre = Scripted::answering(ok()).await;
    for own in [centre.at, format!("0.0.0.0:{}", centre.at.port()).parse().unwrap()] {
        let outbound = with(Guard { loopback: true, allow: vec![], own: vec![own] });
        let Sent::Unreachable { reason, .. } = run(&outbound, &centre.callee()).await else {
            panic!("{own}")
        };
        assert!(reason.contains("it is the scheduling centre itself"), "{reason}");
    }
    assert_eq!(centre.connections(), 0);
}

/// X5 of docs/security.md.
#[tokio::test]
async fn a_name_is_called_at_the_ip_that_was_checked() {
    let executor = Scripted::answering(ok()).await;
    let to = callee(&format!("http://localhost:{}", executor.at.port()));
    let outbound = with(Guard { loopback: true, ..Guard::default() });
    outbound.vet(&to.address).await.unwrap();
    assert_eq!(run(&outbound, &to).await, Sent::Accepted);
    let nowhere = callee("http://nowhere.invalid:1");
    assert!(matches!(run(&outbound, &nowhere).await, Sent::Unreachable { .. }));
}

fn with(guard: Guard) -> Outbound {
    Outbound::new(Options { guard, ..options() }).unwrap()
}
