//! How long lines and files may be. Clippy holds the length of functions (`clippy.toml`).

use super::source::Source;
use super::{Finding, TextFile};

const CODE_CHARS_MAX: usize = 100;
const PROSE_CHARS_MAX: usize = 120;
const FILE_LINES_MAX: usize = 600;
const FILE_LINES_SOFT: usize = 500;

/// Lines of Rust, Lua and Markdown. rustfmt cannot hold this on a stable toolchain, and it leaves
/// comments and strings alone.
pub(super) fn check_lines(file: &TextFile) -> Vec<Finding> {
    let is_prose = file.path.ends_with(".md");
    if !is_prose && !file.path.ends_with(".rs") && !file.path.ends_with(".lua") {
        return Vec::new();
    }
    let chars_max = if is_prose { PROSE_CHARS_MAX } else { CODE_CHARS_MAX };
    let mut findings = Vec::new();
    let mut is_code = false;
    for (index, line) in file.text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let may_be_long = is_prose && (is_code || is_fence || cannot_be_broken(line));
        if line.chars().count() > chars_max && !may_be_long {
            let text = format!("line of more than {chars_max} characters");
            findings.push(Finding::new(&file.path, index + 1, text));
        }
    }
    findings
}

/// A row of a table, or a line of Markdown with a link.
fn cannot_be_broken(line: &str) -> bool {
    line.trim_start().starts_with('|') || line.contains("](") || line.contains("://")
}

/// Product lines of one file. Tests may be longer: they are read one by one.
pub(super) fn check_file(source: &Source) -> Option<Finding> {
    let length = source.product_lines().count();
    let text = format!("{length} lines outside tests");
    if length > FILE_LINES_MAX {
        Some(Finding::new(&source.path, 0, format!("{text}, at most {FILE_LINES_MAX}")))
    } else if length > FILE_LINES_SOFT {
        let text = format!("{text}, better at most {FILE_LINES_SOFT}");
        Some(Finding::warning(&source.path, 0, text))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long_lines(path: &str, text: &str) -> Vec<String> {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        check_lines(&file).iter().map(Finding::to_string).collect()
    }

    fn long_file(text: &str) -> String {
        let finding = check_file(&Source::parse("crates/x/src/a.rs", text));
        finding.map_or(String::new(), |finding| finding.to_string())
    }

    #[test]
    fn long_lines_are_found_by_characters() {
        assert!(long_lines("a.rs", &"é".repeat(100)).is_empty());
        let found = long_lines("a.lua", &format!("\n{}\n", "é".repeat(101)));
        assert_eq!(found, ["a.lua:2: line of more than 100 characters"]);
        assert!(long_lines("a.json", &"x".repeat(101)).is_empty());
    }

    #[test]
    fn markdown_breaks_only_its_prose() {
        let long = "x".repeat(121);
        assert_eq!(long_lines("a.md", &long).len(), 1);
        for text in [format!("| {long} |"), format!("[a]({long})"), format!("```\n{long}\n```")] {
            assert!(long_lines("a.md", &text).is_empty(), "{text}");
        }
        assert_eq!(long_lines("a.md", &format!("```\na\n```\n{long}")).len(), 1);
    }

    #[test]
    fn long_files_are_found_without_their_tests() {
        let line = "use a::b;\n";
        assert_eq!(long_file(&line.repeat(500)), "");
        assert!(long_file(&line.repeat(501)).contains("warning: 501 lines"));
        assert!(long_file(&line.repeat(601)).contains("601 lines outside tests, at most 600"));
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", line.repeat(600));
        assert_eq!(long_file(&tests), "");
    }
}
