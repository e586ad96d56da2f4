//! Random histories: the disk store must answer and hold what the rules over a map do, through
//! flushes, merges, crashes and starts that are cut short themselves.
//!
//! `DORMOUSE_SEED` runs exactly one history again, `DORMOUSE_SOAK_SECONDS` says how long the
//! campaign goes on.

#![allow(clippy::print_stdout, reason = "a failure prints its seed and history")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dormouse_check::generate::profile::disk_history;
use dormouse_check::harness::disk::minimise::{minimise, run};

fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs the history of a seed; a failure is made small, printed, and fails the test.
fn check_seed(seed: u64, tally: &mut BTreeMap<&'static str, u64>) {
    let (ops, relaxed) = disk_history(seed);
    let failure = match run(&ops, relaxed, false) {
        Ok(happened) => {
            *tally.entry("histories").or_default() += 1;
            *tally.entry("ops").or_default() += ops.len() as u64;
            for (what, count) in happened {
                *tally.entry(what).or_default() += count;
            }
            return;
        }
        Err(failure) => failure,
    };
    std::panic::set_hook(Box::new(|_| {}));
    let (small, reason) = minimise(&ops, relaxed);
    let _ = std::panic::take_hook();
    for op in &small {
        println!("  {:?} {:?}", op.kind, op.args);
    }
    let smallest = reason.map_or_else(|| "only without thorough checks".to_owned(), |f| f.what);
    panic!(
        "seed {seed} (repeat with DORMOUSE_SEED={seed}) fails at op {} of {} with: {}\n\
         the {} ops above (relaxed = {relaxed}) fail with: {smallest}",
        failure.at,
        ops.len(),
        failure.what,
        small.len(),
    );
}

fn campaign(first_seed: u64, time: Duration) {
    let mut tally = BTreeMap::new();
    if let Some(seed) = env("DORMOUSE_SEED") {
        return check_seed(seed, &mut tally);
    }
    let began = Instant::now();
    let mut seed = first_seed;
    while began.elapsed() < time {
        check_seed(seed, &mut tally);
        seed += 1;
    }
    println!("seeds {first_seed}..{seed}: {tally:?}");
}

#[test]
fn random_histories_agree_with_the_rules() {
    campaign(1, Duration::from_secs(env("DORMOUSE_MODEL_SECONDS").unwrap_or(60)));
}

#[test]
#[ignore = "a campaign"]
fn soak_random_histories() {
    let seconds = env("DORMOUSE_SOAK_SECONDS").unwrap_or(60);
    let first = env("DORMOUSE_FIRST_SEED").unwrap_or(1_000_000_000);
    campaign(first, Duration::from_secs(seconds));
}
