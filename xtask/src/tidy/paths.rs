//! Paths of one developer's machine, which mean nothing elsewhere.

use super::text::{is_word, line_at};
use super::{Finding, TextFile};

/// Written in two halves: this file is checked too.
const MACHINE: &[&str] =
    &[concat!("/", "work/"), concat!("/", "home/"), concat!("/", "root/"), concat!("/", "Users/")];

/// Absolute paths of a machine in any text.
pub(super) fn check_machine_paths(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for start in MACHINE {
        for (at, _) in file.text.match_indices(start) {
            // After a name it is the middle of a relative path or of an address.
            let before = file.text[..at].chars().next_back();
            if before.is_none_or(|c| !is_word(c) && !".-~}".contains(c)) {
                let text = format!("`{start}…` is a path of one machine");
                findings.push(Finding::new(&file.path, line_at(&file.text, at), text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        let file = TextFile { path: "a.md".to_owned(), text: text.to_owned() };
        check_machine_paths(&file).len()
    }

    #[test]
    fn absolute_paths_of_a_machine_are_found() {
        for start in MACHINE {
            assert_eq!(count(&format!("see `{start}x`")), 1);
            assert_eq!(count(&format!("{start}x\n\"{start}y\"")), 2);
        }
    }

    #[test]
    fn relative_paths_and_addresses_are_fine() {
        for start in MACHINE {
            assert_eq!(count(&format!("https://example.com{start}x docs{start}x .{start}x")), 0);
        }
        assert_eq!(count("/var/lib/dormouse and /tmp/x"), 0);
    }
}
