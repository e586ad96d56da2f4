//! Top-level modules of a crate use each other in one direction.
//!
//! An edge is a path in product code that starts with `crate::`, or with enough `super::` to reach
//! the root of the crate. A name that the root re-exports leads to the module it comes from. What
//! the root itself defines belongs to no module.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Finding;
use super::source::Source;
use super::text::{find_word, is_word, line_at};

/// Crates whose modules may form no circle.
const CRATES: &[&str] = &["dormouse-client", "dormouse-disk", "dormouse-redis", "dormouse-server"];

/// One use of a module by another: the file and the line.
type Edges<'a> = BTreeMap<&'a str, BTreeMap<&'a str, (&'a str, usize)>>;

/// Circles among the modules of the crates.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    CRATES.iter().filter_map(|name| check_crate(name, sources)).collect()
}

fn check_crate(name: &str, sources: &[Source]) -> Option<Finding> {
    let prefix = format!("crates/{name}/src/");
    let files: Vec<File<'_>> =
        sources.iter().filter_map(|source| File::new(source, &prefix)).collect();
    let modules: BTreeSet<&str> = files.iter().filter_map(|file| file.module).collect();
    let root_names = root_names(&files, &modules);
    let mut edges = Edges::new();
    for file in &files {
        let Some(from) = file.module else { continue };
        for (at, used) in file.root_paths() {
            let to = modules.get(used.as_str()).or_else(|| root_names.get(used.as_str()));
            if let Some(&to) = to.filter(|&&to| to != from) {
                let place = (file.path, file.line_at(at));
                edges.entry(from).or_default().entry(to).or_insert(place);
            }
        }
    }
    let circle = modules.iter().find_map(|start| shortest_circle(start, &edges))?;
    let steps = circle.iter().zip(circle.iter().cycle().skip(1));
    let shown = steps.map(|(from, to)| {
        let (path, line) = edges[from][to];
        format!("{from} uses {to} at {path}:{line}")
    });
    let text = format!("modules form a circle: {}", shown.collect::<Vec<_>>().join("; "));
    Some(Finding::new(&format!("crates/{name}"), 0, text))
}

/// A file of a crate.
struct File<'a> {
    path: &'a str,
    /// The top-level module it belongs to; none for the root.
    module: Option<&'a str>,
    /// How many modules lie between the root and the file's content.
    depth: usize,
    /// Product code, a line of it per line, and the numbers of those lines.
    code: String,
    lines: Vec<usize>,
}

impl<'a> File<'a> {
    fn new(source: &'a Source, prefix: &str) -> Option<Self> {
        let below = source.path.strip_prefix(prefix)?;
        if source.is_test_file() || below.starts_with("bin/") {
            return None;
        }
        let names: Vec<&str> =
            below.trim_end_matches(".rs").split('/').filter(|name| *name != "mod").collect();
        let is_root = ["lib", "main"].contains(&names[0]);
        let (lines, code): (Vec<usize>, Vec<String>) = source.product_code().unzip();
        Some(File {
            path: &source.path,
            module: (!is_root).then_some(names[0]),
            depth: names.len(),
            code: code.join("\n"),
            lines,
        })
    }

    fn line_at(&self, at: usize) -> usize {
        self.lines[line_at(&self.code, at) - 1]
    }

    /// The first names below the root of every path that starts there, with their positions.
    fn root_paths(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let to_root = "super::".repeat(self.depth);
        for start in ["crate::", &to_root] {
            for at in find_word(&self.code, start) {
                // Within a longer row of `super` it would lead above the root.
                let rest = &self.code[at + start.len()..];
                found.extend(first_names(rest).into_iter().map(|name| (at, name)));
            }
        }
        found
    }
}

/// The first name of a path, or of each path of a list in braces.
fn first_names(rest: &str) -> Vec<String> {
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

/// What the root re-exports, and from which module.
fn root_names<'a>(
    files: &'a [File<'_>],
    modules: &BTreeSet<&'a str>,
) -> BTreeMap<&'a str, &'a str> {
    let mut names = BTreeMap::new();
    for file in files.iter().filter(|file| file.module.is_none()) {
        for at in find_word(&file.code, "use") {
            let path = file.code[at + 3..].split(';').next().unwrap_or_default();
            let mut words = path.split(|c| !is_word(c)).filter(|word| !word.is_empty());
            let first = words.find(|word| !["crate", "self"].contains(word));
            if let Some(&module) = first.and_then(|first| modules.get(first)) {
                names.extend(words.map(|word| (word, module)));
            }
        }
    }
    names
}

/// The shortest way from a module back to itself.
fn shortest_circle<'a>(start: &'a str, edges: &Edges<'a>) -> Option<Vec<&'a str>> {
    let mut ways = VecDeque::from([vec![start]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        let last = way.last()?;
        for &next in edges.get(last).into_iter().flat_map(BTreeMap::keys) {
            if next == start {
                return Some(way);
            }
            if seen.insert(next) {
                ways.push_back(way.iter().copied().chain([next]).collect());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)]) -> Option<String> {
        let source =
            |(path, text): &(&str, &str)| Source::parse(&format!("crates/x/src/{path}"), text);
        let sources: Vec<Source> = files.iter().map(source).collect();
        check_crate("x", &sources).map(|finding| finding.to_string())
    }

    #[test]
    fn a_circle_is_found_and_named() {
        let found = check(&[
            ("a.rs", "use crate::b::B;\n"),
            ("b/mod.rs", "use crate::{d, c::C};\n"),
            ("c/deep/e.rs", "\nfn f() { super::super::super::a::g() }\n"),
        ]);
        assert_eq!(
            found.as_deref(),
            Some(
                "crates/x: modules form a circle: a uses b at crates/x/src/a.rs:1; b uses c at \
                 crates/x/src/b/mod.rs:1; c uses a at crates/x/src/c/deep/e.rs:2"
            )
        );
    }

    #[test]
    fn one_direction_is_fine() {
        let below = ("b.rs", "fn f() {}\n");
        assert_eq!(check(&[("a.rs", "use crate::b::f;\nuse super::b;\n"), below]), None);
        assert_eq!(
            check(&[("a/x.rs", "use super::y::Y;\n"), ("a/y.rs", "use crate::a::x;")]),
            None
        );
    }

    #[test]
    fn tests_and_comments_make_no_circle() {
        let tests = "// crate::a\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
        assert_eq!(check(&[("a.rs", "use crate::b::B;"), ("b.rs", tests)]), None);
        assert_eq!(check(&[("a.rs", "use crate::b::B;"), ("b/tests.rs", "use crate::a;")]), None);
    }

    #[test]
    fn the_root_hides_no_circle() {
        let root = ("lib.rs", "mod a;\nmod b;\npub use a::{A, X};\n");
        let found = check(&[root, ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::X;")]);
        assert!(found.is_some_and(|text| text.contains("b uses a")));
        assert_eq!(check(&[root, ("a.rs", ""), ("b.rs", "use crate::X;")]), None);
    }
}
