//! The manifest is always the old one or the new one.

use dormouse_check::faults::disk::{CrashMode, SimDisk};
use dormouse_check::generate::rng::Rng;
use dormouse_disk::manifest::{self, Manifest, RunRef};

fn numbered(number: u64) -> Manifest {
    let runs = (0..number).map(|no| RunRef { no, age: no }).collect();
    Manifest { first_segment: number, runs, ..Manifest::default() }
}

#[test]
fn a_power_cut_leaves_the_old_or_the_new_one() {
    let (mut old_seen, mut new_seen) = (0, 0);
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let disk = SimDisk::new();
        manifest::write(&disk, &numbered(1)).unwrap();
        let mut durable = 1;
        for newer in 2..100 {
            disk.crash_at_call(disk.calls() + 1 + rng.below(10));
            if manifest::write(&disk, &numbered(newer)).is_ok() {
                durable = newer;
            }
            let mode = CrashMode::random(&mut rng);
            disk.crash(mode, &mut rng);
            let found = manifest::read(&disk).unwrap().unwrap();
            let what = format!("seed {seed}, {mode:?}, {newer} over {durable}");
            if found != numbered(durable) {
                assert_eq!(found, numbered(newer), "{what}");
                new_seen += 1;
                // A kill may leave it readable and not durable; a start writes its own at once.
                manifest::write(&disk, &found).unwrap();
                durable = newer;
            } else {
                old_seen += 1;
            }
        }
    }
    assert!(old_seen > 0 && new_seen > 0);
}

#[test]
fn the_first_one_is_there_or_not() {
    for call in 1..8 {
        for (seed, mode) in (0..100).flat_map(|seed| CrashMode::ALL.map(|mode| (seed, mode))) {
            let disk = SimDisk::new();
            disk.crash_at_call(call);
            let written = manifest::write(&disk, &numbered(3)).is_ok();
            disk.crash(mode, &mut Rng::new(seed));
            let found = manifest::read(&disk).unwrap();
            assert!(found.is_none() || found == Some(numbered(3)), "call {call}, seed {seed}");
            assert!(found.is_some() || !written, "call {call}, seed {seed}, {mode:?}");
        }
    }
}
