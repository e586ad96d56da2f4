//! Documents: links and paths lead somewhere, and the README says how to test.

use super::text::line_at;
use super::{Finding, TextFile};

const TEST_COMMAND: &str = "cargo xtask test";
/// How a path of the repository begins in inline code.
const NAMED: &[&str] = &["crates/", "docs/", "xtask/"];

/// Relative links of a Markdown file lead to files of the repository.
pub(super) fn check_links(file: &TextFile, paths: &[String]) -> Vec<Finding> {
    let prose = without_code(&file.text);
    let mut findings = Vec::new();
    for (at, target) in links(&prose) {
        let Some(path) = resolve(&file.path, target) else {
            continue;
        };
        let below = format!("{path}/");
        let exists = path.is_empty()
            || paths.iter().any(|known| *known == path || known.starts_with(&below));
        if !exists {
            let text = format!("link to `{target}` leads nowhere");
            findings.push(Finding::new(&file.path, line_at(&prose, at), text));
        }
    }
    findings
}

/// Paths of the repository in inline code of a Markdown file exist. `<verb>`, `*` and braces stand
/// for several names: such a path is checked up to its last plain directory.
pub(super) fn check_named_paths(file: &TextFile, paths: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for named in line.split('`').skip(1).step_by(2) {
            if !NAMED.iter().any(|start| named.starts_with(start)) || named.contains(' ') {
                continue;
            }
            let plain = named.find(['<', '*', '{', '…']).map_or(named, |open| {
                named[..open].rsplit_once('/').map_or("", |(directory, _)| directory)
            });
            let plain = plain.trim_end_matches('/');
            let below = format!("{plain}/");
            if !paths.iter().any(|known| known == plain || known.starts_with(&below)) {
                let text = format!("`{named}` is not in the repository");
                findings.push(Finding::new(&file.path, index + 1, text));
            }
        }
    }
    findings
}

/// The README and continuous integration run the same one command.
pub(super) fn check_test_command(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in ["README.md", ".ci/run"] {
        match files.iter().find(|file| file.path == path) {
            None => findings.push(Finding::warning(path, 0, "is missing")),
            Some(file) if !file.text.contains(TEST_COMMAND) => {
                let text = format!("does not name the test command `{TEST_COMMAND}`");
                findings.push(Finding::new(path, 0, text));
            }
            Some(_) => {}
        }
    }
    findings
}

/// Fenced and inline code as spaces: what looks like a link there is none.
fn without_code(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        let is_code = fence.is_some() || mark.is_some();
        match (fence, mark) {
            (None, Some(_)) => fence = mark,
            (Some(open), Some(close)) if open == close => fence = None,
            _ => {}
        }
        if is_code {
            prose.extend(line.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            push_without_inline_code(&mut prose, line);
        }
    }
    prose
}

fn push_without_inline_code(prose: &mut String, line: &str) {
    let mut rest = line;
    while let Some(open) = rest.find('`') {
        let ticks = rest[open..].chars().take_while(|&c| c == '`').count();
        let body = open + ticks;
        let Some(length) = rest[body..].find(&rest[open..body]) else { break };
        let end = body + length + ticks;
        prose.push_str(&rest[..open]);
        prose.extend(rest[open..end].chars().map(|_| ' '));
        rest = &rest[end..];
    }
    prose.push_str(rest);
}

/// Targets of `[text](target)` and `[name]: target` with their positions.
fn links(prose: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, _) in prose.match_indices("](") {
        let rest = &prose[at + 2..];
        let end = match rest.strip_prefix('<') {
            Some(quoted) => quoted.find('>').map(|end| end + 1),
            None => rest.find([')', ' ', '\n']),
        };
        if let Some(end) = end {
            found.push((at, rest[..end].trim_start_matches('<')));
        }
    }
    for (at, _) in prose.match_indices("]: ") {
        let line_start = prose[..at].rfind('\n').map_or(0, |newline| newline + 1);
        if prose[line_start..at].trim_start().starts_with('[') {
            let target = prose[at + 3..].split_whitespace().next().unwrap_or_default();
            found.push((at, target.trim_start_matches('<').trim_end_matches('>')));
        }
    }
    found
}

/// The path from the root of the repository; none for addresses and places within the page.
fn resolve(from: &str, target: &str) -> Option<String> {
    let path = target.split(['#', '?']).next().unwrap_or_default();
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    let is_address = scheme.is_some_and(|scheme| scheme.chars().all(|c| c.is_ascii_alphanumeric()));
    if path.is_empty() || is_address || target.starts_with("//") {
        return None;
    }
    let path = path.replace("%20", " ");
    let mut parts: Vec<&str> = match path.starts_with('/') {
        true => Vec::new(),
        false => from.split('/').collect(),
    };
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                // Above the root there is nothing of ours: keep it, so that it is not found.
                if parts.pop().is_none() {
                    return Some("..".to_owned());
                }
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let paths = ["README.md", "docs/http.md", "docs/resp.md", "crates/dormouse/src/lib.rs"];
        let paths = paths.map(str::to_owned);
        let file = TextFile { path: "docs/http.md".to_owned(), text: text.to_owned() };
        check_links(&file, &paths).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        for target in [
            "resp.md",
            "./resp.md#put",
            "../README.md",
            "/README.md",
            "../crates/dormouse",
            "..",
            "#section",
            "https://example.com/x.md",
            "mailto:a@example.com",
            "<resp.md>",
            "resp.md \"RESP\"",
        ] {
            assert!(
                check(&format!("see [x]({target}) now\n[y]: {target}\n")).is_empty(),
                "{target}"
            );
        }
    }

    #[test]
    fn broken_links_are_found() {
        assert_eq!(check("a\n[x](rsep.md)"), ["docs/http.md:2: link to `rsep.md` leads nowhere"]);
        assert_eq!(check("[![i](logo.svg)](README.md)").len(), 2);
        assert_eq!(check("[x]: nowhere.md").len(), 1);
        assert_eq!(check("[x](../../outside.md)").len(), 1);
    }

    #[test]
    fn code_has_no_links() {
        assert!(check("```rust\nlet a = b[0](nowhere.md);\n```\n").is_empty());
        assert!(check("`a[0](nowhere.md)` and ``b[`](c)``").is_empty());
        assert_eq!(check("`a` [x](nowhere.md) `b`").len(), 1);
    }

    #[test]
    fn named_paths_exist() {
        let count = |text: &str| {
            let file = TextFile { path: "README.md".into(), text: text.into() };
            let paths = ["docs/http.md", "crates/dormouse/src/lib.rs"].map(str::to_owned);
            check_named_paths(&file, &paths).len()
        };
        let fine = "`docs/http.md`, `crates/dormouse/`, `crates/dormouse/src/<verb>.rs` or `src/x`";
        assert_eq!(count(fine), 0);
        assert_eq!(count("`docs/rsep.md`"), 1);
        assert_eq!(count("`crates/dormouse/tests/*.rs`"), 1);
        assert_eq!(count("docs/rsep.md"), 0);
    }

    #[test]
    fn the_test_command_is_named() {
        let file = |path: &str, text: &str| TextFile { path: path.into(), text: text.into() };
        let good = [file("README.md", "Run `cargo xtask test`."), file(".ci/run", TEST_COMMAND)];
        assert!(check_test_command(&good).is_empty());
        let bad = [file("README.md", "Run `cargo test`."), file(".ci/run", TEST_COMMAND)];
        let findings = check_test_command(&bad);
        assert_eq!(findings.len(), 1);
        assert!(!findings[0].is_warning);
        assert!(check_test_command(&[]).iter().all(|finding| finding.is_warning));
    }
}
