//! `cargo xtask soak --busy`: the whole suite while something else keeps every core busy.
//!
//! A test that passes here asserts no more about time than it may: another process can always take
//! the core away from it.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::minutes_and_seconds;
use crate::step::Invocation;
use crate::{install, test};

pub(crate) const ROUNDS_DEFAULT: u64 = 3;
pub(crate) const ROUNDS_MAX: u64 = 1_000;

/// Runs the test step this number of times, and every round to its end.
pub(crate) fn run(root: &Path, rounds: u64) -> Result<(), String> {
    install::ensure(install::NEEDED, false)?;
    let suite = test::whole_suite(root);
    println!("soak: building the tests");
    suite.clone().with_words(["--no-run"]).run(root)?;
    let spinners = Spinners::start();
    println!("soak: {} cores are kept busy, {rounds} rounds of `{suite}`", spinners.threads.len());
    let mut failures = 0;
    for round in 1..=rounds {
        let start = Instant::now();
        let (failed, ended_well) = run_round(root, &suite)?;
        let took = minutes_and_seconds(start.elapsed());
        println!("soak: round {round} of {rounds}: {} failures in {took}", failed.len());
        for name in &failed {
            println!("    {name}");
        }
        if failed.is_empty() && !ended_well {
            return Err(format!("`{suite}` failed without naming a test"));
        }
        failures += failed.len();
    }
    match failures {
        0 => Ok(()),
        _ => Err(format!("soak FAILED: {failures} failures in {rounds} rounds")),
    }
}

/// Runs the suite once, shows its output, and returns the tests that failed.
fn run_round(root: &Path, suite: &Invocation) -> Result<(BTreeSet<String>, bool), String> {
    let failed_to = |what: &str, error: std::io::Error| format!("soak: {what}: {error}");
    let (reader, writer) = std::io::pipe().map_err(|error| failed_to("pipe", error))?;
    let stdout = writer.try_clone().map_err(|error| failed_to("pipe", error))?;
    let mut command = suite.command(root);
    let mut child =
        command.stdout(stdout).stderr(writer).spawn().map_err(|error| failed_to("cargo", error))?;
    // The command still holds the writing ends: with them open the output would never end.
    drop(command);
    let mut failed = BTreeSet::new();
    for line in BufReader::new(reader).lines() {
        let line = line.map_err(|error| failed_to("output", error))?;
        println!("{line}");
        failed.extend(failed_test(&line).map(str::to_owned));
    }
    let status = child.wait().map_err(|error| failed_to("cargo", error))?;
    Ok((failed, status.success()))
}

/// The test that a line of nextest or of `cargo test` reports as failed.
fn failed_test(line: &str) -> Option<&str> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("test ") {
        return rest.strip_suffix(" ... FAILED");
    }
    let (word, rest) = line.split_once(" [")?;
    let is_failure = ["FAIL", "TIMEOUT", "ABORT"].contains(&word) || word.starts_with("SIG");
    // `FAIL [   1.8s] (49/49) package::binary name`; the count is not always there.
    let (_, rest) = rest.split_once("] ").filter(|_| is_failure)?;
    let rest = rest.trim_start();
    Some(match rest.split_once(") ") {
        Some((count, name)) if count.starts_with('(') => name,
        _ => rest,
    })
}

/// Threads that compute nothing, one per core, until this is dropped. They end with the process
/// too, however it ends.
struct Spinners {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Spinners {
    fn start() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                let mut number = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    number = black_box(number.wrapping_add(1));
                }
            })
        };
        let threads = (0..cores).map(spin).collect();
        Self { stop, threads }
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that only counts cannot have panicked.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_read_from_both_runners() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(failed_test(line), expected, "{line}");
        };
        check("        FAIL [   1.839s] (49/49) a::bin/a b::c", Some("a::bin/a b::c"));
        check("  TIMEOUT [ 600.001s] a::it b", Some("a::it b"));
        check(" SIGABRT [   0.1s] ( 3/49) a b", Some("a b"));
        check("test a::b ... FAILED", Some("a::b"));
        for line in ["PASS [   0.1s] a b", "test a::b ... ok", "test result: FAILED. 0 passed", ""]
        {
            check(line, None);
        }
    }

    #[test]
    fn a_round_names_its_failures() {
        let suite = |script: &str| Invocation::new(["sh", "-c", script]);
        let root = Path::new(".");
        let script = "echo 'test a ... FAILED'; echo 'FAIL [ 1s] b' >&2; exit 1";
        let (failed, ended_well) = run_round(root, &suite(script)).unwrap();
        assert_eq!(failed.into_iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(!ended_well);
        assert_eq!(run_round(root, &suite("true")), Ok((BTreeSet::new(), true)));
    }

    #[test]
    fn spinners_stop() {
        let spinners = Spinners::start();
        assert!(!spinners.threads.is_empty());
        drop(spinners);
    }
}
