//! One history that meets everything once: for tests that repeat it with a fault at every call.

use crate::generate::op::{Kind, Op};
use crate::generate::rng::Rng;

/// The kinds of the ops; `script` fills in the numbers.
const PATTERN: &[Kind] = &[
    // Jobs come, some with a key, and are made durable.
    Kind::Put,
    Kind::Put,
    Kind::Put,
    Kind::Commit,
    Kind::Put,
    Kind::Put,
    Kind::Commit,
    // Consumers, and ticks of schedules.
    Kind::Advance,
    Kind::AdvanceTick,
    Kind::Tick,
    Kind::Reserve,
    Kind::Reserve,
    Kind::Ack,
    Kind::Commit,
    Kind::Chain,
    Kind::Nack,
    // Moves, in the memtable and, from the second round on, out of runs.
    Kind::Reschedule,
    Kind::Cancel,
    Kind::Kill,
    Kind::Commit,
    Kind::Reschedule,
    Kind::CancelKey,
    Kind::Lock,
    Kind::SetTopic,
    Kind::Seal,
    Kind::Write,
    // A flush with work between its steps.
    Kind::Freeze,
    Kind::Put,
    Kind::Reserve,
    Kind::FlushAction,
    Kind::FlushAction,
    Kind::Commit,
    Kind::FlushAction,
    Kind::Cancel,
    Kind::FlushAction,
    Kind::Reschedule,
    Kind::FlushAction,
    Kind::FlushAction,
    Kind::FlushAction,
    Kind::FlushAction,
    Kind::FlushAction,
    Kind::Commit,
    // A merge likewise.
    Kind::MergeBegin,
    Kind::Advance,
    Kind::Reserve,
    Kind::MergeAction,
    Kind::AdvanceTick,
    Kind::Tick,
    Kind::Revive,
    Kind::Kill,
    Kind::MergeAction,
    Kind::Commit,
    Kind::Flush,
    Kind::Release,
    Kind::Chain,
    Kind::Commit,
    Kind::Ack,
    Kind::Advance,
    Kind::ReviveTopic,
    Kind::Commit,
    Kind::Tick,
    Kind::Seal,
    Kind::Write,
    Kind::Put,
    Kind::Reserve,
];

/// Jobs of the first topic are kept as done and die into the second one; those of the second one
/// expire. See `vocabulary::settings` for the numbers.
fn settings() -> [Op; 2] {
    let set = |topic, chosen: u16, value| Op {
        kind: Kind::SetTopic,
        args: [topic, 6 * chosen + 1, value, 0, 1, 0],
    };
    [set(0, 1, 7 + 39 * 280), set(1, 72, 280)]
}

/// Ticks every 100 ms in both topics: in the first one each is given, in the second one they wait
/// for the job before. See `schedule::command` for the numbers.
fn schedules() -> [Op; 2] {
    let put = |topic, overlap: u16| Op {
        kind: Kind::Schedule,
        args: [topic, 0, 9, 60, 2 + 4 * overlap, 1 + 4 + 16],
    };
    [put(0, 2), put(1, 1)]
}

/// About 350 ops; the topic of few jobs is purged on the way.
pub fn script() -> Vec<Op> {
    let mut rng = Rng::new(7);
    let mut ops = [settings(), schedules()].concat();
    for round in 0..5 {
        for kind in PATTERN {
            ops.push(Op::random(*kind, &mut rng));
        }
        if round % 2 == 1 {
            ops.push(Op { kind: Kind::Purge, args: [2; 6] });
        }
    }
    ops
}
