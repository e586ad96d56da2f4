//! Many jobs, or large ones, make many pages, not long scripts.

use std::sync::Arc;

use dormouse_check::conformance::client::Client;
use dormouse_check::redis::{RedisConfig, RedisServer};
use dormouse_core::command::Command;
use dormouse_core::op::Put;
use dormouse_redis::{Options, RedisBackend};

use crate::site::{check, is_clean, topic};

/// A million for who has the time: `DORMOUSE_VERIFY_JOBS=1000000`.
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

/// Checks, and gives how long scripts took: half of them at most, and nine of ten. The longest would
/// be the ones during which another process had the processor.
fn script_us(server: &RedisServer, count: u64) -> (u64, u64) {
    server.slow_from_micros(0);
    server.must(&["CONFIG", "SET", "slowlog-max-len", "1000000"]);
    server.reset_stats();
    let report = check(&server.url(), false);
    is_clean(&report);
    assert_eq!(report.delayed + report.ready, count);
    assert_eq!(report.unchecked, Vec::<String>::new());
    let calls = server.slowlog();
    let scripts = calls.iter().filter(|call| call.words[0].eq_ignore_ascii_case("EVALSHA"));
    let mut all: Vec<u64> = scripts.map(|call| call.micros).collect();
    all.sort_unstable();
    let at = |tenths: usize| all[(all.len() - 1) * tenths / 10];
    println!("{} scripts: half {} us, 9/10 {} us, all {} us", all.len(), at(5), at(9), at(10));
    (at(5), at(9))
}

fn is_short((half, most): (u64, u64)) {
    assert!(half < 2_500, "half of all scripts took {half} us or more");
    assert!(most < 5_000, "a tenth of all scripts took {most} us or more");
}

#[test]
fn many_jobs() {
    let server = filled(jobs(), 4_000, |number| Put {
        key: (number % 4 == 0).then(|| number.to_string().into()),
        delay_ms: Some(i64::try_from(number).unwrap()),
        ..Put::new(topic("t"), vec![b'x'; 100])
    });
    is_short(script_us(&server, jobs() as u64));
}

#[test]
fn many_priorities() {
    let server = filled(jobs() / 4, 4_000, |number| Put {
        priority: Some(u32::try_from(number % 60).unwrap()),
        ..Put::new(topic("t"), vec![b'x'; 100])
    });
    is_short(script_us(&server, jobs() as u64 / 4));
}

#[test]
fn large_jobs() {
    let server = filled(200, 8, |number| Put {
        key: Some(number.to_string().into()),
        ..Put::new(topic("t"), vec![b'x'; 1 << 20])
    });
    is_short(script_us(&server, 200));
}
