//! TLS: certificates from files, which can be reloaded, and a handshake with a deadline.

mod expiry;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::limits::HTTP_HEAD_MS_MAX;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// The paths of a certificate and its key.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate chain, PEM.
    pub cert: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
}

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}; give a PEM file with {what}")]
pub struct TlsError {
    path: String,
    reason: String,
    what: &'static str,
}

/// The server's side of TLS. Clones share the certificate.
#[derive(Clone)]
pub struct Tls {
    files: TlsFiles,
    loaded: Arc<RwLock<Loaded>>,
}

/// What the files hold.
#[derive(Clone)]
struct Loaded {
    config: Arc<ServerConfig>,
    expires_s: Option<i64>,
}

impl Tls {
    /// Reads the files.
    pub fn load(files: TlsFiles) -> Result<Tls, TlsError> {
        let loaded = Arc::new(RwLock::new(read(&files)?));
        Ok(Tls { files, loaded })
    }

    /// Reads the files again. Open connections keep the old certificate. An error changes nothing.
    pub fn reload(&self) -> Result<(), TlsError> {
        let loaded = read(&self.files)?;
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(())
    }

    /// When the first certificate of the chain in use expires, in seconds since 1970; `None` if it
    /// does not say so.
    pub fn expires_s(&self) -> Option<i64> {
        self.loaded().expires_s
    }

    fn loaded(&self) -> Loaded {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The handshake; `None` if it fails or takes too long.
    pub(crate) async fn accept(&self, socket: TcpStream) -> Option<TlsStream<TcpStream>> {
        let handshake = TlsAcceptor::from(self.loaded().config).accept(socket);
        match tokio::time::timeout(Duration::from_millis(HTTP_HEAD_MS_MAX), handshake).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
            Err(_) => None,
        }
    }
}

fn read(files: &TlsFiles) -> Result<Loaded, TlsError> {
    let chain = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(&files.cert, &error, "a certificate chain"))?;
    // A client refuses the chain when the first of them has expired.
    let expires_s = chain.iter().filter_map(|certificate| expiry::not_after_s(certificate)).min();
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| wrong(&files.key, &error, "a private key"))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&files.cert, &error, "a certificate chain"))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong(&files.cert, &error, "the certificate of that key"))?;
    Ok(Loaded { config: Arc::new(config), expires_s })
}

fn wrong(path: &Path, reason: &dyn std::fmt::Display, what: &'static str) -> TlsError {
    TlsError { path: path.display().to_string(), reason: reason.to_string(), what }
}

#[cfg(test)]
mod tests {
    use dormouse_disk::engine::{Engine, Options as EngineOptions};
    use tokio::time::{Instant, sleep};
    use tokio_rustls::rustls::server::ResolvesServerCertUsingSni;

    use super::*;
    use crate::{Options, Server};

    /// Without a certificate: enough for a client that never sends anything.
    fn bare() -> Tls {
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
        let files = TlsFiles { cert: PathBuf::new(), key: PathBuf::new() };
        let loaded = Loaded { config: Arc::new(config), expires_s: None };
        Tls { files, loaded: Arc::new(RwLock::new(loaded)) }
    }

    #[tokio::test]
    async fn a_stop_cuts_off_a_handshake() {
        let http = Some("127.0.0.1:0".parse().unwrap());
        let options = Options { http, tls: Some(bare()), ..Options::default() };
        let backend = Arc::new(Engine::memory(EngineOptions::default()));
        let server = Server::start(backend, options).await.unwrap();
        let silent = TcpStream::connect(server.http_addr().unwrap()).await.unwrap();
        sleep(Duration::from_millis(100)).await;
        let (begun, drain) = (Instant::now(), Duration::from_millis(100));
        server.stop(drain).await;
        // The stop waited for the drain time, not for the deadline of the handshake.
        let took = begun.elapsed();
        assert!(drain <= took && took < Duration::from_millis(HTTP_HEAD_MS_MAX / 2), "{took:?}");
        drop(silent);
    }
}
