//! Ids of jobs on both sides.
//!
//! The original spends an id on a put that it refuses for its end, ours does not. So a job has a
//! number here, which is its id on our side, and may have another id on the other side.

/// JobTarget server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    Original,
}

/// Knows what id each put is to get, before it is answered.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// Those of the original, by number.
    original: Vec<u64>,
    spent: u64,
}

impl Ids {
    /// A put that is accepted.
    pub(crate) fn put(&mut self) {
        self.spent += 1;
        self.original.push(self.spent);
    }

    /// A put whose line is accepted and whose body is not.
    pub(crate) fn refused(&mut self) {
        self.spent += 1;
    }

    /// The number of the last job.
    pub(crate) fn last(&self) -> u64 {
        self.original.len() as u64
    }

    /// The job's id on a side; an id without a job is the same on both.
    pub(crate) fn id(&self, number: u64, side: Side) -> u64 {
        let at = usize::try_from(number).unwrap_or(0).checked_sub(1);
        let original = at.and_then(|at| self.original.get(at)).copied().unwrap_or(number);
        if side == Side::Ours { number } else { original }
    }

    /// The number of a job that a side has named.
    pub(crate) fn number(&self, id: u64, side: Side) -> Option<u64> {
        match side {
            Side::Ours => Some(id),
            Side::Original => self.original.binary_search(&id).ok().map(|at| at as u64 + 1),
        }
    }
}
