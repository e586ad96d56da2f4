//! The journal of a relaxed engine: the holder of the state writes, a thread syncs every few ms.
//!
//! A write goes to the page cache in microseconds, which is less than it takes to hand it to
//! another thread. A sync takes as long as the disk: the thread does it on the file alone, without
//! any lock.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use dormouse_core::error::Fatal;

use super::batch_writer::BatchWriter;
use super::control::Control;
use super::meters::DiskMeters;
use super::sync::journal_failed;
use super::worker::{panicked, spawn};
use crate::clock::{Deadline, Stopwatch};
use crate::damage::Damage;
use crate::disk::File;
use crate::store::SegmentBatch;

/// Writes batches, and has them synced in time.
pub(super) struct RelaxedWriter {
    writer: BatchWriter,
    span: Duration,
    unsynced: Arc<Unsynced>,
    thread: Option<JoinHandle<()>>,
}

/// The file that the sync thread has to sync.
#[derive(Default)]
struct Unsynced {
    state: Mutex<UnsyncedState>,
    changed: Condvar,
}

#[derive(Default)]
struct UnsyncedState {
    /// The file that was written to, the last batch in it, and when to sync it.
    file: Option<(Arc<dyn File>, u64, Deadline)>,
    /// The thread syncs.
    syncing: bool,
    /// A sync of the thread failed. The system reports that once, so no other sync may claim
    /// success.
    failed: bool,
    stopped: bool,
}

impl Unsynced {
    fn lock(&self) -> MutexGuard<'_, UnsyncedState> {
        // No code that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Batches up to this one are written. The deadline of the first one stays.
    fn note(&self, file: &Arc<dyn File>, written: u64, span: Duration) {
        let mut state = self.lock();
        match &mut state.file {
            Some((_, last, _)) => *last = written,
            None => {
                state.file = Some((Arc::clone(file), written, Deadline::after(span)));
                drop(state);
                self.changed.notify_all();
            }
        }
    }

    /// The writer syncs by itself: waits for the thread's sync, and says whether none has failed.
    fn take_over(&self) -> bool {
        let waited = self.changed.wait_while(self.lock(), |state| state.syncing);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.file = None;
        !state.failed
    }

    /// The thread's sync is over.
    fn end(&self) {
        self.lock().syncing = false;
        self.changed.notify_all();
    }

    /// The thread's sync has failed.
    fn fail(&self) {
        self.lock().failed = true;
        self.end();
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Waits for the next sync; `None` = there is none any more.
    fn next(&self) -> Option<(Arc<dyn File>, u64)> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            let Some((_, _, due)) = &state.file else {
                let waited = self.changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = due.left();
            if left.is_zero() {
                state.syncing = true;
                return state.file.take().map(|(file, written, _)| (file, written));
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl RelaxedWriter {
    pub(super) fn start(
        writer: BatchWriter,
        span: Duration,
        control: Arc<Control>,
        meters: Arc<DiskMeters>,
    ) -> RelaxedWriter {
        let unsynced = Arc::new(Unsynced::default());
        let shared = Arc::clone(&unsynced);
        let thread = spawn("dormouse-sync", move || {
            let ended = catch_unwind(AssertUnwindSafe(|| sync_all(&shared, &control, &meters)));
            if let Err(fatal) = ended.unwrap_or_else(|_| Err(panicked())) {
                shared.fail();
                control.fail(fatal);
            }
        });
        RelaxedWriter { writer, span, unsynced, thread: Some(thread) }
    }

    /// Writes batches in order; they are durable as far as promised when this returns.
    pub(super) fn write(&mut self, batch: &mut SegmentBatch) -> Result<(), Fatal> {
        self.try_write(batch).map_err(|damage| journal_failed(&damage))
    }

    fn try_write(&mut self, sealed: &mut SegmentBatch) -> Result<(), Damage> {
        if self.writer.begins_segment(sealed) {
            self.sync()?;
        }
        self.writer.write(sealed)?;
        self.unsynced.note(self.writer.file(), self.writer.written(), self.span);
        Ok(())
    }

    /// The thread has synced batches up to this one.
    pub(super) fn set_synced(&mut self, batch: u64) {
        self.writer.set_synced(batch);
    }

    /// Batches up to this one are synced.
    pub(super) fn synced(&self) -> u64 {
        self.writer.synced()
    }

    fn sync(&mut self) -> Result<(), Damage> {
        if !self.unsynced.take_over() {
            let source = io::Error::other("an earlier sync of this segment failed");
            return Err(Damage::io("the newest segment", source));
        }
        self.writer.sync()
    }

    /// Ends the thread and syncs what is left.
    pub(super) fn stop(&mut self) -> Result<(), Fatal> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        self.unsynced.stop();
        thread.join().map_err(|_| panicked())?;
        self.sync().map_err(|damage| journal_failed(&damage))
    }
}

/// The sync thread.
fn sync_all(unsynced: &Unsynced, control: &Control, meters: &DiskMeters) -> Result<(), Fatal> {
    while let Some((file, written)) = unsynced.next() {
        let watch = Stopwatch::start();
        if let Err(source) = file.sync() {
            return Err(journal_failed(&Damage::io("the newest segment", source)));
        }
        unsynced.end();
        meters.note_sync(watch.passed());
        control.inbox.progress(None, Some(written), Vec::new());
        control.drive();
    }
    Ok(())
}
