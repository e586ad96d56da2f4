//! Finding a job: by id, by key, by token.

use bytes::Bytes;

use super::{Lease, Machine, Rule};
use crate::error::{Error, Fatal};
use crate::job::{JobId, State, Token};
use crate::op::{JobView, Target};
use crate::place::{Class, Place};
use crate::refusal::{job_done, job_gone, never_put, no_job};
use crate::time::{Clock, Now};
use crate::timeline::{Resting, Timeline};
use crate::topic::{TopicName, TopicNo};

/// Where a job is.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "lives no longer than a call")]
pub(crate) enum JobLocation {
    /// In the lease table.
    Leased(JobId),
    /// In the timeline.
    Resting(Resting),
}

impl JobLocation {
    pub(crate) fn id(&self) -> JobId {
        match self {
            JobLocation::Leased(id) => *id,
            JobLocation::Resting(resting) => resting.job.id,
        }
    }

    pub(crate) fn state(&self, now: Now) -> State {
        match self {
            JobLocation::Leased(_) => State::Leased,
            JobLocation::Resting(resting) => resting.place.state(now),
        }
    }
}

/// The owner of a key.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "lives no longer than a call")]
pub(crate) enum KeyOwner {
    /// None. A hold that is over may still rest at this place; it leaves with the next put.
    Nobody(Option<Place>),
    /// A leased job.
    Leased(JobId),
    /// A waiting, dead or done job.
    Resting(Resting),
    /// None, but the key is held after an ack.
    Held(Place),
}

/// Whether a token is good.
#[derive(Debug)]
pub(crate) enum TokenState<'m> {
    /// This lease goes on.
    Leased(&'m Lease),
    /// Its lease ran out, but nobody has taken the job since.
    Lapsed(Box<Resting>),
    /// The job is there, but not in this hand. If it rests, it was read to tell.
    Lost(Option<Box<Resting>>),
    /// The job is not there.
    Gone,
}

impl Place {
    /// The state of a job that rests here.
    pub(crate) fn state(&self, now: Now) -> State {
        match self {
            place if place.class == Class::DEAD => State::Dead,
            place if place.class == Class::DONE => State::Done,
            place if place.is_due(now) => State::Ready,
            _ => State::Delayed,
        }
    }
}

/// The resting job of an id. Schedules and deadlines rest in the timeline, too, but are no jobs.
fn find_job(timeline: &mut impl Timeline, id: JobId) -> Result<Option<Resting>, Fatal> {
    Ok(timeline.find(id)?.filter(|resting| resting.place.topic.is_topic()))
}

impl<T: Timeline> Machine<T> {
    /// The job of this id or key, or `not_found`: also for one that is done.
    pub(crate) fn locate(&mut self, now: Now, target: &Target) -> Rule<JobLocation> {
        let found = self.locate_any(now, target)?;
        if found.state(now) == State::Done {
            return Err(job_done(found.id()).into());
        }
        Ok(found)
    }

    /// The job of this id or key, which may be done, or `not_found`.
    pub(crate) fn locate_any(&mut self, now: Now, target: &Target) -> Rule<JobLocation> {
        let found = match target {
            Target::Id(id) => self.locate_id(*id)?,
            Target::Key { topic, key } => self.locate_key(now, topic, key)?,
        };
        found.ok_or_else(|| self.absent(target).into())
    }

    /// About a job that is not there: whether its id was ever given can be told.
    pub(crate) fn absent(&self, target: &Target) -> Error {
        match target {
            Target::Id(id) if id.0 >= self.next_id => never_put(*id),
            Target::Id(id) => job_gone(*id),
            Target::Key { .. } => no_job(target),
        }
    }

    fn locate_id(&mut self, id: JobId) -> Result<Option<JobLocation>, Fatal> {
        if self.leases.get(id).is_some() {
            return Ok(Some(JobLocation::Leased(id)));
        }
        Ok(find_job(&mut self.timeline, id)?.map(JobLocation::Resting))
    }

    fn locate_key(
        &mut self,
        now: Now,
        topic: &TopicName,
        key: &Bytes,
    ) -> Result<Option<JobLocation>, Fatal> {
        let Some(topic) = self.topics.find(topic) else { return Ok(None) };
        Ok(match self.key_owner(now, topic, key)? {
            KeyOwner::Leased(id) => Some(JobLocation::Leased(id)),
            KeyOwner::Resting(resting) => Some(JobLocation::Resting(resting)),
            KeyOwner::Nobody(_) | KeyOwner::Held(_) => None,
        })
    }

    /// The owner of this key.
    pub(crate) fn key_owner(
        &mut self,
        now: Now,
        topic: TopicNo,
        key: &Bytes,
    ) -> Result<KeyOwner, Fatal> {
        if let Some(id) = self.leases.by_key(topic, key) {
            return Ok(KeyOwner::Leased(id));
        }
        Ok(match self.timeline.find_key(topic, key)? {
            None => KeyOwner::Nobody(None),
            Some(resting) if resting.place.class != Class::HOLD => KeyOwner::Resting(resting),
            Some(hold) if hold.place.due_at <= now.steady_ms => KeyOwner::Nobody(Some(hold.place)),
            Some(hold) => KeyOwner::Held(hold.place),
        })
    }

    /// Whether this token is good.
    pub(crate) fn token_state(&mut self, token: Token) -> Result<TokenState<'_>, Fatal> {
        if let Some(lease) = self.leases.get(token.id) {
            let good = lease.job.fence() == token.fence;
            return Ok(if good { TokenState::Leased(lease) } else { TokenState::Lost(None) });
        }
        Ok(match find_job(&mut self.timeline, token.id)? {
            None => TokenState::Gone,
            Some(resting) if resting.place.class == Class::DONE => TokenState::Gone,
            Some(resting) => {
                let progress = &resting.job.progress;
                if progress.lapsed && progress.fence == token.fence {
                    TokenState::Lapsed(Box::new(resting))
                } else {
                    TokenState::Lost(Some(Box::new(resting)))
                }
            }
        })
    }

    /// When a leased job's lease runs out, wall ms.
    pub(crate) fn lease_end_wall_ms(&self, id: JobId, now: Now) -> u64 {
        let expires_at = self.leases.get(id).map_or(0, |lease| lease.expires_at);
        now.to_wall(Clock::Steady, expires_at)
    }

    pub(crate) fn view_resting(&self, resting: Resting, now: Now) -> Option<JobView> {
        let topic = self.topics.get(resting.place.topic)?.name.clone();
        let (state, due_at) = (resting.place.state(now), resting.place.due_wall_ms(now));
        let held_by = if state == State::Ready { self.held_by(&resting, now) } else { None };
        Some(JobView { topic, state, due_at, job: resting.job, held_by })
    }

    pub(crate) fn view_leased(&self, id: JobId, now: Now) -> Option<JobView> {
        let lease = self.leases.get(id)?;
        let topic = self.topics.get(lease.topic)?.name.clone();
        let job = lease.job.to_job(id);
        let due_at = self.lease_end_wall_ms(id, now);
        Some(JobView { topic, state: State::Leased, due_at, job, held_by: None })
    }
}
