//! One client with many connections does not keep others out, however few files the process may open.

use std::net::SocketAddr;
use std::time::Duration;

use tickwright_tests::process::Wire;
use tickwright_tests::serve::{Serve, WAIT_MAX};
use tokio::net::{TcpSocket, TcpStream};

/// Connects from another address of this machine.
async fn connect(from: &str, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
    socket.connect(to).await.unwrap()
}

/// Status of a request; `None` if the connection is closed without a response.
async fn status(from: &str, to: SocketAddr) -> Option<u16> {
    let mut wire = Wire::new(connect(from, to).await);
    let answer = tokio::time::timeout(WAIT_MAX, wire.ask("GET", "/healthz", "", "")).await;
    answer.expect("it answers or closes").ok().map(|answer| answer.status())
}

#[tokio::test]
async fn one_client_with_many_connections_keeps_nobody_out() {
    let centre = Serve::new().unwrap().open_files(256).start().await.unwrap();
    let address = centre.address();
    let mut greedy = Vec::new();
    // Half of the files are for connections, and of these three quarters for one address.
    for _ in 0..200 {
        greedy.push(connect("127.0.0.2", address).await);
    }
    let refused = async {
        while matches!(status("127.0.0.2", address).await, Some(200)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT_MAX, refused).await.expect("the client has as many as it gets");
    for other in ["127.0.0.1", "127.0.0.3"] {
        assert_eq!(status(other, address).await, Some(200), "{other}");
    }
    centre.sign_in().await.unwrap();
    drop(greedy);
    let served = async {
        while status("127.0.0.2", address).await != Some(200) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT_MAX, served).await.expect("closed connections make room");
    centre.stop().await.unwrap();
}
