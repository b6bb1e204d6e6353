//! The listener uses TLS, or is behind a proxy that does.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tickwright_server::Identity;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::kit::{Bench, until};
use crate::script::NEW;

/// X29 of docs/security.md.
#[tokio::test]
async fn with_a_certificate_everything_is_encrypted_and_a_new_one_is_used_without_a_restart() {
    let folder = std::env::temp_dir().join(format!("tickwright-tls-{:x}", fastrand::u64(..)));
    std::fs::create_dir_all(&folder).unwrap();
    let first = write_certificate(&folder);
    let identity = Identity { certificate: folder.join("cert.pem"), key: folder.join("key.pem") };
    let bench = Bench::start_with(|settings| settings.identity = Some(identity)).await;

    let answer = ask(bench.address, &first, LOOK);
    let answer = answer.await.expect("the certificate is the one that was written");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("strict-transport-security: max-age="), "{answer}");
    let form = format!("userName={}&password={}", bench.admin.name, bench.admin.password);
    let login = format!(
        "POST {NEW} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{form}",
        form.len()
    );
    let answer = ask(bench.address, &first, &login).await.unwrap();
    assert!(answer.contains("; Secure") && answer.contains("HttpOnly"), "{answer}");
    let body = format!(r#"{{"user":"{}","password":"{}"}}"#, bench.admin.name, bench.admin.password);
    let open = format!(
        "POST /v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let answer = ask(bench.address, &first, &open).await.unwrap();
    assert!(answer.contains("set-cookie: __Host-tickwright_session="), "{answer}");
    assert!(answer.contains("; Path=/; HttpOnly; SameSite=Strict; Secure"), "{answer}");

    let plain = bench.raw(b"GET /readyz?x=1 HTTP/1.1\r\nHost: centre:8443\r\n\r\n").await;
    assert_eq!(plain.0, 308);
    let reply = bench.request("GET", "/readyz", "", &[]).await;
    assert_eq!(reply.header("location"), ["https://centre/readyz?"]);
    for request in [&login, &open] {
        assert_eq!(bench.raw(request.as_bytes()).await.0, 400, "a password is not taken in clear");
    }

    let second = write_certificate(&folder);
    until("the new certificate is used", async || ask(bench.address, &second, LOOK).await).await;
    assert!(ask(bench.address, &first, LOOK).await.is_none(), "the old one is not");
    std::fs::remove_dir_all(folder).unwrap();
    bench.stop().await;
}

#[tokio::test]
async fn behind_a_proxy_it_is_known_who_asks_and_that_the_way_is_safe() {
    let bench = Bench::start_with(|settings| settings.proxies = vec!["127.0.0.0/8".parse().unwrap()]).await;
    let forwarded = "X-Forwarded-For: 198.51.100.7\r\nX-Forwarded-Proto: https\r\n";
    let form = [("userName", bench.admin.name.as_str()), ("password", &bench.admin.password)];
    let reply = bench.request("POST", NEW, forwarded, &form).await;
    assert!(reply.header("set-cookie")[0].contains("; Secure"), "{reply:?}");
    let plain = bench.request("POST", NEW, "", &form).await;
    assert!(!plain.header("set-cookie")[0].contains("; Secure"), "{plain:?}");
    let page = bench.database.audit_page(&Default::default(), store::Page::first(2)).await.unwrap();
    let addresses: Vec<_> = page.rows.iter().map(|record| record.entry.ip.as_str()).collect();
    assert_eq!(addresses, ["127.0.0.1", "198.51.100.7"]);
    bench.stop().await;
}

const LOOK: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Writes a certificate and its key, new each time.
fn write_certificate(folder: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = folder.join("key.pem");
    std::fs::write(&key, signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(folder.join("cert.pem"), cert.pem()).unwrap();
    cert.der().clone()
}

/// Sends a request to a server with that certificate; `None` if it has another.
async fn ask(to: SocketAddr, trusted: &CertificateDer<'static>, request: &str) -> Option<String> {
    let mut stream = connect(to, trusted).await?;
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // Some servers close without `close_notify`.
    let _ = stream.read_to_end(&mut answer).await;
    Some(String::from_utf8(answer).unwrap())
}

async fn connect(to: SocketAddr, trusted: &CertificateDer<'static>) -> Option<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(to).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()
}
