//! Blocks the thread on a future, for the `wait` of every operation.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// How often a thread lets others run before it goes to sleep. If many threads call at once, one of
/// them answers the others within microseconds; to sleep and to be woken takes longer.
const YIELDS: usize = 16;
/// If that takes longer, other programs want the processor, and give it back later than a thread
/// gets it that wakes up.
const YIELDS_TIME_MAX: Duration = Duration::from_micros(300);
/// A thread that slept all the same, or lost time, does not try again for so many waits: its
/// answers wait for the disk, or the computer is busy.
const SLEEPS: u32 = 32;

/// Puts the thread to sleep until it is woken. Not `thread::park`, whose single token other code
/// on the thread may consume.
#[derive(Default)]
struct Parker {
    woken: AtomicBool,
    /// The thread sleeps: without this, every wake would be a system call.
    sleeping: Mutex<bool>,
    condvar: Condvar,
}

impl Parker {
    fn is_woken(&self) -> bool {
        self.woken.swap(false, Ordering::SeqCst)
    }

    fn sleep(&self) {
        let mut sleeping = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        *sleeping = true;
        while !self.is_woken() {
            sleeping = self.condvar.wait(sleeping).unwrap_or_else(PoisonError::into_inner);
        }
        *sleeping = false;
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        // The thread looks at `woken` after it has said that it sleeps, under the same lock.
        if *self.sleeping.lock().unwrap_or_else(PoisonError::into_inner) {
            self.condvar.notify_one();
        }
    }
}

/// What a thread waits with.
struct Waiting {
    parker: Arc<Parker>,
    waker: Waker,
    /// For how many waits it goes to sleep at once.
    sleeps: Cell<u32>,
}

impl Waiting {
    fn park(&self) {
        let sleeps = self.sleeps.get();
        if sleeps > 0 {
            self.sleeps.set(sleeps - 1);
            self.parker.sleep();
        } else if !self.yield_some() {
            self.parker.sleep();
        }
    }

    /// Lets other threads run for a short time; tells whether it was woken.
    #[expect(clippy::disallowed_methods, reason = "how long a rest takes is not the queue's time")]
    fn yield_some(&self) -> bool {
        let began = Instant::now();
        for _ in 0..YIELDS {
            thread::yield_now();
            let is_quick = began.elapsed() < YIELDS_TIME_MAX;
            if !is_quick {
                self.sleeps.set(SLEEPS);
            }
            if self.parker.is_woken() {
                return true;
            }
            if !is_quick {
                return false;
            }
        }
        self.sleeps.set(SLEEPS);
        false
    }
}

thread_local! {
    // One per thread and not per wait: a blocking call allocates no more than an async one.
    static WAITING: Waiting = {
        let parker = Arc::<Parker>::default();
        let waker = Waker::from(parker.clone());
        Waiting { parker, waker, sleeps: Cell::new(0) }
    };
}

/// Polls the future until it is ready and sleeps in between.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    WAITING.with(|waiting| {
        let mut cx = Context::from_waker(&waiting.waker);
        loop {
            match future.as_mut().poll(&mut cx) {
                Poll::Ready(output) => return output,
                Poll::Pending => waiting.park(),
            }
        }
    })
}
