//! The primary of a busy slot is killed: how long nobody is served, and what is lost.

use std::time::{Duration, Instant};

use dormouse_check::generate::rng::Rng;
use dormouse_check::generate::seed::{seed, soak};
use dormouse_check::harness::process::client::wall_us;
use dormouse_check::harness::redis::locks::Owners;
use dormouse_check::harness::redis::loss_audit::{LossAudit, Losses};
use dormouse_check::harness::redis::probe::{Gap, PROBE_KEY, Probe};
use dormouse_check::harness::redis::workload::Workload;
use dormouse_check::harness::redis::{RedisCluster, Reply};
use dormouse_redis::Level;

use crate::{Took, open, rounds, work};

/// Callers are served at most this long after the cluster is whole again. It takes a few hundred
/// milliseconds (see `failover_table`), and more on a busy machine.
const GRACE: Duration = Duration::from_secs(3);
/// The same where the new primary has no replica yet: it waits a second for one before it says so.
const GRACE_WAITING: Duration = Duration::from_secs(4);
/// `applied` loses what was answered in this time before the end of a primary, at most.
const WINDOW: Duration = Duration::from_secs(1);
/// Leases granted this long before the end of a primary may be lost.
const SHAKEN_US: u64 = 2_000_000;

/// The result of one failover.
struct Run {
    /// As long as the cluster itself took.
    failover: Duration,
    gap: Gap,
    losses: Losses,
}

/// Kills the primary of a slot, waits for the failover, and brings the old one back.
pub(crate) fn fail_over(cluster: &mut RedisCluster, slot: u16) -> (Instant, Duration) {
    let victim = cluster.primary_of(slot);
    let killed_at = Instant::now();
    cluster.kill(victim);
    let failover = cluster.await_failover(slot);
    // Long enough that calls without a replica are answered so.
    work(1_800);
    cluster.restart(victim);
    cluster.await_whole();
    work(300);
    (killed_at, failover)
}

fn run(cluster: &mut RedisCluster, level: Level, rng: &mut Rng) -> Run {
    let url = cluster.url();
    let backends = [open(&url, level, None), open(&url, level, None)];
    let alone = open(&url, level, Some(1));
    let probe = Probe::start(&alone).expect("the probe begins");
    let slot = cluster.slot_of(PROBE_KEY);
    let audit = LossAudit::new("kept", "done");
    let (killed_at, failover) = audit.keep(&backends, 3, || {
        work(300 + rng.below(500));
        fail_over(cluster, slot)
    });
    let gap = probe.gap(killed_at).expect("answers before and after");
    let losses = audit.audit(&backends[0], killed_at);
    eprintln!("failover, {level:?}: {failover:?}, {gap:?}, {losses:?}");
    let bound = failover + if level == Level::Applied { GRACE } else { GRACE_WAITING };
    assert!(gap.served <= bound, "served after {gap:?}, failover took {failover:?}");
    assert_eq!(losses.twins, 0, "no token is given twice");
    match level {
        Level::Applied => assert!(losses.window <= WINDOW, "{losses:?}"),
        Level::Replicated(_) => assert_eq!(losses.lost(), 0, "{losses:?}"),
    }
    Run { failover, gap, losses }
}

/// A workload whose history is checked, while a primary dies.
fn workload(cluster: &mut RedisCluster, seed: u64, times: u64) {
    let (url, level) = (cluster.url(), Level::Replicated(1));
    let backends = vec![open(&url, level, None), open(&url, level, None)];
    let mut workload = Workload::new("failover", seed, backends);
    let mut rng = Rng::new(seed);
    for _ in 0..times {
        let key = format!("{{red/{}}}", rng.below(8));
        let slot = cluster.slot_of(&key);
        let done = workload.round(|_| {
            work(300 + rng.below(500));
            let from_us = wall_us();
            fail_over(cluster, slot);
            (from_us - SHAKEN_US, wall_us())
        });
        let (from_us, to_us) = done.unwrap_or_else(|text| panic!("{text}"));
        workload.shaken(from_us, to_us);
    }
    workload.finish().unwrap_or_else(|text| panic!("{text}"));
}

/// A key on the primary that has most of those with such names.
fn busiest(cluster: &RedisCluster, pattern: &str) -> String {
    let keys = cluster.primaries().into_iter().map(|node| {
        let found = cluster.command_on(node, &["KEYS", pattern]);
        found.list().iter().map(Reply::text).collect::<Vec<String>>()
    });
    let most = keys.max_by_key(Vec::len).and_then(|mut keys| keys.pop());
    most.unwrap_or_else(|| panic!("there is no {pattern}"))
}

/// Owners of locks, while the primary of some of them dies.
fn owners(cluster: &mut RedisCluster, seed: u64) {
    let (url, level) = (cluster.url(), Level::Replicated(1));
    let backends = [open(&url, level, None), open(&url, level, None)];
    let tally = Owners::new(seed).run(&backends, || {
        work(500);
        let slot = cluster.slot_of(&busiest(cluster, "*{-lock/*"));
        fail_over(cluster, slot);
    });
    let tally = tally.unwrap_or_else(|text| panic!("{text}"));
    eprintln!("locks, failover: {tally:?}");
    // Few, as most calls wait for a replica that is dead; how few is a matter of luck.
    assert!(tally.grants > 5 && tally.expiries > 0, "{tally:?}");
}

#[test]
fn a_real_process_failover_loses_nothing_that_was_confirmed() {
    let _took = Took::new("failover");
    let seed = seed();
    eprintln!("failover: DORMOUSE_SEED={seed}");
    let mut cluster = RedisCluster::start(3, 1);
    let mut rng = Rng::new(seed);
    run(&mut cluster, Level::Applied, &mut rng);
    run(&mut cluster, Level::Replicated(1), &mut rng);
}

#[test]
fn a_real_process_failover_is_right_for_jobs_and_locks() {
    let _took = Took::new("failover of jobs and locks");
    let seed = seed();
    let mut cluster = RedisCluster::start(3, 1);
    workload(&mut cluster, seed, 1);
    owners(&mut cluster, seed);
}

#[test]
#[ignore = "a campaign: cargo xtask soak"]
fn soak_redis_failover() {
    soak(|seed| {
        let mut cluster = RedisCluster::start(3, 1);
        workload(&mut cluster, seed, 6);
        owners(&mut cluster, seed);
    });
}

/// The table of the promise: `DORMOUSE_ROUNDS` failovers of each level, 20 by default.
#[test]
#[ignore = "takes minutes: for the table of the promise"]
fn failover_table() {
    let mut cluster = RedisCluster::start(3, 1);
    let mut rng = Rng::new(seed());
    for level in [Level::Replicated(1), Level::Applied] {
        let count = rounds("DORMOUSE_ROUNDS", 20);
        let runs: Vec<Run> = (0..count).map(|_| run(&mut cluster, level, &mut rng)).collect();
        eprintln!(
            "| run | failover ms | not served ms | promised | unconfirmed | lost | window ms |"
        );
        eprintln!("|---|---|---|---|---|---|---|");
        for (number, Run { failover, gap, losses }) in runs.iter().enumerate() {
            let (failover, gap) = (failover.as_millis(), gap.served.as_millis());
            let Losses { promised, unconfirmed, window, .. } = losses;
            let (lost, window) = (losses.lost(), window.as_millis());
            eprintln!(
                "| {} | {failover} | {gap} | {promised} | {unconfirmed} | {lost} | {window} |",
                number + 1
            );
        }
        let lost: usize = runs.iter().map(|run| run.losses.lost()).sum();
        let promised: usize = runs.iter().map(|run| run.losses.promised).sum();
        eprintln!("{level:?}: {lost} of {promised} lost in {count} runs");
    }
}
