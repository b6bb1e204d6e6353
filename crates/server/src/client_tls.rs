//! TLS as a client, for the scheduling centre and the command line: which certificates are trusted.

use std::sync::Arc;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};

/// Opens connections for `http` and `https` URLs.
pub type Connector = HttpsConnector<HttpConnector>;

/// The operating system trusts no certificate authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this machine has no trusted certificate authorities; install ca-certificates, or set SSL_CERT_FILE")]
pub struct NoAuthorities;

/// Connector of an HTTP client that trusts the authorities of the operating system. They are loaded only for `https`,
/// because that takes longer than most calls.
pub fn connector(is_https: bool, mut http: HttpConnector) -> Result<Connector, NoAuthorities> {
    let roots = if is_https { system_authorities() } else { RootCertStore::empty() };
    if is_https && roots.is_empty() {
        return Err(NoAuthorities);
    }
    let config = builder().with_root_certificates(roots).with_no_client_auth();
    // Otherwise it would reject `https` before TLS is layered on top.
    http.enforce_http(false);
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(http))
}

/// Certificate authorities that the operating system trusts.
pub(crate) fn system_authorities() -> RootCertStore {
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::warn!(%error, "ignoring an invalid certificate authority of the system; its certificates are not trusted");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(native.certs);
    roots
}

/// TLS configuration of a client, without the certificates that it trusts.
pub(crate) fn builder() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider supports all versions")
}
