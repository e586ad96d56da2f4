//! Waiting for something to become so, with an end.

use std::thread;
use std::time::{Duration, Instant};

const BETWEEN: Duration = Duration::from_millis(5);
/// Longer than anything takes that comes at all, also while every core is busy.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for something that another thread or process does soon; panics after a minute.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    until(what, TIMEOUT, || if is_so() { Ok(()) } else { Err("it is not so".to_owned()) });
}

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
