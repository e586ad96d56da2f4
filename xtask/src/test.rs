//! `cargo xtask test`: everything a change must pass.

use std::path::Path;

use crate::step::{Invocation, Step, run_all};
use crate::tidy;
use crate::{foreign, install, schemathesis};

/// How to run the tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Only this package; all of the workspace without.
    pub(crate) package: Option<String>,
    /// Use cargo-nextest when it is installed.
    pub(crate) nextest: bool,
}

/// Runs all steps up to the first that fails.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), String> {
    let nextest = options.nextest && nextest_is_installed(root);
    let mut steps = vec![Step::new("tidy", "cargo xtask tidy", || tidy::run(root))];
    steps.push(Step::new("install", "cargo xtask install", || {
        install::ensure(install::NEEDED, false)
    }));
    for (name, invocation) in cargo_steps(root, options.package.as_deref(), nextest) {
        steps.push(Step::command(name, root, invocation));
    }
    if options.package.is_none() {
        let examples = schemathesis::EXAMPLES_DEFAULT;
        steps.push(Step::new("schemathesis", "cargo xtask schemathesis", move || {
            schemathesis::run(root, examples)
        }));
        steps.push(Step::new("foreign", "cargo xtask foreign", || foreign::run(root)));
    }
    run_all("test", &steps)
}

fn nextest_is_installed(root: &Path) -> bool {
    let version = Invocation::new(["cargo", "nextest", "--version"]);
    version.command(root).output().is_ok_and(|output| output.status.success())
}

fn cargo_steps(
    root: &Path,
    package: Option<&str>,
    nextest: bool,
) -> Vec<(&'static str, Invocation)> {
    let scope = package.map_or(vec!["--workspace"], |name| vec!["--package", name]);
    let cargo = |words: &[&str], after: &[&str]| {
        let words = ["cargo"].iter().chain(words).chain(&scope).chain(&["--locked"]).chain(after);
        Invocation::new(words.copied())
    };
    let fmt = match package {
        None => Invocation::new(["cargo", "fmt", "--all", "--check"]),
        Some(name) => Invocation::new(["cargo", "fmt", "--package", name, "--check"]),
    };
    let tests = if nextest {
        // A single package may have no tests yet.
        cargo(&["nextest", "run"], package.map_or(&[], |_| &["--no-tests=pass"]))
    } else {
        // The same targets as nextest takes: the doc tests are a step of their own.
        cargo(&["test", "--no-fail-fast", "--tests", "--examples"], &[])
    };
    let docs = cargo(&["doc", "--no-deps"], &[]).with_env("RUSTDOCFLAGS", "-D warnings");

    let mut steps = vec![
        ("fmt", fmt),
        ("clippy", cargo(&["clippy", "--all-targets"], &["--", "-D", "warnings"])),
        ("test", tests),
    ];
    // Cargo refuses to look for doc tests in a package without a library.
    if package.is_none_or(|name| has_library(root, name)) {
        steps.push(("doctest", cargo(&["test", "--doc"], &[])));
    }
    steps.push(("doc", docs));
    steps
}

fn has_library(root: &Path, package: &str) -> bool {
    root.join("crates").join(package).join("src/lib.rs").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(package: Option<&str>, nextest: bool) -> Vec<String> {
        let steps = cargo_steps(Path::new("."), package, nextest);
        steps.iter().map(|(name, invocation)| format!("{name}: {invocation}")).collect()
    }

    #[test]
    fn the_workspace_is_tested_in_order() {
        assert_eq!(
            shown(None, true),
            [
                "fmt: cargo fmt --all --check",
                "clippy: cargo clippy --all-targets --workspace --locked -- -D warnings",
                "test: cargo nextest run --workspace --locked",
                "doctest: cargo test --doc --workspace --locked",
                "doc: RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --workspace --locked",
            ]
        );
    }

    #[test]
    fn without_nextest_cargo_runs_the_same_targets() {
        assert_eq!(
            shown(None, false)[2],
            "test: cargo test --no-fail-fast --tests --examples --workspace --locked"
        );
    }

    #[test]
    fn one_package_without_a_library_has_no_doc_tests() {
        let steps = shown(Some("xtask"), true);
        assert_eq!(steps[0], "fmt: cargo fmt --package xtask --check");
        assert!(steps.iter().all(|step| !step.starts_with("doctest")), "{steps:?}");
    }
}
