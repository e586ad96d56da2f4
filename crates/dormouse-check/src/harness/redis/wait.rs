//! Waiting for something to become so, with an end.

use std::thread;
use std::time::{Duration, Instant};

const BETWEEN: Duration = Duration::from_millis(5);

/// Asks again and again until there is an answer; panics with `what` after `timeout`.
pub(crate) fn until<T>(
    what: &str,
    timeout: Duration,
    mut ask: impl FnMut() -> Result<T, String>,
) -> T {
    let deadline = Instant::now() + timeout;
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(reason) if Instant::now() >= deadline => {
                panic!("waited {timeout:?} for {what}: {reason}")
            }
            Err(_) => thread::sleep(BETWEEN),
        }
    }
}
