//! A worker that stops: nothing is lost, nothing is held.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dormouse::{Code, Job, Outcome, Queue, State, Worker};
use tokio::sync::Notify;

use crate::util::{LONG, block_on, eventually, is_empty, soon, waiters};

/// Handlers that never end by themselves.
fn stuck(queue: &Queue) -> Worker {
    Worker::new(queue).handle("t", |_: Job| std::future::pending::<Outcome>())
}

async fn all_taken(queue: &Queue, count: u64) {
    soon("all are in hand", async || queue.stats("t").await.unwrap().counts.leased == count).await;
}

async fn assert_unspent(queue: &Queue, count: usize) {
    let stats = queue.stats("t").await.unwrap();
    assert_eq!((stats.counts.leased, stats.waiters), (0, 0));
    let jobs = queue.reserve("t").max(count + 1).await.unwrap();
    assert_eq!(jobs.len(), count);
    assert!(jobs.iter().all(|job| job.attempt() == 1), "no attempt was spent");
}

#[tokio::test]
async fn handlers_may_finish_within_the_grace() {
    let queue = Queue::memory();
    queue.put("t", "b").await.unwrap();
    let finish = Arc::new(Notify::new());
    let worker = Worker::new(&queue).grace(LONG).handle("t", {
        let finish = finish.clone();
        move |_: Job| {
            let finish = finish.clone();
            async move { finish.notified().await }
        }
    });
    let shutdown = Arc::new(Notify::new());
    let run = tokio::spawn({
        let shutdown = shutdown.clone();
        async move { worker.run_until(shutdown.notified()).await }
    });
    all_taken(&queue, 1).await;
    soon("it waits for more", async || waiters(&queue, "t") == 1).await;
    shutdown.notify_one();
    soon("it waits no more", async || waiters(&queue, "t") == 0).await;
    let late = queue.put("t", "too late").await.unwrap().id;
    finish.notify_one();
    assert_eq!(run.await.unwrap().unwrap().done, 1);
    assert_eq!(queue.get(late).await.unwrap().state, State::Ready);
}

#[tokio::test]
async fn unfinished_jobs_are_given_back_after_the_grace() {
    let queue = Queue::memory();
    for _ in 0..3 {
        queue.put("t", "b").await.unwrap();
    }
    let worker = stuck(&queue).grace(Duration::ZERO);
    let stopper = worker.stopper();
    let run = tokio::spawn(worker.run());
    all_taken(&queue, 3).await;
    stopper.stop();
    let tally = run.await.unwrap().unwrap();
    assert_eq!((tally.released, tally.done), (3, 0));
    assert_unspent(&queue, 3).await;
}

#[tokio::test]
async fn a_blocking_handler_learns_that_its_job_is_lost_and_is_left_alone() {
    let queue = Queue::memory();
    queue.put("t", "b").await.unwrap();
    let [started, lost, end] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
    let worker = Worker::new(&queue).grace(Duration::ZERO).handle_blocking("t", {
        let (started, lost, end) = (started.clone(), lost.clone(), end.clone());
        move |job: Job| {
            started.store(true, Ordering::SeqCst);
            eventually("the job is lost", || job.is_lost());
            lost.store(true, Ordering::SeqCst);
            eventually("the test is over", || end.load(Ordering::SeqCst));
        }
    });
    let stopper = worker.stopper();
    let run = tokio::spawn(worker.run());
    // A handler that has not started yet would be cancelled before its first line.
    soon("the handler runs", async || started.load(Ordering::SeqCst)).await;
    stopper.stop();
    assert_eq!(run.await.unwrap().unwrap().released, 1);
    // The worker does not wait for the handler's thread, so the test does.
    soon("the handler knows", async || lost.load(Ordering::SeqCst)).await;
    assert_unspent(&queue, 1).await;
    end.store(true, Ordering::SeqCst);
}

#[tokio::test]
async fn a_dropped_run_gives_everything_back() {
    let queue = Queue::memory();
    for _ in 0..3 {
        queue.put("t", "b").await.unwrap();
    }
    let run = tokio::spawn(stuck(&queue).run());
    all_taken(&queue, 3).await;
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    soon("all are back", async || queue.stats("t").await.unwrap().ready == 3).await;
    soon("nobody waits", async || waiters(&queue, "t") == 0).await;
    assert_unspent(&queue, 3).await;
}

#[tokio::test]
async fn jobs_given_back_are_ready_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let queue = Queue::open(dir.path()).unwrap();
    queue.put("t", "b").ttr(LONG).await.unwrap();
    let run = tokio::spawn(stuck(&queue).run());
    all_taken(&queue, 1).await;
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    soon("it is back", async || queue.stats("t").await.unwrap().ready == 1).await;
    queue.close().unwrap();
    drop(queue);
    assert_unspent(&Queue::open(dir.path()).unwrap(), 1).await;
}

#[tokio::test]
async fn a_closed_store_ends_the_worker() {
    let queue = Queue::memory();
    let run = tokio::spawn(Worker::new(&queue).handle("t", |_: Job| async {}).run());
    soon("it waits", async || waiters(&queue, "t") == 1).await;
    queue.close().unwrap();
    assert_eq!(run.await.unwrap().unwrap_err().code, Code::Unavailable);
}

#[test]
fn works_without_a_runtime_of_the_caller() {
    let queue = Queue::memory();
    for n in 0..20 {
        queue.put("t", n.to_string()).wait().unwrap();
    }
    let worker = Worker::new(&queue).concurrency(4);
    let worker = worker.handle_blocking("t", |job: Job| job.text().map(|_| ()));
    let stopper = worker.stopper();
    let run = thread::spawn(move || worker.run_blocking());
    eventually("all are done", || block_on(is_empty(&queue)));
    stopper.stop();
    assert_eq!(run.join().unwrap().unwrap().done, 20);
}

#[test]
fn a_stop_before_the_start_is_not_forgotten() {
    let queue = Queue::memory();
    queue.put("t", "b").wait().unwrap();
    let worker = stuck(&queue);
    worker.stopper().stop();
    assert_eq!(worker.run_blocking().unwrap(), dormouse::Tally::default());
    assert_eq!(queue.stats("t").wait().unwrap().ready, 1);
}
