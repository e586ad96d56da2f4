//! What happens in a random history. Numbers of an op are read against the state it meets, so a
//! history stays meaningful when others are taken out of it.

use crate::generate::rng::Rng;

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// What.
    pub kind: Kind,
    /// How.
    pub args: [u16; 5],
}

macro_rules! kinds {
    ($($name:ident $weights:expr;)*) => {
        /// What happens.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the verbs of DESIGN and the actions of a driver")]
        pub enum Kind { $($name),* }
        /// Each kind with its weight in each profile.
        const KINDS: &[(Kind, [u32; PROFILES])] = &[$((Kind::$name, $weights)),*];
    };
}

/// How many profiles there are: mixed; many flushes; flushes and dead jobs; consumers; restarts.
pub const PROFILES: usize = 5;

kinds! {
    Put         [200, 140, 100, 200, 140];
    Reserve     [120,  60,  30, 220, 100];
    ReserveWait [ 30,  10,   5,  80,  20];
    ReserveId   [ 20,  20,  20,  20,  20];
    Ack         [ 60,  40,  30, 110,  50];
    Nack        [ 60,  40,  40,  60,  50];
    Release     [ 20,  10,  10,  30,  20];
    Extend      [ 15,   5,   5,  30,  15];
    KillToken   [ 15,  15,  30,  10,  10];
    Kill        [ 25,  30,  60,  10,  20];
    Cancel      [ 45,  45,  45,  25,  40];
    CancelKey   [ 30,  30,  30,  15,  30];
    Reschedule  [ 90, 140, 140,  30,  90];
    Revive      [ 25,  30,  60,  10,  20];
    ReviveTopic [ 10,  10,  25,   5,  10];
    Kick        [ 15,  20,  15,  10,  15];
    Purge       [  7,   7,  10,   4,   7];
    Pause       [  7,   4,   4,  10,   7];
    Resume      [  7,   4,   4,  10,   7];
    SetTopic    [  7,   5,  15,   5,   7];
    OpenSession [ 10,   4,   4,  20,  15];
    CloseSession[  7,   3,   3,  15,   7];
    Lock        [ 20,   5,   5,  10,  25];
    RenewLock   [  7,   3,   3,   5,   7];
    Unlock      [ 10,   3,   3,   5,  10];
    Withdraw    [  7,   3,   3,  15,   7];
    Look        [ 30,  20,  20,  20,  20];
    Tick        [ 40,  20,  20,  60,  30];
    Advance     [ 90,  50,  30, 120,  70];
    AdvanceFar  [  4,   3,   3,   4,   4];
    StepWall    [  8,   5,   5,   8,   8];
    Seal        [ 30,  20,  20,  30,  40];
    Write       [ 20,  15,  15,  20,  30];
    Sync        [ 20,  15,  15,  20,  20];
    Report      [ 20,  15,  15,  20,  20];
    Commit      [ 90,  60,  60, 120,  60];
    Freeze      [ 50,  60,  60,  40,  40];
    FlushAction [120, 130, 130,  80, 100];
    Flush       [ 20, 120, 180,  15,  30];
    MergeBegin  [ 40,  70,  90,  30,  30];
    MergeAction [ 60,  90, 110,  40,  40];
    Merge       [  8,  40,  30,   8,   8];
    Stop        [  4,   4,   4,   3,  15];
    Crash       [ 15,  15,  15,  10,  50];
    PowerOffIn  [  6,   6,   6,   4,  25];
}

/// A random history of so many ops.
pub fn history(rng: &mut Rng, len: usize) -> Vec<Op> {
    let profile = rng.below(PROFILES as u64) as usize;
    // Each history has its own emphasis within its profile.
    let weights: Vec<u64> = KINDS
        .iter()
        .map(|(_, weights)| u64::from(weights[profile]) * [3, 10, 10, 25][rng.below(4) as usize])
        .collect();
    let total: u64 = weights.iter().sum();
    let mut ops = Vec::with_capacity(len);
    for _ in 0..len {
        let mut at = rng.below(total);
        let mut index = 0;
        while at >= weights[index] {
            at -= weights[index];
            index += 1;
        }
        let args = std::array::from_fn(|_| rng.next_u64() as u16);
        ops.push(Op { kind: KINDS[index].0, args });
    }
    ops
}
