//! The sync thread: writes sealed batches, syncs once for all that are queued, delivers answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use dormouse_core::backend::{EventSink, ReplyGroups};
use dormouse_core::error::Fatal;
use dormouse_core::event::Event;

use super::inbox::Inbox;
use super::meters::DiskMeters;
use super::worker::{panicked, spawn};
use super::{Durability, Report};
use crate::clock::{Deadline, Stopwatch};
use crate::damage::Damage;
use crate::disk::Disk;
use crate::journal::SegmentWriter;
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
    pub(super) fn start(
        disk: Arc<dyn Disk>,
        writer: SegmentWriter,
        synced: u64,
        durability: Durability,
        inbox: Arc<Inbox>,
        meters: Arc<DiskMeters>,
        watch: Arc<EventSink>,
    ) -> SyncThread {
        let (write_batches, waiting) = channel();
        let sync = Sync {
            disk,
            writer,
            written: synced,
            synced,
            due: None,
            durability,
            inbox,
            meters,
            watch,
            answers: ReplyGroups::default(),
            failed: None,
        };
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
    disk: Arc<dyn Disk>,
    writer: SegmentWriter,
    /// The last batch written, and the last one synced.
    written: u64,
    synced: u64,
    /// Relaxed: the deadline of the next sync.
    due: Option<Deadline>,
    durability: Durability,
    inbox: Arc<Inbox>,
    meters: Arc<DiskMeters>,
    watch: Arc<EventSink>,
    /// Answers of the hand-overs in progress.
    answers: ReplyGroups,
    failed: Option<Fatal>,
}

impl Sync {
    fn run(mut self, waiting: &Receiver<WriteBatch>) -> Option<Fatal> {
        while let Some(write_batch) = self.next(waiting) {
            let mut write_batches = vec![write_batch];
            write_batches.extend(waiting.try_iter());
            // Sinks are other people's code: one that panics must not leave everybody waiting.
            if catch_unwind(AssertUnwindSafe(|| self.handle(write_batches))).is_err() {
                self.stop_with(panicked());
                self.answers.fail(&panicked().into());
            }
        }
        if self.failed.is_none() {
            self.sync_or_fail();
        }
        self.failed
    }

    /// The next hand-over; meanwhile, syncs written batches when their deadline passes.
    fn next(&mut self, waiting: &Receiver<WriteBatch>) -> Option<WriteBatch> {
        while let Some(due) = self.due {
            match waiting.recv_timeout(due.left()) {
                Ok(write_batch) => return Some(write_batch),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => self.sync_or_fail(),
            }
        }
        waiting.recv().ok()
    }

    fn sync_or_fail(&mut self) {
        if let Err(damage) = self.sync() {
            self.fail(&damage);
        }
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
            self.fail(&damage);
        }
        match &self.failed {
            // After the first failure nothing is answered with success and no event is emitted.
            Some(fatal) => self.answers.fail(&fatal.clone().into()),
            None => {
                self.watch.emit(&mut events);
                self.answers.deliver();
            }
        }
    }

    fn make_durable(&mut self, batches: Vec<SegmentBatch>) -> Result<(), Damage> {
        let mut buffers = Vec::with_capacity(batches.len());
        for mut sealed in batches {
            if sealed.segment != self.writer.segment() {
                // A checkpoint must not become durable before what it builds on.
                self.sync()?;
                self.writer = SegmentWriter::create(self.disk.as_ref(), sealed.segment)?;
            }
            let now = sealed.now;
            self.writer.write(&mut sealed.batch, self.synced, now.steady_ms, now.wall_ms)?;
            self.written = sealed.batch.number;
            self.meters.note_batch(&sealed.batch);
            buffers.push(sealed.batch.into_bytes());
        }
        match self.durability {
            Durability::Synced => self.sync()?,
            Durability::Relaxed { ms } => self.sync_in(Duration::from_millis(ms))?,
        }
        self.inbox.report(Report::Durable { batch: self.written, buffers });
        Ok(())
    }

    /// Syncs at most `span` after the first unsynced write, even if writes never pause.
    fn sync_in(&mut self, span: Duration) -> Result<(), Damage> {
        if self.synced == self.written {
            return Ok(());
        }
        let due = *self.due.get_or_insert_with(|| Deadline::after(span));
        if due.left().is_zero() { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<(), Damage> {
        self.due = None;
        if self.synced < self.written {
            let watch = Stopwatch::start();
            self.writer.sync()?;
            self.meters.note_sync(watch.passed());
            self.synced = self.written;
            self.inbox.report(Report::Synced { batch: self.synced });
        }
        Ok(())
    }

    fn fail(&mut self, damage: &Damage) {
        let text = format!(
            "the journal could not be written, so the store has stopped: {damage}; what was \
             answered is safe, open the queue again after mending the disk"
        );
        self.stop_with(Fatal::new(text));
    }

    fn stop_with(&mut self, error: Fatal) {
        self.due = None;
        self.failed = Some(error.clone());
        self.inbox.report(Report::Failed(error));
    }
}
