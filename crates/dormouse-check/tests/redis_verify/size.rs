//! Many jobs, or large ones, make many pages, not long scripts.

use std::sync::Arc;
use std::time::Instant;

use dormouse_check::conformance::client::Client;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::command::Command;
use dormouse_core::op::Put;
use dormouse_redis::{Options, RedisBackend};

use crate::installation::{check, is_clean, topic};

/// Calls that take less are not in the slow log.
const SLOW_US: u64 = 200;
/// No script of the check takes longer.
const SHORT_US: u64 = 5_000;
/// Repeats of a check on a machine that others use.
const ATTEMPTS: usize = 20;

/// `DORMOUSE_VERIFY_JOBS=1000000` checks a million.
fn jobs() -> usize {
    let given = std::env::var("DORMOUSE_VERIFY_JOBS");
    given.ok().and_then(|text| text.parse().ok()).unwrap_or(30_000)
}

fn filled(count: usize, batch: usize, put: impl Fn(usize) -> Put) -> RedisServer {
    let server = RedisServer::start(RedisConfig::default());
    let backend = Arc::new(RedisBackend::open(&server.url(), Options::default()).unwrap());
    let client = Client::new(backend);
    let numbers: Vec<usize> = (0..count).collect();
    for some in numbers.chunks(batch) {
        client.ask(Command::Put(some.iter().map(|&number| put(number)).collect())).unwrap();
    }
    server
}

/// Checks once; returns what nine of ten scripts took at most. The slow log cuts commands off
/// before the verb, so scripts cannot be told apart.
fn check_once(server: &RedisServer, count: u64) -> u64 {
    server.slow_from_micros(SLOW_US);
    server.must(&["CONFIG", "SET", "slowlog-max-len", "1000000"]);
    server.reset_stats();
    let began = Instant::now();
    let report = check(&server.url(), false);
    let took = began.elapsed();
    is_clean(&report);
    assert_eq!(report.delayed + report.ready, count);
    assert_eq!(report.unchecked, Vec::<String>::new());
    let is_script = |words: &[String]| words[0].eq_ignore_ascii_case("EVALSHA");
    let scripts = server.slowlog().into_iter().filter(|call| is_script(&call.words));
    let mut all: Vec<u64> = scripts.map(|call| call.micros).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    let run = usize::try_from(server.scripts_run()).unwrap();
    let at = |tenths: usize| all.get(run * (10 - tenths) / 10).copied().unwrap_or(SLOW_US);
    let over = all.iter().filter(|&&us| us > SHORT_US).count();
    eprintln!("{run} scripts in {took:?}: half {} us, 9/10 {} us, {over} over 5 ms", at(5), at(9));
    at(9)
}

/// No script takes over 5 ms. The clock goes on while another process has the processor, so a tenth
/// may, and the check is repeated: scripts that are long by themselves are long each time.
fn scripts_are_short(server: &RedisServer, count: u64) {
    let mut attempts = (0..ATTEMPTS).map(|_| check_once(server, count));
    let is_short = attempts.any(|most| most < SHORT_US);
    assert!(is_short, "a tenth of all scripts took {SHORT_US} us or more, each time");
}

#[test]
fn many_jobs() {
    let server = filled(jobs(), 4_000, |number| Put {
        key: (number % 4 == 0).then(|| number.to_string().into()),
        delay_ms: Some(i64::try_from(number).unwrap()),
        ..Put::new(topic("t"), vec![b'x'; 100])
    });
    scripts_are_short(&server, jobs() as u64);
}

#[test]
fn many_priorities() {
    let server = filled(jobs() / 4, 4_000, |number| Put {
        priority: Some(u32::try_from(number % 60).unwrap()),
        ..Put::new(topic("t"), vec![b'x'; 100])
    });
    scripts_are_short(&server, jobs() as u64 / 4);
}

#[test]
fn large_jobs() {
    let server = filled(100, 8, |number| Put {
        key: Some(number.to_string().into()),
        ..Put::new(topic("t"), vec![b'x'; 1 << 20])
    });
    scripts_are_short(&server, 100);
}
