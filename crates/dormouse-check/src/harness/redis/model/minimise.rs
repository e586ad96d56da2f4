//! Runs histories, and makes a failing one small.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::harness::redis::model::lockstep::World;
use crate::harness::redis::model::op::Op;
use crate::harness::redis::model::system::Rig;

/// How long a failing history is made smaller.
const EFFORT: Duration = Duration::from_secs(60);

/// Where and why a history failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The op; as many as there are = at the end.
    pub at: usize,
    /// What was wrong.
    pub what: String,
    /// What happened until then.
    pub log: Vec<String>,
}

/// Runs a history; gives how many commands were compared.
pub fn run(rig: &Rig, ops: &[Op], servers: usize) -> Result<u64, Failure> {
    let (mut at, mut log) = (0, Vec::new());
    let ran = catch_unwind(AssertUnwindSafe(|| {
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
    }));
    let what = match ran {
        Ok(Ok(steps)) => return Ok(steps),
        Ok(Err(what)) => what,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            format!("panic: {}", text.unwrap_or_default())
        }
    };
    Err(Failure { at, what, log })
}

/// Takes ops out as long as it still fails, whatever the reason, and there is time.
pub fn minimise(rig: &Rig, ops: &[Op], servers: usize, failure: Failure) -> (Vec<Op>, Failure) {
    let (began, mut failure) = (Instant::now(), failure);
    let mut ops = ops[..(failure.at + 1).min(ops.len())].to_vec();
    let mut size = ops.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < ops.len() && began.elapsed() < EFFORT {
            let mut fewer = ops.clone();
            fewer.drain(at..(at + size).min(ops.len()));
            match run(rig, &fewer, servers) {
                Err(smaller) => {
                    fewer.truncate(smaller.at + 1);
                    (ops, failure) = (fewer, smaller);
                }
                Ok(_) => at += size,
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    (ops, failure)
}
