//! P4: one valid lease. P5: a stale token is refused, a good one is not. P8: bounded attempts.

use super::index::{Call, Index, Job, Take};
use crate::checker::event::{Answer, Ask, Verb};

pub(super) fn check(index: &Index) -> Result<(), String> {
    for (&id, job) in &index.jobs {
        let checks = [check_fences, check_overlap, check_stale, check_good, check_attempts];
        for check in checks {
            check(index, id, job).map_err(|text| format!("{text}{}", index.story(id)))?;
        }
    }
    Ok(())
}

/// The calls with a token of this job: what, fence, call.
fn token_calls<'i>(
    index: &'i Index,
    job: &'i Job,
) -> impl Iterator<Item = (Verb, u64, bool, &'i Call)> {
    job.tokens.iter().map(|at| index.call(*at)).filter_map(|call| match call.ask {
        Ask::Token { verb, token: (_, fence), forged, .. } => Some((verb, fence, forged, call)),
        _ => None,
    })
}

fn succeeded(call: &Call) -> bool {
    matches!(call.answer(), Some(Answer::Done | Answer::Dead))
}

/// Fences grow: with each delivery, over all processes.
fn check_fences(_index: &Index, id: u64, job: &Job) -> Result<(), String> {
    for (at, a) in job.takes.iter().enumerate() {
        for b in &job.takes[at + 1..] {
            let (before, after) = if a.told.line < b.told.line { (a, b) } else { (b, a) };
            if before.job.fence == after.job.fence {
                return Err(format!("P4: job {id}: fence {} twice", before.job.fence));
            }
            if before.told.line < after.asked.line && before.job.fence > after.job.fence {
                return Err(format!("P4: job {id}: its fence went back to {}", after.job.fence));
            }
        }
    }
    Ok(())
}

/// Nobody gets a job whose lease is still on.
fn check_overlap(index: &Index, id: u64, job: &Job) -> Result<(), String> {
    for a in job.takes.iter().filter(|take| !index.is_shaken(take.told.us)) {
        let on_until_us = a.asked.us + a.job.ttr_ms * 1_000;
        for b in &job.takes {
            let follows = index.is_one_life(a.round, b.round) && b.job.fence > a.job.fence;
            // In the drain, time is ahead of the recorded one.
            if !follows || b.told.us >= on_until_us || a.round == index.drain_round {
                continue;
            }
            let ended = token_calls(index, job).any(|(verb, fence, _, call)| {
                fence == a.job.fence && verb != Verb::Extend && call.asked.line < b.told.line
            });
            if !ended {
                return Err(format!("P4: job {id} was handed out during its lease"));
            }
        }
    }
    Ok(())
}

/// A token that was made up, or used up, or whose job was taken again, does nothing.
fn check_stale(index: &Index, id: u64, job: &Job) -> Result<(), String> {
    for (verb, fence, forged, call) in token_calls(index, job).filter(|(.., call)| succeeded(call))
    {
        let asked = call.asked.line;
        let taken_again = job.takes.iter().any(|take| {
            let after = take.job.fence > fence && take.told.line < asked;
            after && !index.is_shaken(take.told.us)
        });
        let used_up = token_calls(index, job).any(|(other, its_fence, _, before)| {
            let ends = its_fence == fence && other != Verb::Extend && succeeded(before);
            ends && before.told_before(asked)
        });
        let moved = job.reschedules.iter().map(|at| index.call(*at)).any(|before| {
            let took = job.takes.iter().find(|take| take.job.fence == fence);
            let after_take = took.is_some_and(|take| take.told.line < before.asked.line);
            after_take
                && before.told_before(asked)
                && matches!(before.answer(), Some(Answer::Changed(_)))
        });
        if forged || taken_again || used_up || moved {
            return Err(format!("P5: job {id}: {verb:?} with a stale token {fence} was done"));
        }
    }
    Ok(())
}

/// A token is good until something ends it. Only in the process that gave it: a lease that was not
/// synced is lost with the process.
fn check_good(index: &Index, id: u64, job: &Job) -> Result<(), String> {
    // A put on the key may have replaced the job.
    let Some(put) = index.put_of(job).filter(|put| put.key.is_none()) else { return Ok(()) };
    for (verb, fence, forged, call) in token_calls(index, job) {
        let Some((told, answer)) = &call.told else { continue };
        let lost = matches!(answer, Answer::Refused(code) if code == "lease_lost");
        let took = job.takes.iter().find(|take| take.job.fence == fence);
        let held = |take: &&Take| {
            index.is_one_life(take.round, call.round) && !index.is_shaken(take.told.us)
        };
        let Some(take) = took.filter(held) else { continue };
        // The last lease that runs out makes the job dead.
        let over = take.job.attempt == put.attempts_max
            && told.us >= take.asked.us + take.job.ttr_ms * 1_000;
        if over || forged || !(lost || refused_as_gone(verb, answer)) {
            continue;
        }
        if !may_have_ended(index, job, take, told.line, call) {
            return Err(format!("P5: job {id}: {verb:?} with the good token {fence}: {answer:?}"));
        }
    }
    Ok(())
}

fn refused_as_gone(verb: Verb, answer: &Answer) -> bool {
    match answer {
        Answer::Gone => true,
        Answer::Refused(code) => verb == Verb::Extend && code == "not_found",
        _ => false,
    }
}

/// Something else may have ended this lease before that line.
fn may_have_ended(index: &Index, job: &Job, take: &Take, line: usize, this: &Call) -> bool {
    let before = |call: &Call| call.asked.line < line && !call.changed_nothing();
    let used = token_calls(index, job).any(|(verb, fence, _, call)| {
        let other = !std::ptr::eq(call, this);
        other && fence == take.job.fence && verb != Verb::Extend && before(call)
    });
    let taken_again = job.takes.iter().any(|other| other.job.fence > take.job.fence);
    let removed = index.possible_ends(job).any(|call| !std::ptr::eq(call, this) && before(call));
    let moved = job.reschedules.iter().any(|at| before(index.call(*at)));
    // A reserve that was cut off by the kill may have taken it.
    let unanswered = index.reserves.iter().map(|at| index.call(*at)).any(|reserve| {
        let may_take = reserve.told.is_none() && reserve.asked.line < line;
        may_take && index.is_one_life(reserve.round, take.round)
    });
    used || taken_again || removed || moved || unanswered
}

/// Every delivery counts, except those given back and those whose record a kill lost.
fn check_attempts(index: &Index, id: u64, job: &Job) -> Result<(), String> {
    let Some(put) = index.put_of(job).filter(|put| put.key.is_none()) else { return Ok(()) };
    if let Some(take) = job.takes.iter().find(|take| take.job.attempt > put.attempts_max) {
        let (attempt, max) = (take.job.attempt, put.attempts_max);
        return Err(format!("P8: job {id} had attempt {attempt} of {max}"));
    }
    let takes: Vec<&Take> =
        job.takes.iter().filter(|take| take.round < index.drain_round).collect();
    let lost = match (takes.first(), takes.last()) {
        (Some(first), Some(last)) if !index.is_one_life(first.round, last.round) => {
            last.round - first.round
        }
        _ => takes.iter().filter(|take| index.is_shaken(take.told.us)).count(),
    };
    let releases = token_calls(index, job)
        .filter(|(verb, _, _, call)| *verb == Verb::Release && !call.changed_nothing())
        .count();
    let most = put.attempts_max as usize + lost + releases;
    if takes.len() > most {
        return Err(format!("P8: job {id} was handed out {} times, not {most}", takes.len()));
    }
    Ok(())
}
