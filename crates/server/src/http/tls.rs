//! TLS on the listener: certificate and key from files, reloaded when they change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Certificate and intermediate certificates, in PEM.
    pub certificate: PathBuf,
    /// Private key of the certificate, in PEM.
    pub key: PathBuf,
}

/// A certificate that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{} is not a valid {role}: {why}", path.display())]
pub struct IdentityError {
    path: PathBuf,
    role: &'static str,
    why: String,
}

/// TLS configuration of the listener.
pub struct Tls {
    identity: Identity,
    current: RwLock<Loaded>,
}

struct Loaded {
    acceptor: TlsAcceptor,
    written: Written,
}

/// Modification times of the two files, to detect a renewed certificate.
type Written = [Option<SystemTime>; 2];

impl Tls {
    /// Reads the files.
    pub fn load(identity: Identity) -> Result<Tls, IdentityError> {
        let current = RwLock::new(identity.load()?);
        Ok(Tls { identity, current })
    }

    /// Acceptor for the next connection.
    pub fn acceptor(&self) -> TlsAcceptor {
        self.current.read().expect("no holder of this lock panics").acceptor.clone()
    }

    /// Reloads the files whenever they change, forever. Open connections keep the old certificate.
    pub async fn follow(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.refresh();
        }
    }

    /// Reloads the files if they have changed. They have a few kilobytes, so blocking the thread is fine.
    fn refresh(&self) {
        let known = self.current.read().expect("no holder of this lock panics").written;
        if self.identity.written() == known {
            return;
        }
        match self.identity.load() {
            Ok(loaded) => {
                *self.current.write().expect("no holder of this lock panics") = loaded;
                tracing::info!("certificate reloaded; new connections use it");
            }
            Err(error) => {
                tracing::warn!(%error, "failed to reload the certificate; continuing with the old one, retrying in {LOOK:?}");
            }
        }
    }
}

impl Identity {
    fn written(&self) -> Written {
        let written = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
        [written(&self.certificate), written(&self.key)]
    }

    fn load(&self) -> Result<Loaded, IdentityError> {
        // Before reading, so that a change during reading causes another reload.
        let written = self.written();
        let fail = |path: &Path, role, why: String| IdentityError { path: path.into(), role, why };
        let certificate_fails = |why| fail(&self.certificate, "certificate", why);
        let key_fails = |why| fail(&self.key, "private key", why);
        let pem = read(&self.certificate).map_err(certificate_fails)?;
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<_, _>>()
            .map_err(|error| certificate_fails(error.to_string()))?;
        if chain.is_empty() {
            return Err(certificate_fails("missing `-----BEGIN CERTIFICATE-----`".into()));
        }
        refuse_world_readable(&self.key).map_err(key_fails)?;
        let pem = read(&self.key).map_err(key_fails)?;
        let key = PrivateKeyDer::from_pem_slice(&pem)
            .map_err(|_| key_fails("missing `-----BEGIN PRIVATE KEY-----`".into()))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| key_fails(error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Loaded { acceptor: TlsAcceptor::from(Arc::new(config)), written })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error: io::Error| error.to_string())
}

/// Rejects a private key that every user of this machine can read. Group access is allowed, as Debian's `ssl-cert`
/// needs it.
fn refuse_world_readable(path: &Path) -> Result<(), String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path).map_err(|error| error.to_string())?.permissions().mode();
        if mode & 0o007 != 0 {
            return Err(format!("every user of this machine can read it; run: chmod o= {}", path.display()));
        }
    }
    Ok(())
}

/// How often the files are checked for changes.
const LOOK: Duration = Duration::from_secs(5);
