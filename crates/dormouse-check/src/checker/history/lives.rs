//! P2: never lost. P6, P7: what was acked or cancelled never comes back. P11: neither does what was
//! found gone once. P14: the counts are those of the jobs.

use std::collections::BTreeSet;

use super::index::{Index, Job};

pub(super) fn check(index: &Index) -> Result<(), String> {
    check_counts(index)?;
    for (&id, job) in &index.jobs {
        check_final(index, id, job)?;
        check_kept(index, id, job)?;
    }
    check_gone(index)
}

/// The drain accounts for every job.
pub(super) fn check_drained(index: &Index) -> Result<(), String> {
    match index.dumps.last() {
        Some(last) if last.jobs.is_empty() => Ok(()),
        last => Err(format!("P2: the drain left {:?}", last.map(|dump| &dump.jobs))),
    }
}

fn check_counts(index: &Index) -> Result<(), String> {
    for dump in &index.dumps {
        let counted: u64 = dump.counts.iter().sum();
        let listed = dump.jobs.len() as u64;
        if counted != listed {
            let line = dump.line;
            return Err(format!("P14: line {line}: {counted} jobs are counted, {listed} listed"));
        }
    }
    Ok(())
}

/// At most one call removed the job, and after it nobody saw the job.
fn check_final(index: &Index, id: u64, job: &Job) -> Result<(), String> {
    let ends: Vec<_> = index.ends(job).collect();
    let wrong = |what: &str| Err(format!("{what}{}", index.story(id)));
    if ends.len() > 1 {
        return wrong(&format!("P6, P7: job {id} was removed {} times", ends.len()));
    }
    let Some((told, _)) = ends.first().and_then(|call| call.told.as_ref()) else { return Ok(()) };
    if job.takes.iter().any(|take| take.asked.line > told.line) {
        return wrong(&format!("P6, P7: job {id} was handed out after it was removed"));
    }
    if index.dumps.iter().any(|dump| dump.line > told.line && dump.jobs.contains_key(&id)) {
        return wrong(&format!("P6, P7: job {id} is there after it was removed"));
    }
    Ok(())
}

/// A job that was seen is in every dump until something may have removed it.
fn check_kept(index: &Index, id: u64, job: &Job) -> Result<(), String> {
    let Some(seen) = job.seen else { return Ok(()) };
    let end = index.possible_ends(job).map(|call| call.asked.line).min().unwrap_or(usize::MAX);
    let lost = index
        .dumps
        .iter()
        .find(|dump| (seen..end).contains(&dump.line) && !dump.jobs.contains_key(&id));
    match lost {
        Some(dump) => Err(format!("P2: job {id} is lost on line {}{}", dump.line, index.story(id))),
        None => Ok(()),
    }
}

/// Once a job is not in a dump any more, it is in no later one, and handed out no more.
fn check_gone(index: &Index) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for (at, dump) in index.dumps.iter().enumerate() {
        let gone: Vec<u64> =
            known.iter().filter(|id| !dump.jobs.contains_key(id)).copied().collect();
        for id in gone {
            known.remove(&id);
            let later = index.dumps[at + 1..].iter().any(|dump| dump.jobs.contains_key(&id));
            let taken = index
                .jobs
                .get(&id)
                .is_some_and(|job| job.takes.iter().any(|take| take.told.line > dump.line));
            if later || taken {
                let story = index.story(id);
                return Err(format!("P11: job {id} came back after line {}{story}", dump.line));
            }
        }
        known.extend(dump.jobs.keys());
    }
    Ok(())
}
