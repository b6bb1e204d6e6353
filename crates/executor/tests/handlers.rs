//! The ready-made handlers, called by a centre, with a server to call and programs to start.

#![cfg(unix)]

mod kit;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kit::{Centre, builder, call, trigger, with};
use protocol::xxl::Lineage;
use serde_json::json;
use tickwright_executor::Executor;
use tickwright_executor::handlers::{Commands, Http};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// X6 of docs/security.md.
#[tokio::test]
async fn urls_on_the_list_are_called_and_no_others() {
    let (server, elsewhere) = (Server::start("").await, Server::start("").await);
    let to = format!("http://{}", server.address);
    let it = Fixture::start(Http::new().allow(&format!("{to}/ok/")).unwrap(), Commands::new()).await;
    let ok = |path: &str| json!({"url": format!("{to}{path}"), "method": "GET"}).to_string();

    let (result, log) = it.run("http", &ok("/ok/hello")).await;
    assert_eq!(result, (200, "status 200 OK".to_owned()));
    assert!(log.contains(" GET /ok/hello HTTP/1.1\n"), "{log}");
    let (result, log) = it.run("httpJobHandler", &format!("url: {to}/ok/old\ndata: some text")).await;
    assert_eq!(result.0, 200);
    assert!(log.contains(" POST /ok/old HTTP/1.1\n") && log.contains(" some text\n"), "{log}");

    let heard = server.heard();
    for denied in [
        ok("/"),
        ok("/okay"),
        ok("/ok/../secret"),
        ok("/ok/%2e%2e/secret"),
        json!({"url": format!("http://{}/ok/", elsewhere.address)}).to_string(),
        json!({"url": format!("http://{}@{}/ok/", server.address, elsewhere.address)}).to_string(),
        json!({"url": "http://169.254.169.254/latest/meta-data"}).to_string(),
        json!({"url": "file:///etc/passwd"}).to_string(),
    ] {
        let ((code, message), _) = it.run("http", &denied).await;
        assert!(code == 500 && message.contains("is not allowed on this executor"), "{message}");
    }
    assert_eq!((server.heard(), elsewhere.heard()), (heard, 0));
}

/// X6 of docs/security.md.
#[tokio::test]
async fn redirects_stay_on_the_list() {
    let elsewhere = Server::start("").await;
    let server = Server::start(&format!("http://{}/ok/", elsewhere.address)).await;
    let to = format!("http://{}", server.address);
    let it = Fixture::start(Http::new().allow(&to).unwrap(), Commands::new()).await;
    let call = |path: &str| json!({"url": format!("{to}{path}"), "data": "x"}).to_string();
    let (result, log) = it.run("http", &call("/redirect/near")).await;
    assert_eq!(result.0, 200, "{log}");
    assert!(log.contains(" GET /ok/near HTTP/1.1\n"), "{log}");
    let ((code, message), _) = it.run("http", &call("/redirect/away")).await;
    assert!(code == 500 && message.contains("is not allowed on this executor"), "{message}");
    assert_eq!(elsewhere.heard(), 0);
    let ((code, message), _) = it.run("http", &call("/redirect/circle")).await;
    assert_eq!((code, message.as_str()), (500, "redirected more than 5 times"));
}

#[tokio::test]
async fn answers_are_judged_and_have_a_limit() {
    let server = Server::start("").await;
    let host = server.address.to_string();
    let it = Fixture::start(Http::new().allow(&host).unwrap(), Commands::new()).await;
    let call = |path: &str, more: &str| format!(r#"{{"url":"http://{host}{path}"{more}}}"#);
    let (result, _) = it.run("http", &call("/missing", "")).await;
    assert_eq!(result, (500, "expected status 2xx, found 404 Not Found".to_owned()));
    let (result, _) = it.run("http", &call("/missing", r#","status":404"#)).await;
    assert_eq!(result, (200, "status 404 Not Found".to_owned()));
    let (result, _) = it.run("http", &call("/silent", r#","timeout":50"#)).await;
    assert_eq!(result, (500, "no response within 50 ms".to_owned()));
    let (result, _) = it.run("http", &call("/endless", r#","timeout":30000"#)).await;
    assert_eq!(result.0, 200, "it reads no more than it keeps");
    let headers = r#","headers":{"X-A":"1"},"auth":{"bearer":"t"},"form":{"a":"b c"}"#;
    let (_, log) = it.run("http", &call("/ok/all", headers)).await;
    for expected in
        [" x-a: 1\n", " authorization: Bearer t\n", " a=b+c\n", "application/x-www-form-urlencoded\n"]
    {
        assert!(log.contains(expected), "no {expected} in {log}");
    }
}

/// X7 of docs/security.md.
#[tokio::test]
async fn programs_on_the_list_are_started_and_no_others() {
    let commands = Commands::new().allow("/bin/echo").unwrap().allow("/bin/false").unwrap();
    let it = Fixture::start(Http::new(), commands.allow("/usr/bin/env").unwrap()).await;
    let (result, log) = it.run("command", r#"["echo", "a  b", "$HOME; rm -rf /"]"#).await;
    assert_eq!(result, (200, String::new()));
    assert!(log.contains(" a  b $HOME; rm -rf /\n"), "{log}");
    let (result, log) = it.run("commandJobHandler", "/bin/echo one two|three").await;
    assert_eq!(result.0, 200);
    assert!(log.contains(" one two|three\n"), "{log}");
    let (result, _) = it.run("command", "false").await;
    assert_eq!(result, (500, "command exit value(1) is failed".to_owned()));
    let (_, log) = it.run("command", "env").await;
    assert!(log.contains("TICKWRIGHT_PARAM=env\n") && !log.contains("CARGO"), "{log}");
    for denied in ["bash -c id", "/bin/bash", "../bin/echo", "/bin/../bin/echo x", r#"["sh"]"#] {
        let ((code, message), _) = it.run("command", denied).await;
        assert!(code == 500 && message.contains("is not allowed on this executor"), "{message}");
    }
    assert!(it.run("command", " ").await.0.1.contains("has no program"));
}

struct Fixture {
    _executor: Executor,
    to: SocketAddr,
    centre: Centre,
    _directory: tempfile::TempDir,
    next: std::cell::Cell<i64>,
}

impl Fixture {
    async fn start(http: Http, commands: Commands) -> Fixture {
        let centre = Centre::start(Lineage::L33).await;
        let directory = tempfile::tempdir().expect("a directory");
        let builder = builder(&centre, directory.path()).jobs(http.jobs()).jobs(commands.jobs());
        let executor = builder.start().await.expect("it starts");
        let to = executor.local_address();
        Fixture { _executor: executor, to, centre, _directory: directory, next: 100.into() }
    }

    /// Result and log of a run.
    async fn run(&self, handler: &str, param: &str) -> ((i64, String), String) {
        let run_id = self.next.replace(self.next.get() + 100);
        let request = with(trigger(run_id, handler, param), "executorTimeout", 60);
        assert_eq!(call(self.to, "/run", &request.to_string()).await["code"], 200);
        let result = self.centre.result(run_id).await;
        let ask = json!({"logDateTim": 1_794_769_410_531_i64, "logId": run_id, "fromLineNum": 1});
        let answer = call(self.to, "/log", &ask.to_string()).await;
        (result, answer["data"]["logContent"].as_str().unwrap_or_default().to_owned())
    }
}

/// Echoes the request; some paths are special.
struct Server {
    address: SocketAddr,
    heard: Arc<AtomicUsize>,
}

impl Server {
    async fn start(away: &str) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let heard = Arc::<AtomicUsize>::default();
        let (counted, away) = (Arc::clone(&heard), away.to_owned());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(answer(stream, away.clone()));
            }
        });
        Server { address, heard }
    }

    fn heard(&self) -> usize {
        self.heard.load(Ordering::SeqCst)
    }
}

async fn answer(mut stream: TcpStream, away: String) {
    let mut request = Vec::new();
    // Requests here are small: head and body arrive in one or two reads.
    let mut buffer = [0; 8_192];
    loop {
        let length = stream.read(&mut buffer).await.unwrap_or(0);
        request.extend_from_slice(&buffer[..length]);
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let announced = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        if body.len() >= announced.and_then(|length| length.parse().ok()).unwrap_or(0) {
            break;
        }
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, headers, body) = match path {
        "/redirect/near" => ("302 Found", "Location: /ok/near\r\n".to_owned(), String::new()),
        "/redirect/circle" => ("307 Temporary Redirect", "Location: circle\r\n".to_owned(), String::new()),
        "/redirect/away" => ("302 Found", format!("Location: {away}\r\n"), String::new()),
        "/missing" => ("404 Not Found", String::new(), String::new()),
        "/silent" => return tokio::time::sleep(Duration::from_secs(60)).await,
        "/endless" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await;
            // Until the client closes the connection.
            while stream.write_all(&[b'x'; 1_024]).await.is_ok() {}
            return;
        }
        _ => ("200 OK", String::new(), request.clone()),
    };
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    let _ = stream.write_all(answer.as_bytes()).await;
}
