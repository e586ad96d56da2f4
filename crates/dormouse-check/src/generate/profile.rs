//! How often each kind of op occurs, and which names a history uses: few, so that things meet.

use super::op::{Kind, Op, history};
use super::rng::Rng;

/// Names and numbers of a history.
#[derive(Debug)]
pub struct Vocabulary {
    pub(crate) keys: &'static [&'static str],
    /// None = the default.
    pub(crate) priorities: &'static [Option<u32>],
    /// Whether jobs expire, leave for dead topics and are kept as done, and acks put jobs.
    pub(crate) ends: bool,
    /// Whether topics have limits and jobs have groups.
    pub(crate) limits: bool,
}

/// Names for histories of the disk store.
pub const DISK_VOCABULARY: Vocabulary = Vocabulary {
    keys: &["k", "l"],
    priorities: &[Some(1), Some(7), Some(1_024)],
    ends: true,
    limits: true,
};

/// Names for histories of Redis.
pub const REDIS_VOCABULARY: Vocabulary = Vocabulary {
    keys: &["k", "l", "m"],
    priorities: &[None, Some(0), Some(7), Some(1_024), Some(u32::MAX)],
    ends: true,
    limits: true,
};

/// Weights in histories of the disk store, in five profiles: mixed; many flushes; flushes and dead
/// jobs; consumers; restarts.
#[rustfmt::skip]
const DISK: &[(Kind, [u64; 5])] = &[
    (Kind::Put,          [200, 140, 100, 200, 140]),
    (Kind::Reserve,      [120,  60,  30, 220, 100]),
    (Kind::ReserveWait,  [ 30,  10,   5,  80,  20]),
    (Kind::ReserveId,    [ 20,  20,  20,  20,  20]),
    (Kind::Ack,          [ 60,  40,  30, 110,  50]),
    (Kind::Chain,        [ 25,  20,  15,  40,  25]),
    (Kind::Nack,         [ 60,  40,  40,  60,  50]),
    (Kind::Release,      [ 20,  10,  10,  30,  20]),
    (Kind::Extend,       [ 15,   5,   5,  30,  15]),
    (Kind::KillToken,    [ 15,  15,  30,  10,  10]),
    (Kind::Kill,         [ 25,  30,  60,  10,  20]),
    (Kind::Cancel,       [ 45,  45,  45,  25,  40]),
    (Kind::CancelKey,    [ 30,  30,  30,  15,  30]),
    (Kind::Reschedule,   [ 90, 140, 140,  30,  90]),
    (Kind::Revive,       [ 25,  30,  60,  10,  20]),
    (Kind::ReviveTopic,  [ 10,  10,  25,   5,  10]),
    (Kind::Kick,         [ 15,  20,  15,  10,  15]),
    (Kind::ReleaseTopic, [  7,   4,   4,  12,   7]),
    (Kind::Purge,        [  7,   7,  10,   4,   7]),
    (Kind::Pause,        [  7,   4,   4,  10,   7]),
    (Kind::Resume,       [  7,   4,   4,  10,   7]),
    (Kind::SetTopic,     [ 15,  15,  25,  12,  15]),
    (Kind::OpenSession,  [ 10,   4,   4,  20,  15]),
    (Kind::CloseSession, [  7,   3,   3,  15,   7]),
    (Kind::Lock,         [ 20,   5,   5,  10,  25]),
    (Kind::RenewLock,    [  7,   3,   3,   5,   7]),
    (Kind::Unlock,       [ 10,   3,   3,   5,  10]),
    (Kind::BreakLock,    [  5,   2,   2,   3,   5]),
    (Kind::Withdraw,     [  7,   3,   3,  15,   7]),
    (Kind::Look,         [ 30,  20,  20,  20,  20]),
    (Kind::Schedule,     [ 40,   0,  20,   0,  40]),
    (Kind::Tick,         [ 40,  20,  20,  60,  30]),
    (Kind::Advance,      [ 90,  50,  30, 120,  70]),
    (Kind::AdvanceFar,   [  4,   3,   3,   4,   4]),
    (Kind::AdvanceTick,  [ 20,  10,  10,  20,  20]),
    (Kind::StepWall,     [  8,   5,   5,   8,   8]),
    (Kind::Seal,         [ 30,  20,  20,  30,  40]),
    (Kind::Write,        [ 20,  15,  15,  20,  30]),
    (Kind::Sync,         [ 20,  15,  15,  20,  20]),
    (Kind::Report,       [ 20,  15,  15,  20,  20]),
    (Kind::Commit,       [ 90,  60,  60, 120,  60]),
    (Kind::Freeze,       [ 50,  60,  60,  40,  40]),
    (Kind::FlushAction,  [120, 130, 130,  80, 100]),
    (Kind::Flush,        [ 20, 120, 180,  15,  30]),
    (Kind::MergeBegin,   [ 40,  70,  90,  30,  30]),
    (Kind::MergeAction,  [ 60,  90, 110,  40,  40]),
    (Kind::Merge,        [  8,  40,  30,   8,   8]),
    (Kind::Stop,         [  4,   4,   4,   3,  15]),
    (Kind::Crash,        [ 15,  15,  15,  10,  50]),
    (Kind::PowerOffIn,   [  6,   6,   6,   4,  25]),
];

/// Weights in histories of Redis.
#[rustfmt::skip]
const REDIS: &[(Kind, u64)] = &[
    (Kind::Put,          220),
    (Kind::Reserve,      120),
    (Kind::ReserveWait,  50),
    (Kind::ReserveId,    20),
    (Kind::Ack,          60),
    (Kind::Chain,        25),
    (Kind::Nack,         60),
    (Kind::Release,      20),
    (Kind::Extend,       20),
    (Kind::KillToken,    15),
    (Kind::Kill,         25),
    (Kind::Cancel,       40),
    (Kind::CancelKey,    25),
    (Kind::Reschedule,   40),
    (Kind::Revive,       25),
    (Kind::ReviveTopic,  10),
    (Kind::Kick,         15),
    (Kind::ReleaseTopic, 7),
    (Kind::Purge,        5),
    (Kind::Pause,        6),
    (Kind::Resume,       10),
    (Kind::SetTopic,     12),
    (Kind::OpenSession,  5),
    (Kind::CloseSession, 4),
    (Kind::Lock,         20),
    (Kind::RenewLock,    7),
    (Kind::Unlock,       12),
    (Kind::BreakLock,    6),
    (Kind::Withdraw,     10),
    (Kind::Look,         70),
    (Kind::Batch,        25),
    (Kind::Advance,      90),
    (Kind::AdvanceTo,    90),
    (Kind::AdvanceFar,   4),
    (Kind::ScriptFlush,  3),
    (Kind::KillClients,  4),
    (Kind::LoseAnswer,   14),
    (Kind::LoseRequest,  4),
    (Kind::Reopen,       1),
];

/// Of so many histories of Redis one has schedules; while there are some, nobody waits for jobs.
const SCHEDULES_EVERY: u64 = 3;

/// The generator of a seed.
fn rng_of(seed: u64) -> Rng {
    Rng::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
}

/// The disk store's history of a seed, and whether answers leave before the sync in it.
pub fn disk_history(seed: u64) -> (Vec<Op>, bool) {
    let mut rng = rng_of(seed);
    let relaxed = rng.chance(15);
    let len = [30, 60, 120, 250, 400][rng.below(5) as usize];
    let profile = rng.below(5) as usize;
    let weights: Vec<(Kind, u64)> =
        DISK.iter().map(|(kind, weights)| (*kind, weights[profile])).collect();
    (history(&mut rng, len, &weights), relaxed)
}

/// Redis' history of a seed, and how many servers it uses.
pub fn redis_history(seed: u64) -> (Vec<Op>, usize) {
    let mut rng = rng_of(seed);
    let len = [30, 60, 120, 250][rng.below(4) as usize];
    let servers = 1 + usize::from(rng.chance(60));
    let mut weights = REDIS.to_vec();
    if seed.is_multiple_of(SCHEDULES_EVERY) {
        weights.push((Kind::Schedule, 120));
    }
    (history(&mut rng, len, &weights), servers)
}
