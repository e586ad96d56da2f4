//! The ops of random histories: a kind, and numbers that are read against the state that the op
//! meets, so that a history stays meaningful when ops are taken out of it.

use super::rng::Rng;

/// One step of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// The verb or action.
    pub kind: Kind,
    /// Arguments that `CommandSource` turns into a command.
    pub args: [u16; 6],
}

/// The kind of an op: one of the verbs of `docs/design.md`, or an action of a harness. A harness
/// ignores the actions of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "verbs and actions by their names")]
#[rustfmt::skip]
pub enum Kind {
    // Commands.
    Put, Reserve, ReserveWait, ReserveId, Ack, Nack, Release, Extend, KillToken, Kill, Cancel,
    CancelKey, Reschedule, Revive, ReviveTopic, Kick, Purge, Pause, Resume, SetTopic,
    ReleaseTopic, OpenSession, CloseSession, Lock, RenewLock, Unlock, BreakLock, Withdraw, Look,
    Schedule, Chain,
    // Time, and the disk store's actions.
    Tick, Advance, AdvanceTick, AdvanceFar, StepWall, Seal, Write, Sync, Report, Commit, Freeze,
    FlushAction, Flush, MergeBegin, MergeAction, Merge, Stop, Crash, PowerOffIn,
    // Faults of Redis and of the servers on it.
    Batch, AdvanceTo, ScriptFlush, KillClients, LoseAnswer, LoseRequest, Reopen,
}

impl Op {
    /// An op with random numbers.
    pub fn random(kind: Kind, rng: &mut Rng) -> Op {
        Op { kind, args: std::array::from_fn(|_| rng.next_u64() as u16) }
    }
}

/// One of the items; each is as likely as its weight says.
pub fn weighted<T: Copy>(rng: &mut Rng, items: &[(T, u64)]) -> T {
    let mut at = rng.below(items.iter().map(|(_, weight)| weight).sum());
    for (item, weight) in items {
        if at < *weight {
            return *item;
        }
        at -= weight;
    }
    unreachable!("the number is below the sum of the weights")
}

/// A random history of `len` ops. Each has its own emphasis within the weights.
pub fn history(rng: &mut Rng, len: usize, weights: &[(Kind, u64)]) -> Vec<Op> {
    let emphasis = |rng: &mut Rng| [3, 10, 10, 25][rng.below(4) as usize];
    let weights: Vec<(Kind, u64)> =
        weights.iter().map(|(kind, weight)| (*kind, weight * emphasis(rng))).collect();
    let op = |_| Op::random(weighted(rng, &weights), rng);
    (0..len).map(op).collect()
}
