//! Makes a failing history small.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::op::Op;

/// Where and why a history failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The index of the op; the number of ops = at the end.
    pub at: usize,
    /// The violated rule.
    pub what: String,
    /// The history up to the violation, if the harness keeps a log.
    pub log: Vec<String>,
}

/// Runs something; a panic is an error like any other.
pub fn catch<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

/// Takes ops out while the history still fails, whatever the reason, and while `goes_on`.
pub fn minimise<T>(
    ops: &[Op],
    mut failure: Failure,
    goes_on: impl Fn() -> bool,
    run: impl Fn(&[Op]) -> Result<T, Failure>,
) -> (Vec<Op>, Failure) {
    let mut ops = ops[..(failure.at + 1).min(ops.len())].to_vec();
    let mut size = ops.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < ops.len() && goes_on() {
            let mut fewer = ops.clone();
            fewer.drain(at..(at + size).min(ops.len()));
            match run(&fewer) {
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
