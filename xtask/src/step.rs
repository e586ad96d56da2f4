//! A named step, how long it took, and the command that repeats it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A command with the environment it needs, so that it can be shown as well as run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invocation {
    environment: Vec<(String, String)>,
    words: Vec<String>,
}

impl Invocation {
    /// The words of a command, the program first.
    pub(crate) fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let words = words.into_iter().map(str::to_owned).collect();
        Self { environment: Vec::new(), words }
    }

    pub(crate) fn with_env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn with_words<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.words.extend(words.into_iter().map(str::to_owned));
        self
    }

    pub(crate) fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// The process to start. It gets no stdin: no step may wait for input.
    pub(crate) fn command(&self, directory: &Path) -> Command {
        let mut command = Command::new(self.program());
        command.args(self.words.iter().skip(1)).current_dir(directory).stdin(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs to the end and shows the output.
    pub(crate) fn run(&self, directory: &Path) -> Result<(), String> {
        match self.command(directory).status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(status.to_string()),
            Err(error) => Err(format!("`{}` cannot be started: {error}", self.program())),
        }
    }
}

impl fmt::Display for Invocation {
    /// As it would be typed into a shell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{name}={} ", quoted(value))?;
        }
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        f.write_str(&words.join(" "))
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Where cargo builds. The path is absolute if `root` is.
pub(crate) fn target_dir(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root.join(target)
}

/// The tests of the binary that also need the original beanstalkd, built with the same packages and
/// features as the test step: cargo then builds nothing a second time. Cargo builds the binary too,
/// because integration tests may start it.
pub(crate) const BINARY_TESTS: &str =
    "cargo test --locked --workspace --all-features --test beanstalk_fuzz";

/// Builds the binary `dormouse` and returns its path.
pub(crate) fn build_binary(root: &Path) -> Result<PathBuf, String> {
    let build = Invocation::new(BINARY_TESTS.split_whitespace()).with_words(["--no-run"]);
    build.run(root).map_err(|reason| format!("`{build}` failed ({reason})"))?;
    Ok(target_dir(root).join("debug/dormouse"))
}

/// Whether this process runs as root.
pub(crate) fn is_root() -> bool {
    let user = Invocation::new(["id", "-u"]).command(Path::new(".")).output();
    user.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// One step of a list that stops at the first failure.
pub(crate) struct Step<'a> {
    name: &'static str,
    /// The command that repeats the failure.
    repeat: String,
    action: Box<dyn Fn() -> Result<(), String> + 'a>,
}

impl<'a> Step<'a> {
    pub(crate) fn new(
        name: &'static str,
        repeat: &str,
        action: impl Fn() -> Result<(), String> + 'a,
    ) -> Self {
        Self { name, repeat: repeat.to_owned(), action: Box::new(action) }
    }

    /// A step that is one command.
    pub(crate) fn command(name: &'static str, directory: &'a Path, invocation: Invocation) -> Self {
        Self::new(name, &invocation.to_string(), move || invocation.run(directory))
    }
}

/// Runs the steps in order and prints each with its duration.
///
/// The error names the failed step and the command to repeat it.
pub(crate) fn run_all(title: &str, steps: &[Step<'_>]) -> Result<(), String> {
    let start = Instant::now();
    for (index, step) in steps.iter().enumerate() {
        println!("==> [{}/{}] {}: {}", index + 1, steps.len(), step.name, step.repeat);
        let step_start = Instant::now();
        let result = (step.action)();
        let took = seconds(step_start.elapsed());
        if let Err(reason) = result {
            println!("<== {} failed after {took}", step.name);
            return Err(format!(
                "{title} FAILED at step `{}` ({reason}); repeat it with:\n    {}",
                step.name, step.repeat
            ));
        }
        println!("<== {} passed in {took}", step.name);
    }
    println!("xtask: {title} PASSED, {} steps in {}", steps.len(), seconds(start.elapsed()));
    Ok(())
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn an_invocation_is_shown_as_typed() {
        let doc = Invocation::new(["cargo", "doc"]).with_env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(doc.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc");
        assert_eq!(Invocation::new(["say", "it's", ""]).to_string(), r"say 'it'\''s' ''");
    }

    #[test]
    fn steps_run_in_order_and_stop_at_the_first_failure() {
        let seen = RefCell::new(Vec::new());
        let step = |name: &'static str, outcome: Result<(), &'static str>| {
            let seen = &seen;
            Step::new(name, "cargo repeat", move || {
                seen.borrow_mut().push(name);
                outcome.map_err(str::to_owned)
            })
        };
        let steps =
            [step("one", Ok(())), step("two", Err("exit status: 3")), step("three", Ok(()))];
        let message = run_all("test", &steps).unwrap_err();
        assert_eq!(*seen.borrow(), ["one", "two"]);
        for part in ["step `two`", "exit status: 3", "cargo repeat"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_failing_or_missing_program_is_reported() {
        let directory = Path::new(".");
        assert_eq!(Invocation::new(["true"]).run(directory), Ok(()));
        assert!(Invocation::new(["false"]).run(directory).is_err());
        let missing = Invocation::new(["dormouse-no-such-program"]).run(directory).unwrap_err();
        assert!(missing.contains("dormouse-no-such-program"), "{missing}");
    }
}
