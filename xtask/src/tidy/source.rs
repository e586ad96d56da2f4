//! A Rust file as the rules see it: line by line, with its tests marked.
//!
//! rustfmt gives every file the same shape, so lines are enough: an item ends at the first line
//! that closes a brace in the column in which the item began, and a comment starts with `//`.

use std::ops::RangeInclusive;

/// A Rust file.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// The lines of items under `#[cfg(test)]`.
    tests: Vec<RangeInclusive<usize>>,
}

impl Source {
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), tests: test_lines(text) }
    }

    /// Whether the whole file is tests or benchmarks.
    pub(crate) fn is_test_file(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        ["tests.rs", "testing.rs"].contains(&name)
            || name.ends_with("_tests.rs")
            || self.path.split('/').any(|part| ["tests", "benches", "examples"].contains(&part))
    }

    /// The lines outside tests, counted from 1.
    pub(crate) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = if self.is_test_file() { "" } else { &self.text };
        let numbered = lines.lines().enumerate().map(|(index, line)| (index + 1, line));
        numbered.filter(|(line, _)| !self.tests.iter().any(|lines| lines.contains(line)))
    }

    /// The code outside tests: neither comments, nor strings, nor blank lines.
    pub(crate) fn product_code(&self) -> impl Iterator<Item = (usize, String)> {
        let code = self.product_lines().map(|(number, line)| (number, code_of(line)));
        code.filter(|(_, line)| !line.trim().is_empty())
    }
}

/// A line without its comment and without the text of its strings.
pub(crate) fn code_of(line: &str) -> String {
    let mut code = String::with_capacity(line.len());
    let mut in_string = false;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let skipped = match c {
            '\\' if in_string => 2,
            // A quotation mark as a character opens no string.
            '\'' if !in_string && rest.starts_with("'\"'") => 3,
            '/' if !in_string && rest.starts_with("//") => break,
            _ => 1,
        };
        let is_quote = c == '"';
        in_string ^= is_quote;
        if !in_string || is_quote {
            code.push(c);
        }
        let mut chars = rest.chars();
        chars.by_ref().take(skipped).for_each(drop);
        rest = chars.as_str();
    }
    code
}

fn test_lines(text: &str) -> Vec<RangeInclusive<usize>> {
    let lines: Vec<&str> = text.lines().collect();
    let is_mark =
        |line: &str| line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test");
    let marks = lines.iter().enumerate().filter(|(_, line)| is_mark(line.trim_start()));
    marks.map(|(index, _)| index + 1..=item_end(&lines, index) + 1).collect()
}

/// The index of the last line of the item whose first attribute is at `start`.
fn item_end(lines: &[&str], start: usize) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let column = indent(lines[start]);
    let is_head = |line: &str| line.trim_start().starts_with("#[");
    let first = (start..lines.len()).find(|&at| !is_head(lines[at])).unwrap_or(start);
    if lines.get(first).is_some_and(|line| line.ends_with([';', ',', '}'])) {
        return first;
    }
    let closes = |line: &str| indent(line) == column && line.trim_start().starts_with('}');
    (first..lines.len()).find(|&at| closes(lines[at])).unwrap_or(lines.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(text: &str) -> Vec<usize> {
        let source = Source::parse("crates/x/src/a.rs", text);
        source.product_lines().map(|(line, _)| line).collect()
    }

    #[test]
    fn comments_and_strings_are_no_code() {
        let check = |line: &str, expected: &str| assert_eq!(code_of(line), expected, "{line}");
        check("a // b", "a ");
        check("/// a", "");
        check(r#"f("x \" // y", z) // w"#, r#"f("", z) "#);
        check("if c == '\"' { g(1) }", "if c == ' { g(1) }");
        check("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)");
    }

    #[test]
    fn tests_are_told_from_the_product() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
        assert_eq!(product(text), [1, 2, 8]);
        for path in ["crates/x/tests/a.rs", "crates/x/src/a/tests.rs", "crates/x/benches/a.rs"] {
            assert_eq!(Source::parse(path, text).product_lines().count(), 0, "{path}");
        }
    }

    #[test]
    fn test_items_of_every_shape_end() {
        assert_eq!(product("#[cfg(test)]\nmod tests;\nfn c() {}\n"), [3]);
        assert_eq!(product("#[cfg(test)]\nuse a::{\n    b,\n};\nfn c() {}\n"), [5]);
        let method = "impl A {\n    #[cfg(test)]\n    fn b(\n    ) -> u8 {\n        0\n    }\n}\n";
        assert_eq!(product(method), [1, 7]);
        assert_eq!(product("#[cfg(all(test, unix))]\n#[path = \"a\"]\nmod a;\nfn c() {}\n"), [4]);
    }

    #[test]
    fn product_code_is_counted_without_comments() {
        let text = "//! A.\n\n/// B.\nfn b() {\n    // C.\n}\n";
        let source = Source::parse("crates/x/src/a.rs", text);
        assert_eq!(source.product_code().count(), 2);
    }
}
