//! Runs every shell block of the README, in order, and compares what it prints.
//!
//! A `sh` block is run by bash; the `text` block after it, if there is one, is what it must print,
//! except for numbers and the width of columns, and with `[..]` for anything. The server is
//! started by the block that says so, on a port that is free, and every later block means that
//! one.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const README: &str = include_str!("../../../README.md");
const SERVE: &str = "cargo run --release -- serve";
/// Runs this test among others.
const TEST: &str = "cargo xtask test";
const ADDR: &str = "127.0.0.1:7788";
const RESP_PORT: &str = "-p 7789";

struct Block {
    line: usize,
    shell: String,
    expected: Option<String>,
}

/// The shell blocks, each with the text block that follows it before any other.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<(&str, usize, String)> = None;
    let mut waits = false;
    for (number, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(kind)) => open = Some((kind, number + 1, String::new())),
            (Some((_, _, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (Some(_), Some(_)) => {
                let Some((kind, line, text)) = open.take() else { continue };
                match (kind, blocks.last_mut()) {
                    ("text", Some(block)) if waits => block.expected = Some(text),
                    ("sh", _) => blocks.push(Block { line, shell: text, expected: None }),
                    _ => {}
                }
                waits = kind == "sh";
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Times and ids differ from run to run, and columns with them.
fn without_numbers(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        if !((c == '0' || c == ' ') && plain.ends_with(c)) {
            plain.push(c);
        }
    }
    plain
}

/// Whether a text is as expected; `[..]` stands for anything.
fn matches(expected: &str, text: &str) -> bool {
    let (expected, text) = (without_numbers(expected), without_numbers(text));
    let mut rest = text.as_str();
    for (index, part) in expected.split("[..]").enumerate() {
        match rest.find(part) {
            Some(at) if index > 0 || at == 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    rest.is_empty() || expected.ends_with("[..]")
}

struct Server {
    child: Child,
    addr: String,
    resp_port: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(here: &Path) -> (Server, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dormouse"))
        .args(["serve", "--push", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"])
        .current_dir(here)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let (http, resp) = (lines.next().unwrap(), lines.next().unwrap());
    let addr = http.rsplit_once("http://").expect(&http).1.to_owned();
    let shown = format!("{}\n{resp}\n", http.replace(&addr, ADDR));
    let resp_port = resp.rsplit_once(':').expect(&resp).1.to_owned();
    (Server { child, addr, resp_port }, shown)
}

fn run(here: &Path, server: &Server, shell: &str) -> String {
    let Server { addr, resp_port, .. } = server;
    let shell = shell.replace(ADDR, addr).replace(RESP_PORT, &format!("-p {resp_port}"));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_dormouse"));
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &shell])
        .current_dir(here)
        .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
        .env("DORMOUSE_URL", format!("http://{addr}"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shell}\nended with {}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Their pages are run by the tests of the clients.
#[test]
fn workers_in_other_languages_are_those_of_their_pages() {
    for (language, page) in [
        ("python", include_str!("../../../docs/clients/python.md")),
        ("ts", include_str!("../../../docs/clients/typescript.md")),
    ] {
        let (_, block) = README.split_once(&format!("```{language}\n")).unwrap();
        let (block, _) = block.split_once("```\n").unwrap();
        assert!(page.contains(block), "the page has no such block:\n{block}");
        let lines = block.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= 15, "{lines} lines:\n{block}");
    }
}

#[test]
fn the_readme_does_what_it_says() {
    let here = tempfile::tempdir().unwrap();
    let mut server: Option<Server> = None;
    let mut ran = 0;
    for block in blocks(README) {
        let text = match block.shell.trim() {
            TEST => continue,
            SERVE => {
                let (started, shown) = serve(here.path());
                server = Some(started);
                shown
            }
            shell => {
                let server = server.as_ref().expect("the server is started first");
                run(here.path(), server, shell)
            }
        };
        ran += 1;
        if let Some(expected) = block.expected {
            let (expected, text) = (expected.trim_end(), text.trim_end());
            assert!(
                matches(expected, text),
                "README.md line {}: {}\nprints\n{text}\nand not\n{expected}",
                block.line,
                block.shell
            );
        }
    }
    assert!(ran >= 6, "only {ran} blocks were run");
    let data = here.path().join("dormouse-data");
    assert!(fs::metadata(&data).is_ok(), "the data is where the README says");
}

#[test]
fn wildcards_match_anything_and_the_rest_exactly() {
    assert!(matches("a[..]c", "abbbc"));
    assert!(matches("[..]", "anything"));
    assert!(matches("x", "x"));
    assert!(matches(" 1  at 10:05:59", " 22 at 9:1:2"));
    assert!(!matches("x", "xy"));
    assert!(!matches("a[..]c", "ab"));
    assert!(!matches("b", "ab"));
}
