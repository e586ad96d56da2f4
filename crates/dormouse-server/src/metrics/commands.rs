//! Commands of a pipelined protocol, counted by verb and result.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dormouse_core::error::Code;

/// The results of a command: `ok`, or the code of an error.
const RESULTS: [(&str, Option<Code>); 12] = [
    ("ok", None),
    ("invalid", Some(Code::Invalid)),
    ("unauthorized", Some(Code::Unauthorized)),
    ("forbidden", Some(Code::Forbidden)),
    ("not_found", Some(Code::NotFound)),
    ("conflict", Some(Code::Conflict)),
    ("lease_lost", Some(Code::LeaseLost)),
    ("too_large", Some(Code::TooLarge)),
    ("busy", Some(Code::Busy)),
    ("full", Some(Code::Full)),
    ("unconfirmed", Some(Code::Unconfirmed)),
    ("unavailable", Some(Code::Unavailable)),
];

/// The counts of every command of a protocol.
#[derive(Default)]
pub(super) struct Commands {
    verbs: Vec<(&'static str, [AtomicU64; RESULTS.len()])>,
}

/// A verb, a result and their count.
pub(super) type CommandCount = (&'static str, &'static str, u64);

impl Commands {
    pub(super) fn new(names: &'static [&'static str]) -> Commands {
        let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
        Commands { verbs: names.iter().map(|name| (*name, zeros())).collect() }
    }

    /// Counts a command.
    pub(super) fn note(&self, verb: usize, code: Option<Code>) {
        let result = match code {
            None => 0,
            code => RESULTS.iter().position(|(_, known)| *known == code).unwrap_or(0),
        };
        if let Some((_, counts)) = self.verbs.get(verb) {
            counts[result].fetch_add(1, Relaxed);
        }
    }

    /// Every count that is not zero.
    pub(super) fn counts(&self) -> Vec<CommandCount> {
        let mut nonzero = Vec::new();
        for (name, counts) in &self.verbs {
            for ((result, _), count) in RESULTS.iter().zip(counts) {
                let count = count.load(Relaxed);
                if count > 0 {
                    nonzero.push((*name, *result, count));
                }
            }
        }
        nonzero
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_has_its_code_for_a_name() {
        let commands = Commands::new(&["put"]);
        for (name, code) in RESULTS {
            assert_eq!(name, code.map_or("ok", Code::as_str));
            commands.note(0, code);
            commands.note(7, code);
        }
        let expected: Vec<CommandCount> = RESULTS.map(|(name, _)| ("put", name, 1)).to_vec();
        assert_eq!(commands.counts(), expected);
    }
}
