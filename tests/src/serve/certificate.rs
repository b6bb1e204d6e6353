//! A self-signed certificate for `localhost`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// A certificate and its key, in PEM files.
pub struct Certificate {
    /// The certificate, which is also its own authority.
    pub certificate: PathBuf,
    /// Its private key, which only its owner can read.
    pub key: PathBuf,
}

impl Certificate {
    /// Creates a certificate in a folder.
    pub fn create(folder: &Path) -> Result<Certificate> {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names)?;
        let (certificate, key) = (folder.join("certificate.pem"), folder.join("certificate.key"));
        fs::write(&certificate, cert.pem())?;
        fs::write(&key, signing_key.serialize_pem())?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
        Ok(Certificate { certificate, key })
    }
}
