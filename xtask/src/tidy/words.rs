//! Words that must not be left in the code.

use super::source::Source;
use super::text::{find_word, is_word, line_at};
use super::{Finding, TextFile};

/// Unfinished work, also in comments. Written in two halves: this file is checked too.
const MARKERS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];
/// Files in which the markers are looked for; prose and fixtures may have them.
const MARKED_FILES: &[&str] =
    &["rs", "toml", "lua", "sh", "py", "js", "ts", "css", "html", "yml", "yaml"];

/// Macros that have no place in finished code.
const MACROS: &[&str] = &["todo!", "unimplemented!", "dbg!"];

/// One word per concept: other people's words for ours. Only words that mean nothing else in
/// Rust code are listed, so `payload` (encoded bytes), `channel`, `queue` and `push` are not.
const FOREIGN: &[(&str, &str)] = &[
    ("enqueue", "put"),
    ("dequeue", "reserve"),
    ("dedup_id", "key"),
    ("run_at", "due_at"),
    ("visibility_timeout", "ttr"),
    ("tube", "topic"),
    ("wal", "journal"),
    ("sstable", "run"),
];

/// Where other people's words are spoken: at the edge, and next to them.
const DIALECTS: &[&str] = &["beanstalk", "crates/dormouse-bench/", "/peers/"];

/// Marks of unfinished work in any source file.
pub(super) fn check_markers(file: &TextFile) -> Vec<Finding> {
    let extension = file.path.rsplit_once('.').map_or("", |(_, extension)| extension);
    if !MARKED_FILES.contains(&extension) {
        return Vec::new();
    }
    let found = |marker: &&str| {
        let text = format!("`{marker}`: finish it, or say what is so and why");
        let places = find_word(&file.text, marker);
        let finding = move |at| Finding::new(&file.path, line_at(&file.text, at), text.clone());
        places.into_iter().map(finding).collect::<Vec<_>>()
    };
    MARKERS.iter().flat_map(found).collect()
}

/// Macros of unfinished code, and identifiers with another word for a concept that has one.
pub(super) fn check_code(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in MACROS {
        for at in find_word(&source.code, name) {
            let line = line_at(&source.code, at);
            findings.push(Finding::new(&source.path, line, format!("`{name}` is left over")));
        }
    }
    if DIALECTS.iter().any(|part| source.path.contains(part)) {
        return findings;
    }
    for (index, line) in source.code.lines().enumerate() {
        for identifier in line.split(|c| !is_word(c)).filter(|word| !word.is_empty()) {
            let words = format!("_{}_", snake(identifier));
            for (foreign, ours) in FOREIGN {
                if words.contains(&format!("_{foreign}_")) {
                    let text = format!("`{identifier}`: the word here is `{ours}`");
                    findings.push(Finding::new(&source.path, index + 1, text));
                }
            }
        }
    }
    findings
}

/// `EnqueueAll` and `ENQUEUE_ALL` as `enqueue_all`.
fn snake(identifier: &str) -> String {
    let mut words = String::new();
    let mut after_small = false;
    for c in identifier.chars() {
        if c.is_uppercase() && after_small {
            words.push('_');
        }
        after_small = c.is_lowercase() || c.is_numeric();
        words.extend(c.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, text: &str) -> Vec<String> {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        let mut findings = check_markers(&file);
        findings.extend(check_code(&Source::parse(path, text)));
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn unfinished_work_is_found_in_comments() {
        let text = format!("let a = 1;\n// {}: later\n", MARKERS[0]);
        assert!(shown("a.rs", &text)[0].starts_with("a.rs:2: "));
        assert!(shown("a.lua", MARKERS[1]).len() == 1);
        assert!(shown("a.md", MARKERS[1]).is_empty());
        assert!(shown("a.rs", &format!("// {}{}", MARKERS[1], MARKERS[1])).is_empty());
    }

    #[test]
    fn left_over_macros_are_found_in_code_only() {
        assert_eq!(shown("a.rs", "fn f() { todo!() }"), ["a.rs:1: `todo!` is left over"]);
        assert_eq!(shown("a.rs", "\n\ndbg!(x);"), ["a.rs:3: `dbg!` is left over"]);
        assert!(shown("a.rs", "// todo! and \"dbg!\"\nlet x = \"unimplemented!\";").is_empty());
    }

    #[test]
    fn foreign_words_are_found_in_identifiers() {
        for name in ["enqueue", "EnqueueJob", "enqueue_all", "WAL_BYTES_MAX", "wal", "open_tube"] {
            assert_eq!(shown("a.rs", name).len(), 1, "{name}");
        }
        for name in ["walk", "VecDeque", "queue", "payload", "mpsc::channel", "rerun_attempt"] {
            assert!(shown("a.rs", name).is_empty(), "{name}");
        }
        assert!(shown("a.rs", "// what others call enqueue").is_empty());
    }

    #[test]
    fn dialects_speak_their_own_words() {
        assert!(shown("crates/dormouse-server/src/beanstalk/words.rs", "tube").is_empty());
        assert_eq!(shown("crates/dormouse-core/src/topic.rs", "tube").len(), 1);
    }
}
