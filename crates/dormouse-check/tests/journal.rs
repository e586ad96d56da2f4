//! The journal under damage and power cuts.
//!
//! Damage: whatever single byte is wrong, wherever a file is cut, the answer is either corruption
//! with file and offset, or a torn tail that loses nothing that was synced. Power cuts: whatever a
//! plain one leaves, it is never taken for corruption, all that was synced is found, and what is
//! found is what was written, in order.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use bytes::Bytes;
use dormouse_check::sim::disk::{CrashMode, FailKind, SimDisk};
use dormouse_check::sim::rng::Rng;
use dormouse_core::fact::Fact;
use dormouse_disk::damage::Damage;
use dormouse_disk::disk::Disk;
use dormouse_disk::journal::{
    BatchBuilder, Boot, CheckpointHead, HEADER_BYTES, Plan, Record, SealedBatch, SegmentWriter,
    plan, segment_name, segments,
};

/// A record that carries a number and has this many bytes more.
fn numbered(number: u64, bytes: usize) -> Record {
    let mut name = number.to_be_bytes().to_vec();
    name.resize(8 + bytes, number as u8);
    Record::Fact(Fact::LockFreed { name: Bytes::from(name) })
}

fn number_of(record: &Record) -> Option<u64> {
    match record {
        Record::Fact(Fact::LockFreed { name }) => {
            Some(u64::from_be_bytes(name[..8].try_into().unwrap()))
        }
        _ => None,
    }
}

fn boot(last_batch: u64) -> Record {
    Record::Boot(Boot { last_batch, ..Boot::default() })
}

fn sealed(number: u64, records: &[Record]) -> SealedBatch {
    let mut builder = BatchBuilder::new();
    records.iter().for_each(|record| builder.push(record));
    builder.seal(number)
}

/// The numbers of the records that a start would find.
fn replayed(disk: &dyn Disk, plan: &Plan) -> Vec<u64> {
    let mut numbers = Vec::new();
    let replay = plan.replay(disk, &mut |_, record| {
        numbers.extend(number_of(&record));
        Ok(())
    });
    replay.unwrap();
    numbers
}

/// Where a batch stands, and what its header says was synced.
#[derive(Clone, Copy)]
struct Spot {
    number: u64,
    segment: u64,
    offset: u64,
    end: u64,
    claim: u64,
}

/// A journal made for damage.
struct Written {
    disk: SimDisk,
    spots: Vec<Spot>,
}

fn checkpoint() -> Record {
    Record::Checkpoint(CheckpointHead::default())
}

/// Three segments: checkpoint and batches, a start that built on them, and a flush's checkpoint.
/// Of the last two batches no header says that they were synced.
fn three_segments() -> Written {
    let disk = SimDisk::new();
    let mut written = Written { disk: disk.clone(), spots: Vec::new() };
    let mut number = 0;
    for (segment, first) in (1..).zip([checkpoint(), boot(4), checkpoint()]) {
        let mut writer = SegmentWriter::create(&disk, segment).unwrap();
        for index in 0..4 {
            number += 1;
            let mut records = vec![numbered(number, 5)];
            if index == 0 {
                records.insert(0, first.clone());
            }
            let (offset, claim) = (writer.bytes(), (number - 1).min(10));
            writer.write(&mut sealed(number, &records), claim, number, number).unwrap();
            written.spots.push(Spot { number, segment, offset, end: writer.bytes(), claim });
        }
        writer.sync().unwrap();
    }
    written
}

impl Written {
    /// What must hold when the bytes of this batch are not as written, and of all others only
    /// those `left` says.
    fn check(&self, damaged: &Spot, left: impl Fn(&Spot) -> bool, what: &str) {
        let others = self.spots.iter().filter(|spot| spot.number > damaged.number && left(spot));
        let claimed = others.map(|spot| spot.claim).max().unwrap_or(0);
        match plan(&self.disk, 1) {
            Ok(plan) => {
                assert!(damaged.number > claimed, "{what}: it was synced, yet dropped");
                assert_eq!(plan.last.number, damaged.number - 1, "{what}");
                let numbers: Vec<u64> = (1..damaged.number).collect();
                assert_eq!(replayed(&self.disk, &plan), numbers, "{what}");
                assert_eq!(plan.next_segment, 4);
            }
            Err(Damage::Corrupt { file, offset, .. }) => {
                let needed = damaged.number <= claimed || damaged.number == 1;
                assert!(needed, "{what}: a torn tail taken for corruption");
                // Where a file ends between two batches, the gap shows where the next one begins.
                let next =
                    self.spots.iter().find(|spot| spot.number > damaged.number && left(spot));
                let at = |spot: &Spot| (segment_name(spot.segment), spot.offset);
                let found = (file, offset);
                let fits = found == at(damaged) || next.is_some_and(|next| found == at(next));
                assert!(fits, "{what}: said to be in {found:?}");
            }
            Err(other) => panic!("{what}: {other}"),
        }
    }
}

#[test]
fn every_flipped_byte_is_seen_and_judged() {
    let written = three_segments();
    let before = written.disk.snapshot();
    for spot in &written.spots {
        for at in spot.offset..spot.end {
            for mask in [0x01, 0x80, 0xff] {
                written.disk.flip_bits(&segment_name(spot.segment), at, mask);
                let what = format!("bits {mask:x} of byte {at} in segment {}", spot.segment);
                written.check(spot, |_| true, &what);
                written.disk.restore(&before);
            }
        }
    }
}

#[test]
fn a_header_counts_even_if_its_records_are_torn() {
    let written = three_segments();
    let damage = |number: usize| {
        let spot = written.spots[number - 1];
        written.disk.flip_byte(&segment_name(spot.segment), spot.end - 1);
    };
    damage(12);
    damage(11);
    assert_eq!(plan(&written.disk, 1).unwrap().last.number, 10, "nobody says that 11 was synced");
    damage(10);
    let spot = written.spots[9];
    match plan(&written.disk, 1) {
        Err(Damage::Corrupt { offset, what, .. }) => {
            assert_eq!(offset, spot.offset, "{what}");
        }
        other => panic!("batch 11 says that 10 was synced: {other:?}"),
    }
}

#[test]
fn every_cut_is_seen_and_judged() {
    let written = three_segments();
    let before = written.disk.snapshot();
    for segment in 1..=3 {
        let len = written.disk.read_all(&segment_name(segment)).unwrap().len() as u64;
        for cut in 0..len {
            written.disk.truncate(&segment_name(segment), cut);
            let left = |spot: &Spot| spot.segment != segment || spot.end <= cut;
            let damaged = written.spots.iter().find(|spot| !left(spot)).unwrap();
            written.check(damaged, left, &format!("segment {segment} cut at {cut}"));
            written.disk.restore(&before);
        }
    }
}

#[test]
fn bytes_of_another_place_are_never_taken() {
    let written = three_segments();
    let contents: Vec<Vec<u8>> =
        (1..=3).map(|segment| written.disk.read_all(&segment_name(segment)).unwrap()).collect();
    let before = written.disk.snapshot();
    // A whole segment under the name of another one. Of the newest segment nothing is left then,
    // not even what it said of itself: that looks like a torn tail.
    for (segment, other) in [(1, 1), (1, 2), (2, 0), (2, 2), (3, 0), (3, 1)] {
        written.disk.put_file(&segment_name(segment), &contents[other]);
        match plan(&written.disk, 1) {
            Ok(plan) => assert_eq!((segment, plan.last.number), (3, 8)),
            Err(error) => {
                assert!(matches!(error, Damage::Corrupt { .. }) && segment < 3, "{error}")
            }
        }
        written.disk.restore(&before);
    }
    // The tail of a recycled file: old batches, whole, at offsets of their own or of others.
    for shift in [0, 1, HEADER_BYTES] {
        for other in &contents {
            let mut recycled = contents[2].clone();
            recycled.truncate(recycled.len() - 1);
            recycled.extend_from_slice(&other[shift..]);
            written.disk.put_file(&segment_name(3), &recycled);
            assert_eq!(plan(&written.disk, 1).unwrap().last.number, 11);
            written.disk.restore(&before);
        }
    }
}

#[test]
fn a_body_that_looks_like_a_header_is_a_body() {
    // Segment 1: a checkpoint, a batch that will be damaged, and one whose body is a header that
    // says, at the very place where it stands, that everything was synced.
    let disk = SimDisk::new();
    let mut writer = SegmentWriter::create(&disk, 1).unwrap();
    writer.write(&mut sealed(1, &[checkpoint()]), 0, 0, 0).unwrap();
    let damaged_at = writer.bytes();
    writer.write(&mut sealed(2, &[numbered(2, 0)]), 0, 0, 0).unwrap();
    // Batch header, kind, length.
    let body_at = writer.bytes() + HEADER_BYTES as u64 + 2;
    let body = header_for(body_at);
    let looks = Record::Fact(Fact::LockFreed { name: Bytes::from(body) });
    writer.write(&mut sealed(3, &[looks]), 0, 0, 0).unwrap();
    let whole = disk.read_all(&segment_name(1)).unwrap();
    assert_eq!(whole[body_at as usize], whole[0], "the magic stands where it should");

    disk.flip_byte(&segment_name(1), damaged_at);
    assert_eq!(plan(&disk, 1).unwrap().last.number, 1);
}

/// A header that belongs to this offset of segment 1 and says that batch 99 was synced.
fn header_for(offset: u64) -> Vec<u8> {
    let disk = SimDisk::new();
    let mut writer = SegmentWriter::create(&disk, 1).unwrap();
    // A record of kind, two bytes of length and the name fills up to the offset.
    let filler = offset as usize - HEADER_BYTES - 3;
    let filler = Record::Fact(Fact::LockFreed { name: Bytes::from(vec![0; filler]) });
    writer.write(&mut sealed(1, &[filler]), 0, 0, 0).unwrap();
    assert_eq!(writer.bytes(), offset);
    writer.write(&mut sealed(100, &[]), 99, 0, 0).unwrap();
    disk.read_all(&segment_name(1)).unwrap().split_off(offset as usize)
}

#[test]
fn garbage_is_survived() {
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let written = three_segments();
        for _ in 0..=rng.below(3) {
            let name = segment_name(1 + rng.below(3));
            let mut content = written.disk.read_all(&name).unwrap();
            let at = rng.below(content.len() as u64 + 1) as usize;
            let len = rng.below(100) as usize;
            let rubbish: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
            if rng.chance(50) {
                content.truncate(at);
                content.extend_from_slice(&rubbish);
            } else {
                let end = (at + len).min(content.len());
                content[at..end].copy_from_slice(&rubbish[..end - at]);
            }
            written.disk.put_file(&name, &content);
        }
        if let Ok(plan) = plan(&written.disk, 1) {
            let found = replayed(&written.disk, &plan);
            assert_eq!(found, (1..=found.len() as u64).collect::<Vec<_>>(), "seed {seed}");
        }
    }
}

/// A store that is nothing but a journal: the part of the sync thread and of a start.
struct Keeper {
    disk: SimDisk,
    writer: Option<SegmentWriter>,
    first_segment: u64,
    last_batch: u64,
    synced_batch: u64,
    /// Numbers written and not lost in a crash so far, in order, each with its batch.
    written: Vec<(u64, u64)>,
    next_number: u64,
}

impl Keeper {
    fn create(disk: &SimDisk) -> Keeper {
        let mut writer = SegmentWriter::create(disk, 1).unwrap();
        let mut first = sealed(1, &[checkpoint()]);
        writer.write(&mut first, 0, 0, 0).unwrap();
        writer.sync().unwrap();
        Keeper {
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
            0..6 => self.write(rng),
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
        let plan = match plan(&self.disk, self.first_segment) {
            Err(Damage::Corrupt { file, offset, what: why }) => {
                panic!("{what}: a power cut taken for corruption: {file} at {offset}: {why}")
            }
            other => other?,
        };
        self.check_found(&plan, what);
        self.written.retain(|(_, batch)| *batch <= plan.last.number);
        plan.sync_read_segments(&self.disk)?;
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
        let mut keeper = Keeper::create(&disk);
        for crash in 0..1 + rng.below(6) {
            let call = disk.calls() + 1 + rng.below(20);
            let fails = rng.chance(20);
            if fails {
                disk.fail_call(call, FailKind::Io, true);
            } else {
                disk.crash_at_call(call);
            }
            while keeper.step(&mut rng).is_ok() {}
            let mut what = format!("seed {seed}, crash {crash}, at {}", disk.last_call());
            let mut modes = Vec::new();
            loop {
                // After a failed sync the page cache shows what the disk does not have. A start on
                // it without a reboot cannot know; so only a power cut follows here.
                let mode = match CrashMode::random(&mut rng) {
                    CrashMode::Kill if fails && modes.is_empty() => CrashMode::LoseUnsynced,
                    mode => mode,
                };
                modes.push(mode);
                what += &format!(", {mode:?}");
                disk.crash(mode, &mut rng);
                // The start itself may be cut short, again and again.
                if rng.chance(50) {
                    disk.crash_at_call(disk.calls() + 1 + rng.below(8));
                }
                if keeper.recover(&what).is_ok() {
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
        let mut keeper = Keeper::create(&disk);
        keeper.write(&mut rng).unwrap();
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
