//! Runs histories, and makes a failing one small.

use crate::generate::minimise::{self, Failure, catch};
use crate::generate::op::{Kind, Op};
use crate::harness::disk::simulation::{Tally, World};

/// Runs a history. `thorough` compares after every op, else now and then.
pub fn run(ops: &[Op], relaxed: bool, thorough: bool) -> Result<Tally, Failure> {
    let mut at = 0;
    let ran = catch(|| {
        let mut world = World::new(relaxed)?;
        for (index, op) in ops.iter().enumerate() {
            at = index;
            world.run(op)?;
            let looks = matches!(
                op.kind,
                Kind::Crash | Kind::Stop | Kind::Freeze | Kind::Flush | Kind::Merge
            );
            if thorough || looks || index % 4 == 0 {
                world.check(op.args[0] % 2 == 0)?;
            }
        }
        world.check(true)?;
        Ok(world.tally)
    });
    ran.map_err(|what| Failure { at, what, log: Vec::new() })
}

/// Takes ops out while the history still fails, whatever the reason.
pub fn minimise(ops: &[Op], relaxed: bool) -> (Vec<Op>, Option<Failure>) {
    // Comparing everything after each op finds most failures early, and hides a few: a look at the
    // next jobs consumes the tombstones before them.
    let thorough = run(ops, relaxed, true).is_err();
    let Err(failure) = run(ops, relaxed, thorough) else { return (ops.to_vec(), None) };
    let run = |ops: &[Op]| run(ops, relaxed, thorough);
    let (ops, failure) = minimise::minimise(ops, failure, || true, run);
    (ops, Some(failure))
}
