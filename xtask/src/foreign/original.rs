//! The tests that need the original beanstalkd.

use std::path::Path;

use super::{fetch, target_dir};
use crate::step::{BINARY_TESTS, Invocation};

/// The long campaign among them.
pub(crate) const FUZZ: &str = "soak_beanstalk_fuzz";
/// The environment variable with the path of its program.
const PROGRAM: &str = "DORMOUSE_BEANSTALKD";
/// The length of the campaign, unless the environment has one.
const SOAK_SECONDS: (&str, &str) = ("DORMOUSE_SOAK_SECONDS", "20");

/// Runs these tests.
pub(super) fn compare(root: &Path) -> Result<(), String> {
    let tests = Invocation::new(BINARY_TESTS.split_whitespace());
    let tests = tests.with_words(["--", "--ignored", "--nocapture"]);
    let mut tests = with_original(root, tests)?;
    if std::env::var_os(SOAK_SECONDS.0).is_none() {
        tests = tests.with_env(SOAK_SECONDS.0, SOAK_SECONDS.1);
    }
    println!("foreign: {tests}");
    tests.run(root).map_err(|reason| format!("`{tests}` failed ({reason})"))
}

/// The same command with the path of the original, which is fetched unless it is there.
pub(crate) fn with_original(root: &Path, command: Invocation) -> Result<Invocation, String> {
    let program = fetch::beanstalkd(&target_dir(root).join("foreign"))?;
    Ok(command.with_env(PROGRAM, program.display().to_string()))
}
