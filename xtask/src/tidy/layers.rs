//! What each crate must not know.

use super::Finding;
use super::source::Source;
use super::text::{find_word, is_word, line_at};

const CLOCK_READS: &[&str] = &["SystemTime::now", "Instant::now", "clock_gettime"];

/// Where a clock may be read, and why. Everywhere else time is an argument, so that a test can
/// choose it. Tests and benchmarks may always.
const CLOCK_READERS: &[(&str, &str)] = &[
    ("crates/dormouse-disk/src/clock.rs", "the one place the engine takes its time from"),
    (
        "crates/dormouse-redis/src/clock.rs",
        "carries on what Redis' clock showed, measures patience",
    ),
    ("crates/dormouse-redis/src/dispatch/mod.rs", "ends with patience; numbers grow over restarts"),
    ("crates/dormouse-server/src/beanstalk/clock.rs", "waits, and ends of reservations"),
    ("crates/dormouse-server/src/http/clock.rs", "defaults that mean now: of forecasts, of names"),
    ("crates/dormouse-server/src/http/wire.rs", "closes connections that are slow"),
    ("crates/dormouse-server/src/metrics/stopwatch.rs", "measures requests"),
    ("crates/dormouse-server/src/pipeline/input.rs", "closes connections that are slow"),
    ("crates/dormouse/", "a worker renews leases on its own side of the backend"),
    ("crates/dormouse-cli/", "commands wait, measure and renew"),
    ("crates/dormouse-bench/", "measures"),
    ("crates/dormouse-check/", "rigs of real processes wait for real time"),
    ("examples/", "are the user's code"),
    ("xtask/", "tells how long its steps took"),
];

/// Exceptions from the list above.
const NO_CLOCK_READERS: &[(&str, &str)] =
    &[("crates/dormouse-check/src/sim/", "a simulation is the same each time")];

const CORE: &str = "crates/dormouse-core/src/";
const CORE_FORBIDDEN: &[&str] = &["time", "thread", "fs", "net", "io"];

/// Clock reads outside the places that may.
pub(super) fn check_clock_reads(source: &Source) -> Vec<Finding> {
    let starts = |list: &[(&str, &str)]| list.iter().any(|(path, _)| source.path.starts_with(path));
    if starts(CLOCK_READERS) && !starts(NO_CLOCK_READERS) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for name in CLOCK_READS {
        for at in find_word(&source.code, name) {
            let line = line_at(&source.code, at);
            if !source.is_test_line(line) {
                let text = format!("`{name}`: only the clock reads time, take it as an argument");
                findings.push(Finding::new(&source.path, line, text));
            }
        }
    }
    findings
}

/// The core has the rules and nothing of the world: not even a way to ask for it.
pub(super) fn check_core(source: &Source) -> Vec<Finding> {
    if !source.path.starts_with(CORE) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for at in find_word(&source.code, "std::") {
        let line = line_at(&source.code, at);
        if source.is_test_line(line) {
            continue;
        }
        for module in modules_used(&source.code[at + "std::".len()..]) {
            if CORE_FORBIDDEN.contains(&module.as_str()) {
                let text = format!("`std::{module}`: the core has no clock, no I/O, no threads");
                findings.push(Finding::new(&source.path, line, text));
            }
        }
    }
    findings
}

/// The first names after `std::`, one or a list in braces.
fn modules_used(rest: &str) -> Vec<String> {
    let name = |text: &str| text.trim_start().chars().take_while(|&c| is_word(c)).collect();
    let Some(list) = rest.trim_start().strip_prefix('{') else {
        return vec![name(rest)];
    };
    let mut names = vec![name(list)];
    let mut depth = 1_usize;
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => names.push(name(&list[at + 1..])),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// Every operation has a conformance file of its name, once there is a conformance suite.
pub(super) fn check_conformance(paths: &[String]) -> Vec<Finding> {
    const OPERATIONS: &str = "crates/dormouse-core/src/op/";
    const CONFORMANCE: &str = "crates/dormouse-check/src/conformance/";
    let tested = module_names(paths, CONFORMANCE);
    if !paths.iter().any(|path| path.starts_with(CONFORMANCE)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for name in module_names(paths, OPERATIONS) {
        if !tested.contains(&name) {
            let text = format!("has no conformance test: {CONFORMANCE}{name}.rs is missing");
            findings.push(Finding::new(&format!("{OPERATIONS}{name}.rs"), 0, text));
        }
    }
    findings
}

/// The modules directly below a directory, as `name.rs` or `name/`.
fn module_names<'a>(paths: &'a [String], directory: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for path in paths {
        let Some(below) = path.strip_prefix(directory) else { continue };
        let first = below.split('/').next().unwrap_or_default();
        let name = first.strip_suffix(".rs").unwrap_or(first);
        if !["mod", "tests"].contains(&name) && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(path: &str, text: &str) -> usize {
        check_clock_reads(&Source::parse(path, text)).len()
    }

    fn core(text: &str) -> Vec<String> {
        let findings = check_core(&Source::parse("crates/dormouse-core/src/job.rs", text));
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn clocks_are_read_in_few_places() {
        let read = "let now = Instant::now();";
        assert_eq!(clock("crates/dormouse-disk/src/engine.rs", read), 1);
        assert_eq!(clock("crates/dormouse-server/src/http/mod.rs", "SystemTime::now()"), 1);
        assert_eq!(clock("crates/dormouse-check/src/sim/disk.rs", read), 1);
        assert_eq!(clock("crates/dormouse-check/src/rig.rs", read), 0);
        assert_eq!(clock("crates/dormouse-disk/src/clock.rs", "clock_gettime(id)"), 0);
        assert_eq!(clock("crates/dormouse/src/worker.rs", read), 0);
    }

    #[test]
    fn tests_may_read_the_clock() {
        let tests = "#[cfg(test)]\nmod tests {\n    fn f() { Instant::now(); }\n}\n";
        assert_eq!(clock("crates/dormouse-disk/src/engine.rs", tests), 0);
        assert_eq!(clock("crates/dormouse-disk/tests/all.rs", "Instant::now()"), 0);
        assert_eq!(clock("crates/dormouse-disk/src/engine.rs", "// not Instant::now()"), 0);
    }

    #[test]
    fn the_core_knows_no_world() {
        assert_eq!(core("use std::time::Duration;").len(), 1);
        assert_eq!(core("use std::{collections::{BTreeMap, io}, fmt, thread};").len(), 1);
        assert_eq!(core("fn f() { ::std::fs::read(p) }").len(), 1);
        assert!(core("use std::collections::BTreeMap;\nuse crate::time::Now;").is_empty());
        assert!(core("#[cfg(test)]\nmod tests {\n    use std::time::Duration;\n}").is_empty());
        let elsewhere = Source::parse("crates/dormouse-disk/src/disk.rs", "use std::io;");
        assert!(check_core(&elsewhere).is_empty());
    }

    #[test]
    fn every_operation_has_its_conformance_file() {
        let op = |name: &str| format!("crates/dormouse-core/src/op/{name}");
        let conformance = |name: &str| format!("crates/dormouse-check/src/conformance/{name}");
        let mut paths = vec![op("mod.rs"), op("put.rs"), op("ack.rs")];
        assert!(check_conformance(&paths).is_empty(), "no suite yet");
        paths.extend([conformance("mod.rs"), conformance("put/mod.rs")]);
        let findings = check_conformance(&paths);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().contains("conformance/ack.rs is missing"));
        paths.push(conformance("ack.rs"));
        assert!(check_conformance(&paths).is_empty());
    }
}
