//! Opens connections, with a timeout on every wait.

use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::{
    AsyncConnectionConfig, Client, ErrorKind, ProtocolVersion, RedisConnectionInfo, RedisError,
};

use super::url::{Address, RedisUrl};

/// The timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// For opening it, HELLO included.
    pub(crate) connect_ms: u64,
    /// For a reply; after it the connection is discarded.
    pub(crate) response_ms: u64,
    /// The timeout of WAIT. Less than `response_ms`, or a slow replica would look like a dead node;
    /// and short, because a primary without replicas replies only after it.
    pub(crate) wait_ms: u64,
    /// How long other sentinels are waited for after the first answer, to compare theirs.
    pub(crate) gather_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts { connect_ms: 1_000, response_ms: 5_000, wait_ms: 500, gather_ms: 150 }
    }
}

/// Opens connections to any node of one installation.
pub(super) struct Opener {
    pub(super) url: RedisUrl,
    pub(super) timeouts: Timeouts,
}

impl Opener {
    /// Opens a connection. Push messages, and the news of its end, go to `pushes`. The login is for
    /// Redis: a sentinel gets it only if it asks for one.
    pub(super) async fn open(
        &self,
        address: &Address,
        pushes: impl AsyncPushSender,
    ) -> Result<MultiplexedConnection, RedisError> {
        let config = self.config().set_push_sender(pushes);
        if !self.url.is_sentinel(address) {
            return self.log_in(address, self.url.login(), &config).await;
        }
        let nobody = RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP3);
        match self.log_in(address, nobody, &config).await {
            Err(error) if error.code() == Some("NOAUTH") && self.url.has_password() => {
                self.log_in(address, self.url.sentinel_login(), &config).await
            }
            opened => opened,
        }
    }

    async fn log_in(
        &self,
        address: &Address,
        login: RedisConnectionInfo,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, RedisError> {
        let info = self.url.connection_info(address, login).map_err(|error| {
            RedisError::from((
                ErrorKind::InvalidClientConfig,
                "unusable address",
                error.text.to_string(),
            ))
        })?;
        Client::open(info)?.get_multiplexed_async_connection_with_config(config).await
    }

    fn config(&self) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_millis(self.timeouts.connect_ms)))
            .set_response_timeout(Some(Duration::from_millis(self.timeouts.response_ms)))
    }
}
