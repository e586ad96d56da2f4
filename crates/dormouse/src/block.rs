//! Blocks the thread on a future, for the `wait` of every operation.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Puts the thread to sleep until it is woken. Not `thread::park`, whose single token other code
/// on the thread may consume.
#[derive(Default)]
struct Parker {
    woken: Mutex<bool>,
    condvar: Condvar,
}

impl Parker {
    fn park(&self) {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        while !*woken {
            woken = self.condvar.wait(woken).unwrap_or_else(PoisonError::into_inner);
        }
        *woken = false;
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condvar.notify_one();
    }
}

thread_local! {
    // One per thread and not per wait: a blocking call allocates no more than an async one.
    static PARKER: (Arc<Parker>, Waker) = {
        let parker = Arc::<Parker>::default();
        let waker = Waker::from(parker.clone());
        (parker, waker)
    };
}

/// Polls the future until it is ready and sleeps in between.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    PARKER.with(|(parker, waker)| {
        let mut cx = Context::from_waker(waker);
        loop {
            match future.as_mut().poll(&mut cx) {
                Poll::Ready(output) => return output,
                Poll::Pending => parker.park(),
            }
        }
    })
}
