//! Follows each job through the answers about it. The effects of lost answers are undone by going
//! through the remembered answers again.

use bytes::Bytes;
use dormouse_core::Map;
use dormouse_core::backend::{Answer, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::{JobId, State, Token};
use dormouse_core::op::{
    Cancel, Chain, ChainReply, EndReply, Extend, JobView, KillTarget, LeasedJob, Nack, OnConflict,
    Purge, Put, PutOutcome, PutReply, Release, SessionId,
};
use dormouse_core::schedule::Overlap;
use dormouse_core::time::Now;
use dormouse_core::topic::TopicName;

use super::job::{Due, Known};
use super::limits::Limits;

const ACKED: &str = "acked";
const CANCELLED: &str = "cancelled";
const DIED_AWAY: &str = "gone to a dead topic";

/// An answer, or a start, and the batch that made it last.
#[derive(Clone, Debug)]
enum Event {
    Answer { batch: u64, now: Now, asked: Box<Command>, answer: Box<Answer> },
    Start { batch: u64, now: Now },
}

/// See the module. P1 never early, P3 nothing invented, P4 one valid lease, P5 stale is refused, P6
/// ack is final, P7 cancel is final, P8 attempts are counted, P9 a key is held for its time and no
/// longer; a chain is done whole; what is too late is not given, what is done does not live, a
/// death makes one letter; no more are leased, and none come faster, than limits of topics and
/// groups allow; and nothing is given before its put is durable.
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
    /// A job may be one of a tick, or a dead letter.
    has_own_jobs: bool,
    /// A tick may take the job of the tick before away.
    has_replacing: bool,
    /// The letter that each job became.
    letters: Map<JobId, JobId>,
    limits: Limits,
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
        self.pace(now, &asked, answer)?;
        let (asked, answer) = (Box::new(asked), Box::new(answer.clone()));
        self.events.push(Event::Answer { batch, now, asked, answer });
        Ok(())
    }

    /// How fast jobs came: a crash takes nothing of that back.
    fn pace(&mut self, now: Now, asked: &Command, answer: &Answer) -> Result<(), String> {
        match (asked, answer) {
            (Command::SetTopic(set), Ok(_)) => self.limits.begin_rates(set),
            (_, Ok(Reply::Jobs(jobs))) => {
                for job in jobs {
                    let given = self.limits.give(now, job);
                    given.map_err(|why| format!("job {} at {now:?}: {why}", job.id))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A crash: what later batches said never happened.
    pub fn lost_after(&mut self, batch: u64) {
        self.waiting.clear();
        self.jobs.clear();
        self.keys.clear();
        self.letters.clear();
        self.limits.forget_settings();
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
            (Command::PutSchedule(put), _) => {
                self.has_own_jobs = true;
                self.has_replacing |= put.overlap == Some(Overlap::Replace);
            }
            (Command::SetTopic(set), _) => {
                self.has_own_jobs |= set.settings.dead_topic.is_some();
                self.limits.set(set);
            }
            (Command::Chain(chain), Reply::Chain(reply)) => {
                self.chained(now, chain, reply, batch)?;
            }
            (_, Reply::Views(views)) => {
                views.iter().flatten().try_for_each(|view| self.seen(view))?;
            }
            (_, Reply::View(view)) => view.iter().try_for_each(|view| self.seen(view))?,
            (_, Reply::Page(page)) => page.jobs.iter().try_for_each(|view| self.seen(view))?,
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
            (Command::Purge(Purge { topic, state: None, .. }), _) => {
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
                    match end {
                        Ok(EndReply::Done) => self.acked(now, *token)?,
                        Ok(EndReply::Gone) => self.check_gone(now, *token)?,
                        _ => {}
                    }
                }
            }
            (Command::Nack(nacks), Reply::Ended(ends)) => {
                for (Nack { token, delay_ms, .. }, end) in nacks.iter().zip(ends) {
                    if matches!(end, Ok(EndReply::Retry { .. } | EndReply::Dead)) {
                        let due = Due::after(now, delay_ms.unwrap_or(0));
                        self.held(now, *token)?.retried(due);
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
                        self.live(change.id)?.gone = Some(CANCELLED);
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

    /// All or nothing.
    fn chained(
        &mut self,
        now: Now,
        chain: &Chain,
        reply: &ChainReply,
        batch: u64,
    ) -> Result<(), String> {
        let is_done = reply.end == EndReply::Done;
        let expected = if is_done { chain.puts.len() } else { 0 };
        if reply.puts.len() != expected {
            return Err(format!("{chain:?} is answered with a part of it: {reply:?}"));
        }
        if is_done {
            self.acked(now, chain.token)?;
        } else {
            self.check_gone(now, chain.token)?;
        }
        let mut pairs = chain.puts.iter().zip(&reply.puts);
        pairs.try_for_each(|(put, reply)| self.put(now, put, reply, batch))
    }

    /// The job of this token is gone by an answer: nobody may have lost it.
    fn check_gone(&self, now: Now, token: Token) -> Result<(), String> {
        match self.jobs.get(&token.id) {
            Some(job) if self.has_replacing && job.is_of_tick => Ok(()),
            Some(job) if job.gone.is_none() && job.is_held_by(token.fence, now) => {
                Err(format!("job {} is gone at {now:?}, but its lease goes on: {job:?}", token.id))
            }
            _ => Ok(()),
        }
    }

    /// Somebody looked at a job: what is gone may be found as done if it was acked, else not at
    /// all.
    fn seen(&self, view: &JobView) -> Result<(), String> {
        let gone = self.jobs.get(&view.job.id).and_then(|job| job.gone);
        match (gone, view.state) {
            (Some(ACKED), State::Done) | (None, _) => Ok(()),
            (Some(how), state) => {
                Err(format!("job {} was {how} and is found as {state:?}", view.job.id))
            }
        }
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
            // Without a state it is the hold that stands in the way; a done job does only while its
            // key is held.
            PutOutcome::Duplicate
                if matches!(reply.state, None | Some(State::Done)) && !is_held =>
            {
                return Err(format!("{key:?} is free at {now:?}, yet it is called held: {used:?}"));
            }
            PutOutcome::Duplicate => {}
        }
        Ok(())
    }

    fn acked(&mut self, now: Now, token: Token) -> Result<(), String> {
        let job = self.held(now, token)?;
        job.gone = Some(ACKED);
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
        self.note_letter(given)?;
        self.check_slots(now, given)?;
        let job = self.live(given.id)?;
        if by_due && job.put_batch > durable {
            let batch = job.put_batch;
            return Err(format!("job {} is given at {durable}, its put is {batch}", given.id));
        }
        if by_due {
            job.check_in_time(now).map_err(|why| format!("job {} at {now:?}: {why}", given.id))?;
            job.check_due(now).map_err(|why| format!("job {} at {now:?}: {why}", given.id))?;
        }
        job.leased(now, given, session, by_due)
            .map_err(|why| format!("job {} at {now:?}: {why}", given.id))
    }

    /// A slot of the topic and of the group is free. A tick that replaces may end leases unheard.
    fn check_slots(&self, now: Now, given: &LeasedJob) -> Result<(), String> {
        let others = self.jobs.iter().filter(|(id, job)| {
            let is_known = !(self.has_replacing && job.is_of_tick);
            **id != given.id && is_known && job.has_slot(&given.topic, now)
        });
        let (mut of_topic, mut of_group) = (0, 0);
        for (_, job) in others {
            of_topic += 1;
            of_group += usize::from(job.group == given.group);
        }
        let checked = self.limits.check_slots(given, of_topic, of_group);
        checked.map_err(|why| format!("job {} at {now:?}: {why}", given.id))
    }

    /// A dead letter has the body of the job that it was, which is gone, and is the only one of it.
    fn note_letter(&mut self, given: &LeasedJob) -> Result<(), String> {
        let headers = given.headers.iter().flat_map(|headers| headers.iter());
        let mut origins = headers.filter(|(name, _)| name == "dead-id");
        let origin = origins.next().and_then(|(_, id)| id.parse().ok()).map(JobId);
        let Some(origin) = origin else { return Ok(()) };
        let letter = *self.letters.entry(origin).or_insert(given.id);
        if letter != given.id {
            return Err(format!("job {origin} became two letters, {letter} and {}", given.id));
        }
        let Some(dead) = self.jobs.get_mut(&origin) else { return Ok(()) };
        // Of one that was purged nobody said that it had died before.
        if matches!(dead.gone, Some(ACKED | CANCELLED)) {
            return Err(format!("job {origin} was {:?}, yet it became letter {letter}", dead.gone));
        }
        dead.gone = Some(DIED_AWAY);
        dead.has_body(&given.body).map_err(|why| format!("letter {letter} of {origin}: {why}"))
    }

    fn closed(&mut self, now: Now, session: SessionId) {
        self.jobs.values_mut().for_each(|job| job.session_closed(now, session));
    }

    /// A job that was put and is not gone.
    fn live(&mut self, id: JobId) -> Result<&mut Known, String> {
        if self.has_own_jobs {
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
