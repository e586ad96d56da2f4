//! Tests the tests: every bug of `BUGBANK.md` is planted in a copy of the sources and must be
//! caught by one of the tests here.
//!
//! `bugbank/plants.patch` puts each bug behind a switch, so one build serves all of them. If the
//! patch no longer applies, the code has moved: plant the bugs again and write the patch anew.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(clippy::print_stdout, reason = "it takes minutes and says how far it is")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

/// The tests that must catch them, the likeliest first.
const TESTS: [&str; 7] = [
    "disk_random_histories",
    "disk_crash_at_every_call",
    "engine_turns",
    "engine_on_failing_disk",
    "journal_damage",
    "disk_damaged_files",
    "disk_clock_steps",
];

/// Plants that cannot be caught, because they are harmless on any disk we know: see `BUGBANK.md`.
const HARMLESS: [&str; 1] = ["dir-run"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{said}");
    output
}

/// A copy of the committed sources, with every bug behind its switch.
fn planted_copy(into: &Path) {
    run(Command::new("git").arg("clone").arg("--quiet").arg(root()).arg(into));
    let patch = root().join("crates/dormouse-check/bugbank/plants.patch");
    run(Command::new("git").current_dir(into).arg("apply").arg(patch));
}

/// The names in the patch, each once.
fn names() -> Vec<String> {
    let patch = root().join("crates/dormouse-check/bugbank/plants.patch");
    let text = std::fs::read_to_string(patch).unwrap();
    let added = text.lines().filter(|line| line.starts_with('+'));
    let of_line = |line: &str| {
        let (_, rest) = line.split_once("planted(\"")?;
        rest.split_once('"').map(|(name, _)| name.to_owned())
    };
    let mut names: Vec<String> = added.filter_map(of_line).collect();
    names.sort();
    names.dedup();
    names
}

/// A bug may make a test hang: then it is caught after this time.
const SECONDS_MAX: &str = "600";

fn cargo_test(copy: &Path, test: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args([SECONDS_MAX, env!("CARGO")]);
    command.current_dir(copy).env("CARGO_TARGET_DIR", copy.join("target"));
    command.args(["test", "--quiet", "--package", "dormouse-check", "--test", test]);
    command.env("DORMOUSE_MODEL_SECONDS", "45").env("RUST_BACKTRACE", "0");
    command
}

/// Code that moved away from under the patch would leave a bank that nobody can run.
#[test]
fn the_plants_still_apply() {
    let patch = root().join("crates/dormouse-check/bugbank/plants.patch");
    run(Command::new("git").current_dir(root()).args(["apply", "--check"]).arg(patch));
}

#[test]
#[ignore = "builds a copy of the sources and takes ten minutes"]
fn every_planted_bug_is_caught() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy");
    planted_copy(&copy);
    for test in TESTS {
        run(cargo_test(&copy, test).arg("--no-run"));
    }
    let mut survivors = Vec::new();
    for name in names() {
        let began = Instant::now();
        let catches = |test: &&str| {
            let output = cargo_test(&copy, test).env("DORMOUSE_PLANT", &name).output().unwrap();
            !output.status.success()
        };
        let caught_by = TESTS.iter().find(|test| catches(test));
        println!("{name}: {caught_by:?} after {:.1} s", began.elapsed().as_secs_f64());
        if caught_by.is_none() && !HARMLESS.contains(&name.as_str()) {
            survivors.push(name);
        }
    }
    assert!(survivors.is_empty(), "nobody noticed {survivors:?}");
}
