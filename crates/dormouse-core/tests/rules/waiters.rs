//! Reserves that wait.

use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply};
use dormouse_core::limits::TICK_MAX;
use dormouse_core::op::*;

use crate::support::*;

fn wait(rig: &mut Rig, names: &[&str], max: usize) -> Ticket {
    let ticket = rig.begin(Command::Reserve(reserve(names, max, 60_000)));
    rig.tick();
    ticket
}

fn given(rig: &mut Rig, ticket: Ticket) -> Option<Vec<u64>> {
    rig.answer(ticket).map(|answer| ids(&jobs(answer)))
}

#[test]
fn a_waiting_reserve_is_answered_when_a_job_comes_or_comes_due() {
    let mut rig = Rig::new();
    let ticket = wait(&mut rig, &["t"], 5);
    assert_eq!(given(&mut rig, ticket), None);
    let id = rig.put_now("t");
    assert_eq!(given(&mut rig, ticket), Some(vec![id.0]));
    let later = rig.put_in("t", 700);
    let ticket = wait(&mut rig, &["t"], 5);
    assert_eq!(rig.machine.next_wake(rig.now), Some(700));
    let sooner = rig.put_in("t", 200);
    assert_eq!(rig.machine.next_wake(rig.now), Some(200));
    rig.pass(199);
    assert_eq!(given(&mut rig, ticket), None);
    rig.pass(1);
    assert_eq!(given(&mut rig, ticket), Some(vec![sooner.0]));
    let ticket = wait(&mut rig, &["t"], 5);
    rig.pass(500);
    assert_eq!(given(&mut rig, ticket), Some(vec![later.0]));
}

#[test]
fn first_come_first_served() {
    let mut rig = Rig::new();
    let first = wait(&mut rig, &["t"], 1);
    let second = wait(&mut rig, &["t", "u"], 2);
    // A newcomer asks in the same breath as the job comes: who waits goes first.
    rig.begin(Command::Put(vec![Put::new(topic("t"), "")]));
    let newcomer = rig.begin(Command::Reserve(reserve(&["t"], 1, 0)));
    assert_eq!(given(&mut rig, newcomer), Some(vec![]));
    assert_eq!(given(&mut rig, first), Some(vec![1]));
    assert_eq!(given(&mut rig, second), None);
    rig.run(Command::Put(vec![Put::new(topic("u"), ""), Put::new(topic("t"), "")])).unwrap();
    assert_eq!(given(&mut rig, second), Some(vec![2, 3]));
    assert_eq!(rig.machine.waiting_requests(), 0);
}

#[test]
fn a_wait_ends_empty() {
    let mut rig = Rig::new();
    let ticket = wait(&mut rig, &["t", "u"], 1);
    rig.pass(59_999);
    assert_eq!(given(&mut rig, ticket), None);
    rig.pass(1);
    assert_eq!(given(&mut rig, ticket), Some(vec![]));
    rig.put_now("t");
    assert_eq!(rig.stats("t").unwrap().ready, 1, "nobody took it for one who has left");
}

#[test]
fn a_withdrawn_reserve_takes_nothing() {
    let mut rig = Rig::new();
    let ticket = wait(&mut rig, &["t"], 1);
    assert_eq!(rig.run(Command::Withdraw(ticket)), Ok(Reply::Done));
    assert_eq!(given(&mut rig, ticket), Some(vec![]));
    assert_eq!(rig.run(Command::Withdraw(ticket)), Ok(Reply::Done));
    rig.put_now("t");
    assert_eq!(rig.stats("t").unwrap().ready, 1);
}

#[test]
fn a_resume_or_the_end_of_a_pause_wakes() {
    let mut rig = Rig::new();
    rig.put_now("t");
    let pause = |for_ms| Command::Pause(PauseTopic { topic: topic("t"), for_ms });
    rig.run(pause(Some(300))).unwrap();
    let ticket = wait(&mut rig, &["t"], 1);
    assert_eq!(rig.machine.next_wake(rig.now), Some(300));
    rig.pass(300);
    assert_eq!(given(&mut rig, ticket), Some(vec![1]));
    rig.put_now("t");
    rig.run(pause(None)).unwrap();
    let ticket = wait(&mut rig, &["t"], 1);
    rig.pass(1_000);
    assert_eq!(given(&mut rig, ticket), None);
    rig.run(Command::Resume(topic("t"))).unwrap();
    assert_eq!(given(&mut rig, ticket), Some(vec![2]));
}

#[test]
fn whatever_makes_a_job_ready_wakes() {
    type Wake = fn(&mut Rig, LeasedJob);
    let wakes: [(&str, Wake); 6] = [
        ("release", |rig, lease| assert!(rig.release(lease.token).is_ok())),
        ("expiry", |rig, _| rig.pass(60_000)),
        ("revive", |rig, lease| {
            rig.kill(KillTarget::Token(lease.token)).unwrap();
            rig.revive(Target::Id(lease.id)).unwrap();
        }),
        ("run now", |rig, lease| {
            rig.nack(lease.token).unwrap();
            rig.run_now(Target::Id(lease.id)).unwrap();
        }),
        ("kick", |rig, lease| {
            rig.nack(lease.token).unwrap();
            rig.run(Command::Kick(Kick { topic: topic("t"), max: 1 })).unwrap();
        }),
        ("backoff", |rig, lease| {
            rig.nack(lease.token).unwrap();
            rig.pass(1_000);
        }),
    ];
    for (how, wake) in wakes {
        let mut rig = Rig::new();
        rig.put_now("t");
        let lease = rig.take("t");
        rig.pass(1);
        let ticket = wait(&mut rig, &["t"], 1);
        wake(&mut rig, lease);
        assert_eq!(given(&mut rig, ticket), Some(vec![1]), "{how}");
    }
}

#[test]
fn a_sync_wakes_what_waits_for_a_put_to_be_durable() {
    let mut rig = Rig::new();
    let ticket = wait(&mut rig, &["t"], 1);
    rig.machine.set_batch(5);
    rig.put_now("t");
    assert_eq!(given(&mut rig, ticket), None);
    assert!(rig.machine.next_wake(rig.now) > Some(0));
    rig.machine.timeline_mut().set_synced(5);
    rig.machine.synced();
    assert_eq!(rig.machine.next_wake(rig.now), Some(0));
    rig.tick();
    assert_eq!(given(&mut rig, ticket), Some(vec![1]));
}

#[test]
fn a_wall_clock_set_forward_wakes() {
    let mut rig = Rig::new();
    rig.put(Put { at_ms: Some((WALL_0 + 9_000) as i64), ..Put::new(topic("t"), "") });
    let ticket = wait(&mut rig, &["t"], 1);
    rig.now.wall_ms += 9_000;
    rig.tick();
    assert_eq!(given(&mut rig, ticket), Some(vec![1]));
}

#[test]
fn a_tick_is_bounded_and_says_so() {
    let mut rig = Rig::new();
    for _ in 0..5_000 {
        let reserve = reserve(&["t"], 1, 60_000);
        rig.begin(Command::Reserve(reserve));
    }
    rig.tick();
    assert_eq!(rig.machine.waiting_requests(), 5_000);
    rig.now.steady_ms += 60_000;
    rig.tick();
    let left = rig.machine.waiting_requests();
    assert!(left > 0 && rig.machine.next_wake(rig.now) == Some(0));
    let ticks_left = left.div_ceil(TICK_MAX);
    (0..ticks_left).for_each(|_| rig.tick());
    assert_eq!(rig.machine.waiting_requests(), 0);
    assert_eq!(rig.machine.next_wake(rig.now), None);
}

/// A hundred thousand requests may wait when the wall clock is set.
#[test]
fn a_stepped_wall_clock_is_noticed_in_portions() {
    let mut rig = Rig::new();
    let count = 2 * TICK_MAX + 10;
    let names: Vec<String> = (0..count).map(|n| format!("t{n}")).collect();
    let due_at = Some((WALL_0 + 9_000) as i64);
    for name in &names {
        rig.begin(Command::Put(vec![Put { at_ms: due_at, ..Put::new(topic(name), "") }]));
    }
    let wait = |name: &String| reserve(&[name.as_str()], 1, 60_000);
    let tickets: Vec<_> =
        names.iter().map(|name| rig.begin(Command::Reserve(wait(name)))).collect();
    rig.pass(0);
    assert_eq!(rig.machine.waiting_requests(), count);
    // As the clock is set, the waits end: who waited gets a job all the same.
    rig.now.wall_ms += 9_000;
    rig.now.steady_ms += 60_000;
    rig.tick();
    assert!(rig.machine.waiting_requests() >= count - TICK_MAX, "one tick does not look at all");
    assert_eq!(rig.machine.next_wake(rig.now), Some(0));
    rig.pass(100);
    assert!(tickets.into_iter().all(|ticket| given(&mut rig, ticket).unwrap().len() == 1));
}

#[test]
fn a_consumer_of_many_topics_costs_no_wake_up_of_the_others() {
    let mut rig = Rig::new();
    let names: Vec<String> = (0..100).map(|n| format!("t{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let ticket = wait(&mut rig, &names, 1);
    rig.put_in("t50", 1_000);
    rig.put_in("t51", 2_000);
    assert_eq!(rig.machine.next_wake(rig.now), Some(1_000));
    rig.pass(1_000);
    assert_eq!(given(&mut rig, ticket), Some(vec![1]));
    assert_eq!(rig.machine.next_wake(rig.now), Some(60_000));
}
