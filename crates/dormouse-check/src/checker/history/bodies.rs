//! P3: nothing is invented. Every body comes from one put, and each put makes one job at most.

use std::collections::BTreeMap;

use super::index::Index;
use crate::checker::event::{Answer, Ask};

pub(super) fn check(index: &Index) -> Result<(), String> {
    let mut jobs_by_put = BTreeMap::new();
    let takes = index.jobs.values().flat_map(|job| &job.takes).map(|take| {
        let job = &take.job;
        (take.told.line, job.id, job.number, &job.topic, &job.key)
    });
    let dumped = index.dumps.iter().flat_map(|dump| {
        let jobs = dump.jobs.values();
        jobs.map(move |job| (dump.line, job.id, job.number, &job.topic, &job.key))
    });
    for (line, id, number, topic, key) in takes.chain(dumped) {
        let wrong = |what: &str| Err(format!("P3: job {id}: {what}{}", index.story(id)));
        let Some(number) = number else { return wrong("its body comes from no put") };
        let Some(call) = index.puts.get(&number).map(|at| index.call(*at)) else {
            return wrong("its body comes from a put that nobody made");
        };
        let Ask::Put(put) = &call.ask else { continue };
        if call.asked.line > line {
            return wrong("it was there before its put");
        }
        if put.topic != *topic {
            return wrong("it is in another topic than it was put to");
        }
        if key.is_some() && put.key != *key {
            return wrong("it has another key than it was put with");
        }
        match call.answer() {
            Some(Answer::Created(told) | Answer::Replaced(told)) if *told != id => {
                return wrong("its put was answered with another id");
            }
            Some(Answer::Duplicate(_) | Answer::Refused(_)) => {
                return wrong("its put was answered with nothing new");
            }
            _ => {}
        }
        if *jobs_by_put.entry(number).or_insert(id) != id {
            return wrong("its put made another job already");
        }
    }
    Ok(())
}
