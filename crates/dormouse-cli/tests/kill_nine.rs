//! kill -9 on `dormouse serve`, again and again: what was answered over HTTP stays answered.

use std::path::PathBuf;

use dormouse_check::generate::seed::{seed, soak};
use dormouse_check::harness::process::served::ServedCampaign;

const ROUNDS: u64 = 12;
const SOAK_ROUNDS: u64 = 100;

/// Flushes and merges all the time.
const SIZES: [&str; 4] = ["--store-memtable-bytes", "49152", "--store-segment-bytes", "98304"];

/// One campaign in a directory of its own; the directory stays if something is wrong.
fn run(seed: u64, rounds: u64) {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("kill-nine-serve-{}-{seed}", std::process::id()));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_dormouse"));
    eprintln!("kill_nine: DORMOUSE_SEED={seed}");
    let args = SIZES.iter().map(|word| (*word).to_owned()).collect();
    let campaign = ServedCampaign { program, args, dir: dir.clone(), seed, rounds };
    match campaign.run() {
        Ok(summary) => eprintln!("kill_nine: {summary:?}"),
        Err(text) => panic!("{text}"),
    }
    std::fs::remove_dir_all(dir).expect("the directory goes");
}

#[test]
fn kill_nine_loses_nothing() {
    run(seed(), ROUNDS);
}

#[test]
#[ignore = "a campaign: cargo xtask soak"]
fn soak_kill_nine_serve() {
    soak(|seed| run(seed, SOAK_ROUNDS));
}
