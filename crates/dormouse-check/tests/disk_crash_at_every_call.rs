//! One scripted history, with the power going off, or a call failing, at every single call that
//! changes the disk.
//!
//! After each, the store must open, be in the state of some batch not older than the last one that
//! was synced, be in the same state after another start, and go on.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use dormouse_check::faults::disk::{CrashMode, FailKind, SimDisk};
use dormouse_check::generate::op::{Kind, Op};
use dormouse_check::generate::rng::Rng;
use dormouse_check::generate::script::script;
use dormouse_check::harness::disk::driver::{Driver, SimTime, Trouble};
use dormouse_check::harness::disk::simulation::{SIZES, World};

/// Calls that making a store takes, and calls of the whole script.
fn calls() -> (u64, u64) {
    let mut world = World::new(false).unwrap();
    let made = world.disk().calls();
    for op in script() {
        world.run(&op).unwrap();
    }
    world.check(true).unwrap();
    assert!(world.ticks_given() > 5, "the script gives only {} ticks", world.ticks_given());
    (made, world.disk().calls())
}

/// The rest of the history after a crash: enough to flush, merge and empty a topic.
fn goes_on(world: &mut World, ops: &[Op]) -> Result<(), String> {
    for op in ops.iter().take(60) {
        world.run(op)?;
    }
    world.run(&Op { kind: Kind::Flush, args: [0; 6] })?;
    world.check(true)
}

fn crash_at(call: u64, mode: CrashMode, script: &[Op]) -> Result<(), String> {
    let mut world = World::new(false)?;
    world.disk().crash_at_call(call);
    let mut rng = Rng::new(call);
    for (index, op) in script.iter().enumerate() {
        match world.act(op) {
            Ok(()) => continue,
            Err(Trouble::Bug(what)) => return Err(what),
            Err(Trouble::Off) => {}
        }
        let reboot = (call % 2 == 0 && mode != CrashMode::Kill).then_some(call % 30);
        world.restart(mode, reboot, &[], &mut rng)?;
        world.check(call % 3 == 0)?;
        // A second start finds the same, whatever becomes of what the first one has not synced.
        world.restart(CrashMode::random(&mut rng), None, &[], &mut rng)?;
        world.check(true)?;
        return goes_on(&mut world, &script[index + 1..]);
    }
    Err(format!("call {call} was never made"))
}

#[test]
fn power_cut_at_every_call() {
    let script = script();
    let (made, all) = calls();
    assert!(all > 250, "the script makes only {all} calls");
    for call in made + 1..=all {
        for mode in CrashMode::ALL {
            if let Err(what) = crash_at(call, mode, &script) {
                panic!("power off at call {call} of {all}, {mode:?}: {what}");
            }
        }
    }
}

#[test]
fn power_cut_while_the_store_is_made() {
    let (made, _) = calls();
    for call in 1..=made {
        for mode in CrashMode::ALL {
            let disk = SimDisk::new();
            disk.crash_at_call(call);
            assert!(Driver::open(&disk, SIZES, SimTime::new()).is_err(), "call {call}");
            disk.crash(mode, &mut Rng::new(call));
            let opened = Driver::open(&disk, SIZES, SimTime::new());
            let mut driver = opened.unwrap_or_else(|error| panic!("call {call} {mode:?}: {error}"));
            assert_eq!(driver.store.machine().topics_alive(), 0);
        }
    }
}

/// Every call fails once. The engine stops then; so does this driver. Nothing that
/// was synced before is lost.
fn fail_at(call: u64, kind: FailKind, mode: CrashMode, script: &[Op]) -> Result<bool, String> {
    let mut world = World::new(false)?;
    world.disk().fail_call(call, kind, false);
    let mut rng = Rng::new(call);
    for (index, op) in script.iter().enumerate() {
        match world.act(op) {
            Ok(()) => continue,
            Err(Trouble::Off) => return Err("the power is on".to_owned()),
            Err(Trouble::Bug(_)) => {}
        }
        world.restart(mode, None, &[], &mut rng)?;
        world.check(true)?;
        world.restart(CrashMode::LoseUnsynced, None, &[], &mut rng)?;
        world.check(true)?;
        goes_on(&mut world, &script[index + 1..])?;
        return Ok(true);
    }
    // A merge without room is given up, and nothing stops.
    world.check(true)?;
    Ok(false)
}

#[test]
fn failure_at_every_call() {
    let script = script();
    let (made, all) = calls();
    let mut stopped = 0;
    for call in made + 1..=all {
        for kind in [FailKind::Io, FailKind::NoSpace] {
            for mode in [CrashMode::Kill, CrashMode::LoseUnsynced, CrashMode::Sectors] {
                match fail_at(call, kind, mode, &script) {
                    Ok(has_stopped) => stopped += u64::from(has_stopped),
                    Err(what) => {
                        panic!("{kind:?} at call {call} of {all}, then {mode:?}: {what}")
                    }
                }
            }
        }
    }
    // All but the merges that were given up.
    assert!(stopped > (all - made) * 5, "only {stopped} failures stopped the store");
}
