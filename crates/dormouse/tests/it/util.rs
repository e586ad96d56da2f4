//! Helpers of several tests.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use dormouse::{LeasedJob, Queue, VirtualClock};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// Far beyond what any step takes, on a busy computer too.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A queue in memory whose time is moved by hand.
pub(crate) fn virtual_queue() -> (Queue, VirtualClock) {
    let clock = VirtualClock::new();
    (Queue::builder().clock(clock.clone()).memory(), clock)
}

/// The one job that is due.
pub(crate) fn take(queue: &Queue, topic: &str) -> LeasedJob {
    queue.reserve_one(topic).wait().unwrap().expect("a job is due")
}

/// Waits until it holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < LONG, "still not: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// As `eventually`, leaving the thread to other tasks.
pub(crate) async fn soon(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < LONG, "still not: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Polls once, without anybody to wake.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// The smallest executor there is: operations need no more.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// How many reserves wait on a topic; a topic that is not there has none.
pub(crate) fn waiters(queue: &Queue, topic: &str) -> u64 {
    queue.stats(topic).wait().map_or(0, |stats| stats.waiters)
}

/// No job is waiting or in hand.
pub(crate) async fn is_empty(queue: &Queue) -> bool {
    let counts = queue.stats_all().await.unwrap().counts;
    counts.waiting + counts.leased == 0
}
