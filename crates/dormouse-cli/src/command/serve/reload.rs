//! SIGHUP: reads tokens and the certificate again while the server runs.

use dormouse_server::access::Access;

use super::tls::Certificate;
use crate::command::config::{Config, Flags, Settings};
use crate::exit::Failure;

/// The configuration in use, and how to read it again.
pub(super) struct Reload {
    flags: Flags,
    config: Config,
    access: Access,
    certificate: Certificate,
}

impl Reload {
    pub(super) fn new(flags: Flags, config: Config) -> Result<Reload, Failure> {
        let access = config.access()?;
        let certificate = Certificate::load(&config.settings)?;
        Ok(Reload { flags, config, access, certificate })
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.config.settings
    }

    /// The table of tokens; clones follow every reload.
    pub(super) fn access(&self) -> Access {
        self.access.clone()
    }

    pub(super) fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Reads the configuration again. If it is wrong, nothing changes.
    pub(super) fn run(&mut self) {
        let read = Config::load(&self.flags).and_then(|config| Ok((config.access()?, config)));
        let (access, config) = match read {
            Ok(read) => read,
            Err(error) => {
                tracing::error!("SIGHUP: nothing was read again: {error}");
                return;
            }
        };
        // The file was verified with the addresses in it, which may differ from those served:
        // without tokens, those might admit everybody.
        if access.is_open() && !self.access.is_open() {
            tracing::error!(
                "SIGHUP: nothing was read again: no token is configured any more, and that would \
                 let everybody in; restart to serve without tokens"
            );
            return;
        }
        self.access.replace(&access);
        tracing::info!("SIGHUP: tokens are read again: {}", config.settings.tokens.len());
        self.certificate.reload();
        for name in self.config.differences(&config) {
            tracing::warn!("SIGHUP: `{name}` has changed; that needs a restart");
        }
        self.config.settings.tokens = config.settings.tokens;
    }
}
