//! Instants as the API writes them.

use dormouse_core::error::Error;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{self, Deserializer};

/// Wall ms, from RFC 3339 in UTC with ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At(pub(super) u64);

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<At, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_exact = text.len() == "2027-01-01T08:00:00.000Z".len() && text.ends_with('Z');
        let instant = text.parse::<Timestamp>().ok().filter(|_| is_exact);
        let ms = instant.and_then(|instant| u64::try_from(instant.as_millisecond()).ok());
        ms.map(At).ok_or_else(|| de::Error::custom(format!("{text:?} is not UTC with ms")))
    }
}

/// The server broke its contract.
pub(super) fn unexpected(what: &str, body: &[u8]) -> Error {
    let shown: String = String::from_utf8_lossy(body).chars().take(400).collect();
    Error::unavailable(format!("the server broke its contract: {what}: {shown}"))
}
