//! Facts alone rebuild the machine; a restart changes what it must and nothing else.

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::fact::Fact;
use dormouse_core::image::{LeaseImage, LockImage, MachineImage, TopicImage};
use dormouse_core::job::{Job, State};
use dormouse_core::machine::{Machine, Output};
use dormouse_core::op::*;
use dormouse_core::place::{Class, Place};
use dormouse_core::time::Now;
use dormouse_core::timeline::memory::MemoryTimeline;
use dormouse_core::topic::{Pause, Settings};

use crate::support::*;

/// Everything that must survive: the machine's pieces and what rests, but for holds that are over:
/// those go without a fact, so that a replay finds them again.
#[derive(Debug, PartialEq)]
pub(crate) struct Image {
    pub(crate) machine: MachineImage,
    pub(crate) topics: Vec<TopicImage>,
    pub(crate) leases: Vec<LeaseImage>,
    pub(crate) locks: Vec<LockImage>,
    pub(crate) resting: Vec<(Place, Job)>,
}

impl Image {
    /// Without what a replay learns anew: whether entries of deadlines or parked jobs may be there.
    pub(crate) fn without_hints(mut self) -> Image {
        for topic in &mut self.topics {
            (topic.has_deadlines, topic.has_parked) = (false, false);
        }
        self
    }
}

pub(crate) fn image(machine: &Machine<MemoryTimeline>, now: Now) -> Image {
    let over = |place: &Place| place.class == Class::HOLD && place.due_at <= now.steady_ms;
    let resting = machine.timeline().iter().filter(|(place, _)| !over(place));
    Image {
        machine: machine.machine_image(),
        topics: machine.topic_images().collect(),
        leases: machine.lease_images().collect(),
        locks: machine.lock_images().collect(),
        resting: resting.map(|(place, job)| (place, job.clone())).collect(),
    }
}

/// A machine that knows a checkpoint and what was written after it.
pub(crate) fn restored(image: &Image, timeline: MemoryTimeline) -> Machine<MemoryTimeline> {
    let mut machine = Machine::new(timeline);
    machine.restore_machine(image.machine);
    image.topics.iter().cloned().for_each(|topic| machine.restore_topic(topic));
    image.leases.iter().cloned().for_each(|lease| machine.restore_lease(lease));
    image.locks.iter().cloned().for_each(|lock| machine.restore_lock(lock));
    machine
}

fn replayed(facts: &[Fact]) -> Machine<MemoryTimeline> {
    let mut machine = Machine::new(MemoryTimeline::new());
    facts.iter().cloned().for_each(|fact| machine.replay(fact));
    machine
}

fn keyed(key: &str) -> Put {
    Put { key: Some(bytes(key)), key_ttl_ms: Some(90_000), ..Put::new(topic("t"), "x") }
}

fn lock(owner: &str, ttl_ms: i64) -> Command {
    Command::Lock(Lock { name: bytes("l"), owner: bytes(owner), ttl_ms, wait_ms: 0 })
}

/// A rig with everything in it: held, lost and replaced keys, leases with and without a session
/// and one that ran out, dead jobs, a lock, a pause.
fn busy() -> Rig {
    let mut rig = Rig::new();
    let session = rig.session();
    rig.set("t", Settings { dead_max: Some(9), ..Settings::default() });
    for key in ["a", "b", "c", "d", "e"] {
        rig.put(keyed(key));
    }
    let leases = rig.reserve(&["t"], 3);
    rig.ack(leases[0].token).unwrap();
    rig.put(Put { on_conflict: OnConflict::Replace, ..keyed("b") });
    rig.put(Put { on_conflict: OnConflict::Replace, body: bytes("longer"), ..keyed("d") });
    rig.kill(KillTarget::Token(leases[1].token)).unwrap();
    let with_session = Reserve { session: Some(session), ..reserve(&["t"], 1, 0) };
    assert_eq!(jobs(rig.run(Command::Reserve(with_session))).len(), 1);
    rig.pass(30_000);
    rig.take("t");
    rig.pass(30_000);
    rig.cancel(by_key("t", "d")).unwrap();
    rig.run(lock("me", 5_000)).unwrap();
    rig.run(Command::Pause(PauseTopic { topic: topic("t"), for_ms: Some(70_000) })).unwrap();
    rig.put_now("u");
    let lease = rig.take("u");
    rig.ack(lease.token).unwrap();
    rig
}

#[test]
fn facts_alone_rebuild_everything() {
    let rig = busy();
    assert_eq!(image(&replayed(&rig.facts), rig.now), image(&rig.machine, rig.now));
}

#[test]
fn a_checkpoint_rebuilds_everything_too() {
    let rig = busy();
    let before = image(&rig.machine, rig.now);
    let again = restored(&before, rig.machine.timeline().clone());
    assert_eq!(image(&again, rig.now), before);
    counts_add_up(&again);
}

#[test]
fn after_a_restart_leases_and_locks_last_their_full_time_again() {
    let mut rig = Rig::new();
    let id = rig.put(keyed("k"));
    let lease = rig.take("t");
    rig.run(lock("me", 5_000)).unwrap();
    rig.pass(4_000);
    let mut machine = replayed(&rig.facts);
    machine.set_epoch(2);
    let mut out = Output::default();
    machine.recovered(rig.now, &mut out).unwrap();
    assert!(out.facts.is_empty());
    rig.machine = machine;
    rig.pass(4_999);
    assert_eq!(rig.machine.locks_held(), 1);
    rig.pass(1);
    assert_eq!(rig.machine.locks_held(), 0);
    // The old token is good, and the key is still the leased job's.
    assert_eq!(rig.extend(lease.token, None), Ok(WALL_0 + 69_000));
    assert_eq!(rig.try_put(keyed("k")).unwrap().state, Some(State::Leased));
    rig.pass(59_999);
    assert_eq!(rig.state(id), Some(State::Leased));
    rig.pass(1);
    let again = rig.take("t");
    assert_eq!(again.token.fence >> 40, 2, "fences of the new epoch are larger");
}

#[test]
fn after_a_restart_leases_of_sessions_are_released() {
    let mut rig = Rig::new();
    let session = rig.session();
    rig.put_now("t");
    let with_session = Reserve { session: Some(session), ..reserve(&["t"], 1, 0) };
    let lease = jobs(rig.run(Command::Reserve(with_session))).pop().unwrap();
    let mut machine = replayed(&rig.facts);
    let mut out = Output::default();
    machine.recovered(rig.now, &mut out).unwrap();
    assert_eq!(out.facts.len(), 1);
    rig.machine = machine;
    let view = rig.view(Target::Id(lease.id)).unwrap();
    assert_eq!((view.state, view.job.progress.attempts), (State::Ready, 0));
    assert_eq!(code(rig.ack(lease.token)), Code::LeaseLost);
}

#[test]
fn after_a_restart_unused_topics_vanish_and_pauses_go_on() {
    let mut rig = Rig::new();
    rig.put_now("t");
    let lease = rig.take("t");
    rig.ack(lease.token).unwrap();
    rig.run(Command::Pause(PauseTopic { topic: topic("p"), for_ms: Some(500) })).unwrap();
    let mut machine = replayed(&rig.facts);
    let mut out = Output::default();
    machine.recovered(rig.now, &mut out).unwrap();
    assert!(matches!(out.facts[..], [Fact::TopicGone { .. }]));
    let paused = machine.topic_images().next().unwrap().pause;
    assert_eq!(paused, Some(Pause::Until(STEADY_0 + 500)));
    assert_eq!(machine.next_wake(rig.now), Some(500));
}

/// A replay over runs knows jobs that rested there only by place, until recovery reads them.
#[test]
fn stubs_are_completed_after_the_replay() {
    let mut rig = Rig::new();
    rig.put(keyed("k"));
    let checkpoint = image(&rig.machine, rig.now);
    let (_, whole) = checkpoint.resting[0].clone();
    let before = rig.facts.len();
    let lease = rig.take("t");
    let mut machine = restored(&checkpoint, MemoryTimeline::new());
    rig.facts[before..].iter().cloned().for_each(|fact| machine.replay(fact));
    assert_eq!(machine.leased_stubs(), [lease.id]);
    machine.complete_leased(lease.id, whole.content.clone());
    assert_eq!(machine.leased_stubs(), []);
    machine.recovered(rig.now, &mut Output::default()).unwrap();
    assert_eq!(image(&machine, rig.now), image(&rig.machine, rig.now));
    rig.machine = machine;
    assert_eq!(rig.try_put(keyed("k")).unwrap().id, lease.id);
    assert_eq!(rig.ack(lease.token), Ok(EndReply::Done));
    assert_eq!(rig.run(Command::Purge(topic("t").into())), Ok(Reply::Count(0)));
}

#[test]
fn a_fence_is_not_given_twice_even_in_the_same_epoch() {
    let mut rig = Rig::new();
    rig.put_now("t");
    let first = rig.take("t");
    rig.release(first.token).unwrap();
    let mut machine = replayed(&rig.facts);
    machine.recovered(rig.now, &mut Output::default()).unwrap();
    rig.machine = machine;
    assert!(rig.take("t").token.fence > first.token.fence);
}
