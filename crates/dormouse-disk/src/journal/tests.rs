use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::backoff::Backoff;
use dormouse_core::fact::{Cause, Destination, Fact};
use dormouse_core::image::{Counts, LeaseImage, LockImage, MachineImage, TopicImage};
use dormouse_core::job::{Content, Job, JobId, Progress};
use dormouse_core::place::{Class, Place};
use dormouse_core::time::Clock;
use dormouse_core::topic::{Pause, Settings, TopicName, TopicNo};

use super::*;
use crate::codec::{Reader, encode_payload};
use crate::damage::Damage;
use crate::disk::{Disk, RealDisk};

fn disk() -> (tempfile::TempDir, RealDisk) {
    let dir = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(dir.path()).unwrap();
    (dir, disk)
}

fn head() -> Record {
    Record::Checkpoint(CheckpointHead {
        machine: MachineImage {
            next_id: 900,
            next_topic: 3,
            epoch: 7,
            gone: Counts { acks: 2, ..Counts::default() },
        },
        boot_id: [9; 16],
        boottime_ms: 5,
        steady_ms: 1 << 41,
        wall_ms: u64::MAX,
        next_run: 12,
    })
}

fn boot(last_batch: u64) -> Record {
    Record::Boot(Boot { epoch: 8, last_batch, boot_id: [3; 16], ..Boot::default() })
}

fn job() -> Job {
    let content =
        Content { key: Some(Bytes::from("k")), body: "body".into(), ..Default::default() };
    Job { id: JobId(5), content, progress: Progress { fence: 4, bytes: 5, ..Default::default() } }
}

fn place() -> Place {
    let class = Class::waiting(1_024, Clock::Steady);
    Place { topic: TopicNo(1), class, due_at: 77, id: JobId(5) }
}

fn every_kind() -> Vec<Record> {
    let settings = Settings {
        attempts_max: Some(0),
        backoff: Some(Arc::new(Backoff::DEFAULT)),
        ..Settings::default()
    };
    vec![
        head(),
        Record::Topic(TopicImage {
            topic: TopicNo(1),
            name: TopicName::new("messages").unwrap(),
            settings,
            pause: Some(Pause::Until(9)),
            holds_until: 3,
            counts: Counts { waiting: 1, cancels: 9, ..Counts::default() },
            schedules: 0,
            has_deadlines: false,
            has_parked: false,
        }),
        Record::Topic(TopicImage {
            topic: TopicNo(2),
            name: TopicName::new("nightly").unwrap(),
            settings: Settings::default(),
            pause: None,
            holds_until: 0,
            counts: Counts::default(),
            schedules: 300,
            has_deadlines: false,
            has_parked: false,
        }),
        Record::Topic(TopicImage {
            topic: TopicNo(3),
            name: TopicName::new("kept").unwrap(),
            settings: Settings::default(),
            pause: None,
            holds_until: 0,
            counts: Counts { done: 700, ..Counts::default() },
            schedules: 0,
            has_deadlines: true,
            has_parked: true,
        }),
        Record::Lease(LeaseImage { topic: TopicNo(1), job: job(), ttr_ms: 60_000, session: true }),
        Record::Lock(LockImage {
            name: "l".into(),
            owner: "o".into(),
            fence: 1,
            depth: 2,
            ttl_ms: 3,
        }),
        Record::Frontier(FrontierImage {
            topic: TopicNo(1),
            class: Some(Class::HOLD),
            steps: vec![(1, 2, JobId(3)), (u64::MAX, u64::MAX, JobId(u64::MAX))],
        }),
        Record::Frontier(FrontierImage { topic: TopicNo(2), class: None, steps: vec![] }),
        Record::RunUse(RunUse { no: 3, consumed: 1 << 40 }),
        Record::CheckpointEnd,
        Record::Fact(Fact::Put {
            job: job(),
            at: place(),
            left: None,
            left_bytes: 0,
            key_loser: None,
        }),
        Record::Fact(Fact::Purged { topic: TopicNo(1) }),
        boot(3),
        Record::Seal,
    ]
}

/// Writes a segment of one record per batch and syncs it.
fn write_segment(disk: &dyn Disk, segment: u64, first_batch: u64, records: &[Record]) {
    let mut writer = SegmentWriter::create(disk, segment).unwrap();
    let mut builder = BatchBuilder::new();
    for (number, record) in (first_batch..).zip(records) {
        builder.push(record);
        let mut batch = builder.seal(number);
        writer.write(&mut batch, number - 1, 10 + number, 20 + number).unwrap();
        writer.sync().unwrap();
        builder.recycle(batch.into_bytes());
    }
}

fn replayed(disk: &dyn Disk, first_segment: u64) -> Result<Vec<(u64, Record)>, Damage> {
    let mut records = Vec::new();
    plan(disk, first_segment)?.replay(disk, &mut |header, record| {
        records.push((header.number, record));
        Ok(())
    })?;
    Ok(records)
}

#[test]
fn every_record_comes_back() {
    let (_dir, disk) = disk();
    let records = every_kind();
    write_segment(&disk, 4, 1, &records);
    let expected: Vec<_> = (1..).zip(records.clone()).collect();
    assert_eq!(replayed(&disk, 4).unwrap(), expected);

    settle(&disk, 4).unwrap();
    let plan = plan(&disk, 4).unwrap();
    assert!(plan.sealed);
    assert_eq!(plan.torn, None);
    assert_eq!((plan.last.number, plan.next_segment), (records.len() as u64, 5));
    assert_eq!((plan.last.steady_ms, plan.last.wall_ms), (24, 34));
    assert_eq!(plan.segments_read, [4]);
    assert_eq!(verify(&disk, 4).unwrap().records, records.len() as u64);
}

#[test]
fn short_records_are_refused() {
    for record in every_kind() {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        for len in 0..bytes.len() {
            assert_eq!(Record::decode(&mut Reader::new(&bytes[..len])), None, "{record:?} {len}");
        }
    }
}

#[test]
fn many_batches_in_one_write_come_back_like_single_ones() {
    let (_dir, disk) = disk();
    let mut writer = SegmentWriter::create(&disk, 1).unwrap();
    let mut builder = BatchBuilder::new();
    let mut payload = Vec::new();
    encode_payload(&job(), &mut payload);
    let mut batches = Vec::new();
    for number in 1..=50 {
        if number == 1 {
            builder.push(&head());
        }
        // Some batches are too large to be grouped.
        let body = if number % 20 == 0 { vec![0; 2 << 20] } else { payload.clone() };
        builder.push_put(&place(), None, 0, Some(JobId(2)), &body);
        builder.push_put(&place(), Some(&place()), 9, None, &payload);
        assert!(!builder.is_empty());
        batches.push(builder.seal(number));
        assert!(builder.is_empty());
    }
    writer.write_all(&mut batches, 0, 1, 2).unwrap();
    writer.sync().unwrap();
    let written: u64 = batches.iter().map(|batch| batch.len() as u64).sum();
    assert_eq!(writer.bytes(), written);
    assert_eq!(replayed(&disk, 1).unwrap().len(), 101);
    assert_eq!(verify(&disk, 1).unwrap().batches, 50);
}

#[test]
fn batches_are_written_over_zeros_and_the_rest_of_them_is_room() {
    let (dir, disk) = disk();
    let mut writer = SegmentWriter::create(&disk, 1).unwrap();
    let mut builder = BatchBuilder::new();
    let len = || std::fs::metadata(dir.path().join(segment_name(1))).unwrap().len();
    let mut lens = Vec::new();
    for number in 1..=20 {
        builder.push(&if number == 1 { head() } else { Record::CheckpointEnd });
        writer.write(&mut builder.seal(number), number - 1, 0, 0).unwrap();
        writer.write_zeros(500).unwrap();
        writer.sync().unwrap();
        lens.push(len());
        let plan = plan(&disk, 1).unwrap();
        assert_eq!((plan.last.number, plan.torn), (number, None));
    }
    assert!(writer.bytes() < len());
    lens.dedup();
    assert!((3..=6).contains(&lens.len()), "the file grows now and then: {lens:?}");
    let summary = verify(&disk, 1).unwrap();
    assert_eq!((summary.bytes, summary.torn), (writer.bytes(), None));
}

#[test]
fn a_start_goes_on_where_the_last_good_batch_was() {
    let (_dir, disk) = disk();
    write_segment(&disk, 1, 1, &[head(), Record::CheckpointEnd]);
    write_segment(&disk, 2, 3, &[boot(2), Record::CheckpointEnd]);
    // A segment that got no byte before the power went.
    SegmentWriter::create(&disk, 3).unwrap();
    write_segment(&disk, 5, 5, &[boot(4), Record::Seal]);
    let plan = plan(&disk, 1).unwrap();
    assert_eq!((plan.last.number, plan.next_segment, plan.sealed), (6, 6, true));
    assert_eq!(plan.stretches.len(), 3);
}

#[test]
fn a_start_that_built_on_what_is_gone_is_corruption() {
    for (first_batch, last_batch) in [(3, 1), (3, 3), (4, 2), (4, 3)] {
        let (_dir, disk) = disk();
        write_segment(&disk, 1, 1, &[head(), Record::CheckpointEnd]);
        write_segment(&disk, 2, first_batch, &[boot(last_batch)]);
        let found = plan(&disk, 1);
        assert!(matches!(found, Err(Damage::Corrupt { .. })), "{first_batch} {last_batch}");
    }
}

#[test]
fn a_missing_segment_that_was_synced_is_corruption() {
    let (_dir, disk) = disk();
    write_segment(&disk, 1, 1, &[head()]);
    write_segment(&disk, 2, 2, &[Record::CheckpointEnd]);
    write_segment(&disk, 3, 3, &[Record::CheckpointEnd, Record::CheckpointEnd]);
    assert_eq!(replayed(&disk, 1).unwrap().len(), 4);
    disk.remove(&segment_name(2)).unwrap();
    let error = plan(&disk, 1).unwrap_err().to_string();
    assert!(error.contains(&segment_name(3)) && error.contains("batch 2"), "{error}");
    disk.remove(&segment_name(1)).unwrap();
    let error = plan(&disk, 1).unwrap_err().to_string();
    assert!(error.contains(&segment_name(1)), "{error}");
}

#[test]
fn a_first_segment_without_checkpoint_is_corruption() {
    for records in [vec![], vec![Record::CheckpointEnd], vec![boot(0)]] {
        for next in [vec![], vec![head()]] {
            let (_dir, disk) = disk();
            write_segment(&disk, 1, 1, &records);
            write_segment(&disk, 2, 2, &next);
            let error = plan(&disk, 1).unwrap_err().to_string();
            assert!(error.contains("checkpoint") && error.contains(&segment_name(1)), "{error}");
        }
    }
}

#[test]
fn a_newer_format_is_told_from_damage() {
    let (dir, disk) = disk();
    write_segment(&disk, 1, 1, &[head()]);
    let path = dir.path().join(segment_name(1));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4] = 2;
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(plan(&disk, 1), Err(Damage::Corrupt { .. })), "the checksum is the old one");
    let crc = crc32c::crc32c(&bytes[..68]);
    bytes[68..72].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(plan(&disk, 1), Err(Damage::Newer { found: 2, known: 1, .. })));
}

#[test]
fn a_record_that_cannot_be_read_is_corruption_at_its_byte() {
    let (_dir, disk) = disk();
    let mut writer = SegmentWriter::create(&disk, 1).unwrap();
    let mut builder = BatchBuilder::new();
    builder.push(&head());
    let good_bytes = builder.len();
    let mut batch = builder.seal(1);
    // A kind that some later version may know.
    batch.bytes.push(99);
    writer.write(&mut batch, 0, 0, 0).unwrap();
    match replayed(&disk, 1) {
        Err(Damage::Corrupt { offset, .. }) => {
            assert_eq!(offset as usize, HEADER_BYTES + good_bytes);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_are_told_from_others() {
    assert_eq!(segment_number(&segment_name(42)), Some(42));
    assert_eq!(segment_number(&segment_name(u64::MAX)), Some(u64::MAX));
    for name in ["journal-1.dmj", "journal-0000000000000000004x.dmj", "lock", "journal-.dmj"] {
        assert_eq!(segment_number(name), None, "{name}");
    }
    assert_eq!(segment_number("journal-+0000000000000000001.dmj"), None);
    assert_eq!(segment_number("journal-99999999999999999999.dmj"), None, "more than a u64");
}

#[test]
fn a_move_without_change_of_place_is_replayed_whole() {
    let (_dir, disk) = disk();
    let fact = Fact::Move {
        id: JobId(5),
        topic: TopicNo(1),
        left: Some(place()),
        to: Destination::Leased { ttr_ms: 1, session: false },
        progress: job().progress,
        key: None,
        cause: Cause::Reserve,
    };
    let mut builder = BatchBuilder::new();
    builder.push(&head());
    builder.push_fact(&fact);
    let mut batch = builder.seal(9);
    SegmentWriter::create(&disk, 1).unwrap().write(&mut batch, 0, 0, 0).unwrap();
    assert_eq!(replayed(&disk, 1).unwrap(), [(9, head()), (9, Record::Fact(fact))]);
}
