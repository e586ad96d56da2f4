//! Follows each job through the answers about it. The effects of lost answers are undone by going
//! through the remembered answers again.

use bytes::Bytes;
use dormouse_core::Map;
use dormouse_core::backend::{Answer, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{
    Cancel, EndReply, Extend, KillTarget, LeasedJob, Nack, OnConflict, Put, PutOutcome, PutReply,
    Release, SessionId,
};
use dormouse_core::time::Now;
use dormouse_core::topic::TopicName;

use super::job::{Due, Known};

/// An answer, or a start, and the batch that made it last.
#[derive(Clone, Debug)]
enum Event {
    Answer { batch: u64, now: Now, asked: Box<Command>, answer: Box<Answer> },
    Start { batch: u64, now: Now },
}

/// See the module. P1 never early, P3 nothing invented, P4 one valid lease, P5 stale is refused, P6
/// ack is final, P7 cancel is final, P8 attempts are counted, P9 a key is held for its time and no
/// longer; and nothing is given before its put is durable.
#[derive(Debug, Default)]
pub struct Checker {
    events: Vec<Event>,
    waiting: Map<Ticket, Command>,
    jobs: Map<JobId, Known>,
    /// The job that has, or last had, each key.
    keys: Map<(TopicName, Bytes), KeyUse>,
    /// Fences outlive what a crash took away: answers to reserve do not wait.
    fences: Map<JobId, u64>,
    /// Puts up to this batch are as durable as promised.
    durable: u64,
    /// A job may be one of a tick.
    has_schedules: bool,
}

/// The last job that took a key, and until when the key is kept after its ack.
#[derive(Clone, Copy, Debug)]
struct KeyUse {
    id: JobId,
    held_until: Option<u64>,
}

impl Checker {
    /// A command was given.
    pub fn asked(&mut self, ticket: Ticket, command: &Command) {
        self.waiting.insert(ticket, command.clone());
    }

    /// Batches up to this one are as durable as promised.
    pub fn set_durable(&mut self, batch: u64) {
        self.durable = batch;
    }

    /// It was answered, while this batch was open.
    pub fn answered(
        &mut self,
        now: Now,
        ticket: Ticket,
        answer: &Answer,
        batch: u64,
    ) -> Result<(), String> {
        let Some(asked) = self.waiting.remove(&ticket) else {
            return Err(format!("{ticket:?} is answered twice: {answer:?}"));
        };
        if let Ok(Reply::Jobs(jobs)) = answer {
            for job in jobs {
                let newest = self.fences.entry(job.id).or_default();
                if job.token.fence <= *newest {
                    return Err(format!("token {} after fence {newest}", job.token));
                }
                *newest = job.token.fence;
            }
        }
        self.follow(now, &asked, answer, batch)?;
        let (asked, answer) = (Box::new(asked), Box::new(answer.clone()));
        self.events.push(Event::Answer { batch, now, asked, answer });
        Ok(())
    }

    /// A crash: what later batches said never happened.
    pub fn lost_after(&mut self, batch: u64) {
        self.waiting.clear();
        self.jobs.clear();
        self.keys.clear();
        let of = |event: &Event| match event {
            Event::Answer { batch, .. } | Event::Start { batch, .. } => *batch,
        };
        let mut events = std::mem::take(&mut self.events);
        events.retain(|event| of(event) <= batch);
        for event in &events {
            match event {
                // It was checked when it came.
                Event::Answer { now, asked, answer, batch } => {
                    let _ = self.follow(*now, asked, answer, *batch);
                }
                Event::Start { now, .. } => self.start(*now),
            }
        }
        self.events = events;
    }

    /// A start, whose first batch this is.
    pub fn restarted(&mut self, now: Now, batch: u64) {
        self.start(now);
        self.events.push(Event::Start { batch, now });
    }

    /// Leases go on with a fresh full ttr; those of sessions are released.
    fn start(&mut self, now: Now) {
        for job in self.jobs.values_mut() {
            job.restarted(now);
        }
    }

    fn follow(
        &mut self,
        now: Now,
        asked: &Command,
        answer: &Answer,
        batch: u64,
    ) -> Result<(), String> {
        let Ok(reply) = answer else { return Ok(()) };
        match (asked, reply) {
            (Command::Put(puts), Reply::Put(replies)) => {
                for (put, reply) in puts.iter().zip(replies) {
                    if let Ok(reply) = reply {
                        self.put(now, put, reply, batch)?;
                    }
                }
            }
            (Command::PutSchedule(_), _) => self.has_schedules = true,
            (Command::RunSchedule(_), Reply::Put(replies)) => {
                for reply in replies.iter().flatten() {
                    self.jobs.insert(reply.id, Known::of_schedule(batch));
                }
            }
            (Command::Reserve(reserve), Reply::Jobs(jobs)) => {
                for job in jobs {
                    self.leased(now, job, reserve.session, true)?;
                }
            }
            (Command::ReserveId(reserve), Reply::Jobs(jobs)) => {
                for job in jobs {
                    self.leased(now, job, reserve.session, false)?;
                }
            }
            (Command::Extend(extends), Reply::Extended(replies)) => {
                for (Extend { token, ttr_ms }, reply) in extends.iter().zip(replies) {
                    if reply.is_ok() {
                        self.held(now, *token)?.extended(now, *ttr_ms);
                    }
                }
            }
            (Command::CloseSession(session), _) => self.closed(now, *session),
            (Command::Purge(topic), _) => {
                self.jobs.values_mut().for_each(|job| job.purged(now, topic));
                // A leased job stays and keeps its key.
                let jobs = &self.jobs;
                let stays = |id: &JobId| jobs.get(id).is_some_and(|job| job.gone.is_none());
                self.keys.retain(|(of, _), used| of != topic || stays(&used.id));
            }
            _ => self.follow_endings(now, asked, reply)?,
        }
        Ok(())
    }

    fn follow_endings(&mut self, now: Now, asked: &Command, reply: &Reply) -> Result<(), String> {
        match (asked, reply) {
            (Command::Ack(tokens), Reply::Ended(ends)) => {
                for (token, end) in tokens.iter().zip(ends) {
                    if *end == Ok(EndReply::Done) {
                        self.acked(now, *token)?;
                    }
                }
            }
            (Command::Nack(nacks), Reply::Ended(ends)) => {
                for (Nack { token, delay_ms, .. }, end) in nacks.iter().zip(ends) {
                    if matches!(end, Ok(EndReply::Retry { .. } | EndReply::Dead)) {
                        let due = Due::after(now, delay_ms.unwrap_or(0));
                        self.held(now, *token)?.ended(due, false);
                    }
                }
            }
            (Command::Release(releases), Reply::Ended(ends)) => {
                for (Release { token, delay_ms, .. }, end) in releases.iter().zip(ends) {
                    if *end == Ok(EndReply::Done) {
                        let due = Due::after(now, delay_ms.unwrap_or(0));
                        self.held(now, *token)?.ended(due, true);
                    }
                }
            }
            (Command::Kill(kills), Reply::Ended(ends)) => {
                for (kill, end) in kills.iter().zip(ends) {
                    if let (KillTarget::Token(token), Ok(EndReply::Done)) = (&kill.target, end) {
                        self.held(now, *token)?.ended(Due::NEVER, false);
                    }
                }
            }
            (Command::Cancel(cancels), Reply::Changed(changes)) => {
                for (Cancel { .. }, change) in cancels.iter().zip(changes) {
                    if let Ok(change) = change {
                        self.live(change.id)?.gone = Some("cancelled");
                    }
                }
            }
            (Command::Reschedule(moves), Reply::Changed(changes)) => {
                for (to, change) in moves.iter().zip(changes) {
                    if let Ok(change) = change {
                        let job = self.live(change.id)?;
                        job.moved(Due::of(now, to.delay_ms, to.at_ms));
                    }
                }
            }
            (Command::Revive(_), Reply::Changed(changes)) => {
                for change in changes.iter().flatten() {
                    self.live(change.id)?.revived(now);
                }
            }
            (Command::ReviveTopic(asked), _) => {
                // Which ones is not said.
                self.jobs.values_mut().for_each(|job| job.perhaps_moved(now, &asked.topic, true));
            }
            // All, or none: see the generator.
            (Command::ReleaseTopic(asked), Reply::Count(1..)) => {
                self.jobs.values_mut().for_each(|job| job.released(now, &asked.topic));
            }
            (Command::Kick(asked), _) => {
                self.jobs.values_mut().for_each(|job| job.perhaps_moved(now, &asked.topic, false));
            }
            _ => {}
        }
        Ok(())
    }

    fn put(&mut self, now: Now, put: &Put, reply: &PutReply, batch: u64) -> Result<(), String> {
        let (id, due) = (reply.id, Due::of(now, put.delay_ms, put.at_ms));
        let key = put.key.clone().map(|key| (put.topic.clone(), key));
        let used = key.as_ref().and_then(|key| self.keys.get(key)).copied();
        let is_held = used.and_then(|used| used.held_until).is_some_and(|at| at > now.steady_ms);
        match reply.outcome {
            PutOutcome::Created => {
                if is_held && put.on_conflict != OnConflict::Replace {
                    return Err(format!("{key:?} is held, yet job {id} takes it: {used:?}"));
                }
                if self.jobs.contains_key(&id) {
                    return Err(format!("id {id} is given twice"));
                }
                self.jobs.insert(id, Known::new(put, due, batch));
                if let Some(key) = key {
                    self.keys.insert(key, KeyUse { id, held_until: None });
                }
            }
            PutOutcome::Replaced => self.live(id)?.replaced(put, due, batch),
            // Without a state it is the hold that stands in the way.
            PutOutcome::Duplicate if reply.state.is_none() && !is_held => {
                return Err(format!("{key:?} is free at {now:?}, yet it is called held: {used:?}"));
            }
            PutOutcome::Duplicate => {}
        }
        Ok(())
    }

    fn acked(&mut self, now: Now, token: Token) -> Result<(), String> {
        let job = self.held(now, token)?;
        job.gone = Some("acked");
        let Some((key, ttl_ms)) = job.key() else { return Ok(()) };
        // If a newer job has taken the key, nothing is held.
        if let Some(used) = self.keys.get_mut(&key)
            && used.id == token.id
            && ttl_ms > 0
        {
            used.held_until = Some(now.after(ttl_ms));
        }
        Ok(())
    }

    fn leased(
        &mut self,
        now: Now,
        given: &LeasedJob,
        session: Option<SessionId>,
        by_due: bool,
    ) -> Result<(), String> {
        let durable = self.durable;
        let job = self.live(given.id)?;
        if by_due && job.put_batch > durable {
            let batch = job.put_batch;
            return Err(format!("job {} is given at {durable}, its put is {batch}", given.id));
        }
        if by_due {
            job.check_due(now).map_err(|why| format!("job {} at {now:?}: {why}", given.id))?;
        }
        job.leased(now, given, session, by_due)
            .map_err(|why| format!("job {} at {now:?}: {why}", given.id))
    }

    fn closed(&mut self, now: Now, session: SessionId) {
        self.jobs.values_mut().for_each(|job| job.session_closed(now, session));
    }

    /// A job that was put and is not gone.
    fn live(&mut self, id: JobId) -> Result<&mut Known, String> {
        if self.has_schedules {
            // Ticks are no answers, so this may be the first that is heard of the job of one.
            self.jobs.entry(id).or_insert_with(|| Known::of_schedule(0));
        }
        let job = self.jobs.get_mut(&id).ok_or_else(|| format!("job {id} was never put"))?;
        match job.gone {
            Some(how) => Err(format!("job {id} is back, but it was {how}")),
            None => Ok(job),
        }
    }

    /// The job whose newest, unspent token this is.
    fn held(&mut self, now: Now, token: Token) -> Result<&mut Known, String> {
        let job = self.live(token.id)?;
        if job.token == Some(token.fence) {
            return Ok(job);
        }
        Err(format!("token {token} is taken at {now:?}, but {:?} is the good one", job.token))
    }
}
