//! The certificate of `tls.cert` and `tls.key`, read again on SIGHUP.

use std::time::{Duration, SystemTime};

use dormouse_server::{Tls, TlsFiles};

use crate::command::config::Settings;
use crate::exit::Failure;

/// A certificate that expires so soon is warned about.
const SOON: Duration = Duration::from_secs(7 * 24 * 3_600);

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

    /// Warns if it has expired, or soon will: that is the end of every connection.
    pub(super) fn warn(&self) {
        #[expect(clippy::disallowed_methods, reason = "certificates expire by the wall clock")]
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let expires_s = self.0.as_ref().and_then(Tls::expires_s);
        if let Some(warning) = expires_s.and_then(|expires_s| warning(expires_s, now)) {
            tracing::warn!("{warning}");
        }
    }

    /// Reads the files again; after an error the old certificate stays in use. Returns whether it
    /// succeeded; `None` if there is none.
    pub(super) fn reload(&self) -> Option<bool> {
        let reloaded = self.0.as_ref()?.reload();
        match &reloaded {
            Ok(()) => {
                tracing::info!("SIGHUP: the certificate is read again");
                self.warn();
            }
            Err(error) => tracing::error!("SIGHUP: the old certificate stays: {error}"),
        }
        Some(reloaded.is_ok())
    }
}

/// What to say about a certificate that expires then, if anything.
fn warning(expires_s: i64, now: Duration) -> Option<String> {
    let fix = "put a new one into tls.cert and tls.key, and send SIGHUP";
    let left_s = expires_s.saturating_sub(i64::try_from(now.as_secs()).ok()?);
    match u64::try_from(left_s) {
        Err(_) => Some(format!("the certificate has expired, so clients refuse it; {fix}")),
        Ok(left_s) if left_s < SOON.as_secs() => {
            Some(format!("the certificate expires in {} hours; {fix}", left_s / 3_600))
        }
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_early_end_is_warned_about() {
        let now = Duration::from_secs(1_000_000);
        let check = |left_s: i64, expected: Option<&str>| {
            let warning = warning(1_000_000 + left_s, now);
            assert_eq!(warning.is_some(), expected.is_some(), "{warning:?}");
            assert!(warning.unwrap_or_default().contains(expected.unwrap_or_default()));
        };
        check(-1, Some("has expired"));
        check(-2_000_000, Some("has expired"));
        check(3 * 3_600 + 5, Some("expires in 3 hours"));
        check(SOON.as_secs() as i64 - 1, Some("expires in 167 hours"));
        check(SOON.as_secs() as i64, None);
    }
}
