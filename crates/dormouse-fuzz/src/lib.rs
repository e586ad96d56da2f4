//! Feeds parsers with random inputs. A parser must neither panic nor hold more memory than it
//! declares, whatever arrives and in whatever pieces.
//!
//! A target is a test beside its parser, in the crate that has it: parsers are private. It runs a
//! short share of inputs with all other tests; `cargo xtask fuzz` runs long campaigns. Inputs are
//! mutations of valid ones (`mutate.rs`), so that they get far into a parser; there is no feedback
//! from its branches, which needs a compiler of its own.
//!
//! An input that failed is kept in the crate's `fuzz/<target>/`, and is tried first ever after.

mod input;
mod mutate;
mod rng;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

pub use input::Input;
use mutate::Mutator;
use rng::Rng;

/// Inputs that a target tries among other tests.
const EXECUTIONS: u64 = 5_000;

/// A parser to feed.
#[derive(Clone, Copy, Debug)]
pub struct Target<'t> {
    /// Its name in `cargo xtask fuzz`.
    pub name: &'t str,
    /// The directory of its crate: `env!("CARGO_MANIFEST_DIR")`.
    pub home: &'t str,
    /// Valid inputs, from which others are made.
    pub seeds: &'t [&'t [u8]],
    /// Words that mean something to the parser.
    pub words: &'t [&'t [u8]],
    /// The most bytes that it may hold at once for an input of so many bytes.
    pub held_bytes_max: fn(usize) -> u64,
}

/// What a campaign saw.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Inputs tried, those that are kept included.
    pub executions: u64,
    /// The most bytes held at once.
    pub held_bytes: u64,
    /// The largest part of its bound that an input took, in percent.
    pub held_percent: u64,
}

/// Tries inputs; panics with the first that makes `run` panic, or hold more than it may.
///
/// `DORMOUSE_FUZZ_EXECUTIONS` is the number of inputs, `DORMOUSE_SEED` repeats a campaign.
pub fn fuzz(target: &Target<'_>, mut run: impl FnMut(&Input)) -> Seen {
    let seed = number("DORMOUSE_SEED").unwrap_or_else(rng::any_seed);
    let executions = number("DORMOUSE_FUZZ_EXECUTIONS").unwrap_or(EXECUTIONS);
    eprintln!("fuzz {}: DORMOUSE_SEED={seed:#x}, {executions} executions", target.name);
    let kept = Path::new(target.home).join("fuzz").join(target.name);
    let mut seen = Seen::default();
    // The first run of a parser makes what is made once and stays.
    for bytes in target.seeds {
        try_one(&mut run, &Input::whole(bytes));
    }
    for (path, bytes) in files(&kept) {
        for input in [Input::whole(&bytes), Input::byte_by_byte(&bytes)] {
            if let Err(reason) = judge(target, &mut run, &input, &mut seen) {
                panic!("{}: {reason}", path.display());
            }
        }
    }
    let mut mutator = Mutator::new(target.seeds, target.words, Rng::new(seed));
    for execution in 0..executions {
        let input = mutator.next();
        if let Err(reason) = judge(target, &mut run, &input, &mut seen) {
            let path = keep(&kept, &input);
            panic!(
                "{reason}; input {execution} of DORMOUSE_SEED={seed:#x} is kept as {}:\n{}",
                path.display(),
                input.bytes.escape_ascii()
            );
        }
    }
    eprintln!("fuzz {}: {seen:?}", target.name);
    seen
}

/// Tries an input, and says what is wrong.
fn judge(
    target: &Target<'_>,
    run: &mut impl FnMut(&Input),
    input: &Input,
    seen: &mut Seen,
) -> Result<(), String> {
    let (is_ok, held_bytes) = try_one(run, input);
    seen.executions += 1;
    if !is_ok {
        return Err("the parser panicked".to_owned());
    }
    let max = (target.held_bytes_max)(input.bytes.len());
    seen.held_bytes = seen.held_bytes.max(held_bytes);
    seen.held_percent = seen.held_percent.max(held_bytes * 100 / max.max(1));
    if held_bytes > max {
        return Err(format!("the parser held {held_bytes} bytes, {max} at most"));
    }
    Ok(())
}

fn try_one(run: &mut impl FnMut(&Input), input: &Input) -> (bool, u64) {
    let mut is_ok = false;
    let held = allocation_counter::measure(|| {
        is_ok = catch_unwind(AssertUnwindSafe(|| run(input))).is_ok();
    });
    (is_ok, held.bytes_max)
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let read = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    Some(read.unwrap_or_else(|_| panic!("{name} is {text:?}; give a number")))
}

fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<_> =
        paths.filter_map(|path| Some((path.clone(), fs::read(path).ok()?))).collect();
    files.sort();
    files
}

/// Keeps an input; returns where.
fn keep(directory: &Path, input: &Input) -> PathBuf {
    let path = directory.join(format!("{:016x}", rng::hash(&input.bytes)));
    let written = fs::create_dir_all(directory).and_then(|()| fs::write(&path, &input.bytes));
    if let Err(error) = written {
        eprintln!("it cannot be kept as {}: {error}", path.display());
    }
    path
}
