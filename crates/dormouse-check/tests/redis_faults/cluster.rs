//! Slots that move under load, and networks that are cut.

use std::time::{Duration, Instant};

use dormouse_check::generate::rng::Rng;
use dormouse_check::generate::seed::{seed, soak};
use dormouse_check::harness::redis::loss_audit::{LossAudit, Losses};
use dormouse_check::harness::redis::workload::Workload;
use dormouse_check::harness::redis::{IsolatedCluster, RedisCluster, Spot};
use dormouse_redis::Level;

use crate::{Took, open, work};

/// A slot has keys once a put has gone to its partition.
fn await_keys(cluster: &RedisCluster, node: usize, slot: u16) {
    let count = || {
        let words = ["CLUSTER", "COUNTKEYSINSLOT", &slot.to_string()];
        cluster.command_on(node, &words).int()
    };
    let begun = Instant::now();
    while count() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(10), "the topic is not busy");
        work(5);
    }
}

fn reshard(seed: u64, moves: u64) {
    let _took = Took::new("reshard");
    let cluster = RedisCluster::start(3, 0);
    let url = cluster.url();
    let backends = vec![open(&url, Level::Applied, None), open(&url, Level::Applied, None)];
    let mut workload = Workload::new("reshard", seed, backends);
    let mut rng = Rng::new(seed);
    let done = workload.round(|_| {
        work(300);
        for turn in 0..moves {
            let (topic, partition) = (if turn % 2 == 0 { "red" } else { "blue" }, rng.below(8));
            let slot = cluster.slot_of(&format!("{{{topic}/{partition}}}"));
            let from = cluster.primary_of(slot);
            await_keys(&cluster, from, slot);
            let others = cluster.primaries().into_iter().filter(|node| *node != from);
            let to = others.cycle().nth(rng.below(2) as usize).expect("another primary");
            let moved = cluster.move_slot(slot, from, to, Duration::from_millis(rng.below(20)));
            assert!(moved > 0, "the topic is busy");
            work(rng.below(50));
            // And back, with all that came meanwhile.
            cluster.move_slot(slot, to, from, Duration::from_millis(rng.below(5)));
        }
        work(200);
    });
    done.unwrap_or_else(|text| panic!("{text}"));
    workload.finish().unwrap_or_else(|text| panic!("{text}"));
}

#[test]
fn a_real_process_moves_slots_of_busy_topics() {
    reshard(seed(), 6);
}

#[test]
#[ignore = "a campaign: cargo xtask soak"]
fn soak_redis_reshard() {
    soak(|seed| reshard(seed, 60));
}

/// A topic whose only partition is on this node.
fn topic_on(cluster: &RedisCluster, node: usize, name: &str) -> String {
    let names = (0..1_000).map(|number| format!("{name}-{number}"));
    let is_there =
        |name: &String| cluster.primary_of(cluster.slot_of(&format!("{{{name}/0}}"))) == node;
    names.into_iter().find(is_there).expect("every node has slots")
}

/// A client is cut off together with a primary for longer than the others wait for that.
fn partitioned(net: &mut IsolatedCluster, level: Level, away: Duration) -> Losses {
    let victim = net.cluster().primaries()[0];
    let [kept, done] = ["kept", "done"].map(|name| topic_on(net.cluster(), victim, name));
    let slot = net.cluster().slot_of(&format!("{{{kept}/0}}"));
    let url = net.cluster().url();
    let near = [net.run_in(Spot::Client(0), || open(&url, level, Some(1)))];
    let audit = LossAudit::new(&kept, &done);
    let healed_at = audit.keep(&near, 16, || {
        work(500);
        net.cut(&[Spot::Node(victim), Spot::Client(0)]);
        let failover = net.cluster().await_failover(slot);
        work(u64::try_from(away.as_millis()).expect("seconds"));
        net.heal();
        let healed_at = Instant::now();
        net.cluster().await_whole();
        work(500);
        eprintln!("partitioned: failover in {failover:?}");
        healed_at
    });
    let losses = audit.audit(&open(&url, Level::Applied, None), healed_at);
    eprintln!("partitioned, {level:?}: {losses:?}");
    assert_eq!(losses.twins, 0, "no token is given twice");
    losses
}

#[test]
fn a_real_process_partition_loses_nothing_that_was_confirmed() {
    let _took = Took::new("partitioned");
    let Some(mut net) = IsolatedCluster::start(1) else { return };
    let losses = partitioned(&mut net, Level::Replicated(1), Duration::from_millis(500));
    assert_eq!(losses.lost(), 0, "{losses:?}");
    assert!(losses.unconfirmed > 0, "what only the old primary had is told so: {losses:?}");
    let applied = partitioned(&mut net, Level::Applied, Duration::ZERO);
    assert!(applied.lost() > 0, "else nothing is proved: {applied:?}");
}

/// Clients alone are cut off, long enough to give up connections: what they sent on those comes
/// late, when the network is back.
fn cut_off(seed: u64, cuts: u64) {
    let Some(mut net) = IsolatedCluster::start(1) else { return };
    let url = net.cluster().url();
    let near = net.run_in(Spot::Client(0), || open(&url, Level::Applied, None));
    let mut workload = Workload::new("cut_off", seed, vec![near, open(&url, Level::Applied, None)]);
    let mut rng = Rng::new(seed);
    for _ in 0..cuts {
        let done = workload.round(|_| {
            work(200 + rng.below(300));
            net.cut(&[Spot::Client(0)]);
            work(100 + rng.below(7_000));
            net.heal();
            work(1_000 + rng.below(2_000));
        });
        done.unwrap_or_else(|text| panic!("{text}"));
    }
    workload.finish().unwrap_or_else(|text| panic!("{text}"));
}

#[test]
#[ignore = "a campaign: cargo xtask soak"]
fn soak_redis_cut_off() {
    soak(|seed| cut_off(seed, 10));
}
