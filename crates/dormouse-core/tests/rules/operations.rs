//! Every operation becomes its own command and accepts its own reply only.

use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Name, Operation, Reply, only};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{BodyKind, JobId, State, Token};
use dormouse_core::op::*;
use dormouse_core::topic::{Settings, TopicName};

const TOKEN: Token = Token { id: JobId(7), fence: 1 };

fn topic() -> TopicName {
    TopicName::new("t").unwrap()
}

fn target() -> Target {
    Target::Id(JobId(7))
}

fn leased_job() -> LeasedJob {
    LeasedJob {
        topic: topic(),
        id: JobId(7),
        key: None,
        token: TOKEN,
        attempt: 1,
        due_at: 1,
        put_at: 1,
        late_ms: 0,
        expires_at: 1,
        ttr_ms: 1,
        priority: 0,
        headers: None,
        body: Default::default(),
        body_kind: BodyKind::Bytes,
        tick: None,
        group: None,
        expires_after_ms: 0,
    }
}

/// One of each kind; batches with one item.
fn replies() -> Vec<Reply> {
    let put = PutReply { id: JobId(7), outcome: PutOutcome::Created, state: None, due_at: 1 };
    let changed = ChangeReply { id: JobId(7), was: State::Dead, due_at: 1 };
    vec![
        Reply::Put(vec![Ok(put)]),
        Reply::Jobs(vec![leased_job()]),
        Reply::Ended(vec![Ok(EndReply::Done)]),
        Reply::Extended(vec![Ok(ExtendReply { expires_at: 1 })]),
        Reply::Changed(vec![Ok(changed)]),
        Reply::Count(1),
        Reply::Views(vec![Err(Error::not_found("none"))]),
        Reply::TopicsOf(vec![Ok(topic())]),
        Reply::View(None),
        Reply::Page(Page { jobs: Vec::new(), cursor: None }),
        Reply::Topics(TopicsPage { topics: Vec::new(), more: false }),
        Reply::Stats(Box::default()),
        Reply::Forecast(vec![1]),
        Reply::Session(SessionId(1)),
        Reply::Lock(LockReply { fence: 1, expires_at: 1, depth: 1 }),
        Reply::Unlocked(true),
        Reply::Done,
    ]
}

/// `op` becomes `command`, and of all kinds of replies takes those that `fits` names.
#[track_caller]
fn check<Op: Operation>(op: Op, command: &Command, fits: fn(&Reply) -> bool) {
    assert_eq!(op.into(), *command);
    for reply in replies() {
        let (fits, text) = (fits(&reply), format!("{reply:?}"));
        let taken = Op::from_reply(reply);
        assert_eq!(taken.is_ok(), fits, "{command:?} {text}");
        if let Err(error) = taken {
            assert_eq!(error.code, Code::Unavailable);
        }
    }
}

macro_rules! check {
    ($op:expr, $command:expr, $reply:pat) => {
        check($op, &$command, |reply| matches!(reply, $reply));
    };
}

#[test]
fn batches_and_single_items() {
    let put = Put::new(topic(), "body");
    check!(put.clone(), Command::Put(vec![put.clone()]), Reply::Put(_));
    check!(vec![put.clone(); 2], Command::Put(vec![put; 2]), Reply::Put(_));
    check!(Ack(vec![TOKEN]), Command::Ack(vec![TOKEN]), Reply::Ended(_));
    let nack = Nack { token: TOKEN, delay_ms: None, priority: None, error: None };
    check!(nack.clone(), Command::Nack(vec![nack.clone()]), Reply::Ended(_));
    check!(vec![nack.clone()], Command::Nack(vec![nack]), Reply::Ended(_));
    let release = Release { token: TOKEN, delay_ms: None, priority: None };
    check!(release, Command::Release(vec![release]), Reply::Ended(_));
    check!(vec![release], Command::Release(vec![release]), Reply::Ended(_));
    let kill = Kill { target: KillTarget::Token(TOKEN), error: None, priority: None };
    check!(kill.clone(), Command::Kill(vec![kill.clone()]), Reply::Ended(_));
    check!(vec![kill.clone()], Command::Kill(vec![kill]), Reply::Ended(_));
    let extend = Extend { token: TOKEN, ttr_ms: None };
    check!(extend, Command::Extend(vec![extend]), Reply::Extended(_));
    check!(vec![extend], Command::Extend(vec![extend]), Reply::Extended(_));
    let cancel = Cancel { target: target(), unless_leased: false };
    check!(cancel.clone(), Command::Cancel(vec![cancel.clone()]), Reply::Changed(_));
    check!(vec![cancel.clone()], Command::Cancel(vec![cancel]), Reply::Changed(_));
    let later = Reschedule { target: target(), delay_ms: Some(1), at_ms: None };
    check!(later.clone(), Command::Reschedule(vec![later.clone()]), Reply::Changed(_));
    check!(vec![later.clone()], Command::Reschedule(vec![later]), Reply::Changed(_));
    check!(Revive(vec![target()]), Command::Revive(vec![target()]), Reply::Changed(_));
    check!(Get(vec![target()]), Command::Get(vec![target()]), Reply::Views(_));
    check!(TopicsOf(vec![JobId(7)]), Command::TopicsOf(vec![JobId(7)]), Reply::TopicsOf(_));
}

#[test]
fn topics_and_jobs() {
    let state = State::Ready;
    let reserve =
        Reserve { topics: vec![topic()], max: 1, wait_ms: 0, ttr_ms: None, session: None };
    check!(reserve.clone(), Command::Reserve(reserve), Reply::Jobs(_));
    let reserve_id = ReserveId { id: JobId(7), ttr_ms: None, session: None };
    check!(reserve_id, Command::ReserveId(reserve_id), Reply::Jobs(_));
    let revive = ReviveTopic { topic: topic(), max: 1 };
    check!(revive.clone(), Command::ReviveTopic(revive), Reply::Count(_));
    let kick = Kick { topic: topic(), max: 1 };
    check!(kick.clone(), Command::Kick(kick), Reply::Count(_));
    let peek = Peek { topic: topic(), state };
    check!(peek.clone(), Command::Peek(peek), Reply::View(_));
    let list = List { topic: topic(), state, cursor: None, limit: 1, range: ListRange::default() };
    check!(list.clone(), Command::List(list), Reply::Page(_));
    let topics = Topics { after: None, limit: 1 };
    check!(topics.clone(), Command::Topics(topics), Reply::Topics(_));
    let set = SetTopic { topic: topic(), settings: Settings::default() };
    check!(set.clone(), Command::from(set), Reply::Done);
    let stats = Stats { topic: None };
    check!(stats.clone(), Command::Stats(stats), Reply::Stats(_));
    let pause = PauseTopic { topic: topic(), for_ms: None };
    check!(pause.clone(), Command::Pause(pause), Reply::Done);
    check!(Resume(topic()), Command::Resume(topic()), Reply::Done);
    check!(Purge::from(topic()), Command::Purge(topic().into()), Reply::Count(_));
    let forecast = Forecast { topic: topic(), from_ms: 0, to_ms: 1, step_ms: 1 };
    check!(forecast.clone(), Command::Forecast(forecast), Reply::Forecast(_));
}

#[test]
fn sessions_and_locks() {
    check!(OpenSession, Command::OpenSession, Reply::Session(_));
    check!(CloseSession(SessionId(1)), Command::CloseSession(SessionId(1)), Reply::Done);
    let lock = Lock { name: "l".into(), owner: "o".into(), ttl_ms: 1, wait_ms: 0 };
    check!(lock.clone(), Command::Lock(lock), Reply::Lock(_));
    let renew = RenewLock { name: "l".into(), owner: "o".into(), ttl_ms: None };
    check!(renew.clone(), Command::RenewLock(renew), Reply::Lock(_));
    let unlock = Unlock { name: "l".into(), owner: "o".into() };
    check!(unlock.clone(), Command::Unlock(unlock), Reply::Unlocked(_));
    check!(Withdraw(Ticket(1)), Command::Withdraw(Ticket(1)), Reply::Done);
}

#[test]
fn the_error_of_a_single_item_is_the_error_of_the_call() {
    let lost = Error::new(Code::LeaseLost, "lost");
    let reply = Release::from_reply(Reply::Ended(vec![Err(lost.clone())]));
    assert_eq!(reply, Err(lost));
    for count in [0, 2] {
        let reply = only(vec![Ok(1); count]);
        assert_eq!(reply.unwrap_err().code, Code::Unavailable, "{count} replies");
    }
}

/// The names in a command: jobs by number, topics by name.
#[track_caller]
fn check_names(op: impl Into<Command>, expected: &[&str]) {
    let mut command = op.into();
    let mut names = Vec::new();
    command.names(|name| match name {
        Name::Job(id) => names.push(id.to_string()),
        Name::Topic(topic) => names.push(topic.to_string()),
    });
    assert_eq!(names, expected, "{command:?}");
    let mut ids = 0;
    command.ids_mut(|id| {
        *id = JobId(id.0 + 1);
        ids += 1;
    });
    let count = |name: &&String| name.parse::<u64>().is_ok();
    assert_eq!(ids, names.iter().filter(count).count(), "{command:?}");
    command.names(|name| assert_ne!(name, Name::Job(JobId(7))));
}

#[test]
fn a_command_names_its_jobs_and_topics() {
    let key = || Target::Key { topic: topic(), key: "k".into() };
    let kill = |target| Kill { target, error: None, priority: None };
    check_names(vec![Put::new(topic(), ""); 2], &["t", "t"]);
    check_names(Ack(vec![TOKEN, TOKEN]), &["7", "7"]);
    check_names(Nack { token: TOKEN, delay_ms: None, priority: None, error: None }, &["7"]);
    check_names(Release::now(TOKEN), &["7"]);
    check_names(Extend { token: TOKEN, ttr_ms: None }, &["7"]);
    let kills =
        [KillTarget::Token(TOKEN), KillTarget::Resting(target()), KillTarget::Resting(key())];
    check_names(kills.map(kill).to_vec(), &["7", "7", "t"]);
    check_names(Get(vec![target(), key()]), &["7", "t"]);
    check_names(Revive(vec![key(), target()]), &["t", "7"]);
    check_names(TopicsOf(vec![JobId(7), JobId(7)]), &["7", "7"]);
    check_names(Cancel { target: target(), unless_leased: false }, &["7"]);
    check_names(Reschedule { target: key(), delay_ms: None, at_ms: None }, &["t"]);
    check_names(ReserveId { id: JobId(7), ttr_ms: None, session: None }, &["7"]);
    check_names(Stats { topic: None }, &[]);
    check_names(Stats { topic: Some(topic()) }, &["t"]);
    check_names(Purge::from(topic()), &["t"]);
    check_names(OpenSession, &[]);
}

#[test]
fn only_a_reserve_or_a_lock_with_a_wait_may_wait() {
    let reserve =
        |wait_ms| Reserve { topics: vec![topic()], max: 1, wait_ms, ttr_ms: None, session: None };
    let lock = |wait_ms| Lock { name: "l".into(), owner: "o".into(), ttl_ms: 1, wait_ms };
    for (wait_ms, waits) in [(0, false), (1, true)] {
        assert_eq!(Command::from(reserve(wait_ms)).may_wait(), waits);
        assert_eq!(Command::from(lock(wait_ms)).may_wait(), waits);
    }
    assert!(!Command::OpenSession.may_wait());
}

#[test]
fn what_was_granted_can_be_given_back() {
    let check = |command: Command, reply: Reply, undo: Option<Command>| {
        assert_eq!(command.undo().command(&reply), undo, "{command:?}");
    };
    let reserve = Command::from(ReserveId { id: JobId(7), ttr_ms: None, session: None });
    let release = Command::Release(vec![Release::now(TOKEN)]);
    check(reserve.clone(), Reply::Jobs(vec![leased_job()]), Some(release));
    check(reserve, Reply::Jobs(Vec::new()), None);
    let session = SessionId(1);
    let close = Command::CloseSession(session);
    check(Command::OpenSession, Reply::Session(session), Some(close));
    let granted = Reply::Lock(LockReply { fence: 1, expires_at: 1, depth: 1 });
    let lock = Lock { name: "l".into(), owner: "o".into(), ttl_ms: 1, wait_ms: 0 };
    let unlock = Unlock { name: "l".into(), owner: "o".into() };
    check(lock.into(), granted.clone(), Some(unlock.into()));
    let renew = RenewLock { name: "l".into(), owner: "o".into(), ttl_ms: None };
    check(renew.into(), granted, None);
}
