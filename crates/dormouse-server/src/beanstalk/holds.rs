//! The reservations of one connection.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use dormouse_core::job::{JobId, Token};
use dormouse_core::topic::TopicName;

/// How long before the end of a reservation its client is told.
const MARGIN: Duration = Duration::from_secs(1);

/// A job that the connection holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(super) token: Token,
    pub(super) topic: TopicName,
    pub(super) ttr: Duration,
    /// When it ends.
    pub(super) until: Instant,
}

/// All that it holds.
#[derive(Debug, Default)]
pub(super) struct Holds {
    jobs: HashMap<JobId, Hold>,
    by_end: BTreeSet<(Instant, JobId)>,
}

impl Holds {
    pub(super) fn add(&mut self, hold: Hold) {
        let (id, until) = (hold.token.id, hold.until);
        if let Some(old) = self.jobs.insert(id, hold) {
            self.by_end.remove(&(old.until, id));
        }
        self.by_end.insert((until, id));
    }

    /// Takes the job out, if it is held and its time is not over.
    pub(super) fn take(&mut self, id: JobId, now: Instant) -> Option<Hold> {
        let hold = self.jobs.remove(&id)?;
        self.by_end.remove(&(hold.until, id));
        (hold.until > now).then_some(hold)
    }

    /// As `take`, but it stays.
    pub(super) fn get(&self, id: JobId, now: Instant) -> Option<&Hold> {
        self.jobs.get(&id).filter(|hold| hold.until > now)
    }

    /// Its time begins anew.
    pub(super) fn renew(&mut self, id: JobId, now: Instant) {
        let Some(hold) = self.jobs.get_mut(&id) else { return };
        self.by_end.remove(&(hold.until, id));
        hold.until = now + hold.ttr;
        self.by_end.insert((hold.until, id));
    }

    pub(super) fn drop(&mut self, id: JobId) {
        if let Some(hold) = self.jobs.remove(&id) {
            self.by_end.remove(&(hold.until, id));
        }
    }

    /// When the client is to be told that the time of one of its jobs is nearly over; may be past.
    pub(super) fn margin(&mut self, now: Instant) -> Option<Instant> {
        while let Some(&(until, id)) = self.by_end.first() {
            if until > now {
                return Some(until.checked_sub(MARGIN).unwrap_or(now));
            }
            self.drop(id);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(id: u64, ttr_s: u64, now: Instant) -> Hold {
        let ttr = Duration::from_secs(ttr_s);
        let topic = TopicName::new("a").unwrap();
        Hold { token: Token { id: JobId(id), fence: 1 }, topic, ttr, until: now + ttr }
    }

    #[test]
    fn the_margin_is_that_of_the_first_to_end() {
        let now = super::super::clock::now();
        let mut holds = Holds::default();
        assert_eq!(holds.margin(now), None);
        holds.add(hold(1, 10, now));
        holds.add(hold(2, 5, now));
        assert_eq!(holds.margin(now), Some(now + Duration::from_secs(4)));
        holds.renew(JobId(2), now + Duration::from_secs(6));
        assert_eq!(holds.margin(now), Some(now + Duration::from_secs(9)));
        holds.drop(JobId(1));
        assert_eq!(holds.margin(now), Some(now + Duration::from_secs(10)));
        holds.drop(JobId(2));
        assert_eq!(holds.margin(now), None);
    }

    #[test]
    fn what_is_over_is_held_no_more() {
        let now = super::super::clock::now();
        let later = now + Duration::from_secs(5);
        let mut holds = Holds::default();
        holds.add(hold(1, 5, now));
        assert!(holds.get(JobId(1), now).is_some());
        assert!(holds.get(JobId(1), later).is_none());
        assert_eq!(holds.take(JobId(1), later), None);
        holds.add(hold(2, 5, now));
        assert_eq!(holds.margin(later), None);
        assert!(holds.jobs.is_empty() && holds.by_end.is_empty());
    }
}
