//! `cargo xtask test`: everything a change must pass.

use std::path::Path;

use crate::step::{Invocation, Step, run_all};
use crate::tidy;
use crate::{clients, foreign, install, schemathesis, supply};

/// The options of `cargo xtask test`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Only this package; the whole workspace if absent.
    pub(crate) package: Option<String>,
    /// Use cargo-nextest when it is installed.
    pub(crate) nextest: bool,
}

/// One set of features for every step: what one step has built the next one uses.
pub(crate) const ALL: &str = "--all-features";
/// The package with scripts in Lua.
const SCRIPTED: &str = "dormouse-redis";
/// The library, and the sets of features that it is also linted with, besides none and all.
const LIBRARY: &str = "dormouse";
const LIBRARY_FEATURES: &[&str] = &["connect", "json", "worker", "redis"];

/// Runs the steps until one fails.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), String> {
    let nextest = options.nextest && nextest_is_installed(root);
    let mut steps = vec![Step::new("tidy", "cargo xtask tidy", || tidy::run(root))];
    steps.push(Step::new("supply", "cargo xtask supply", || supply::run(root)));
    steps.push(Step::new("install", "cargo xtask install", || {
        install::ensure(install::NEEDED, false)
    }));
    if options.package.as_deref().is_none_or(|name| name == SCRIPTED) {
        steps.push(Step::command("luacheck", root, luacheck()));
    }
    for (name, invocation) in cargo_steps(root, options.package.as_deref(), nextest) {
        steps.push(Step::command(name, root, invocation));
    }
    if options.package.is_none() {
        let examples = schemathesis::EXAMPLES_DEFAULT;
        steps.push(Step::new("schemathesis", "cargo xtask schemathesis", move || {
            schemathesis::run(root, examples)
        }));
        steps.push(Step::new("clients", "cargo xtask clients", || clients::run(root)));
        steps.push(Step::new("foreign", "cargo xtask foreign", || foreign::run(root)));
    }
    run_all("test", &steps)
}

/// Lints the scripts file by file; a test of the package lints them as a whole.
fn luacheck() -> Invocation {
    Invocation::new([
        "luacheck",
        "--quiet",
        "--no-cache",
        "--config",
        "crates/dormouse-redis/lua/.luacheckrc",
        "crates/dormouse-redis/lua",
        "crates/dormouse-redis/src/cluster/check/trial.lua",
    ])
}

/// The command of the test step, over the whole workspace.
pub(crate) fn whole_suite(root: &Path) -> Invocation {
    let steps = cargo_steps(root, None, nextest_is_installed(root));
    let test = steps.into_iter().find(|(name, _)| *name == "test");
    test.map_or_else(|| Invocation::new(["cargo", "test"]), |(_, invocation)| invocation)
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
        let scope = scope.iter().chain(&[ALL, "--locked"]);
        Invocation::new(["cargo"].iter().chain(words).chain(scope).chain(after).copied())
    };
    let fmt = match package {
        None => Invocation::new(["cargo", "fmt", "--all", "--check"]),
        Some(name) => Invocation::new(["cargo", "fmt", "--package", name, "--check"]),
    };
    let tests = if nextest {
        // A single package may have no tests yet.
        cargo(&["nextest", "run"], package.map_or(&[], |_| &["--no-tests=pass"]))
    } else {
        // The same targets as nextest runs: the doc tests are a step of their own.
        cargo(&["test", "--no-fail-fast", "--tests", "--examples"], &[])
    };
    let docs = cargo(&["doc", "--no-deps"], &[]).with_env("RUSTDOCFLAGS", "-D warnings");

    let mut steps = vec![
        ("fmt", fmt),
        ("clippy", cargo(&["clippy", "--all-targets"], &["--", "-D", "warnings"])),
    ];
    if package.is_none_or(|name| name == LIBRARY) {
        steps.extend(library_steps());
    }
    steps.push(("test", tests));
    // `cargo test --doc` is an error for a package without a library.
    if package.is_none_or(|name| has_library(root, name)) {
        steps.push(("doctest", cargo(&["test", "--doc"], &[])));
    }
    steps.push(("doc", docs));
    steps
}

/// The library as users choose it: without any feature, and with each alone. `--package` alone
/// selects, so that no other member of the workspace switches a feature on.
fn library_steps() -> impl Iterator<Item = (&'static str, Invocation)> {
    let sets = [None].into_iter().chain(LIBRARY_FEATURES.iter().copied().map(Some));
    sets.map(|feature| {
        let words = ["cargo", "clippy", "--package", LIBRARY, "--no-default-features"];
        let features = feature.map(|name| ["--features", name]);
        let features = features.as_ref().map_or(&[][..], |words| &words[..]);
        let rest = ["--locked", "--", "-D", "warnings"];
        let words = words.iter().chain(features).chain(&rest).copied();
        (feature.unwrap_or("no features"), Invocation::new(words))
    })
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
                "clippy: cargo clippy --all-targets --workspace --all-features --locked \
                 -- -D warnings",
                "no features: cargo clippy --package dormouse --no-default-features --locked \
                 -- -D warnings",
                "connect: cargo clippy --package dormouse --no-default-features --features connect \
                 --locked -- -D warnings",
                "json: cargo clippy --package dormouse --no-default-features --features json \
                 --locked -- -D warnings",
                "worker: cargo clippy --package dormouse --no-default-features --features worker \
                 --locked -- -D warnings",
                "redis: cargo clippy --package dormouse --no-default-features --features redis \
                 --locked -- -D warnings",
                "test: cargo nextest run --workspace --all-features --locked",
                "doctest: cargo test --doc --workspace --all-features --locked",
                "doc: RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --workspace --all-features \
                 --locked",
            ]
        );
    }

    #[test]
    fn without_nextest_cargo_runs_the_same_targets() {
        assert_eq!(
            shown(None, false)[7],
            "test: cargo test --no-fail-fast --tests --examples --workspace --all-features --locked"
        );
    }

    #[test]
    fn one_package_without_a_library_has_no_doc_tests() {
        let steps = shown(Some("xtask"), true);
        assert_eq!(steps[0], "fmt: cargo fmt --package xtask --check");
        assert!(steps.iter().all(|step| !step.starts_with("doctest")), "{steps:?}");
        assert!(steps.iter().all(|step| !step.contains("no-default")), "{steps:?}");
    }
}
