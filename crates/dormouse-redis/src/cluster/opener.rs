//! Opens connections, with a timeout on every wait.

use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError};

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
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts { connect_ms: 1_000, response_ms: 5_000, wait_ms: 500 }
    }
}

/// Opens connections to any node of one installation.
pub(super) struct Opener {
    pub(super) url: RedisUrl,
    pub(super) timeouts: Timeouts,
}

impl Opener {
    /// Opens a connection. Push messages, and the news of its end, go to `pushes`.
    pub(super) async fn open(
        &self,
        address: &Address,
        pushes: impl AsyncPushSender,
    ) -> Result<MultiplexedConnection, RedisError> {
        let info = self.url.connection_info(address).map_err(|error| {
            RedisError::from((
                ErrorKind::InvalidClientConfig,
                "unusable address",
                error.text.to_string(),
            ))
        })?;
        let config = self.config().set_push_sender(pushes);
        Client::open(info)?.get_multiplexed_async_connection_with_config(&config).await
    }

    fn config(&self) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_millis(self.timeouts.connect_ms)))
            .set_response_timeout(Some(Duration::from_millis(self.timeouts.response_ms)))
    }
}
