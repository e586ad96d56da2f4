//! Seeds of campaigns: chosen by the clock, or given to repeat one; and how long to go on.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// `DORMOUSE_SEED`, or one of its own.
pub fn seed() -> u64 {
    match std::env::var("DORMOUSE_SEED") {
        Ok(seed) => seed.parse().expect("DORMOUSE_SEED is a number"),
        Err(_) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.map_or(1, |since| since.subsec_nanos().into())
        }
    }
}

/// Runs campaigns, each with the next seed, for `DORMOUSE_SOAK_SECONDS`, or a minute.
pub fn soak(mut run: impl FnMut(u64)) {
    let seconds = std::env::var("DORMOUSE_SOAK_SECONDS")
        .map_or(60, |text| text.parse().expect("DORMOUSE_SOAK_SECONDS is a number"));
    let started = Instant::now();
    let mut seed = seed();
    while started.elapsed() < Duration::from_secs(seconds) {
        run(seed);
        seed += 1;
    }
}
