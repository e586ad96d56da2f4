//! Commands: which partitions they go to, and how the replies of those become one reply.
//!
//! The common commands queue their requests at once (`Fanout::start`), and if all go to one
//! partition, its reply goes straight to the caller. The others run in a task each. `Scatter` is
//! for commands that consist of items.

mod chain;
mod change;
mod change_schedule;
mod get;
mod get_schedule;
mod kill;
mod lease;
mod letters;
mod lock;
mod locks;
mod push;
mod put;
mod put_schedule;
mod query;
mod remove_schedule;
mod reserve;
mod reserve_id;
mod run_schedule;
mod scatter;
mod schedule_store;
mod schedules;
mod session;
mod stats;
mod ticks;
mod topic;
mod topics_of;

use std::rc::Rc;

use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::job::JobId;
use dormouse_core::limits::TTL_MS_MAX;
use dormouse_core::op::{PauseTopic, SessionId, check};
use dormouse_core::refusal::no_session;
use dormouse_core::topic::TopicName;
use tokio::sync::oneshot;

use crate::dispatch::{Dispatcher, Wait};
use crate::events::{self, EventDetails};
use crate::outbox::Caller;
use crate::partition::{Effect, Partition, PartitionRequest, RawReply, ReplyTo};
use crate::scheduler::SubmissionNo;
use crate::wire::{Op, Reader};

/// Whether as many replicas as configured have confirmed a change.
type Confirmed = bool;

/// Runs the commands of a submission.
#[derive(Clone, Copy)]
pub(crate) struct Fanout<'a> {
    pub(crate) dispatcher: &'a Rc<Dispatcher>,
    /// `None` = a command that was submitted alone.
    pub(crate) submission: Option<SubmissionNo>,
}

impl Fanout<'_> {
    /// Starts a command that needs no task, as most do; gives back any other.
    pub(crate) fn start(self, command: Command, caller: Caller) -> Option<(Command, Caller)> {
        match command {
            Command::Put(puts) => self.put(puts, caller),
            Command::Ack(tokens) => self.ack(tokens, caller),
            Command::Nack(nacks) => self.nack(nacks, caller),
            Command::Release(releases) => self.release(releases, caller),
            Command::Reserve(reserve) => return self.reserve_plain(reserve, caller),
            command => return Some((command, caller)),
        }
        None
    }

    /// Runs any other command. `wait`: that of a request that may wait.
    pub(crate) async fn run(self, wait: Option<Rc<Wait>>, command: Command) -> Answer {
        match command {
            Command::Put(_) | Command::Ack(_) | Command::Nack(_) | Command::Release(_) => {
                Err(Error::unavailable("the command was not started"))
            }
            Command::Reserve(reserve) => self.reserve(wait, reserve).await,
            Command::Chain(chain) => self.chain(chain).await,
            Command::Extend(extends) => self.extend(extends).await,
            Command::ReserveId(reserve) => self.reserve_id(reserve).await,
            Command::Kill(kills) => self.kill(kills).await,
            Command::Cancel(cancels) => self.cancel(cancels).await,
            Command::Reschedule(moves) => self.reschedule(moves).await,
            Command::Revive(targets) => self.revive(targets).await,
            Command::Get(targets) => self.get(targets).await,
            Command::TopicsOf(ids) => self.topics_of(&ids),
            Command::ReviveTopic(revive) => self.revive_topic(&revive).await,
            Command::Kick(kick) => self.kick(&kick).await,
            Command::ReleaseTopic(release) => self.release_topic(&release).await,
            Command::Purge(purge) => self.purge(&purge).await,
            Command::SetTopic(set) => self.set_topic(*set).await,
            Command::SetPush(set) => self.set_push(&set).await,
            Command::GetPush(topic) => self.get_push(&topic).await,
            Command::Pushes(page) => self.pushes(&page).await,
            Command::Pause(pause) => self.pause(&pause).await,
            Command::Resume(name) => self.resume(&name).await,
            Command::Peek(peek) => self.peek(&peek).await,
            Command::List(list) => self.list(&list).await,
            Command::Forecast(forecast) => self.forecast(&forecast).await,
            Command::Topics(page) => self.topics(&page).await,
            Command::Stats(stats) => self.stats(&stats).await,
            Command::OpenSession => Ok(self.open_session()),
            Command::CloseSession(session) => self.close_session(session).await,
            Command::Lock(lock) => self.lock(wait, lock).await,
            Command::RenewLock(renew) => self.renew_lock(&renew).await,
            Command::Unlock(unlock) => self.unlock(&unlock).await,
            Command::BreakLock(broken) => self.break_lock(&broken).await,
            Command::Locks(page) => self.locks(&page).await,
            Command::PutSchedule(put) => self.put_schedule(&put).await,
            Command::GetSchedule(get) => self.get_schedule(get).await,
            Command::Schedules(page) => self.schedules(&page).await,
            Command::RemoveSchedule(remove) => self.remove_schedule(&remove).await,
            Command::ChangeSchedule(change) => self.change_schedule(change).await,
            Command::RunSchedule(run) => self.run_schedule(&run).await,
            Command::Withdraw(ticket) => Ok(self.withdraw(ticket)),
        }
    }

    /// The same, with a number: several requests at once keep their order.
    fn numbered(self) -> Self {
        let next = || self.dispatcher.shared.next_submission_no();
        Fanout { submission: self.submission.or_else(|| Some(next())), ..self }
    }

    /// Submits a request now, and returns a future of its reply.
    fn submit<T, A: FnOnce(ReplyTo<T>) -> PartitionRequest>(
        self,
        partition: &Partition,
        request: A,
    ) -> impl Future<Output = Result<T, Error>> + use<T, A> {
        let (to, from) = oneshot::channel();
        partition.submit(self.submission, request(ReplyTo::Task(to)));
        received(from)
    }

    /// Submits an operation now, and returns a future of its reply, which the caller decodes.
    fn submit_op(
        self,
        partition: &Partition,
        effect: Effect,
        op: Op,
    ) -> impl Future<Output = Result<RawReply, Error>> + use<> {
        self.submit(partition, move |reply_to| PartitionRequest::Other { op, effect, reply_to })
    }

    /// Runs an operation that changes nothing, and decodes its reply.
    async fn ask<T>(
        self,
        partition: &Partition,
        op: Op,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let raw = self.submit_op(partition, Effect::Read, op).await?;
        read(&mut Reader::new(&raw.answer))
    }

    /// Runs an operation that may change something, and decodes its reply.
    async fn ask_change<T>(
        self,
        partition: &Partition,
        op: Op,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, Error>,
    ) -> Result<(T, Confirmed), Error> {
        let raw = self.submit_op(partition, Effect::Change, op).await?;
        Ok((read(&mut Reader::new(&raw.answer))?, raw.confirmed))
    }

    /// The reply to a command, or an error if it changed something that too few replicas have
    /// confirmed; `done` says what was changed.
    fn if_confirmed(self, confirmed: Confirmed, reply: Reply, done: impl Into<String>) -> Answer {
        if confirmed {
            return Ok(reply);
        }
        Err(self.dispatcher.shared.unconfirmed(&done.into(), None))
    }

    /// The partitions of a topic; none if it is unknown.
    fn partitions(self, name: &TopicName) -> Vec<Rc<Partition>> {
        self.dispatcher.known(name).map(|topic| topic.partitions.clone()).unwrap_or_default()
    }

    /// How many partitions a topic has, or would have.
    fn partition_count(self, name: &TopicName) -> u64 {
        let known = self.dispatcher.known(name).map(|topic| topic.partitions.len() as u64);
        known.unwrap_or(u64::from(self.dispatcher.partitions))
    }

    /// The topic of a job, if it is known.
    fn topic_of(self, id: JobId) -> Option<TopicName> {
        self.dispatcher.partition_of(id)?.topic.clone()
    }

    fn is_watched(self) -> bool {
        self.dispatcher.shared.events.is_watched()
    }

    /// Emits an event, if someone watches.
    fn emit(self, topic: &TopicName, event: EventDetails) {
        let shared = &self.dispatcher.shared;
        if self.is_watched() {
            events::emit(&shared.events, topic, shared.clock.now_ms(), [event]);
        }
    }

    /// Refuses a session that is not open.
    fn check_session(self, session: Option<SessionId>) -> Result<(), Error> {
        let sessions = self.dispatcher.sessions.borrow();
        let closed = session.filter(|&session| !sessions.is_open(session));
        closed.map_or(Ok(()), |session| Err(no_session(session)))
    }
}

async fn received<T>(from: oneshot::Receiver<Result<T, Error>>) -> Result<T, Error> {
    from.await.unwrap_or_else(|_| Err(Error::unavailable("the backend has been closed")))
}

/// How long a pause lasts; `None` = until resumed.
pub(crate) fn pause_ms(pause: &PauseTopic) -> Result<Option<u64>, Error> {
    pause.for_ms.map(|ms| check::span("pause", ms, 0, TTL_MS_MAX)).transpose()
}
