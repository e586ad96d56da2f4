//! Sessions: leases and waits that end with their owner.

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::job::State;
use dormouse_core::limits::{BATCH_MAX, TICK_MAX};
use dormouse_core::op::*;

use crate::support::*;

fn take_for(rig: &mut Rig, session: SessionId) -> LeasedJob {
    let reserve = Reserve { session: Some(session), ..reserve(&["t"], 1, 0) };
    jobs(rig.run(Command::Reserve(reserve))).pop().unwrap()
}

#[test]
fn leases_of_a_closed_session_are_released_unspent() {
    let mut rig = Rig::new();
    let (session, other) = (rig.session(), rig.session());
    let id = rig.put_now("t");
    rig.put_now("t");
    let mine = take_for(&mut rig, session);
    let theirs = take_for(&mut rig, other);
    assert_eq!(rig.run(Command::CloseSession(session)), Ok(Reply::Done));
    let view = rig.view(Target::Id(id)).unwrap();
    assert_eq!((view.state, view.job.progress.attempts), (State::Ready, 0));
    assert_eq!(code(rig.ack(mine.token)), Code::LeaseLost);
    assert_eq!(rig.ack(theirs.token), Ok(EndReply::Done));
    assert_eq!(code(rig.run(Command::CloseSession(session))), Code::NotFound);
}

#[test]
fn what_a_session_gave_back_is_no_longer_its_own() {
    let mut rig = Rig::new();
    let session = rig.session();
    rig.put_now("t");
    let first = take_for(&mut rig, session);
    rig.release(first.token).unwrap();
    let second = rig.take("t");
    rig.run(Command::CloseSession(session)).unwrap();
    assert_eq!(rig.state(second.id), Some(State::Leased));
    assert_eq!(rig.machine.sessions_open(), 0);
}

#[test]
fn waits_of_a_closed_session_end_empty() {
    let mut rig = Rig::new();
    let session = rig.session();
    let waiting = Reserve { session: Some(session), ..reserve(&["t"], 1, 60_000) };
    let ticket = rig.begin(Command::Reserve(waiting));
    assert_eq!(rig.answer(ticket), None);
    rig.run(Command::CloseSession(session)).unwrap();
    assert_eq!(rig.answer(ticket), Some(Ok(Reply::Jobs(vec![]))));
    rig.put_now("t");
    assert_eq!(rig.stats("t").unwrap().ready, 1);
}

#[test]
fn a_waiting_reserve_leases_for_its_session() {
    let mut rig = Rig::new();
    let session = rig.session();
    let waiting = Reserve { session: Some(session), ..reserve(&["t"], 1, 60_000) };
    let ticket = rig.begin(Command::Reserve(waiting));
    let id = rig.put_now("t");
    assert_eq!(jobs(rig.answer(ticket).unwrap()).len(), 1);
    rig.run(Command::CloseSession(session)).unwrap();
    assert_eq!(rig.state(id), Some(State::Ready));
}

const MANY: usize = 2 * TICK_MAX + 100;

/// A session that holds many leases of this length; their ids.
fn holder_of_many(rig: &mut Rig, ttr_ms: i64) -> (SessionId, Vec<LeasedJob>) {
    let session = rig.session();
    let mut leases = Vec::new();
    for left in (1..=MANY).rev().step_by(BATCH_MAX) {
        let count = left.min(BATCH_MAX);
        rig.begin(Command::Put(vec![Put::new(topic("t"), "body"); count]));
        let terms = Reserve { session: Some(session), ..reserve(&["t"], count, 0) };
        let terms = Reserve { ttr_ms: Some(ttr_ms), ..terms };
        leases.extend(jobs(rig.run(Command::Reserve(terms))));
    }
    assert_eq!(leases.len(), MANY);
    (session, leases)
}

#[test]
fn many_leases_are_given_back_in_portions() {
    let mut rig = Rig::new();
    let (session, leases) = holder_of_many(&mut rig, 60_000);
    let closed_at = rig.now.wall_ms;
    let ticket = rig.begin(Command::CloseSession(session));
    assert_eq!(rig.answer(ticket), Some(Ok(Reply::Done)));
    assert_eq!(rig.machine.leased_jobs(), MANY - TICK_MAX);
    // Others get their turn, and one that is acked meanwhile is gone.
    let last = leases.last().unwrap().token;
    let ticket = rig.begin(Command::Ack(vec![last]));
    assert_eq!(rig.answer(ticket), Some(Ok(Reply::Ended(vec![Ok(EndReply::Done)]))));
    rig.tick();
    assert_eq!(rig.machine.leased_jobs(), MANY - 2 * TICK_MAX - 1);
    assert_eq!(rig.machine.next_wake(rig.now), Some(0));
    rig.now.steady_ms += 5;
    rig.now.wall_ms += 5;
    rig.tick();
    assert_eq!(rig.machine.leased_jobs(), 0);
    let view = rig.view(Target::Id(leases[MANY - 2].id)).unwrap();
    assert_eq!((view.state, view.due_at), (State::Ready, closed_at));
    let progress = view.job.progress;
    assert_eq!((progress.attempts, progress.releases, progress.expiries), (0, 0, 0));
    assert_eq!(rig.stats("t").unwrap().ready, MANY as u64 - 1);
}

#[test]
fn who_took_a_job_since_keeps_it() {
    let mut rig = Rig::new();
    let (session, leases) = holder_of_many(&mut rig, 60_000);
    rig.begin(Command::CloseSession(session));
    let last = leases.last().unwrap();
    let release = Release { token: last.token, delay_ms: None, priority: Some(0) };
    rig.begin(Command::Release(vec![release]));
    let ticket = rig.begin(Command::Reserve(reserve(&["t"], 1, 0)));
    let taken = jobs(rig.answer(ticket).unwrap()).pop().unwrap();
    assert_eq!(taken.id, last.id);
    rig.pass(10);
    assert_eq!(rig.machine.leased_jobs(), 1);
    assert_eq!(rig.ack(taken.token), Ok(EndReply::Done));
}

/// More ran out at once than one step looks at: the end of their session finds them still leased.
#[test]
fn many_leases_that_ran_out_stay_spent() {
    let mut rig = Rig::new();
    let (session, leases) = holder_of_many(&mut rig, 10);
    rig.now.steady_ms += 10;
    rig.now.wall_ms += 10;
    rig.begin(Command::CloseSession(session));
    rig.pass(0);
    assert_eq!(rig.stats("t").unwrap().counts.releases, 0);
    for lease in leases.iter().step_by(100) {
        let view = rig.view(Target::Id(lease.id)).unwrap();
        assert_eq!((view.state, view.due_at), (State::Ready, lease.expires_at));
        let progress = view.job.progress;
        assert_eq!((progress.attempts, progress.expiries), (1, 1));
    }
}

/// A thousand connections may end in one turn: together they give back as much as one may.
#[test]
fn sessions_that_end_in_one_turn_share_its_bound() {
    let mut rig = Rig::new();
    let (first, _) = holder_of_many(&mut rig, 60_000);
    let (second, _) = holder_of_many(&mut rig, 60_000);
    rig.begin(Command::CloseSession(first));
    rig.begin(Command::CloseSession(second));
    assert_eq!(rig.machine.leased_jobs(), 2 * MANY - TICK_MAX);
    rig.pass(0);
    assert_eq!(rig.machine.leased_jobs(), 0);
}

#[test]
fn many_waits_of_a_closed_session_end_in_portions_and_get_nothing() {
    let mut rig = Rig::new();
    let session = rig.session();
    let waiting = Reserve { session: Some(session), ..reserve(&["t"], 1, 60_000) };
    let tickets: Vec<_> = (0..MANY).map(|_| rig.begin(Command::Reserve(waiting.clone()))).collect();
    rig.begin(Command::CloseSession(session));
    assert!((MANY - TICK_MAX..MANY).contains(&rig.machine.waiting_requests()));
    // A job that comes now is not for those who are gone.
    let ticket = rig.begin(Command::Put(vec![Put::new(topic("t"), "body")]));
    assert!(rig.answer(ticket).is_some());
    rig.pass(0);
    assert_eq!(rig.machine.waiting_requests(), 0);
    assert_eq!(rig.stats("t").unwrap().ready, 1);
    for ticket in tickets {
        assert_eq!(rig.answer(ticket), Some(Ok(Reply::Jobs(vec![]))));
    }
}
