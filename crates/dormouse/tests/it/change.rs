//! cancel, reschedule, run now, revive.

use std::time::{Duration, UNIX_EPOCH};

use dormouse::core::op::{Cancel, Reschedule};
use dormouse::{Code, EndReply, JobId, Queue, State, Target};

use crate::util::{SECOND, take, virtual_queue};

#[test]
fn a_cancelled_job_is_never_returned() {
    let (queue, clock) = virtual_queue();
    let id = queue.put("t", "b").delay(SECOND).wait().unwrap().id;
    queue.put("t", "b").key("k").delay(SECOND).wait().unwrap();
    assert_eq!(queue.cancel(id).wait().unwrap().was, State::Delayed);
    clock.advance(SECOND);
    assert_eq!(queue.cancel_key("t", "k").wait().unwrap().was, State::Ready);
    assert!(queue.reserve("t").wait().unwrap().is_empty());
    assert_eq!(queue.cancel(id).wait().unwrap_err().code, Code::NotFound);
}

#[test]
fn a_cancel_revokes_a_lease_unless_forbidden() {
    let queue = Queue::memory();
    let id = queue.put("t", "b").wait().unwrap().id;
    let job = take(&queue, "t");
    let error = queue.cancel(id).unless_leased().wait().unwrap_err();
    assert_eq!((error.code, error.job), (Code::Conflict, Some((id, State::Leased))));
    assert_eq!(queue.cancel(id).wait().unwrap().was, State::Leased);
    assert_eq!(job.ack().wait(), Ok(EndReply::Gone));
}

#[test]
fn a_job_is_moved_by_id_or_key() {
    let (queue, clock) = virtual_queue();
    let id = queue.put("t", "b").key("k").delay(60 * SECOND).wait().unwrap().id;
    let start = UNIX_EPOCH + Duration::from_millis(1_767_225_600_000);
    let due = |result: Result<dormouse::ChangeReply, dormouse::Error>| result.unwrap().due_at;
    assert_eq!(due(queue.reschedule(id).delay(SECOND).wait()), 1_767_225_601_000);
    assert_eq!(due(queue.reschedule(id).at(start + 5 * SECOND).wait()), 1_767_225_605_000);
    assert_eq!(
        due(queue.reschedule_key("t", "k").at_ms(1_767_225_609_000).wait()),
        1_767_225_609_000
    );
    clock.advance(8 * SECOND);
    assert!(queue.reserve("t").wait().unwrap().is_empty());
    queue.run_now_key("t", "k").wait().unwrap();
    let job = take(&queue, "t");
    assert_eq!(queue.run_now(id).wait().unwrap_err().code, Code::Conflict);
    job.ack().wait().unwrap();
}

#[test]
fn a_revived_job_has_a_fresh_attempt_budget() {
    let queue = Queue::memory();
    let id = queue.put("t", "b").key("k").attempts_max(1).wait().unwrap().id;
    take(&queue, "t").nack().wait().unwrap();
    assert_eq!(queue.revive(id).wait().unwrap().was, State::Dead);
    let job = take(&queue, "t");
    assert_eq!(job.attempt(), 1);
    job.kill().wait().unwrap();
    assert_eq!(queue.revive_key("t", "k").wait().unwrap().id, id);
    assert_eq!(queue.revive(id).wait().unwrap_err().code, Code::Conflict);
}

#[test]
fn batches_answer_per_job() {
    let queue = Queue::memory();
    let id = queue.put("t", "b").delay(SECOND).wait().unwrap().id;
    let known = Target::Id(id);
    let unknown = Target::Id(JobId(99));
    let moves = [&known, &unknown].map(|target| Reschedule {
        target: target.clone(),
        delay_ms: Some(5_000),
        at_ms: None,
    });
    let moved = queue.reschedule_many(moves.into()).wait().unwrap();
    assert_eq!(moved[0].as_ref().unwrap().id, id);
    assert_eq!(moved[1].as_ref().unwrap_err().code, Code::NotFound);
    assert!(queue.revive_many(vec![known.clone()]).wait().unwrap()[0].is_err());
    assert!(queue.get_many(vec![known.clone()]).wait().unwrap()[0].is_ok());
    let cancels = [known, unknown].map(|target| Cancel { target, unless_leased: false });
    let cancelled = queue.cancel_many(cancels.into()).wait().unwrap();
    assert!(cancelled[0].is_ok() && cancelled[1].is_err());
}

#[test]
fn a_bad_topic_is_refused_before_it_is_sent() {
    let (queue, fake) = crate::fake::Fake::queue();
    assert_eq!(queue.cancel_key("a b", "k").wait().unwrap_err().code, Code::Invalid);
    assert_eq!(queue.get_key("a b", "k").wait().unwrap_err().code, Code::Invalid);
    assert_eq!(queue.reschedule_key("a b", "k").wait().unwrap_err().code, Code::Invalid);
    assert_eq!(queue.revive_key("a b", "k").wait().unwrap_err().code, Code::Invalid);
    assert_eq!(queue.kill_key("a b", "k").wait().unwrap_err().code, Code::Invalid);
    fake.assert_quiet();
}
