//! Topics as a whole.

use std::time::{Duration, UNIX_EPOCH};

use dormouse::{Code, Put, Queue, Settings, State, TopicName};

use crate::util::{SECOND, block_on, take, virtual_queue};

#[test]
fn settings_are_the_defaults_of_puts() {
    let queue = Queue::memory();
    let settings = Settings { attempts_max: Some(1), jobs_max: Some(2), ..Settings::default() };
    queue.set_topic("t", settings.clone()).wait().unwrap();
    for _ in 0..2 {
        queue.put("t", "b").wait().unwrap();
    }
    assert_eq!(queue.put("t", "b").wait().unwrap_err().code, Code::Full);
    assert_eq!(take(&queue, "t").nack().wait(), Ok(dormouse::EndReply::Dead));
    assert_eq!(queue.stats("t").wait().unwrap().settings, settings);
}

#[test]
fn counts_are_per_topic_and_in_total() {
    let (queue, _clock) = virtual_queue();
    queue.put("a", "b").wait().unwrap();
    queue.put("a", "b").delay(SECOND).wait().unwrap();
    queue.put("b", "b").wait().unwrap();
    let a = queue.stats("a").wait().unwrap();
    assert_eq!((a.ready, a.delayed), (1, 1));
    let all = queue.stats_all().wait().unwrap();
    assert_eq!((all.ready, all.delayed, all.topics), (2, 1, 2));

    let page = queue.topics().limit(1).wait().unwrap();
    assert_eq!((page.topics[0].0.as_str(), page.more), ("a", true));
    let page = queue.topics().after(TopicName::new("a").unwrap()).wait().unwrap();
    assert_eq!((page.topics[0].0.as_str(), page.more), ("b", false));
}

#[test]
fn a_paused_topic_gives_nothing() {
    let (queue, clock) = virtual_queue();
    queue.put("t", "b").wait().unwrap();
    queue.pause("t").wait().unwrap();
    assert!(queue.reserve("t").wait().unwrap().is_empty());
    queue.resume("t").wait().unwrap();
    take(&queue, "t").release().wait().unwrap();
    queue.pause("t").span(5 * SECOND).wait().unwrap();
    clock.advance(4 * SECOND);
    assert!(queue.reserve("t").wait().unwrap().is_empty());
    clock.advance(SECOND);
    assert_eq!(take(&queue, "t").attempt(), 1);
}

#[test]
fn purge_and_kick_return_a_count() {
    let queue = Queue::memory();
    for _ in 0..5 {
        queue.put("t", "b").delay(60 * SECOND).wait().unwrap();
    }
    assert_eq!(queue.kick("t", 3).wait(), Ok(3));
    assert_eq!(queue.stats("t").wait().unwrap().ready, 3);
    assert_eq!(queue.purge("t").wait(), Ok(5));
    assert_eq!(queue.purge("t").wait(), Ok(0));
}

#[test]
fn all_dead_jobs_are_revived_in_batches() {
    let queue = Queue::memory();
    let count = 5_000;
    for begin in (0..count).step_by(1_000) {
        let jobs = (begin..begin + 1_000).map(|n| Put::new("t", format!("{n}")).attempts_max(1));
        queue.put_many(jobs).wait().unwrap();
        let jobs = queue.reserve("t").max(1_000).wait().unwrap();
        let nack =
            |token| dormouse::core::op::Nack { token, delay_ms: None, priority: None, error: None };
        queue.nack_many(jobs.iter().map(|job| nack(job.token())).collect()).wait().unwrap();
    }
    assert_eq!(queue.stats("t").wait().unwrap().counts.dead, count);
    assert_eq!(queue.revive_topic("t", 10).wait(), Ok(10));
    assert_eq!(block_on(queue.revive_all("t")), Ok(count - 10));
    assert_eq!(queue.revive_all_wait("t"), Ok(0));
    assert_eq!(queue.peek("t", State::Dead).wait(), Ok(None));
}

#[test]
fn a_forecast_counts_jobs_by_due_time() {
    let (queue, _clock) = virtual_queue();
    let start = UNIX_EPOCH + Duration::from_millis(1_767_225_600_000);
    for seconds in [5, 15, 16, 35] {
        queue.put("t", "b").delay(seconds * SECOND).wait().unwrap();
    }
    let forecast = queue.forecast("t", start, start + 30 * SECOND, 10 * SECOND).wait().unwrap();
    assert_eq!(forecast, [1, 2, 0]);
    let error = queue.forecast("t", start, start + SECOND, Duration::ZERO).wait().unwrap_err();
    assert_eq!(error.code, Code::Invalid);
}
