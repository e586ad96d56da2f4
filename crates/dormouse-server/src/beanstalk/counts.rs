//! Counts of well-formed commands, whatever their reply.

use std::sync::atomic::{AtomicU64, Ordering};

/// The commands that are counted, in the order in which `stats` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedCommand {
    Put,
    Peek,
    PeekReady,
    PeekDelayed,
    PeekBuried,
    Reserve,
    ReserveWithTimeout,
    Delete,
    Release,
    Use,
    Watch,
    Ignore,
    Bury,
    Kick,
    Touch,
    Stats,
    StatsJob,
    StatsTube,
    ListTubes,
    ListTubeUsed,
    ListTubesWatched,
    PauseTube,
}

/// Their names, in the same order.
pub(super) const NAMES: [&str; COUNTED] = [
    "put",
    "peek",
    "peek-ready",
    "peek-delayed",
    "peek-buried",
    "reserve",
    "reserve-with-timeout",
    "delete",
    "release",
    "use",
    "watch",
    "ignore",
    "bury",
    "kick",
    "touch",
    "stats",
    "stats-job",
    "stats-tube",
    "list-tubes",
    "list-tube-used",
    "list-tubes-watched",
    "pause-tube",
];

const COUNTED: usize = 22;

/// Counts of all connections.
#[derive(Debug, Default)]
pub(super) struct CommandCounts([AtomicU64; COUNTED]);

impl CommandCounts {
    pub(super) fn count(&self, what: CountedCommand) {
        self.0[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Names and counts, in the order of `stats`.
    pub(super) fn read(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.0.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_the_commands() {
        assert_eq!(NAMES[CountedCommand::Put as usize], "put");
        assert_eq!(NAMES[CountedCommand::Touch as usize], "touch");
        assert_eq!(NAMES[CountedCommand::PauseTube as usize], "pause-tube");
        let commands = CommandCounts::default();
        commands.count(CountedCommand::Kick);
        let counted: Vec<_> = commands.read().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [("kick", 1)]);
    }
}
