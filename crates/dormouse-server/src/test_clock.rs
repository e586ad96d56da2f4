//! A clock that clients move, for their tests.

use std::time::Duration;

use dormouse_core::error::Error;

/// Moves the clock of the backend by this span and tells its wall time afterwards, in ms. Returns
/// when everything that came due has happened. Blocks.
pub type TestClock = dyn Fn(Duration) -> Result<u64, Error> + Send + Sync;
