//! Executors that register with `https`.

use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tickwright_server::outbound::{Options, Outbound, Sent, Trust};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::kit::{Scripted, callee, ok, options, run};

#[tokio::test]
async fn certificates_are_verified_unless_told_otherwise() {
    let (executor, pem) = encrypted().await;
    let to = callee(&format!("https://localhost:{}/", executor.at.port()));

    let strict = with(Trust::default());
    let Sent::Unreachable { reason, .. } = run(&strict, &to).await else { panic!("nobody vouches for it") };
    assert!(reason.contains("TLS handshake failed"), "{reason}");

    let trusting = with(Trust { authorities: Some(pem.into_bytes()), accept_invalid: false });
    for _ in 0..3 {
        assert_eq!(run(&trusting, &to).await, Sent::Accepted);
    }
    let by_ip = callee(&format!("https://{}", executor.at));
    assert!(matches!(run(&trusting, &by_ip).await, Sent::Unreachable { .. }), "the name differs");

    let careless = with(Trust { authorities: None, accept_invalid: true });
    assert_eq!(run(&careless, &by_ip).await, Sent::Accepted);
}

#[tokio::test]
async fn plain_words_to_an_encrypted_port_are_no_answer() {
    let (executor, _) = encrypted().await;
    let sent = run(&with(Trust::default()), &executor.callee()).await;
    assert!(matches!(sent, Sent::Unknown { .. }), "{sent:?}");
}

fn with(trust: Trust) -> Outbound {
    Outbound::new(Options { trust, ..options() }).unwrap()
}

/// An executor with a self-signed certificate, and that certificate.
async fn encrypted() -> (Scripted, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let executor = Scripted::start(move |_, stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let mut bytes = [0; 4096];
            while stream.read(&mut bytes).await.is_ok_and(|length| length > 0) {
                stream.write_all(ok().as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    (executor, cert.pem())
}
