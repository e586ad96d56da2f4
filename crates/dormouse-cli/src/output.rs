//! Printing: data to stdout, messages to stderr.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use tracing::Level;

use crate::exit::Failure;
use crate::log_line::log_line;

/// How data is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For programs
    Json,
}

/// Writes data. A closed stdout ends the program silently.
pub(crate) fn print(text: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::silent(0),
        _ => Failure::new(format!("cannot write to stdout: {error}")),
    })
}

/// Writes a line of data.
pub(crate) fn print_line(text: &str) -> Result<(), Failure> {
    print(format!("{text}\n").as_bytes())
}

/// Writes a JSON document as the server sent it, with one line end.
pub(crate) fn print_json(document: &[u8]) -> Result<(), Failure> {
    let mut line = document.trim_ascii_end().to_vec();
    line.push(b'\n');
    print(&line)
}

/// Whether every line on stderr is JSON.
static SAYS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on every message is a line of JSON: a program reads stderr.
pub(crate) fn say_in_json() {
    SAYS_JSON.store(true, Ordering::Relaxed);
}

/// Writes a message to stderr; a closed stderr is no error.
pub(crate) fn say(text: &str) {
    say_at(Level::INFO, text);
}

/// Writes a message; its level is told only in JSON.
pub(crate) fn say_at(level: Level, text: &str) {
    if SAYS_JSON.load(Ordering::Relaxed) {
        return say_json(&log_line(level, "dormouse", text, serde_json::Map::new()));
    }
    let _ = writeln!(io::stderr().lock(), "dormouse: {}", clean(text));
}

/// Writes a line of JSON to stderr, which escapes what `clean` would.
pub(crate) fn say_json(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Rewrites the last line of a terminal; `done` ends it. Does nothing elsewhere.
pub(crate) fn progress(text: &str, done: bool) {
    let mut stderr = io::stderr().lock();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[K{}{}", clean(text), if done { "\n" } else { "" });
        let _ = stderr.flush();
    }
}

/// Foreign text, with control characters escaped: they would steer a terminal or break a table.
pub(crate) fn clean(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() {
            clean.extend(c.escape_default());
        } else {
            clean.push(c);
        }
    }
    clean
}

/// The first characters of a text, ending in `...` if there are more.
pub(crate) fn shorten(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(chars_max.saturating_sub(3)).collect();
    short.push_str("...");
    short
}

/// Aligned columns below a header; columns of numbers are flushed right.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| clean(cell)).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(header[column].chars().count())
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let is_number = |cell: &String| cell.bytes().all(|b| b.is_ascii_digit());
    let are_numbers: Vec<bool> = (0..header.len())
        .map(|column| rows.iter().filter_map(|row| row.get(column)).all(is_number))
        .collect();
    let mut text = String::new();
    let titles: Vec<String> = header.iter().map(|title| title.to_uppercase()).collect();
    for row in std::iter::once(&titles).chain(&rows) {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let gap = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
            let (before, after) =
                if are_numbers[column] { (gap, "".into()) } else { ("".into(), gap) };
            line.push_str(&before);
            line.push_str(cell);
            line.push_str(&after);
            line.push_str("  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Names and values, one pair per line.
pub(crate) fn pairs(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in rows {
        let line = format!("{name:width$}  {}", clean(value));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|&cell| cell.to_owned()).collect()
    }

    #[test]
    fn columns_are_aligned_and_numbers_flushed_right() {
        let rows = [row(&["7", "a", ""]), row(&["1234", "längst", "x"])];
        let expected = "  ID  KEY     NOTE\n   7  a\n1234  längst  x\n";
        assert_eq!(table(&["id", "key", "note"], &rows), expected);
    }

    #[test]
    fn a_table_without_rows_is_its_header() {
        assert_eq!(table(&["id", "key"], &[]), "ID  KEY\n");
    }

    #[test]
    fn text_from_elsewhere_does_not_steer_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(clean("täglich"), "täglich");
    }

    #[test]
    fn long_texts_are_shortened_by_characters() {
        assert_eq!(shorten("äöüäöü", 6), "äöüäöü");
        assert_eq!(shorten("äöüäöüä", 6), "äöü...");
    }

    #[test]
    fn pairs_are_aligned() {
        assert_eq!(pairs(&[("id", "7".into()), ("topic", "a".into())]), "id     7\ntopic  a\n");
    }
}
