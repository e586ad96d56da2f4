//! SIGHUP: reads tokens and the certificate again while the server runs.

use dormouse_server::access::Access;
use dormouse_server::{Reloaded, Reloads};

use super::tls::Certificate;
use crate::command::config::{Config, EffectiveValue, Flags, Settings};
use crate::exit::Failure;

/// The configuration in use, and how to read it again.
pub(super) struct Reload {
    flags: Flags,
    config: Config,
    access: Access,
    certificate: Certificate,
    reloads: Reloads,
}

impl Reload {
    pub(super) fn new(flags: Flags, config: Config) -> Result<Reload, Failure> {
        let access = config.access()?;
        let certificate = Certificate::load(&config.settings)?;
        Ok(Reload { flags, config, access, certificate, reloads: Reloads::default() })
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.config.settings
    }

    /// Every value in force, with its source.
    pub(super) fn shown(&self) -> Vec<EffectiveValue> {
        self.config.shown()
    }

    /// The table of tokens; clones follow every reload.
    pub(super) fn access(&self) -> Access {
        self.access.clone()
    }

    /// The counts of reloads; clones share them.
    pub(super) fn reloads(&self) -> Reloads {
        self.reloads.clone()
    }

    pub(super) fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Reads tokens and certificate again, each by itself: what is wrong stays as it was, and does
    /// not keep the other from being replaced.
    pub(super) fn run(&mut self) {
        let tokens = self.read_tokens();
        self.reloads.note(Reloaded::Tokens, tokens.is_ok());
        match tokens {
            Ok(count) => tracing::info!("SIGHUP: tokens are read again: {count}"),
            Err(error) => tracing::error!("SIGHUP: the old tokens stay: {error}"),
        }
        if let Some(is_ok) = self.certificate.reload() {
            self.reloads.note(Reloaded::Certificate, is_ok);
        }
    }

    /// Replaces the tokens; returns their number.
    fn read_tokens(&mut self) -> Result<usize, String> {
        let config = Config::load(&self.flags).map_err(|error| error.to_string())?;
        let access = config.access().map_err(|error| error.to_string())?;
        // The file was verified with the addresses in it, which may differ from those served:
        // without tokens, those might admit everybody.
        if access.is_open() && !self.access.is_open() {
            let text = "no token is configured any more, and that would let everybody in; \
                        restart to serve without tokens";
            return Err(text.to_owned());
        }
        self.access.replace(&access);
        for name in self.config.differences(&config) {
            tracing::warn!("SIGHUP: `{name}` has changed; that needs a restart");
        }
        self.config.settings.tokens = config.settings.tokens;
        Ok(self.config.settings.tokens.len())
    }
}
