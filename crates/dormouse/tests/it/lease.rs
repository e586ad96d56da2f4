//! The ends of a lease.

use std::time::Duration;

use dormouse::core::op::{Kill, KillTarget, Nack};
use dormouse::{Backoff, Code, EndReply, JobId, Put, Queue, State, Token};

use crate::util::{SECOND, take, virtual_queue};

#[test]
fn acking_twice_is_harmless() {
    let queue = Queue::memory();
    queue.put("t", "b").wait().unwrap();
    let job = take(&queue, "t");
    assert_eq!(job.ack().wait(), Ok(EndReply::Done));
    assert_eq!(job.ack().wait(), Ok(EndReply::Gone));
    assert_eq!(queue.get(job.id()).wait().unwrap_err().code, Code::NotFound);
}

#[test]
fn a_failed_job_waits_for_its_backoff_and_remembers_why() {
    let (queue, clock) = virtual_queue();
    let backoff = Backoff::fixed(Duration::from_millis(10_000));
    let id = queue.put("t", "b").backoff(backoff).attempts_max(2).wait().unwrap().id;
    let nacked = take(&queue, "t").nack().error("no route").priority(5).wait();
    let view = queue.get(id).wait().unwrap();
    assert_eq!(nacked, Ok(EndReply::Retry { due_at: view.due_at }));
    assert_eq!((view.state, view.job.progress.priority), (State::Delayed, 5));
    assert_eq!(view.job.progress.error.as_deref(), Some(b"no route".as_slice()));

    clock.advance(10 * SECOND);
    let job = take(&queue, "t");
    assert_eq!(job.attempt(), 2);
    assert_eq!(job.nack().wait(), Ok(EndReply::Dead));
    assert_eq!(queue.get(id).wait().unwrap().state, State::Dead);
}

#[test]
fn a_given_delay_takes_the_place_of_the_backoff() {
    let (queue, clock) = virtual_queue();
    queue.put("t", "b").wait().unwrap();
    take(&queue, "t").nack().delay(3 * SECOND).wait().unwrap();
    clock.advance(3 * SECOND - Duration::from_millis(1));
    assert!(queue.reserve("t").wait().unwrap().is_empty());
    clock.advance(Duration::from_millis(1));
    assert_eq!(take(&queue, "t").attempt(), 2);
}

#[test]
fn a_released_job_is_returned_unspent() {
    let (queue, clock) = virtual_queue();
    queue.put("t", "b").wait().unwrap();
    take(&queue, "t").release().wait().unwrap();
    let job = take(&queue, "t");
    assert_eq!(job.attempt(), 1);
    job.release().delay(SECOND).priority(9).wait().unwrap();
    assert!(queue.reserve("t").wait().unwrap().is_empty());
    clock.advance(SECOND);
    let job = take(&queue, "t");
    assert_eq!((job.attempt(), job.priority()), (1, 9));
}

#[test]
fn an_extended_lease_runs_from_now() {
    let (queue, clock) = virtual_queue();
    queue.put("t", "b").ttr(10 * SECOND).wait().unwrap();
    let job = take(&queue, "t");
    clock.advance(9 * SECOND);
    let extended = job.extend().wait().unwrap();
    assert_eq!(extended.expires_at, 1_767_225_600_000 + 19_000);
    clock.advance(9 * SECOND);
    let extended = queue.extend(job.token()).ttr(60 * SECOND).wait().unwrap();
    assert_eq!(extended.expires_at, 1_767_225_600_000 + 78_000);
    assert_eq!(queue.get(job.id()).wait().unwrap().state, State::Leased);
}

#[test]
fn a_token_is_valid_until_another_consumer_has_the_job() {
    let (queue, clock) = virtual_queue();
    queue.put("t", "b").ttr(10 * SECOND).wait().unwrap();
    let slow = take(&queue, "t");
    clock.advance(20 * SECOND);
    slow.extend().wait().expect("late is not wrong");
    clock.advance(20 * SECOND);
    let quick = take(&queue, "t");
    for result in [slow.ack().wait(), slow.nack().wait(), slow.release().wait()] {
        assert_eq!(result.unwrap_err().code, Code::LeaseLost);
    }
    assert_eq!(slow.extend().wait().unwrap_err().code, Code::LeaseLost);
    assert!(slow.token().fence < quick.token().fence);
    assert_eq!(quick.ack().wait(), Ok(EndReply::Done));
}

#[test]
fn a_killed_job_is_dead_and_says_why() {
    let queue = Queue::memory();
    let id = queue.put("t", "b").wait().unwrap().id;
    take(&queue, "t").kill().error("malformed").wait().unwrap();
    let view = queue.get(id).wait().unwrap();
    assert_eq!(view.state, State::Dead);
    assert_eq!(view.job.progress.error.as_deref(), Some(b"malformed".as_slice()));

    let resting = queue.put("t", "b").key("k").delay(SECOND).wait().unwrap().id;
    assert_eq!(queue.kill_key("t", "k").priority(3).wait(), Ok(EndReply::Done));
    assert_eq!(queue.get(resting).wait().unwrap().state, State::Dead);
    let other = queue.put("t", "b").delay(SECOND).wait().unwrap().id;
    assert_eq!(queue.kill_id(other).wait(), Ok(EndReply::Done));
}

#[test]
fn batches_answer_per_token() {
    let queue = Queue::memory();
    for _ in 0..4 {
        queue.put("t", "b").wait().unwrap();
    }
    let jobs = queue.reserve("t").max(4).wait().unwrap();
    let tokens: Vec<Token> = jobs.iter().map(|job| job.token()).collect();
    let stale = Token { id: tokens[0].id, fence: 1 };
    assert_eq!(queue.extend_many(tokens.clone()).wait().unwrap().len(), 4);

    let acks = queue.ack_many([stale, tokens[0], tokens[0]]).wait().unwrap();
    assert_eq!(acks[0].as_ref().unwrap_err().code, Code::LeaseLost);
    assert_eq!(acks[1..], [Ok(EndReply::Done), Ok(EndReply::Gone)]);

    let nack = Nack { token: tokens[1], delay_ms: None, priority: None, error: None };
    let nacked = queue.nack_many(vec![nack]).wait().unwrap();
    assert!(matches!(nacked[..], [Ok(EndReply::Retry { .. })]));
    assert_eq!(queue.release_many([tokens[2]]).wait().unwrap(), [Ok(EndReply::Done)]);
    let kill = Kill { target: KillTarget::Token(tokens[3]), error: None, priority: None };
    let killed = queue.execute(dormouse::core::command::Command::Kill(vec![kill])).wait();
    assert!(killed.is_ok());
    let stats = queue.stats("t").wait().unwrap();
    assert_eq!((stats.ready, stats.delayed, stats.counts.dead), (1, 1, 1));
}

#[test]
fn a_token_of_text_is_read_or_refused() {
    let queue = Queue::memory();
    queue.put("t", "b").wait().unwrap();
    let text = take(&queue, "t").token().to_string();
    assert_eq!(queue.ack(text.parse().unwrap()).wait(), Ok(EndReply::Done));

    let error = "12-7".parse::<Token>().unwrap_err();
    assert_eq!(error.code, Code::Invalid);
    assert_eq!(
        error.text,
        "token \"12-7\" is not of the form <id>.<fence>; send it as reserve gave it"
    );
    let unknown = Token { id: JobId(99), fence: 7 };
    assert_eq!(queue.ack(unknown).wait(), Ok(EndReply::Gone));
}

#[test]
fn an_ack_puts_what_comes_after() {
    let queue = Queue::memory();
    queue.put("a", "x").wait().unwrap();
    let job = queue.reserve_one("a").wait().unwrap().unwrap();
    let refused = job.ack_and_put([Put::new("b", ""), Put::new("a b", "")]).wait().unwrap_err();
    assert_eq!(refused.code, Code::Invalid);
    assert!(refused.text.contains("put 2 of the chain"), "{refused}");
    assert!(job.ack_and_put([]).wait().unwrap_err().text.contains("give 1 to 100"));
    let hour = std::time::Duration::from_secs(3_600);
    let next = Put::new("b", "y").key("k").expires_after(hour);
    let reply = job.ack_and_put([next]).wait().unwrap();
    assert_eq!((reply.end, reply.puts.len()), (EndReply::Done, 1));
    let view = queue.get_key("b", "k").wait().unwrap();
    assert_eq!((view.job.id, view.job.content.expires_after_ms), (reply.puts[0].id, 3_600_000));
    let again = queue.ack_and_put(job.token(), [Put::new("b", "")]).wait().unwrap();
    assert_eq!((again.end, again.puts.len()), (EndReply::Gone, 0));
}
