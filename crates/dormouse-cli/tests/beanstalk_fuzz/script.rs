//! Commands whose ids are filled in for each side.

use crate::ids::{Ids, Side};

/// A part of a command.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Text(Vec<u8>),
    /// The id of the job with this number.
    Job(u64),
}

/// One command, or several.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) commands: u64,
    /// Jobs that are buried within the same millisecond are kicked in another order.
    pub(crate) buries: bool,
}

impl Script {
    /// A line, or a line and a body, without ids.
    pub(crate) fn text(text: impl Into<Vec<u8>>) -> Script {
        Script { pieces: vec![Piece::Text(text.into())], commands: 1, buries: false }
    }

    /// A line about a job.
    pub(crate) fn about(verb: &str, number: u64, rest: &str) -> Script {
        let before = Piece::Text(format!("{verb} ").into_bytes());
        let after = Piece::Text(format!("{rest}\r\n").into_bytes());
        let pieces = vec![before, Piece::Job(number), after];
        Script { pieces, commands: 1, buries: verb == "bury" }
    }

    pub(crate) fn append(&mut self, mut other: Script) {
        self.pieces.append(&mut other.pieces);
        self.commands += other.commands;
        self.buries |= other.buries;
    }

    pub(crate) fn begins_with(&self, text: &[u8]) -> bool {
        matches!(self.pieces.first(), Some(Piece::Text(first)) if first.starts_with(text))
    }

    /// The bytes for one side.
    pub(crate) fn bytes(&self, ids: &Ids, side: Side) -> Vec<u8> {
        let bytes = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Job(number) => ids.id(*number, side).to_string().into_bytes(),
        });
        bytes.collect::<Vec<_>>().concat()
    }
}
