//! put and its options.

use std::time::{Duration, UNIX_EPOCH};

use dormouse::{Backoff, BodyKind, Code, OnConflict, Put, PutOutcome, Queue, State, VirtualClock};

use crate::util::{SECOND, take, virtual_queue};

const START_MS: u64 = 1_767_225_600_000;

#[test]
fn every_option_reaches_the_job() {
    let (queue, _clock) = virtual_queue();
    let backoff = Backoff::fixed(Duration::from_millis(5_000));
    let put = queue
        .put("t", "work")
        .delay(Duration::from_micros(1_999_001))
        .priority(7)
        .ttr(10 * SECOND)
        .attempts_max(3)
        .backoff(backoff.clone())
        .key("k")
        .key_ttl(20 * SECOND)
        .header("a", "1")
        .header("b", "2")
        .wait()
        .unwrap();
    assert_eq!(put.outcome, PutOutcome::Created);
    assert_eq!(put.state, Some(State::Delayed));
    assert_eq!(put.due_at, START_MS + 2_000, "rounded up to the millisecond");

    let view = queue.get(put.id).wait().unwrap();
    let content = &view.job.content;
    assert_eq!(view.job.progress.priority, 7);
    assert_eq!((content.ttr_ms, content.attempts_max, content.key_ttl_ms), (10_000, 3, 20_000));
    assert_eq!(content.backoff.as_deref(), Some(&backoff));
    assert_eq!(content.key.as_deref(), Some(b"k".as_slice()));
    assert_eq!((content.body.as_ref(), content.body_kind), (b"work".as_slice(), BodyKind::Text));
    let headers = content.headers.as_ref().unwrap();
    assert_eq!(**headers, [("a".into(), "1".into()), ("b".into(), "2".into())]);
}

#[test]
fn is_due_at_a_time_of_the_calendar() {
    let (queue, clock) = virtual_queue();
    let at = UNIX_EPOCH + Duration::from_millis(START_MS) + 60 * SECOND;
    assert_eq!(queue.put("t", "b").at(at).wait().unwrap().due_at, START_MS + 60_000);
    assert_eq!(queue.put("t", "b").at_ms(START_MS + 5).wait().unwrap().due_at, START_MS + 5);
    // An absolute time follows the wall clock, although no time passed.
    clock.step_wall_ms(60_000);
    assert_eq!(queue.reserve("t").max(10).wait().unwrap().len(), 2);
}

#[test]
fn a_taken_key_answers_as_on_conflict_says() {
    let (queue, _clock) = virtual_queue();
    let put = |delay: u32| queue.put("t", "b").key("k").delay(delay * SECOND);
    let first = put(10).wait().unwrap();
    let again = put(20).wait().unwrap();
    assert_eq!((again.id, again.outcome), (first.id, PutOutcome::Duplicate));

    let error = put(20).on_conflict(OnConflict::Reject).wait().unwrap_err();
    assert_eq!((error.code, error.job), (Code::Conflict, Some((first.id, State::Delayed))));

    let later = put(30).on_conflict(OnConflict::Latest).wait().unwrap();
    assert_eq!((later.id, later.outcome), (first.id, PutOutcome::Replaced));
    assert_eq!(later.due_at, START_MS + 30_000);
}

#[test]
fn a_batch_answers_per_job_and_in_order() {
    let queue = Queue::memory();
    let results = queue
        .put_many([
            Put::new("t", "0"),
            Put::new("bad topic", "1"),
            Put::new("t", "2").delay(Duration::MAX),
            Put::json("t", &3),
            Put::new("", "4"),
        ])
        .wait()
        .unwrap();
    let codes: Vec<_> =
        results.iter().map(|r| r.as_ref().map(|_| ()).map_err(|e| e.code)).collect();
    let invalid = Err(Code::Invalid);
    assert_eq!(codes, [Ok(()), invalid, invalid, Ok(()), invalid]);
    assert_eq!(queue.stats("t").wait().unwrap().ready, 2);

    let all_bad = queue.put_many([Put::new("", "0"), Put::new("-x", "1")]).wait().unwrap();
    assert!(all_bad.iter().all(Result::is_err));
    assert_eq!(all_bad.len(), 2);
}

#[test]
fn invalid_input_is_explained_and_stores_nothing() {
    let (queue, _clock) = virtual_queue();
    let invalid = |put: Put<Queue>| {
        let error = put.wait().unwrap_err();
        assert_eq!(error.code, Code::Invalid);
        error.text.into_owned()
    };
    assert!(invalid(queue.put("two words", "b")).contains("\"two words\""));
    assert!(invalid(queue.put("", "b")).contains("1 to 200"));
    assert!(invalid(queue.put("t", "b").delay(Duration::MAX)).contains("delay"));
    assert!(invalid(queue.put("t", "b").at(UNIX_EPOCH - SECOND)).contains("at"));
    assert!(invalid(queue.put("t", "b").delay(SECOND).at_ms(START_MS)).contains("both"));
    assert!(invalid(queue.put("t", "b").ttr(Duration::ZERO)).contains("ttr"));
    assert!(invalid(queue.put("t", "b").key("")).contains("key"));
    assert!(invalid(queue.put("t", "b").key("k".repeat(257))).contains("256"));
    assert!(invalid(queue.put("t", "b").header("h", "x".repeat(5_000))).contains("4096"));
    let large = queue.put("t", vec![0; (1 << 20) + 1]).wait().unwrap_err();
    assert_eq!(large.code, Code::TooLarge);
    assert!(large.text.contains("1048576"), "{}", large.text);
    assert_eq!(queue.stats_all().wait().unwrap().topics, 0);
}

#[test]
fn the_longest_delay_is_a_hundred_years() {
    let clock = VirtualClock::new();
    let queue = Queue::builder().clock(clock.clone()).memory();
    let century = 100 * 365 * 24 * 3_600 * SECOND;
    queue.put("t", "b").delay(century).wait().unwrap();
    clock.advance(century - SECOND);
    assert!(queue.reserve("t").wait().unwrap().is_empty());
    clock.advance(SECOND);
    assert_eq!(take(&queue, "t").late(), Duration::ZERO);
}
