//! Opening and closing.

use dormouse::{Code, Durability, Queue, VirtualClock};

use crate::util::{SECOND, take};

#[test]
fn answered_operations_survive_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let queue = Queue::open(dir.path()).unwrap();
    let id = queue.put("t", "b").key("k").wait().unwrap().id;
    let gone = queue.put("t", "b").wait().unwrap().id;
    queue.cancel(gone).wait().unwrap();
    queue.close().unwrap();

    let queue = Queue::open(dir.path()).unwrap();
    let job = take(&queue, "t");
    assert_eq!((job.id(), job.key()), (id, Some(b"k".as_slice())));
    assert_eq!(queue.get(gone).wait().unwrap_err().code, Code::NotFound);
}

#[test]
fn dropping_the_last_clone_closes() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let queue = Queue::open(dir.path()).unwrap();
        let clone = queue.clone();
        drop(queue);
        clone.put("t", "b").wait().unwrap();
    }
    assert_eq!(Queue::open(dir.path()).unwrap().stats("t").wait().unwrap().ready, 3);
}

#[test]
fn one_directory_has_one_owner() {
    let dir = tempfile::tempdir().unwrap();
    let _queue = Queue::open(dir.path()).unwrap();
    let error = Queue::open(dir.path()).unwrap_err();
    assert!(error.to_string().contains(' '), "a sentence and not a code: {error}");
}

#[test]
fn an_open_that_fails_is_an_error_like_any_other() {
    fn open_twice(dir: &std::path::Path) -> Result<(), dormouse::Error> {
        let first = Queue::open(dir)?;
        Queue::open(dir)?;
        first.put("t", "b").wait()?;
        Ok(())
    }
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(open_twice(dir.path()).unwrap_err().code, Code::Unavailable);
}

#[test]
fn a_closed_queue_says_so() {
    let queue = Queue::memory();
    let clone = queue.clone();
    queue.close().unwrap();
    queue.close().unwrap();
    assert_eq!(clone.put("t", "b").wait().unwrap_err().code, Code::Unavailable);
    assert_eq!(clone.reserve("t").wait().unwrap_err().code, Code::Unavailable);
}

#[test]
fn a_backend_may_be_shared() {
    let queue = Queue::memory();
    let same = Queue::from_backend(queue.backend());
    let id = same.put("t", "b").wait().unwrap().id;
    same.close().unwrap();
    assert_eq!(take(&queue, "t").id(), id, "it was not the other's to close");
}

#[test]
fn relaxed_durability_keeps_jobs_over_a_close() {
    let dir = tempfile::tempdir().unwrap();
    let clock = VirtualClock::new();
    let open = || {
        let builder = Queue::builder().durability(Durability::Relaxed { ms: 10 });
        builder.clock(clock.clone()).open(dir.path()).unwrap()
    };
    let queue = open();
    queue.put("t", "b").delay(10 * SECOND).wait().unwrap();
    queue.close().unwrap();
    drop(queue);
    let queue = open();
    assert!(queue.reserve("t").wait().unwrap().is_empty());
    clock.advance(10 * SECOND);
    assert_eq!(take(&queue, "t").attempt(), 1);
}
