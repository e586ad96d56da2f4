//! Each operation as a call, for one item; a reply of another kind fails the case.

use dormouse_core::topic::Push;

use super::prelude::*;

/// The reply of this kind, or the error of the whole request.
macro_rules! reply {
    ($answer:expr, $kind:ident) => {
        match $answer {
            Ok(Reply::$kind(reply)) => Ok(reply),
            Ok(other) => panic!("not a reply of kind {}: {other:?}", stringify!($kind)),
            Err(error) => Err(error),
        }
    };
}

/// The answer to the only item.
fn only<T>(items: Result<Vec<Result<T, Error>>, Error>) -> Result<T, Error> {
    let mut items = items?;
    assert_eq!(items.len(), 1, "one answer per item");
    items.remove(0)
}

fn done(answer: Result<Reply, Error>) -> Result<(), Error> {
    answer.map(|reply| assert_eq!(reply, Reply::Done))
}

#[track_caller]
fn good<T>(answer: Result<T, Error>) -> T {
    answer.unwrap_or_else(|error| panic!("refused: {error}"))
}

/// Putting and taking.
impl Subject {
    pub(super) fn put_all(&self, puts: Vec<Put>) -> Result<Vec<Result<PutReply, Error>>, Error> {
        reply!(self.ask(Command::Put(puts)), Put)
    }

    pub(super) fn try_put(&self, put: Put) -> Result<PutReply, Error> {
        only(self.put_all(vec![put]))
    }

    #[track_caller]
    pub(super) fn put(&self, put: Put) -> JobId {
        good(self.try_put(put)).id
    }

    /// Puts jobs in as few batches as the limit allows.
    #[track_caller]
    pub(super) fn put_many(&self, puts: impl IntoIterator<Item = Put>) -> Vec<JobId> {
        let puts: Vec<Put> = puts.into_iter().collect();
        let mut ids = Vec::with_capacity(puts.len());
        for chunk in puts.chunks(limits::BATCH_MAX) {
            ids.extend(good(self.put_all(chunk.to_vec())).into_iter().map(|put| good(put).id));
        }
        ids
    }

    pub(super) fn try_reserve(&self, reserve: Reserve) -> Result<Vec<LeasedJob>, Error> {
        reply!(self.ask(Command::Reserve(reserve)), Jobs)
    }

    #[track_caller]
    pub(super) fn reserve(&self, name: &str, max: usize) -> Vec<LeasedJob> {
        good(self.try_reserve(Reserve { max, ..take(name) }))
    }

    #[track_caller]
    pub(super) fn reserve_one(&self, name: &str) -> LeasedJob {
        self.reserve(name, 1).pop().unwrap_or_else(|| panic!("topic {name} gave nothing"))
    }

    /// A reserve that has begun to wait.
    #[track_caller]
    pub(super) fn park(&self, reserve: Reserve) -> Waiting {
        let pending = self.send(Command::Reserve(reserve));
        self.barrier();
        assert!(!pending.is_answered(), "the reserve was answered instead of waiting");
        Waiting(pending)
    }

    /// All that was possible by now has been done and answered.
    pub(super) fn barrier(&self) {
        good(self.total_stats());
    }

    /// Time passes, and what it brings by itself has been done.
    pub(super) fn pass(&self, ms: u64) {
        self.advance(ms);
        self.barrier();
    }

    /// Looks until it is so: the backend does it by itself, in portions.
    #[track_caller]
    pub(super) fn await_that(&self, is_so: impl Fn(&Subject) -> bool) {
        for _ in 0..10_000 {
            if is_so(self) {
                return;
            }
            std::thread::yield_now();
        }
        panic!("it does not become so");
    }

    pub(super) fn try_reserve_id(&self, reserve: ReserveId) -> Result<LeasedJob, Error> {
        let jobs: Result<Vec<LeasedJob>, Error> =
            reply!(self.ask(Command::ReserveId(reserve)), Jobs);
        only(jobs.map(|jobs| jobs.into_iter().map(Ok).collect()))
    }

    #[track_caller]
    pub(super) fn reserve_id(&self, id: JobId) -> LeasedJob {
        good(self.try_reserve_id(ReserveId { id, ttr_ms: None, session: None }))
    }
}

/// A reserve that waits.
pub(super) struct Waiting(super::client::Pending);

impl Waiting {
    pub(super) fn await_answer(&self) {
        self.0.await_answer();
    }

    pub(super) fn is_answered(&self) -> bool {
        self.0.is_answered()
    }

    pub(super) fn ticket(&self) -> dormouse_core::backend::Ticket {
        self.0.ticket()
    }

    #[track_caller]
    pub(super) fn jobs(self) -> Vec<LeasedJob> {
        good(reply!(self.0.wait(), Jobs))
    }

    #[track_caller]
    pub(super) fn job(self) -> LeasedJob {
        self.jobs().pop().expect("the waiting reserve gets a job")
    }
}

/// Ending and prolonging leases.
impl Subject {
    pub(super) fn ack(&self, token: Token) -> Result<EndReply, Error> {
        only(reply!(self.ask(Command::Ack(vec![token])), Ended))
    }

    pub(super) fn nack(&self, nack: Nack) -> Result<EndReply, Error> {
        only(reply!(self.ask(Command::Nack(vec![nack])), Ended))
    }

    pub(super) fn release(&self, release: Release) -> Result<EndReply, Error> {
        only(reply!(self.ask(Command::Release(vec![release])), Ended))
    }

    /// When the lease expires now.
    pub(super) fn extend(&self, token: Token, ttr_ms: Option<i64>) -> Result<u64, Error> {
        let extend = Extend { token, ttr_ms };
        let extended = only(reply!(self.ask(Command::Extend(vec![extend])), Extended));
        extended.map(|extended| extended.expires_at)
    }

    pub(super) fn kill(&self, kill: Kill) -> Result<EndReply, Error> {
        only(reply!(self.ask(Command::Kill(vec![kill])), Ended))
    }
}

/// Changing jobs by id or key.
impl Subject {
    pub(super) fn cancel(&self, target: Target) -> Result<ChangeReply, Error> {
        let cancel = Cancel { target, unless_leased: false };
        only(reply!(self.ask(Command::Cancel(vec![cancel])), Changed))
    }

    pub(super) fn cancel_unless_leased(&self, target: Target) -> Result<ChangeReply, Error> {
        let cancel = Cancel { target, unless_leased: true };
        only(reply!(self.ask(Command::Cancel(vec![cancel])), Changed))
    }

    pub(super) fn reschedule(&self, item: Reschedule) -> Result<ChangeReply, Error> {
        only(reply!(self.ask(Command::Reschedule(vec![item])), Changed))
    }

    pub(super) fn run_now(&self, target: Target) -> Result<ChangeReply, Error> {
        self.reschedule(Reschedule { target, delay_ms: None, at_ms: None })
    }

    pub(super) fn delay(&self, target: Target, delay_ms: i64) -> Result<ChangeReply, Error> {
        self.reschedule(Reschedule { target, delay_ms: Some(delay_ms), at_ms: None })
    }

    pub(super) fn revive(&self, target: Target) -> Result<ChangeReply, Error> {
        only(reply!(self.ask(Command::Revive(vec![target])), Changed))
    }

    #[track_caller]
    pub(super) fn revive_topic(&self, name: &str, max: usize) -> u64 {
        let revive = ReviveTopic { topic: topic(name), max };
        good(reply!(self.ask(Command::ReviveTopic(revive)), Count))
    }

    #[track_caller]
    pub(super) fn kick(&self, name: &str, max: usize) -> u64 {
        good(reply!(self.ask(Command::Kick(Kick { topic: topic(name), max })), Count))
    }
}

/// Looking at jobs.
impl Subject {
    pub(super) fn get(&self, target: Target) -> Result<JobView, Error> {
        only(reply!(self.ask(Command::Get(vec![target])), Views))
    }

    #[track_caller]
    pub(super) fn view(&self, id: JobId) -> JobView {
        good(self.get(by_id(id)))
    }

    #[track_caller]
    pub(super) fn state(&self, id: JobId) -> State {
        self.view(id).state
    }

    pub(super) fn is_gone(&self, id: JobId) -> bool {
        matches!(self.get(by_id(id)), Err(error) if error.code == Code::NotFound)
    }

    #[track_caller]
    pub(super) fn peek(&self, name: &str, state: State) -> Option<JobView> {
        let view = reply!(self.ask(Command::Peek(Peek { topic: topic(name), state })), View);
        good(view).map(|view| *view)
    }

    pub(super) fn try_list(&self, list: List) -> Result<Page, Error> {
        reply!(self.ask(Command::List(list)), Page)
    }

    #[track_caller]
    pub(super) fn list(
        &self,
        name: &str,
        state: State,
        cursor: Option<String>,
        limit: usize,
    ) -> Page {
        good(self.try_list(List {
            topic: topic(name),
            state,
            cursor,
            limit,
            range: ListRange::default(),
        }))
    }

    /// All ids of a state, page by page.
    #[track_caller]
    pub(super) fn list_ids(&self, name: &str, state: State, limit: usize) -> Vec<JobId> {
        let (mut ids, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.list(name, state, cursor, limit);
            assert!(page.jobs.len() <= limit, "{} jobs on a page of {limit}", page.jobs.len());
            assert!(page.jobs.iter().all(|view| view.state == state), "{:?}", page.jobs);
            ids.extend(page.jobs.iter().map(|view| view.job.id));
            cursor = page.cursor;
            if cursor.is_none() {
                return ids;
            }
        }
    }
}

/// Topics.
impl Subject {
    pub(super) fn total_stats(&self) -> Result<TopicStats, Error> {
        reply!(self.ask(Command::Stats(Stats { topic: None })), Stats).map(|stats| *stats)
    }

    pub(super) fn try_stats(&self, name: &str) -> Result<TopicStats, Error> {
        reply!(self.ask(Command::Stats(Stats { topic: Some(topic(name)) })), Stats)
            .map(|stats| *stats)
    }

    #[track_caller]
    pub(super) fn stats(&self, name: &str) -> TopicStats {
        good(self.try_stats(name))
    }

    pub(super) fn try_set_topic(&self, name: &str, settings: Settings) -> Result<(), Error> {
        done(self.ask(Command::from(SetTopic { topic: topic(name), settings })))
    }

    #[track_caller]
    pub(super) fn set_topic(&self, name: &str, settings: Settings) {
        good(self.try_set_topic(name, settings));
    }

    pub(super) fn try_pause(&self, name: &str, for_ms: Option<i64>) -> Result<(), Error> {
        done(self.ask(Command::Pause(PauseTopic { topic: topic(name), for_ms })))
    }

    #[track_caller]
    pub(super) fn pause(&self, name: &str, for_ms: Option<i64>) {
        good(self.try_pause(name, for_ms));
    }

    #[track_caller]
    pub(super) fn release_topic(&self, name: &str, max: usize) -> u64 {
        good(reply!(
            self.ask(Command::ReleaseTopic(ReleaseTopic { topic: topic(name), max })),
            Count
        ))
    }

    #[track_caller]
    pub(super) fn resume(&self, name: &str) {
        good(done(self.ask(Command::Resume(topic(name)))));
    }

    #[track_caller]
    pub(super) fn purge(&self, name: &str) -> u64 {
        good(reply!(self.ask(Command::Purge(topic(name).into())), Count))
    }

    pub(super) fn purge_some(
        &self,
        name: &str,
        state: Option<State>,
        at_most: Option<u64>,
    ) -> Result<u64, Error> {
        reply!(self.ask(Command::Purge(Purge { topic: topic(name), state, at_most })), Count)
    }

    pub(super) fn forecast(&self, forecast: Forecast) -> Result<Vec<u64>, Error> {
        reply!(self.ask(Command::Forecast(forecast)), Forecast)
    }

    pub(super) fn topics(&self, after: Option<&str>, limit: usize) -> Result<TopicsPage, Error> {
        let after = after.map(topic);
        reply!(self.ask(Command::Topics(Topics { after, limit })), Topics)
    }
}

/// Sessions and locks.
impl Subject {
    #[track_caller]
    pub(super) fn open_session(&self) -> SessionId {
        good(reply!(self.ask(Command::OpenSession), Session))
    }

    pub(super) fn close_session(&self, session: SessionId) -> Result<(), Error> {
        done(self.ask(Command::CloseSession(session)))
    }

    pub(super) fn try_lock(&self, lock: Lock) -> Result<LockReply, Error> {
        reply!(self.ask(Command::Lock(lock)), Lock)
    }

    #[track_caller]
    pub(super) fn lock(&self, name: &str, owner: &str, ttl_ms: i64) -> LockReply {
        good(self.try_lock(lock_of(name, owner, ttl_ms, 0)))
    }

    /// A request for a lock that has begun to wait.
    #[track_caller]
    pub(super) fn park_lock(&self, lock: Lock) -> WaitingLock {
        let pending = self.send(Command::Lock(lock));
        self.barrier();
        assert!(!pending.is_answered(), "the lock was answered instead of waiting");
        WaitingLock(pending)
    }

    pub(super) fn renew(
        &self,
        name: &str,
        owner: &str,
        ttl_ms: Option<i64>,
    ) -> Result<LockReply, Error> {
        let renew = RenewLock { name: bytes(name), owner: bytes(owner), ttl_ms };
        reply!(self.ask(Command::RenewLock(renew)), Lock)
    }

    pub(super) fn break_lock(&self, name: &str) -> Result<(), Error> {
        self.break_grant(name, None)
    }

    pub(super) fn break_grant(&self, name: &str, fence: Option<u64>) -> Result<(), Error> {
        done(self.ask(Command::BreakLock(BreakLock { name: bytes(name), fence })))
    }

    pub(super) fn locks(
        &self,
        prefix: &str,
        cursor: Option<String>,
        limit: usize,
    ) -> Result<LocksPage, Error> {
        let page = Locks { prefix: bytes(prefix), cursor, limit };
        reply!(self.ask(Command::Locks(page)), Locks)
    }

    pub(super) fn unlock(&self, name: &str, owner: &str) -> Result<bool, Error> {
        let unlock = Unlock { name: bytes(name), owner: bytes(owner) };
        reply!(self.ask(Command::Unlock(unlock)), Unlocked)
    }

    #[track_caller]
    pub(super) fn withdraw(&self, ticket: dormouse_core::backend::Ticket) {
        good(done(self.ask(Command::Withdraw(ticket))));
    }
}

pub(super) fn lock_of(name: &str, owner: &str, ttl_ms: i64, wait_ms: i64) -> Lock {
    Lock { name: bytes(name), owner: bytes(owner), ttl_ms, wait_ms }
}

/// A request for a lock that waits.
pub(super) struct WaitingLock(super::client::Pending);

impl WaitingLock {
    pub(super) fn is_answered(&self) -> bool {
        self.0.is_answered()
    }

    pub(super) fn ticket(&self) -> dormouse_core::backend::Ticket {
        self.0.ticket()
    }

    pub(super) fn answer(self) -> Result<LockReply, Error> {
        reply!(self.0.wait(), Lock)
    }
}

/// Pushes.
impl Subject {
    pub(super) fn try_push(&self, set: SetPush) -> Result<Option<Arc<Push>>, Error> {
        reply!(self.ask(Command::SetPush(Box::new(set))), Push)
    }

    pub(super) fn push_of(&self, name: &str) -> Result<Option<Arc<Push>>, Error> {
        reply!(self.ask(Command::GetPush(topic(name))), Push)
    }

    pub(super) fn pushes(&self, page: Pushes) -> Result<PushesPage, Error> {
        reply!(self.ask(Command::Pushes(page)), Pushes)
    }
}

/// Schedules; those of topic `t` named `s` unless it says otherwise.
impl Subject {
    pub(super) fn try_schedule(&self, put: PutSchedule) -> Result<PutScheduleReply, Error> {
        reply!(self.ask(Command::PutSchedule(Box::new(put))), PutSchedule).map(|reply| *reply)
    }

    #[track_caller]
    pub(super) fn schedule(&self, put: PutSchedule) -> PutScheduleReply {
        good(self.try_schedule(put))
    }

    pub(super) fn try_look(&self, name: &str) -> Result<ScheduleView, Error> {
        let get = GetSchedule { topic: topic("t"), name: schedule_name(name) };
        reply!(self.ask(Command::GetSchedule(get)), Schedule).map(|view| *view)
    }

    #[track_caller]
    pub(super) fn look(&self) -> ScheduleView {
        good(self.try_look("s"))
    }

    /// The counts: given, missed, overlapped, skipped.
    #[track_caller]
    pub(super) fn tick_counts(&self) -> [u64; 4] {
        let counts = self.look().counts;
        [counts.given, counts.missed, counts.overlapped, counts.skipped]
    }

    /// Looks at the schedule until it is as expected. A tick is given soon after its instant, by
    /// the backend itself, so that the first look may be too early.
    #[track_caller]
    pub(super) fn look_until(&self, is_so: impl Fn(&ScheduleView) -> bool) -> ScheduleView {
        for _ in 0..10_000 {
            let view = self.look();
            if is_so(&view) {
                return view;
            }
            std::thread::yield_now();
        }
        panic!("it stays {:?}", self.look());
    }

    pub(super) fn change(&self, change: ScheduleChange) -> Result<ScheduleView, Error> {
        let change = ChangeSchedule { topic: topic("t"), name: schedule_name("s"), change };
        reply!(self.ask(Command::ChangeSchedule(change)), Schedule).map(|view| *view)
    }

    pub(super) fn unschedule(&self, name: &str, cancel_job: bool) -> Result<(), Error> {
        let name = schedule_name(name);
        done(self.ask(Command::RemoveSchedule(RemoveSchedule {
            topic: topic("t"),
            name,
            cancel_job,
        })))
    }

    pub(super) fn run_schedule(
        &self,
        ticks: Option<(i64, i64)>,
    ) -> Result<Vec<Result<PutReply, Error>>, Error> {
        let run = RunSchedule { topic: topic("t"), name: schedule_name("s"), ticks };
        reply!(self.ask(Command::RunSchedule(run)), Put)
    }

    pub(super) fn schedules(
        &self,
        state: Option<ScheduleState>,
        cursor: Option<String>,
        limit: usize,
    ) -> Result<SchedulesPage, Error> {
        let page = Schedules { topic: topic("t"), state, cursor, limit };
        reply!(self.ask(Command::Schedules(page)), Schedules)
    }

    /// The job of a tick that has come, or comes at once.
    #[track_caller]
    pub(super) fn take_tick(&self) -> LeasedJob {
        let mut jobs = good(self.try_reserve(wait_for("t", 10_000)));
        assert_eq!(jobs.len(), 1, "no tick came");
        jobs.remove(0)
    }
}
