//! Sessions: leases and waits that end with their owner.

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::job::State;
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
    assert_eq!(rig.ack(theirs.token), Ok(Ended::Done));
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
