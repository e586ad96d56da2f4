//! Parked jobs: what a step costs at most, what statistics say, and clocks that are set.

use std::time::Instant;

use dormouse_core::backend::{Request, Ticket};
use dormouse_core::command::Command;
use dormouse_core::job::JobId;
use dormouse_core::limits::{GROUP_TICK_MAX, TICK_MAX};
use dormouse_core::machine::{Machine, Output};
use dormouse_core::op::*;
use dormouse_core::topic::Settings;

use crate::groups::{of_group, parked, slots, with_jobs};
use crate::support::*;

/// Ticks until the request is answered. Gives the answer, and the most facts of a tick.
fn served(rig: &mut Rig, reserve: Reserve) -> (Vec<LeasedJob>, usize) {
    let before = rig.facts.len();
    let ticket = rig.begin(Command::Reserve(reserve));
    let mut facts = rig.facts.len() - before;
    for _ in 0..1_000 {
        if let Some(answer) = rig.answer(ticket) {
            return (jobs(answer), facts);
        }
        let before = rig.facts.len();
        (rig.now.steady_ms, rig.now.wall_ms) = (rig.now.steady_ms + 1, rig.now.wall_ms + 1);
        rig.tick();
        facts = facts.max(rig.facts.len() - before);
    }
    panic!("it is not served");
}

/// A topic whose group `a` is full and has so many ready jobs in the line, before one of `b`: they
/// were put before there was a limit.
fn flooded(jobs: usize) -> Rig {
    let mut rig = with_jobs(Settings::default(), &"a".repeat(jobs + 1));
    rig.put(of_group("b"));
    rig.put_now("other");
    rig.set("t", slots(1));
    assert_eq!(rig.take("t").id, JobId(1));
    rig
}

#[test]
fn a_flood_is_passed_in_portions_even_without_a_wait() {
    let mut rig = flooded(3_000);
    let (taken, facts) = served(&mut rig, reserve(&["t"], 1, 0));
    assert_eq!(ids(&taken), [3_002]);
    assert!(facts <= 300, "one tick wrote {facts} facts");
    assert_eq!(parked(&rig), 3_000);
    // It is passed once.
    rig.put(of_group("c"));
    let (taken, facts) = served(&mut rig, reserve(&["t"], 1, 0));
    assert_eq!((ids(&taken), facts), (vec![3_004], 1));
}

#[test]
fn another_topic_is_served_while_a_flood_is_passed() {
    let mut rig = flooded(3_000);
    let ticket = rig.begin(Command::Reserve(reserve(&["t"], 1, 60_000)));
    rig.tick();
    // Both one that comes now, and one that waited.
    assert_eq!(rig.reserve(&["other"], 1).len(), 1);
    let waits = rig.begin(Command::Reserve(reserve(&["later"], 1, 60_000)));
    rig.put_now("later");
    rig.tick();
    rig.tick();
    assert!(rig.answer(waits).is_some());
    assert!(rig.answer(ticket).is_none(), "the flood was passed too soon for this test");
}

/// Without the checks of the rig, which look at all jobs.
#[test]
#[ignore = "a measurement: 200,000 jobs"]
fn measure_a_flood() {
    let mut rig = with_jobs(slots(1), "a");
    rig.take("t");
    rig.set("t", Settings::default());
    let Rig { mut machine, now, .. } = rig;
    let mut out = Output::default();
    let mut step = |machine: &mut Machine<_>, number: u64, command| {
        let request = Request::new(Ticket(1_000_000 + number), command);
        machine.step(now, request, &mut out).unwrap();
        std::mem::take(&mut out).answers.len()
    };
    for batch in 0..50 {
        let puts = (0..4_000).map(|_| of_group("a")).collect();
        step(&mut machine, batch, Command::Put(puts));
    }
    step(&mut machine, 50, Command::Put(vec![of_group("b")]));
    let limited = SetTopic { topic: topic("t"), settings: slots(1) };
    step(&mut machine, 51, Command::from(limited));
    let began = Instant::now();
    let mut answers = step(&mut machine, 52, Command::Reserve(reserve(&["t"], 1, 0)));
    let (mut longest, mut ticks) = (began.elapsed(), 0);
    while answers == 0 {
        let (mut out, began) = (Output::default(), Instant::now());
        machine.tick(now, &mut out).unwrap();
        (longest, ticks) = (longest.max(began.elapsed()), ticks + 1);
        answers = out.answers.len();
    }
    println!("{:?} in all, {ticks} ticks, {longest:?} the longest", began.elapsed());
}

#[test]
fn a_job_of_a_full_group_is_put_beside_the_line() {
    let mut rig = with_jobs(slots(1), "a");
    let first = rig.take("t");
    let facts = rig.facts.len();
    rig.put(of_group("a"));
    rig.put(Put { delay_ms: Some(1_000), ..of_group("a") });
    rig.put(of_group("b"));
    assert_eq!((parked(&rig), rig.facts.len() - facts), (1, 3));
    rig.ack(first.token).unwrap();
    assert_eq!(ids(&rig.reserve(&["t"], 10)), [2, 4]);
}

#[test]
fn changed_settings_are_noticed_in_portions() {
    let mut rig = Rig::new();
    rig.set("t", slots(1));
    let groups = 3 * GROUP_TICK_MAX;
    for group in 0..2 * groups {
        rig.put(of_group(&format!("{}", group % groups)));
    }
    assert_eq!(rig.reserve(&["t"], 4_096).len(), groups);
    assert!(served(&mut rig, reserve(&["t"], 1, 0)).0.is_empty());
    assert_eq!(parked(&rig), groups);
    let facts = rig.facts.len();
    rig.begin(Command::from(SetTopic { topic: topic("t"), settings: slots(2) }));
    assert_eq!(rig.facts.len() - facts, 1);
    let mut taken = 0;
    for _ in 0..20 {
        let facts = rig.facts.len();
        rig.tick();
        assert!(rig.facts.len() - facts <= TICK_MAX, "a tick does too much");
        taken += rig.reserve(&["t"], 4_096).len();
    }
    assert_eq!((taken, parked(&rig)), (groups, 0));
}

#[test]
fn parked_jobs_count_as_urgent_and_as_the_oldest() {
    let mut rig = with_jobs(slots(1), "a");
    rig.take("t");
    rig.put(Put { priority: Some(5), ..of_group("a") });
    rig.pass(10);
    rig.put(of_group("a"));
    rig.put(Put { priority: Some(5), ..of_group("b") });
    assert_eq!(parked(&rig), 2);
    let stats = rig.stats("t").unwrap();
    assert_eq!((stats.ready, stats.urgent, stats.oldest_ready_ms), (3, 2, Some(10)));
    rig.take("t");
    let stats = rig.stats("t").unwrap();
    assert_eq!((stats.ready, stats.urgent, stats.oldest_ready_ms), (2, 1, Some(10)));
}

/// A job due by the calendar that is ready no more must not hold up its group.
#[test]
fn a_wall_clock_that_is_set_back_holds_up_no_group() {
    for is_candidate in [false, true] {
        let mut rig = with_jobs(slots(1), "a");
        let first = rig.take("t");
        let at_ms = Some(rig.now.wall_ms as i64);
        rig.put(Put { priority: Some(0), at_ms, ..of_group("a") });
        let next = rig.put(of_group("a"));
        assert_eq!(parked(&rig), 2);
        if is_candidate {
            rig.ack(first.token).unwrap();
            assert_eq!(parked(&rig), 1);
        }
        rig.now.wall_ms -= 3_600_000;
        rig.tick();
        if !is_candidate {
            rig.ack(first.token).unwrap();
        }
        (0..3).for_each(|_| rig.tick());
        assert_eq!(ids(&rig.reserve(&["t"], 10)), [next.0], "{is_candidate}");
    }
}

#[test]
fn a_purge_forgets_lanes_and_keeps_what_is_leased() {
    let mut rig = with_jobs(slots(1), "aabb");
    let taken = rig.reserve(&["t"], 10);
    rig.ack(taken[0].token).unwrap();
    rig.run(Command::Purge(topic("t").into())).unwrap();
    assert_eq!(parked(&rig), 0);
    for group in ["a", "a", "b"] {
        rig.put(of_group(group));
    }
    assert_eq!(ids(&rig.reserve(&["t"], 10)), [5]);
    rig.ack(taken[1].token).unwrap();
    assert_eq!(ids(&rig.reserve(&["t"], 10)), [7]);
    rig.set("t", Settings::default());
    rig.tick();
    assert_eq!(ids(&rig.reserve(&["t"], 10)), [6]);
}
