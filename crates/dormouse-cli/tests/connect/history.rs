//! What workers saw, and whether each second delivery had a reason.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use dormouse::{End, Job, JobId, Token};

/// Answers to a reserve do not wait for the disk (docs/design.md): a kill so soon after one may
/// forget the lease. Generous, for a busy machine.
const FORGOTTEN: Duration = Duration::from_millis(500);
/// Two clocks of one machine, rounded to ms.
const ROUNDING: Duration = Duration::from_millis(5);

/// One delivery of a job.
struct Delivery {
    body: String,
    token: Token,
    attempt: u32,
    started_at: SystemTime,
    reserved_at: SystemTime,
    lease_ends_at: SystemTime,
    /// When its handler returned.
    returned_at: Option<SystemTime>,
    /// How it ended, and when the worker heard that.
    heard: Option<(End, SystemTime)>,
}

/// All deliveries, in their order.
#[derive(Clone, Default)]
pub(crate) struct History(Arc<Mutex<BTreeMap<JobId, Vec<Delivery>>>>);

/// Second deliveries by their reason.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    pub(crate) jobs: usize,
    /// After a lease ended, an answer was lost, or the job was given back.
    pub(crate) fine: usize,
    /// A kill forgot a lease that was just given.
    pub(crate) forgotten: usize,
    /// All else.
    pub(crate) wrong: Vec<String>,
    /// Bodies with a key that became two jobs.
    pub(crate) doubled: Vec<String>,
}

impl History {
    fn with<T>(&self, job: &Job, change: impl FnOnce(&mut Vec<Delivery>) -> T) -> T {
        change(self.0.lock().expect("no panic").entry(job.id()).or_default())
    }

    /// A handler begins; gives the number of this delivery of its job.
    pub(crate) fn start(&self, job: &Job) -> usize {
        let delivery = Delivery {
            body: job.text().expect("text").to_owned(),
            token: job.token(),
            attempt: job.attempt(),
            started_at: SystemTime::now(),
            reserved_at: job.expires_at() - job.ttr(),
            lease_ends_at: job.expires_at(),
            returned_at: None,
            heard: None,
        };
        self.with(job, |all| {
            all.push(delivery);
            all.len() - 1
        })
    }

    /// Its handler returns.
    pub(crate) fn returned(&self, job: &Job, number: usize) {
        self.with(job, |all| all[number].returned_at = Some(SystemTime::now()));
    }

    /// The server has answered how it ended.
    pub(crate) fn heard(&self, job: &Job, end: End) {
        self.with(job, |all| {
            let mine = all.iter_mut().find(|delivery| delivery.token == job.token());
            if let Some(delivery) = mine {
                delivery.heard = Some((end, SystemTime::now()));
            }
        });
    }

    /// Whether a job with this body was handled.
    pub(crate) fn bodies(&self) -> Vec<String> {
        let all = self.0.lock().expect("no panic");
        all.values().flatten().map(|delivery| delivery.body.clone()).collect()
    }

    /// Looks at all jobs that were delivered more than once.
    pub(crate) fn judge(&self, kills: &[(SystemTime, SystemTime)]) -> Verdicts {
        let all = self.0.lock().expect("no panic");
        let mut verdicts = Verdicts { jobs: all.len(), ..Verdicts::default() };
        let mut ids = BTreeMap::<&str, usize>::new();
        for (id, deliveries) in &*all {
            *ids.entry(&deliveries[0].body).or_default() += 1;
            for pair in deliveries.windows(2) {
                let (first, second) = (&pair[0], &pair[1]);
                match why(first, second, kills) {
                    Some(Reason::Fine) => verdicts.fine += 1,
                    Some(Reason::Forgotten) => verdicts.forgotten += 1,
                    None => verdicts.wrong.push(format!(
                        "job {id}: attempt {} ended {:?}, {:?} before attempt {} began",
                        first.attempt,
                        first.heard.map(|(end, _)| end),
                        second.started_at.duration_since(first.started_at),
                        second.attempt,
                    )),
                }
            }
        }
        let twice = ids.into_iter().filter(|(_, jobs)| *jobs > 1);
        verdicts.doubled = twice.map(|(body, _)| body.to_owned()).collect();
        verdicts
    }
}

enum Reason {
    Fine,
    Forgotten,
}

/// Why a job came again; `None` = it should not have.
fn why(first: &Delivery, second: &Delivery, kills: &[(SystemTime, SystemTime)]) -> Option<Reason> {
    let before = |at: SystemTime| at < second.started_at;
    let heard = first.heard.filter(|(_, at)| before(*at)).map(|(end, _)| end);
    if heard == Some(End::Done) {
        return None;
    }
    // Its handler has returned, and the worker still tells the server so.
    let may_be_lost = first.returned_at.is_some_and(before) && heard.is_none();
    let is_over = second.started_at + ROUNDING >= first.lease_ends_at;
    if may_be_lost || is_over || heard == Some(End::Released) {
        return Some(Reason::Fine);
    }
    let was_killed = kills
        .iter()
        .any(|(from, to)| *from < first.reserved_at + FORGOTTEN && first.reserved_at < *to);
    let is_forgotten = was_killed && first.attempt == second.attempt;
    is_forgotten.then_some(Reason::Forgotten)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
    }

    /// A delivery that began at this time, of a lease of 2 s.
    fn delivery(started_ms: u64, attempt: u32) -> Delivery {
        Delivery {
            body: String::new(),
            token: "7.9".parse().unwrap(),
            attempt,
            started_at: at(started_ms),
            reserved_at: at(started_ms),
            lease_ends_at: at(started_ms + 2_000),
            returned_at: None,
            heard: None,
        }
    }

    #[test]
    fn a_second_delivery_needs_a_reason() {
        let ended = |end, ms| Delivery {
            returned_at: Some(at(10)),
            heard: Some((end, at(ms))),
            ..delivery(0, 1)
        };
        let returned = || Delivery { returned_at: Some(at(10)), ..delivery(0, 1) };
        let kill = [(at(300), at(400))];
        let check = |first: Delivery, second_ms, attempt, kills: &[_], expected: &str| {
            let found = match why(&first, &delivery(second_ms, attempt), kills) {
                Some(Reason::Fine) => "fine",
                Some(Reason::Forgotten) => "forgotten",
                None => "wrong",
            };
            assert_eq!(found, expected, "{second_ms} ms, attempt {attempt}");
        };
        check(ended(End::Done, 20), 3_000, 2, &kill, "wrong");
        check(ended(End::Done, 900), 800, 2, &[], "fine");
        check(ended(End::Released, 20), 30, 1, &[], "fine");
        check(ended(End::Lost, 20), 30, 2, &[], "wrong");
        check(returned(), 500, 2, &[], "fine");
        check(delivery(0, 1), 500, 2, &[], "wrong");
        check(delivery(0, 1), 2_000, 2, &[], "fine");
        check(delivery(0, 1), 500, 1, &kill, "forgotten");
        check(delivery(0, 1), 500, 2, &kill, "wrong");
        check(delivery(0, 1), 500, 1, &[(at(900), at(950))], "wrong");
    }
}
