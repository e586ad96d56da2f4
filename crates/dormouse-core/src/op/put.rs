//! put: add a job.

use std::sync::Arc;

use bytes::Bytes;

use crate::backoff::Backoff;
use crate::command::{Command, Reply, only, operation};
use crate::error::Error;
use crate::fact::{Cause, Destination, Fact};
use crate::job::{BodyKind, Content, Job, JobId, Progress, State, TickOrigin, content_bytes};
use crate::limits::{
    ATTEMPTS_MAX_DEFAULT, PRIORITY_DEFAULT, PUT_KEYED_BYTES_MAX, TTL_MS_MAX, TTR_MS_DEFAULT,
};
use crate::machine::{KeyOwner, Machine, Origin, Output, Rule};
use crate::op::check;
use crate::place::{Class, Place};
use crate::refusal::{bytes_full, jobs_full, key_held, key_taken, keyed_jobs_too_large};
use crate::time::{Clock, Now};
use crate::timeline::{Resting, Timeline};
use crate::topic::{Settings, TopicName, TopicNo};

/// The action if the key is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// Answer the existing job.
    #[default]
    Keep,
    /// Answer `conflict`.
    Reject,
    /// Replace a resting job.
    Replace,
    /// Replace if the new due time is earlier.
    Earliest,
    /// Replace if the new due time is later.
    Latest,
}

/// A job to add. `delay_ms` or `at_ms` or neither; the rest has defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// Where to.
    pub topic: TopicName,
    /// The work.
    pub body: Bytes,
    /// The form of the body, kept for reserve.
    pub body_kind: BodyKind,
    /// The delay until the job is due.
    pub delay_ms: Option<i64>,
    /// Due at this time, ms since the epoch.
    pub at_ms: Option<i64>,
    /// Lower is first.
    pub priority: Option<u32>,
    /// Lease time.
    pub ttr_ms: Option<i64>,
    /// Attempts before dead; 0 = no limit.
    pub attempts_max: Option<u32>,
    /// Wait after a failed attempt.
    pub backoff: Option<Arc<Backoff>>,
    /// The producer's own id.
    pub key: Option<Bytes>,
    /// The action if the key is taken.
    pub on_conflict: OnConflict,
    /// How long the key stays taken after the ack.
    pub key_ttl_ms: Option<i64>,
    /// The job dies if nobody takes it so long after it was due.
    pub expires_after_ms: Option<i64>,
    /// Small string map.
    pub headers: Option<Arc<Vec<(String, String)>>>,
    /// What limits of groups are counted by.
    pub group: Option<Bytes>,
}

impl Put {
    /// A job due now with every default.
    pub fn new(topic: TopicName, body: impl Into<Bytes>) -> Put {
        Put {
            topic,
            body: body.into(),
            body_kind: BodyKind::Bytes,
            delay_ms: None,
            at_ms: None,
            priority: None,
            ttr_ms: None,
            attempts_max: None,
            backoff: None,
            key: None,
            on_conflict: OnConflict::Keep,
            key_ttl_ms: None,
            expires_after_ms: None,
            headers: None,
            group: None,
        }
    }

    /// Bytes of the job against byte limits: body, key, group and headers.
    pub fn bytes(&self) -> u64 {
        content_bytes(&self.body, [&self.key, &self.group], self.headers.as_deref())
    }

    /// Checks all limits; gives when the job is due, unless its topic has a delay for it.
    pub fn check(&self, now: Now) -> Result<(Clock, u64), Error> {
        check::body(&self.body)?;
        check::ttr(self.ttr_ms)?;
        check::optional_backoff(self.backoff.as_ref())?;
        if let Some(key) = &self.key {
            check::key(key)?;
        }
        if let Some(ms) = self.key_ttl_ms {
            check::span("key_ttl", ms, 0, TTL_MS_MAX)?;
        }
        if let Some(ms) = self.expires_after_ms {
            check::span("expires_after", ms, 0, TTL_MS_MAX)?;
        }
        if let Some(headers) = &self.headers {
            check::headers(headers)?;
        }
        if let Some(group) = &self.group {
            check::group(group)?;
        }
        self.due(now, None)
    }

    /// When the job is due, by the topic's delay if it has none of its own.
    fn due(&self, now: Now, settings: Option<&Settings>) -> Result<(Clock, u64), Error> {
        match (self.delay_ms, self.at_ms, settings.and_then(|settings| settings.delay_ms)) {
            (None, None, Some(delay_ms)) => Ok((Clock::Steady, now.after(delay_ms))),
            (delay_ms, at_ms, _) => check::due(now, delay_ms, at_ms),
        }
    }

    /// The job's content; missing options are the topic's defaults.
    pub fn content(self, settings: Option<&Settings>, now: Now) -> Content {
        // Spans were checked to be positive.
        let ms = |ms: i64| u64::try_from(ms).unwrap_or(0);
        let ttr_ms = self.ttr_ms.map(ms).or(settings.and_then(|s| s.ttr_ms));
        let attempts_max = self.attempts_max.or(settings.and_then(Settings::attempts_of_put));
        let expires_after_ms =
            self.expires_after_ms.map(ms).or(settings.and_then(|s| s.expires_after_ms));
        Content {
            key: self.key,
            headers: self.headers.filter(|headers| !headers.is_empty()),
            body: self.body,
            body_kind: self.body_kind,
            ttr_ms: ttr_ms.unwrap_or(TTR_MS_DEFAULT),
            attempts_max: attempts_max.unwrap_or(ATTEMPTS_MAX_DEFAULT),
            backoff: self.backoff.or_else(|| settings.and_then(Settings::backoff_of_put)),
            key_ttl_ms: self.key_ttl_ms.map_or(0, ms),
            expires_after_ms: expires_after_ms.unwrap_or(0),
            put_at: now.wall_ms,
            tick: None,
            group: self.group,
        }
    }
}

/// The result of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// A new job.
    Created,
    /// The key's job stays as it is.
    Duplicate,
    /// The key's job has the new content.
    Replaced,
}

/// The answer to one put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutReply {
    /// The job; of a duplicate, the existing one, or the one whose ack still holds the key.
    pub id: JobId,
    /// Whether a job was created, replaced or kept.
    pub outcome: PutOutcome,
    /// The job's state; `None` for a duplicate of a held key, whose job is gone.
    pub state: Option<State>,
    /// When it is due, wall ms; of a hold, when the key becomes free; of a leased job, when the
    /// lease expires.
    pub due_at: u64,
}

/// Room that puts need, and what leaves to make it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoomNeed {
    pub(crate) jobs: u64,
    pub(crate) bytes: u64,
    pub(crate) left_jobs: u64,
    pub(crate) left_bytes: u64,
}

/// Whether somebody knows that there is room for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutRoom {
    Unchecked,
    /// A rule that puts it together with others has looked.
    Checked,
}

/// What a put meets.
pub(crate) struct PutContext {
    /// Its topic, if that lives.
    known: Option<TopicNo>,
    clock: Clock,
    due_at: u64,
    pub(crate) due_wall_ms: u64,
    pub(crate) owner: KeyOwner,
}

/// How a put proceeds, given the owner of its key.
pub(crate) enum Resolution {
    /// A new job. The hold on its key leaves its place, or a leased job loses the key to it.
    Create { left: Option<Place>, key_loser: Option<JobId> },
    /// A new job. This dead or done one stays where it is, without the key.
    CreateBeside(Resting),
    /// This one gets the new content.
    Replace(Resting),
    /// All stays as it is.
    Keep(PutReply),
}

impl Resolution {
    /// Bytes of the job that is replaced, if one is; the outer `None` = nothing is written.
    pub(crate) fn replaced_bytes(&self) -> Option<Option<u64>> {
        match self {
            Resolution::Keep(_) => None,
            Resolution::Create { .. } | Resolution::CreateBeside(_) => Some(None),
            Resolution::Replace(old) => Some(Some(u64::from(old.job.progress.bytes))),
        }
    }
}

operation! {
    Vec<Put> => Vec<Result<PutReply, Error>>,
        items => Command::Put(items), Reply::Put(replies) => Ok(replies);
    Put => PutReply,
        item => Command::Put(vec![item]), Reply::Put(replies) => only(replies);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn put(&mut self, now: Now, puts: Vec<Put>, out: &mut Output) -> Rule<Reply> {
        let mut read_bytes = 0;
        let replies =
            self.each(puts, |machine, put| machine.put_one(now, put, &mut read_bytes, out))?;
        Ok(Reply::Put(replies))
    }

    /// `read_bytes` are those of the jobs that the puts before found under their keys.
    fn put_one(
        &mut self,
        now: Now,
        put: Put,
        read_bytes: &mut u64,
        out: &mut Output,
    ) -> Rule<PutReply> {
        put.check(now)?;
        self.put_checked(now, put, PutRoom::Unchecked, read_bytes, out)
    }

    /// What a put meets, whose limits were checked.
    pub(crate) fn put_context(
        &mut self,
        now: Now,
        put: &Put,
        read_bytes: &mut u64,
    ) -> Rule<PutContext> {
        let known = self.topics.find(&put.topic);
        let settings = known.and_then(|topic| self.topics.get(topic)).map(|topic| &topic.settings);
        let (clock, due_at) = put.due(now, settings)?;
        let owner = match (known, &put.key) {
            (Some(_), Some(_)) if *read_bytes > PUT_KEYED_BYTES_MAX => {
                return Err(keyed_jobs_too_large().into());
            }
            (Some(topic), Some(key)) => self.key_owner(now, topic, key)?,
            _ => KeyOwner::Nobody(None),
        };
        if let KeyOwner::Resting(resting) = &owner {
            *read_bytes += u64::from(resting.job.progress.bytes);
        }
        let due_wall_ms = now.to_wall(clock, due_at);
        Ok(PutContext { known, clock, due_at, due_wall_ms, owner })
    }

    /// Puts a job whose limits were checked.
    pub(crate) fn put_checked(
        &mut self,
        now: Now,
        put: Put,
        room: PutRoom,
        read_bytes: &mut u64,
        out: &mut Output,
    ) -> Rule<PutReply> {
        let PutContext { known, clock, due_at, due_wall_ms, owner } =
            self.put_context(now, &put, read_bytes)?;
        let resolution = self.resolve_conflict(now, put.on_conflict, due_wall_ms, owner)?;
        let new = JobId(self.next_id);
        let mut dead = None;
        let (id, outcome, left, key_loser, old) = match resolution {
            Resolution::Keep(reply) => return Ok(reply),
            Resolution::CreateBeside(resting) => {
                dead = Some(resting);
                (new, PutOutcome::Created, None, None, None)
            }
            Resolution::Create { left, key_loser } => {
                (new, PutOutcome::Created, left, key_loser, None)
            }
            Resolution::Replace(old) => {
                (old.job.id, PutOutcome::Replaced, Some(old.place), None, Some(old))
            }
        };
        let settings = known.and_then(|topic| self.topics.get(topic)).map(|topic| &topic.settings);
        let priority = put.priority.unwrap_or(PRIORITY_DEFAULT);
        let name = put.topic.clone();
        let content = put.content(settings, now);
        let bytes = u32::try_from(content.bytes()).unwrap_or(u32::MAX);
        let left_bytes = old.as_ref().map_or(0, |old| old.job.progress.bytes);
        let need = RoomNeed {
            jobs: u64::from(old.is_none()),
            bytes: u64::from(bytes),
            left_jobs: 0,
            left_bytes: u64::from(left_bytes),
        };
        if room == PutRoom::Unchecked {
            self.check_room(known, need)?;
        }
        let topic = match known {
            Some(topic) => topic,
            None => self.topic_or_birth(&name, out)?,
        };
        if let Some(resting) = dead {
            self.take_key(resting, out);
        }
        // A replaced job starts afresh, but a token of its old life must never be good again.
        let fence = old.as_ref().map_or(0, |old| old.job.progress.fence);
        let progress = Progress { priority, fence, bytes, ..Progress::default() };
        let mut at = Place { topic, class: Class::waiting(priority, clock), due_at, id };
        if let Some(class) = self.class_of_put(at, content.group.as_ref(), now)? {
            at.class = class;
        }
        let job = Job { id, content, progress };
        let origin = old.map_or(Origin::Live, Origin::Found);
        self.commit(Fact::Put { job, at, left, left_bytes, key_loser }, origin, out);
        Ok(PutReply { id, outcome, state: Some(at.state(now)), due_at: due_wall_ms })
    }

    /// Puts the job of a tick, or of a schedule that is run by request. `left_bytes`: of a job that
    /// makes room for it.
    #[expect(clippy::too_many_arguments, reason = "each is a part of one job")]
    pub(crate) fn put_tick(
        &mut self,
        now: Now,
        topic: TopicNo,
        put: Put,
        (clock, due_at): (Clock, u64),
        tick: Option<Arc<TickOrigin>>,
        left_bytes: Option<u32>,
        out: &mut Output,
    ) -> Result<JobId, Error> {
        let settings = self.topics.get(topic).map(|topic| &topic.settings);
        let priority = put.priority.unwrap_or(PRIORITY_DEFAULT);
        let content = Content { tick, ..put.content(settings, now) };
        let bytes = u32::try_from(content.bytes()).unwrap_or(u32::MAX);
        let need = RoomNeed {
            jobs: u64::from(left_bytes.is_none()),
            bytes: u64::from(bytes),
            left_jobs: 0,
            left_bytes: u64::from(left_bytes.unwrap_or(0)),
        };
        self.check_room(Some(topic), need)?;
        let id = JobId(self.next_id);
        let progress = Progress { priority, bytes, ..Progress::default() };
        let at = Place { topic, class: Class::waiting(priority, clock), due_at, id };
        let job = Job { id, content, progress };
        let fact = Fact::Put { job, at, left: None, left_bytes: 0, key_loser: None };
        self.commit(fact, Origin::Live, out);
        Ok(id)
    }

    /// The table in docs/design.md: the result of a put on a key, by the state of its owner.
    pub(crate) fn resolve_conflict(
        &self,
        now: Now,
        on_conflict: OnConflict,
        due_wall_ms: u64,
        owner: KeyOwner,
    ) -> Result<Resolution, Error> {
        use OnConflict::{Earliest, Keep, Latest, Reject, Replace};
        let create = |left, key_loser| Ok(Resolution::Create { left, key_loser });
        let keep = |id, state, due_at| {
            Ok(Resolution::Keep(PutReply { id, outcome: PutOutcome::Duplicate, state, due_at }))
        };
        match owner {
            KeyOwner::Nobody(over) => create(over, None),
            KeyOwner::Leased(id) => match on_conflict {
                Keep => keep(id, Some(State::Leased), self.lease_end_wall_ms(id, now)),
                Reject => Err(key_taken(id, State::Leased)),
                Replace | Earliest | Latest => create(None, Some(id)),
            },
            KeyOwner::Held(place) => match on_conflict {
                Keep | Earliest | Latest => keep(place.id, None, place.due_wall_ms(now)),
                Reject => Err(key_held(place.id)),
                Replace => create(Some(place), None),
            },
            KeyOwner::Resting(done) if done.place.class == Class::DONE => {
                let held_until = done.key_held_until().filter(|until| *until > now.steady_ms);
                match (held_until, on_conflict) {
                    (None, _) | (Some(_), Replace) => Ok(Resolution::CreateBeside(done)),
                    (Some(_), Reject) => Err(key_held(done.job.id)),
                    (Some(until), Keep | Earliest | Latest) => {
                        let free_at = now.to_wall(Clock::Steady, until);
                        keep(done.job.id, Some(State::Done), free_at)
                    }
                }
            }
            // A dead job does not live: it never stands in the way of new work.
            KeyOwner::Resting(resting)
                if resting.place.class == Class::DEAD && on_conflict != Replace =>
            {
                Ok(Resolution::CreateBeside(resting))
            }
            KeyOwner::Resting(resting) => {
                let (state, due_at) = (resting.place.state(now), resting.place.due_wall_ms(now));
                let replaces = match on_conflict {
                    Reject => return Err(key_taken(resting.job.id, state)),
                    Keep => false,
                    Replace => true,
                    Earliest => due_wall_ms < due_at,
                    Latest => due_wall_ms > due_at,
                };
                if replaces {
                    Ok(Resolution::Replace(resting))
                } else {
                    keep(resting.job.id, Some(state), due_at)
                }
            }
        }
    }

    /// Takes the key from a dead or done job. A fact of its own, before that of the put: the job at
    /// this place is another one afterwards, for indexes and replay alike.
    fn take_key(&mut self, resting: Resting, out: &mut Output) {
        let place = resting.place;
        let fact = Fact::Move {
            id: place.id,
            topic: place.topic,
            left: Some(place),
            to: Destination::Rest(place),
            progress: Progress { key_lost: true, ..resting.job.progress.clone() },
            key: None,
            cause: Cause::KeyPassed,
        };
        self.commit(fact, Origin::Found(resting), out);
    }

    /// Whether the store and the topic of this name have room.
    pub(crate) fn check_room_of(&self, topic: &TopicName, need: RoomNeed) -> Result<(), Error> {
        match self.topics.find_exact(topic) {
            None => self.check_birth(topic, 1)?,
            Some(topic) => return self.check_room(Some(topic), need),
        }
        self.check_room(None, need)
    }

    /// Whether the store and the topic have room.
    fn check_room(&self, topic: Option<TopicNo>, need: RoomNeed) -> Result<(), Error> {
        if let Some(full) = &self.full {
            return Err(full.clone());
        }
        let Some(topic) = topic.and_then(|topic| self.topics.get(topic)) else { return Ok(()) };
        if let Some(max) = topic.settings.jobs_max
            && (topic.jobs() + need.jobs).saturating_sub(need.left_jobs) > max.max(topic.jobs())
        {
            return Err(jobs_full(&topic.name, topic.jobs(), max));
        }
        let after = (topic.counts.bytes + need.bytes).saturating_sub(need.left_bytes);
        if let Some(max) = topic.settings.bytes_max
            && after > max.max(topic.counts.bytes)
        {
            return Err(bytes_full(&topic.name, topic.counts.bytes, after, max));
        }
        Ok(())
    }
}
