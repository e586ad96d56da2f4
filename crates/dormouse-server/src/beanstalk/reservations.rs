//! The reservations of one connection.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

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
    jobs: HashMap<JobId, Reservation>,
    by_end: BTreeSet<(Instant, JobId)>,
}

impl Reservations {
    pub(super) fn add(&mut self, reservation: Reservation) {
        let (id, until) = (reservation.token.id, reservation.until);
        if let Some(old) = self.jobs.insert(id, reservation) {
            self.by_end.remove(&(old.until, id));
        }
        self.by_end.insert((until, id));
    }

    /// Removes the reservation of a job; `None` if there is none or it has ended.
    pub(super) fn take(&mut self, id: JobId, now: Instant) -> Option<Reservation> {
        let reservation = self.jobs.remove(&id)?;
        self.by_end.remove(&(reservation.until, id));
        (reservation.until > now).then_some(reservation)
    }

    /// The reservation of a job; `None` if there is none or it has ended.
    pub(super) fn get(&self, id: JobId, now: Instant) -> Option<&Reservation> {
        self.jobs.get(&id).filter(|reservation| reservation.until > now)
    }

    /// Begins its time to run again.
    pub(super) fn renew(&mut self, id: JobId, now: Instant) {
        let Some(reservation) = self.jobs.get_mut(&id) else { return };
        self.by_end.remove(&(reservation.until, id));
        reservation.until = now + reservation.ttr;
        self.by_end.insert((reservation.until, id));
    }

    pub(super) fn drop(&mut self, id: JobId) {
        if let Some(reservation) = self.jobs.remove(&id) {
            self.by_end.remove(&(reservation.until, id));
        }
    }

    /// The first time from which on a reserve answers `DEADLINE_SOON`; it may be past.
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
        assert!(reservations.jobs.is_empty() && reservations.by_end.is_empty());
    }
}
