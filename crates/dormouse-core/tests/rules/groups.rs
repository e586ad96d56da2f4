//! Limits of groups: a full group waits beside the line, and everybody else goes on.

use dormouse_core::command::Command;
use dormouse_core::error::Code;
use dormouse_core::job::{JobId, State};
use dormouse_core::limits::GROUP_LINE_MAX;
use dormouse_core::machine::{Machine, Output};
use dormouse_core::op::*;
use dormouse_core::rate::Rate;
use dormouse_core::timeline::memory::MemoryTimeline;
use dormouse_core::topic::Settings;

use crate::replay::{image, restored};
use crate::support::*;

pub(crate) fn slots(group_leased_max: u64) -> Settings {
    Settings { group_leased_max: Some(group_leased_max), ..Settings::default() }
}

pub(crate) fn of_group(group: &str) -> Put {
    Put { group: Some(bytes(group)), ..Put::new(topic("t"), "body") }
}

/// A topic `t` with these settings and ready jobs of these groups, a letter each.
pub(crate) fn with_jobs(settings: Settings, groups: &str) -> Rig {
    let mut rig = Rig::new();
    rig.set("t", settings);
    for group in groups.chars() {
        rig.put(of_group(&group.to_string()));
    }
    rig
}

pub(crate) fn parked(rig: &Rig) -> usize {
    rig.machine.timeline().iter().filter(|(place, _)| place.class.is_parked()).count()
}

/// Stops the machine and starts one that knows what was written.
fn restart(rig: &mut Rig) {
    let facts = rig.facts.clone();
    rig.machine = Machine::new(MemoryTimeline::new());
    facts.into_iter().for_each(|fact| rig.machine.replay(fact));
    recover(rig);
}

fn recover(rig: &mut Rig) {
    let mut out = Output::default();
    rig.machine.recovered(rig.now, &mut out).unwrap();
    rig.facts.append(&mut out.facts);
    rig.tick();
}

#[test]
fn a_full_group_does_not_hold_up_others_and_keeps_its_order() {
    let mut rig = with_jobs(slots(1), "aaabab");
    let taken = rig.reserve(&["t"], 10);
    assert_eq!(ids(&taken), [1, 4]);
    assert_eq!(parked(&rig), 4);
    let stats = rig.stats("t").unwrap();
    assert_eq!((stats.ready, stats.counts.leased), (4, 2));
    let view = rig.view(Target::Id(JobId(2))).unwrap();
    assert_eq!((view.state, view.held_by), (State::Ready, Some(HeldBy::GroupLeasedMax)));
    assert_eq!((view.due_at, view.job.progress.attempts), (WALL_0, 0));
    for (token, next) in [(taken[0].token, 2), (taken[1].token, 6)] {
        rig.ack(token).unwrap();
        assert_eq!(ids(&rig.reserve(&["t"], 10)), [next]);
    }
}

#[test]
fn jobs_without_a_group_are_not_limited() {
    let mut rig = with_jobs(slots(1), "aa");
    rig.put_now("t");
    rig.put_now("t");
    assert_eq!(ids(&rig.reserve(&["t"], 10)), [1, 3, 4]);
}

/// Whatever ends a lease gives its slot to its group.
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
        let mut rig = with_jobs(slots(1), "aaa");
        let first = rig.take("t");
        let ticket = rig.begin(Command::Reserve(reserve(&["t"], 1, 60_000)));
        rig.tick();
        assert!(rig.answer(ticket).is_none(), "{name}");
        assert_eq!(parked(&rig), 2, "{name}");
        end(&mut rig, &first);
        rig.tick();
        let job = jobs(rig.answer(ticket).unwrap_or_else(|| panic!("{name} woke nobody")));
        assert_eq!(job.len(), 1, "{name}");
    }
}

/// The candidate of a group may leave otherwise than by being taken.
#[test]
fn a_candidate_that_leaves_is_followed_by_the_next() {
    type Leave = fn(&mut Rig, JobId);
    let ways: [(&str, Leave); 5] = [
        ("cancel", |rig, id| assert!(rig.cancel(Target::Id(id)).is_ok())),
        ("kill", |rig, id| assert!(rig.kill(KillTarget::Resting(Target::Id(id))).is_ok())),
        ("reschedule", |rig, id| {
            let item = Reschedule { target: Target::Id(id), delay_ms: Some(60_000), at_ms: None };
            rig.run(Command::Reschedule(vec![item])).unwrap();
        }),
        ("reserve_id", |rig, id| {
            let job =
                jobs(rig.run(Command::ReserveId(ReserveId { id, ttr_ms: None, session: None })));
            rig.ack(job[0].token).unwrap();
        }),
        ("expire", |rig, _| rig.pass(0)),
    ];
    for (name, leave) in ways {
        let mut rig = with_jobs(slots(1), "aaa");
        let first = rig.take("t");
        assert!(rig.reserve(&["t"], 1).is_empty());
        rig.ack(first.token).unwrap();
        assert_eq!(parked(&rig), 1, "{name}: the candidate is back at its place");
        leave(&mut rig, JobId(2));
        let next = if name == "expire" { 2 } else { 3 };
        assert_eq!(ids(&rig.reserve(&["t"], 10)), [next], "{name}");
    }
}

#[test]
fn a_parked_job_is_found_and_changed_as_any_other() {
    let mut rig = with_jobs(slots(1), "a");
    rig.take("t");
    let put = |key: &str| Put { key: Some(bytes(key)), ..of_group("a") };
    let ids: Vec<_> = ["k", "l", "m", "n"].iter().map(|key| rig.put(put(key))).collect();
    assert!(rig.reserve(&["t"], 10).is_empty());
    assert_eq!(parked(&rig), 4);
    rig.cancel(by_key("t", "k")).unwrap();
    rig.kill(KillTarget::Resting(Target::Id(ids[1]))).unwrap();
    assert_eq!(rig.state(ids[1]), Some(State::Dead));
    rig.put(Put { on_conflict: OnConflict::Replace, delay_ms: Some(5), ..put("m") });
    assert_eq!(rig.state(ids[2]), Some(State::Delayed));
    assert_eq!(parked(&rig), 1);
    let list = List {
        topic: topic("t"),
        state: State::Ready,
        cursor: None,
        limit: 10,
        range: ListRange::default(),
    };
    let ticket = rig.begin(Command::List(list));
    rig.tick();
    let page = rig.answer(ticket).unwrap().unwrap();
    assert!(format!("{page:?}").contains(&format!("JobId({})", ids[3].0)), "{page:?}");
    rig.run(Command::Purge(topic("t").into())).unwrap();
    assert_eq!(parked(&rig), 0);
    rig.put(of_group("a"));
    assert!(rig.reserve(&["t"], 10).is_empty(), "the lease is still there");
}

#[test]
fn priorities_of_a_group_are_kept() {
    let mut rig = with_jobs(slots(1), "aa");
    let first = rig.take("t");
    assert!(rig.reserve(&["t"], 1).is_empty());
    let urgent = rig.put(Put { priority: Some(1), ..of_group("a") });
    assert!(rig.reserve(&["t"], 1).is_empty());
    let more_urgent = rig.put(Put { priority: Some(0), ..of_group("a") });
    rig.ack(first.token).unwrap();
    for id in [more_urgent, urgent, JobId(2)] {
        let job = rig.take("t");
        assert_eq!(job.id, id);
        rig.ack(job.token).unwrap();
    }
}

#[test]
fn a_rate_of_groups_counts_for_each_and_is_an_alarm() {
    let group_rate = Some(Rate { jobs: 1, per_ms: 10, burst: 1 });
    let mut rig = with_jobs(Settings { group_rate, ..Settings::default() }, "aaabbb");
    assert_eq!(ids(&rig.reserve(&["t"], 10)), [1, 4]);
    assert_eq!(rig.view(Target::Id(JobId(2))).unwrap().held_by, Some(HeldBy::GroupRate));
    let ticket = rig.begin(Command::Reserve(reserve(&["t"], 10, 60_000)));
    rig.pass(9);
    assert!(rig.answer(ticket).is_none());
    rig.pass(1);
    assert_eq!(ids(&jobs(rig.answer(ticket).expect("no alarm"))), [2, 5]);
    assert!(rig.reserve(&["t"], 10).is_empty());
    rig.pass(100);
    assert_eq!(rig.reserve(&["t"], 10).len(), 2);
}

#[test]
fn a_given_job_obeys_its_group() {
    let mut rig = with_jobs(slots(1), "aa");
    let first = rig.take("t");
    let ask = Command::ReserveId(ReserveId { id: JobId(2), ttr_ms: None, session: None });
    says(&rig.run(ask.clone()).unwrap_err(), Code::Busy, &["group a", "group_leased_max"]);
    rig.pass(first.ttr_ms);
    rig.run(ask).unwrap();
    says(&rig.extend(first.token, None).unwrap_err(), Code::Busy, &["group_leased_max"]);
}

#[test]
fn a_restart_finds_leases_and_parked_jobs() {
    let by_checkpoint = |rig: &mut Rig| {
        let before = image(&rig.machine, rig.now);
        rig.machine = restored(&before, rig.machine.timeline().clone());
        recover(rig);
    };
    let starts: [fn(&mut Rig); 2] = [restart, by_checkpoint];
    for start in starts {
        let mut rig = with_jobs(slots(1), "aaabbb");
        let taken = rig.reserve(&["t"], 10);
        assert_eq!(parked(&rig), 4);
        start(&mut rig);
        assert_eq!(parked(&rig), 4);
        rig.put(of_group("c"));
        assert_eq!(ids(&rig.reserve(&["t"], 10)), [7]);
        rig.ack(taken[0].token).unwrap();
        assert_eq!(ids(&rig.reserve(&["t"], 10)), [2]);
        // Also where the limits are gone.
        rig.set("t", Settings::default());
        start(&mut rig);
        assert_eq!(ids(&rig.reserve(&["t"], 10)), [3, 5, 6]);
    }
}

#[test]
fn a_thousand_waiters_and_one_slot_lose_no_wake_up() {
    let mut rig = with_jobs(slots(1), &"a".repeat(1_000));
    let mut waiters: Vec<_> =
        (0..1_000).map(|_| rig.begin(Command::Reserve(reserve(&["t"], 1, 60_000)))).collect();
    waiters.reverse();
    rig.pass(0);
    for served in 0..1_000 {
        let job = rig.answer(waiters.pop().unwrap());
        let mut job = jobs(job.unwrap_or_else(|| panic!("waiter {served} sleeps for good")));
        assert_eq!(rig.machine.leased_jobs(), 1);
        rig.ack(job.pop().unwrap().token).unwrap();
        rig.pass(0);
    }
}

/// They were all in line, and whoever came after them waited until each had been passed.
#[test]
fn a_flood_of_one_group_is_no_line_for_others() {
    const FLOOD: usize = 2_000;
    let mut rig = Rig::new();
    rig.set("t", slots(1));
    for _ in 0..FLOOD {
        rig.put(of_group("a"));
    }
    // One of those that were parked is the candidate of its group.
    assert_eq!(parked(&rig), FLOOD - GROUP_LINE_MAX as usize - 1);
    rig.put(of_group("b"));
    let taken = rig.reserve(&["t"], 10);
    assert_eq!(ids(&taken), [1, FLOOD as u64 + 1]);
    // All of them come, in their order.
    let mut last = taken[0].clone();
    for id in 2..=FLOOD as u64 {
        rig.ack(last.token).unwrap();
        last = rig.reserve(&["t"], 10).remove(0);
        assert_eq!(last.id, JobId(id));
    }
}

/// It was parked because the line was long, and waited behind the candidate of its group.
#[test]
fn an_urgent_job_of_a_flooded_topic_comes_first() {
    let mut rig = Rig::new();
    rig.set("t", slots(1_000));
    for _ in 0..2 * GROUP_LINE_MAX {
        rig.put(of_group("a"));
    }
    let urgent: Vec<_> = [2, 1, 3]
        .map(|priority| rig.put(Put { priority: Some(priority), ..of_group("a") }))
        .into_iter()
        .collect();
    for id in [urgent[1], urgent[0], urgent[2], JobId(1)] {
        assert_eq!(rig.take("t").id, id);
    }
}

/// Its lanes go in portions: new jobs come to lanes that are not gone yet.
#[test]
fn a_purge_of_many_full_groups_forgets_no_job_after_it() {
    const GROUPS: usize = 60;
    let mut rig = Rig::new();
    rig.set("t", slots(1));
    let put_all = |rig: &mut Rig| {
        for number in 0..GROUPS {
            rig.put(of_group(&number.to_string()));
        }
    };
    put_all(&mut rig);
    put_all(&mut rig);
    let taken = rig.reserve(&["t"], GROUPS);
    assert_eq!(taken.len(), GROUPS);
    // Half of the groups have a candidate, the others a parked job.
    for job in &taken[..GROUPS / 2] {
        rig.ack(job.token).unwrap();
    }
    rig.run(Command::Purge(topic("t").into())).unwrap();
    put_all(&mut rig);
    put_all(&mut rig);
    let mut given = rig.reserve(&["t"], GROUPS);
    assert_eq!(given.len(), GROUPS / 2);
    for job in &taken[GROUPS / 2..] {
        rig.ack(job.token).unwrap();
    }
    let mut count = 0;
    while !given.is_empty() {
        count += given.len();
        for job in given {
            rig.ack(job.token).unwrap();
        }
        given = rig.reserve(&["t"], GROUPS);
    }
    assert_eq!((count, parked(&rig)), (2 * GROUPS, 0));
}
