//! Checkpoints through a store on a real directory.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::backend::{Request, Ticket};
use dormouse_core::command::Command;
use dormouse_core::image::{LeaseImage, LockImage, TopicImage};
use dormouse_core::job::Token;
use dormouse_core::op::{Extend, Lock, Put, Reserve, Unlock};
use dormouse_core::topic::TopicName;

use super::*;
use crate::checkpoint::{self, checkpoint_name};
use crate::clock::{SteadyClock, TimeSource, VirtualClock};
use crate::disk::RealDisk;
use crate::journal::{SegmentWriter, segment_name};
use crate::manifest::{self, MANIFEST_NAME};

/// A store, driven by hand.
struct Rig {
    disk: Arc<dyn Disk>,
    store: Store,
    writer: SegmentWriter,
    clock: SteadyClock,
    time: VirtualClock,
}

impl Rig {
    fn open(dir: &Path, time: &VirtualClock) -> Rig {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(dir).unwrap());
        let opened = Store::open(Arc::clone(&disk), Sizes::default(), [1; 16], time.read());
        let RecoveredStore { store, writer, clock } = opened.unwrap();
        Rig { disk, store, writer, clock, time: time.clone() }
    }

    fn now(&self) -> Now {
        self.clock.now(self.time.read())
    }

    fn step(&mut self, command: Command) {
        let now = self.now();
        self.store.step(now, Request::new(Ticket::next(), command)).unwrap();
        for (_, answer, _) in self.store.answers() {
            answer.unwrap();
        }
    }

    fn write(&mut self, sealed: SegmentBatch) {
        let SegmentBatch { mut batch, segment, now } = sealed;
        if segment != self.writer.segment() {
            self.writer = SegmentWriter::create(self.disk.as_ref(), segment).unwrap();
        }
        let before = batch.number - 1;
        self.writer.write(&mut batch, before, now.steady_ms, now.wall_ms).unwrap();
        self.writer.sync().unwrap();
        self.store.set_synced(batch.number);
        self.store.set_durable(batch.number);
    }

    fn commit(&mut self) {
        let now = self.now();
        if let Some(sealed) = self.store.seal(now) {
            self.write(sealed);
        }
    }

    /// Gives the bytes of the first batch of the new segment.
    fn freeze(&mut self) -> usize {
        self.commit();
        let now = self.now();
        let sealed = self.store.freeze(now);
        let bytes = sealed.batch.len();
        self.write(sealed);
        bytes
    }

    fn flush(&mut self) {
        while let Some(task) = self.store.flush_task() {
            let done = task.run(&self.disk).unwrap();
            self.store.finish(done);
        }
    }

    /// Leases `jobs` jobs of as many topics, and holds a lock.
    fn fill(&mut self, jobs: usize) {
        let topics: Vec<TopicName> =
            (0..jobs).map(|number| TopicName::new(&format!("t{number}")).unwrap()).collect();
        for some in topics.chunks(500) {
            let puts = some.iter().map(|topic| Put::new(topic.clone(), "body")).collect();
            self.step(Command::Put(puts));
            self.commit();
            let topics = some.to_vec();
            let max = topics.len();
            self.step(Command::Reserve(Reserve {
                topics,
                max,
                wait_ms: 0,
                ttr_ms: None,
                session: None,
            }));
            // What may be read for heads is bounded between two ticks.
            let now = self.now();
            self.store.tick(now).unwrap();
        }
        let (name, owner) = (Bytes::from_static(b"lock"), Bytes::from_static(b"me"));
        let lock = Lock { name, owner, ttl_ms: 60_000, wait_ms: 0 };
        self.step(Command::Lock(lock));
        assert_eq!(self.store.rules().leased_jobs(), jobs);
    }

    fn tables(&self) -> (Vec<TopicImage>, Vec<LeaseImage>, Vec<LockImage>) {
        let rules = self.store.rules();
        let (topics, leases) = (rules.topic_images().collect(), rules.lease_images().collect());
        (topics, leases, rules.lock_images().collect())
    }
}

/// The pieces of a checkpoint's file, in the order of `Rig::tables`.
fn read_checkpoint(disk: &dyn Disk) -> (Vec<TopicImage>, Vec<LeaseImage>, Vec<LockImage>) {
    let number = manifest::read(disk).unwrap().unwrap().checkpoint.unwrap();
    let (mut topics, mut leases, mut locks) = (Vec::new(), Vec::new(), Vec::new());
    checkpoint::read(disk, number, None, &mut |record| match record {
        Record::Topic(image) => topics.push(image),
        Record::Lease(image) => leases.push(image),
        Record::Lock(image) => locks.push(image),
        _ => {}
    })
    .unwrap();
    topics.sort_unstable_by_key(|image| image.topic);
    leases.sort_unstable_by_key(|image| image.job.id);
    (topics, leases, locks)
}

#[test]
fn the_first_batch_stays_small_and_the_checkpoint_comes_back() {
    let (dir, time) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let mut rig = Rig::open(dir.path(), &time);
    rig.fill(3_000);
    assert!(rig.freeze() < 300, "the head alone is in the journal");
    let before = rig.tables();
    // Changes after the freeze are in the journal, not in the checkpoint: one in every table.
    let (acked, extended) = (&before.1[1], &before.1[2]);
    rig.step(Command::Put(vec![Put::new(TopicName::new("t1").unwrap(), "later")]));
    rig.step(Command::Ack(vec![token(acked)]));
    rig.step(Command::Extend(vec![Extend { token: token(extended), ttr_ms: Some(5_000) }]));
    let (name, owner) = (Bytes::from_static(b"lock"), Bytes::from_static(b"me"));
    rig.step(Command::Unlock(Unlock { name, owner }));
    rig.commit();
    rig.flush();
    let expected = rig.tables();
    assert!(before.1 != expected.1 && before.2 != expected.2);
    assert!(read_checkpoint(rig.disk.as_ref()) == before, "the checkpoint is as of the freeze");
    drop(rig);
    let rig = Rig::open(dir.path(), &time);
    assert!(rig.tables() == expected);
}

fn token(lease: &LeaseImage) -> Token {
    Token { id: lease.job.id, fence: lease.job.progress.fence }
}

#[test]
fn leftovers_go_while_memtables_fill_faster_than_they_are_written() {
    let (dir, time) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let mut rig = Rig::open(dir.path(), &time);
    let mut frozen = 0;
    while frozen < 12 {
        // There is always another memtable to write when a task is done.
        while rig.store.flushes.len() < FLUSHES_MAX {
            rig.step(Command::Put(vec![Put::new(TopicName::new("t").unwrap(), "body")]));
            rig.freeze();
            frozen += 1;
        }
        let task = rig.store.flush_task().unwrap();
        let done = task.run(&rig.disk).unwrap();
        rig.store.finish(done);
        assert!(rig.store.leftovers.tables.len() <= FLUSHES_MAX, "after {frozen} freezes");
    }
}

/// While two memtables are being written, the third fills as they get on. It once filled at full
/// speed, and then everybody waited for a whole flush.
#[test]
fn a_memtable_fills_as_fast_as_those_before_it_are_written() {
    let (dir, time) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let mut rig = Rig::open(dir.path(), &time);
    // Some records of checkpoints.
    rig.fill(1_000);
    rig.store.sizes.memtable_bytes = 1 << 20;
    let fill = |rig: &mut Rig, thousandths: u64| {
        while rig.store.filled() < thousandths {
            rig.step(Command::Put(vec![Put::new(TopicName::new("t").unwrap(), vec![0; 400])]));
        }
    };
    for _ in 0..FLUSHES_MAX {
        fill(&mut rig, flush::FULL);
        assert!(!rig.store.is_stalled());
        rig.freeze();
    }
    assert!(!rig.store.is_stalled(), "there is room for some");
    fill(&mut rig, flush::FILLED_AT_ONCE);
    assert!(rig.store.is_stalled());
    let mut fillable = rig.store.fillable();
    // Both checkpoints, then the first run: each leaves room for more.
    for _ in 0..FLUSHES_MAX + 1 {
        let task = rig.store.flush_task().unwrap();
        let done = task.run(&rig.disk).unwrap();
        let before = std::mem::replace(&mut fillable, rig.store.fillable());
        assert!(before < fillable && !rig.store.is_stalled(), "{before} {fillable}");
        fill(&mut rig, fillable);
        assert!(rig.store.is_stalled());
        rig.store.finish(done);
    }
    rig.flush();
    assert!(!rig.store.is_stalled());
}

/// Writes the checkpoint into the first segment and the manifest in its first format.
fn make_format_1(dir: &Path) {
    let disk = RealDisk::open(dir).unwrap();
    let manifest = manifest::read(&disk).unwrap().unwrap();
    let number = manifest.checkpoint.unwrap();
    let plan = crate::journal::plan(&disk, manifest.first_segment).unwrap();
    let (mut builder, mut records) = (BatchBuilder::new(), Vec::new());
    checkpoint::read(&disk, number, None, &mut |record| records.push(record)).unwrap();
    records.iter().for_each(|record| builder.push(record));
    disk.remove(&segment_name(manifest.first_segment)).unwrap();
    disk.remove(&checkpoint_name(number)).unwrap();
    let mut writer = SegmentWriter::create(&disk, manifest.first_segment).unwrap();
    let (last, mut batch) = (plan.last, builder.seal(plan.last.number));
    writer.write(&mut batch, last.synced_no, last.steady_ms, last.wall_ms).unwrap();
    let mut bytes = std::fs::read(dir.join(MANIFEST_NAME)).unwrap();
    bytes[4] = 1;
    bytes.drain(40..48);
    let end = bytes.len() - 4;
    let crc = crc32c::crc32c(&bytes[..end]);
    bytes[end..].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(dir.join(MANIFEST_NAME), bytes).unwrap();
}

#[test]
fn a_store_with_its_checkpoint_in_the_journal_is_opened_and_goes_on() {
    let (dir, time) = (tempfile::tempdir().unwrap(), VirtualClock::new());
    let mut rig = Rig::open(dir.path(), &time);
    rig.fill(300);
    rig.step(Command::Put(vec![Put::new(TopicName::new("t1").unwrap(), "rests")]));
    rig.freeze();
    rig.flush();
    let expected = rig.tables();
    drop(rig);
    make_format_1(dir.path());
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(dir.path()).unwrap());
    assert!(crate::verify::verify(&disk).is_sound());
    let mut rig = Rig::open(dir.path(), &time);
    assert!(rig.tables() == expected);
    rig.freeze();
    rig.flush();
    drop(rig);
    assert!(manifest::read(disk.as_ref()).unwrap().unwrap().checkpoint.is_some());
    assert!(Rig::open(dir.path(), &time).tables() == expected);
}
