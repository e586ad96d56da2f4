//! kill, revive, dead_max, dead_ttl, cancel, reschedule.

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::job::{JobId, State};
use dormouse_core::op::*;
use dormouse_core::topic::Settings;

use crate::support::*;

fn killed(rig: &mut Rig, name: &str) -> JobId {
    let id = rig.put_now(name);
    rig.kill(KillTarget::Resting(Target::Id(id))).unwrap();
    id
}

#[test]
fn kill_takes_delayed_and_ready_jobs_and_leased_ones_with_their_token() {
    let mut rig = Rig::new();
    for delay_ms in [0, 1_000] {
        let id = rig.put_in("t", delay_ms);
        let kill = Kill {
            target: KillTarget::Resting(Target::Id(id)),
            error: Some(bytes("why")),
            priority: Some(2),
        };
        let answer = rig.run(Command::Kill(vec![kill]));
        assert_eq!(answer, Ok(Reply::Ended(vec![Ok(EndReply::Done)])));
        let view = rig.view(Target::Id(id)).unwrap();
        assert_eq!((view.state, view.due_at), (State::Dead, WALL_0));
        assert_eq!(view.job.progress.error, Some(bytes("why")));
        assert_eq!((view.job.progress.kills, view.job.progress.priority), (1, 2));
        let again = rig.kill(KillTarget::Resting(Target::Id(id))).unwrap_err();
        assert_eq!((again.code, again.job), (Code::Conflict, Some((id, State::Dead))));
    }
    rig.put_now("t");
    let lease = rig.take("t");
    let other = rig.kill(KillTarget::Resting(Target::Id(lease.id))).unwrap_err();
    assert_eq!((other.code, other.job), (Code::Conflict, Some((lease.id, State::Leased))));
    assert_eq!(rig.kill(KillTarget::Token(lease.token)), Ok(EndReply::Done));
    assert_eq!(code(rig.kill(KillTarget::Token(lease.token))), Code::LeaseLost);
    assert_eq!(code(rig.kill(KillTarget::Resting(Target::Id(JobId(99))))), Code::NotFound);
}

#[test]
fn a_revived_job_has_a_fresh_budget() {
    let mut rig = Rig::new();
    let put = Put { attempts_max: Some(1), key: Some(bytes("k")), ..Put::new(topic("t"), "") };
    let id = rig.put(put);
    let lease = rig.take("t");
    assert_eq!(rig.nack(lease.token), Ok(EndReply::Dead));
    rig.pass(50);
    let changed = rig.revive(by_key("t", "k")).unwrap();
    assert_eq!(changed, ChangeReply { id, was: State::Dead, due_at: WALL_0 + 50 });
    let again = rig.take("t");
    assert_eq!((again.attempt, again.late_ms), (1, 0));
    assert_eq!(rig.view(Target::Id(id)).unwrap().job.progress.kicks, 1);
    let error = rig.revive(Target::Id(id)).unwrap_err();
    assert_eq!((error.code, error.job), (Code::Conflict, Some((id, State::Leased))));
}

#[test]
fn revive_of_a_topic_takes_the_oldest_first() {
    let mut rig = Rig::new();
    let mut dead = Vec::new();
    for _ in 0..5 {
        dead.push(killed(&mut rig, "t"));
        rig.pass(1);
    }
    let revive = |max| Command::ReviveTopic(ReviveTopic { topic: topic("t"), max });
    assert_eq!(rig.run(revive(2)), Ok(Reply::Count(2)));
    assert_eq!(ids(&rig.reserve(&["t"], 10)), [dead[0].0, dead[1].0]);
    assert_eq!(rig.run(revive(100)), Ok(Reply::Count(3)));
    assert_eq!(rig.run(revive(100)), Ok(Reply::Count(0)));
    let none = Command::ReviveTopic(ReviveTopic { topic: topic("none"), max: 1 });
    assert_eq!(rig.run(none), Ok(Reply::Count(0)));
}

#[test]
fn dead_max_lets_the_oldest_go() {
    let mut rig = Rig::new();
    rig.set("t", Settings { dead_max: Some(2), ..Settings::default() });
    let mut dead = Vec::new();
    for _ in 0..4 {
        dead.push(killed(&mut rig, "t"));
        rig.pass(1);
        assert!(rig.stats("t").unwrap().counts.dead <= 2);
    }
    assert_eq!(rig.state(dead[1]), None);
    assert_eq!(rig.state(dead[2]), Some(State::Dead));
    rig.set("t", Settings { dead_max: Some(0), ..Settings::default() });
    assert_eq!(rig.stats("t").unwrap().counts.dead, 0);
    killed(&mut rig, "t");
    assert_eq!(rig.stats("t").unwrap().counts.dead, 0);
}

#[test]
fn dead_ttl_lets_them_go_in_time() {
    let mut rig = Rig::new();
    rig.set("t", Settings { dead_ttl_ms: Some(1_000), ..Settings::default() });
    let first = killed(&mut rig, "t");
    rig.pass(400);
    let second = killed(&mut rig, "t");
    assert_eq!(rig.machine.next_wake(rig.now), Some(600));
    rig.pass(599);
    assert_eq!(rig.state(first), Some(State::Dead));
    rig.pass(1);
    assert_eq!(rig.state(first), None);
    assert_eq!(rig.state(second), Some(State::Dead));
    rig.pass(400);
    assert_eq!(rig.state(second), None);
    // Set later, it works for those that are dead already.
    let third = killed(&mut rig, "u");
    rig.pass(5_000);
    rig.set("u", Settings { dead_ttl_ms: Some(5_000), ..Settings::default() });
    assert_eq!(rig.state(third), None);
}

#[test]
fn trimming_is_done_in_portions() {
    let mut rig = Rig::new();
    for _ in 0..3 {
        let puts = (0..2_000).map(|_| Put::new(topic("t"), "")).collect();
        let Ok(Reply::Put(replies)) = rig.run(Command::Put(puts)) else { panic!() };
        let kill = |reply: Result<PutReply, _>| Kill {
            target: KillTarget::Resting(Target::Id(reply.unwrap().id)),
            error: None,
            priority: None,
        };
        rig.run(Command::Kill(replies.into_iter().map(kill).collect())).unwrap();
    }
    rig.set("t", Settings { dead_max: Some(10), ..Settings::default() });
    let left = rig.stats("t").unwrap().counts.dead;
    assert!(left > 10, "one tick is bounded");
    rig.pass(0);
    assert_eq!(rig.stats("t").unwrap().counts.dead, 10);
}

#[test]
fn cancel_says_exactly_what_happened() {
    let mut rig = Rig::new();
    let delayed = rig.put_in("t", 500);
    let changed = rig.cancel(Target::Id(delayed)).unwrap();
    assert_eq!(changed, ChangeReply { id: delayed, was: State::Delayed, due_at: WALL_0 + 500 });
    assert_eq!(code(rig.cancel(Target::Id(delayed))), Code::NotFound);
    let dead = killed(&mut rig, "t");
    assert_eq!(rig.cancel(Target::Id(dead)).unwrap().was, State::Dead);
    let ready = rig.put(Put { key: Some(bytes("k")), ..Put::new(topic("t"), "") });
    assert_eq!(rig.cancel(by_key("t", "k")).unwrap().id, ready);
    assert_eq!(rig.stats("t").unwrap_err().code, Code::NotFound);
}

#[test]
fn cancel_of_a_leased_job_revokes_its_token() {
    let mut rig = Rig::new();
    rig.put_now("t");
    let lease = rig.take("t");
    let cancel = Cancel { target: Target::Id(lease.id), unless_leased: true };
    let Ok(Reply::Changed(replies)) = rig.run(Command::Cancel(vec![cancel])) else { panic!() };
    let error = replies[0].clone().unwrap_err();
    assert_eq!((error.code, error.job), (Code::Conflict, Some((lease.id, State::Leased))));
    let changed = rig.cancel(Target::Id(lease.id)).unwrap();
    assert_eq!((changed.was, changed.due_at), (State::Leased, lease.expires_at));
    assert_eq!(rig.ack(lease.token), Ok(EndReply::Gone));
}

#[test]
fn reschedule_moves_waiting_jobs_only() {
    let mut rig = Rig::new();
    let id = rig.put_in("t", 1_000);
    let mut to = |target, delay_ms, at_ms| {
        let item = Reschedule { target, delay_ms, at_ms };
        match rig.run(Command::Reschedule(vec![item])) {
            Ok(Reply::Changed(mut replies)) => replies.pop().unwrap(),
            other => panic!("{other:?}"),
        }
    };
    let at_ms = (WALL_0 + 70) as i64;
    let was = State::Delayed;
    assert_eq!(
        to(Target::Id(id), Some(50), None),
        Ok(ChangeReply { id, was, due_at: WALL_0 + 50 })
    );
    let moved = to(Target::Id(id), None, Some(at_ms)).unwrap();
    assert_eq!(moved.due_at, WALL_0 + 70);
    assert_eq!(code(to(Target::Id(id), Some(1), Some(at_ms))), Code::Invalid);
    assert_eq!(code(to(Target::Id(JobId(77)), Some(1), None)), Code::NotFound);
    assert_eq!(to(Target::Id(id), None, None).unwrap().due_at, WALL_0);
    let lease = rig.take("t");
    assert_eq!(rig.view(Target::Id(id)).unwrap().job.progress.kicks, 1);
    assert_eq!(rig.run_now(Target::Id(id)).unwrap_err().job, Some((id, State::Leased)));
    rig.kill(KillTarget::Token(lease.token)).unwrap();
    assert_eq!(rig.run_now(Target::Id(id)).unwrap_err().job, Some((id, State::Dead)));
}

#[test]
fn reschedule_to_where_it_is_changes_nothing_else() {
    let mut rig = Rig::new();
    let id = rig.put_in("t", 1_000);
    let item = Reschedule { target: Target::Id(id), delay_ms: Some(1_000), at_ms: None };
    rig.run(Command::Reschedule(vec![item])).unwrap();
    rig.pass(1_000);
    assert_eq!(ids(&rig.reserve(&["t"], 10)), [id.0]);
}
