//! A centre with `https` is called only if its certificate is trusted.

mod kit;

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kit::TOKEN;
use tickwright_executor::Executor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

const SOON: Duration = Duration::from_secs(120);

#[tokio::test]
async fn a_centre_must_prove_who_it_is() {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let trusted = directory.path().join("trusted.pem");
    std::fs::write(&trusted, cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let centre = format!("https://localhost:{}", listener.local_addr().unwrap().port());

    // The certificate is not trusted, so the token is not sent.
    let _stranger = start(&centre, &directory.path().join("a"), None);
    let (stream, _) = tokio::time::timeout(SOON, listener.accept()).await.unwrap().unwrap();
    assert!(acceptor.accept(stream).await.is_err());
    drop(_stranger);

    let _friend = start(&centre, &directory.path().join("b"), Some(&trusted));
    let greeted = async {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // Ignores connections that the other executor left in the queue.
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut request = vec![0; 4_096];
            let length = stream.read(&mut request).await.unwrap();
            let answer = r#"{"code":200,"msg":null,"content":null}"#;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len());
            let _ = stream.write_all(format!("{head}{answer}").as_bytes()).await;
            return String::from_utf8_lossy(&request[..length]).into_owned();
        }
    };
    let request = tokio::time::timeout(SOON, greeted).await.unwrap();
    assert!(request.starts_with("POST /api/registry HTTP/1.1\r\n") && request.contains(TOKEN), "{request}");
}

/// Starts this test binary as an executor, because the trusted certificates come from the environment.
fn start(centre: &str, directory: &std::path::Path, trusted: Option<&std::path::Path>) -> Process {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "the_executor_that_calls"]).stdout(Stdio::null());
    command.env("TEST_CENTRE", centre).env("TEST_DIRECTORY", directory).env_remove("SSL_CERT_FILE");
    if let Some(trusted) = trusted {
        command.env("SSL_CERT_FILE", trusted);
    }
    Process(command.spawn().expect("this program runs"))
}

/// Killed when dropped, also when a test fails.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The executor that the test above starts. Does nothing when run as a test.
#[test]
fn the_executor_that_calls() {
    let [Ok(centre), Ok(directory)] = ["TEST_CENTRE", "TEST_DIRECTORY"].map(std::env::var) else { return };
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let builder = Executor::builder("app").centre(centre).token(TOKEN).listen("127.0.0.1:0");
        let _executor = builder.directory(directory).start().await.unwrap();
        std::future::pending::<()>().await;
    });
}
