//! Single damaged bytes, cuts, misplaced files and rubbish.

use bytes::Bytes;
use dormouse_check::faults::disk::SimDisk;
use dormouse_check::generate::rng::Rng;
use dormouse_core::fact::Fact;
use dormouse_disk::damage::Damage;
use dormouse_disk::journal::{HEADER_BYTES, Record, SegmentWriter, plan, segment_name};

use super::{boot, checkpoint, numbered, replayed, sealed};

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
    /// The property that must hold when the bytes of this batch are not as written, and of all
    /// others only those `left` says.
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
    let before = written.disk.snapshot();
    let spot = |number: usize| written.spots[number - 1];
    let damage = |number: usize| {
        written.disk.flip_byte(&segment_name(spot(number).segment), spot(number).end - 1);
    };
    let found = || match plan(&written.disk, 1) {
        Err(Damage::Corrupt { file, offset, .. }) => Err((file, offset)),
        other => Ok(other.unwrap().last.number),
    };
    damage(12);
    damage(11);
    assert_eq!(found(), Ok(10), "nobody says that 11 was synced");
    damage(10);
    assert_eq!(found(), Err((segment_name(3), spot(10).offset)), "11 says that 10 was");

    // The only header that says so is the first of its segment, and torn itself.
    written.disk.restore(&before);
    damage(8);
    damage(9);
    written.disk.truncate(&segment_name(3), spot(9).end);
    assert_eq!(found(), Err((segment_name(3), 0)), "9 says that 8 was");
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
                assert!(matches!(error, Damage::Corrupt { .. }) && segment < 3, "{error}");
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
fn bytes_behind_the_last_batch_of_a_segment_are_room() {
    let written = three_segments();
    for segment in 1..=3 {
        let mut content = written.disk.read_all(&segment_name(segment)).unwrap();
        content.extend_from_slice(&[0; 150]);
        written.disk.put_file(&segment_name(segment), &content);
    }
    let found = |what: &str| {
        let plan = plan(&written.disk, 1).unwrap();
        assert_eq!(replayed(&written.disk, &plan), (1..=12).collect::<Vec<_>>(), "{what}");
        plan.torn
    };
    assert_eq!(found("zeros"), None);
    let before = written.disk.snapshot();
    for spot in [written.spots[3], written.spots[7], written.spots[11]] {
        for at in spot.end..spot.end + 150 {
            written.disk.flip_byte(&segment_name(spot.segment), at);
            let torn = found(&format!("byte {at} of segment {}", spot.segment));
            assert_eq!(torn.is_some(), spot.segment == 3, "the end of the newest segment");
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
