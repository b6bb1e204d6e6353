//! The health doors, asked over TCP.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use engine::Engine;
use engine::embedded::Handlers;
use store::SqliteStore;
use tickwright_server::health;
use timer::SystemClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn a_node_is_ready_once_it_has_joined_and_not_before() {
    let clock = Arc::new(SystemClock::new());
    let store = Arc::new(SqliteStore::in_memory(clock.clone()).unwrap());
    let centre = Handlers::new().into_centre("node", clock, store);
    let door = Door::open(centre.engine()).await;

    let (code, body) = door.ask("GET /readyz").await;
    assert_eq!(code, 503);
    assert!(body.contains(r#""reason":"not joined"#), "{body}");
    assert_eq!(door.ask("GET /healthz").await.0, 200);

    tokio::spawn(centre.run(std::future::pending()));
    let ready = async {
        while door.ask("GET /readyz").await.0 != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ready).await.expect("it joins at once");
    let (_, body) = door.ask("GET /readyz").await;
    assert!(body.contains(r#""ready":true,"reason":"ready","may_send":true"#), "{body}");
}

#[tokio::test]
async fn everything_else_is_refused_with_a_word() {
    let clock = Arc::new(SystemClock::new());
    let store = Arc::new(SqliteStore::in_memory(clock.clone()).unwrap());
    let door = Door::open(Handlers::new().into_centre("node", clock, store).engine()).await;
    assert_eq!(door.ask("POST /readyz").await.0, 405);
    let (code, body) = door.ask("GET /etc/passwd").await;
    assert_eq!((code, body.contains("/healthz")), (404, true));
    assert_eq!(door.ask("GARBAGE").await.0, 400);
}

struct Door {
    address: std::net::SocketAddr,
}

impl Door {
    async fn open(engine: Engine) -> Door {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(health::serve(engine, listener, std::future::pending()));
        Door { address }
    }

    /// The status code and the whole answer to a request line.
    async fn ask(&self, line: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }
}
