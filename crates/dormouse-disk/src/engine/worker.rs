//! Threads that do tasks, all of one shape: wait for a task, do it, report.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use dormouse_core::error::Fatal;
use rustix::process::setpriority_process;
use rustix::thread::gettid;

use super::Report;
use super::control::Control;
use crate::disk::Disk;
use crate::pace::{self, Pace};
use crate::store::Task;
use crate::timeline::stopped;

/// How much a thread may get in the way of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// As any other: somebody waits for it.
    Usual,
    /// Only idle processor time: a late merge does no harm, a late job does.
    Idle,
}

/// The greatest niceness there is.
const LEAST_URGENT: i32 = 19;

/// A thread that runs tasks one after another.
pub(super) struct Worker {
    tasks: Option<Sender<Task>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(super) fn start(
        name: &str,
        priority: Priority,
        pace: Arc<Pace>,
        disk: Arc<dyn Disk>,
        control: Arc<Control>,
    ) -> Worker {
        let (tasks, waiting) = channel::<Task>();
        let work = move || {
            if priority == Priority::Idle {
                // A system that does not allow it only makes merges less polite.
                let _ = setpriority_process(Some(gettid()), LEAST_URGENT);
            }
            pace::keep(pace);
            for task in waiting {
                let ran = catch_unwind(AssertUnwindSafe(|| task.run(&disk)));
                control.inbox.report(match ran {
                    Ok(Ok(done)) => Report::Task(done),
                    Ok(Err(damage)) => Report::Failed(stopped(damage)),
                    Err(_) => Report::Failed(panicked()),
                });
            }
        };
        Worker { tasks: Some(tasks), thread: Some(spawn(name, work)) }
    }

    /// Hands over a task.
    pub(super) fn run(&self, task: Task) {
        if let Some(tasks) = &self.tasks {
            // The thread ends only after this sender is dropped.
            let _ = tasks.send(task);
        }
    }

    /// Waits for the task under way and ends the thread.
    pub(super) fn stop(&mut self) {
        self.tasks.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

thread_local! {
    static OWN: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread one of the engine's until this is dropped: it must not wait for the
/// engine's end meanwhile.
pub(super) struct OwnThread {
    before: bool,
}

impl OwnThread {
    pub(super) fn enter() -> OwnThread {
        OwnThread { before: OWN.replace(true) }
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        OWN.set(self.before);
    }
}

/// Whether the calling thread belongs to an engine, or works for one.
pub(super) fn is_own_thread() -> bool {
    OWN.get()
}

/// Starts a thread; a system that cannot is beyond help.
pub(super) fn spawn<R: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    let run = move || {
        OWN.set(true);
        run()
    };
    Builder::new().name(name.to_owned()).spawn(run).expect("the system cannot start a thread")
}

pub(super) fn panicked() -> Fatal {
    Fatal::new("a thread of the engine panicked; if it was not a sink of yours, please report it")
}
