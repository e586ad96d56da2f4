//! Random lives of a journal, cut short again and again.

use dormouse_check::faults::disk::{CrashMode, FailKind, SimDisk};
use dormouse_check::generate::rng::Rng;
use dormouse_disk::damage::Damage;
use dormouse_disk::journal::{Plan, SegmentWriter, plan, segments, settle};

use super::{boot, checkpoint, numbered, replayed, sealed};

/// A store that is nothing but a journal: the part of the sync thread and of a start.
struct JournalWriter {
    disk: SimDisk,
    writer: Option<SegmentWriter>,
    first_segment: u64,
    last_batch: u64,
    synced_batch: u64,
    /// Numbers written and not lost in a crash so far, in order, each with its batch.
    written: Vec<(u64, u64)>,
    next_number: u64,
}

impl JournalWriter {
    fn create(disk: &SimDisk) -> JournalWriter {
        let mut writer = SegmentWriter::create(disk, 1).unwrap();
        let mut first = sealed(1, &[checkpoint()]);
        writer.write(&mut first, 0, 0, 0).unwrap();
        writer.sync().unwrap();
        JournalWriter {
            disk: disk.clone(),
            writer: Some(writer),
            first_segment: 1,
            last_batch: 1,
            synced_batch: 1,
            written: Vec::new(),
            next_number: 1,
        }
    }

    /// One step of a random life. An error means that the power went off.
    fn step(&mut self, rng: &mut Rng) -> Result<(), Damage> {
        match rng.below(10) {
            0..5 => self.write(rng),
            5 => self.writer.as_mut().unwrap().write_zeros(rng.below(3_000) as usize),
            6..9 => self.sync(),
            _ => self.roll(),
        }
    }

    fn write(&mut self, rng: &mut Rng) -> Result<(), Damage> {
        let mut batches = Vec::new();
        for _ in 0..=rng.below(3) {
            self.last_batch += 1;
            let mut records = Vec::new();
            for _ in 0..=rng.below(3) {
                records.push(numbered(self.next_number, rng.below(700) as usize));
                self.written.push((self.next_number, self.last_batch));
                self.next_number += 1;
            }
            batches.push(sealed(self.last_batch, &records));
        }
        let synced = self.synced_batch;
        self.writer.as_mut().unwrap().write_all(&mut batches, synced, 0, 0)
    }

    fn sync(&mut self) -> Result<(), Damage> {
        self.writer.as_mut().unwrap().sync()?;
        self.synced_batch = self.last_batch;
        Ok(())
    }

    /// A flush: sync, then a new segment that begins with a checkpoint.
    fn roll(&mut self) -> Result<(), Damage> {
        self.sync()?;
        let segment = self.writer.as_ref().unwrap().segment() + 1;
        self.writer = Some(SegmentWriter::create(&self.disk, segment)?);
        self.last_batch += 1;
        let mut first = sealed(self.last_batch, &[checkpoint()]);
        self.writer.as_mut().unwrap().write(&mut first, self.synced_batch, 0, 0)
    }

    /// A start, up to the sync of its first batch.
    fn recover(&mut self, what: &str) -> Result<(), Damage> {
        settle(&self.disk, self.first_segment)?;
        let plan = match plan(&self.disk, self.first_segment) {
            Err(Damage::Corrupt { file, offset, what: why }) => {
                panic!("{what}: a power cut taken for corruption: {file} at {offset}: {why}")
            }
            other => other?,
        };
        self.check_found(&plan, what);
        self.written.retain(|(_, batch)| *batch <= plan.last.number);
        self.last_batch = plan.last.number;
        self.synced_batch = plan.last.number;
        assert_eq!(plan.next_segment, segments(&self.disk)?.last().unwrap() + 1);
        self.writer = Some(SegmentWriter::create(&self.disk, plan.next_segment)?);
        self.last_batch += 1;
        let mut first = sealed(self.last_batch, &[boot(plan.last.number)]);
        self.writer.as_mut().unwrap().write(&mut first, self.synced_batch, 0, 0)?;
        self.sync()
    }

    fn check_found(&self, plan: &Plan, what: &str) {
        let found = replayed(&self.disk, plan);
        let synced = self.written.iter().filter(|(_, batch)| *batch <= self.synced_batch);
        let synced = synced.count();
        assert!(found.len() >= synced, "{what}: {} of {synced} synced found", found.len());
        let written: Vec<u64> = self.written.iter().map(|(number, _)| *number).collect();
        assert_eq!(written.get(..found.len()), Some(&found[..]), "{what}: not a prefix");
    }
}

/// The seeds of a run; `JOURNAL_SEED=<seed>` runs one again.
fn seeds(count: u64) -> std::ops::Range<u64> {
    match std::env::var("JOURNAL_SEED").ok().and_then(|seed| seed.parse::<u64>().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..count,
    }
}

#[test]
fn power_cuts_are_never_corruption_and_lose_nothing_synced() {
    for seed in seeds(4_000) {
        let mut rng = Rng::new(seed);
        let disk = SimDisk::new();
        let mut writer = JournalWriter::create(&disk);
        for crash in 0..1 + rng.below(6) {
            let call = disk.calls() + 1 + rng.below(20);
            if rng.chance(20) {
                disk.fail_call(call, FailKind::Io, true);
            } else {
                disk.crash_at_call(call);
            }
            while writer.step(&mut rng).is_ok() {}
            let mut what = format!("seed {seed}, crash {crash}, at {}", disk.last_call());
            loop {
                // Also a start without a reboot after a failed sync, when the page cache shows
                // what the drive does not have.
                let mode = CrashMode::random(&mut rng);
                what += &format!(", {mode:?}");
                disk.crash(mode, &mut rng);
                // The start itself may be cut short, again and again.
                if rng.chance(50) {
                    disk.crash_at_call(disk.calls() + 1 + rng.below(8));
                }
                if writer.recover(&what).is_ok() {
                    disk.clear_faults();
                    break;
                }
            }
        }
    }
}

/// The rule that makes the test above hold: without the sync of what was read, a start builds on
/// what a second crash takes away. If this test finds nothing, the simulation proves nothing.
#[test]
fn a_start_that_does_not_sync_what_it_read_is_found_out() {
    let found_out = (0..300).any(|seed| {
        let mut rng = Rng::new(seed);
        let disk = SimDisk::new();
        let mut writer = JournalWriter::create(&disk);
        writer.write(&mut rng).unwrap();
        disk.crash(CrashMode::Kill, &mut rng);
        let read = plan(&disk, 1).unwrap();
        let mut writer = SegmentWriter::create(&disk, read.next_segment).unwrap();
        let last = read.last.number;
        writer.write(&mut sealed(last + 1, &[boot(last)]), last, 0, 0).unwrap();
        writer.sync().unwrap();
        disk.crash(CrashMode::Sectors, &mut rng);
        matches!(plan(&disk, 1), Err(Damage::Corrupt { .. }))
    });
    assert!(found_out);
}
