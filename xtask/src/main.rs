//! The commands that test and guard this repository: `cargo xtask help` lists them.
//!
//! Only the standard library is used, so that the first command of a fresh clone starts within
//! a second or two.

#![allow(clippy::print_stdout, reason = "a command-line tool prints to stdout")]

mod clients;
mod foreign;
mod fuzz;
mod install;
mod lines;
mod schemathesis;
mod soak;
mod step;
mod supply;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <command>

  test [-p PACKAGE] [--no-nextest]  everything a change must pass, in order: tidy, supply, packages,
                                    luacheck, fmt, clippy (all features; the library also
                                    without), tests, doc tests, docs, schemathesis, clients,
                                    foreign.
                                    About 30 minutes on two cores from an empty target, about 18
                                    when built.
                                    Root or sudo: only if Debian packages are missing.
                                    Network: crates.io, and PyPI, npm and Debian the first time.
                                    Redis: the tests start their own, from the package redis-tools
  tidy                              only the checks of text and layout: a second
  supply                            licences, sources and second versions of all dependencies
  schemathesis [--examples N]       random requests by the OpenAPI document (default 20 each)
  clients                           our clients in Python and TypeScript, and the examples in
                                    Java and Go, against a real server
  foreign                           clients and suites of others, over RESP and beanstalkd, and
                                    the original beanstalkd: the same commands, the same answers
  fuzz [--target NAME] [--executions N] [--seed S]
                                    random inputs for the parsers (default 5 million each)
  soak [--minutes N]                the long campaigns, N minutes each (default 10)
  soak --busy [--rounds N]          all tests N times (default 3) while every core is kept busy
  lines                             lines of product code per shipped crate
  install [--dry-run]               the Debian packages the tests need
  help                              this text
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = parse(&words).and_then(|task| run(&repository_root(), &task));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// A command of the command line.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    Test(test::Options),
    Tidy,
    Supply,
    Schemathesis { examples: u64 },
    Clients,
    Foreign { inside: bool },
    Fuzz(fuzz::Options),
    Soak { minutes: u64 },
    SoakBusy { rounds: u64 },
    Lines,
    Install { dry_run: bool },
    Help,
}

fn run(root: &Path, task: &Task) -> Result<(), String> {
    match task {
        Task::Test(options) => test::run(root, options),
        Task::Tidy => tidy::run(root),
        Task::Supply => supply::run(root),
        Task::Schemathesis { examples } => schemathesis::run(root, *examples),
        Task::Clients => clients::run(root),
        Task::Foreign { inside: false } => foreign::run(root),
        Task::Foreign { inside: true } => foreign::inside(root),
        Task::Fuzz(options) => fuzz::run(root, options),
        Task::Soak { minutes } => soak::run(root, *minutes),
        Task::SoakBusy { rounds } => soak::run_busy(root, *rounds),
        Task::Lines => lines::run(root),
        Task::Install { dry_run } => install::ensure(install::NEEDED, *dry_run),
        Task::Help => {
            print!("{HELP}");
            Ok(())
        }
    }
}

fn parse(words: &[String]) -> Result<Task, String> {
    let Some((command, rest)) = words.split_first() else {
        return Ok(Task::Help);
    };
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    let mut rest = words.iter().copied();
    let task = match command.as_str() {
        "test" => {
            let mut options = test::Options { package: None, nextest: true };
            while let Some(word) = rest.next() {
                match word {
                    "-p" | "--package" => {
                        let name = rest.next().ok_or("-p wants the name of a package")?;
                        options.package = Some(name.to_owned());
                    }
                    "--no-nextest" => options.nextest = false,
                    other => return Err(unknown(other)),
                }
            }
            Task::Test(options)
        }
        "tidy" => Task::Tidy,
        "supply" => Task::Supply,
        "schemathesis" => {
            let (default, max) = (schemathesis::EXAMPLES_DEFAULT, schemathesis::EXAMPLES_MAX);
            Task::Schemathesis { examples: parse_number(&mut rest, "--examples", default, max)? }
        }
        "fuzz" => Task::Fuzz(fuzz::Options::parse(&mut rest)?),
        "soak" if words.first() == Some(&"--busy") => {
            rest.next();
            let (default, max) = (soak::ROUNDS_DEFAULT, soak::ROUNDS_MAX);
            Task::SoakBusy { rounds: parse_number(&mut rest, "--rounds", default, max)? }
        }
        "soak" => {
            let (default, max) = (soak::MINUTES_DEFAULT, soak::MINUTES_MAX);
            Task::Soak { minutes: parse_number(&mut rest, "--minutes", default, max)? }
        }
        "lines" => Task::Lines,
        "clients" => Task::Clients,
        "foreign" => match rest.next() {
            None => Task::Foreign { inside: false },
            // By itself, in a network namespace.
            Some("--inside") => Task::Foreign { inside: true },
            Some(other) => return Err(unknown(other)),
        },
        "install" => match rest.next() {
            None => Task::Install { dry_run: false },
            Some("--dry-run") => Task::Install { dry_run: true },
            Some(other) => return Err(unknown(other)),
        },
        "help" | "--help" | "-h" => Task::Help,
        other => return Err(unknown(other)),
    };
    match rest.next() {
        Some(extra) => Err(unknown(extra)),
        None => Ok(task),
    }
}

/// The number that follows the command's only option, or the default.
fn parse_number<'a>(
    rest: &mut impl Iterator<Item = &'a str>,
    option: &str,
    default: u64,
    max: u64,
) -> Result<u64, String> {
    match rest.next() {
        None => Ok(default),
        Some(word) if word == option => {
            let number = rest.next().and_then(|word| word.parse().ok());
            number
                .filter(|number| (1..=max).contains(number))
                .ok_or(format!("{option} wants a number from 1 to {max}"))
        }
        Some(other) => Err(unknown(other)),
    }
}

fn unknown(word: &str) -> String {
    format!("`{word}` is not understood here; `cargo xtask help` lists the commands")
}

/// The parent of this package's directory, which cargo passes in the environment.
fn repository_root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR");
    let manifest =
        manifest.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expect: Result<Task, &str>) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match (parse(&words), expect) {
            (Ok(task), Ok(expected)) => assert_eq!(task, expected, "{line}"),
            (Err(text), Err(part)) => assert!(text.contains(part), "{line}: {text}"),
            (got, expected) => panic!("{line}: {got:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn commands_are_understood() {
        check("", Ok(Task::Help));
        check("help", Ok(Task::Help));
        check("tidy", Ok(Task::Tidy));
        check("supply", Ok(Task::Supply));
        check("test", Ok(Task::Test(test::Options { package: None, nextest: true })));
        check(
            "test -p xtask --no-nextest",
            Ok(Task::Test(test::Options { package: Some("xtask".into()), nextest: false })),
        );
        check("soak", Ok(Task::Soak { minutes: soak::MINUTES_DEFAULT }));
        check("soak --minutes 3", Ok(Task::Soak { minutes: 3 }));
        check("soak --busy", Ok(Task::SoakBusy { rounds: soak::ROUNDS_DEFAULT }));
        check("soak --busy --rounds 2", Ok(Task::SoakBusy { rounds: 2 }));
        check("lines", Ok(Task::Lines));
        let examples = schemathesis::EXAMPLES_DEFAULT;
        check("schemathesis", Ok(Task::Schemathesis { examples }));
        check("schemathesis --examples 7", Ok(Task::Schemathesis { examples: 7 }));
        check("foreign", Ok(Task::Foreign { inside: false }));
        check("clients", Ok(Task::Clients));
        check("install --dry-run", Ok(Task::Install { dry_run: true }));
    }

    #[test]
    fn mistakes_are_named() {
        check("tets", Err("`tets`"));
        check("tidy now", Err("`now`"));
        check("test -p", Err("name of a package"));
        check("soak --minutes none", Err("--minutes"));
        check("soak --minutes 0", Err("--minutes"));
        check("soak --busy --minutes 3", Err("`--minutes`"));
        check("install everything", Err("`everything`"));
    }
}
