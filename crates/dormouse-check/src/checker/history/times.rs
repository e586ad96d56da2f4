//! P1: never early. Only jobs without a key: of others the due time may have been replaced.

use super::index::{Call, Index, Job, Take};
use crate::checker::event::{Ask, Verb};

/// The recorded wall clock and the steady one that delays run on may drift apart a little.
const TOLERANCE_US: u64 = 1_000;

pub(super) fn check(index: &Index) -> Result<(), String> {
    for (&id, job) in &index.jobs {
        if index.put_of(job).is_none_or(|put| put.key.is_some()) {
            continue;
        }
        for take in job.takes.iter().filter(|take| take.round < index.drain_round) {
            if let Some(due_us) = due_us(index, job, take)
                && take.told.us + TOLERANCE_US < due_us
            {
                let early_us = due_us - take.told.us;
                return Err(format!("P1: job {id} came {early_us} us early{}", index.story(id)));
            }
        }
    }
    Ok(())
}

/// The earliest instant at which this delivery is right, if it is known.
fn due_us(index: &Index, job: &Job, take: &Take) -> Option<u64> {
    let moved = |since: usize| {
        let mut calls = job.reschedules.iter().map(|at| index.call(*at));
        calls.any(|call| {
            !call.changed_nothing()
                && call.asked.line < take.told.line
                && call.told.as_ref().is_none_or(|(mark, _)| mark.line > since)
        })
    };
    let before = job.takes.iter().filter(|other| other.job.fence < take.job.fence);
    let Some(previous) = before.max_by_key(|other| other.job.fence) else {
        // A delivery without a recorded answer may have happened before, and been nacked.
        let put = index.call(*index.puts.get(&take.job.number?)?);
        let known = take.job.attempt == 1 && !moved(put.asked.line);
        return put_due_us(put).filter(|_| known);
    };
    let nack =
        job.tokens.iter().map(|at| index.call(*at)).find_map(|call| match call.ask {
            Ask::Token {
                verb: Verb::Nack, token: (_, fence), delay_ms: Some(delay_ms), ..
            } if fence == previous.job.fence && !call.changed_nothing() => Some((call, delay_ms)),
            _ => None,
        });
    let (call, delay_ms) = nack.filter(|(call, _)| call.told.is_some())?;
    let follows = take.job.attempt == previous.job.attempt + 1
        && index.is_one_life(take.round, previous.round);
    let known = follows && !moved(call.asked.line);
    known.then_some(call.asked.us + delay_ms as u64 * 1_000)
}

fn put_due_us(call: &Call) -> Option<u64> {
    let Ask::Put(put) = &call.ask else { return None };
    match (put.delay_ms, put.at_ms) {
        (_, Some(at_ms)) => Some(at_ms as u64 * 1_000),
        (Some(delay_ms), None) => Some(call.asked.us + delay_ms as u64 * 1_000),
        (None, None) => Some(call.asked.us),
    }
}
