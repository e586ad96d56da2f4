//! kill -9 on a real process with real files, again and again: what was answered stays answered.

use std::path::PathBuf;

use dormouse_check::generate::seed::{seed, soak};
use dormouse_check::harness::process::campaign::Campaign;

const ROUNDS: u64 = 30;

/// One campaign in a directory of its own; the directory stays if something is wrong.
fn run(seed: u64, rounds: u64) {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("kill-nine-{}-{seed}", std::process::id()));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_kill-nine-child"));
    eprintln!("kill_nine: DORMOUSE_SEED={seed}");
    let campaign = Campaign { program, dir: dir.clone(), seed, rounds };
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
fn soak_kill_nine() {
    soak(|seed| run(seed, 2 * ROUNDS));
}
