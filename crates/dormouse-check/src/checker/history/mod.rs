//! Checks a history: the calls and answers of many processes that were all killed.
//!
//! The calls of different threads overlap, and a call without an answer may or may not have
//! happened; so a rule speaks only where every order of events would break it. Line numbers order
//! events: an answer on an earlier line was given before a call on a later line was made.
//!
//! | property | where |
//! |---|---|
//! | P1 never early | `times` |
//! | P2 never lost, P6 ack is final, P7 cancel is final, P11 nothing comes back | `lives` |
//! | P3 nothing invented | `bodies` |
//! | P4 one valid lease, P5 stale is refused, P8 bounded attempts | `leases` |
//! | P9 one job per key | `keys` |
//! | P14 counts are right | `lives` |

mod bodies;
mod index;
mod keys;
mod leases;
mod lives;
mod times;

use std::io::{self, Write};
use std::path::Path;

use crate::checker::event::Event;
use index::Index;

/// Events of all processes, in their order.
#[derive(Clone, Debug, Default)]
pub struct History {
    rounds: Vec<Vec<Event>>,
    store: Store,
}

/// Properties of the store besides durability.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    /// It outlives its clients: a call of one round may happen in a later one, and leases go on.
    lasting: bool,
    /// From when to when, by the wall clock, leases that were given may have been lost.
    shaken_us: Vec<(u64, u64)>,
}

/// Counts of a campaign without a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Processes, the last one not killed.
    pub rounds: usize,
    /// Calls made.
    pub calls: usize,
    /// Calls whose answer a fault cut off.
    pub unanswered: usize,
    /// Jobs that were seen.
    pub jobs: usize,
    /// Deliveries.
    pub takes: usize,
}

impl History {
    /// Of a store that is not killed with its clients.
    pub fn lasting() -> History {
        History { store: Store { lasting: true, ..Store::default() }, ..History::default() }
    }

    /// Between these instants of the wall clock the store lost what it had not confirmed: leases,
    /// and jobs whose put was answered with `unconfirmed`.
    pub fn shaken(&mut self, from_us: u64, to_us: u64) {
        self.store.shaken_us.push((from_us, to_us));
    }

    /// The events of one more process.
    pub fn add_round(&mut self, events: Vec<Event>) {
        self.rounds.push(events);
    }

    /// All properties over all jobs and keys; the last process was the drain.
    pub fn check(&self) -> Result<Summary, String> {
        let index = Index::new(&self.rounds, &self.store, true)?;
        lives::check_drained(&index)?;
        self.check_index(&index)
    }

    /// The same before the drain.
    pub fn check_killed(&self) -> Result<Summary, String> {
        self.check_index(&Index::new(&self.rounds, &self.store, false)?)
    }

    fn check_index(&self, index: &Index) -> Result<Summary, String> {
        bodies::check(index)?;
        lives::check(index)?;
        leases::check(index)?;
        keys::check(index)?;
        times::check(index)?;
        Ok(Summary {
            rounds: self.rounds.len(),
            calls: index.calls.len(),
            unanswered: index.calls.iter().filter(|call| call.told.is_none()).count(),
            jobs: index.jobs.len(),
            takes: index.jobs.values().map(|job| job.takes.len()).sum(),
        })
    }

    /// Keeps the events for a look.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = io::BufWriter::new(std::fs::File::create(path)?);
        for event in self.rounds.iter().flatten() {
            serde_json::to_writer(&mut file, event)?;
            file.write_all(b"\n")?;
        }
        file.flush()
    }
}

#[cfg(test)]
mod tests;
