//! The rules over a timeline: commands and time in, facts and answers out.
//!
//! An operation (`op/<verb>.rs`) decides a fact; `apply` alone makes it effective, live and in a
//! replay. The machine keeps small things: topics, leases, waiters, sessions, locks. Jobs that
//! wait rest in the timeline.

mod alarms;
mod apply;
mod classes;
mod compact_job;
mod dead;
mod deadlines;
mod events;
mod flow;
mod groups;
mod holders;
mod holds;
mod image;
mod lease;
mod lines;
mod locate;
mod locks;
mod portions;
mod schedules;
mod serve;
mod sessions;
mod snapshot;
mod tick;
mod topics;
mod trim;
mod waiters;

use crate::backend::{Answer, Request, Ticket};
use crate::command::{Command, Reply};
use crate::error::{Error, Fatal};
use crate::fact::Fact;
use crate::image::Counts;
use crate::limits::{TICK_JOB_BYTES, TICK_MAX};
use crate::op::{GetProgress, Purge, check};
use crate::time::Now;
use crate::timeline::{BatchNo, Timeline};

pub(crate) use apply::Origin;
pub(crate) use classes::ClassWalk;
pub(crate) use dead::Death;
pub use dead::{dead_letter, dead_letter_key};
pub(crate) use lease::{Lease, bury};
pub(crate) use locate::{JobLocation, KeyOwner, TokenState};
pub(crate) use locks::HeldLock;
pub(crate) use portions::{BatchProgress, LongCommand, Portion, PortionBudget};
pub(crate) use schedules::{Position, ScheduleEntry};
pub(crate) use sessions::{Orphan, OrphanLease};
pub use snapshot::MachineSnapshot;
pub(crate) use topics::VanishedCount;
pub(crate) use waiters::{LockTerms, ReserveTerms, WaitKind};

use alarms::TopicAlarms;
use deadlines::Deadlines;
use groups::Groups;
use holders::Holders;
use lease::Leases;
use locks::Locks;
use portions::LongCommands;
use schedules::Schedules;
use sessions::Sessions;
use topics::Topics;
use waiters::Waiters;

/// When an answer may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At once: reserve and extend, whose loss in a crash costs only another delivery.
    Prompt,
    /// After the facts of this step, and all before, are durable.
    Durable,
}

/// The output of steps and ticks; the driver empties it, so its buffers are reused.
#[derive(Debug, Default)]
pub struct Output {
    /// To be made durable, in this order.
    pub facts: Vec<Fact>,
    /// To be delivered.
    pub answers: Vec<(Ticket, Answer, When)>,
}

/// Why a rule did not end in a reply.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The request, or one item of it, is answered with this error.
    Refused(Error),
    /// The timeline is broken: the store stops.
    Fatal(Fatal),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Refused(error)
    }
}

impl From<Fatal> for Stop {
    fn from(fatal: Fatal) -> Stop {
        Stop::Fatal(fatal)
    }
}

/// The result of a rule.
pub(crate) type Rule<R> = Result<R, Stop>;

/// The result of a rule as an answer; a fatal error is none.
pub(crate) fn answered<R>(result: Rule<R>) -> Result<Result<R, Error>, Fatal> {
    match result {
        Ok(reply) => Ok(Ok(reply)),
        Err(Stop::Refused(error)) => Ok(Err(error)),
        Err(Stop::Fatal(fatal)) => Err(fatal),
    }
}

/// The result of a step, unless the command answers for itself.
enum StepResult {
    Reply(Rule<Reply>),
    /// It is done in portions.
    Long(Rule<LongCommand>),
    /// It is done in portions if its jobs are large.
    Batch(Result<LongCommand, Error>),
}

impl StepResult {
    fn batch<I, R>(
        items: Vec<I>,
        command: impl FnOnce(BatchProgress<I, R>) -> LongCommand,
    ) -> StepResult {
        StepResult::Batch(BatchProgress::new(items).map(command))
    }
}

/// What a job of this size costs a tick.
pub(crate) fn job_cost(bytes: u64) -> usize {
    1 + usize::try_from(bytes).unwrap_or(usize::MAX - 1) / TICK_JOB_BYTES
}

/// The rules of the queue over a timeline.
#[derive(Debug)]
pub struct Machine<T> {
    pub(crate) timeline: T,
    pub(crate) topics: Topics,
    pub(crate) leases: Leases,
    pub(crate) waiters: Waiters,
    pub(crate) sessions: Sessions,
    pub(crate) locks: Locks,
    pub(crate) schedules: Schedules,
    pub(crate) deadlines: Deadlines,
    pub(crate) groups: Groups,
    /// The number of leases and locks of each holder.
    pub(crate) holders: Holders,
    /// When the oldest dead job of a topic may have to go.
    dead_alarms: TopicAlarms,
    /// When the oldest done job of a topic may have to go.
    done_alarms: TopicAlarms,
    /// When the oldest hold of a topic may be over.
    hold_alarms: TopicAlarms,
    /// Totals over all topics, the vanished ones too.
    pub(crate) totals: Counts,
    pub(crate) next_id: u64,
    pub(crate) full: Option<Error>,
    put_batch: BatchNo,
    epoch: u32,
    fences_given: u64,
    /// The last tick left work undone.
    unfinished: bool,
    /// Leases and the like run out slowly for now; and the last tick left some of them.
    is_disk_behind: bool,
    is_put_off: bool,
    /// When that was last done, steady ms.
    upkeep_at: u64,
    /// Commands that are done in portions and have some to go.
    long_commands: LongCommands,
    /// What the steps before the next tick may still do besides their own: leases that run out or
    /// are given back, waiting reserves that are served.
    pub(crate) step_budget: usize,
    /// Locks that they may still let run out.
    step_locks: usize,
    /// Wall minus steady when waiters last looked at the clocks; a step of the wall clock shows in
    /// it.
    wall_offset_ms: Option<i128>,
}

/// Bits of a fence below the boot epoch: a trillion grants per boot, 16 million boots.
const FENCE_COUNTER_BITS: u32 = 40;

impl<T: Timeline> Machine<T> {
    /// An empty machine: first id 1, first topic 1, epoch 1.
    pub fn new(timeline: T) -> Machine<T> {
        Machine {
            timeline,
            topics: Topics::default(),
            leases: Leases::default(),
            waiters: Waiters::default(),
            sessions: Sessions::default(),
            locks: Locks::default(),
            schedules: Schedules::default(),
            deadlines: Deadlines::default(),
            groups: Groups::default(),
            dead_alarms: TopicAlarms::default(),
            done_alarms: TopicAlarms::default(),
            hold_alarms: TopicAlarms::default(),
            holders: Holders::default(),
            totals: Counts::default(),
            next_id: 1,
            full: None,
            put_batch: 0,
            epoch: 1,
            fences_given: 0,
            unfinished: false,
            is_disk_behind: false,
            is_put_off: false,
            upkeep_at: 0,
            long_commands: LongCommands::new(),
            step_budget: TICK_MAX,
            step_locks: TICK_MAX,
            wall_offset_ms: None,
        }
    }

    /// Where the waiting jobs rest.
    pub fn timeline(&self) -> &T {
        &self.timeline
    }

    /// Where the waiting jobs rest.
    pub fn timeline_mut(&mut self) -> &mut T {
        &mut self.timeline
    }

    /// The boot epoch, high bits of every fence.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Raises the boot epoch; a lower one is ignored, because a fence is never given twice.
    pub fn set_epoch(&mut self, epoch: u32) {
        if epoch > self.epoch {
            self.epoch = epoch;
            self.fences_given = 0;
        }
    }

    /// From now on jobs are put by this batch; 0 = they are durable already.
    pub fn set_batch(&mut self, put_batch: BatchNo) {
        self.put_batch = put_batch;
    }

    /// While there is an error here, puts that would create or replace a job are refused with it.
    pub fn set_full(&mut self, full: Option<Error>) {
        self.full = full;
    }

    /// Counts over all topics, the running totals of vanished ones included.
    pub fn totals(&self) -> Counts {
        self.totals
    }

    /// Topics alive.
    pub fn topics_alive(&self) -> usize {
        self.topics.len()
    }

    /// Jobs in the hands of consumers.
    pub fn leased_jobs(&self) -> usize {
        self.leases.len()
    }

    /// Bytes of all leased jobs.
    pub fn leased_bytes(&self) -> u64 {
        self.leases.bytes()
    }

    /// Reserves and locks that wait.
    pub fn waiting_requests(&self) -> usize {
        self.waiters.len()
    }

    /// Locks held.
    pub fn locks_held(&self) -> usize {
        self.locks.len()
    }

    /// Sessions open.
    pub fn sessions_open(&self) -> usize {
        self.sessions.len()
    }

    pub(crate) fn next_fence(&mut self) -> u64 {
        self.fences_given += 1;
        self.last_fence()
    }

    /// The fence that was given last; those given later are greater.
    pub(crate) fn last_fence(&self) -> u64 {
        u64::from(self.epoch) << FENCE_COUNTER_BITS | self.fences_given
    }

    /// Replay: this fence has been given.
    fn note_fence(&mut self, fence: u64) {
        let epoch = u32::try_from(fence >> FENCE_COUNTER_BITS).unwrap_or(u32::MAX);
        self.set_epoch(epoch);
        if epoch == self.epoch {
            let counter = fence & ((1 << FENCE_COUNTER_BITS) - 1);
            self.fences_given = self.fences_given.max(counter);
        }
    }

    /// Applies a rule to every item of a batch; an item that is refused does not stop the others.
    pub(crate) fn each<I, R>(
        &mut self,
        items: impl IntoIterator<Item = I, IntoIter: ExactSizeIterator>,
        mut rule: impl FnMut(&mut Machine<T>, I) -> Rule<R>,
    ) -> Rule<Vec<Result<R, Error>>> {
        let items = items.into_iter();
        check::batch(items.len())?;
        let mut replies = Vec::with_capacity(items.len());
        for item in items {
            replies.push(answered(rule(self, item))?);
        }
        Ok(replies)
    }

    /// Lets run out what a command must not see any more.
    fn expire_before(&mut self, now: Now, out: &mut Output) -> Result<(), Fatal> {
        // Leases that ran out before this command have run out for it, whenever the next tick is.
        // If they are very many, the next ticks do the rest.
        let mut budget = std::mem::take(&mut self.step_budget);
        // Before others run out, as in a tick.
        self.give_back_orphans(&mut budget, out);
        self.expire_leases(now, &mut budget, out)?;
        self.step_budget = budget;
        let mut budget = std::mem::take(&mut self.step_locks);
        self.expire_locks(now, &mut budget, out);
        self.step_locks = budget;
        Ok(())
    }

    /// Does one operation. Errors of the request are answers; after a fatal one the store must
    /// stop.
    pub fn step(&mut self, now: Now, request: Request, out: &mut Output) -> Result<(), Fatal> {
        self.expire_before(now, out)?;
        self.execute(now, request, out)?;
        // Not by the next tick: the driver may seal the batch before that.
        self.move_deadlines(now, out);
        Ok(())
    }

    /// All that rests goes at once, the jobs of a state in portions.
    fn begin_purge(&mut self, purge: Purge, out: &mut Output) -> StepResult {
        match purge.state {
            Some(state) => StepResult::Long(self.purge_state(purge, state)),
            None => StepResult::Reply(self.purge(&purge, out)),
        }
    }

    fn execute(&mut self, now: Now, request: Request, out: &mut Output) -> Result<(), Fatal> {
        let Request { ticket, command, holder } = request;
        let result = match command {
            // These may wait, or need not wait for the disk: they answer for themselves.
            Command::Reserve(reserve) => return self.reserve(now, ticket, holder, &reserve, out),
            Command::ReserveId(reserve) => {
                return self.reserve_id(now, ticket, holder, reserve, out);
            }
            Command::Lock(lock) => {
                self.lock(now, ticket, holder, lock, out);
                return Ok(());
            }
            Command::Forecast(forecast) => StepResult::Long(self.forecast(now, forecast)),
            Command::Kick(kick) => StepResult::Long(Ok(self.kick(kick))),
            Command::List(list) => StepResult::Long(self.list(now, list)),
            Command::Peek(peek) => StepResult::Long(Ok(Machine::<T>::peek(peek))),
            Command::ReviveTopic(revive) => StepResult::Long(Ok(self.revive_topic(revive))),
            Command::ReleaseTopic(release) => StepResult::Long(Ok(self.release_topic(&release))),
            Command::RunSchedule(run) => StepResult::Long(self.run_schedule(now, &run)),
            Command::Stats(stats) => StepResult::Long(self.stats(now, stats)),
            Command::Topics(page) => StepResult::Long(self.topics_page(page)),
            Command::Ack(items) => StepResult::batch(items, LongCommand::Ack),
            Command::Cancel(items) => StepResult::batch(items, LongCommand::Cancel),
            Command::Get(items) => StepResult::Batch(GetProgress::new(items).map(LongCommand::Get)),
            Command::Extend(items) => {
                StepResult::batch(items, |batch| LongCommand::Extend(batch, holder))
            }
            Command::Kill(items) => StepResult::batch(items, LongCommand::Kill),
            Command::Nack(items) => StepResult::batch(items, LongCommand::Nack),
            Command::Release(items) => StepResult::batch(items, LongCommand::Release),
            Command::Reschedule(items) => StepResult::batch(items, LongCommand::Reschedule),
            Command::Revive(items) => StepResult::batch(items, LongCommand::Revive),
            Command::TopicsOf(ids) => StepResult::batch(ids, LongCommand::TopicsOf),
            Command::Put(puts) => StepResult::Reply(self.put(now, puts, out)),
            Command::Chain(chain) => StepResult::Reply(self.chain(now, chain, out)),
            Command::SetTopic(set) => StepResult::Reply(self.set_topic(*set, out)),
            Command::SetPush(set) => StepResult::Reply(self.set_push(*set, out)),
            Command::GetPush(topic) => StepResult::Reply(Ok(self.get_push(&topic))),
            Command::Pushes(page) => StepResult::Reply(self.pushes_page(&page)),
            Command::Pause(pause) => StepResult::Reply(self.pause(now, &pause, out)),
            Command::Resume(topic) => StepResult::Reply(self.resume(&topic, out)),
            Command::Purge(purge) => self.begin_purge(purge, out),
            Command::OpenSession => StepResult::Reply(Ok(Reply::Session(self.sessions.open()))),
            Command::CloseSession(session) => {
                StepResult::Reply(self.close_session(now, session, out))
            }
            Command::RenewLock(renew) => {
                StepResult::Reply(self.renew_lock(now, holder, &renew, out))
            }
            Command::Unlock(unlock) => StepResult::Reply(self.unlock(now, &unlock, out)),
            Command::BreakLock(broken) => StepResult::Reply(self.break_lock(now, broken, out)),
            Command::Locks(page) => StepResult::Reply(self.locks_page(now, &page)),
            Command::PutSchedule(put) => StepResult::Reply(self.put_schedule(now, &put, out)),
            Command::GetSchedule(get) => StepResult::Reply(self.get_schedule(now, get)),
            Command::Schedules(page) => StepResult::Reply(self.schedules_page(now, &page)),
            Command::RemoveSchedule(remove) => {
                StepResult::Reply(self.remove_schedule(now, &remove, out))
            }
            Command::ChangeSchedule(change) => {
                StepResult::Reply(self.change_schedule(now, change, out))
            }
            Command::Withdraw(ticket) => StepResult::Reply(self.withdraw(ticket, out)),
        };
        match result {
            StepResult::Reply(reply) => {
                out.answers.push((ticket, answered(reply)?, When::Durable));
                Ok(())
            }
            StepResult::Long(begun) => self.begin_long(now, ticket, begun, out),
            StepResult::Batch(begun) => self.begin_batch(now, ticket, begun, out),
        }
    }
}
