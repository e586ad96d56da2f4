//! Faults of real Redis servers under load: what was answered stays true, and service goes on.

mod clock;
mod cluster;
mod failover;
mod locks;
mod many_callers;
mod sentinel;
mod single_server;
mod ticks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use dormouse_core::backend::Backend;
use dormouse_redis::{Level, Options, RedisBackend};

/// A backend on this Redis.
fn open(url: &str, level: Level, partitions: Option<u16>) -> Arc<dyn Backend> {
    let options = Options { level, partitions, clock: None };
    let opened = RedisBackend::open(url, options);
    Arc::new(opened.unwrap_or_else(|error| panic!("the backend does not open: {error}")))
}

/// Lets the load go on.
fn work(for_ms: u64) {
    std::thread::sleep(Duration::from_millis(for_ms));
}

/// A number from the environment.
fn rounds(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number of rounds"))
}

/// Says how long a campaign took.
struct Took(&'static str, Instant);

impl Took {
    fn new(name: &'static str) -> Took {
        Took(name, Instant::now())
    }
}

impl Drop for Took {
    fn drop(&mut self) {
        eprintln!("{}: took {:?}", self.0, self.1.elapsed());
    }
}
