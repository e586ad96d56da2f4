//! The certificate of `tls.cert` and `tls.key`, read again on SIGHUP.

use dormouse_server::{Tls, TlsFiles};

use crate::command::config::Settings;
use crate::exit::Failure;

/// The certificate in use; `None` if TLS is not configured.
pub(super) struct Certificate(Option<Tls>);

impl Certificate {
    pub(super) fn load(settings: &Settings) -> Result<Certificate, Failure> {
        let (Some(cert), Some(key)) = (settings.tls_cert.clone(), settings.tls_key.clone()) else {
            return Ok(Certificate(None));
        };
        let tls = Tls::load(TlsFiles { cert, key })
            .map_err(|error| Failure::usage(format!("cannot use TLS: {error}")))?;
        Ok(Certificate(Some(tls)))
    }

    /// For the server; it follows every reload.
    pub(super) fn tls(&self) -> Option<Tls> {
        self.0.clone()
    }

    /// Reads the files again; after an error the old certificate stays in use.
    pub(super) fn reload(&self) {
        let Some(tls) = &self.0 else { return };
        match tls.reload() {
            Ok(()) => tracing::info!("SIGHUP: the certificate is read again"),
            Err(error) => tracing::error!("SIGHUP: the old certificate stays: {error}"),
        }
    }
}
