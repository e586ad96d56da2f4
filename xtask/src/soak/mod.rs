//! `cargo xtask soak`: the long campaigns; with `--busy` the usual tests on a busy computer.
//!
//! A campaign is a test of dormouse-check, or of dormouse-cli if it needs the binary, that is
//! `#[ignore]`d and has `soak` in its name. It reads from the environment variable
//! `DORMOUSE_SOAK_SECONDS` how long to go on, and prints the seed of a failure, which
//! `DORMOUSE_SEED` repeats.

mod busy;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::foreign;
use crate::step::Invocation;
pub(crate) use busy::{ROUNDS_DEFAULT, ROUNDS_MAX, run as run_busy};

/// The default length of each campaign.
pub(crate) const MINUTES_DEFAULT: u64 = 10;
/// A week.
pub(crate) const MINUTES_MAX: u64 = 7 * 24 * 60;

const CAMPAIGNS: &str = "cargo test --release --locked --package dormouse-check \
                         --package dormouse-cli --tests";

const POLL_EVERY: Duration = Duration::from_millis(200);
const REPORT_EVERY: Duration = Duration::from_secs(30);

/// Runs every campaign for this number of minutes, as many at a time as there are cores.
pub(crate) fn run(root: &Path, minutes: u64) -> Result<(), String> {
    println!("soak: building the campaigns");
    let campaigns = list(root)?;
    if campaigns.is_empty() {
        return Err("soak: there is no ignored test with `soak` in its name".to_owned());
    }
    println!("soak: {} campaigns of {minutes} min each:", campaigns.len());
    for name in &campaigns {
        println!("    {name}");
    }
    let invocation = complete(root, campaign_command(minutes));
    println!("soak: {invocation}");
    watch(root, &invocation)
}

fn campaign_command(minutes: u64) -> Invocation {
    Invocation::new(CAMPAIGNS.split_whitespace())
        .with_words(["--no-fail-fast", "--", "--ignored", "--nocapture", "soak"])
        .with_env("DORMOUSE_SOAK_SECONDS", (minutes * 60).to_string())
}

/// Fetches the original beanstalkd for the campaign that needs it, or leaves that campaign out: not
/// every system has it.
fn complete(root: &Path, command: Invocation) -> Invocation {
    foreign::with_original(root, command.clone()).unwrap_or_else(|reason| {
        println!("soak: without {}: {reason}", foreign::FUZZ);
        command.with_words(["--skip", foreign::FUZZ])
    })
}

/// Builds the campaigns and returns their names.
fn list(root: &Path) -> Result<Vec<String>, String> {
    let invocation = Invocation::new(CAMPAIGNS.split_whitespace());
    let invocation = invocation.with_words(["--", "--ignored", "--list", "soak"]);
    let mut command = invocation.command(root);
    // The list goes to stdout; the compiler's messages stay visible.
    command.stderr(std::process::Stdio::inherit());
    let output = command.output().map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("soak: the campaigns do not build; repeat it with:\n    {invocation}"));
    }
    Ok(parse_list(&String::from_utf8_lossy(&output.stdout)))
}

fn parse_list(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// Runs to the end and prints the elapsed time every 30 seconds.
fn watch(root: &Path, invocation: &Invocation) -> Result<(), String> {
    let start = Instant::now();
    let mut reported = Duration::ZERO;
    let mut child = invocation
        .command(root)
        .spawn()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    let status = loop {
        let status = child.try_wait().map_err(|error| format!("soak: {error}"))?;
        if let Some(status) = status {
            break status;
        }
        thread::sleep(POLL_EVERY);
        if start.elapsed() - reported >= REPORT_EVERY {
            reported = start.elapsed();
            println!("soak: running for {}", minutes_and_seconds(reported));
        }
    };
    let took = minutes_and_seconds(start.elapsed());
    if status.success() {
        println!("xtask: soak PASSED in {took}");
        Ok(())
    } else {
        Err(format!("soak FAILED after {took} ({status}); repeat it with:\n    {invocation}"))
    }
}

pub(super) fn minutes_and_seconds(duration: Duration) -> String {
    let seconds = duration.as_secs();
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_carries_the_seconds() {
        let shown = campaign_command(3).to_string();
        assert!(shown.starts_with("DORMOUSE_SOAK_SECONDS=180 cargo test --release"), "{shown}");
        assert!(shown.ends_with("-- --ignored --nocapture soak"), "{shown}");
    }

    #[test]
    fn campaigns_are_found_in_the_list_of_tests() {
        let text = "sim::soak_crashes: test\nsoak_model: test\n\n2 tests, 0 benchmarks\n";
        assert_eq!(parse_list(text), ["sim::soak_crashes", "soak_model"]);
    }

    #[test]
    fn time_is_shown_in_minutes() {
        assert_eq!(minutes_and_seconds(Duration::from_secs(605)), "10 min 05 s");
    }
}
