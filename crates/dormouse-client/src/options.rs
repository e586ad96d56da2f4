//! How to connect.

use std::path::PathBuf;
use std::time::Duration;

use crate::limits::{
    ANSWER_MS_DEFAULT, CONNECT_MS_DEFAULT, OPTION_MS_MAX, REPEAT_MS_DEFAULT, WAITS_MAX_DEFAULT,
};

/// Times, bounds and the token of a connection to servers. Times beyond a year count as a year.
///
/// ```
/// # use dormouse_client::ConnectOptions;
/// # use std::time::Duration;
/// let options = ConnectOptions { repeat_for: Duration::from_secs(60), ..Default::default() };
/// # drop(options);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// The access token, for URLs that have none in them.
    pub token: Option<Secret>,
    /// How long one address may take to connect, and then for all of the TLS handshake and the
    /// greeting; 5 s unless given.
    pub connect_timeout: Duration,
    /// How long a server may be silent while it owes an answer, before its connection counts as
    /// broken; 20 s unless given. A reserve or lock that waits may take its wait longer.
    pub answer_timeout: Duration,
    /// How long commands are kept, and sent again if that can do no harm, while no server can be
    /// reached; 10 s unless given. Then they are `unavailable`.
    pub repeat_for: Duration,
    /// The most reserves and locks that wait at once, each on a connection of its own; 64 unless
    /// given. One more is `busy`.
    pub waits_max: usize,
    /// The certificates of the authorities that `dormouses://` trusts, in PEM; those of the system
    /// unless given.
    pub ca_file: Option<PathBuf>,
}

/// A time of the options as it is used.
pub(crate) fn bounded(time: Duration) -> Duration {
    time.min(Duration::from_millis(OPTION_MS_MAX))
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions {
            token: None,
            connect_timeout: Duration::from_millis(CONNECT_MS_DEFAULT),
            answer_timeout: Duration::from_millis(ANSWER_MS_DEFAULT),
            repeat_for: Duration::from_millis(REPEAT_MS_DEFAULT),
            waits_max: WAITS_MAX_DEFAULT,
            ca_file: None,
        }
    }
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub(crate) String);

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Secret {
        Secret(text.into())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}
