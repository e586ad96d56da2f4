//! HTTPS: checks the server's certificate against those of `--ca-file` or of the system.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, CertificateError, ClientConfig, RootCertStore};

use super::url::Url;
use crate::exit::Failure;

/// Where operating systems keep the certificates they trust.
const SYSTEM_FILES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];

/// Encrypts a connection and checks the server's certificate.
pub(super) struct Connector(TlsConnector);

impl Connector {
    /// Trusts the certificates of a file, or else those that the system trusts.
    pub(super) fn new(ca_file: Option<&Path>) -> Result<Connector, Failure> {
        let file = match ca_file {
            Some(file) => file.to_owned(),
            None => system_file()?,
        };
        let wrong = |why: String| Failure::usage(format!("--ca-file {}: {why}", file.display()));
        let certificates =
            CertificateDer::pem_file_iter(&file).map_err(|error| wrong(error.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in certificates {
            let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
            let added = roots.add(certificate);
            // A system's bundle may hold certificates that rustls does not support; a file that was
            // named must be right.
            if let (Err(error), true) = (added, ca_file.is_some()) {
                return Err(wrong(error.to_string()));
            }
        }
        if roots.is_empty() {
            return Err(wrong("there is no certificate in it".to_owned()));
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Failure::new(format!("cannot use TLS: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Connector(TlsConnector::from(Arc::new(config))))
    }

    pub(super) async fn connect(
        &self,
        url: &Url,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, Failure> {
        let name = ServerName::try_from(url.host.clone())
            .map_err(|error| Failure::usage(format!("{url}: {error}")))?;
        self.0.connect(name, stream).await.map_err(|error| refused(url, &error))
    }
}

fn refused(url: &Url, error: &io::Error) -> Failure {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    Failure::unreachable(match cause {
        // A bad signature is that of another authority of the same name, a renewed one for example.
        Some(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => format!(
            "the certificate of {url} is not trusted: {error}; give the certificate of its \
             authority with --ca-file"
        ),
        Some(rustls::Error::InvalidCertificate(_)) => {
            format!("the certificate of {url} is not accepted: {error}")
        }
        _ => format!("the TLS handshake with {url} failed: {error}; does it serve https?"),
    })
}

fn system_file() -> Result<PathBuf, Failure> {
    if let Some(file) = std::env::var_os("SSL_CERT_FILE") {
        return Ok(file.into());
    }
    let found = SYSTEM_FILES.iter().map(Path::new).find(|file| file.exists());
    found.map(Path::to_owned).ok_or_else(|| {
        Failure::usage("this system has no list of trusted certificates; give --ca-file")
    })
}
