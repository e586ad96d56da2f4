//! A reserve that nobody waits for any more: nothing is lost, nothing is held.

use std::future::IntoFuture;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dormouse::core::command::{Command, Reply};
use dormouse::core::op::{LockReply, Release, SessionId};
use dormouse::{Code, Queue, State};

use crate::fake::{Fake, one_job, token};
use crate::util::{LONG, SECOND, eventually, poll_once, waiters};

fn released(id: u64) -> Command {
    Command::Release(vec![Release { token: token(id), delay_ms: None, priority: None }])
}

#[test]
fn never_polled_is_never_sent() {
    let (queue, fake) = Fake::queue();
    drop(queue.reserve("t").wait_for(SECOND).into_future());
    fake.assert_quiet();
}

#[test]
fn waiting_is_withdrawn() {
    let (queue, fake) = Fake::queue();
    let mut reserving = queue.reserve("t").wait_for(SECOND).into_future();
    assert!(poll_once(&mut reserving).is_pending());
    let asked = fake.next();
    drop(reserving);
    assert_eq!(fake.next().command, Command::Withdraw(asked.ticket));
    asked.answer(Ok(Reply::Jobs(Vec::new())));
    fake.assert_quiet();
}

#[test]
fn jobs_that_arrive_after_the_drop_are_released() {
    let (queue, fake) = Fake::queue();
    let mut reserving = queue.reserve("t").wait_for(SECOND).into_future();
    assert!(poll_once(&mut reserving).is_pending());
    let asked = fake.next();
    drop(reserving);
    assert_eq!(fake.next().command, Command::Withdraw(asked.ticket));
    asked.answer(Ok(one_job(5)));
    assert_eq!(fake.next().command, released(5));
}

#[test]
fn jobs_that_arrived_unread_are_released() {
    let (queue, fake) = Fake::queue();
    let mut reserving = queue.reserve("t").into_future();
    assert!(poll_once(&mut reserving).is_pending());
    fake.next().answer(Ok(one_job(5)));
    drop(reserving);
    assert_eq!(fake.next().command, released(5));
    fake.assert_quiet();
}

#[test]
fn jobs_that_were_read_are_the_readers() {
    let (queue, fake) = Fake::queue();
    let mut reserving = queue.reserve("t").into_future();
    assert!(poll_once(&mut reserving).is_pending());
    fake.next().answer(Ok(one_job(5)));
    assert!(poll_once(&mut reserving).is_ready());
    drop(reserving);
    fake.assert_quiet();
}

#[test]
fn a_busy_backend_is_asked_again_until_it_takes_the_release() {
    let (queue, fake) = Fake::queue();
    let mut reserving = queue.reserve("t").into_future();
    assert!(poll_once(&mut reserving).is_pending());
    fake.next().answer(Ok(one_job(5)));
    fake.be_busy(5);
    drop(reserving);
    assert_eq!(fake.next().command, released(5));
}

#[test]
fn a_given_job_a_session_and_a_lock_are_given_back_too() {
    let (queue, fake) = Fake::queue();
    let pending = queue.reserve_id(token(5).id).send();
    fake.next().answer(Ok(one_job(5)));
    drop(pending);
    assert_eq!(fake.next().command, released(5));

    let pending = queue.session().send();
    fake.next().answer(Ok(Reply::Session(SessionId(3))));
    drop(pending);
    assert_eq!(fake.next().command, Command::CloseSession(SessionId(3)));

    let mut acquiring = queue.lock("l", "me", SECOND).wait_for(SECOND).into_future();
    assert!(poll_once(&mut acquiring).is_pending());
    let asked = fake.next();
    drop(acquiring);
    assert_eq!(fake.next().command, Command::Withdraw(asked.ticket));
    asked.answer(Ok(Reply::Lock(LockReply { fence: 1, expires_at: 0, depth: 1 })));
    assert!(matches!(fake.next().command, Command::Unlock(_)));
}

#[test]
fn an_unread_answer_without_a_grant_is_not_undone() {
    let (queue, fake) = Fake::queue();
    drop(queue.put("t", "b").send());
    assert!(matches!(fake.next().command, Command::Put(_)));
    drop(queue.reserve("t").into_future());
    fake.assert_quiet();
}

#[test]
fn a_withdrawn_reserve_leaves_no_waiter_and_takes_no_job() {
    let queue = Queue::memory();
    let mut reserving = queue.reserve("t").wait_for(LONG).into_future();
    assert!(poll_once(&mut reserving).is_pending());
    eventually("it waits", || waiters(&queue, "t") == 1);
    drop(reserving);
    eventually("it is withdrawn", || waiters(&queue, "t") == 0);
    let id = queue.put("t", "b").wait().unwrap().id;
    assert_eq!(queue.get(id).wait().unwrap().state, State::Ready);
}

#[test]
fn dropped_in_the_very_moment_of_the_answer() {
    drop_at_every_stage(&Queue::memory(), 1_000);
}

#[test]
fn dropped_in_the_very_moment_of_the_answer_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    drop_at_every_stage(&Queue::open(dir.path()).unwrap(), 200);
}

/// Drops the reserve at every stage of its answer: the job is there for the next one, unspent.
fn drop_at_every_stage(queue: &Queue, rounds: u64) {
    for round in 0..rounds {
        let mut reserving = queue.reserve("t").wait_for(LONG).into_future();
        assert!(poll_once(&mut reserving).is_pending());
        let producer = {
            let queue = queue.clone();
            thread::spawn(move || queue.put("t", "b").wait().unwrap())
        };
        if round % 2 == 0 {
            thread::sleep(Duration::from_micros(round * 250 / rounds));
        }
        drop(reserving);
        let id = producer.join().unwrap().id;
        let job = queue.reserve_one("t").wait_for(LONG).wait().unwrap().expect("it is not lost");
        assert_eq!((job.id(), job.attempt()), (id, 1), "it comes with no attempt spent");
        job.ack().wait().unwrap();
    }
}

/// The last handle may be the one an abandoned reserve holds: it must not end in the hands of the
/// thread that it would have to wait for.
#[test]
fn a_cancelled_reserve_may_hold_the_last_handle() {
    for _ in 0..100 {
        let queue = Queue::memory();
        let backend = Arc::downgrade(&queue.backend());
        let mut reserving = queue.reserve("t").wait_for(LONG).into_future();
        assert!(poll_once(&mut reserving).is_pending());
        drop(queue);
        drop(reserving);
        eventually("the queue is closed", || backend.upgrade().is_none());
    }
}

#[test]
fn a_closed_queue_ends_a_waiting_reserve() {
    let queue = Queue::memory();
    let waiting = {
        let queue = queue.clone();
        thread::spawn(move || queue.reserve("t").wait_for(LONG).wait())
    };
    eventually("it waits", || waiters(&queue, "t") == 1);
    queue.close().unwrap();
    let error = waiting.join().unwrap().unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
}
