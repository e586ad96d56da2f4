//! How long lines, functions and files may be.

use super::Finding;
use super::source::{Source, item_end};
use super::text::{find_word, is_word, line_at};

const LINE_CHARS_MAX: usize = 100;
const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 600;
const FILE_LINES_SOFT: usize = 500;

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = check_lines(source);
    findings.extend(check_functions(source));
    findings.extend(check_file(source));
    findings
}

fn check_lines(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let length = line.chars().count();
        if length > LINE_CHARS_MAX {
            let text = format!("line of {length} characters, at most {LINE_CHARS_MAX}");
            findings.push(Finding::new(&source.path, index + 1, text));
        }
    }
    findings
}

fn check_functions(source: &Source) -> Vec<Finding> {
    let code = source.code.as_str();
    let mut findings = Vec::new();
    for at in find_word(code, "fn") {
        let name: String =
            code[at + 2..].trim_start().chars().take_while(|&c| is_word(c)).collect();
        // Without a name it is the type of a function.
        let Some(end) = item_end(code, at).filter(|_| !name.is_empty()) else {
            continue;
        };
        let line = line_at(code, at);
        let length = line_at(code, end) - line + 1;
        if length > FUNCTION_LINES_MAX {
            let text = format!("`{name}` has {length} lines, at most {FUNCTION_LINES_MAX}");
            findings.push(Finding::new(&source.path, line, text));
        }
    }
    findings
}

/// Tests may be longer: they are read one by one.
fn check_file(source: &Source) -> Option<Finding> {
    let length = source.product_lines();
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

    fn shown(text: &str) -> Vec<String> {
        let findings = check(&Source::parse("crates/x/src/a.rs", text));
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn long_lines_are_found_by_characters() {
        assert!(shown(&"é".repeat(100)).is_empty());
        let found = shown(&format!("\n{}\n", "é".repeat(101)));
        assert_eq!(found, ["crates/x/src/a.rs:2: line of 101 characters, at most 100"]);
    }

    #[test]
    fn long_functions_are_found() {
        let function =
            |lines: usize| format!("impl A {{\n    fn f() {{{}}}\n}}\n", "\n".repeat(lines - 1));
        assert!(shown(&function(70)).is_empty());
        assert_eq!(shown(&function(71)), ["crates/x/src/a.rs:2: `f` has 71 lines, at most 70"]);
    }

    #[test]
    fn declarations_and_function_types_are_not_functions() {
        let rest = "\n".repeat(80);
        assert!(shown(&format!("trait T {{ fn f(x: [u8; 2]); {rest} }}")).is_empty());
        assert!(shown(&format!("struct S {{ f: fn(u8), {rest} }}")).is_empty());
    }

    #[test]
    fn long_files_are_found_without_their_tests() {
        let line = "use a::b;\n";
        assert!(shown(&line.repeat(500)).is_empty());
        assert!(shown(&line.repeat(501))[0].contains("warning: 501 lines"));
        assert!(shown(&line.repeat(601))[0].contains("601 lines outside tests, at most 600"));
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", line.repeat(600));
        assert!(shown(&tests).is_empty());
    }
}
