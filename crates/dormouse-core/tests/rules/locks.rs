//! Locks.

use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::limits::TICK_MAX;
use dormouse_core::op::*;

use crate::support::*;

fn lock(owner: &str, ttl_ms: i64, wait_ms: i64) -> Command {
    Command::Lock(Lock { name: bytes("l"), owner: bytes(owner), ttl_ms, wait_ms })
}

fn renew(owner: &str, ttl_ms: Option<i64>) -> Command {
    Command::RenewLock(RenewLock { name: bytes("l"), owner: bytes(owner), ttl_ms })
}

fn unlock(owner: &str) -> Command {
    Command::Unlock(Unlock { name: bytes("l"), owner: bytes(owner) })
}

fn held(answer: Result<Reply, Error>) -> LockReply {
    match answer {
        Ok(Reply::Lock(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

fn answered(rig: &mut Rig, ticket: Ticket) -> LockReply {
    held(rig.answer(ticket).expect("it waits"))
}

fn break_lock(name: &str) -> Command {
    Command::BreakLock(BreakLock { name: bytes(name), fence: None })
}

#[test]
fn a_lock_is_exclusive_and_re_entrant() {
    let mut rig = Rig::new();
    let first = held(rig.run(lock("a", 1_000, 0)));
    assert_eq!((first.depth, first.expires_at), (1, WALL_0 + 1_000));
    let error = rig.run(lock("b", 1_000, 0)).unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert!(error.text.contains("\"a\""), "{error}");
    // Taking it again keeps the grant and never shortens it.
    let again = held(rig.run(lock("a", 10, 0)));
    assert_eq!((again.depth, again.fence, again.expires_at), (2, first.fence, WALL_0 + 1_000));
    assert_eq!(rig.run(unlock("a")), Ok(Reply::Unlocked(false)));
    assert_eq!(code(rig.run(unlock("b"))), Code::Conflict);
    assert_eq!(rig.run(unlock("a")), Ok(Reply::Unlocked(true)));
    assert_eq!(code(rig.run(unlock("a"))), Code::NotFound);
    assert!(held(rig.run(lock("b", 1_000, 0))).fence > first.fence);
}

#[test]
fn a_lock_runs_out_unless_renewed() {
    let mut rig = Rig::new();
    let grant = held(rig.run(lock("a", 1_000, 0)));
    rig.pass(900);
    let renewed = held(rig.run(renew("a", None)));
    assert_eq!((renewed.expires_at, renewed.fence), (WALL_0 + 1_900, grant.fence));
    assert_eq!(held(rig.run(renew("a", Some(50)))).expires_at, WALL_0 + 950);
    assert_eq!(code(rig.run(renew("b", None))), Code::Conflict);
    assert_eq!(rig.machine.next_wake(rig.now), Some(50));
    rig.pass(50);
    assert_eq!(rig.machine.locks_held(), 0);
    assert_eq!(code(rig.run(renew("a", None))), Code::NotFound);
}

#[test]
fn an_expired_lock_is_free_for_the_next_command_without_a_tick() {
    let mut rig = Rig::new();
    let grant = held(rig.run(lock("a", 1_000, 0)));
    rig.now.steady_ms += 1_000;
    let ticket = rig.begin(lock("b", 1_000, 0));
    assert!(answered(&mut rig, ticket).fence > grant.fence);
}

#[test]
fn who_waits_gets_it_in_turn() {
    let mut rig = Rig::new();
    held(rig.run(lock("a", 1_000, 0)));
    let second = rig.begin(lock("b", 500, 60_000));
    let third = rig.begin(lock("c", 500, 60_000));
    rig.tick();
    assert_eq!(rig.answer(second), None);
    rig.run(unlock("a")).unwrap();
    let grant = answered(&mut rig, second);
    assert_eq!((grant.depth, grant.expires_at), (1, WALL_0 + 500));
    assert_eq!(rig.answer(third), None);
    // The second lets it run out.
    rig.pass(500);
    assert!(answered(&mut rig, third).fence > grant.fence);
}

#[test]
fn a_wait_for_a_lock_ends_or_is_withdrawn() {
    let mut rig = Rig::new();
    held(rig.run(lock("a", 10_000, 0)));
    let late = rig.begin(lock("b", 500, 100));
    let withdrawn = rig.begin(lock("c", 500, 60_000));
    rig.pass(99);
    assert_eq!(rig.answer(late), None);
    rig.pass(1);
    assert_eq!(code(rig.answer(late).unwrap()), Code::Conflict);
    assert_eq!(rig.run(Command::Withdraw(withdrawn)), Ok(Reply::Done));
    assert_eq!(code(rig.answer(withdrawn).unwrap()), Code::Conflict);
    rig.run(unlock("a")).unwrap();
    assert_eq!(rig.machine.locks_held(), 0);
    assert_eq!(rig.machine.waiting_requests(), 0);
}

#[test]
fn locks_and_jobs_share_one_line_of_fences() {
    let mut rig = Rig::new();
    rig.put_now("t");
    let grant = held(rig.run(lock("a", 10_000, 0)));
    let lease = rig.take("t");
    assert!(lease.token.fence > grant.fence);
}

#[test]
fn names_and_times_of_locks_have_limits() {
    let mut rig = Rig::new();
    for (command, word) in [
        (lock("", 1_000, 0), "lock owner"),
        (lock(&"x".repeat(201), 1_000, 0), "201"),
        (lock("a", 0, 0), "ttl"),
        (lock("a", 1, 60_001), "wait"),
        (renew("a", Some(-1)), "ttl"),
        (break_lock(&"x".repeat(201)), "lock name has 201"),
        (break_lock(""), "lock name"),
    ] {
        let error = rig.run(command).unwrap_err();
        assert_eq!(error.code, Code::Invalid);
        assert!(error.text.contains(word), "{error}");
    }
}

/// Leases and locks once shared what a step may let run out, and leases came first.
#[test]
fn an_expired_lock_is_free_however_many_leases_run_out_with_it() {
    let mut rig = Rig::new();
    held(rig.run(lock("a", 1_000, 0)));
    let count = 3 * TICK_MAX;
    rig.begin(Command::Put(vec![Put::new(topic("t"), "body"); count]));
    let terms = Reserve { ttr_ms: Some(1_000), ..reserve(&["t"], count, 0) };
    assert_eq!(jobs(rig.run(Command::Reserve(terms))).len(), count);
    rig.now.steady_ms += 1_000;
    rig.now.wall_ms += 1_000;
    let ticket = rig.begin(lock("b", 1_000, 0));
    assert_eq!(answered(&mut rig, ticket).depth, 1);
    assert!(rig.machine.leased_jobs() > 0, "some leases have still to run out");
}
