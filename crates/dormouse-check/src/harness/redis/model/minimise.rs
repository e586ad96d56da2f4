//! Runs histories, and makes a failing one small.

use std::time::{Duration, Instant};

use crate::generate::minimise::{self, Failure, catch};
use crate::generate::op::Op;
use crate::harness::redis::model::lockstep::World;
use crate::harness::redis::model::system::Rig;

/// How long a failing history is made smaller.
const EFFORT: Duration = Duration::from_secs(60);

/// Runs a history; returns how many commands were compared.
pub fn run(rig: &Rig, ops: &[Op], servers: usize) -> Result<u64, Failure> {
    let (mut at, mut log) = (0, Vec::new());
    let ran = catch(|| {
        let mut world = World::new(rig, servers);
        let mut go = || {
            for (index, op) in ops.iter().enumerate() {
                at = index;
                world.run(op)?;
            }
            at = ops.len();
            world.finish()
        };
        let ended = go();
        log = std::mem::take(&mut world.log);
        ended.map(|()| world.steps)
    });
    ran.map_err(|what| Failure { at, what, log })
}

/// Takes ops out while the history still fails, whatever the reason, and while there is time.
pub fn minimise(rig: &Rig, ops: &[Op], servers: usize, failure: Failure) -> (Vec<Op>, Failure) {
    let began = Instant::now();
    let goes_on = || began.elapsed() < EFFORT;
    minimise::minimise(ops, failure, goes_on, |ops| run(rig, ops, servers))
}
