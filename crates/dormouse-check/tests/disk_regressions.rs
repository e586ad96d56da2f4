//! Bugs that random histories found, each as a test with a name.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use bytes::Bytes;
use dormouse_check::faults::disk::CrashMode;
use dormouse_check::generate::op::{Kind, Op};
use dormouse_check::generate::rng::Rng;
use dormouse_check::harness::disk::simulation::World;
use dormouse_core::command::Command;
use dormouse_core::op::{Extend, OnConflict, Put, Release, Reserve, SessionId};
use dormouse_core::topic::TopicName;

fn topic() -> TopicName {
    TopicName::new("a").unwrap()
}

fn put(body: &'static str) -> Put {
    let mut put = Put::new(topic(), body);
    (put.priority, put.ttr_ms) = (Some(7), Some(5));
    put
}

fn reserve(max: usize) -> Command {
    let topics = vec![topic()];
    Command::Reserve(Reserve { topics, max, wait_ms: 0, ttr_ms: None, session: None })
}

fn run(world: &mut World, kind: Kind) {
    world.run(&Op { kind, args: [1; 6] }).unwrap();
    world.check(false).unwrap();
}

fn power_cut(world: &mut World) {
    world.restart(CrashMode::LoseUnsynced, None, &[], &mut Rng::new(1)).unwrap();
    world.check(true).unwrap();
}

/// The journal got the content of the job whose lease ended in the same step at the same place.
#[test]
fn a_replace_at_the_place_where_a_lease_just_ended_is_kept() {
    let mut world = World::new(false).unwrap();
    let mut first = put("old");
    first.key = Some(Bytes::from_static(b"k"));
    let mut second = put("new");
    second.key.clone_from(&first.key);
    second.on_conflict = OnConflict::Replace;
    world.command(Command::Put(vec![first])).unwrap();
    run(&mut world, Kind::Commit);
    world.command(reserve(1)).unwrap();
    world.time().advance(5, false);
    world.command(Command::Put(vec![second])).unwrap();
    run(&mut world, Kind::Commit);
    power_cut(&mut world);
}

/// Its birth, counted from the first put of the memtable it came back to, wrapped around.
#[test]
fn a_job_that_is_older_than_its_memtable_is_delivered_again() {
    let mut world = World::new(false).unwrap();
    world.command(Command::Put(vec![put("old")])).unwrap();
    run(&mut world, Kind::Commit);
    run(&mut world, Kind::Freeze);
    let mut later = put("new");
    later.delay_ms = Some(100);
    world.command(Command::Put(vec![later])).unwrap();
    world.command(reserve(1)).unwrap();
    let release = Release { token: world.tokens()[0], delay_ms: None, priority: None };
    world.command(Command::Release(vec![release])).unwrap();
    run(&mut world, Kind::Commit);
    world.command(reserve(1)).unwrap();
    assert_eq!(world.tokens().len(), 2);
}

/// Its output was consumed before any manifest listed it. (`Flush` looks for such files.)
#[test]
fn a_merge_consumed_before_it_is_swapped_in_leaves_no_file() {
    let mut world = World::new(false).unwrap();
    world.command(Command::Put(vec![put("one")])).unwrap();
    run(&mut world, Kind::Flush);
    run(&mut world, Kind::MergeBegin);
    world.command(reserve(1)).unwrap();
    run(&mut world, Kind::MergeAction);
    run(&mut world, Kind::MergeAction);
    run(&mut world, Kind::Flush);
    run(&mut world, Kind::Flush);
    assert!(world.tally["quiet"] >= 3);
}

/// It left the manifest while it was merged, and nobody looked at it again.
#[test]
fn an_input_consumed_while_it_is_merged_leaves_no_file() {
    let mut world = World::new(false).unwrap();
    for body in ["one", "two"] {
        world.command(Command::Put(vec![put(body)])).unwrap();
        run(&mut world, Kind::Flush);
    }
    world.run(&Op { kind: Kind::MergeBegin, args: [0, 1, 1, 1, 1, 1] }).unwrap();
    world.command(reserve(1)).unwrap();
    run(&mut world, Kind::Flush);
    run(&mut world, Kind::MergeAction);
    run(&mut world, Kind::MergeAction);
    run(&mut world, Kind::Flush);
    run(&mut world, Kind::Flush);
    assert!(world.tally["quiet"] >= 3);
}

/// The checker forgot it at the start, and took the job for purged.
#[test]
fn a_lease_of_a_session_that_ran_out_is_extended_after_a_start_and_survives_a_purge() {
    let mut world = World::new(false).unwrap();
    world.command(Command::Put(vec![put("one")])).unwrap();
    world.command(Command::OpenSession).unwrap();
    run(&mut world, Kind::Commit);
    let session = Some(SessionId(1));
    let of_session = Reserve { topics: vec![topic()], max: 1, wait_ms: 0, ttr_ms: None, session };
    world.command(Command::Reserve(of_session)).unwrap();
    run(&mut world, Kind::Commit);
    world.time().advance(6, false);
    run(&mut world, Kind::Tick);
    run(&mut world, Kind::Commit);
    power_cut(&mut world);
    let extend = Extend { token: world.tokens()[0], ttr_ms: None };
    world.command(Command::Extend(vec![extend])).unwrap();
    world.command(Command::Purge(topic().into())).unwrap();
    world.time().advance(100, false);
    world.command(reserve(1)).unwrap();
    assert_eq!(world.tokens().len(), 2, "the lease ran out, and the job came again");
}
