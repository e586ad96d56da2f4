//! TLS to receivers: name and chain are always checked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Where operating systems keep the certificates they trust.
const SYSTEM_FILES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];

/// Why pushes cannot use TLS.
#[derive(Debug, thiserror::Error)]
#[error("push.ca_file {path}: {reason}; give a PEM file with certificates of authorities")]
pub struct CaFileError {
    path: String,
    reason: String,
}

/// Trusts what the system trusts, and the certificates of a file besides.
pub(super) fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, CaFileError> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = SYSTEM_FILES.iter().map(PathBuf::from).find(|file| file.exists()) {
        // A system's bundle may hold certificates that rustls does not support.
        let certificates = CertificateDer::pem_file_iter(&file).into_iter().flatten();
        roots.add_parsable_certificates(certificates.filter_map(Result::ok));
    }
    if let Some(file) = ca_file {
        add_file(&mut roots, file)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(ca_file, &error))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// A file that was named must be right.
fn add_file(roots: &mut RootCertStore, file: &Path) -> Result<(), CaFileError> {
    let certificates =
        CertificateDer::pem_file_iter(file).map_err(|error| wrong(Some(file), &error))?;
    let mut count = 0;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| wrong(Some(file), &error))?;
        roots.add(certificate).map_err(|error| wrong(Some(file), &error))?;
        count += 1;
    }
    match count {
        0 => Err(wrong(Some(file), &"there is no certificate in it")),
        _ => Ok(()),
    }
}

fn wrong(file: Option<&Path>, reason: &dyn std::fmt::Display) -> CaFileError {
    let path = file.map_or_else(String::new, |file| file.display().to_string());
    CaFileError { path, reason: reason.to_string() }
}
