//! Random histories: two servers on a real Redis must answer what the rules over a map do.
//!
//! `DORMOUSE_SEED` runs exactly one history again, `DORMOUSE_SOAK_SECONDS` says how long the
//! campaign goes on.

#![allow(clippy::print_stdout, reason = "a failure prints its seed and history")]

use std::time::{Duration, Instant};

use dormouse_check::generate::profile::redis_history;
use dormouse_check::harness::redis::model::minimise::{minimise, run};
use dormouse_check::harness::redis::model::{Rig, partitioned};

fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs the history of a seed; a failure is made small, printed, and fails the test.
fn check_seed(rig: &Rig, seed: u64) -> u64 {
    let (ops, servers) = redis_history(seed);
    let failure = match run(rig, &ops, servers) {
        Ok(steps) => return steps,
        Err(failure) => failure,
    };
    println!("seed {seed} fails at op {} of {}: {}", failure.at, ops.len(), failure.what);
    let (small, smallest) = minimise(rig, &ops, servers, failure);
    for line in &smallest.log {
        println!("  {line}");
    }
    panic!(
        "seed {seed} (repeat with DORMOUSE_SEED={seed}): the {} ops above fail with: {}",
        small.len(),
        smallest.what,
    );
}

fn campaign(first_seed: u64, time: Duration) {
    let rig = Rig::start();
    if let Some(seed) = env("DORMOUSE_SEED") {
        check_seed(&rig, seed);
        return;
    }
    let (began, mut seed, mut steps) = (Instant::now(), first_seed, 0);
    while began.elapsed() < time {
        steps += check_seed(&rig, seed);
        seed += 1;
    }
    println!("seeds {first_seed}..{seed}: {steps} commands in {:?}", began.elapsed());
}

#[test]
fn random_histories_agree_with_the_rules() {
    campaign(1, Duration::from_secs(env("DORMOUSE_MODEL_SECONDS").unwrap_or(20)));
}

fn spread_campaign(first_seed: u64, time: Duration) {
    let rig = Rig::start();
    let (began, mut steps) = (Instant::now(), 0);
    let (mut seed, only) = match env("DORMOUSE_SEED") {
        Some(seed) => (seed, true),
        None => (first_seed, false),
    };
    while began.elapsed() < time {
        match partitioned::run(&rig, seed) {
            Ok(more) => steps += more,
            Err(why) => panic!("seed {seed} (repeat with DORMOUSE_SEED={seed}): {why}"),
        }
        seed += 1;
        if only {
            return;
        }
    }
    println!("seeds {first_seed}..{seed}: {steps} commands in {:?}", began.elapsed());
}

/// Over several partitions the order is approximate; all else must hold.
#[test]
fn spread_topics_lose_nothing_and_give_nothing_twice() {
    spread_campaign(1, Duration::from_secs(env("DORMOUSE_MODEL_SECONDS").unwrap_or(20) / 2));
}

#[test]
#[ignore = "a campaign"]
fn soak_spread_topics() {
    let seconds = env("DORMOUSE_SOAK_SECONDS").unwrap_or(60);
    let first = env("DORMOUSE_FIRST_SEED").unwrap_or(1_000_000_000);
    spread_campaign(first, Duration::from_secs(seconds));
}

#[test]
#[ignore = "a campaign"]
fn soak_random_histories() {
    let seconds = env("DORMOUSE_SOAK_SECONDS").unwrap_or(60);
    let first = env("DORMOUSE_FIRST_SEED").unwrap_or(1_000_000_000);
    campaign(first, Duration::from_secs(seconds));
}

mod regressions {
    use super::*;
    use dormouse_check::harness::redis::model::World;
    use dormouse_core::command::Command;
    use dormouse_core::op::*;
    use dormouse_core::topic::{Settings, TopicName};

    fn topic(name: &str) -> TopicName {
        TopicName::new(name).expect("a good name")
    }

    fn reserve(names: &[&str], max: usize, wait_ms: i64) -> Command {
        let topics = names.iter().map(|name| topic(name)).collect();
        Command::Reserve(Reserve { topics, max, wait_ms, ttr_ms: Some(10), session: None })
    }

    fn put(name: &str) -> Put {
        Put::new(topic(name), "body")
    }

    #[test]
    fn two_that_wait_on_several_topics_are_both_woken() {
        let rig = Rig::start();
        for _ in 0..20 {
            let mut world = World::new(&rig, 2);
            world.command(1, reserve(&["a", "b", "c"], 4, 29)).unwrap();
            world.command(1, reserve(&["a", "b"], 4, 22)).unwrap();
            world.ask(0, vec![Command::Put(vec![put("c")])]).unwrap();
        }
    }

    #[test]
    fn who_waits_is_woken_when_others_came_to_wait_meanwhile() {
        let rig = Rig::start();
        for _ in 0..20 {
            let mut world = World::new(&rig, 2);
            world.command(1, reserve(&["a", "b"], 3, 6)).unwrap();
            let later = Put { delay_ms: Some(4), ..put("b") };
            world.command(0, Command::Put(vec![later])).unwrap();
            world.command(1, reserve(&["a", "b", "c"], 4, 27)).unwrap();
            world.advance(10).unwrap();
        }
    }

    /// One topic waited for the other to be done with the second reserve, which then was over.
    #[test]
    fn who_waits_is_woken_after_another_who_waited_was_served() {
        let rig = Rig::start();
        for _ in 0..20 {
            let mut world = World::new(&rig, 1);
            world.command(0, reserve(&["c"], 2, 39)).unwrap();
            let later = Put { delay_ms: Some(8), ..put("c") };
            world.command(0, Command::Put(vec![later])).unwrap();
            world.command(0, reserve(&["a", "b", "c"], 1, 26)).unwrap();
            world.ask(0, vec![Command::Put(vec![put("a")])]).unwrap();
            world.advance(9).unwrap();
        }
    }

    /// A topic with a lease that ran out was asked for ever for what comes before all others.
    #[test]
    fn a_lease_that_ran_out_in_one_of_several_topics_does_not_stop_reserve() {
        let rig = Rig::start();
        let mut world = World::new(&rig, 1);
        world.command(0, Command::Put(vec![put("a")])).unwrap();
        world.command(0, reserve(&["a"], 1, 0)).unwrap();
        world.advance(20).unwrap();
        let urgent = Put { priority: Some(0), ..put("c") };
        world.command(0, Command::Put(vec![urgent])).unwrap();
        world.command(0, reserve(&["a", "b", "c"], 3, 0)).unwrap();
    }

    /// It was found by id and key until somebody counted.
    #[test]
    fn a_dead_job_older_than_dead_ttl_is_gone_for_everybody() {
        let rig = Rig::start();
        let mut world = World::new(&rig, 2);
        let settings = Settings { dead_ttl_ms: Some(5), ..Settings::default() };
        world.command(0, Command::from(SetTopic { topic: topic("a"), settings })).unwrap();
        let keyed = || Put { key: Some("k".into()), ..put("a") };
        world.command(0, Command::Put(vec![keyed()])).unwrap();
        let target = || Target::Key { topic: topic("a"), key: "k".into() };
        let kill = Kill { target: KillTarget::Resting(target()), error: None, priority: None };
        world.command(1, Command::Kill(vec![kill])).unwrap();
        world.advance(4).unwrap();
        world.command(1, Command::Get(vec![target()])).unwrap();
        world.advance(1).unwrap();
        world.command(1, Command::Get(vec![target()])).unwrap();
        world.command(0, Command::Put(vec![keyed()])).unwrap();
    }

    /// The request under way as the wait ended was dropped, and made again.
    #[test]
    fn a_lock_that_becomes_free_as_the_wait_ends_is_taken_once() {
        let rig = Rig::start();
        for _ in 0..20 {
            let mut world = World::new(&rig, 2);
            let lock = |owner: &'static str, ttl_ms, wait_ms| {
                Command::Lock(Lock { name: "l".into(), owner: owner.into(), ttl_ms, wait_ms })
            };
            world.command(0, lock("x", 5, 0)).unwrap();
            world.command(1, lock("y", 20, 5)).unwrap();
            world.advance(5).unwrap();
        }
    }

    /// It was sent with an earlier script batch than the commands before it, or with a later one.
    #[test]
    fn a_reserve_keeps_its_place_in_a_batch() {
        let rig = Rig::start();
        let mut world = World::new(&rig, 1);
        world.command(0, Command::Put(vec![Put { key: Some("k".into()), ..put("a") }])).unwrap();
        let cancel = || {
            let target = Target::Key { topic: topic("a"), key: "k".into() };
            Command::Cancel(vec![Cancel { target, unless_leased: true }])
        };
        world.ask(0, vec![reserve(&["a"], 1, 0), cancel()]).unwrap();
        world.advance(20).unwrap();
        let kill = |name: &str| {
            let target = Target::Key { topic: topic(name), key: "k".into() };
            Kill { target: KillTarget::Resting(target), error: None, priority: None }
        };
        let kills = Command::Kill(vec![kill("a"), kill("b")]);
        world.ask(0, vec![kills, cancel(), reserve(&["a"], 1, 0)]).unwrap();
    }

    /// Only the server that looked at it after that knew.
    #[test]
    fn a_lease_made_shorter_by_an_extend_is_known_to_a_reserve_over_several_topics() {
        let rig = Rig::start();
        let mut world = World::new(&rig, 1);
        world.command(0, Command::Put(vec![put("a"), put("b")])).unwrap();
        world.command(0, reserve(&["a"], 1, 0)).unwrap();
        let token = world.last_token().unwrap();
        let shorter = Extend { token, ttr_ms: Some(3) };
        world.command(0, Command::Extend(vec![shorter])).unwrap();
        world.advance(3).unwrap();
        world.command(0, reserve(&["a", "b"], 2, 0)).unwrap();
    }

    /// Servers poll every few seconds anyway: a request that was not woken is only late,
    /// and rarely often enough in one random history to differ from a busy machine.
    #[test]
    fn a_put_at_another_server_wakes_who_waits() {
        let rig = Rig::start();
        let mut world = World::new(&rig, 2);
        for _ in 0..10 {
            world.command(1, reserve(&["a"], 1, 20)).unwrap();
            world.command(0, Command::Put(vec![put("a")])).unwrap();
            let token = world.last_token().unwrap();
            world.command(0, Command::Ack(vec![token])).unwrap();
        }
    }
}
