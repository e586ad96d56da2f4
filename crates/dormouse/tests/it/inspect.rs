//! get, peek, list.

use dormouse::{Code, Put, Queue, State};

use crate::util::{SECOND, block_on, take, virtual_queue};

fn with_delayed(count: u32) -> Queue {
    let (queue, _clock) = virtual_queue();
    let jobs = (0..count).map(|n| Put::new("t", n.to_string()).delay((n + 1) * SECOND));
    assert!(queue.put_many(jobs).wait().unwrap().iter().all(Result::is_ok));
    queue
}

fn bodies(jobs: impl IntoIterator<Item = dormouse::JobView>) -> Vec<String> {
    let text = |job: dormouse::JobView| String::from_utf8(job.job.content.body.to_vec()).unwrap();
    jobs.into_iter().map(text).collect()
}

#[test]
fn looks_without_taking() {
    let queue = Queue::memory();
    let id = queue.put("t", "b").key("k").wait().unwrap().id;
    assert_eq!(queue.get(id).wait().unwrap().state, State::Ready);
    assert_eq!(queue.get_key("t", "k").wait().unwrap().job.id, id);
    assert_eq!(queue.peek("t", State::Ready).wait().unwrap().unwrap().job.id, id);
    assert!(queue.peek("t", State::Delayed).wait().unwrap().is_none());
    assert_eq!(take(&queue, "t").attempt(), 1);
}

#[test]
fn pages_follow_each_other() {
    let queue = with_delayed(5);
    let page = queue.list("t", State::Delayed).limit(3).wait().unwrap();
    assert_eq!(bodies(page.jobs), ["0", "1", "2"]);
    let next = queue.list("t", State::Delayed).limit(3).after(page.cursor.unwrap()).wait().unwrap();
    assert_eq!(bodies(next.jobs), ["3", "4"]);
    assert_eq!(next.cursor, None);
}

#[test]
fn a_walk_meets_every_job_once() {
    let queue = with_delayed(25);
    let walked = queue.list("t", State::Delayed).limit(4).walk().map(Result::unwrap);
    let expected: Vec<String> = (0..25).map(|n| n.to_string()).collect();
    assert_eq!(bodies(walked), expected);

    let walked = block_on(async {
        let mut walk = queue.list("t", State::Delayed).limit(10).walk();
        let mut jobs = Vec::new();
        while let Some(job) = walk.next_job().await {
            jobs.push(job.unwrap());
        }
        jobs
    });
    assert_eq!(bodies(walked), expected);
}

#[test]
fn a_walk_returns_an_error_once_and_ends() {
    let queue = Queue::memory();
    let codes: Vec<_> =
        queue.list("a b", State::Ready).walk().map(|job| job.unwrap_err().code).collect();
    assert_eq!(codes, [Code::Invalid]);
    queue.put("t", "b").wait().unwrap();
    let bad_cursor = queue.list("t", State::Ready).after("nonsense").walk();
    assert_eq!(bad_cursor.map(|job| job.unwrap_err().code).collect::<Vec<_>>(), [Code::Invalid]);
}
