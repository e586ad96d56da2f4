//! TLS, if it was built in.

#[cfg(feature = "tls")]
use dormouse_server::{Tls, TlsFiles};

use crate::command::config::Settings;
use crate::exit::Failure;

/// The certificate in force, if TLS is spoken.
pub(super) struct Certificate {
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Certificate {
    #[cfg(feature = "tls")]
    pub(super) fn load(settings: &Settings) -> Result<Certificate, Failure> {
        let (Some(cert), Some(key)) = (settings.tls_cert.clone(), settings.tls_key.clone()) else {
            return Ok(Certificate { tls: None });
        };
        let tls = Tls::load(TlsFiles { cert, key })
            .map_err(|error| Failure::usage(format!("cannot use TLS: {error}")))?;
        Ok(Certificate { tls: Some(tls) })
    }

    /// The configuration has made sure that none is wanted.
    #[cfg(not(feature = "tls"))]
    pub(super) fn load(_settings: &Settings) -> Result<Certificate, Failure> {
        Ok(Certificate {})
    }

    /// For the server; follows what is read again.
    #[cfg(feature = "tls")]
    pub(super) fn tls(&self) -> Option<Tls> {
        self.tls.clone()
    }

    /// Reads the files again.
    pub(super) fn reload(&self) {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            match tls.reload() {
                Ok(()) => tracing::info!("SIGHUP: the certificate is read again"),
                Err(error) => tracing::error!("SIGHUP: the old certificate stays: {error}"),
            }
        }
    }
}
