//! The words of `docs/glossary.md`: retired ones are refused, and a type has one definition.
//!
//! The glossary's tables are the only source. This file reads them by the titles of their sections:
//! - *Retired words*: the words, their replacement, and where they are refused: in all `text`
//!   (file names too), in `names` (identifiers in code, file names), or in the text below a path.
//!   A cell may end in "except `some words`".
//! - *Words of other systems*: refused in names, except where those systems' words are spoken.
//! - *Types defined once*: the name of a type, its meaning, its file; the file `none` for names
//!   that no type has. Only the shipped crates are checked.

use super::source::{Source, code_of};
use super::text::is_word;
use super::{Finding, TextFile};

const GLOSSARY: &str = "docs/glossary.md";
const RETIRED: &str = "## Retired words";
const OTHERS: &str = "## Words of other systems";
const TYPES: &str = "## Types defined once";

/// Files that are read: those that people write.
const EXTENSIONS: &[&str] = &["rs", "lua", "md", "toml", "json", "py", "js", "sh", "service"];
const UNSHIPPED: &[&str] =
    &["crates/dormouse-check/", "crates/dormouse-bench/", "crates/dormouse-fuzz/"];
/// Where words of other systems are spoken: at the edge, and next to those systems.
const DIALECTS: &[&str] = &["beanstalk", "crates/dormouse-bench/", "/peers/"];

/// A word, or several in a row, that is not used any more.
#[derive(Debug, PartialEq, Eq)]
struct Rule {
    /// In lower case, one after another within one name.
    words: Vec<String>,
    instead: String,
    scope: Scope,
    /// A phrase with the retired words that is fine: `in flight`.
    except: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    Text,
    Names,
    /// Names outside the dialects.
    OwnNames,
    Below(String),
}

/// A type that has one definition.
#[derive(Debug, PartialEq, Eq)]
struct OneType {
    name: String,
    path: String,
}

/// What the glossary lays down; nothing where there is no glossary.
#[derive(Debug, Default)]
pub(super) struct Glossary {
    rules: Vec<Rule>,
    types: Vec<OneType>,
}

impl Glossary {
    /// Reads the glossary. A row that cannot be read is a finding.
    pub(super) fn read(files: &[TextFile]) -> (Glossary, Vec<Finding>) {
        let mut glossary = Glossary::default();
        let mut findings = Vec::new();
        let Some(file) = files.iter().find(|file| file.path == GLOSSARY) else {
            return (glossary, findings);
        };
        for (section, at, cells) in rows(&file.text) {
            let read = match (section, cells.as_slice()) {
                (RETIRED, [words, instead, scope]) => glossary.retire(words, instead, scope),
                (OTHERS, [words, instead, _]) => {
                    glossary.add(words, instead, &Scope::OwnNames, None);
                    true
                }
                (TYPES, [names, _, path]) => {
                    let path = path.replace('`', "");
                    for name in names.replace('`', "").split(", ") {
                        glossary.types.push(OneType { name: name.to_owned(), path: path.clone() });
                    }
                    true
                }
                (RETIRED | OTHERS | TYPES, _) => false,
                _ => true,
            };
            if !read {
                findings.push(Finding::new(GLOSSARY, at, "this row cannot be read: see tidy"));
            }
        }
        (glossary, findings)
    }

    fn retire(&mut self, words: &str, instead: &str, scope: &str) -> bool {
        let (scope, except) = match scope.split_once(", except ") {
            Some((scope, except)) => (scope, Some(split_words(&except.replace('`', "")))),
            None => (scope, None),
        };
        let scope = match scope {
            "text" => Scope::Text,
            "names" => Scope::Names,
            path if path.contains('/') => Scope::Below(path.replace('`', "")),
            _ => return false,
        };
        self.add(words, instead, &scope, except.as_deref());
        true
    }

    fn add(&mut self, words: &str, instead: &str, scope: &Scope, except: Option<&[String]>) {
        for words in words.split(", ") {
            let words = split_words(words.trim_matches('`'));
            let (scope, except) = (scope.clone(), except.map(<[String]>::to_vec));
            self.rules.push(Rule { words, instead: instead.to_owned(), scope, except });
        }
    }

    /// The retired words of one file, in its name and in its text.
    pub(super) fn check_words(&self, file: &TextFile) -> Vec<Finding> {
        let extension = file.path.rsplit_once('.').map_or("", |(_, extension)| extension);
        if file.path == GLOSSARY || !EXTENSIONS.contains(&extension) {
            return Vec::new();
        }
        let mut findings = Vec::new();
        for rule in &self.rules {
            if rule.scope.covers_name(&file.path) && rule.is_in(&file.path) {
                findings.push(Finding::new(&file.path, 0, rule.text()));
            }
        }
        for (index, line) in file.text.lines().enumerate() {
            let lower = line.to_lowercase();
            for rule in &self.rules {
                // Most lines have none of the words: the cheap question first.
                if lower.contains(&rule.words[0]) && rule.objects_to(&file.path, line) {
                    findings.push(Finding::new(&file.path, index + 1, rule.text()));
                }
            }
        }
        findings
    }

    /// Second definitions of types that must have one.
    pub(super) fn check_types(&self, source: &Source) -> Vec<Finding> {
        let is_shipped = !UNSHIPPED.iter().any(|start| source.path.starts_with(start));
        if !source.path.starts_with("crates/") || !is_shipped {
            return Vec::new();
        }
        let mut findings = Vec::new();
        for (line, code) in source.product_code() {
            let Some(name) = defined_type(&code) else { continue };
            let one = self.types.iter().find(|one| one.name == name);
            if let Some(one) = one.filter(|one| one.path != source.path) {
                let text = match one.path.as_str() {
                    "none" => format!("`{name}` is no name of a type: take a noun"),
                    path => format!("`{name}` is defined in {path}: take another name"),
                };
                findings.push(Finding::new(&source.path, line, text));
            }
        }
        findings
    }
}

impl Scope {
    fn covers_name(&self, path: &str) -> bool {
        match self {
            Scope::Text | Scope::Names => true,
            Scope::OwnNames => !DIALECTS.iter().any(|part| path.contains(part)),
            Scope::Below(start) => path.starts_with(start),
        }
    }
}

impl Rule {
    fn text(&self) -> String {
        format!("`{}` is retired: {}", self.words.join("_"), self.instead)
    }

    fn objects_to(&self, path: &str, line: &str) -> bool {
        if !self.scope.covers_name(path) {
            return false;
        }
        match self.scope {
            Scope::Text | Scope::Below(_) => self.is_in(line),
            Scope::Names | Scope::OwnNames => match path.rsplit_once('.') {
                Some((_, "rs")) => self.is_in(&code_of(line)),
                Some((_, "lua")) => self.is_in(line.split("--").next().unwrap_or_default()),
                _ => false,
            },
        }
    }

    /// Whether the words stand in one name of this text.
    fn is_in(&self, text: &str) -> bool {
        let mut before = Vec::new();
        for name in text.split(|c| !is_word(c)).filter(|name| !name.is_empty()) {
            let words = split_words(name);
            let start = before.len();
            before.extend(words);
            for at in start..before.len() {
                if before[at..].starts_with(&self.words) && !self.is_excepted(&before, at) {
                    return true;
                }
            }
        }
        false
    }

    fn is_excepted(&self, words: &[String], at: usize) -> bool {
        let Some(except) = &self.except else { return false };
        // The exception has the retired words somewhere in it, as `in flight` has.
        let Some(offset) = except.windows(self.words.len()).position(|part| part == self.words)
        else {
            return false;
        };
        at >= offset && words[at - offset..].starts_with(except)
    }
}

/// The rows of all tables, each with the title of its section and its line; no headers.
fn rows(text: &str) -> Vec<(&str, usize, Vec<String>)> {
    let mut section = "";
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        if line.starts_with('#') {
            section = line;
        }
        let is_rule = |line: Option<&&str>| line.is_some_and(|line| line.starts_with("|--"));
        if line.starts_with('|') && !is_rule(Some(line)) && !is_rule(lines.get(index + 1)) {
            let cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
            found.push((section, index + 1, cells.collect()));
        }
    }
    found
}

/// `InFlight`, `IN_FLIGHT` and `in flight` as two words.
fn split_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && after_small) {
            words.push(String::new());
        }
        after_small = c.is_lowercase() || c.is_numeric();
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The name of the type that a line defines.
fn defined_type(code: &str) -> Option<&str> {
    let mut words = code.split(|c| !is_word(c)).filter(|word| !word.is_empty());
    let mut keyword = words.next()?;
    while ["pub", "crate", "super", "in"].contains(&keyword) {
        keyword = words.next()?;
    }
    // An associated type is indented: it has no meaning of its own.
    let is_type = ["struct", "enum", "trait", "union"].contains(&keyword)
        || keyword == "type" && !code.starts_with(' ');
    is_type.then(|| words.next())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "\
# Glossary

| word | meaning |
|---|---|
| job | a unit of work |

## Retired words

| retired | now | refused in |
|---|---|---|
| zeppelin, zeppelins | batch | text, except `in zeppelin` |
| hand_forth | deliver | names |
| tapir | info | `crates/x/` |

## Words of other systems

| word | here | where from |
|---|---|---|
| overpush | put | several |

## Types defined once

| type | meaning | file |
|---|---|---|
| `Place` | where a job sorts | `crates/core/src/place.rs` |
| `Yonder`, `Hither` | not nouns | none |
";

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn shown(path: &str, text: &str) -> Vec<String> {
        let (glossary, findings) = Glossary::read(&[file(GLOSSARY, TABLES)]);
        assert!(findings.is_empty(), "{findings:?}");
        let mut findings = glossary.check_words(&file(path, text));
        findings.extend(glossary.check_types(&Source::parse(path, text)));
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn retired_words_are_found_in_all_text() {
        for text in
            ["zeppelin", "// The Zeppelins.", "fly_zeppelin()", "LastZeppelin", "\"zeppelin\""]
        {
            assert_eq!(shown("a/b.rs", text).len(), 1, "{text}");
            assert_eq!(shown("a/b.md", text).len(), 1, "{text}");
        }
        assert_eq!(shown("a.lua", "\n-- a zeppelin"), ["a.lua:2: `zeppelin` is retired: batch"]);
        assert_eq!(shown("a/zeppelin/mod.rs", "").len(), 1);
        assert!(shown(GLOSSARY, "zeppelin").is_empty());
        assert!(shown("Cargo.lock", "zeppelin").is_empty());
    }

    #[test]
    fn parts_of_words_and_exceptions_are_fine() {
        for text in ["zeppelined", "in zeppelin", "in-zeppelin", "IN_ZEPPELIN_MAX", "InZeppelin"] {
            assert!(shown("a.rs", text).is_empty(), "{text}");
        }
        assert_eq!(shown("a.rs", "in zeppelin, a zeppelin").len(), 1);
    }

    #[test]
    fn retired_names_are_found_in_code_only() {
        for text in ["fn hand_forth() {", "HandForth", "let x = handForth;"] {
            assert_eq!(shown("a.rs", text).len(), 1, "{text}");
        }
        for text in ["// hand_forth", "\"hand_forth\"", "hand(forth)", "second_hand"] {
            assert!(shown("a.rs", text).is_empty(), "{text}");
        }
        assert!(shown("a.md", "hand_forth").is_empty());
    }

    #[test]
    fn some_words_are_retired_in_one_place() {
        assert_eq!(shown("crates/x/src/a.rs", "// a tapir").len(), 1);
        assert!(shown("crates/y/src/a.rs", "// a tapir").is_empty());
    }

    #[test]
    fn dialects_speak_their_own_words() {
        assert_eq!(shown("a.rs", "fn overpush_all() {").len(), 1);
        assert!(shown("crates/dormouse-server/src/beanstalk/words.rs", "overpush").is_empty());
        assert!(shown("a.rs", "// others call it overpush").is_empty());
    }

    #[test]
    fn a_type_is_defined_once() {
        let place = "pub(crate) struct Place {\n}\n";
        assert!(shown("crates/core/src/place.rs", place).is_empty());
        assert_eq!(shown("crates/x/src/a.rs", place).len(), 1);
        assert_eq!(shown("crates/x/src/a.rs", "enum Place {").len(), 1);
        assert!(shown("crates/x/src/a.rs", "struct PlaceName;\n    type Place = u8;\n").is_empty());
        assert!(shown("crates/x/tests/a.rs", place).is_empty());
        assert!(shown("crates/dormouse-check/src/a.rs", place).is_empty());
        assert_eq!(
            shown("crates/x/src/a.rs", "struct Hither;"),
            ["crates/x/src/a.rs:1: `Hither` is no name of a type: take a noun"]
        );
    }

    #[test]
    fn rows_that_cannot_be_read_are_named() {
        let text = "## Retired words\n\n| a | b | c |\n|---|---|---|\n| x | y | everywhere |\n";
        let (_, findings) = Glossary::read(&[file(GLOSSARY, text)]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().starts_with("docs/glossary.md:5: "));
    }
}
