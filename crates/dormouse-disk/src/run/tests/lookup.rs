//! Whatever is asked of a run, it answers as the plain map would.

use super::super::key_hash;
use super::*;
use crate::codec::payload_key;

const BIG_CHUNKS: ChunkRecords = ChunkRecords { found: 1 << 20, located: 1 << 14 };

fn check_meta(meta: &RunMeta, model: &Model) {
    let keyed = model.values().filter(|(_, payload)| key_of(payload).is_some()).count();
    assert_eq!(meta.entries, model.len() as u64);
    assert_eq!(meta.tombstones, model.values().filter(|entry| entry.1.is_none()).count() as u64);
    assert_eq!(meta.keyed, keyed as u64);
    assert_eq!(meta.lanes, lanes_of(model).len() as u64);
    assert_eq!(meta.weight, model.values().map(|entry| i64::from(entry.0)).sum::<i64>());
    assert_eq!(meta.min_id, model.keys().map(|place| place.id.0).min().unwrap_or(u64::MAX));
    assert_eq!(meta.max_id, model.keys().map(|place| place.id.0).max().unwrap_or(0));
}

fn key_of(payload: &Option<Vec<u8>>) -> Option<&[u8]> {
    payload.as_deref().and_then(payload_key)
}

/// A bound near something: a place of the model, one beside it, or any.
fn random_bound(chance: &mut Chance, model: &Model, shape: Shape) -> Place {
    let any = random_place(chance, shape);
    if model.is_empty() || chance.one_in(4) {
        return any;
    }
    let mut place = *model.keys().nth(chance.below(model.len() as u64) as usize).unwrap();
    match chance.below(5) {
        0 => place.id = JobId(place.id.0.saturating_add(1)),
        1 => place.id = JobId(place.id.0.saturating_sub(1)),
        2 => place.due_at = place.due_at.saturating_add(1),
        3 => place.class = any.class,
        _ => {}
    }
    place
}

fn check_seek_and_rank(run: &Run, cache: &mut BlockCache, model: &Model, bound: Place) {
    let in_lane = |place: &Place| (place.topic, place.class) == (bound.topic, bound.class);
    let from = (bound.due_at, bound.id);
    let expected = model.range(bound..).next().filter(|(place, _)| in_lane(place));
    let loc = run.seek(cache, bound.topic, bound.class, from).unwrap();
    let found = loc.map(|loc| run.entry(cache, loc).unwrap());
    assert_eq!(found.as_ref().map(|entry| &entry.place), expected.map(|(place, _)| place));
    if let (Some(found), Some((_, (weight, payload)))) = (found, expected) {
        assert_eq!(found.weight, *weight);
        assert_eq!(found.payload.as_deref(), payload.as_deref());
    }
    let below = model.range(..bound).filter(|(place, _)| in_lane(place));
    let expected: i64 = below.map(|(_, entry)| i64::from(entry.0)).sum();
    assert_eq!(run.rank(cache, bound.topic, bound.class, from).unwrap(), expected);
}

fn check_id(run: &Run, cache: &mut BlockCache, model: &Model, id: JobId, holds: bool) {
    let expected: Vec<Place> = model
        .keys()
        .filter(|place| place.id == id && (place.class == Class::HOLD) == holds)
        .copied()
        .collect();
    let locs = run.by_id(id, holds).unwrap();
    let found: Vec<Place> = locs.iter().map(|&loc| run.entry(cache, loc).unwrap().place).collect();
    assert_eq!(found, expected);
}

fn check_key(run: &Run, model: &Model, topic: TopicNo, key: &[u8]) {
    let mut expected: Vec<(JobId, bool)> = model
        .iter()
        .filter(|(place, entry)| place.topic == topic && key_of(&entry.1) == Some(key))
        .map(|(place, _)| (place.id, place.class == Class::HOLD))
        .collect();
    let hash = key_hash(topic, key);
    assert!(expected.is_empty() || run.may_have_key(hash));
    let mut found = run.by_key(hash).unwrap();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

fn check_lanes(run: &Run, model: &Model, topic: TopicNo) {
    let lanes = lanes_of(model);
    let classes: Vec<Class> =
        lanes.iter().filter(|lane| lane.0 == topic).map(|lane| lane.1).collect();
    assert_eq!(run.classes(topic, Class::FIRST, usize::MAX).unwrap(), classes);
    for class in [Class::DEAD, Class::HOLD, Class::waiting(7, Clock::Wall)] {
        assert_eq!(run.has_lane(topic, class).unwrap(), lanes.contains(&(topic, class)));
    }
}

fn check_all(chance: &mut Chance, shape: Shape, chunks: ChunkRecords) {
    let model = random_model(chance, shape);
    let disk = MemDisk::shared();
    let meta = write_model(&disk, "run", 3, &model, chunks);
    assert_eq!(disk.list().unwrap(), ["run"], "no temporary file stays");
    let run = open(&disk, "run");
    assert_eq!(*run.meta(), meta);
    check_meta(&meta, &model);
    run.verify().unwrap();
    assert!(drain(&run, &lanes_of(&model)) == model, "what was read is not what was written");
    // Too small for the run, so that blocks leave.
    let mut cache = BlockCache::new(100_000);
    for _ in 0..150 {
        let bound = random_bound(chance, &model, shape);
        check_seek_and_rank(&run, &mut cache, &model, bound);
        check_id(&run, &mut cache, &model, bound.id, chance.one_in(2));
        check_key(&run, &model, bound.topic, &random_key(chance));
        check_lanes(&run, &model, bound.topic);
        assert!(cache.bytes() <= 100_000);
    }
}

#[test]
fn random_runs_answer_as_the_map_does() {
    for seed in 0..150 {
        let mut chance = Chance::new(seed);
        let shape = random_shape(&mut chance);
        check_all(&mut chance, shape, if seed % 2 == 0 { SMALL_CHUNKS } else { BIG_CHUNKS });
    }
}

#[test]
fn a_long_run_answers_as_the_map_does() {
    let mut chance = Chance::new(4711);
    let shape = Shape { entries: 60_000, topics: 3, due: 1 << 31, ids: 20_000, body_max: 400 };
    check_all(&mut chance, shape, ChunkRecords { found: 5_000, located: 100 });
}

#[test]
fn many_small_topics_share_blocks() {
    let mut chance = Chance::new(4712);
    let shape = Shape { entries: 20_000, topics: 15_000, due: 1 << 31, ids: 1 << 40, body_max: 50 };
    let model = random_model(&mut chance, shape);
    let disk = MemDisk::shared();
    let meta = write_model(&disk, "run", 3, &model, BIG_CHUNKS);
    let run = open(&disk, "run");
    assert!(run.blocks.len() * 10 * 1024 < meta.bytes, "{} blocks", run.blocks.len());
    assert!(drain(&run, &lanes_of(&model)) == model);
    run.verify().unwrap();
}

#[test]
fn the_empty_run_has_nothing() {
    let disk = MemDisk::shared();
    let meta = write_model(&disk, "run", 3, &Model::new(), BIG_CHUNKS);
    check_meta(&meta, &Model::new());
    let run = open(&disk, "run");
    run.verify().unwrap();
    let mut cache = BlockCache::new(1 << 20);
    let (topic, class) = (TopicNo(1), Class::DEAD);
    assert_eq!(run.seek(&mut cache, topic, class, (0, JobId(0))).unwrap(), None);
    assert_eq!(run.rank(&mut cache, topic, class, (u64::MAX, JobId(0))).unwrap(), 0);
    assert!(run.by_id(JobId(0), false).unwrap().is_empty());
    assert!(!run.may_have_key(key_hash(topic, b"key")));
    assert!(run.by_key(key_hash(topic, b"key")).unwrap().is_empty());
    assert!(run.classes(topic, Class::FIRST, usize::MAX).unwrap().is_empty());
    assert!(!run.has_lane(topic, class).unwrap());
}

#[test]
fn the_largest_bodies_fit_and_larger_ones_are_refused() {
    let disk = MemDisk::shared();
    let place = |id| Place {
        topic: TopicNo(u32::MAX),
        class: Class::HOLD,
        due_at: u64::MAX,
        id: JobId(u64::MAX - id),
    };
    let large = |len| payload(Some(&[b'k'; 256]), vec![7; len]);
    let model: Model = (0..4).map(|id| (place(id), (i32::MIN, Some(large(1 << 20))))).collect();
    write_model(&disk, "run", 3, &model, BIG_CHUNKS);
    let run = open(&disk, "run");
    run.verify().unwrap();
    assert!(drain(&run, &lanes_of(&model)) == model);
    let mut writer = RunWriter::create(&disk, "other", 1, 1).unwrap();
    assert!(writer.push(&place(0), 1, Some(&large(4 << 20))).is_err());
}

#[test]
fn typical_entries_cost_less_than_promised() {
    let mut chance = Chance::new(4713);
    let (body, entries) = (150_u64, 100_000);
    let mut model = Model::new();
    for _ in 0..entries {
        let place = Place {
            topic: TopicNo(7),
            class: Class::waiting(1024, Clock::Steady),
            due_at: 1_700_000_000_000 + chance.below(30 * 24 * 3_600_000),
            id: JobId(chance.below(1 << 40)),
        };
        model.insert(place, (1, Some(vec![0; body as usize])));
    }
    let disk = MemDisk::shared();
    let meta = write_model(&disk, "run", 3, &model, BIG_CHUNKS);
    let run = open(&disk, "run");
    let in_blocks = run.layout.blocks / meta.entries - body;
    assert!(in_blocks <= 14, "{in_blocks} bytes per entry in blocks");
    let in_index = (run.layout.keys - run.layout.ids) / meta.entries;
    assert!(in_index <= 14, "{in_index} bytes per entry in the ids table");
}

#[test]
fn the_filter_is_seldom_wrong() {
    let disk = MemDisk::shared();
    let place = |id| Place { topic: TopicNo(1), class: Class::DEAD, due_at: 1, id: JobId(id) };
    let key = |id: u64| id.to_string().into_bytes();
    let model: Model =
        (0..50_000).map(|id| (place(id), (1, Some(payload(Some(&key(id)), Vec::new()))))).collect();
    write_model(&disk, "run", 3, &model, BIG_CHUNKS);
    let run = open(&disk, "run");
    assert!((0..50_000).all(|id| run.may_have_key(key_hash(TopicNo(1), &key(id)))));
    let absent = (50_000..150_000).map(|id| key_hash(TopicNo(1), &key(id)));
    let wrong = absent.filter(|&hash| run.may_have_key(hash)).count();
    assert!(wrong < 1_000, "{wrong} of 100,000 absent keys may be there");
    let other_topic = (0..50_000).map(|id| key_hash(TopicNo(2), &key(id)));
    assert!(other_topic.filter(|&hash| run.may_have_key(hash)).count() < 500);
}

#[test]
fn the_cache_forgets_a_run() {
    let mut chance = Chance::new(4714);
    let shape = Shape { entries: 3_000, topics: 3, due: 1 << 31, ids: 1 << 20, body_max: 400 };
    let model = random_model(&mut chance, shape);
    let disk = MemDisk::shared();
    write_model(&disk, "a", 1, &model, BIG_CHUNKS);
    write_model(&disk, "b", 2, &model, BIG_CHUNKS);
    let (a, b) = (open(&disk, "a"), open(&disk, "b"));
    let mut cache = BlockCache::new(32 << 20);
    for no in 0..a.blocks.len() as u32 {
        cache.get(&a, no).unwrap();
    }
    let bytes = cache.bytes();
    for no in 0..b.blocks.len() as u32 {
        cache.get(&b, no).unwrap();
    }
    cache.forget(b.meta().no);
    assert_eq!(cache.bytes(), bytes);
    cache.forget(a.meta().no);
    assert_eq!(cache.bytes(), 0);
}
