//! Drives the backend once for all connections that are ready.
//!
//! A connection only defers its commands. After every ready socket has been read, one task drives
//! the backend: one turn, one write, then all answers. Answers that arrive on a thread of the
//! backend are handed to that task, which wakes their connections: a wake from another thread is a
//! system call, and so it is one for all of them.

use std::cell::Cell;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use dormouse_core::backend::{Backend, at_end_of_round};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// The task, as those who need it see it. It ends when this is dropped.
pub(super) struct DriveTask {
    backend: Arc<dyn Backend>,
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Default)]
struct Shared {
    /// The task has been notified and has not driven yet.
    planned: AtomicBool,
    notify: Notify,
    /// Connections whose answers arrived on other threads.
    woken: Mutex<Vec<Waker>>,
}

thread_local! {
    /// This thread drives, so a wake is no system call.
    static DRIVES: Cell<bool> = const { Cell::new(false) };
}

impl DriveTask {
    /// Must be called within a tokio runtime.
    pub(super) fn start(backend: Arc<dyn Backend>) -> DriveTask {
        let shared = Arc::new(Shared::default());
        let run = Arc::clone(&shared).run(Arc::clone(&backend));
        DriveTask { backend, shared, task: tokio::spawn(run).abort_handle() }
    }

    /// Something was deferred: the task drives soon.
    pub(super) fn plan(&self) {
        if !self.shared.planned.swap(true, Ordering::AcqRel) {
            self.shared.notify.notify_one();
        }
    }

    /// Wakes a connection whose answers are complete.
    pub(super) fn wake(&self, waker: Waker) {
        if DRIVES.get() {
            return waker.wake();
        }
        let mut woken = self.shared.woken.lock().unwrap_or_else(PoisonError::into_inner);
        woken.push(waker);
        let is_first = woken.len() == 1;
        drop(woken);
        if is_first {
            let shared = Arc::clone(&self.shared);
            at_end_of_round(move || shared.notify.notify_one());
        }
    }
}

impl Drop for DriveTask {
    fn drop(&mut self) {
        self.task.abort();
        if self.shared.planned.load(Ordering::Acquire) {
            // Leases that were given back last must not wait for the backend's own thread.
            self.backend.drive();
        }
    }
}

impl Shared {
    async fn run(self: Arc<Shared>, backend: Arc<dyn Backend>) {
        loop {
            self.notify.notified().await;
            self.wake_all();
            // Everything that is ready runs first, and sockets are polled once more.
            tokio::task::yield_now().await;
            // Before the drive: what is deferred from now on plans another one.
            self.planned.store(false, Ordering::Release);
            DRIVES.set(true);
            backend.drive();
            DRIVES.set(false);
            self.wake_all();
        }
    }

    fn wake_all(&self) {
        let woken = {
            let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
            mem::take(&mut *woken)
        };
        woken.into_iter().for_each(Waker::wake);
    }
}
