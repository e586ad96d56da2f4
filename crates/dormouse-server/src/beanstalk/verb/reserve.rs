//! reserve and reserve-with-timeout: the backend waits in slices, because its waits are bounded and
//! because the client must get `DEADLINE_SOON` in time before one of its reservations ends.

use std::time::{Duration, Instant};

use bytes::BytesMut;
use dormouse_core::error::{Code, Error};
use dormouse_core::limits::WAIT_MS_MAX;
use dormouse_core::op::{LeasedJob, OpenSession, Reserve, SessionId};

use super::{AfterOpen, PendingReply};
use crate::beanstalk::reservations::Reservation;
use crate::beanstalk::shared::{down, up};
use crate::beanstalk::{Beanstalk, clock, reply};
use crate::pipeline::{Next, Request, Turn};

/// The backend's clock counts whole ms, so its waits may end slightly early.
const EARLY: Duration = Duration::from_millis(2);
/// A wait that ends earlier than this was withdrawn, or the computer was asleep: the backend's
/// clock goes on meanwhile, and this one does not.
const TOO_EARLY: Duration = Duration::from_millis(20);
/// A wait that was withdrawn is withdrawn again within this time when it is repeated.
const AT_ONCE: Duration = Duration::from_secs(1);

/// A client that waits for a job.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    /// When it gives up; `None` if never.
    until: Option<Instant>,
    /// When the current slice ends.
    slice_until: Instant,
    /// When a slice last ended too early.
    too_early_at: Option<Instant>,
}

impl Wait {
    /// Whether the wait was withdrawn: the slice that has just ended empty was the second in a row
    /// that ended too early.
    fn was_withdrawn(&mut self, now: Instant) -> bool {
        if now + TOO_EARLY >= self.slice_until {
            self.too_early_at = None;
            return false;
        }
        let before = self.too_early_at.replace(now);
        before.is_some_and(|before| now < before + AT_ONCE)
    }
}

impl Beanstalk {
    pub(super) fn reserve(&mut self, wait_s: Option<u32>, turn: &mut Turn<PendingReply>) {
        self.becomes_worker();
        let now = clock::now();
        let until = wait_s.map(|wait_s| now + Duration::from_secs(wait_s.into()));
        let wait = Wait { until, slice_until: now, too_early_at: None };
        turn.send_last(self.with_session(AfterOpen::Reserve(wait)));
    }

    /// The request for this, or to open the session that it needs.
    pub(super) fn with_session(&mut self, goal: AfterOpen) -> Request<PendingReply> {
        match self.session {
            Some(session) => self.pursue(goal, session),
            None => Request::new(OpenSession, PendingReply::Opened(goal)),
        }
    }

    /// The next slice of a wait.
    pub(super) fn reserve_step(&mut self, wait: Wait, session: SessionId) -> Request<PendingReply> {
        let now = clock::now();
        let longest = now + Duration::from_millis(WAIT_MS_MAX);
        let ends = [wait.until, self.reservations.margin(now)];
        let slice_until = ends.into_iter().flatten().fold(longest, Instant::min);
        let wait_ms = ms_up(slice_until.saturating_duration_since(now));
        self.set_waiting(wait_ms > 0);
        let reserve = Reserve {
            topics: self.watched.iter().map(|tube| tube.name.clone()).collect(),
            max: 1,
            wait_ms,
            ttr_ms: None,
            session: Some(session),
        };
        Request::new(reserve, PendingReply::Reserved(Wait { slice_until, ..wait }))
    }

    pub(super) fn reserved(
        &mut self,
        wait: Wait,
        jobs: Result<Vec<LeasedJob>, Error>,
        out: &mut BytesMut,
    ) -> Next<PendingReply> {
        self.set_waiting(false);
        match jobs.map(|mut jobs| jobs.pop()) {
            Ok(Some(job)) => self.deliver(&job, out),
            Ok(None) => return self.on_empty(wait, out),
            Err(error) => self.refused(&error, out),
        }
        None
    }

    /// The slice ended without a job: answers, or waits on.
    fn on_empty(&mut self, mut wait: Wait, out: &mut BytesMut) -> Next<PendingReply> {
        let now = clock::now();
        let is_over = |end: Option<Instant>| end.is_some_and(|end| end <= now + EARLY);
        let was_withdrawn = wait.was_withdrawn(now);
        if is_over(self.reservations.margin(now)) {
            out.extend_from_slice(reply::DEADLINE_SOON);
        } else if is_over(wait.until) || was_withdrawn {
            out.extend_from_slice(reply::TIMED_OUT);
        } else {
            return Some(self.with_session(AfterOpen::Reserve(wait)));
        }
        None
    }

    /// Notes the reservation, and writes the job.
    pub(super) fn deliver(&mut self, job: &LeasedJob, out: &mut BytesMut) {
        let ttr = Duration::from_millis(job.ttr_ms);
        let until = clock::now() + ttr;
        self.reservations.add(Reservation {
            token: job.token,
            topic: job.topic.clone(),
            ttr,
            until,
        });
        reply::job("RESERVED", job.id, &job.body, out);
    }

    /// If the backend answers not-found, the session is gone: the next reserve opens another.
    pub(super) fn refused(&mut self, error: &Error, out: &mut BytesMut) {
        if error.code == Code::NotFound {
            self.session = None;
            out.extend_from_slice(reply::INTERNAL_ERROR);
        } else {
            reply::error(error, out);
        }
    }

    pub(super) fn becomes_worker(&mut self) {
        if !self.is_worker {
            self.is_worker = true;
            up(&self.shared.connections.workers);
        }
    }

    fn set_waiting(&mut self, is_waiting: bool) {
        match (self.is_waiting, is_waiting) {
            (false, true) => up(&self.shared.connections.waiting),
            (true, false) => down(&self.shared.connections.waiting),
            _ => {}
        }
        self.is_waiting = is_waiting;
    }
}

/// Whole ms, rounded up.
fn ms_up(span: Duration) -> i64 {
    let up = u128::from(span.subsec_nanos() % 1_000_000 > 0);
    i64::try_from(span.as_millis() + up).unwrap_or(i64::MAX).min(WAIT_MS_MAX as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_goes_on_after_the_computer_slept() {
        let (start, s) = (clock::now(), Duration::from_secs);
        let mut wait = Wait { until: None, slice_until: start + s(60), too_early_at: None };
        assert!(!wait.was_withdrawn(start + s(30)), "it slept");
        wait.slice_until = start + s(90);
        assert!(!wait.was_withdrawn(start + s(40)), "it slept again");
        wait.slice_until = start + s(100);
        assert!(wait.was_withdrawn(start + s(40)), "it was withdrawn");
        wait.slice_until = start + s(41);
        assert!(!wait.was_withdrawn(start + s(41)), "it was over in time");
        wait.slice_until = start + s(60);
        assert!(!wait.was_withdrawn(start + s(41)), "that counts anew");
    }
}
