//! reserve and what it gives.

use std::future::IntoFuture;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use dormouse::core::command::{Command, Reply};
use dormouse::{Code, Queue, State};

use crate::fake::{Fake, one_job};
use crate::util::{LONG, SECOND, eventually, poll_once, take, virtual_queue, waiters};

#[test]
fn a_leased_job_has_all_its_fields() {
    let (queue, clock) = virtual_queue();
    let start = UNIX_EPOCH + Duration::from_millis(1_767_225_600_000);
    let put = queue
        .put("t", "work")
        .delay(5 * SECOND)
        .ttr(30 * SECOND)
        .key("k")
        .priority(3)
        .header("trace", "x1");
    let id = put.wait().unwrap().id;
    clock.advance(7 * SECOND);
    let job = take(&queue, "t");
    assert_eq!((job.topic(), job.id(), job.key()), ("t", id, Some(b"k".as_slice())));
    assert_eq!((job.attempt(), job.priority(), job.token().id), (1, 3, id));
    assert_eq!((job.put_at(), job.due_at()), (start, start + 5 * SECOND));
    assert_eq!((job.late(), job.ttr()), (2 * SECOND, 30 * SECOND));
    assert_eq!(job.expires_at(), start + 37 * SECOND);
    assert_eq!((job.header("trace"), job.header("other")), (Some("x1"), None));
    assert_eq!((job.headers().len(), job.text()), (1, Ok("work")));
    assert_eq!(job.as_leased().token, job.token());
}

#[test]
fn gives_one_unless_asked_for_more() {
    let queue = Queue::memory();
    for _ in 0..5 {
        queue.put("t", "b").wait().unwrap();
    }
    assert_eq!(queue.reserve("t").wait().unwrap().len(), 1);
    assert_eq!(queue.reserve("t").max(3).wait().unwrap().len(), 3);
    assert_eq!(queue.reserve("t").max(3).wait().unwrap().len(), 1);
    assert!(queue.reserve("t").wait().unwrap().is_empty());
    assert!(queue.reserve_one("t").wait().unwrap().is_none());
}

#[test]
fn takes_from_several_topics_by_priority() {
    let queue = Queue::memory();
    queue.put("a", "second").priority(2).wait().unwrap();
    queue.put("b", "first").priority(1).wait().unwrap();
    queue.put("c", "third").priority(3).wait().unwrap();
    let jobs = queue.reserve_any(["a", "b"]).and("c").max(9).wait().unwrap();
    let bodies: Vec<_> = jobs.iter().map(|job| job.text().unwrap()).collect();
    assert_eq!(bodies, ["first", "second", "third"]);
}

#[test]
fn a_reserve_waits_until_a_job_is_due() {
    let (queue, clock) = virtual_queue();
    queue.put("t", "b").delay(60 * SECOND).wait().unwrap();
    let waiting = {
        let queue = queue.clone();
        thread::spawn(move || queue.reserve_one("t").wait_for(3_600 * SECOND).wait())
    };
    eventually("it waits", || waiters(&queue, "t") == 1);
    clock.advance(59 * SECOND);
    assert_eq!(queue.stats("t").wait().unwrap().waiters, 1);
    clock.advance(SECOND);
    assert_eq!(waiting.join().unwrap().unwrap().unwrap().late(), Duration::ZERO);
}

#[test]
fn a_wait_ends_by_the_clock_of_the_queue() {
    let (queue, clock) = virtual_queue();
    let waiting = {
        let queue = queue.clone();
        thread::spawn(move || queue.reserve("t").wait_for(10 * SECOND).wait())
    };
    eventually("it waits", || waiters(&queue, "t") == 1);
    clock.advance(10 * SECOND);
    assert!(waiting.join().unwrap().unwrap().is_empty());
}

#[test]
fn a_long_wait_is_cut_into_pieces() {
    let (queue, fake) = Fake::queue();
    let mut reserving = queue.reserve("t").wait_for(Duration::from_millis(150_001)).into_future();
    for expected_ms in [60_000, 60_000, 30_001] {
        assert!(poll_once(&mut reserving).is_pending());
        let asked = fake.next();
        let Command::Reserve(options) = &asked.command else { panic!("{:?}", asked.command) };
        assert_eq!(options.wait_ms, expected_ms);
        asked.answer(Ok(Reply::Jobs(Vec::new())));
    }
    assert!(
        matches!(poll_once(&mut reserving), std::task::Poll::Ready(Ok(jobs)) if jobs.is_empty())
    );
}

#[test]
fn a_piece_that_brings_jobs_is_the_last() {
    let (queue, fake) = Fake::queue();
    let mut reserving = queue.reserve("t").wait_for(Duration::MAX).into_future();
    assert!(poll_once(&mut reserving).is_pending());
    fake.next().answer(Ok(Reply::Jobs(Vec::new())));
    assert!(poll_once(&mut reserving).is_pending());
    fake.next().answer(Ok(one_job(1)));
    assert!(
        matches!(poll_once(&mut reserving), std::task::Poll::Ready(Ok(jobs)) if jobs.len() == 1)
    );
    fake.assert_quiet();
}

#[test]
fn a_reserve_may_be_sent_before_it_is_awaited() {
    let (queue, fake) = Fake::queue();
    let mut reserving = queue.reserve("t").send();
    let asked = fake.next();
    assert!(matches!(asked.command, Command::Reserve(_)));
    asked.answer(Ok(one_job(1)));
    assert!(poll_once(&mut reserving).is_ready());
    fake.assert_quiet();
    let mut refused = queue.reserve("no topic").send();
    assert!(poll_once(&mut refused).is_ready());
}

#[test]
fn a_given_ttr_is_the_length_of_the_lease() {
    let (queue, clock) = virtual_queue();
    queue.put("t", "b").wait().unwrap();
    let job = &queue.reserve("t").ttr(5 * SECOND).wait().unwrap()[0];
    assert_eq!(job.ttr(), 5 * SECOND);
    clock.advance(5 * SECOND);
    assert_eq!(queue.get(job.id()).wait().unwrap().state, State::Ready);
}

#[test]
fn a_given_job_is_taken_before_its_time() {
    let (queue, _clock) = virtual_queue();
    let id = queue.put("t", "b").delay(60 * SECOND).wait().unwrap().id;
    let job = queue.reserve_id(id).ttr(5 * SECOND).wait().unwrap();
    assert_eq!((job.id(), job.ttr()), (id, 5 * SECOND));
    assert_eq!(queue.reserve_id(id).wait().unwrap_err().code, Code::Conflict);
}

#[test]
fn invalid_input_is_explained() {
    let queue = Queue::memory();
    let text = |result: Result<Vec<dormouse::LeasedJob>, dormouse::Error>| {
        let error = result.unwrap_err();
        assert_eq!(error.code, Code::Invalid);
        error.text.into_owned()
    };
    assert!(text(queue.reserve("no topic").wait()).contains("no topic"));
    assert!(text(queue.reserve("t").and("-").wait()).contains("\"-\""));
    assert!(text(queue.reserve_any([]).wait()).contains("0 topics"));
    assert!(text(queue.reserve("t").max(0).wait()).contains("max is 0"));
    assert!(text(queue.reserve("t").ttr(Duration::ZERO).wait()).contains("ttr"));
    assert_eq!(queue.reserve("no topic").wait_for(LONG).wait().unwrap_err().code, Code::Invalid);
}
