//! Delivers the reply of a script batch: reads the answer of each operation, in the order in which
//! `batch` wrote them, and sends it to the requests and waiters it is for. Updates `heads` and
//! emits events on the way.

use std::cell::RefMut;

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::event::EventKind;
use dormouse_core::job::{JobId, State, Token};
use dormouse_core::op::{EndReply, LeasedJob, Put, PutOutcome, PutReply};
use dormouse_core::topic::{Settings, TopicName};

use super::Partition;
use super::batch::{ScriptBatch, groups};
use super::decode::ScriptReply;
use super::request::{Effect, PartitionRequest, RawReply};
use crate::codec::ItemResult;
use crate::codec::ack::LeaseEnd;
use crate::codec::nack::EndRequest;
use crate::codec::put::OwnPut;
use crate::codec::reserve::PollReply;
use crate::codec::{ack, extend, nack, put, reserve, reserve_id};
use crate::events::{self, EventDetails};
use crate::scheduler::{Heads, SharedPoll};
use crate::wire::codes::FAILED;
use crate::wire::{Reader, Records, malformed};

impl Partition {
    pub(super) fn deliver(&self, mut batch: ScriptBatch, reply: ScriptReply) {
        let ScriptReply { now_ms, answers, records, are_ticks_due, confirmed } = reply;
        if are_ticks_due {
            self.shared.schedule(|scheduler, _| scheduler.expect_tick(self.no, 0));
        }
        let records = records.into_iter();
        let mut delivery = Delivery { partition: self, now_ms, answers, records, confirmed };
        // A reply that cannot be read fails the requests that are still in the batch.
        if let Err(error) = delivery.deliver(&mut batch) {
            batch.requests.iter_mut().for_each(|request| request.fail(error.clone()));
            self.shared.schedule(|scheduler, now| scheduler.back_off(self.no, now));
        }
        self.shared.outbox.flush();
    }
}

/// The delivery of one batch.
struct Delivery<'a> {
    partition: &'a Partition,
    now_ms: u64,
    /// The answers not yet read.
    answers: Bytes,
    records: std::vec::IntoIter<Bytes>,
    /// As many replicas have confirmed it as configured.
    confirmed: bool,
}

impl Delivery<'_> {
    fn deliver(&mut self, batch: &mut ScriptBatch) -> Result<(), Error> {
        // Requests are taken out group by group, so that a malformed answer fails only the rest.
        let lengths: Vec<_> = groups(&batch.requests).map(<[PartitionRequest]>::len).collect();
        for length in lengths {
            let group: Vec<PartitionRequest> = batch.requests.drain(..length).collect();
            if let Err(error) = self.deliver_group(group) {
                for poll in std::mem::take(&mut batch.polls) {
                    self.give(poll, Err(error.clone()));
                }
                return Err(error);
            }
        }
        for poll in std::mem::take(&mut batch.polls) {
            let poll_reply = self.next_poll_reply();
            self.give(poll, poll_reply);
        }
        Ok(())
    }

    /// The answer and records of the next operation. The inner error is that of the operation
    /// alone; the outer one makes the rest of the reply unreadable.
    fn answer(&mut self) -> Result<Result<(Bytes, Records), Error>, Error> {
        let mut from = Reader::new(&self.answers);
        let (length, records) = (from.u32()? as usize, from.u32()?);
        let text = self.answers.slice_ref(from.bytes(length)?);
        self.answers = self.answers.slice_ref(from.rest());
        if records == FAILED {
            let text = String::from_utf8_lossy(&text).into_owned();
            return Ok(Err(Error::unavailable(format!("a script failed: {text}"))));
        }
        let records = self.records.by_ref().take(records as usize).collect();
        Ok(Ok((text, Records::new(records))))
    }

    fn deliver_group(&mut self, group: Vec<PartitionRequest>) -> Result<(), Error> {
        // What goes with the script itself has no answer of its own.
        let answer = match group.first() {
            Some(PartitionRequest::Configure { .. }) => Ok(Ok((Bytes::new(), Records::none()))),
            _ => self.answer(),
        };
        if let Ok(Ok((text, records))) = answer {
            let (mut from, mut records) = (Reader::new(&text), Some(records));
            for request in group {
                let records = records.take().unwrap_or_else(Records::none);
                self.deliver_request(request, &mut from, &text, records);
            }
            return Ok(());
        }
        if let Ok(Err(error)) | Err(error) = &answer {
            group.into_iter().for_each(|mut request| request.fail(error.clone()));
        }
        answer.map(|_| ())
    }

    fn deliver_request(
        &mut self,
        request: PartitionRequest,
        from: &mut Reader<'_>,
        text: &Bytes,
        mut records: Records,
    ) {
        // The receiver may be gone; only leases must then be released.
        let _unheard = match request {
            PartitionRequest::Put { puts, reply_to } => {
                let config = self.partition.config.borrow();
                let read = |put| self.put_reply(put, from, &config.settings);
                reply_to.send(puts.iter().map(read).collect()).is_err()
            }
            PartitionRequest::OwnPut { puts, reply_to } => {
                let config = self.partition.config.borrow();
                let read = |own: &OwnPut| self.put_reply(&own.put, from, &config.settings);
                reply_to.send(puts.iter().map(read).collect()).is_err()
            }
            PartitionRequest::Chain { reply_to, .. } => {
                self.heads().invalidate();
                reply_to.send(Ok(self.raw_reply(text, records))).is_err()
            }
            PartitionRequest::Ack { tokens, reply_to } => {
                if self.partition.has_slots() {
                    self.heads().open();
                }
                let read = |&token| self.ended(EventKind::Acked, ack::read(from, token)?, token);
                reply_to.send(tokens.iter().map(read).collect()).is_err()
            }
            PartitionRequest::End { spends, endings, reply_to } => {
                self.heads().invalidate();
                let kind = if spends { EventKind::Nacked } else { EventKind::Released };
                let read = |ending: &EndRequest| {
                    self.ended(kind, nack::read(from, ending.token)?, ending.token)
                };
                reply_to.send(endings.iter().map(read).collect()).is_err()
            }
            PartitionRequest::Extend { leases, reply_to } => {
                let read = |&(token, _): &(_, _)| {
                    let extended = extend::read(from, self.topic()?, token)?;
                    if let Ok(extended) = &extended {
                        // The lease may now end sooner.
                        self.heads().lower_lease_end(extended.expires_at);
                    }
                    Ok(extended)
                };
                reply_to.send(leases.iter().map(read).collect()).is_err()
            }
            PartitionRequest::Reserve { reply_to, .. } => {
                let poll_reply = self.read_poll(from, &mut records);
                if let Err(Ok(poll_reply)) = reply_to.send(poll_reply) {
                    self.give_back(&poll_reply.jobs);
                }
                false
            }
            PartitionRequest::Other { reply_to, effect, .. } => {
                if effect != Effect::Read {
                    self.heads().invalidate();
                }
                if let Err(Ok(raw)) = reply_to.send(Ok(self.raw_reply(text, records))) {
                    self.give_back_unheard(effect, raw);
                }
                false
            }
            PartitionRequest::Configure { reply_to, .. } => {
                reply_to.send(Ok(self.confirmed)).is_err()
            }
        };
    }

    fn raw_reply(&self, text: &Bytes, records: Records) -> RawReply {
        let (now_ms, confirmed) = (self.now_ms, self.confirmed);
        RawReply { answer: text.clone(), records, now_ms, confirmed }
    }

    /// Releases a job reserved by id whose caller is gone.
    fn give_back_unheard(&self, effect: Effect, mut raw: RawReply) {
        let Some(topic) = self.partition.topic.as_ref().filter(|_| effect == Effect::Lease) else {
            return;
        };
        let mut from = Reader::new(&raw.answer);
        let read = reserve_id::read(&mut from, &mut raw.records, topic, raw.now_ms, JobId(0));
        if let Ok(Ok(job)) = read {
            self.partition.give_back(&[job.token]);
        }
    }

    fn put_reply(
        &self,
        put: &Put,
        from: &mut Reader<'_>,
        settings: &Settings,
    ) -> ItemResult<PutReply> {
        let topic = &put.topic;
        let reply = put::read(from, topic, put.bytes(), settings)?;
        if let Ok(reply) = &reply
            && matches!(reply.state, Some(State::Delayed | State::Ready))
        {
            self.heads().lower(put::priority(put), reply.due_at, reply.id);
            self.partition.note_number(reply.id);
            if put::span_ms(put, settings) > 0 {
                self.partition.watch_ticks();
            }
            let kind = match reply.outcome {
                PutOutcome::Created => Some(EventKind::Put),
                PutOutcome::Replaced => Some(EventKind::Replaced),
                PutOutcome::Duplicate => None,
            };
            let (id, due_at) = (Some(reply.id), Some(reply.due_at));
            self.emit(|| kind.map(|kind| EventDetails { kind, id, due_at, attempt: 0 }));
        }
        Ok(reply.and_then(|reply| {
            let done = match reply.outcome {
                PutOutcome::Created => "created",
                PutOutcome::Replaced => "replaced",
                PutOutcome::Duplicate => return Ok(reply),
            };
            self.if_confirmed(reply.id, done).map(|()| reply)
        }))
    }

    /// The reply to the end of a lease, with its event.
    fn ended(&self, kind: EventKind, end: LeaseEnd, token: Token) -> ItemResult<EndReply> {
        let LeaseEnd { mut ended, due_at, attempts } = end;
        let kind = if ended == Ok(EndReply::Dead) { EventKind::Died } else { kind };
        if matches!(ended, Ok(EndReply::Done | EndReply::Dead)) {
            let due_at = (due_at > 0).then_some(due_at);
            self.emit(|| [EventDetails { kind, id: Some(token.id), due_at, attempt: attempts }]);
        }
        let done = match (&ended, kind) {
            (Ok(EndReply::Done), EventKind::Acked) => "acked",
            (Ok(EndReply::Done), EventKind::Released) => "released",
            (Ok(EndReply::Done | EndReply::Retry { .. }), _) => "nacked",
            (Ok(EndReply::Dead), _) => "nacked and is dead",
            (Ok(EndReply::Gone) | Err(_), _) => return Ok(ended),
        };
        if (&ended, kind) == (&Ok(EndReply::Done), EventKind::Nacked) {
            ended = Ok(EndReply::Retry { due_at });
        }
        Ok(self.if_confirmed(token.id, done).and(ended))
    }

    /// Emits events, if someone watches and the replicas have confirmed the change.
    fn emit<E: IntoIterator<Item = EventDetails>>(&self, make: impl FnOnce() -> E) {
        let sink = &self.partition.shared.events;
        if let Some(topic) = &self.partition.topic
            && self.confirmed
            && sink.is_watched()
        {
            events::emit(sink, topic, self.now_ms, make());
        }
    }

    fn next_poll_reply(&mut self) -> Result<PollReply, Error> {
        let (text, mut records) = self.answer()??;
        self.read_poll(&mut Reader::new(&text), &mut records)
    }

    fn read_poll(&self, from: &mut Reader<'_>, records: &mut Records) -> Result<PollReply, Error> {
        let partition = self.partition;
        let poll_reply = reserve::read(from, records, self.topic()?, self.now_ms)?;
        let config = partition.config.borrow();
        self.heads().update(&poll_reply.report, &config.priorities);
        let reserved = |job: &LeasedJob| EventDetails {
            kind: EventKind::Reserved,
            id: Some(job.id),
            due_at: None,
            attempt: job.attempt,
        };
        self.emit(|| poll_reply.jobs.iter().map(reserved));
        Ok(poll_reply)
    }

    /// Gives the jobs of a poll to its waiters.
    fn give(&self, mut poll: SharedPoll, poll_reply: Result<PollReply, Error>) {
        let Partition { shared, no, .. } = self.partition;
        match poll_reply {
            Ok(reply) if reply.jobs.is_empty() && reply.report.next(self.now_ms).is_some() => {
                shared.schedule(|scheduler, _| scheduler.repeat_poll(*no, &poll));
            }
            Ok(poll_reply) => {
                let jobs = poll_reply.jobs;
                let outcome = shared.schedule(|scheduler, _| scheduler.polled(*no, &poll, jobs));
                for (waiter, jobs) in outcome.done {
                    match shared.waiter(waiter) {
                        Some(waiter) => waiter.finish_with(Ok(jobs)),
                        None => self.give_back(&jobs),
                    }
                }
                self.give_back(&outcome.left);
            }
            Err(error) => {
                let failed = shared.schedule(|scheduler, _| scheduler.drop_poll(*no, &mut poll));
                self.partition.fail_waiters(failed, &error);
            }
        }
    }

    fn topic(&self) -> Result<&TopicName, Error> {
        self.partition.topic.as_ref().ok_or_else(|| malformed("locks are not leased"))
    }

    fn heads(&self) -> RefMut<'_, Heads> {
        self.partition.shared.heads(self.partition.no)
    }

    /// An error if too few replicas have confirmed what was done to this job.
    fn if_confirmed(&self, id: JobId, done: &str) -> Result<(), Error> {
        if self.confirmed {
            return Ok(());
        }
        Err(self.partition.shared.unconfirmed(&format!("job {id} was {done}"), Some(id)))
    }

    fn give_back(&self, jobs: &[LeasedJob]) {
        let tokens: Vec<_> = jobs.iter().map(|job| job.token).collect();
        self.partition.give_back(&tokens);
    }
}
