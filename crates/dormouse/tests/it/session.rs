//! Sessions: leases that end with their holder.

use dormouse::{Code, Queue, State};

use crate::util::{LONG, eventually, waiters};

#[test]
fn dropping_a_session_releases_its_leases() {
    let queue = Queue::memory();
    queue.put("t", "b").wait().unwrap();
    let session = queue.session().wait().unwrap();
    let job = session.reserve_one("t").wait().unwrap().unwrap();
    assert_eq!(queue.get(job.id()).wait().unwrap().state, State::Leased);
    drop(session);
    eventually("it is ready again", || queue.get(job.id()).wait().unwrap().state == State::Ready);
    let again = queue.reserve_one("t").wait().unwrap().unwrap();
    assert_eq!(again.attempt(), 1);
    assert_eq!(job.ack().wait().unwrap_err().code, Code::LeaseLost);
}

#[test]
fn close_returns_when_leases_are_released() {
    let queue = Queue::memory();
    let id = queue.put("t", "b").wait().unwrap().id;
    let session = queue.session().wait().unwrap();
    let given = queue.reserve_id(id).session(&session).wait().unwrap();
    session.close().wait().unwrap();
    assert_eq!(queue.get(given.id()).wait().unwrap().state, State::Ready);
}

#[test]
fn a_session_may_wait_for_jobs() {
    let queue = Queue::memory();
    let session = queue.session().wait().unwrap();
    let waiting = session.reserve_any(["t", "u"]).wait_for(LONG);
    let waiting = std::thread::spawn(move || waiting.wait());
    eventually("it waits", || waiters(&queue, "u") == 1);
    let id = queue.put("u", "b").wait().unwrap().id;
    assert_eq!(waiting.join().unwrap().unwrap()[0].id(), id);
    drop(session);
}
