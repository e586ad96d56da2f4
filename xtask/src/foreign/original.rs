//! The tests that need the original beanstalkd.

use std::path::Path;

use super::{fetch, target_dir};
use crate::step::{BINARY_TESTS, Invocation};

/// The campaign among them.
pub(crate) const FUZZ: &str = "soak_beanstalk_fuzz";
/// Where they look for its program.
const PROGRAM: &str = "DORMOUSE_BEANSTALKD";
/// How long the campaign goes on, unless the environment says so.
const SOAK_SECONDS: (&str, &str) = ("DORMOUSE_SOAK_SECONDS", "20");

/// Runs them.
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

/// The same command, which knows where the original is; it is fetched if need be.
pub(crate) fn with_original(root: &Path, command: Invocation) -> Result<Invocation, String> {
    let program = fetch::beanstalkd(&target_dir(root).join("foreign"))?;
    Ok(command.with_env(PROGRAM, program.display().to_string()))
}
