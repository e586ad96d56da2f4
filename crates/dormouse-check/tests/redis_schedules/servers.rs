//! Several servers on one Redis: each tick is given by one of them, whoever else is there.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use dormouse_core::op::Stats;

use super::*;

fn server(redis: &RedisServer) -> Client {
    let backend = RedisBackend::open(&redis.url(), Options::default()).unwrap();
    Client::new(Arc::new(backend))
}

/// A schedule ticks though no caller names its topic: not at the server that wrote it, nor at one
/// that starts later.
#[test]
fn schedules_tick_without_callers_and_after_their_server() {
    let redis = RedisServer::start(RedisConfig::default());
    let jobs = || redis.must(&["HLEN", "dormouse:{t/0}:j"]).int();
    let grows = || {
        let (before, began) = (jobs(), Instant::now());
        while jobs() < before + 3 {
            assert!(began.elapsed() < Duration::from_secs(60), "no tick comes");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let first = server(&redis);
    let put = Command::PutSchedule(Box::new(every("s", Overlap::Allow)));
    assert!(first.ask(put).is_ok());
    grows();
    drop(first);
    let _second = server(&redis);
    grows();
}

/// Five servers; one after the other ends, and another one comes.
#[test]
fn no_tick_is_given_twice_and_all_are_accounted_for() {
    let redis = RedisServer::start(RedisConfig::default());
    let mut servers: Vec<Client> = (0..5).map(|_| server(&redis)).collect();
    let put = PutSchedule { catchup: None, ..every("s", Overlap::Allow) };
    assert!(servers[0].ask(Command::PutSchedule(Box::new(put))).is_ok());
    let mut ticks = BTreeSet::new();
    let (mut jobs, mut passed) = (0_u64, 0_u64);
    let mut round = 0;
    while jobs < 50 {
        // All servers know of it: each has something to do with it.
        for (number, client) in servers.iter().enumerate() {
            assert!(client.ask(get("s")).is_ok(), "server {number}");
        }
        let last = servers.len() - 1;
        for job in reserve(&servers[last], 100, 10_000, None) {
            let tick = job.tick.clone().unwrap();
            assert!(ticks.insert(tick.tick_ms), "tick {} is given twice", tick.tick_ms);
            jobs += 1;
            passed += 1 + tick.missed;
            assert!(servers[last].ask(Command::Ack(vec![job.token])).is_ok());
        }
        servers.remove(round % 5);
        servers.push(server(&redis));
        round += 1;
    }
    let pause = dormouse_core::op::ScheduleChange::Pause { for_ms: None };
    let change =
        dormouse_core::op::ChangeSchedule { topic: topic(), name: name("s"), change: pause };
    let Ok(Reply::Schedule(view)) = servers[0].ask(Command::ChangeSchedule(change)) else {
        panic!()
    };
    for job in reserve(&servers[0], 1_000, 0, None) {
        let tick = job.tick.clone().unwrap();
        assert!(ticks.insert(tick.tick_ms), "tick {} is given twice", tick.tick_ms);
        jobs += 1;
        passed += 1 + tick.missed;
    }
    let span = |tick_ms: u64| (tick_ms - view.created_at) / 100;
    assert_eq!((view.counts.given, view.counts.total()), (jobs, passed));
    let last_ms = *ticks.last().unwrap();
    assert_eq!(view.counts.total(), span(last_ms), "every tick up to the last is accounted for");
    let stats = servers[0].ask(Command::Stats(Stats { topic: Some(topic()) }));
    assert!(matches!(stats, Ok(Reply::Stats(stats)) if stats.counts.puts == jobs));
}
