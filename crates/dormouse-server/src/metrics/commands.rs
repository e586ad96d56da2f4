//! Commands of a pipelined protocol, counted by verb and by what came of them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dormouse_core::error::Code;

/// What came of a command: it was done, or why it was not.
const OUTCOMES: [(&str, Option<Code>); 12] = [
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
    verbs: Vec<(&'static str, [AtomicU64; OUTCOMES.len()])>,
}

/// A verb, what came of it, and how often.
pub(super) type SeenCommand = (&'static str, &'static str, u64);

impl Commands {
    pub(super) fn new(names: &'static [&'static str]) -> Commands {
        let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
        Commands { verbs: names.iter().map(|name| (*name, zeros())).collect() }
    }

    /// A command was answered.
    pub(super) fn note(&self, verb: usize, code: Option<Code>) {
        let outcome = match code {
            None => 0,
            code => OUTCOMES.iter().position(|(_, known)| *known == code).unwrap_or(0),
        };
        if let Some((_, counts)) = self.verbs.get(verb) {
            counts[outcome].fetch_add(1, Relaxed);
        }
    }

    /// Every count that is not zero.
    pub(super) fn seen(&self) -> Vec<SeenCommand> {
        let mut seen = Vec::new();
        for (name, counts) in &self.verbs {
            for ((outcome, _), count) in OUTCOMES.iter().zip(counts) {
                let count = count.load(Relaxed);
                if count > 0 {
                    seen.push((*name, *outcome, count));
                }
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_code_for_a_name() {
        let commands = Commands::new(&["put"]);
        for (name, code) in OUTCOMES {
            assert_eq!(name, code.map_or("ok", Code::as_str));
            commands.note(0, code);
            commands.note(7, code);
        }
        let expected: Vec<SeenCommand> = OUTCOMES.map(|(name, _)| ("put", name, 1)).to_vec();
        assert_eq!(commands.seen(), expected);
    }
}
