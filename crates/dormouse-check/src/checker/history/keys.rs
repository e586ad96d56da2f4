//! P9: a key has one job at a time, also across kills; after the ack it stays taken for its time.
//! Dead jobs lose their keys to new ones.
//!
//! Only keys of the kinds `keep` and `hold` are looked at: of the others jobs are replaced, and
//! keys pass from leased jobs to new ones.

use super::index::{Call, Index, Job};
use crate::checker::event::{Answer, Ask, Verb};
use crate::harness::process::load::HOLD_MS;

pub(super) fn check(index: &Index) -> Result<(), String> {
    for ((topic, key), puts) in &index.keys {
        if key.starts_with("change-") {
            continue;
        }
        let created: Vec<(u64, &Call)> = puts
            .iter()
            .map(|at| index.call(*at))
            .filter_map(|call| match call.answer() {
                Some(Answer::Created(id)) => Some((*id, call)),
                _ => None,
            })
            .collect();
        for (id, call) in &created {
            for (other, later) in &created {
                let (told, asked) = (call.told.as_ref().map(|(mark, _)| mark), later.asked);
                if told.is_some_and(|told| told.line < asked.line) {
                    check_free(index, *id, later).map_err(|text| {
                        let stories = index.story(*id) + &index.story(*other);
                        format!("P9: {topic}, key {key}: {text}{stories}")
                    })?;
                }
            }
        }
    }
    check_dumps(index)
}

/// The key of this job is free when that put makes another one.
fn check_free(index: &Index, id: u64, later: &Call) -> Result<(), String> {
    let (Some(job), Some((told, _))) = (index.jobs.get(&id), &later.told) else { return Ok(()) };
    if may_be_dead(index, job, told.line) {
        return Ok(());
    }
    let ends: Vec<&Call> =
        index.possible_ends(job).filter(|call| call.asked.line < told.line).collect();
    if ends.is_empty() {
        return Err(format!("job {id} has it, yet a put made another job"));
    }
    let held = index.put_of(job).is_some_and(|put| put.key_ttl_ms > 0);
    let acked = |call: &&&Call| matches!(call.ask, Ask::Token { verb: Verb::Ack, .. });
    let only_ack = if ends.len() == 1 { ends.first().filter(acked) } else { None };
    // Its hold began when the ack was applied, after it was asked.
    if let Some(ack) = only_ack.filter(|_| held)
        && later.round < index.drain_round
        && told.us < ack.asked.us + HOLD_MS as u64 * 1_000
    {
        return Err(format!("job {id} was acked and holds it, yet a put made another job"));
    }
    Ok(())
}

/// Its last attempt was taken before that line, or may have been: of an unanswered reserve nobody
/// knows what it took.
fn may_be_dead(index: &Index, job: &Job, line: usize) -> bool {
    let Some(put) = index.put_of(job) else { return false };
    let taken = job.takes.iter().filter(|take| take.asked.line < line);
    let attempts = taken.map(|take| take.job.attempt as usize).max().unwrap_or(0);
    let reserves = index.reserves.iter().map(|at| index.call(*at));
    let unanswered = reserves.filter(|call| call.told.is_none() && call.asked.line < line);
    attempts + unanswered.count() >= put.attempts_max as usize
}

/// No two jobs of a dump have the same key, whatever its kind.
fn check_dumps(index: &Index) -> Result<(), String> {
    for dump in &index.dumps {
        let mut seen = std::collections::BTreeMap::new();
        for job in dump.jobs.values() {
            let Some(key) = &job.key else { continue };
            if let Some(other) = seen.insert((&job.topic, key), job.id) {
                let stories = index.story(other) + &index.story(job.id);
                return Err(format!("P9: jobs {other} and {} have key {key}{stories}", job.id));
            }
        }
    }
    Ok(())
}
