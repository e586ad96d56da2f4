//! expires_after: a job that nobody takes in time dies, and is never handed out.

use dormouse_core::command::Command;
use dormouse_core::error::Code;
use dormouse_core::fact::Fact;
use dormouse_core::job::{JobId, State};
use dormouse_core::machine::Output;
use dormouse_core::op::*;
use dormouse_core::place::Place;
use dormouse_core::topic::Settings;

use crate::support::*;

fn expiring(delay_ms: i64, expires_after_ms: i64) -> Put {
    Put {
        delay_ms: Some(delay_ms),
        expires_after_ms: Some(expires_after_ms),
        ..Put::new(topic("t"), "body")
    }
}

/// It is dead because nobody took it in time.
fn check_expired(rig: &mut Rig, id: JobId) {
    let view = rig.view(Target::Id(id)).unwrap();
    assert_eq!(view.state, State::Dead);
    assert_eq!(view.job.progress.error, Some(bytes("expired")));
}

#[test]
fn a_job_dies_when_its_span_after_the_due_time_is_over() {
    let mut rig = Rig::new();
    let id = rig.put(expiring(100, 50));
    rig.pass(149);
    assert_eq!(rig.state(id), Some(State::Ready));
    rig.pass(1);
    check_expired(&mut rig, id);
    assert_eq!(rig.reserve(&["t"], 1), []);
    let stats = rig.stats("t").unwrap().counts;
    assert_eq!((stats.waiting, stats.dead), (0, 1));
}

#[test]
fn a_job_that_is_taken_in_time_lives_on() {
    let mut rig = Rig::new();
    let id = rig.put(expiring(0, 50));
    rig.pass(49);
    let lease = rig.take("t");
    rig.pass(200);
    assert_eq!(rig.state(id), Some(State::Leased));
    assert_eq!(rig.ack(lease.token), Ok(EndReply::Done));
}

#[test]
fn each_rest_has_a_span_of_its_own() {
    let mut rig = Rig::new();
    let id = rig.put(expiring(0, 50));
    rig.pass(40);
    let lease = rig.take("t");
    rig.pass(30);
    rig.release(lease.token).unwrap();
    rig.pass(49);
    assert_eq!(rig.state(id), Some(State::Ready), "50 ms from the release");
    rig.pass(1);
    check_expired(&mut rig, id);
    rig.revive(Target::Id(id)).unwrap();
    rig.pass(49);
    assert_eq!(rig.state(id), Some(State::Ready), "50 ms from the revive");
    rig.pass(1);
    check_expired(&mut rig, id);
}

#[test]
fn a_deadline_moves_with_the_due_time_in_both_directions() {
    let mut rig = Rig::new();
    let later = rig.put(expiring(10, 50));
    let earlier = rig.put(expiring(10_000, 50));
    let item = Reschedule { target: Target::Id(later), delay_ms: Some(1_000), at_ms: None };
    rig.run(Command::Reschedule(vec![item])).unwrap();
    rig.run_now(Target::Id(earlier)).unwrap();
    rig.pass(50);
    check_expired(&mut rig, earlier);
    rig.pass(999);
    assert_eq!(rig.state(later), Some(State::Ready));
    rig.pass(1);
    check_expired(&mut rig, later);
}

#[test]
fn a_job_taken_before_its_time_and_given_back_has_an_earlier_deadline() {
    let mut rig = Rig::new();
    let id = rig.put(expiring(10_000, 50));
    let take = ReserveId { id, ttr_ms: None, session: None };
    let lease = jobs(rig.run(Command::ReserveId(take))).pop().unwrap();
    rig.release(lease.token).unwrap();
    rig.pass(50);
    check_expired(&mut rig, id);
}

/// How many deadlines these facts write.
fn deadlines(facts: &[Fact]) -> usize {
    let is_deadline =
        |fact: &&Fact| matches!(fact, Fact::Put { at, .. } if at.topic.deadline_topic().is_some());
    facts.iter().filter(is_deadline).count()
}

/// A batch may be sealed between a step and the next tick. The deadline of a job in another batch
/// than the job could be lost, and the job would never die.
#[test]
fn a_deadline_is_written_in_the_step_that_brings_the_job_to_rest() {
    let mut rig = Rig::new();
    rig.begin(Command::Put(vec![expiring(0, 50)]));
    assert_eq!(deadlines(&rig.facts), 1);
    rig.tick();
    let lease = rig.take("t");
    rig.begin(Command::Release(vec![Release {
        token: lease.token,
        delay_ms: None,
        priority: None,
    }]));
    assert_eq!(deadlines(&rig.facts), 2);
}

#[test]
fn a_start_that_gives_back_the_job_of_a_session_writes_its_deadline() {
    let mut rig = Rig::new();
    rig.put(expiring(0, 50));
    let session = Some(rig.session());
    let reserve = Reserve { session, ..reserve(&["t"], 1, 0) };
    assert_eq!(jobs(rig.run(Command::Reserve(reserve))).len(), 1);
    let mut again = Rig::new();
    rig.facts.into_iter().for_each(|fact| again.machine.replay(fact));
    let mut out = Output::default();
    again.machine.recovered(again.now, &mut out).unwrap();
    assert_eq!(deadlines(&out.facts), 1, "{:?}", out.facts);
}

#[test]
fn the_topic_says_for_jobs_that_do_not() {
    let mut rig = Rig::new();
    rig.set("t", Settings { expires_after_ms: Some(50), ..Settings::default() });
    let by_topic = rig.put_now("t");
    let own = rig.put(expiring(0, 100));
    let never = rig.put(expiring(0, 0));
    rig.pass(50);
    check_expired(&mut rig, by_topic);
    rig.pass(50);
    check_expired(&mut rig, own);
    assert_eq!(rig.state(never), Some(State::Ready), "0 = it never expires");
}

#[test]
fn a_wall_time_moves_the_deadline_with_the_wall_clock() {
    let mut rig = Rig::new();
    let at_ms = Some((WALL_0 + 1_000) as i64);
    let id = rig.put(Put { delay_ms: None, at_ms, ..expiring(0, 50) });
    rig.now.wall_ms += 1_020;
    rig.pass(0);
    assert_eq!(rig.state(id), Some(State::Ready));
    rig.now.wall_ms += 30;
    rig.pass(0);
    check_expired(&mut rig, id);
}

#[test]
fn reserve_gives_no_job_that_is_too_late_but_not_dead_yet() {
    let mut rig = Rig::new();
    let late: Vec<JobId> = (0..3).map(|_| rig.put(expiring(0, 50))).collect();
    let good = rig.put_now("t");
    // Time goes by, and a reserve comes before the tick.
    rig.now.steady_ms += 60;
    rig.now.wall_ms += 60;
    let ticket = rig.begin(Command::Reserve(reserve(&["t"], 10, 0)));
    rig.tick();
    let taken = jobs(rig.answer(ticket).unwrap());
    assert_eq!(ids(&taken), [good.0]);
    for id in late {
        check_expired(&mut rig, id);
    }
}

#[test]
fn a_reserve_that_meets_only_late_jobs_waits_on() {
    let mut rig = Rig::new();
    rig.put(expiring(0, 50));
    rig.now.steady_ms += 60;
    rig.now.wall_ms += 60;
    let ticket = rig.begin(Command::Reserve(reserve(&["t"], 1, 1_000)));
    rig.tick();
    assert_eq!(rig.answer(ticket), None);
    let id = rig.put_now("t");
    assert_eq!(ids(&jobs(rig.answer(ticket).unwrap())), [id.0]);
}

#[test]
fn many_deadlines_at_one_instant_leave_time_for_waiting_requests() {
    let mut rig = Rig::new();
    for _ in 0..3_000 {
        rig.put(expiring(0, 50));
    }
    let due = rig.put_in("other", 50);
    let ticket = rig.begin(Command::Reserve(reserve(&["other"], 1, 1_000)));
    rig.tick();
    rig.now.steady_ms += 50;
    rig.now.wall_ms += 50;
    rig.tick();
    assert_eq!(ids(&jobs(rig.answer(ticket).unwrap())), [due.0], "after one tick");
}

/// The places of all deadlines.
fn entries(rig: &Rig) -> Vec<Place> {
    let places = rig.machine.timeline().iter().map(|(place, _)| place);
    places.filter(|place| place.topic.deadline_topic().is_some()).collect()
}

/// A producer that acks at once, with spans of a hundred years, must not fill the store.
#[test]
fn whatever_ends_or_moves_a_job_takes_its_deadline_along() {
    let mut rig = Rig::new();
    let century_ms = 100 * 365 * 86_400_000;
    let check = |rig: &Rig, wanted: usize, what: &str| {
        assert_eq!(entries(rig).len(), wanted, "{what}: {:?}", entries(rig));
    };
    rig.put(expiring(0, century_ms));
    check(&rig, 1, "put");
    let lease = rig.take("t");
    check(&rig, 0, "reserve");
    rig.nack(lease.token).unwrap();
    check(&rig, 1, "nack");
    rig.pass(10_000_000);
    let lease = rig.take("t");
    let id = lease.token.id;
    rig.release(lease.token).unwrap();
    check(&rig, 1, "release");
    rig.run_now(Target::Id(id)).unwrap();
    let item = Reschedule { target: Target::Id(id), delay_ms: Some(1_000), at_ms: None };
    rig.run(Command::Reschedule(vec![item])).unwrap();
    check(&rig, 1, "reschedule");
    rig.pass(1_000);
    rig.take("t");
    rig.pass(100_000_000);
    assert_eq!(rig.state(id), Some(State::Ready), "its lease ran out");
    check(&rig, 1, "expiry of a lease");
    let kill = Kill { target: KillTarget::Resting(Target::Id(id)), error: None, priority: None };
    rig.run(Command::Kill(vec![kill])).unwrap();
    check(&rig, 0, "kill");
    rig.revive(Target::Id(id)).unwrap();
    check(&rig, 1, "revive");
    rig.cancel(Target::Id(id)).unwrap();
    check(&rig, 0, "cancel");
    let keyed = Put { key: Some(bytes("k")), ..expiring(0, century_ms) };
    rig.put(keyed.clone());
    let replace = Put { on_conflict: OnConflict::Replace, ..keyed };
    let other_span = Put { expires_after_ms: Some(50), ..replace.clone() };
    rig.put(other_span);
    check(&rig, 1, "replace with another span");
    rig.put(Put { expires_after_ms: Some(0), ..replace.clone() });
    check(&rig, 0, "replace without a span");
    rig.put(replace.clone());
    rig.put(replace);
    check(&rig, 1, "replace with the same span");
    rig.set("t", Settings { dead_topic: Some(topic("u")), ..Settings::default() });
    rig.put(expiring(0, 50));
    check(&rig, 2, "put");
    rig.pass(50);
    check(&rig, 1, "its time");
}

/// The end of a lease brought the job to rest in the step that purged the topic: its deadline was
/// written after it was gone.
#[test]
fn a_purge_takes_along_the_deadline_of_a_lease_that_ends_in_its_step() {
    let mut rig = Rig::new();
    rig.put(Put { ttr_ms: Some(20), ..expiring(0, 50) });
    rig.take("t");
    rig.now.steady_ms += 20;
    rig.now.wall_ms += 20;
    rig.run(Command::Purge(topic("t").into())).unwrap();
    assert_eq!(entries(&rig), []);
}

/// Its wait was put off by a millisecond, which never came where the clock is moved by hand.
#[test]
fn a_reserve_without_wait_behind_many_late_jobs_is_answered_although_no_time_passes() {
    let mut rig = Rig::new();
    for _ in 0..3_000 {
        rig.put(expiring(0, 50));
    }
    rig.now.steady_ms += 60;
    rig.now.wall_ms += 60;
    let ticket = rig.begin(Command::Reserve(reserve(&["t"], 1, 0)));
    let answer = (0..100).find_map(|_| {
        rig.tick();
        rig.answer(ticket)
    });
    assert_eq!(jobs(answer.unwrap()), []);
}

#[test]
fn a_purge_takes_the_deadlines_of_the_topic_along() {
    let mut rig = Rig::new();
    rig.put(expiring(0, 50));
    rig.take("t");
    let id = rig.put(expiring(0, 50));
    rig.run(Command::Purge(topic("t").into())).unwrap();
    assert_eq!(entries(&rig), []);
    assert_eq!(rig.state(id), None);
}

#[test]
fn a_wrong_span_is_refused() {
    let mut rig = Rig::new();
    let error = rig.try_put(expiring(0, -1)).unwrap_err();
    says(&error, Code::Invalid, &["expires_after", "0"]);
    let settings = Settings { expires_after_ms: Some(0), ..Settings::default() };
    let set = SetTopic { topic: topic("t"), settings };
    says(&rig.run(Command::from(set)).unwrap_err(), Code::Invalid, &["expires_after"]);
}

#[test]
fn the_topic_gives_a_delay_to_jobs_that_name_no_time() {
    let mut rig = Rig::new();
    rig.set("t", Settings { delay_ms: Some(100), ..Settings::default() });
    let reply = rig.try_put(Put::new(topic("t"), "body")).unwrap();
    assert_eq!((reply.state, reply.due_at), (Some(State::Delayed), WALL_0 + 100));
    let at_once = rig.put_in("t", 0);
    assert_eq!(rig.state(at_once), Some(State::Ready), "a delay of its own");
}

#[test]
fn a_topic_whose_jobs_are_gone_vanishes_with_their_deadlines() {
    let mut rig = Rig::new();
    let id = rig.put(expiring(0, 1_000_000));
    rig.cancel(Target::Id(id)).unwrap();
    rig.pass(500_000);
    assert_eq!(rig.machine.topic_images().count(), 0);
    assert_eq!(rig.machine.timeline().iter().count(), 0);
    rig.pass(1_000_000);
}
