//! What a script answered goes to who asked.

use bytes::Bytes;
use dormouse_core::error::{Code, Error};
use dormouse_core::event::EventKind;
use dormouse_core::job::{JobId, State, Token};
use dormouse_core::op::{Ended, LeasedJob, PutOutcome, PutReply};

use super::Partition;
use super::batch::{Claim, Flight};
use super::decode::{Arrival, Cargo};
use super::request::{Ask, Effect, Raw};
use crate::codec::ack::Came;
use crate::codec::nack::Ending;
use crate::codec::reserve::Seen;
use crate::codec::{ack, extend, nack, put, reserve, reserve_id};
use crate::events::What;
use crate::wire::{Reader, Records, strange};

/// Instead of a number of records: the operation failed.
const FAILED: u32 = u32::MAX;

impl Partition {
    /// Hands the answers out.
    pub(super) fn hand_out(&self, arrival: Arrival) {
        let Arrival { mut flight, cargo, is_repeated, had_company } = arrival;
        let Cargo { now_ms, answers, records, confirmed } = cargo;
        let records = records.into_iter();
        let mut landing = Landing { partition: self, now_ms, answers, records, confirmed };
        if let Err(error) = landing.hand_out(&mut flight) {
            self.crash(flight, &error);
        }
        if is_repeated && had_company {
            // Which was done first is not known: what it saw may not be true any more.
            self.heads.borrow_mut().forget();
            self.look_now();
        }
        self.shared.outbox.flush();
    }
}

/// A flight on its way out of the machine.
struct Landing<'a> {
    partition: &'a Partition,
    now_ms: u64,
    /// What is not handed out yet.
    answers: Bytes,
    records: std::vec::IntoIter<Bytes>,
    /// As many replicas have it as promised.
    confirmed: bool,
}

impl Landing<'_> {
    fn hand_out(&mut self, flight: &mut Flight) -> Result<(), Error> {
        // Asks leave one by one, so that an answer that makes no sense fails only the rest.
        let groups: Vec<usize> = flight.groups().map(<[Ask]>::len).collect();
        for length in groups {
            let group: Vec<Ask> = flight.asks.drain(..length).collect();
            self.hand_out_group(group)?;
        }
        for claim in std::mem::take(&mut flight.claims) {
            let seen = self.seen();
            self.give(claim, seen);
        }
        Ok(())
    }

    /// The answer of the next operation and the records it handed out; the inner error is of that
    /// operation alone.
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

    fn hand_out_group(&mut self, group: Vec<Ask>) -> Result<(), Error> {
        if matches!(group.first(), Some(Ask::Configure { .. })) {
            for ask in group {
                self.hand_out_ask(ask, &mut Reader::new(&[]), &Bytes::new(), Records::none());
            }
            return Ok(());
        }
        match self.answer() {
            Ok(Ok((text, records))) => {
                let (mut from, mut records) = (Reader::new(&text), Some(records));
                for ask in group {
                    let records = records.take().unwrap_or_else(Records::none);
                    self.hand_out_ask(ask, &mut from, &text, records);
                }
                Ok(())
            }
            Ok(Err(error)) => {
                group.into_iter().for_each(|mut ask| ask.fail(error.clone()));
                Ok(())
            }
            Err(error) => {
                group.into_iter().for_each(|mut ask| ask.fail(error.clone()));
                Err(error)
            }
        }
    }

    fn hand_out_ask(
        &mut self,
        ask: Ask,
        from: &mut Reader<'_>,
        text: &Bytes,
        mut records: Records,
    ) {
        // Who asked may have gone: then nobody wants to know.
        let _unheard = match ask {
            Ask::Put { puts, to } => {
                let config = self.partition.config.borrow();
                let read = |put| self.put_reply(put, from, &config.settings);
                to.send(puts.iter().map(read).collect()).is_err()
            }
            Ask::Ack { tokens, to } => {
                let read = |&token| self.ended(EventKind::Acked, ack::read(from, token)?, token);
                to.send(tokens.iter().map(read).collect()).is_err()
            }
            Ask::End { spends, endings, to } => {
                self.partition.heads.borrow_mut().forget();
                let kind = if spends { EventKind::Nacked } else { EventKind::Released };
                let read = |ending: &Ending| {
                    self.ended(kind, nack::read(from, ending.token)?, ending.token)
                };
                to.send(endings.iter().map(read).collect()).is_err()
            }
            Ask::Extend { leases, to } => {
                let heads = &self.partition.heads;
                let read = |&(token, _): &(_, _)| {
                    let extended = extend::read(from, token)?;
                    if let Ok(extended) = &extended {
                        // It may end sooner than before.
                        heads.borrow_mut().lower_end(extended.expires_at);
                    }
                    Ok(extended)
                };
                to.send(leases.iter().map(read).collect()).is_err()
            }
            Ask::Take { to, .. } => {
                let seen = self.read_look(from, &mut records);
                if let Err(Ok(seen)) = to.send(seen) {
                    self.give_back(&seen.jobs);
                }
                false
            }
            Ask::Other { to, effect, .. } => {
                if effect != Effect::Look {
                    self.partition.heads.borrow_mut().forget();
                }
                if effect == Effect::Change && !self.confirmed {
                    to.send(Err(self.unconfirmed(None))).is_err()
                } else {
                    let raw = Raw { answer: text.clone(), records, now_ms: self.now_ms };
                    if let Err(Ok(raw)) = to.send(Ok(raw)) {
                        self.give_back_unheard(effect, raw);
                    }
                    false
                }
            }
            Ask::Configure { to, .. } => {
                let outcome = if self.confirmed { Ok(()) } else { Err(self.unconfirmed(None)) };
                to.send(outcome).is_err()
            }
        };
    }

    /// A single job that was taken for somebody who has gone.
    fn give_back_unheard(&self, effect: Effect, mut raw: Raw) {
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
        put: &dormouse_core::op::Put,
        from: &mut Reader<'_>,
        settings: &dormouse_core::topic::Settings,
    ) -> Result<Result<PutReply, Error>, Error> {
        let topic = &put.topic;
        let reply = put::read(from, topic, put.bytes(), settings)?;
        if let Ok(reply) = &reply
            && matches!(reply.state, Some(State::Delayed | State::Ready))
        {
            let mut heads = self.partition.heads.borrow_mut();
            heads.lower(put::priority(put), reply.due_at, reply.id);
            let kind = match reply.outcome {
                PutOutcome::Created => Some(EventKind::Put),
                PutOutcome::Replaced => Some(EventKind::Replaced),
                PutOutcome::Duplicate => None,
            };
            let (id, due_at) = (Some(reply.id), Some(reply.due_at));
            self.tell(|| kind.map(|kind| What { kind, id, due_at, attempt: 0 }));
        }
        Ok(reply.and_then(|reply| {
            if self.confirmed { Ok(reply) } else { Err(self.unconfirmed(Some(reply.id))) }
        }))
    }

    /// Tells how a lease ended; without enough replicas it is not certain.
    fn ended(
        &self,
        kind: EventKind,
        came: Came,
        token: Token,
    ) -> Result<Result<Ended, Error>, Error> {
        let Came { ended, due_at, attempts } = came;
        let kind = if ended == Ok(Ended::Dead) { EventKind::Died } else { kind };
        if matches!(ended, Ok(Ended::Done | Ended::Dead)) {
            let due_at = (due_at > 0).then_some(due_at);
            self.tell(|| [What { kind, id: Some(token.id), due_at, attempt: attempts }]);
        }
        match ended {
            Ok(_) if !self.confirmed => Ok(Err(self.unconfirmed(Some(token.id)))),
            ended => Ok(ended),
        }
    }

    /// Tells what happened, if anybody wants to know and it is certain.
    fn tell<E: IntoIterator<Item = What>>(&self, events: impl FnOnce() -> E) {
        let teller = &self.partition.shared.teller;
        if let Some(topic) = &self.partition.topic
            && self.confirmed
            && teller.is_watched()
        {
            teller.tell(topic, self.now_ms, events());
        }
    }

    fn seen(&mut self) -> Result<Seen, Error> {
        let (text, mut records) = self.answer()??;
        self.read_look(&mut Reader::new(&text), &mut records)
    }

    fn read_look(&self, from: &mut Reader<'_>, records: &mut Records) -> Result<Seen, Error> {
        let partition = self.partition;
        let Some(topic) = &partition.topic else { return Err(strange("locks are not reserved")) };
        let seen = reserve::read(from, records, topic, self.now_ms)?;
        let config = partition.config.borrow();
        partition.heads.borrow_mut().learn(&seen, &config.priorities);
        let reserved = |job: &LeasedJob| What {
            kind: EventKind::Reserved,
            id: Some(job.id),
            due_at: None,
            attempt: job.attempt,
        };
        self.tell(|| seen.jobs.iter().map(reserved));
        Ok(seen)
    }

    /// Jobs go to those who demanded them, first come, first served.
    fn give(&self, claim: Claim, seen: Result<Seen, Error>) {
        let mut jobs = match seen {
            Ok(seen) => {
                if seen.jobs.len() >= claim.look.max {
                    // There may be more, for those who could not go along.
                    self.partition.look_now();
                }
                seen.jobs.into_iter()
            }
            Err(error) => {
                for demand in claim.demands {
                    demand.fail(&error);
                }
                return;
            }
        };
        for demand in claim.demands {
            if demand.is_over() {
                demand.unclaim();
                continue;
            }
            let share: Vec<_> = jobs.by_ref().take(demand.max).collect();
            if demand.settle(self.partition.no, claim.reason, share) {
                self.partition.undemand(demand.no);
            }
        }
        let left: Vec<_> = jobs.collect();
        self.give_back(&left);
    }

    /// It happened, but fewer replicas than promised have it.
    fn unconfirmed(&self, id: Option<JobId>) -> Error {
        self.partition.shared.link.meters().note_unconfirmed();
        let text = "it happened, but not as many replicas as promised said in time that they have \
                    it: it may be lost with the primary; look before you send it again";
        let job = id.map(|id| (id, State::Ready));
        Error { code: Code::Unconfirmed, text: text.into(), job }
    }

    fn give_back(&self, jobs: &[LeasedJob]) {
        let tokens: Vec<_> = jobs.iter().map(|job| job.token).collect();
        self.partition.give_back(&tokens);
    }
}
