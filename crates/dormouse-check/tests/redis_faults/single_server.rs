//! One server: scripts forgotten, connections killed, answers lost, requests late, the server
//! frozen, asleep, full, killed.

use std::sync::Arc;
use std::time::Duration;

use dormouse_check::faults::relay::Relay;
use dormouse_check::generate::rng::Rng;
use dormouse_check::generate::seed::{seed, soak};
use dormouse_check::harness::process::client::Client;
use dormouse_check::harness::redis::workload::Workload;
use dormouse_check::harness::redis::{Append, RedisConfig, RedisServer};
use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::op::{Cancel, Put, Reserve, Target};
use dormouse_core::topic::TopicName;
use dormouse_redis::Level;

use crate::{Took, open, work};

/// The fault of a server.
const FAULTS: u64 = 7;

/// Two backends, one of them over a relay.
struct Alone {
    backends: Vec<Arc<dyn Backend>>,
    relay: Relay,
    // Last, so that the backends have ended before their server goes.
    server: RedisServer,
}

impl Alone {
    fn start(config: RedisConfig) -> Alone {
        let server = RedisServer::start(config);
        let relay = Relay::to(&server.address());
        let urls = [server.url(), relay.url()];
        let backends = urls.iter().map(|url| open(url, Level::Applied, None)).collect();
        Alone { backends, relay, server }
    }

    fn fault(&mut self, kind: u64, rng: &mut Rng, frozen_ms: u64) {
        let some = |rng: &mut Rng| Duration::from_millis(1 + rng.below(20));
        match kind {
            0 => drop(self.server.must(&["SCRIPT", "FLUSH"])),
            1 => drop(self.server.must(&["CLIENT", "KILL", "TYPE", "normal"])),
            2 => self.kill_some(rng),
            3 => self.relay.lose_answers(some(rng)),
            4 => self.relay.deliver_late(some(rng), Duration::from_millis(40 + rng.below(80))),
            5 => drop(self.server.must(&["DEBUG", "SLEEP", "0.7"])),
            _ => {
                self.server.freeze();
                work(frozen_ms);
                self.server.thaw();
            }
        }
    }

    /// Kills connections by their ids, publications among them.
    fn kill_some(&self, rng: &mut Rng) {
        let list = self.server.must(&["CLIENT", "LIST"]).text();
        let ids = list.lines().filter_map(|line| line.strip_prefix("id=")?.split(' ').next());
        for id in ids.filter(|_| rng.chance(50)) {
            // One of them is the rig's own, and some are gone by now.
            self.server.command(&["CLIENT", "KILL", "ID", id, "SKIPME", "yes"]);
        }
    }

    /// Puts are refused; what ends jobs is not.
    fn full(&self) {
        let client = Client::new(&self.backends[0]);
        let topic = TopicName::new("full").expect("a good name");
        let put = || Command::Put(vec![Put::new(topic.clone(), "work")]);
        let mut ids = Vec::new();
        for _ in 0..2 {
            match client.call_one(put()) {
                Ok(Reply::Put(items)) => {
                    ids.extend(items.into_iter().map(|item| item.expect("a good put").id));
                }
                other => panic!("{other:?}"),
            }
        }
        self.server.must(&["CONFIG", "SET", "maxmemory", "1mb"]);
        work(200);
        match client.call_one(put()) {
            Err(error) => assert_eq!(error.code, Code::Full, "{error}"),
            Ok(Reply::Put(items)) => {
                let refused =
                    items.into_iter().all(|item| item.is_err_and(|error| error.code == Code::Full));
                assert!(refused, "puts are `full`");
            }
            other => panic!("{other:?}"),
        }
        let reserve =
            Reserve { topics: vec![topic], max: 1, wait_ms: 0, ttr_ms: None, session: None };
        let token = match client.call_one(Command::Reserve(reserve)) {
            Ok(Reply::Jobs(jobs)) => jobs[0].token,
            other => panic!("{other:?}"),
        };
        let acked = client.call_one(Command::Ack(vec![token]));
        assert!(matches!(&acked, Ok(Reply::Ended(items)) if items[0].is_ok()), "{acked:?}");
        let left = ids.into_iter().find(|id| *id != token.id).expect("two jobs");
        let cancel = Cancel { target: Target::Id(left), unless_leased: false };
        let cancelled = client.call_one(Command::Cancel(vec![cancel]));
        assert!(
            matches!(&cancelled, Ok(Reply::Changed(items)) if items[0].is_ok()),
            "{cancelled:?}"
        );
        self.server.must(&["CONFIG", "SET", "maxmemory", "0"]);
    }
}

fn single(seed: u64, turns: u64, frozen_ms: impl Fn(&mut Rng, u64) -> u64) {
    let _took = Took::new("single");
    let extra = vec!["enable-debug-command yes".to_owned()];
    let mut alone = Alone::start(RedisConfig { extra, ..RedisConfig::default() });
    let mut workload = Workload::new("single", seed, alone.backends.clone());
    let mut rng = Rng::new(seed);
    for turn in 0..turns {
        let done = workload.round(|_| {
            for kind in 0..FAULTS {
                work(rng.below(100));
                let frozen_ms = frozen_ms(&mut rng, turn);
                alone.fault(kind, &mut rng, frozen_ms);
            }
            // These are quick, and only some hit a put on its way.
            for _ in 0..24 {
                work(rng.below(20));
                let kind = if rng.chance(60) { 4 } else { rng.below(4) };
                alone.fault(kind, &mut rng, 0);
            }
            alone.full();
            work(200);
        });
        done.unwrap_or_else(|text| panic!("{text}"));
    }
    workload.finish().unwrap_or_else(|text| panic!("{text}"));
    let late = alone.relay.answered_late();
    eprintln!("single: {late} requests came late");
    assert!(late > 0, "requests that were sent again come once more");
}

#[test]
fn a_real_process_alone_does_each_thing_once() {
    // Once longer than a connection is waited for.
    single(seed(), 2, |rng, turn| if turn == 0 { 1_000 + rng.below(500) } else { 5_500 });
}

#[test]
#[ignore = "a campaign: cargo xtask soak"]
fn soak_redis_single() {
    // Up to longer than a request's timeout.
    soak(|seed| single(seed, 6, |rng, _| 1_000 + rng.below(11_000)));
}

/// kill -9 of a server that syncs always: what was answered is there when it is back.
fn append_always(seed: u64, kills: u64) {
    let _took = Took::new("append_always");
    let mut alone = Alone::start(RedisConfig { append: Append::Always, ..RedisConfig::default() });
    let mut workload = Workload::new("append_always", seed, alone.backends.clone());
    let mut rng = Rng::new(seed);
    for _ in 0..kills {
        let done = workload.round(|_| {
            work(20 + rng.below(300));
            alone.server.kill_nine();
            work(rng.below(100));
            alone.server.restart();
            work(20 + rng.below(150));
        });
        done.unwrap_or_else(|text| panic!("{text}"));
    }
    workload.finish().unwrap_or_else(|text| panic!("{text}"));
}

#[test]
fn a_real_process_that_syncs_always_loses_nothing_by_kill_nine() {
    append_always(seed(), 10);
}

#[test]
#[ignore = "a campaign: cargo xtask soak"]
fn soak_redis_append_always() {
    soak(|seed| append_always(seed, 100));
}
