//! What happens in a random history. Numbers of an op are read against the state it meets, so a
//! history stays meaningful when others are taken out of it.

use crate::generate::rng::Rng;

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// What.
    pub kind: Kind,
    /// How.
    pub args: [u16; 6],
}

macro_rules! kinds {
    ($($name:ident $weight:expr;)*) => {
        /// What happens.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the verbs of DESIGN and what befalls servers")]
        pub enum Kind { $($name),* }
        /// Each kind with its weight.
        const KINDS: &[(Kind, u64)] = &[$((Kind::$name, $weight)),*];
    };
}

kinds! {
    Put          220;
    Reserve      120;
    ReserveWait   50;
    ReserveId     20;
    Ack           60;
    Nack          60;
    Release       20;
    Extend        20;
    KillToken     15;
    Kill          25;
    Cancel        40;
    CancelKey     25;
    Reschedule    40;
    Revive        25;
    ReviveTopic   10;
    Kick          15;
    Purge          5;
    Pause          6;
    Resume        10;
    SetTopic      12;
    OpenSession    5;
    CloseSession   4;
    Lock          20;
    RenewLock      7;
    Unlock        12;
    Withdraw      10;
    Look          70;
    Batch         25;
    Advance       90;
    AdvanceTo     90;
    AdvanceFar     4;
    ScriptFlush    3;
    KillClients    4;
    LoseAnswer    14;
    LoseRequest    4;
    Reopen         1;
}

/// A random history of so many ops.
pub fn history(rng: &mut Rng, len: usize) -> Vec<Op> {
    // Each history has its own emphasis.
    let weights: Vec<u64> =
        KINDS.iter().map(|(_, weight)| weight * [3, 10, 10, 25][rng.below(4) as usize]).collect();
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

/// The history of a seed, and how many servers it uses.
pub fn history_of(seed: u64) -> (Vec<Op>, usize) {
    let mut rng = Rng::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let len = [30, 60, 120, 250][rng.below(4) as usize];
    let servers = 1 + usize::from(rng.chance(60));
    (history(&mut rng, len), servers)
}
