//! A merge keeps unread entries, sums weights, and drops a tombstone only with its job.

use std::cell::{Cell, RefCell};

use super::super::merge;
use super::*;

/// Where lanes are unread from, by lane and age.
type Unread = HashMap<(TopicNo, Class, u64), Option<(u64, JobId)>>;

fn random_unread(chance: &mut Chance, models: &[Model]) -> Unread {
    let mut unread = Unread::new();
    for (age, model) in models.iter().enumerate() {
        for (topic, class) in lanes_of(model) {
            let lane: Vec<&Place> =
                model.keys().filter(|place| (place.topic, place.class) == (topic, class)).collect();
            let at = lane[chance.below(lane.len() as u64) as usize];
            let from = match chance.below(6) {
                0 => None,
                1 => Some((at.due_at, at.id)),
                2 => Some((at.due_at, JobId(at.id.0.saturating_add(1)))),
                3 => Some((u64::MAX, JobId(u64::MAX))),
                _ => Some((0, JobId(0))),
            };
            unread.insert((topic, class, age as u64), from);
        }
    }
    unread
}

fn merged_model(models: &[Model], unread: &Unread) -> Model {
    let mut merged = Model::new();
    for (age, model) in models.iter().enumerate() {
        for (place, (weight, payload)) in model {
            let from = unread[&(place.topic, place.class, age as u64)];
            if from.is_some_and(|from| (place.due_at, place.id) >= from) {
                let entry = merged.entry(*place).or_insert((0, None));
                *entry = (entry.0 + weight, payload.clone());
            }
        }
    }
    merged.retain(|_, (weight, payload)| payload.is_some() || *weight != 0);
    merged
}

/// Models that share places, so that there is something to sum up.
fn random_models(chance: &mut Chance) -> Vec<Model> {
    let mut shape = random_shape(chance);
    shape.ids = 1 + chance.below(40);
    shape.due = 1 + chance.below(40);
    shape.topics = 1 + chance.below(5);
    (0..1 + chance.below(5)).map(|_| random_model(chance, shape)).collect()
}

fn write_runs(disk: &Arc<dyn Disk>, models: &[Model]) -> Vec<Arc<Run>> {
    let write = |(age, model): (usize, &Model)| {
        let name = format!("run-{age}");
        write_model(disk, &name, age as u64, model, SMALL_CHUNKS);
        open(disk, &name)
    };
    models.iter().enumerate().map(write).collect()
}

#[test]
fn random_merges_are_as_the_maps_are() {
    for seed in 0..300 {
        let mut chance = Chance::new(seed);
        let models = random_models(&mut chance);
        let unread = random_unread(&mut chance, &models);
        let disk = MemDisk::shared();
        let runs = write_runs(&disk, &models);
        let asked = RefCell::new(BTreeSet::new());
        let unread_from = |topic, class, age| {
            assert!(asked.borrow_mut().insert((topic, class, age)), "asked twice");
            unread[&(topic, class, age)]
        };
        let mut writer = RunWriter::create_with(&disk, "out", 77, 9, SMALL_CHUNKS).unwrap();
        assert!(merge(&runs, &unread_from, &mut writer, &|| true).unwrap());
        writer.finish().unwrap();
        let out = open(&disk, "out");
        out.verify().unwrap();
        let expected = merged_model(&models, &unread);
        assert_eq!(out.meta().entries, expected.len() as u64);
        assert!(drain(&out, &lanes_of(&expected)) == expected);
    }
}

#[test]
fn long_runs_merge_through_their_windows() {
    let mut chance = Chance::new(99);
    let shape = Shape { entries: 15_000, topics: 40, due: 1 << 20, ids: 1 << 20, body_max: 90_000 };
    let models: Vec<Model> = (0..3).map(|_| random_model(&mut chance, shape)).collect();
    let unread = random_unread(&mut chance, &models);
    let disk = MemDisk::shared();
    let runs = write_runs(&disk, &models);
    let mut writer = RunWriter::create(&disk, "out", 77, 9).unwrap();
    let unread_from = |topic, class, age| unread[&(topic, class, age)];
    assert!(merge(&runs, &unread_from, &mut writer, &|| true).unwrap());
    writer.finish().unwrap();
    let expected = merged_model(&models, &unread);
    let out = open(&disk, "out");
    out.verify().unwrap();
    assert!(drain(&out, &lanes_of(&expected)) == expected);
}

#[test]
fn a_merge_stops_when_told() {
    let mut chance = Chance::new(98);
    let shape = Shape { entries: 5_000, topics: 4, due: 1 << 20, ids: 1 << 20, body_max: 90 };
    let disk = MemDisk::shared();
    let runs = write_runs(&disk, &[random_model(&mut chance, shape)]);
    let mut writer = RunWriter::create_with(&disk, "out", 77, 9, SMALL_CHUNKS).unwrap();
    let looks = Cell::new(0);
    let go_on = || {
        looks.set(looks.get() + 1);
        looks.get() < 3
    };
    assert!(!merge(&runs, &|_, _, _| Some((0, JobId(0))), &mut writer, &go_on).unwrap());
    assert!(disk.list().unwrap().contains(&"out.spill-ids".to_owned()));
    drop(writer);
    disk.remove("out").unwrap();
    assert_eq!(disk.list().unwrap(), ["run-0"]);
}

#[test]
fn consumed_lanes_are_not_read() {
    let lane = |topic| {
        (0..400).map(move |id| {
            let place =
                Place { topic: TopicNo(topic), class: Class::DEAD, due_at: id, id: JobId(id) };
            (place, (1, Some(payload(None, vec![1; 2_000]))))
        })
    };
    let model: Model = lane(1).chain(lane(2)).chain(lane(3)).collect();
    let disk = MemDisk::shared();
    write_model(&disk, "whole", 0, &model, SMALL_CHUNKS);
    // Damage in the middle of the consumed lane goes unnoticed, because nobody looks there.
    let mut bytes = file_bytes(&disk, "whole");
    let middle = open(&disk, "whole").layout.blocks as usize / 2;
    bytes[middle] ^= 1;
    let disk = disk_with("damaged", &bytes);
    let runs = [open(&disk, "damaged")];
    let mut writer = RunWriter::create(&disk, "out", 77, 9).unwrap();
    let unread = |topic, _, _| (topic != TopicNo(2)).then_some((0, JobId(0)));
    assert!(merge(&runs, &unread, &mut writer, &|| true).unwrap());
    assert_eq!(writer.finish().unwrap().entries, 800);
    let mut writer = RunWriter::create(&disk, "out2", 78, 9).unwrap();
    assert!(merge(&runs, &|_, _, _| Some((0, JobId(0))), &mut writer, &|| true).is_err());
}
