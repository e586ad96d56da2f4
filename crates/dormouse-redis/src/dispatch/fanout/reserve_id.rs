//! reserve_id: leases one job, in whatever state it rests.

use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::event::EventKind;
use dormouse_core::op::{ReserveId, Target, check};
use dormouse_core::refusal::{no_job, no_session};

use super::Fanout;
use crate::codec::reserve_id;
use crate::dispatch::sessions::SessionLease;
use crate::events::{self, EventDetails};
use crate::partition::Effect;
use crate::wire::Reader;

impl Fanout<'_> {
    pub(super) async fn reserve_id(self, reserve: ReserveId) -> Answer {
        let ttr_ms = check::ttr(reserve.ttr_ms)?;
        self.check_session(reserve.session)?;
        let (id, missing) = (reserve.id, || no_job(&Target::Id(reserve.id)));
        let partition = self.dispatcher.partition_of(id).ok_or_else(missing)?;
        let topic = partition.topic.clone().ok_or_else(missing)?;
        let op = reserve_id::op(id, ttr_ms);
        let mut raw = self.submit_op(&partition, Effect::Lease, op).await?;
        let mut from = Reader::new(&raw.answer);
        let job = reserve_id::read(&mut from, &mut raw.records, &topic, raw.now_ms, id)??;
        if let Some(session) = reserve.session
            && !self.dispatcher.sessions.borrow_mut().add(
                session,
                SessionLease::of(&job),
                raw.now_ms,
            )
        {
            partition.give_back(&[job.token]);
            return Err(no_session(session));
        }
        if self.is_watched() {
            let (kind, id) = (EventKind::Reserved, Some(job.id));
            let event = EventDetails { kind, id, due_at: None, attempt: job.attempt };
            events::emit(&self.dispatcher.shared.events, &topic, raw.now_ms, [event]);
        }
        Ok(Reply::Jobs(vec![job]))
    }
}
