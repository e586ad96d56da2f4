//! The engine over a disk store: batches to the sync thread, tasks to the workers.

use std::sync::Arc;

use dormouse_core::backend::{EventSink, ReplyGroups, Ticket};
use dormouse_core::command::Command;
use dormouse_core::error::{Error, Fatal};
use dormouse_core::time::Now;

use super::engine_loop::{Route, Storage};
use super::inbox::Inbox;
use super::meters::{DiskMeters, RuleMeters};
use super::sync::{SyncThread, WriteBatch};
use super::worker::{Priority, Worker};
use super::{Options, Report};
use crate::clock::{Reading, SteadyClock};
use crate::disk::Disk;
use crate::lock::DirLock;
use crate::store::{OpenError, RecoveredStore, Store, TaskResult};

/// Batches in flight to the disk; requests that arrive meanwhile become one batch.
const IN_FLIGHT_MAX: u64 = 2;
/// While the open batch is larger than this, requests stay queued.
const BATCH_BYTES_MAX: usize = 8 << 20;

pub(super) struct DiskStorage {
    store: Store,
    clock: SteadyClock,
    sync: SyncThread,
    meters: Arc<DiskMeters>,
    watch: Arc<EventSink>,
    flush: Worker,
    merge: Worker,
    /// The last batch known to be as durable as promised.
    durable: u64,
    /// The next hand-over to the sync thread.
    write_batch: WriteBatch,
    /// The directory is given back after the threads, which are stopped on drop, are gone.
    _lock: Option<DirLock>,
}

impl DiskStorage {
    pub(super) fn open(
        disk: Arc<dyn Disk>,
        lock: Option<DirLock>,
        options: &Options,
        inbox: &Arc<Inbox>,
        watch: &Arc<EventSink>,
    ) -> Result<DiskStorage, OpenError> {
        let (boot_id, reading) = (options.clock.boot_id(), options.clock.read());
        let RecoveredStore { store, writer, clock } =
            Store::open(Arc::clone(&disk), options.sizes, boot_id, reading)?;
        let durable = store.last_sealed();
        let meters = Arc::new(DiskMeters::new());
        meters.note_runs(&store);
        meters.note_growth(&store);
        let sync = SyncThread::start(
            Arc::clone(&disk),
            writer,
            durable,
            options.durability,
            Arc::clone(inbox),
            Arc::clone(&meters),
            Arc::clone(watch),
        );
        Ok(DiskStorage {
            store,
            clock,
            sync,
            meters,
            watch: Arc::clone(watch),
            flush: Worker::start(
                "dormouse-flush",
                Priority::Usual,
                Arc::clone(&disk),
                Arc::clone(inbox),
            ),
            merge: Worker::start("dormouse-merge", Priority::Idle, disk, Arc::clone(inbox)),
            durable,
            write_batch: WriteBatch::default(),
            _lock: lock,
        })
    }

    pub(super) fn meters(&self) -> Arc<DiskMeters> {
        Arc::clone(&self.meters)
    }

    fn route(&mut self, route: &mut Route<'_>) {
        for (ticket, answer, when) in self.store.answers() {
            route(ticket, answer, when);
        }
    }

    /// Seals the open batch, together with the events and answers that wait for it.
    fn seal(&mut self, now: Now, waiting: &mut ReplyGroups) {
        self.write_batch.batches.extend(self.store.seal(now));
        self.write_batch.events.append(&mut self.store.take_events());
        self.write_batch.answers.append(waiting);
    }

    fn hand_over(&mut self, in_flight: u64) {
        if self.write_batch.batches.is_empty() && in_flight == 0 {
            // Nothing to wait for: reads of a quiet store need no other thread.
            self.write_batch.answers.deliver();
        } else if !self.write_batch.batches.is_empty() || !self.write_batch.answers.is_empty() {
            self.sync.send(std::mem::take(&mut self.write_batch));
        }
    }

    fn run_tasks(&mut self) {
        while let Some(task) = self.store.flush_task() {
            self.flush.run(task);
        }
        if let Some(task) = self.store.merge_task() {
            self.merge.run(task);
        }
    }
}

impl Storage for DiskStorage {
    fn now(&self, reading: Reading) -> Now {
        self.clock.now(reading)
    }

    fn step(
        &mut self,
        now: Now,
        ticket: Ticket,
        command: Command,
        route: &mut Route<'_>,
    ) -> Result<(), Fatal> {
        self.store.set_watched(self.watch.is_watched());
        self.store.step(now, ticket, command)?;
        self.route(route);
        Ok(())
    }

    fn tick(&mut self, now: Now, route: &mut Route<'_>) -> Result<(), Fatal> {
        self.store.set_watched(self.watch.is_watched());
        self.store.tick(now)?;
        self.route(route);
        Ok(())
    }

    fn next_wake(&self, now: Now) -> Option<u64> {
        self.store.next_wake(now)
    }

    fn note(&self, meters: &RuleMeters) {
        meters.note(self.store.rules());
    }

    fn report(&mut self, report: Report) -> Result<(), Fatal> {
        match report {
            Report::Durable { batch, buffers } => {
                self.durable = self.durable.max(batch);
                self.store.set_durable(self.durable);
                buffers.into_iter().for_each(|buffer| self.store.recycle(buffer));
            }
            Report::Synced { batch } => self.store.set_synced(batch),
            Report::Task(done) => {
                if matches!(done, TaskResult::Removed) {
                    self.store.check_space();
                }
                self.meters.note_done(&done);
                self.store.finish(done);
                self.meters.note_runs(&self.store);
            }
            Report::Backup(wanted) => self.store.want_backup(wanted),
            Report::Failed(error) => return Err(error),
        }
        Ok(())
    }

    fn end_turn(&mut self, now: Now, waiting: &mut ReplyGroups) -> Result<(), Fatal> {
        let in_flight = self.store.last_sealed() - self.durable;
        let freezes = self.store.wants_freeze();
        if in_flight < IN_FLIGHT_MAX || freezes {
            self.seal(now, waiting);
        }
        if freezes {
            self.write_batch.batches.push(self.store.freeze(now));
            self.store.check_space();
        }
        self.meters.note_growth(&self.store);
        self.hand_over(in_flight);
        self.run_tasks();
        Ok(())
    }

    fn is_crowded(&self) -> bool {
        self.store.batch_bytes() > BATCH_BYTES_MAX || self.store.is_stalled()
    }

    fn fail(&mut self, why: &Error) {
        self.write_batch.answers.fail(why);
    }

    fn close(&mut self, now: Now, waiting: &mut ReplyGroups) -> Result<(), Fatal> {
        self.store.push_seal();
        self.seal(now, waiting);
        self.hand_over(1);
        let failed = self.sync.stop();
        self.store.stop_merge();
        self.flush.stop();
        self.merge.stop();
        failed.map_or(Ok(()), Err)
    }
}

impl Drop for DiskStorage {
    fn drop(&mut self) {
        // After a failure the threads end without a seal; their work is not waited for
        // longer than it takes.
        self.sync.stop();
        self.store.stop_merge();
        self.flush.stop();
        self.merge.stop();
    }
}
