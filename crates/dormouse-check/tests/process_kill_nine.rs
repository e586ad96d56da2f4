//! kill -9 on a real process with real files, again and again: what was answered stays answered.

use std::path::PathBuf;

use dormouse_check::generate::seed::{seed, soak};
use dormouse_check::harness::process::campaign::Campaign;
use dormouse_check::harness::process::ends::{EndsCampaign, lines_path};

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

/// The same, of jobs that come to their end in every way, and of a schedule.
fn run_ends(seed: u64, rounds: u64) {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("kill-nine-ends-{}-{seed}", std::process::id()));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_kill-nine-child"));
    eprintln!("kill_nine_ends: DORMOUSE_SEED={seed}");
    let campaign = EndsCampaign { program, dir: dir.clone(), seed, rounds };
    match campaign.run() {
        Ok(account) => {
            eprintln!("kill_nine_ends: {account:?}");
            assert!(account.letters > 0 && account.chains > 0 && account.ticks > 0, "{account:?}");
        }
        Err(text) => panic!("{text}"),
    }
    std::fs::remove_file(lines_path(&dir)).expect("the file goes");
    std::fs::remove_dir_all(dir).expect("the directory goes");
}

#[test]
fn kill_nine_splits_no_chain_and_loses_no_letter_and_no_tick() {
    run_ends(seed(), ROUNDS);
}

#[test]
#[ignore = "a campaign: cargo xtask soak"]
fn soak_kill_nine_ends() {
    soak(|seed| run_ends(seed, 2 * ROUNDS));
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
