//! What the core must not know, and the tests each operation must have.

use super::Finding;
use super::source::Source;
use super::text::find_word;

const CORE: &str = "crates/dormouse-core/src/";
const CORE_FORBIDDEN: &[&str] = &["time", "thread", "fs", "net", "io"];

/// The core has the rules and no access to the outside world: time is an argument, a fact is a
/// return value. Clippy's `disallowed-methods` keeps clock reads out of the crates above it.
pub(super) fn check_core(source: &Source) -> Vec<Finding> {
    if !source.path.starts_with(CORE) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (line, code) in source.product_code() {
        for module in CORE_FORBIDDEN {
            if !find_word(&code, &format!("std::{module}")).is_empty() {
                let text = format!("`std::{module}`: the core has no clock, no I/O, no threads");
                findings.push(Finding::new(&source.path, line, text));
            }
        }
        if code.contains("std::{") {
            let text = "`std::{…}`: one `use` per module, so that this rule can read it";
            findings.push(Finding::new(&source.path, line, text));
        }
    }
    findings
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

    fn core(text: &str) -> Vec<String> {
        let findings = check_core(&Source::parse("crates/dormouse-core/src/job.rs", text));
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn the_core_knows_no_world() {
        assert_eq!(core("use std::time::Duration;").len(), 1);
        assert_eq!(core("use std::{collections::BTreeMap, fmt, thread};").len(), 1);
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
