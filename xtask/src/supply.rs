//! `cargo xtask supply`: holds `deny.toml` to what the lock file names: where packages come from,
//! which of them are there twice, and their licences. That needs nothing installed. If cargo-deny
//! is there and reaches the database, advisories are checked, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::step::Invocation;

/// Every package of every platform with its licence, a line each.
const TREE: &str = "cargo tree --locked --workspace --all-features --target all \
                    --edges normal,build,dev --prefix none --format {p}|{l}";

/// The lists of `deny.toml`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rules {
    licences: BTreeSet<String>,
    registries: BTreeSet<String>,
    /// `name@version` of the older of two versions.
    skipped: BTreeSet<String>,
}

/// A package of the lock file.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    name: String,
    version: String,
    /// Absent for members of the workspace.
    source: Option<String>,
    has_checksum: bool,
}

/// Checks, and prints what is wrong.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let read = |name: &str| {
        fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"))
    };
    let rules = Rules::parse(&read("deny.toml")?);
    let packages = packages(&read("Cargo.lock")?);
    let tree = Invocation::new(TREE.split_whitespace());
    let output = tree.command(root).output().map_err(|error| format!("`{tree}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{tree}`: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let tree = String::from_utf8_lossy(&output.stdout);
    let mut findings = sources(&rules, &packages);
    findings.extend(duplicates(&rules, &packages));
    findings.extend(licences(&rules, &tree));
    for finding in &findings {
        println!("{finding}");
    }
    println!("supply: {} packages, {} errors", packages.len(), findings.len());
    check_advisories(root)?;
    if findings.is_empty() { Ok(()) } else { Err(format!("{} errors", findings.len())) }
}

/// Checks advisories, or says why it cannot.
fn check_advisories(root: &Path) -> Result<(), String> {
    let deny = Invocation::new(["cargo", "deny", "check", "advisories"]);
    let output = deny.command(root).output().map_err(|error| format!("`{deny}`: {error}"))?;
    if output.status.success() {
        println!("supply: no advisory concerns a package");
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    match why_unchecked(&text) {
        Some(reason) => {
            println!("supply: advisories are not checked: {reason}");
            Ok(())
        }
        None => Err(format!("`{deny}`:\n{text}")),
    }
}

fn why_unchecked(text: &str) -> Option<&'static str> {
    if text.contains("no such command") {
        return Some("`cargo install cargo-deny` installs what knows them");
    }
    text.contains("fetch advisory database").then_some("their database cannot be reached")
}

impl Rules {
    fn parse(text: &str) -> Rules {
        let crates = list(text, "skip").into_iter().filter(|text| text.contains('@'));
        Rules {
            licences: list(text, "allow").into_iter().collect(),
            registries: list(text, "allow-registry").into_iter().collect(),
            skipped: crates.collect(),
        }
    }
}

/// The quoted texts of a list, from `key = [` to the `]`.
fn list(text: &str, key: &str) -> Vec<String> {
    let begin = format!("\n{key} = [");
    let Some((_, rest)) = text.split_once(&begin) else { return Vec::new() };
    let end = rest.find("\n]").into_iter().chain(rest.find("]\n")).min().unwrap_or(rest.len());
    let quoted = rest[..end].split('"').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

fn packages(lock: &str) -> Vec<Package> {
    let package = |block: &str| {
        let value = |key: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")))?;
            Some(line.trim_matches('"').to_owned())
        };
        Package {
            name: value("name").unwrap_or_default(),
            version: value("version").unwrap_or_default(),
            source: value("source"),
            has_checksum: value("checksum").is_some(),
        }
    };
    lock.split("[[package]]").skip(1).map(package).collect()
}

fn sources(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let is_known = |source: &String| {
        source.strip_prefix("registry+").is_some_and(|url| rules.registries.contains(url))
    };
    let mut findings = Vec::new();
    for Package { name, version, source, has_checksum } in packages {
        match source {
            Some(source) if !is_known(source) => {
                findings.push(format!("{name} {version} comes from {source}: not allowed"));
            }
            Some(_) if !has_checksum => findings.push(format!("{name} {version}: no checksum")),
            _ => {}
        }
    }
    findings
}

/// Of a package that is there twice, all but the newest must be listed, with the reason.
fn duplicates(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    let mut older = BTreeSet::new();
    for (name, mut versions) in versions {
        versions.sort_by_key(|version| numbers(version));
        versions.pop();
        older.extend(versions.into_iter().map(|version| format!("{name}@{version}")));
    }
    let unlisted = older.difference(&rules.skipped);
    let stale = rules.skipped.difference(&older);
    let unlisted = unlisted
        .map(|name| format!("{name} is there beside a newer one: update, or list it in deny.toml"));
    unlisted.chain(stale.map(|name| format!("{name} is listed in deny.toml in vain"))).collect()
}

fn numbers(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map(|number| number.parse().unwrap_or(0)).collect()
}

fn licences(rules: &Rules, tree: &str) -> Vec<String> {
    let mut findings = BTreeSet::new();
    for line in tree.lines() {
        let Some((package, licence)) = line.split_once('|') else { continue };
        // It marks a package whose dependencies were printed before.
        let licence = licence.trim_end_matches(" (*)");
        if !is_allowed(licence, &rules.licences) {
            let licence = if licence.is_empty() { "none" } else { licence };
            findings.insert(format!("{package}: its licence is {licence}, not one of deny.toml"));
        }
    }
    findings.into_iter().collect()
}

/// Whether an expression of SPDX is satisfied by allowed licences alone. `AND` binds more tightly
/// than `OR`; `/` is an old way to write `OR`.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let text = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words: Vec<&str> = text.split_whitespace().collect();
    words.reverse();
    any_of(&mut words, allowed) && words.is_empty()
}

fn any_of(words: &mut Vec<&str>, allowed: &BTreeSet<String>) -> bool {
    let mut is_allowed = all_of(words, allowed);
    while words.last() == Some(&"OR") {
        words.pop();
        is_allowed |= all_of(words, allowed);
    }
    is_allowed
}

fn all_of(words: &mut Vec<&str>, allowed: &BTreeSet<String>) -> bool {
    let mut is_allowed = one(words, allowed);
    while words.last() == Some(&"AND") {
        words.pop();
        is_allowed &= one(words, allowed);
    }
    is_allowed
}

fn one(words: &mut Vec<&str>, allowed: &BTreeSet<String>) -> bool {
    let Some(word) = words.pop() else { return false };
    if word == "(" {
        let is_allowed = any_of(words, allowed);
        return words.pop() == Some(")") && is_allowed;
    }
    if words.last() == Some(&"WITH") {
        words.pop();
        let exception = words.pop().unwrap_or_default();
        return allowed.contains(&format!("{word} WITH {exception}"));
    }
    allowed.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENY: &str = "[licenses]\nallow = [\n    \"MIT\",\n    \"ISC\",\n]\n\n\
        [bans]\nskip = [\n    { crate = \"a@1.0.0\", reason = \"b, c\" },\n]\n\n\
        [sources]\nallow-registry = [\"https://x\"]\n";

    fn rules() -> Rules {
        Rules::parse(DENY)
    }

    fn package(name: &str, version: &str, source: Option<&str>, has_checksum: bool) -> Package {
        let (name, version) = (name.to_owned(), version.to_owned());
        Package { name, version, source: source.map(str::to_owned), has_checksum }
    }

    #[test]
    fn the_lists_are_read() {
        let set = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let expected = Rules {
            licences: set(&["MIT", "ISC"]),
            registries: set(&["https://x"]),
            skipped: set(&["a@1.0.0"]),
        };
        assert_eq!(rules(), expected);
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\
                    source = \"registry+https://x\"\nchecksum = \"00\"\n\n\
                    [[package]]\nname = \"b\"\nversion = \"2.0.0\"\n";
        let expected = [
            package("a", "1.0.0", Some("registry+https://x"), true),
            package("b", "2.0.0", None, false),
        ];
        assert_eq!(packages(lock), expected);
    }

    #[test]
    fn licences_are_expressions() {
        let check = |expression: &str, expected: bool| {
            assert_eq!(is_allowed(expression, &rules().licences), expected, "{expression}");
        };
        check("MIT", true);
        check("GPL-3.0", false);
        check("", false);
        check("GPL-3.0 OR MIT", true);
        check("GPL-3.0/MIT", true);
        check("MIT AND ISC", true);
        check("MIT AND GPL-3.0", false);
        check("GPL-3.0 AND MIT OR ISC", true);
        check("(MIT OR GPL-3.0) AND ISC", true);
        check("(MIT OR ISC) AND GPL-3.0", false);
        check("(MIT", false);
        check("MIT WITH LLVM-exception", false);
        check("MIT WITH LLVM-exception OR ISC", true);
        let tree = "a v1.0.0|MIT (*)\n\nb v1.0.0|GPL-3.0\nb v1.0.0|GPL-3.0 (*)\n";
        assert_eq!(licences(&rules(), tree).len(), 1);
    }

    #[test]
    fn foreign_sources_and_second_versions_are_found() {
        let check = |packages: &[Package], parts: &[&str]| {
            let mut findings = sources(&rules(), packages);
            findings.extend(duplicates(&rules(), packages));
            assert_eq!(findings.len(), parts.len(), "{findings:?}");
            assert!(findings.iter().zip(parts).all(|(text, part)| text.contains(part)));
        };
        let good = Some("registry+https://x");
        let with = |more: Vec<Package>| {
            let two = [package("a", "1.0.0", good, true), package("a", "1.10.0", good, true)];
            two.into_iter().chain(more).collect::<Vec<_>>()
        };
        check(&with(Vec::new()), &[]);
        check(&[package("a", "1.0.0", good, true)], &["in vain"]);
        let third = vec![package("a", "1.9.0", good, true)];
        check(&with(third), &["a@1.9.0 is there beside a newer one"]);
        let foreign = vec![package("g", "1.0.0", Some("git+https://x"), true)];
        check(&with(foreign), &["comes from git+https://x"]);
        check(&with(vec![package("p", "1.0.0", good, false)]), &["no checksum"]);
    }

    #[test]
    fn what_cannot_be_checked_is_no_error() {
        assert!(why_unchecked("error: no such command: `deny`").is_some());
        assert!(why_unchecked("[ERROR] failed to fetch advisory database https://x").is_some());
        assert!(why_unchecked("error[vulnerability]: a buffer overflow").is_none());
    }
}
