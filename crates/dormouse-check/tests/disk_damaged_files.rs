//! Every byte of every file flipped, every file cut anywhere, every file gone.
//!
//! The store must refuse and name the file, or give up when it comes to the damage and name the
//! file, or be right in everything. What no later header calls synced may be missing at the end of
//! the journal: that cannot be told from a power cut.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(clippy::print_stdout, reason = "a campaign says what it has covered")]

use std::collections::BTreeMap;

use dormouse_check::faults::disk::CrashMode;
use dormouse_check::generate::op::{Kind, Op};
use dormouse_check::generate::rng::Rng;
use dormouse_check::generate::script::script;
use dormouse_check::harness::disk::damage::Verdict;
use dormouse_check::harness::disk::simulation::World;
use dormouse_disk::checkpoint::checkpoint_number;
use dormouse_disk::journal::segment_number;
use dormouse_disk::manifest::run_number;

/// Runs of several flushes, leases, dead jobs, keys and holds; three segments.
fn world() -> World {
    let mut world = World::new(false).unwrap();
    let just = |world: &mut World, kind: Kind| world.run(&Op { kind, args: [3; 6] }).unwrap();
    let ops = script();
    for op in &ops[..150] {
        // No merge: its output would replace the runs.
        if !matches!(op.kind, Kind::MergeBegin | Kind::MergeAction) {
            world.run(op).unwrap();
        }
    }
    just(&mut world, Kind::Flush);
    let mut rng = Rng::new(3);
    for _ in 0..60 {
        world.run(&Op::random(Kind::Put, &mut rng)).unwrap();
    }
    just(&mut world, Kind::Flush);
    for (index, op) in ops[150..210].iter().enumerate() {
        if !matches!(op.kind, Kind::MergeBegin | Kind::MergeAction | Kind::Freeze | Kind::Flush) {
            world.run(op).unwrap();
        }
        if index == 20 {
            just(&mut world, Kind::Commit);
            world.restart(CrashMode::Kill, None, &[], &mut Rng::new(1)).unwrap();
        }
    }
    just(&mut world, Kind::Freeze);
    just(&mut world, Kind::Commit);
    for op in ops[230..].iter().filter(|op| op.kind == Kind::Put) {
        world.run(op).unwrap();
        just(&mut world, Kind::Commit);
    }
    world.check(true).unwrap();
    let names = world.disk().names();
    assert!(names.iter().filter(|name| run_number(name).is_some()).count() >= 2, "{names:?}");
    assert!(names.iter().filter(|name| segment_number(name).is_some()).count() >= 3, "{names:?}");
    assert!(names.iter().any(|name| checkpoint_number(name).is_some()), "{names:?}");
    world
}

/// The results of damages, by file.
type Verdicts = BTreeMap<String, [u64; 2]>;

fn note(verdicts: &mut Verdicts, name: &str, verdict: Verdict) {
    let counts = verdicts.entry(name.to_owned()).or_default();
    counts[usize::from(verdict != Verdict::Refused)] += 1;
}

/// The last segment: its end may be cut off, whatever was synced there.
fn last_segment(world: &World) -> String {
    let names = world.disk().names();
    names.into_iter().filter(|name| segment_number(name).is_some()).max().unwrap()
}

fn flip_all(stride: usize) -> Verdicts {
    let world = world();
    let disk = world.disk().clone();
    let (whole, last) = (disk.snapshot(), world.last_batch());
    let mut verdicts = Verdicts::new();
    for name in disk.names() {
        let bytes = disk.read_all(&name).unwrap().len();
        // The ends of files are where their structure is.
        let offsets = (0..bytes).filter(|at| at % stride == 0 || *at < 200 || bytes - at < 200);
        for offset in offsets {
            for mask in [0xff, 1 << (offset % 8)] {
                disk.restore(&whole);
                assert!(disk.flip_bits(&name, offset as u64, mask));
                let verdict = world.judge(&name).unwrap_or_else(|what| {
                    panic!("{name} byte {offset} of {bytes} ^ {mask:#x}: {what}")
                });
                if let Verdict::Right(batch) = verdict {
                    assert!(batch + 1 >= last, "{name} byte {offset}: {batch} of {last} batches");
                }
                note(&mut verdicts, &name, verdict);
            }
        }
    }
    verdicts
}

fn cut_all(stride: usize) -> Verdicts {
    let world = world();
    let disk = world.disk().clone();
    let (whole, last) = (disk.snapshot(), world.last_batch());
    let torn = last_segment(&world);
    let mut verdicts = Verdicts::new();
    for name in disk.names() {
        let bytes = disk.read_all(&name).unwrap().len();
        for len in (0..bytes).filter(|at| at % stride == 0 || *at < 150 || bytes - at < 150) {
            disk.restore(&whole);
            assert!(disk.truncate(&name, len as u64));
            let verdict = world
                .judge(&name)
                .unwrap_or_else(|what| panic!("{name} cut to {len} of {bytes}: {what}"));
            if let Verdict::Right(batch) = verdict {
                assert!(name == torn || batch == last, "{name} cut to {len}: {batch} of {last}");
            }
            note(&mut verdicts, &name, verdict);
        }
    }
    verdicts
}

#[test]
fn flipped_bytes_are_named_or_harmless() {
    println!("{:?}", flip_all(1));
}

#[test]
fn cut_files_are_named_or_torn_tails() {
    println!("{:?}", cut_all(1));
}

#[test]
fn missing_files_are_named() {
    let world = world();
    let disk = world.disk().clone();
    let whole = disk.snapshot();
    let torn = last_segment(&world);
    for name in disk.names() {
        disk.restore(&whole);
        dormouse_disk::disk::Disk::remove(&disk, &name).unwrap();
        match world.judge(&name) {
            Ok(Verdict::Refused) => {}
            // A segment at the end that is gone looks like one that never was.
            Ok(Verdict::Right(_)) if name == torn => {}
            other => panic!("{name} is gone: {other:?}"),
        }
    }
}
