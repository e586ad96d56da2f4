//! A Rust file as the rules see it: comments and strings blanked out, tests marked.

use std::ops::RangeInclusive;

use super::text::{find_word, is_word, line_at};

/// A Rust file.
pub(super) struct Source {
    pub(super) path: String,
    /// As written.
    pub(super) text: String,
    /// The same lines with spaces in place of comments, strings and characters.
    pub(super) code: String,
    /// The lines of items under `#[cfg(test)]`.
    tests: Vec<RangeInclusive<usize>>,
}

impl Source {
    pub(super) fn parse(path: &str, text: &str) -> Self {
        let code = blank(text);
        let tests = test_lines(&code);
        Self { path: path.to_owned(), text: text.to_owned(), code, tests }
    }

    /// Tests or benchmarks and nothing else.
    pub(super) fn is_test_file(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let is_test_name = name == "tests.rs" || name.ends_with("_tests.rs");
        is_test_name || self.path.split('/').any(|part| part == "tests" || part == "benches")
    }

    /// The line, counted from 1, belongs to a test.
    pub(super) fn is_test_line(&self, line: usize) -> bool {
        self.is_test_file() || self.tests.iter().any(|lines| lines.contains(&line))
    }

    /// Lines outside tests.
    pub(super) fn product_lines(&self) -> usize {
        (1..=self.text.lines().count()).filter(|&line| !self.is_test_line(line)).count()
    }
}

/// The end of the item that goes on at `start`: its closing brace, or its semicolon.
pub(super) fn item_end(code: &str, start: usize) -> Option<usize> {
    let mut braces = 0_usize;
    let mut groups = 0_usize;
    for (offset, c) in code[start..].char_indices() {
        match c {
            '(' | '[' => groups += 1,
            ')' | ']' => groups = groups.saturating_sub(1),
            '{' => braces += 1,
            '}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 && groups == 0 {
                    return Some(start + offset);
                }
            }
            ';' if braces == 0 && groups == 0 => return Some(start + offset),
            _ => {}
        }
    }
    None
}

fn test_lines(code: &str) -> Vec<RangeInclusive<usize>> {
    const MARK: &str = "#[cfg(test)]";
    let lines = |at: usize| {
        let end = item_end(code, at + MARK.len()).unwrap_or(code.len());
        line_at(code, at)..=line_at(code, end)
    };
    find_word(code, MARK).into_iter().map(lines).collect()
}

/// Replaces comments and literals by spaces, keeping every line where it was.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        if end > at {
            let spaces = chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' });
            code.extend(spaces);
            at = end;
        } else {
            code.push(chars[at]);
            at += 1;
        }
    }
    code
}

/// Where the comment or literal that begins at `at` ends; `at` itself if none begins there.
fn literal_end(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => line_end(chars, at),
        '/' if next == Some('*') => block_comment_end(chars, at),
        '"' => quoted_end(chars, at, '"'),
        '\'' if next == Some('\\') || chars.get(at + 2) == Some(&'\'') => {
            quoted_end(chars, at, '\'')
        }
        'r' | 'b' | 'c' if at == 0 || !is_word(chars[at - 1]) => raw_string_end(chars, at),
        _ => at,
    }
}

fn line_end(chars: &[char], at: usize) -> usize {
    chars[at..].iter().position(|&c| c == '\n').map_or(chars.len(), |length| at + length)
}

/// Block comments nest.
fn block_comment_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn quoted_end(chars: &[char], start: usize, quote: char) -> usize {
    let mut at = start + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// `r"…"`, `br#"…"#` and the like; `start` if it is an identifier after all.
fn raw_string_end(chars: &[char], start: usize) -> usize {
    let is_prefixed = chars[start] != 'r' && chars.get(start + 1) == Some(&'r');
    if chars[start] != 'r' && !is_prefixed {
        return start;
    }
    let after_r = start + 1 + usize::from(is_prefixed);
    let hashes = chars[after_r..].iter().take_while(|&&c| c == '#').count();
    if chars.get(after_r + hashes) != Some(&'"') {
        return start;
    }
    let body = after_r + hashes + 1;
    let closes = |at: &usize| {
        chars[*at] == '"'
            && chars[at + 1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes
    };
    (body..chars.len()).find(closes).map_or(chars.len(), |quote| quote + 1 + hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_blank(text: &str, expect: &str) {
        assert_eq!(blank(text), expect, "{text}");
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        check_blank("a // b\nc", "a     \nc");
        check_blank("a /* b /* c */ d */ e", "a                   e");
        check_blank(r#"f("x\"y{", '{', '\'', b'}')"#, "f(       ,    ,     , b   )");
        check_blank(r##"g(r#"a "b" {"#, br"\")"##, "g(            ,      )");
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        check_blank("fn f<'a>(x: &'a str, r#type: u8) {}", "fn f<'a>(x: &'a str, r#type: u8) {}");
        check_blank("for bar in cur {}", "for bar in cur {}");
    }

    #[test]
    fn tests_are_told_from_the_product() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() { \"}\" }\n}\nfn c() {}\n";
        let source = Source::parse("crates/x/src/a.rs", text);
        let marked: Vec<usize> = (1..=7).filter(|&line| source.is_test_line(line)).collect();
        assert_eq!(marked, [3, 4, 5, 6]);
        assert_eq!(source.product_lines(), 3);
        for path in ["crates/x/tests/a.rs", "crates/x/src/a/tests.rs", "crates/x/benches/a.rs"] {
            assert!(Source::parse(path, text).is_test_file(), "{path}");
        }
    }

    #[test]
    fn a_test_module_in_its_own_file_is_one_line() {
        let source = Source::parse("crates/x/src/a.rs", "#[cfg(test)]\nmod tests;\nfn c() {}\n");
        assert!(source.is_test_line(2));
        assert!(!source.is_test_line(3));
    }
}
