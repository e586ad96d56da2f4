//! `cargo xtask lines`: how much product code the shipped crates have.
//!
//! Product code is what a crate's `src` holds without tests, comments and blank lines. Lua is
//! counted apart.

use std::path::Path;

use crate::tidy::source::Source;
use crate::tidy::{TextFile, list_files, read_texts};

/// Crates that are not shipped: they test and measure.
const NOT_SHIPPED: &[&str] = &["dormouse-check", "dormouse-bench", "dormouse-fuzz"];

/// Prints the lines of each shipped crate and their sum.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let files = read_texts(root, &list_files(root)?);
    println!("{:<18} {:>7} {:>7}", "crate", "Rust", "Lua");
    let mut sum = (0, 0);
    for name in crates(&files) {
        let (rust, lua) = count(&files, name);
        println!("{name:<18} {rust:>7} {lua:>7}");
        sum = (sum.0 + rust, sum.1 + lua);
    }
    println!("{:<18} {:>7} {:>7}", "all", sum.0, sum.1);
    Ok(())
}

/// The shipped crates, in the order of their names.
fn crates(files: &[TextFile]) -> Vec<&str> {
    let names = files.iter().filter_map(|file| {
        let (name, rest) = file.path.strip_prefix("crates/")?.split_once('/')?;
        (rest == "Cargo.toml" && !NOT_SHIPPED.contains(&name)).then_some(name)
    });
    names.collect()
}

/// Lines of Rust and of Lua.
fn count(files: &[TextFile], name: &str) -> (usize, usize) {
    let prefix = format!("crates/{name}/");
    let (mut rust, mut lua) = (0, 0);
    for file in files {
        let Some(below) = file.path.strip_prefix(&prefix) else { continue };
        if below.starts_with("src/") && below.ends_with(".rs") {
            rust += Source::parse(&file.path, &file.text).product_code().count();
        } else if below.ends_with(".lua") {
            let lines = file.text.lines().map(str::trim_start);
            lua += lines.filter(|line| !line.is_empty() && !line.starts_with("--")).count();
        }
    }
    (rust, lua)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_code_of_shipped_crates_is_counted() {
        let file = |path: &str, text: &str| TextFile { path: path.into(), text: text.into() };
        let files = [
            file("crates/a/Cargo.toml", ""),
            file("crates/a/src/lib.rs", "//! A.\n\nfn a() {}\n#[cfg(test)]\nmod tests;\n"),
            file("crates/a/src/tests.rs", "fn t() {}\n"),
            file("crates/a/tests/it.rs", "fn t() {}\n"),
            file("crates/a/lua/a.lua", "-- a\n\nlocal a = 1\nreturn a\n"),
            file("crates/dormouse-check/Cargo.toml", ""),
        ];
        assert_eq!(crates(&files), ["a"]);
        assert_eq!(count(&files, "a"), (1, 2));
    }
}
