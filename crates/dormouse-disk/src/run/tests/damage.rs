//! Whatever happens to a file, it is said, nothing panics, and no wrong payload is given.

use std::ops::Range;

use super::super::format::{FOOTER_BYTES, FORMAT, HEADER_BYTES, SAMPLES_BYTES, checksum};
use super::super::page::PAGE_BYTES;
use super::super::record::BlockRecord;
use super::*;
use crate::damage::Damage;

/// A run with a bit of everything that is small enough to be damaged at each byte.
fn small_run() -> (Model, Vec<u8>) {
    let mut chance = Chance::new(5);
    let shape = Shape { entries: 40, topics: 3, due: 500, ids: 60, body_max: 60 };
    let mut model = random_model(&mut chance, shape);
    // Two blocks.
    let place =
        Place { topic: TopicNo(9), class: Class::HOLD, due_at: u64::MAX, id: JobId(u64::MAX) };
    model.insert(place, (1, Some(payload(Some(b"k"), vec![3; 17_000]))));
    let disk = MemDisk::shared();
    write_model(&disk, "run", 3, &model, SMALL_CHUNKS);
    (model, file_bytes(&disk, "run"))
}

/// Reads all that can be read of a run; everything read must equal what was written.
fn read_all(run: &Run, model: &Model) -> Result<(), Damage> {
    let mut cache = BlockCache::new(1 << 20);
    for (topic, class) in lanes_of(model) {
        run.has_lane(topic, class)?;
        run.classes(topic, Class::FIRST, usize::MAX)?;
        run.rank(&mut cache, topic, class, (u64::MAX, JobId(u64::MAX)))?;
        let mut at = run.seek(&mut cache, topic, class, (0, JobId(0)))?;
        while let Some(loc) = at {
            let entry = run.entry(&mut cache, loc)?;
            let payload = entry.payload.map(|payload| payload.to_vec());
            assert_eq!(model.get(&entry.place), Some(&(entry.weight, payload)));
            at = run.next(&mut cache, loc)?;
        }
    }
    for place in model.keys() {
        for loc in run.by_id(place.id, place.class == Class::HOLD)? {
            assert_eq!(run.entry(&mut cache, loc)?.place.id, place.id);
        }
    }
    Ok(())
}

/// Whether damage is found, by whatever comes first.
fn is_noticed(bytes: &[u8], model: &Model) -> bool {
    let disk = disk_with("run", bytes);
    let Ok(run) = Run::open(&disk, "run") else { return true };
    let read = read_all(&run, model);
    let verified = run.verify();
    assert!(read.is_ok() || verified.is_err(), "{read:?} but verified");
    verified.is_err()
}

#[test]
fn every_flipped_byte_is_noticed() {
    let (model, bytes) = small_run();
    assert!(!is_noticed(&bytes, &model));
    let mut chance = Chance::new(6);
    for index in 0..bytes.len() {
        // Inside the one large payload a byte is like the next.
        let in_large = (HEADER_BYTES as usize + 9_000..17_000).contains(&index);
        if in_large && index % 50 != 0 {
            continue;
        }
        let mut damaged = bytes.clone();
        damaged[index] ^= 1 << chance.below(8);
        assert!(is_noticed(&damaged, &model), "byte {index}");
    }
}

#[test]
fn every_truncation_is_noticed_at_open() {
    let (_, bytes) = small_run();
    for len in 0..bytes.len() {
        let disk = disk_with("run", &bytes[..len]);
        assert!(Run::open(&disk, "run").is_err(), "{len} bytes");
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    assert!(Run::open(&disk_with("run", &longer), "run").is_err());
}

#[test]
fn damage_names_file_and_offset() {
    let (_, bytes) = small_run();
    let open = |bytes: &[u8]| Run::open(&disk_with("run-7", bytes), "run-7").err().unwrap();
    let mut damaged = bytes.clone();
    let at = bytes.len() - 40;
    damaged[at] ^= 4;
    let text = open(&damaged).to_string();
    let offset = bytes.len() - FOOTER_BYTES as usize;
    assert_eq!(text, format!("run-7 is damaged at byte {offset}: the checksum does not fit"));
    assert!(open(b"").to_string().contains("too short"));
}

/// Gives a frame the checksum that fits it.
fn forge(bytes: &mut [u8], frame: Range<usize>) {
    let no = 1003;
    let crc = checksum(no, frame.start as u64, &[&bytes[frame.start + 4..frame.end]]);
    bytes[frame.start..frame.start + 4].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn newer_formats_are_refused_by_name() {
    let (_, bytes) = small_run();
    let mut newer = bytes.clone();
    newer[12] = FORMAT as u8 + 1;
    forge(&mut newer, 8..HEADER_BYTES as usize);
    let damage = Run::open(&disk_with("run", &newer), "run").err();
    assert!(matches!(damage, Some(Damage::Newer { found: 3, known: 2, .. })), "{damage:?}");
    let mut newer = bytes.clone();
    let end = newer.len();
    newer[end - 12] = FORMAT as u8 + 1;
    forge(&mut newer, end - FOOTER_BYTES as usize..end);
    let damage = Run::open(&disk_with("run", &newer), "run").err();
    assert!(matches!(damage, Some(Damage::Newer { found: 3, .. })), "{damage:?}");
}

#[test]
fn a_run_of_the_first_format_is_read() {
    let (model, bytes) = small_run();
    let footer = bytes.len() - FOOTER_BYTES as usize;
    let samples = footer - SAMPLES_BYTES as usize;
    let mut first = [&bytes[..samples], &bytes[footer..]].concat();
    first[12] = 1;
    forge(&mut first, 8..HEADER_BYTES as usize);
    let end = first.len();
    first[end - 12] = 1;
    forge(&mut first, samples..end);
    assert!(!is_noticed(&first, &model));
    let disk = disk_with("run", &first);
    assert_eq!(Run::open(&disk, "run").unwrap().meta().samples, None);
}

#[test]
fn forged_numbers_of_the_footer_are_noticed() {
    let (model, bytes) = small_run();
    let footer = bytes.len() - FOOTER_BYTES as usize..bytes.len();
    for field in 0..12 {
        for value in [0, 1, 100, 1 << 20, 1 << 40, u64::MAX / 64, u64::MAX] {
            let mut forged = bytes.clone();
            let at = footer.start + 4 + 8 * field;
            if forged[at..at + 8] == value.to_le_bytes() {
                continue;
            }
            forged[at..at + 8].copy_from_slice(&value.to_le_bytes());
            forge(&mut forged, footer.clone());
            assert!(is_noticed(&forged, &model), "field {field} = {value}");
        }
    }
}

/// The frames between header and footer.
fn frames(bytes: &[u8]) -> Vec<Range<usize>> {
    let run = Run::open(&disk_with("run", bytes), "run").ok().unwrap();
    let mut frames = Vec::new();
    let mut blocks = run.blocks.scan();
    while let Some(block) = blocks.next().unwrap() {
        frames.push(block.offset as usize..block.offset as usize + block.len as usize);
    }
    let layout = &run.layout;
    let width = |records: usize, fences: usize| (4 + records, 4 + fences);
    let tables = [
        (layout.blocks, layout.lanes, width(45 * run.blocks.len() as usize, 25)),
        (layout.lanes, layout.ids, width(31 * run.lanes.len() as usize, 9)),
        (layout.ids, layout.keys, width(14 * run.ids.len() as usize, 8)),
        (layout.keys, layout.filter, width(16 * run.keys.len() as usize, 8)),
        (layout.filter, layout.footer, ((layout.footer - layout.filter) as usize, 0)),
    ];
    for (start, end, (records, fences)) in tables {
        let (start, end) = (start as usize, end as usize);
        assert!(records <= PAGE_BYTES && start + records + fences == end, "one page each");
        frames.push(start..start + records);
        if fences > 0 {
            frames.push(start + records..end);
        }
    }
    frames
}

/// Damage that the checksum does not find must not panic or take much memory either.
#[test]
fn forged_frames_do_not_panic() {
    let (model, bytes) = small_run();
    for frame in frames(&bytes) {
        for seed in 0..1_500 {
            let mut chance = Chance::new(seed);
            let mut forged = bytes.clone();
            for _ in 0..1 + chance.below(4) {
                // The beginning of a frame has more structure than its end.
                let len = if chance.one_in(2) { frame.len().min(600) } else { frame.len() } - 4;
                let at = frame.start + 4 + chance.below(len as u64) as usize;
                forged[at] = match chance.below(3) {
                    0 => 0xff,
                    1 => forged[at] ^ 1 << chance.below(8),
                    _ => chance.next() as u8,
                };
            }
            forge(&mut forged, frame.clone());
            let disk = disk_with("run", &forged);
            if let Ok(run) = Run::open(&disk, "run") {
                let unchecked = std::panic::AssertUnwindSafe(|| touch_all(&run, &model));
                assert!(std::panic::catch_unwind(unchecked).is_ok(), "seed {seed} in {frame:?}");
            }
        }
    }
}

/// Asks everything and believes nothing.
fn touch_all(run: &Run, model: &Model) {
    let mut cache = BlockCache::new(1 << 20);
    for place in model.keys() {
        let (topic, class) = (place.topic, place.class);
        let from = (place.due_at, place.id);
        let _ = run.classes(topic, Class::FIRST, usize::MAX);
        let _ = run.rank(&mut cache, topic, class, from);
        let mut at = run.seek(&mut cache, topic, class, from).unwrap_or(None);
        while let Some(loc) = at {
            let _ = run.entry(&mut cache, loc);
            at = run.next(&mut cache, loc).unwrap_or(None);
        }
        for loc in run.by_id(place.id, false).unwrap_or_default() {
            let _ = run.entry(&mut cache, loc);
            let _ = run.next(&mut cache, loc);
        }
        for hash in 0..20 {
            let _ = run.by_key(hash << 60);
        }
    }
    let _ = run.verify();
}

#[test]
fn a_block_in_the_wrong_place_is_noticed() {
    let place = |id| Place { topic: TopicNo(1), class: Class::DEAD, due_at: 1, id: JobId(id) };
    let model: Model =
        (0..4).map(|id| (place(id), (1, Some(payload(None, vec![id as u8; 16_000]))))).collect();
    let disk = MemDisk::shared();
    write_model(&disk, "run", 3, &model, SMALL_CHUNKS);
    let bytes = file_bytes(&disk, "run");
    let run = open(&disk, "run");
    let (second, third) = (run.blocks.get(1).unwrap(), run.blocks.get(2).unwrap());
    assert_eq!(second.len, third.len);
    let range = |offset: u64| offset as usize..offset as usize + second.len as usize;
    let mut swapped = bytes.clone();
    swapped[range(second.offset)].copy_from_slice(&bytes[range(third.offset)]);
    assert!(is_noticed(&swapped, &model));
    // The same block of another run is noticed as well.
    write_model(&disk, "other", 4, &model, SMALL_CHUNKS);
    let mut mixed = bytes.clone();
    mixed[range(second.offset)].copy_from_slice(&file_bytes(&disk, "other")[range(second.offset)]);
    assert!(is_noticed(&mixed, &model));
}

#[test]
fn a_page_in_the_wrong_place_is_noticed() {
    let place = |id| Place { topic: TopicNo(1), class: Class::DEAD, due_at: 1, id: JobId(id) };
    let model: Model = (0..1_000).map(|id| (place(id), (-1, None))).collect();
    let disk = MemDisk::shared();
    write_model(&disk, "run", 3, &model, SMALL_CHUNKS);
    let first = open(&disk, "run").layout.ids as usize;
    let mut bytes = file_bytes(&disk, "run");
    bytes.copy_within(first + PAGE_BYTES..first + 2 * PAGE_BYTES, first);
    let run = open(&disk_with("run", &bytes), "run");
    assert!(run.ids.get(0).is_err());
    assert!(run.ids.get(292).is_ok());
}

#[test]
fn a_block_beyond_measure_is_not_read() {
    let place = |id| Place { topic: TopicNo(1), class: Class::DEAD, due_at: 1, id: JobId(id) };
    let model: Model =
        (0..5).map(|id| (place(id), (1, Some(payload(None, vec![1; 1 << 20]))))).collect();
    let disk = MemDisk::shared();
    write_model(&disk, "run", 3, &model, SMALL_CHUNKS);
    let run = open(&disk, "run");
    let record = run.blocks.get(0).unwrap();
    assert!(run.check_location(&record).is_ok());
    // It would be within the file.
    let forged = BlockRecord { len: 5 << 20, ..record };
    assert!(u64::from(forged.len) < run.layout.blocks);
    assert!(run.check_location(&forged).is_err());
    let forged = BlockRecord { offset: u64::MAX, ..record };
    assert!(run.check_location(&forged).is_err());
}
