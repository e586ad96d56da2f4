//! Locks: one holder at a time.

use std::future::IntoFuture;
use std::thread;
use std::time::Duration;

use dormouse::core::command::Command;
use dormouse::{Code, Error, Queue};

use crate::fake::Fake;
use crate::util::{LONG, SECOND, block_on, eventually, poll_once, virtual_queue};

#[test]
fn excludes_others_and_lets_its_owner_in_again() {
    let queue = Queue::memory();
    let outer = queue.lock("l", "me", LONG).wait().unwrap();
    let inner = block_on(queue.lock("l", "me", LONG).into_future()).unwrap();
    assert_eq!((outer.depth(), inner.depth()), (1, 2));
    assert_eq!(queue.lock("l", "you", LONG).wait().unwrap_err().code, Code::Conflict);
    assert_eq!(inner.unlock().wait(), Ok(false));
    assert_eq!(outer.unlock().wait(), Ok(true));
    let yours = queue.lock("l", "you", LONG).wait().unwrap();
    assert_eq!(yours.depth(), 1);
}

#[test]
fn a_later_grant_has_a_greater_fence() {
    let queue = Queue::memory();
    let first = queue.lock("l", "a", LONG).wait().unwrap();
    let fence = first.fence();
    first.unlock().wait().unwrap();
    assert!(queue.lock("l", "b", LONG).wait().unwrap().fence() > fence);
}

#[test]
fn a_dropped_lock_passes_to_the_next_waiter() {
    let queue = Queue::memory();
    let first = queue.lock("l", "a", LONG).wait().unwrap();
    let waiting = {
        let queue = queue.clone();
        thread::spawn(move || queue.lock("l", "b", LONG).wait_for(LONG).wait().unwrap().fence())
    };
    eventually("it waits", || queue.stats_all().wait().unwrap().waiters == 1);
    drop(first);
    assert!(waiting.join().unwrap() > 0);
    eventually("it is free again", || queue.stats_all().wait().unwrap().locks == 0);
}

#[test]
fn a_lock_may_be_asked_for_before_it_is_awaited() {
    let queue = Queue::memory();
    let mine = queue.lock("l", "me", LONG).send();
    let mine = block_on(mine).unwrap();
    drop(queue.lock("l", "you", LONG).wait_for(LONG).send());
    assert_eq!(mine.unlock().wait(), Ok(true));
    eventually("the other has withdrawn", || queue.stats_all().wait().unwrap().locks == 0);
}

#[test]
fn runs_out_unless_renewed() {
    let (queue, clock) = virtual_queue();
    let mut lock = queue.lock("l", "a", 10 * SECOND).wait().unwrap();
    let granted = lock.expires_at();
    clock.advance(8 * SECOND);
    lock.renew().wait().unwrap();
    assert_eq!(lock.expires_at(), granted + 8 * SECOND);
    block_on(lock.renew_for(60 * SECOND)).unwrap();
    assert_eq!(lock.expires_at(), granted + 58 * SECOND);
    clock.advance(60 * SECOND);
    assert!(lock.renew().wait().is_err());
    let taken = queue.lock("l", "b", SECOND).wait();
    assert!(taken.is_ok(), "the first holder slept through its ttl");
}

#[test]
fn a_long_wait_is_cut_into_pieces() {
    let (queue, fake) = Fake::queue();
    let mut acquiring = queue.lock("l", "a", LONG).wait_for(61 * SECOND).into_future();
    for expected_ms in [60_000, 1_000] {
        assert!(poll_once(&mut acquiring).is_pending());
        let asked = fake.next();
        let Command::Lock(options) = &asked.command else { panic!("{:?}", asked.command) };
        assert_eq!(options.wait_ms, expected_ms);
        asked.answer(Err(Error::new(Code::Conflict, "held")));
    }
    assert!(matches!(poll_once(&mut acquiring), std::task::Poll::Ready(Err(_))));
}

#[test]
fn invalid_input_is_explained() {
    let queue = Queue::memory();
    assert_eq!(queue.lock("", "a", SECOND).wait().unwrap_err().code, Code::Invalid);
    assert_eq!(queue.lock("l", "a", Duration::ZERO).wait().unwrap_err().code, Code::Invalid);
}
