//! Tests the tests: every bug of `BUGBANK.md` is planted in a copy of the sources and must be
//! caught by one of the tests here.
//!
//! A patch in `bugbank/` puts each bug behind a switch, so one build serves all of them. If a
//! patch no longer applies, the code has moved: plant the bugs again and write the patch anew.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(clippy::print_stdout, reason = "it takes minutes and says how far it is")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

/// A patch that plants bugs, and the tests that must catch them, the likeliest first.
struct Bank {
    patch: &'static str,
    package: &'static str,
    tests: &'static [&'static [&'static str]],
}

/// Bugs in the store and the engine on it.
const STORE: Bank = Bank {
    patch: "plants.patch",
    package: "dormouse-check",
    tests: &[
        &["--test", "disk_random_histories"],
        &["--test", "disk_crash_at_every_call"],
        &["--test", "engine_turns"],
        &["--test", "engine_on_failing_disk"],
        &["--test", "journal_damage"],
        &["--test", "disk_damaged_files"],
        &["--test", "disk_clock_steps"],
    ],
};

/// Bugs in the rules of a job's end and of ticks.
const ENDS: Bank = Bank {
    patch: "ends.patch",
    package: "dormouse-check",
    tests: &[
        &["--test", "disk_random_histories"],
        &["--test", "process_kill_nine", "kill_nine_splits"],
        &["--test", "conformance", "chain::"],
    ],
};

/// Bugs in the scheduler of the Redis backend; its tests start no Redis.
const SCHEDULER: Bank = Bank {
    patch: "scheduler.patch",
    package: "dormouse-redis",
    tests: &[&["--lib", "scheduler::"]],
};

/// Bugs in pushes; their receivers are in the test.
const PUSH: Bank = Bank {
    patch: "push.patch",
    package: "dormouse-server",
    tests: &[&["--all-features", "--test", "push"]],
};

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

impl Bank {
    fn path(&self) -> PathBuf {
        root().join("crates/dormouse-check/bugbank").join(self.patch)
    }

    /// A copy of the committed sources, with every bug behind its switch.
    fn plant(&self, copy: &Path) {
        run(Command::new("git").arg("clone").arg("--quiet").arg(root()).arg(copy));
        run(Command::new("git").current_dir(copy).arg("apply").arg(self.path()));
    }

    /// The names in the patch, each once.
    fn names(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path()).unwrap();
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

    fn cargo_test(&self, copy: &Path, test: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args([SECONDS_MAX, env!("CARGO")]);
        command.current_dir(copy).env("CARGO_TARGET_DIR", copy.join("target"));
        command.args(["test", "--quiet", "--package", self.package]).args(test);
        command.env("DORMOUSE_MODEL_SECONDS", "45").env("RUST_BACKTRACE", "0");
        command
    }

    fn check(&self) {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy");
        self.plant(&copy);
        for test in self.tests {
            run(self.cargo_test(&copy, test).arg("--no-run"));
        }
        let mut survivors = Vec::new();
        for name in self.names() {
            let began = Instant::now();
            let catches = |test: &&&[&str]| {
                let mut command = self.cargo_test(&copy, test);
                !command.env("DORMOUSE_PLANT", &name).output().unwrap().status.success()
            };
            let caught_by = self.tests.iter().find(catches);
            println!("{name}: {caught_by:?} after {:.1} s", began.elapsed().as_secs_f64());
            if caught_by.is_none() && !HARMLESS.contains(&name.as_str()) {
                survivors.push(name);
            }
        }
        assert!(survivors.is_empty(), "nobody noticed {survivors:?}");
    }
}

/// A bug may make a test hang: then it is caught after this time.
const SECONDS_MAX: &str = "600";

/// Code that moved away from under a patch would leave a bank that nobody can run.
#[test]
fn the_plants_still_apply() {
    for bank in [STORE, ENDS, SCHEDULER, PUSH] {
        let mut apply = Command::new("git");
        run(apply.current_dir(root()).args(["apply", "--check"]).arg(bank.path()));
    }
}

#[test]
#[ignore = "builds a copy of the sources and takes ten minutes"]
fn every_bug_planted_in_the_store_is_caught() {
    STORE.check();
}

#[test]
#[ignore = "builds a copy of the sources and takes minutes"]
fn every_bug_planted_in_the_end_of_jobs_is_caught() {
    ENDS.check();
}

#[test]
#[ignore = "builds a copy of the sources and takes minutes"]
fn every_bug_planted_in_the_scheduler_is_caught() {
    SCHEDULER.check();
}

#[test]
#[ignore = "builds a copy of the sources and takes minutes"]
fn every_bug_planted_in_pushes_is_caught() {
    PUSH.check();
}
