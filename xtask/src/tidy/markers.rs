//! Marks of unfinished work. Clippy finds the macros: `todo!`, `unimplemented!`, `dbg!`.

use super::text::{find_word, line_at};
use super::{Finding, TextFile};

/// Written in two halves: this file is checked too.
const MARKERS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];
/// Files in which the markers are looked for; prose and fixtures may have them.
const MARKED_FILES: &[&str] =
    &["rs", "toml", "lua", "sh", "py", "js", "ts", "css", "html", "yml", "yaml"];

/// Marks of unfinished work in any source file, also in comments.
pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    let extension = file.path.rsplit_once('.').map_or("", |(_, extension)| extension);
    if !MARKED_FILES.contains(&extension) {
        return Vec::new();
    }
    let found = |marker: &&str| {
        let text = format!("`{marker}`: finish it, or say what is missing and why");
        let places = find_word(&file.text, marker);
        let finding = move |at| Finding::new(&file.path, line_at(&file.text, at), text.clone());
        places.into_iter().map(finding).collect::<Vec<_>>()
    };
    MARKERS.iter().flat_map(found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_work_is_found_in_comments() {
        let shown = |path: &str, text: &str| -> Vec<String> {
            let file = TextFile { path: path.to_owned(), text: text.to_owned() };
            check(&file).iter().map(Finding::to_string).collect()
        };
        let text = format!("let a = 1;\n// {}: later\n", MARKERS[0]);
        assert!(shown("a.rs", &text)[0].starts_with("a.rs:2: "));
        assert_eq!(shown("a.lua", MARKERS[1]).len(), 1);
        assert!(shown("a.md", MARKERS[1]).is_empty());
        assert!(shown("a.rs", &format!("// {}{}", MARKERS[1], MARKERS[1])).is_empty());
    }
}
