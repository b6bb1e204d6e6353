//! HTTP client connections with `http` and `https`; server certificates are always verified.

use std::sync::Arc;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

pub(crate) type Connector = HttpsConnector<HttpConnector>;

/// Which certificate authorities are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Those of this machine, or those in the file named by `SSL_CERT_FILE`. Loading them takes memory.
    System,
    /// None: every `https` connection fails.
    Nobody,
}

pub(crate) fn connector(trust: Trust) -> Connector {
    let mut roots = RootCertStore::empty();
    if trust == Trust::System {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            tracing::warn!(
                "this machine has no trusted certificate authorities, so every HTTPS call will fail; \
                 install ca-certificates, or set SSL_CERT_FILE"
            );
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider supports all versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut http = HttpConnector::new();
    http.set_nodelay(true);
    // Otherwise it would reject `https` URLs before the TLS layer sees them.
    http.enforce_http(false);
    HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().wrap_connector(http)
}
