//! A schedule that waits for its job: whatever ends the job wakes it.

use dormouse_core::job::{JobId, State};
use dormouse_core::op::{Cancel, Kill, KillTarget, Nack, ScheduleState, Target};

use super::*;

/// A schedule whose first job is leased, for its only attempt; two more ticks have passed since.
fn busy(overlap: Option<Overlap>) -> (Rig, LeasedJob) {
    let rig = Rig::start(1);
    let mut put = every("s", Overlap::Skip);
    put.overlap = overlap;
    if overlap.is_none() {
        (put.every_ms, put.gap_ms) = (None, Some(100));
    }
    put.template.attempts_max = Some(1);
    rig.put(put);
    assert_eq!(rig.pass(100, "s").counts.given, 1);
    let job = rig.reserve(1_000).remove(0);
    let view = rig.pass(250, "s");
    // Ticks that pass are counted at once; one that waits is not.
    let passed = if overlap == Some(Overlap::Skip) { 3 } else { 1 };
    assert_eq!((view.state, view.counts.total()), (ScheduleState::Busy, passed));
    (rig, job)
}

/// Two ticks have passed beside the job; the next one is given.
fn goes_on(rig: &Rig) {
    let view = rig.get("s");
    assert_eq!((view.state, view.counts.overlapped), (ScheduleState::Waiting, 2));
    let view = rig.pass(100, "s");
    assert_eq!((view.counts.given, view.counts.total()), (2, 4));
}

#[test]
fn an_ack_wakes_it() {
    let (rig, job) = busy(Some(Overlap::Skip));
    assert!(rig.ask(Command::Ack(vec![job.token])).is_ok());
    goes_on(&rig);
}

#[test]
fn a_death_wakes_it() {
    let (rig, job) = busy(Some(Overlap::Skip));
    let nack = Nack { token: job.token, delay_ms: None, priority: None, error: None };
    assert!(rig.ask(Command::Nack(vec![nack])).is_ok());
    assert_eq!(rig.jobs(State::Dead).len(), 1);
    goes_on(&rig);
}

#[test]
fn a_kill_wakes_it() {
    let (rig, job) = busy(Some(Overlap::Skip));
    let kill = Kill { target: KillTarget::Token(job.token), priority: None, error: None };
    assert!(rig.ask(Command::Kill(vec![kill])).is_ok());
    goes_on(&rig);
}

#[test]
fn a_cancel_wakes_it() {
    let (rig, job) = busy(Some(Overlap::Skip));
    let cancel = Cancel { target: Target::Id(job.id), unless_leased: false };
    assert!(rig.ask(Command::Cancel(vec![cancel])).is_ok());
    goes_on(&rig);
}

/// Nothing but the look itself notices that the last lease has expired; the ticks up to then have
/// passed beside the job, those after it have not.
#[test]
fn the_expiry_of_the_last_lease_wakes_it() {
    let (rig, _job) = busy(Some(Overlap::Skip));
    let view = rig.pass(1_050, "s");
    assert_eq!(rig.jobs(State::Dead).len(), 1);
    let counts = view.counts;
    assert_eq!((counts.overlapped, counts.given, counts.missed), (10, 2, 2));
}

#[test]
fn a_purge_wakes_all_that_wait() {
    let rig = Rig::start(1);
    let names: Vec<String> = (0..300).map(|number| format!("s{number}")).collect();
    names.iter().for_each(|name| drop(rig.put(every(name, Overlap::Skip))));
    rig.clock.advance(150);
    names.iter().for_each(|name| assert_eq!(rig.get(name).counts.given, 1, "{name}"));
    rig.clock.advance(100);
    names.iter().for_each(|name| assert_eq!(rig.get(name).state, ScheduleState::Busy, "{name}"));
    assert_eq!(rig.ask(Command::Purge(topic().into())), Ok(Reply::Count(300)));
    rig.clock.advance(100);
    names.iter().for_each(|name| assert_eq!(rig.get(name).counts.given, 2, "{name}"));
}

#[test]
fn the_latest_tick_waits_for_the_job() {
    let (rig, job) = busy(Some(Overlap::Wait));
    assert!(rig.ask(Command::Ack(vec![job.token])).is_ok());
    let view = rig.get("s");
    assert_eq!((view.counts.given, view.counts.overlapped), (2, 1));
    assert_eq!(rig.reserve(1_000).len(), 1);
}

#[test]
fn a_gap_begins_when_the_job_ends() {
    let (rig, job) = busy(None);
    assert!(rig.ask(Command::Ack(vec![job.token])).is_ok());
    let ended_ms = rig.clock.now_ms();
    assert_eq!(rig.get("s").next.first(), Some(&(ended_ms + 100)));
    assert_eq!(rig.pass(99, "s").counts.given, 1);
    assert_eq!(rig.pass(1, "s").counts.given, 2);
}

#[test]
fn a_tick_replaces_the_job_before() {
    let rig = Rig::start(1);
    rig.put(every("s", Overlap::Replace));
    let first: JobId = rig.pass(100, "s").last.unwrap().id;
    let second = rig.pass(100, "s").last.unwrap().id;
    let jobs: Vec<JobId> = rig.jobs(State::Ready).iter().map(|view| view.job.id).collect();
    assert_eq!(jobs, [second]);
    assert_ne!(first, second);
}

/// The last tick has been given: the schedule goes with its job.
#[test]
fn it_ends_with_its_last_job() {
    let rig = Rig::start(1);
    rig.put(PutSchedule { ticks_max: Some(1), ..every("s", Overlap::Allow) });
    assert_eq!(rig.pass(100, "s").state, ScheduleState::Busy);
    let job = rig.reserve(1_000).remove(0);
    assert!(rig.ask(Command::Ack(vec![job.token])).is_ok());
    assert!(rig.ask(get("s")).is_err());
}
