//! An operation as a future, and as something to wait for.

use std::future::IntoFuture;

use dormouse::core::command::{Command, Reply};
use dormouse::{Code, Error, Queue};

use crate::fake::Fake;
use crate::util::{block_on, poll_once, take};

#[test]
fn blocks_without_any_runtime() {
    let queue = Queue::memory();
    let put = queue.put("t", "b").wait().unwrap();
    assert_eq!(take(&queue, "t").id(), put.id);
}

#[test]
fn runs_on_the_smallest_executor() {
    let queue = Queue::memory();
    let (put, job) = block_on(async {
        let put = queue.put("t", "b").await.unwrap();
        (put, queue.reserve_one("t").await.unwrap().unwrap())
    });
    assert_eq!(job.id(), put.id);
}

#[tokio::test]
async fn runs_on_tokio() {
    let queue = Queue::memory();
    let consumer = {
        let queue = queue.clone();
        tokio::spawn(async move {
            queue.reserve_one("t").wait_for(crate::util::LONG).await.unwrap().unwrap()
        })
    };
    let put = queue.put("t", "b").await.unwrap();
    assert_eq!(consumer.await.unwrap().id(), put.id);
}

#[test]
fn is_sent_before_it_is_awaited_when_asked_to() {
    let (queue, fake) = Fake::queue();
    let mut pending = queue.stats("t").send();
    let asked = fake.next();
    assert!(matches!(asked.command, Command::Stats(_)));
    assert!(poll_once(&mut pending).is_pending());
    asked.answer(Ok(Reply::Stats(Default::default())));
    assert!(poll_once(&mut pending).is_ready());
}

#[test]
fn a_refused_submit_is_its_answer() {
    let (queue, fake) = Fake::queue();
    fake.be_busy(1);
    let error = queue.put("t", "b").wait().unwrap_err();
    assert_eq!((error.code, error.code.is_retryable()), (Code::Busy, true));
    fake.assert_quiet();
}

#[test]
fn an_error_of_the_backend_is_its_answer() {
    let (queue, fake) = Fake::queue();
    let pending = queue.purge("t").send();
    fake.next().answer(Err(Error::unavailable("gone fishing")));
    assert_eq!(pending.wait().unwrap_err().to_string(), "unavailable: gone fishing");
}

#[test]
fn an_answer_of_another_kind_is_an_error_and_no_panic() {
    let (queue, fake) = Fake::queue();
    let pending = queue.purge("t").send();
    fake.next().answer(Ok(Reply::Done));
    assert_eq!(pending.wait().unwrap_err().code, Code::Unavailable);

    let pending = queue.put("t", "b").send();
    fake.next().answer(Ok(Reply::Put(Vec::new())));
    assert_eq!(pending.wait().unwrap_err().code, Code::Unavailable);
}

#[test]
fn only_the_newest_waker_is_woken() {
    let (queue, fake) = Fake::queue();
    let mut pending = queue.purge("t").send();
    assert!(poll_once(&mut pending).is_pending());
    let waiting = std::thread::spawn(move || block_on(pending));
    fake.next().answer(Ok(Reply::Count(3)));
    assert_eq!(waiting.join().unwrap(), Ok(3));
}

#[test]
#[should_panic(expected = "polled after")]
fn polling_after_the_answer_is_a_fault_of_the_caller() {
    let (queue, _fake) = Fake::queue();
    let mut pending = queue.put("bad topic", "b").into_future();
    assert!(poll_once(&mut pending).is_ready());
    let _ = poll_once(&mut pending);
}

#[test]
fn handles_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    fn sent<T: Send + 'static>(_: &T) {}
    let (queue, _fake) = Fake::queue();
    shared(&queue);
    sent(&queue.put("t", "b").send());
    sent(&queue.reserve("t").into_future());
    sent(&queue.lock("l", "me", crate::util::SECOND).into_future());
}
