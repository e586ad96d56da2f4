//! Limits of a topic: how many jobs are leased at once, and how fast they are taken.

use dormouse_core::command::Command;
use dormouse_core::error::Code;
use dormouse_core::job::JobId;
use dormouse_core::op::*;
use dormouse_core::rate::Rate;
use dormouse_core::topic::Settings;

use crate::support::*;

fn slots(leased_max: u64) -> Settings {
    Settings { leased_max: Some(leased_max), ..Settings::default() }
}

fn rated(jobs: u64, per_ms: u64, burst: u64) -> Settings {
    Settings { rate: Some(Rate { jobs, per_ms, burst }), ..Settings::default() }
}

/// A topic `t` with these settings and so many ready jobs.
fn with_jobs(settings: Settings, jobs: usize) -> Rig {
    let mut rig = Rig::new();
    rig.set("t", settings);
    for _ in 0..jobs {
        rig.put_now("t");
    }
    rig
}

fn held_by(rig: &mut Rig, id: u64) -> Option<HeldBy> {
    rig.view(Target::Id(JobId(id))).unwrap().held_by
}

#[test]
fn no_more_are_leased_than_allowed_and_the_others_stay_ready() {
    let mut rig = with_jobs(slots(2), 4);
    let taken = rig.reserve(&["t"], 10);
    assert_eq!(ids(&taken), [1, 2]);
    assert!(rig.reserve(&["t"], 10).is_empty());
    let view = rig.view(Target::Id(JobId(3))).unwrap();
    assert_eq!(view.held_by, Some(HeldBy::LeasedMax));
    assert_eq!((view.job.progress.attempts, view.due_at), (0, WALL_0));
    assert_eq!(rig.stats("t").unwrap().ready, 2);
    assert_eq!(rig.view(Target::Id(JobId(1))).unwrap().held_by, None, "it is leased");
}

/// Whatever ends a lease gives its slot to who waits.
#[test]
fn every_end_of_a_lease_wakes_one_who_waits() {
    type End = fn(&mut Rig, &LeasedJob);
    let ends: [(&str, End); 8] = [
        ("ack", |rig, job| assert!(rig.ack(job.token).is_ok())),
        ("nack", |rig, job| assert!(rig.nack(job.token).is_ok())),
        ("release", |rig, job| assert!(rig.release(job.token).is_ok())),
        ("kill", |rig, job| assert!(rig.kill(KillTarget::Token(job.token)).is_ok())),
        ("cancel", |rig, job| assert!(rig.cancel(Target::Id(job.id)).is_ok())),
        ("expiry", |rig, job| rig.pass(job.ttr_ms)),
        ("raised", |rig, _| rig.set("t", slots(2))),
        ("unset", |rig, _| rig.set("t", Settings::default())),
    ];
    for (name, end) in ends {
        let mut rig = with_jobs(slots(1), 3);
        let first = rig.take("t");
        let waiters: Vec<_> =
            (0..2).map(|_| rig.begin(Command::Reserve(reserve(&["t"], 1, 60_000)))).collect();
        rig.tick();
        assert!(waiters.iter().all(|ticket| rig.answer(*ticket).is_none()), "{name}");
        end(&mut rig, &first);
        let job = rig.answer(waiters[0]).unwrap_or_else(|| panic!("{name} woke nobody"));
        assert_eq!(jobs(job).len(), 1, "{name}");
        let second = rig.answer(waiters[1]);
        let may_be_two = name == "unset" || name == "expiry";
        assert!(second.is_none() || may_be_two, "{name} woke two");
    }
}

#[test]
fn a_limit_lowered_below_what_is_leased_revokes_nothing() {
    let mut rig = with_jobs(slots(3), 5);
    let taken = rig.reserve(&["t"], 10);
    rig.set("t", slots(1));
    for job in &taken {
        assert!(rig.reserve(&["t"], 10).is_empty());
        rig.ack(job.token).unwrap();
    }
    assert_eq!(rig.reserve(&["t"], 10).len(), 1);
}

#[test]
fn a_given_job_obeys_limits_too() {
    let mut rig = with_jobs(slots(1), 2);
    rig.take("t");
    let ask = |id| Command::ReserveId(ReserveId { id: JobId(id), ttr_ms: None, session: None });
    let error = rig.run(ask(2)).unwrap_err();
    says(&error, Code::Busy, &["topic t", "1 jobs leased", "leased_max"]);
    rig.set("t", rated(1, 100, 1));
    rig.run(ask(2)).unwrap();
    let id = rig.put_now("t").0;
    let error = rig.run(ask(id)).unwrap_err();
    says(&error, Code::Busy, &["rate", "try again in 100 ms"]);
    rig.pass(100);
    rig.run(ask(id)).unwrap();
}

#[test]
fn a_lease_that_ran_out_needs_a_slot_again_to_go_on() {
    let mut rig = with_jobs(slots(1), 2);
    let first = rig.take("t");
    rig.pass(first.ttr_ms);
    let second = rig.take("t");
    assert_ne!(first.id, second.id);
    says(&rig.extend(first.token, None).unwrap_err(), Code::Busy, &["leased_max"]);
    rig.ack(second.token).unwrap();
    rig.extend(first.token, None).unwrap();
    assert!(rig.reserve(&["t"], 10).is_empty());
    // Late is not wrong.
    rig.ack(first.token).unwrap();
}

#[test]
fn a_rate_gives_a_burst_and_then_one_at_each_interval() {
    let mut rig = with_jobs(rated(1, 10, 3), 8);
    assert_eq!(rig.reserve(&["t"], 10).len(), 3);
    assert_eq!(held_by(&mut rig, 4), Some(HeldBy::Rate));
    rig.pass(9);
    assert!(rig.reserve(&["t"], 10).is_empty());
    rig.pass(1);
    assert_eq!(rig.reserve(&["t"], 10).len(), 1);
    rig.pass(20);
    assert_eq!(rig.reserve(&["t"], 10).len(), 2);
}

#[test]
fn the_next_instant_of_a_rate_is_an_alarm() {
    let mut rig = with_jobs(rated(3, 10, 1), 4);
    let start = rig.now.steady_ms;
    rig.take("t");
    let mut given = Vec::new();
    for _ in 0..3 {
        let ticket = rig.begin(Command::Reserve(reserve(&["t"], 1, 60_000)));
        rig.tick();
        while rig.answer(ticket).is_none() {
            let wait_ms = rig.machine.next_wake(rig.now).expect("it sleeps for good");
            rig.pass(wait_ms.max(1));
        }
        given.push(rig.now.steady_ms - start);
    }
    assert_eq!(given, [3, 6, 10]);
    assert_eq!(rig.machine.next_wake(rig.now).map(|ms| ms > 0), Some(true));
}

#[test]
fn a_topic_that_is_held_does_not_hold_up_others() {
    let mut rig = with_jobs(slots(1), 2);
    rig.take("t");
    let other = rig.put_now("other");
    assert_eq!(ids(&rig.reserve(&["t", "other"], 10)), [other.0]);
}

#[test]
fn a_thousand_waiters_and_one_slot_lose_no_wake_up() {
    let mut rig = with_jobs(slots(1), 1_000);
    let mut waiters: Vec<_> =
        (0..1_000).map(|_| rig.begin(Command::Reserve(reserve(&["t"], 1, 60_000)))).collect();
    waiters.reverse();
    rig.tick();
    for served in 0..1_000 {
        let job = rig.answer(waiters.pop().unwrap());
        let mut job = jobs(job.unwrap_or_else(|| panic!("waiter {served} sleeps for good")));
        assert_eq!(rig.machine.leased_jobs(), 1);
        rig.ack(job.pop().unwrap().token).unwrap();
    }
}

#[test]
fn bad_limits_are_refused() {
    let rate = |jobs, per_ms, burst| Some(Rate { jobs, per_ms, burst });
    let none = Settings::default;
    let cases = [
        (Settings { leased_max: Some(0), ..none() }, "leased_max is 0 jobs"),
        (Settings { leased_max: Some(1_000_001), ..none() }, "give 1 to 1000000"),
        (Settings { group_leased_max: Some(0), ..none() }, "group_leased_max is 0 jobs"),
        (Settings { rate: rate(100, 0, 1), ..none() }, "rate counts per 0 ms"),
        (Settings { rate: rate(0, 1, 1), ..none() }, "rate is 0 jobs"),
        (Settings { rate: rate(1, 86_400_001, 1), ..none() }, "a day"),
        (Settings { rate: rate(1_001, 1, 1), ..none() }, "a million per second"),
        (Settings { group_rate: rate(1, 1, 0), ..none() }, "group_rate has a burst of 0"),
        (Settings { group_rate: rate(1, 1, 1_000_001), ..none() }, "give 1 to 1000000"),
    ];
    let mut rig = Rig::new();
    for (settings, words) in cases {
        let set = SetTopic { topic: topic("t"), settings };
        let error = rig.run(Command::from(set)).unwrap_err();
        says(&error, Code::Invalid, &[words]);
    }
    for group in ["".to_owned(), "g".repeat(257)] {
        let put = Put { group: Some(group.into()), ..Put::new(topic("t"), "body") };
        says(&rig.try_put(put).unwrap_err(), Code::Invalid, &["group has", "give 1 to 256"]);
    }
}

#[test]
fn a_group_is_given_and_shown() {
    let mut rig = Rig::new();
    let put = Put { group: Some(bytes("tenant")), ..Put::new(topic("t"), "body") };
    let id = rig.put(put);
    assert_eq!(rig.view(Target::Id(id)).unwrap().job.content.group, Some(bytes("tenant")));
    assert_eq!(rig.take("t").group, Some(bytes("tenant")));
    assert_eq!(rig.view(Target::Id(id)).unwrap().job.content.group, Some(bytes("tenant")));
}
