//! HTTPS, if it was built in.

use crate::exit::Failure;

#[cfg(feature = "tls")]
pub(super) use built_in::Connector;
#[cfg(not(feature = "tls"))]
pub(super) use left_out::Connector;

#[cfg(feature = "tls")]
mod built_in {
    use std::io;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    use super::Failure;

    /// Where systems keep the certificates that they trust.
    const SYSTEM_FILES: [&str; 5] = [
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
        "/usr/local/share/certs/ca-root-nss.crt",
    ];

    /// Makes a stream secret, for those we trust.
    pub(in super::super) struct Connector(TlsConnector);

    impl Connector {
        /// Trusts the certificates of a file, or else those that the system trusts.
        pub(in super::super) fn new(ca_file: Option<&Path>) -> Result<Connector, Failure> {
            let file = match ca_file {
                Some(file) => file.to_owned(),
                None => system_file()?,
            };
            let wrong =
                |why: String| Failure::usage(format!("--ca-file {}: {why}", file.display()));
            let certificates =
                CertificateDer::pem_file_iter(&file).map_err(|error| wrong(error.to_string()))?;
            let mut roots = RootCertStore::empty();
            for certificate in certificates {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                let added = roots.add(certificate);
                // A system's bundle may have one of a kind we do not know; ours must be right.
                if let (Err(error), true) = (added, ca_file.is_some()) {
                    return Err(wrong(error.to_string()));
                }
            }
            if roots.is_empty() {
                return Err(wrong("there is no certificate in it".to_owned()));
            }
            let mut config =
                ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Ok(Connector(TlsConnector::from(Arc::new(config))))
        }

        pub(in super::super) async fn connect(
            &self,
            host: &str,
            stream: TcpStream,
        ) -> io::Result<TlsStream<TcpStream>> {
            let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
            self.0.connect(name, stream).await
        }
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
}

#[cfg(not(feature = "tls"))]
mod left_out {
    use std::convert::Infallible;
    use std::io;
    use std::path::Path;

    use tokio::net::TcpStream;

    use super::Failure;

    /// There is none.
    pub(in super::super) struct Connector(Infallible);

    impl Connector {
        pub(in super::super) fn new(_ca_file: Option<&Path>) -> Result<Connector, Failure> {
            let text = "https: this dormouse was built without TLS";
            Err(Failure::usage(format!("{text}; use http, or a build with the feature tls")))
        }

        pub(in super::super) async fn connect(
            &self,
            _host: &str,
            _stream: TcpStream,
        ) -> io::Result<TcpStream> {
            match self.0 {}
        }
    }
}
