//! The sync thread: writes sealed batches, syncs once for all that are queued, delivers answers,
//! and then takes the next turn itself if it can, so that the next batch needs no other thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use dormouse_core::backend::ReplyGroups;
use dormouse_core::error::Fatal;
use dormouse_core::event::Event;

use super::batch_writer::BatchWriter;
use super::control::Control;
use super::worker::{panicked, spawn};
use crate::damage::Damage;
use crate::store::SegmentBatch;

/// One hand-over: batches to write, and the events and answers that wait for them and all before.
#[derive(Default)]
pub(super) struct WriteBatch {
    pub(super) batches: Vec<SegmentBatch>,
    pub(super) events: Vec<Event>,
    pub(super) answers: ReplyGroups,
}

/// The engine's side of the sync thread.
pub(super) struct SyncThread {
    write_batches: Option<Sender<WriteBatch>>,
    thread: Option<JoinHandle<Option<Fatal>>>,
}

impl SyncThread {
    pub(super) fn start(writer: BatchWriter, control: Arc<Control>) -> SyncThread {
        let (write_batches, waiting) = channel();
        let sync = Sync { writer, control, answers: ReplyGroups::default(), failed: None };
        let thread = spawn("dormouse-sync", move || sync.run(&waiting));
        SyncThread { write_batches: Some(write_batches), thread: Some(thread) }
    }

    pub(super) fn send(&self, write_batch: WriteBatch) {
        if let Some(write_batches) = &self.write_batches {
            // The thread ends only after this sender is dropped.
            let _ = write_batches.send(write_batch);
        }
    }

    /// Writes and syncs everything handed over, and ends; gives the first failure it had.
    pub(super) fn stop(&mut self) -> Option<Fatal> {
        self.write_batches.take();
        self.thread.take()?.join().unwrap_or_else(|_| Some(panicked()))
    }
}

struct Sync {
    writer: BatchWriter,
    control: Arc<Control>,
    /// Answers of the hand-overs in progress.
    answers: ReplyGroups,
    failed: Option<Fatal>,
}

impl Sync {
    fn run(mut self, waiting: &Receiver<WriteBatch>) -> Option<Fatal> {
        while let Ok(write_batch) = waiting.recv() {
            let mut write_batches = vec![write_batch];
            write_batches.extend(waiting.try_iter());
            if catch_unwind(AssertUnwindSafe(|| self.handle(write_batches))).is_err() {
                self.stop_with(panicked());
                self.answers.fail(&panicked().into());
            }
            self.control.deliver();
            self.control.drive();
        }
        self.failed
    }

    fn handle(&mut self, mut write_batches: Vec<WriteBatch>) {
        let (mut batches, mut events) = (Vec::new(), Vec::new());
        for write_batch in &mut write_batches {
            self.answers.append(&mut write_batch.answers);
            batches.append(&mut write_batch.batches);
            events.append(&mut write_batch.events);
        }
        if self.failed.is_none()
            && let Err(damage) = self.make_durable(batches)
        {
            self.stop_with(journal_failed(&damage));
        }
        match &self.failed {
            // After the first failure nothing is answered with success and no event is emitted.
            Some(fatal) => self.answers.fail(&fatal.clone().into()),
            None => self.control.outbox.push(&mut events, &mut self.answers),
        }
    }

    fn make_durable(&mut self, batches: Vec<SegmentBatch>) -> Result<(), Damage> {
        let mut buffers = Vec::with_capacity(batches.len());
        let mut bytes = 0;
        for mut sealed in batches {
            self.writer.write(&mut sealed)?;
            bytes += sealed.batch.len();
            buffers.push(sealed.batch.into_bytes());
        }
        self.writer.sync_often(bytes)?;
        // Before its answers are delivered: a client that hears of its put reserves at once.
        let (durable, synced) = (Some(self.writer.written()), Some(self.writer.synced()));
        self.control.inbox.progress(durable, synced, buffers);
        Ok(())
    }

    fn stop_with(&mut self, fatal: Fatal) {
        self.failed = Some(fatal.clone());
        self.control.fail(fatal);
    }
}

/// The journal could not be written or synced.
pub(super) fn journal_failed(damage: &Damage) -> Fatal {
    Fatal::new(format!(
        "the journal could not be written, so the store has stopped: {damage}; what was answered \
         is safe, open the queue again after mending the disk"
    ))
}
