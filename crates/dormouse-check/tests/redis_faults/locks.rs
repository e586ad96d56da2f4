//! Locks on every backend: whatever the order of events, nobody holds what somebody else does.

use std::sync::Arc;

use dormouse_check::generate::seed::seed;
use dormouse_check::harness::redis::locks::Owners;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::backend::Backend;
use dormouse_disk::engine::{Engine, Options};
use dormouse_redis::Level;

use crate::{open, work};

fn run(backends: &[Arc<dyn Backend>], faults: impl FnOnce()) {
    let tally = Owners::new(seed()).run(backends, faults);
    let tally = tally.unwrap_or_else(|text| panic!("{text}"));
    eprintln!("locks: {tally:?}");
    assert!(tally.grants > 20 && tally.expiries > 0, "{tally:?}");
}

#[test]
fn owners_of_locks_in_memory() {
    let backend: Arc<dyn Backend> = Arc::new(Engine::memory(Options::default()));
    run(&[Arc::clone(&backend), backend], || work(2_000));
}

#[test]
fn owners_of_locks_on_disk() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let engine = Engine::open(dir.path(), Options::default()).expect("a new store");
    let backend: Arc<dyn Backend> = Arc::new(engine.clone());
    run(&[Arc::clone(&backend), backend], || work(2_000));
    engine.close().expect("a good end");
}

#[test]
fn owners_of_locks_on_redis() {
    let server = RedisServer::start(RedisConfig::default());
    let backends = [(); 2].map(|()| open(&server.url(), Level::Applied, None));
    run(&backends, || {
        for _ in 0..10 {
            work(200);
            server.must(&["CLIENT", "KILL", "TYPE", "normal"]);
        }
    });
}
