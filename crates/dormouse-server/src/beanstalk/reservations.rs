//! The reservations of one connection.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use dormouse_core::Map;
use dormouse_core::job::{JobId, Token};
use dormouse_core::topic::TopicName;

/// Time before the end of a reservation from which on a reserve answers `DEADLINE_SOON`.
const MARGIN: Duration = Duration::from_secs(1);

/// A job that the connection has reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(super) token: Token,
    pub(super) topic: TopicName,
    pub(super) ttr: Duration,
    /// When the reservation ends.
    pub(super) until: Instant,
}

/// All of them, by id and by end.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    jobs: Map<JobId, Reservation>,
    /// The ends, the first on top; those of reservations that are gone or were renewed stay until
    /// they are met or too many. A client mostly holds one reservation, and then this needs no
    /// new memory for the next.
    ends: BinaryHeap<Reverse<(Instant, JobId)>>,
}

/// The number of outdated ends that are never too many.
const OUTDATED_MAX: usize = 16;

impl Reservations {
    pub(super) fn add(&mut self, reservation: Reservation) {
        let (id, until) = (reservation.token.id, reservation.until);
        self.jobs.insert(id, reservation);
        self.add_end(until, id);
    }

    fn add_end(&mut self, until: Instant, id: JobId) {
        self.ends.push(Reverse((until, id)));
        if self.ends.len() > 2 * self.jobs.len() + OUTDATED_MAX {
            let jobs = &self.jobs;
            self.ends.retain(|Reverse((until, id))| is_end(jobs, *until, *id));
        }
    }

    /// Removes the reservation of a job; `None` if there is none or it has ended.
    pub(super) fn take(&mut self, id: JobId, now: Instant) -> Option<Reservation> {
        let reservation = self.jobs.remove(&id)?;
        (reservation.until > now).then_some(reservation)
    }

    /// The reservation of a job; `None` if there is none or it has ended.
    pub(super) fn get(&self, id: JobId, now: Instant) -> Option<&Reservation> {
        self.jobs.get(&id).filter(|reservation| reservation.until > now)
    }

    /// Begins its time to run again.
    pub(super) fn renew(&mut self, id: JobId, now: Instant) {
        let Some(reservation) = self.jobs.get_mut(&id) else { return };
        reservation.until = now + reservation.ttr;
        let until = reservation.until;
        self.add_end(until, id);
    }

    pub(super) fn drop(&mut self, id: JobId) {
        self.jobs.remove(&id);
    }

    /// The first time from which on a reserve answers `DEADLINE_SOON`; it may be past.
    pub(super) fn margin(&mut self, now: Instant) -> Option<Instant> {
        while let Some(&Reverse((until, id))) = self.ends.peek() {
            if is_end(&self.jobs, until, id) {
                if until > now {
                    return Some(until.checked_sub(MARGIN).unwrap_or(now));
                }
                self.jobs.remove(&id);
            }
            self.ends.pop();
        }
        None
    }
}

/// Whether the reservation of this job ends then.
fn is_end(jobs: &Map<JobId, Reservation>, until: Instant, id: JobId) -> bool {
    jobs.get(&id).is_some_and(|reservation| reservation.until == until)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservation(id: u64, ttr_s: u64, now: Instant) -> Reservation {
        let ttr = Duration::from_secs(ttr_s);
        let topic = TopicName::new("a").unwrap();
        Reservation { token: Token { id: JobId(id), fence: 1 }, topic, ttr, until: now + ttr }
    }

    #[test]
    fn the_margin_belongs_to_the_first_reservation_to_end() {
        let now = super::super::clock::now();
        let mut reservations = Reservations::default();
        assert_eq!(reservations.margin(now), None);
        reservations.add(reservation(1, 10, now));
        reservations.add(reservation(2, 5, now));
        assert_eq!(reservations.margin(now), Some(now + Duration::from_secs(4)));
        reservations.renew(JobId(2), now + Duration::from_secs(6));
        assert_eq!(reservations.margin(now), Some(now + Duration::from_secs(9)));
        reservations.drop(JobId(1));
        assert_eq!(reservations.margin(now), Some(now + Duration::from_secs(10)));
        reservations.drop(JobId(2));
        assert_eq!(reservations.margin(now), None);
    }

    #[test]
    fn a_reservation_that_has_ended_is_forgotten() {
        let now = super::super::clock::now();
        let later = now + Duration::from_secs(5);
        let mut reservations = Reservations::default();
        reservations.add(reservation(1, 5, now));
        assert!(reservations.get(JobId(1), now).is_some());
        assert!(reservations.get(JobId(1), later).is_none());
        assert_eq!(reservations.take(JobId(1), later), None);
        reservations.add(reservation(2, 5, now));
        assert_eq!(reservations.margin(later), None);
        assert!(reservations.jobs.is_empty() && reservations.ends.is_empty());
    }

    #[test]
    fn outdated_ends_are_bounded() {
        let now = super::super::clock::now();
        let mut reservations = Reservations::default();
        reservations.add(reservation(0, 5, now));
        for id in 1..1_000 {
            reservations.add(reservation(id, 60, now));
            reservations.renew(JobId(id), now + Duration::from_secs(1));
            assert!(reservations.take(JobId(id), now).is_some());
        }
        assert!(reservations.ends.len() <= 2 + OUTDATED_MAX + 1, "{}", reservations.ends.len());
        assert_eq!(reservations.margin(now), Some(now + Duration::from_secs(4)));
    }
}
