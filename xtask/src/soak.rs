//! `cargo xtask soak`: the long campaigns.
//!
//! A campaign is a test of dormouse-check, or of dormouse if it needs the binary, that is
//! `#[ignore]`d and has `soak` in its name. It reads from the environment variable
//! `DORMOUSE_SOAK_SECONDS` how long to go on, and prints the seed of a failure, which
//! `DORMOUSE_SEED` repeats.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::foreign;
use crate::step::Invocation;

/// How long each campaign goes on unless told otherwise.
pub(crate) const MINUTES_DEFAULT: u64 = 10;
/// A week.
pub(crate) const MINUTES_MAX: u64 = 7 * 24 * 60;

const LOOK_EVERY: Duration = Duration::from_millis(200);
const REPORT_EVERY: Duration = Duration::from_secs(30);

/// Runs every campaign for so many minutes, side by side as far as there are processors.
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
    let words = "cargo test --release --locked --package dormouse-check --package dormouse --tests \
                 --no-fail-fast -- --ignored --nocapture soak";
    Invocation::new(words.split_whitespace())
        .with_env("DORMOUSE_SOAK_SECONDS", (minutes * 60).to_string())
}

/// The campaign that needs the original beanstalkd gets it, or is left out: not every system has
/// it.
fn complete(root: &Path, command: Invocation) -> Invocation {
    foreign::with_original(root, command.clone()).unwrap_or_else(|reason| {
        println!("soak: without {}: {reason}", foreign::FUZZ);
        command.with_words(["--skip", foreign::FUZZ])
    })
}

/// Builds, and gives the names of the campaigns.
fn list(root: &Path) -> Result<Vec<String>, String> {
    let words = "cargo test --release --locked --package dormouse-check --package dormouse --tests \
                 -- --ignored --list soak";
    let invocation = Invocation::new(words.split_whitespace());
    let mut command = invocation.command(root);
    // Only the list is taken: what the compiler says stays visible.
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

/// Runs to the end and says from time to time how long it has been going on.
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
        thread::sleep(LOOK_EVERY);
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

fn minutes_and_seconds(duration: Duration) -> String {
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
