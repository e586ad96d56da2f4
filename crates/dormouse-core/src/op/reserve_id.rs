//! reserve_id: take a given waiting or dead job now, whatever its due time.

use crate::backend::Ticket;
use crate::command::{Command, Reply, only, operation};
use crate::error::Fatal;
use crate::holder::HolderId;
use crate::job::JobId;
use crate::machine::{JobLocation, Machine, Output, ReserveTerms, Rule, When, answered};
use crate::op::{LeasedJob, SessionId, Target, check};
use crate::refusal::{no_job, reserve_leased};
use crate::time::Now;
use crate::timeline::Timeline;

/// Take this job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReserveId {
    /// The job.
    pub id: JobId,
    /// Lease time instead of the job's own.
    pub ttr_ms: Option<i64>,
    /// The lease ends with this session.
    pub session: Option<SessionId>,
}

operation! {
    ReserveId => LeasedJob,
        request => Command::ReserveId(request),
        Reply::Jobs(jobs) => only(jobs.into_iter().map(Ok).collect());
}

impl<T: Timeline> Machine<T> {
    /// Takes one job even of a paused topic: the caller names it on purpose.
    pub(crate) fn reserve_id(
        &mut self,
        now: Now,
        ticket: Ticket,
        holder: Option<HolderId>,
        reserve: ReserveId,
        out: &mut Output,
    ) -> Result<(), Fatal> {
        // `take_by_id` overrides this where the job's put may not be durable yet.
        let mut when = When::Prompt;
        let answer = answered(self.take_by_id(now, holder, reserve, &mut when, out))?;
        let answer = answer.map(|job| Reply::Jobs(vec![job]));
        out.answers.push((ticket, answer, when));
        Ok(())
    }

    fn take_by_id(
        &mut self,
        now: Now,
        holder: Option<HolderId>,
        reserve: ReserveId,
        when: &mut When,
        out: &mut Output,
    ) -> Rule<LeasedJob> {
        let ttr_ms = check::ttr(reserve.ttr_ms)?;
        self.check_session(reserve.session)?;
        let id = reserve.id;
        let target = Target::Id(id);
        let JobLocation::Resting(resting) = self.locate(now, &target)? else {
            return Err(reserve_leased(id).into());
        };
        let topic = resting.place.topic;
        if !self.has_lease_room(topic, holder) {
            return Err(self.no_lease_room(topic, holder).into());
        }
        self.check_flow(&resting, now)?;
        if resting.put_batch != 0 {
            *when = When::Durable;
        }
        let terms = ReserveTerms { max: 1, ttr_ms, session: reserve.session, holder };
        self.grant(now, resting, false, terms, out)?.ok_or_else(|| no_job(&target).into())
    }
}
