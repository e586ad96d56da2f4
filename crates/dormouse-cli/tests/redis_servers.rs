//! Several `dormouse serve --backend redis` on one Redis, killed with kill -9 and started again
//! while clients work on all of them over HTTP: what was answered stays answered, and the others
//! go on.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dormouse_check::generate::rng::Rng;
use dormouse_check::generate::seed::{seed, soak};
use dormouse_check::harness::process::served::Process;
use dormouse_check::harness::redis::workload::Workload;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::backend::Backend;

const SERVERS: usize = 3;
const ROUNDS: u64 = 6;
const SOAK_ROUNDS: u64 = 60;

/// A server on this Redis, and the way to it.
fn serve(redis: &RedisServer, round: u64) -> (Process, Arc<dyn Backend>) {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_dormouse"));
    let words = ["--backend", "redis", "--redis-url", &redis.url()].map(str::to_owned);
    let mut process = Process::start(&program, &words).unwrap_or_else(|text| panic!("{text}"));
    let backend = process.ready(round).unwrap_or_else(|text| panic!("{text}"));
    (process, backend)
}

fn run(seed: u64, rounds: u64) {
    let redis = RedisServer::start(RedisConfig::default());
    let (mut processes, backends): (Vec<Process>, Vec<_>) =
        (0..SERVERS).map(|at| serve(&redis, at as u64)).unzip();
    let mut workload = Workload::new("servers", seed, backends);
    let mut rng = Rng::new(seed);
    for round in 0..rounds {
        let first = rng.below(SERVERS as u64) as usize;
        // One, or all but one.
        let count = if rng.chance(50) { 1 } else { SERVERS - 1 };
        let killed: Vec<usize> = (first..first + count).map(|at| at % SERVERS).collect();
        let done = workload.round(|watch| {
            thread::sleep(Duration::from_millis(50 + rng.below(400)));
            for &at in &killed {
                // Only what is under way is cut off: else they would ask nobody, and fast.
                watch.leave(at);
                processes[at].kill().unwrap_or_else(|text| panic!("{text}"));
            }
            thread::sleep(Duration::from_millis(rng.below(200)));
            // The others work while these start.
            let started = killed.iter().map(|_| serve(&redis, round));
            started.collect::<Vec<_>>()
        });
        let started = done.unwrap_or_else(|text| panic!("{text}"));
        for (at, (process, backend)) in killed.into_iter().zip(started) {
            processes[at] = process;
            workload.replace(at, backend);
        }
    }
    workload.finish().unwrap_or_else(|text| panic!("{text}"));
}

#[test]
fn a_real_process_among_several_on_one_redis_is_not_missed() {
    run(seed(), ROUNDS);
}

#[test]
#[ignore = "a campaign: cargo xtask soak"]
fn soak_redis_servers() {
    soak(|seed| run(seed, SOAK_ROUNDS));
}
