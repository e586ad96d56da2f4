//! Runs histories, and makes a failing one small.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::harness::disk::op::{Kind, Op};
use crate::harness::disk::simulation::{Tally, World};

/// Where and why a history failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The op.
    pub at: usize,
    /// What was wrong.
    pub what: String,
}

/// Runs a history. `thorough` compares after every op, else now and then.
pub fn run(ops: &[Op], relaxed: bool, thorough: bool) -> Result<Tally, Failure> {
    let mut at = 0;
    let ran = catch_unwind(AssertUnwindSafe(|| {
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
    }));
    let failed = |what: String| Failure { at, what };
    match ran {
        Ok(Ok(tally)) => Ok(tally),
        Ok(Err(what)) => Err(failed(what)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            Err(failed(format!("panic: {}", text.unwrap_or_default())))
        }
    }
}

/// Takes ops out as long as it still fails, whatever the reason.
pub fn minimise(ops: &[Op], relaxed: bool) -> (Vec<Op>, Option<Failure>) {
    // Looking at everything all the time finds most failures early, and hides a few: what is asked
    // for what comes next consumes the tombstones before it.
    let thorough = run(ops, relaxed, true).is_err();
    let Err(mut failure) = run(ops, relaxed, thorough) else { return (ops.to_vec(), None) };
    let mut ops = ops[..=failure.at].to_vec();
    let mut size = ops.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < ops.len() {
            let mut fewer = ops.clone();
            fewer.drain(at..(at + size).min(ops.len()));
            match run(&fewer, relaxed, thorough) {
                Err(smaller) => {
                    fewer.truncate(smaller.at + 1);
                    (ops, failure) = (fewer, smaller);
                }
                Ok(_) => at += size,
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    (ops, Some(failure))
}
