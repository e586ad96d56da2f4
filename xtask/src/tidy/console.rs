//! The files of the web console: what data say is text, never markup, and nothing is inline or
//! comes from elsewhere. The server's policy refuses most of it, too; here it is refused before.

use super::text::line_at;
use super::{Finding, TextFile};

const CONSOLE: &str = "crates/dormouse-server/ui/";
const VENDORED: &str = "crates/dormouse-server/ui/vendor/";

/// Ways to make markup or code of data.
const REFUSED: &[&str] = &[
    concat!("dangerouslySet", "InnerHTML"),
    concat!("inner", "HTML"),
    concat!("outer", "HTML"),
    concat!("insertAdjacent", "HTML"),
    concat!("document", ".write"),
    concat!("new ", "Function("),
    concat!("ev", "al("),
    concat!("java", "script:"),
    "<style",
    "<script>",
];

/// Addresses that are no requests: a name of XML, and the program's own default.
const ADDRESSES: &[&str] = &["http://www.w3.org/", "http://127.0.0.1:7788"];

/// Every file of the console but the vendored ones.
pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    if !file.path.starts_with(CONSOLE) || file.path.starts_with(VENDORED) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut refuse = |at: usize, what: &str| {
        let text = format!("`{what}` in the console: text nodes, own files and own addresses only");
        findings.push(Finding::new(&file.path, line_at(&file.text, at), text));
    };
    for word in REFUSED {
        for (at, _) in file.text.match_indices(word) {
            refuse(at, word);
        }
    }
    for (at, _) in file.text.match_indices("://") {
        let start =
            file.text[..at].rfind(|c: char| !c.is_ascii_alphabetic()).map_or(0, |at| at + 1);
        let scheme = &file.text[start..at];
        let is_known = ADDRESSES.iter().any(|known| file.text[start..].starts_with(known));
        if (scheme == "http" || scheme == "https") && !is_known {
            refuse(start, "an address elsewhere");
        }
    }
    for at in inline_handlers(&file.text) {
        refuse(at, "an inline handler");
    }
    findings
}

/// Attributes like `onclick="..."`: a name in lower case and a text. Functions are given as
/// `onClick=${...}`.
fn inline_handlers(text: &str) -> Vec<usize> {
    let is_handler = |&(at, _): &(usize, &str)| {
        let rest = &text[at + 3..];
        let name = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
        name > 2 && (rest[name..].starts_with("=\"") || rest[name..].starts_with("='"))
    };
    text.match_indices(" on").filter(is_handler).map(|(at, _)| at + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&TextFile { path: path.to_owned(), text: text.to_owned() }).len()
    }

    #[test]
    fn markup_from_data_is_refused_in_the_console_alone() {
        for word in REFUSED {
            let text = format!("a {word} b");
            assert_eq!(found("crates/dormouse-server/ui/app.js", &text), 1, "{word}");
            assert_eq!(found("crates/dormouse-server/ui/vendor/preact.js", &text), 0, "{word}");
            assert_eq!(found("docs/http.md", &text), 0, "{word}");
        }
    }

    #[test]
    fn handlers_are_functions_and_addresses_are_our_own() {
        let check = |text: &str| found("crates/dormouse-server/ui/index.html", text);
        assert_eq!(check("<a onclick=\"go()\">"), 1);
        assert_eq!(check("<a onClick=${go}> on one=\"x\""), 0);
        assert_eq!(check("src=\"https://cdn.example/x.js\""), 1);
        assert_eq!(check("xmlns=\"http://www.w3.org/2000/svg\""), 0);
        assert_eq!(check("dev://x `${a}://b`"), 0);
    }
}
