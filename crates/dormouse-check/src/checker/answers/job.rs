//! The state of one job, by the answers so far.

use bytes::Bytes;
use dormouse_core::op::{LeasedJob, Put, SessionId};
use dormouse_core::time::{Clock, Now};
use dormouse_core::topic::TopicName;

/// From when on a job may be handed out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) clock: Clock,
    pub(super) at: u64,
}

impl Due {
    /// Not before somebody moves it.
    pub(super) const NEVER: Due = Due { clock: Clock::Steady, at: u64::MAX };

    /// When a put or reschedule lets the job come due.
    pub(super) fn of(now: Now, delay_ms: Option<i64>, at_ms: Option<i64>) -> Due {
        match at_ms {
            Some(at_ms) => Due { clock: Clock::Wall, at: u64::try_from(at_ms).unwrap_or(0) },
            None => Due::after(now, delay_ms.unwrap_or(0)),
        }
    }

    /// This long from now, to be safe from the end of the present millisecond on if one has begun.
    pub(super) fn after(now: Now, delay_ms: i64) -> Due {
        let delay_ms = u64::try_from(delay_ms).unwrap_or(0);
        let begun = u64::from(now.fraction && delay_ms > 0);
        Due { clock: Clock::Steady, at: now.steady_ms.saturating_add(delay_ms + begun) }
    }
}

impl Due {
    /// So long after it; `None` = there is no such span, or no due time.
    fn plus(self, span_ms: u64) -> Option<Due> {
        let at = self.at.checked_add(span_ms)?;
        (span_ms > 0).then_some(Due { at, ..self })
    }
}

/// A lease that nobody has ended.
#[derive(Clone, Copy, Debug)]
struct Lease {
    expires_at: u64,
    /// `None` = the job's own, which the answers need not tell.
    ttr_ms: Option<u64>,
    session: Option<SessionId>,
    /// It is known when it runs out. After a start it is not: perhaps it had, perhaps it goes on.
    sure: bool,
    /// Until then, at least, it counts for limits.
    slot_until: u64,
}

impl Lease {
    fn may_go_on(&self, now: Now) -> bool {
        !self.sure || self.expires_at > now.steady_ms
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Known {
    topic: TopicName,
    /// `None` = a schedule put it, and it has not been seen yet.
    body: Option<Bytes>,
    attempts_max: Option<u32>,
    key: Option<Bytes>,
    key_ttl_ms: u64,
    /// As it was given last.
    pub(super) group: Option<Bytes>,
    /// The batch that put it, or put it again.
    pub(super) put_batch: u64,
    due: Due,
    expires_after_ms: u64,
    /// When it must have been taken, where the answers tell.
    deadline: Option<Due>,
    attempts: u32,
    /// A dead job can be reserved by its id, attempts spent or not: this often beyond the limit.
    named: u32,
    /// The attempts are not known any more: something unnamed moved the job.
    attempts_unsure: bool,
    /// The fence of the token that is good.
    pub(super) token: Option<u64>,
    lease: Option<Lease>,
    /// A schedule put it.
    pub(super) is_of_tick: bool,
    /// Why it must never come back.
    pub(super) gone: Option<&'static str>,
}

impl Known {
    /// A job that a schedule has put by now. Its topic and body are known when it is first seen.
    pub(super) fn of_schedule(put_batch: u64) -> Known {
        let due = Due { clock: Clock::Steady, at: 0 };
        let topic = TopicName::new("unknown").unwrap_or_else(|_| unreachable!("it is good"));
        let put = Put::new(topic, Bytes::new());
        Known { body: None, attempts_unsure: true, ..Known::new(&put, due, put_batch) }
    }

    pub(super) fn new(put: &Put, due: Due, put_batch: u64) -> Known {
        let expires_after_ms =
            put.expires_after_ms.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0);
        let names_time = put.delay_ms.is_some() || put.at_ms.is_some();
        Known {
            topic: put.topic.clone(),
            body: Some(put.body.clone()),
            attempts_max: put.attempts_max,
            key: put.key.clone(),
            key_ttl_ms: put.key_ttl_ms.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0),
            group: put.group.clone(),
            put_batch,
            due,
            expires_after_ms,
            // The topic may have a delay for jobs that name none.
            deadline: due.plus(expires_after_ms).filter(|_| names_time),
            attempts: 0,
            named: 0,
            attempts_unsure: false,
            token: None,
            lease: None,
            is_of_tick: false,
            gone: None,
        }
    }

    pub(super) fn replaced(&mut self, put: &Put, due: Due, put_batch: u64) {
        *self = Known::new(put, due, put_batch);
    }

    /// Its key, and how long that is kept after the ack.
    pub(super) fn key(&self) -> Option<((TopicName, Bytes), u64)> {
        Some(((self.topic.clone(), self.key.clone()?), self.key_ttl_ms))
    }

    /// Never too late.
    pub(super) fn check_in_time(&self, now: Now) -> Result<(), String> {
        match self.deadline {
            Some(deadline) if deadline.at <= now.on(deadline.clock) => {
                Err(format!("too late, it had to be taken before {deadline:?}"))
            }
            _ => Ok(()),
        }
    }

    /// A letter has the body of the job it was.
    pub(super) fn has_body(&self, body: &Bytes) -> Result<(), String> {
        match &self.body {
            Some(own) if own != body => Err(format!("{own:?} was put, {body:?} comes")),
            _ => Ok(()),
        }
    }

    /// Never early.
    pub(super) fn check_due(&self, now: Now) -> Result<(), String> {
        if now.on(self.due.clock) < self.due.at {
            return Err(format!("early, it is due at {:?}", self.due));
        }
        Ok(())
    }

    pub(super) fn leased(
        &mut self,
        now: Now,
        given: &LeasedJob,
        session: Option<SessionId>,
        by_due: bool,
    ) -> Result<(), String> {
        if let Some(lease) = self.lease
            && lease.sure
            && lease.expires_at > now.steady_ms
        {
            return Err(format!("given twice, {lease:?} goes on"));
        }
        if self.body.is_none() {
            self.topic = given.topic.clone();
        }
        let body = self.body.get_or_insert_with(|| given.body.clone());
        if given.body != *body || given.topic != self.topic {
            return Err(format!("{:?} was put, {:?} comes", self.body, given.body));
        }
        self.attempts += 1;
        if !self.attempts_unsure && given.attempt != self.attempts {
            return Err(format!("attempt {} is called {}", self.attempts, given.attempt));
        }
        self.attempts = given.attempt;
        self.attempts_unsure = false;
        self.named += u32::from(!by_due);
        let max = self.attempts_max.filter(|max| *max > 0).map(|max| max + self.named);
        if max.is_some_and(|max| given.attempt > max) {
            return Err(format!("attempt {} of {max:?}", given.attempt));
        }
        self.is_of_tick = given.tick.is_some();
        self.token = Some(given.token.fence);
        let expires_at = now.after(given.ttr_ms);
        let (ttr_ms, slot_until) = (Some(given.ttr_ms), expires_at);
        self.lease = Some(Lease { expires_at, ttr_ms, session, sure: true, slot_until });
        self.group = given.group.clone();
        self.deadline = None;
        // Ready again when the lease runs out, not before.
        self.due = Due { clock: Clock::Steady, at: expires_at };
        Ok(())
    }

    /// A lease that ran out goes on as a lease of nobody, with the job's own length.
    pub(super) fn extended(&mut self, now: Now, ttr_ms: Option<i64>) {
        let before = self.lease.filter(|lease| lease.sure && lease.expires_at > now.steady_ms);
        let asked_ms = ttr_ms.and_then(|ms| u64::try_from(ms).ok());
        let known_ms = asked_ms.or(before.and_then(|lease| lease.ttr_ms));
        let expires_at = now.after(known_ms.unwrap_or(0));
        self.lease = Some(Lease {
            expires_at,
            ttr_ms: before.and_then(|lease| lease.ttr_ms),
            session: before.and_then(|lease| lease.session),
            sure: known_ms.is_some(),
            slot_until: known_ms.map_or(0, |_| expires_at),
        });
        self.due = Due { clock: Clock::Steady, at: expires_at };
    }

    /// Given back: by nack or kill the attempt is spent, by release not.
    pub(super) fn ended(&mut self, due: Due, unspent: bool) {
        self.attempts = self.attempts.saturating_sub(u32::from(unspent));
        self.moved(due);
    }

    /// A resting job was moved; a token that was good is not any more.
    pub(super) fn moved(&mut self, due: Due) {
        (self.token, self.lease, self.due) = (None, None, due);
        self.deadline = due.plus(self.expires_after_ms);
    }

    /// A failed attempt was spent; the wait after it may be longer than that.
    pub(super) fn retried(&mut self, due: Due) {
        self.ended(due, false);
        self.deadline = None;
    }

    pub(super) fn revived(&mut self, now: Now) {
        (self.attempts, self.named) = (0, 0);
        self.moved(Due::after(now, 0));
    }

    /// Perhaps this was one of some: dead ones that were revived, delayed ones that were kicked.
    pub(super) fn perhaps_moved(&mut self, now: Now, topic: &TopicName, revived: bool) {
        // The topic of a job that nobody has taken yet, and that a schedule put, is not known.
        let is_elsewhere = self.body.is_some() && self.topic != *topic;
        if is_elsewhere || self.is_surely_leased(now) {
            return;
        }
        self.attempts_unsure |= revived;
        self.deadline = None;
        // A ready job is not kicked, but one that was ready before it died is revived.
        if revived || now.on(self.due.clock) < self.due.at {
            self.due = Due::after(now, 0);
        }
    }

    /// All leases of the topic were given back.
    pub(super) fn released(&mut self, now: Now, topic: &TopicName) {
        if self.topic != *topic {
            return;
        }
        if self.is_surely_leased(now) {
            self.ended(Due::after(now, 0), true);
        } else if let Some(lease) = self.lease.as_mut().filter(|lease| !lease.sure) {
            lease.slot_until = 0;
            self.attempts_unsure = true;
            self.due = Due::after(now, 0);
        }
    }

    /// Removes resting jobs; leased ones stay.
    pub(super) fn purged(&mut self, now: Now, topic: &TopicName) {
        if self.topic == *topic && self.lease.is_none_or(|lease| !lease.may_go_on(now)) {
            self.gone = Some("purged");
        }
    }

    pub(super) fn session_closed(&mut self, now: Now, session: SessionId) {
        if let Some(lease) = self.lease
            && lease.session == Some(session)
            && lease.expires_at > now.steady_ms
        {
            self.ended(Due::after(now, 0), true);
        }
    }

    /// Leases of sessions are released, the others go on, unless they had run out before.
    pub(super) fn restarted(&mut self, now: Now) {
        let Some(lease) = &mut self.lease else { return };
        if lease.session.is_some() {
            self.attempts_unsure = true;
            self.lease = None;
            self.due = Due::after(now, 0);
        } else {
            // An extension is not kept: what goes on is the lease's own length, from now.
            lease.sure = false;
            let goes_on = lease.ttr_ms.filter(|_| lease.slot_until > now.steady_ms);
            lease.slot_until = goes_on.map_or(0, |ttr_ms| now.after(ttr_ms));
            self.due.at = self.due.at.min(now.steady_ms);
        }
    }

    /// The lease of this token goes on for sure.
    pub(super) fn is_held_by(&self, fence: u64, now: Now) -> bool {
        self.token == Some(fence) && self.is_surely_leased(now)
    }

    /// It is leased in this topic, so that it counts for limits.
    pub(super) fn has_slot(&self, topic: &TopicName, now: Now) -> bool {
        let counts = |lease: Lease| lease.slot_until > now.steady_ms;
        self.gone.is_none() && self.topic == *topic && self.lease.is_some_and(counts)
    }

    fn is_surely_leased(&self, now: Now) -> bool {
        self.lease.is_some_and(|lease| lease.sure && lease.expires_at > now.steady_ms)
    }
}
