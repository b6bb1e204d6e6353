//! TLS for executors that register with `https`.

use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::client_tls;

/// Trusted certificates. By default those that the operating system trusts.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Additional certificate authorities in PEM, for example a company's own.
    pub authorities: Option<Vec<u8>>,
    /// Accepts any certificate, as XXL-JOB does. An attacker in between can then read the app's token.
    pub accept_invalid: bool,
}

impl Trust {
    /// Parses the additional authorities.
    pub(super) fn parse(&self) -> Result<Vec<CertificateDer<'static>>, TrustError> {
        let Some(pem) = &self.authorities else {
            return Ok(Vec::new());
        };
        let certificates: Vec<_> =
            CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| TrustError)?;
        let mut roots = RootCertStore::empty();
        let all_usable = certificates.iter().all(|certificate| roots.add(certificate.clone()).is_ok());
        if certificates.is_empty() || !all_usable {
            return Err(TrustError);
        }
        Ok(certificates)
    }
}

/// The additional certificate authorities cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid certificate authorities for executors; expected X.509 in PEM, `-----BEGIN CERTIFICATE-----`"
)]
pub struct TrustError;

/// Creates TLS connections. The connector is built on first use, because loading the system's authorities takes time
/// and memory that most installations never need.
pub(super) struct Tls {
    authorities: Vec<CertificateDer<'static>>,
    accept_invalid: bool,
    connector: OnceCell<TlsConnector>,
}

impl Tls {
    pub(super) fn new(trust: &Trust) -> Result<Tls, TrustError> {
        let authorities = trust.parse()?;
        Ok(Tls { authorities, accept_invalid: trust.accept_invalid, connector: OnceCell::new() })
    }

    pub(super) async fn connector(&self) -> Result<&TlsConnector, String> {
        self.connector.get_or_try_init(|| self.load()).await
    }

    async fn load(&self) -> Result<TlsConnector, String> {
        let (authorities, accept_invalid) = (self.authorities.clone(), self.accept_invalid);
        // Reads files, so it runs on a blocking thread.
        let config = tokio::task::spawn_blocking(move || configure(authorities, accept_invalid))
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

fn configure(authorities: Vec<CertificateDer<'static>>, accept_invalid: bool) -> Result<ClientConfig, Error> {
    let builder = client_tls::builder();
    if accept_invalid {
        let anybody = Arc::new(Anybody(builder.crypto_provider().clone()));
        return Ok(builder.dangerous().with_custom_certificate_verifier(anybody).with_no_client_auth());
    }
    let mut roots = client_tls::system_authorities();
    for authority in authorities {
        roots.add(authority)?;
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Accepts every certificate, because the operator configured it.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
