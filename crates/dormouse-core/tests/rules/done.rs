//! keep_done: an acked job rests as done for a while.

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::job::{JobId, State};
use dormouse_core::op::*;
use dormouse_core::topic::Settings;

use crate::support::*;

fn keeping(keep_done_ms: u64) -> Rig {
    let mut rig = Rig::new();
    rig.set("t", Settings { keep_done_ms: Some(keep_done_ms), ..Settings::default() });
    rig
}

fn keyed() -> Put {
    Put { key: Some(bytes("k")), ..Put::new(topic("t"), "body") }
}

/// A job that was put, taken and acked.
fn done(rig: &mut Rig, put: Put) -> LeasedJob {
    rig.put(put);
    let lease = rig.take("t");
    assert_eq!(rig.ack(lease.token), Ok(EndReply::Done));
    lease
}

#[test]
fn a_done_job_is_found_by_id_and_key_until_its_time_is_over() {
    let mut rig = keeping(1_000);
    let lease = done(&mut rig, keyed());
    for target in [Target::Id(lease.id), by_key("t", "k")] {
        let view = rig.view(target).unwrap();
        assert_eq!((view.state, view.due_at), (State::Done, WALL_0));
        assert_eq!(view.job.progress.attempts, 1);
        assert_eq!(view.job.content.body, bytes("body"));
    }
    rig.pass(999);
    assert_eq!(rig.state(lease.id), Some(State::Done));
    rig.pass(1);
    assert_eq!(rig.state(lease.id), None);
    assert_eq!(code(rig.view(by_key("t", "k"))), Code::NotFound);
}

#[test]
fn a_done_job_is_listed_and_counted_apart() {
    let mut rig = keeping(1_000);
    let first = done(&mut rig, Put::new(topic("t"), "1"));
    rig.pass(1);
    let second = done(&mut rig, Put::new(topic("t"), "2"));
    let list = List {
        topic: topic("t"),
        state: State::Done,
        cursor: None,
        limit: 10,
        range: ListRange::default(),
    };
    let Reply::Page(page) = rig.run(Command::List(list)).unwrap() else { panic!() };
    let ids: Vec<JobId> = page.jobs.iter().map(|view| view.job.id).collect();
    assert_eq!(ids, [first.id, second.id]);
    let stats = rig.stats("t").unwrap().counts;
    assert_eq!((stats.done, stats.waiting, stats.dead, stats.bytes), (2, 0, 0, 0));
}

#[test]
fn nothing_happens_to_a_done_job() {
    let mut rig = keeping(1_000);
    let lease = done(&mut rig, keyed());
    assert_eq!(rig.ack(lease.token), Ok(EndReply::Gone), "as if it were gone");
    assert_eq!(rig.nack(lease.token), Ok(EndReply::Gone));
    for target in [Target::Id(lease.id), by_key("t", "k")] {
        says(&rig.cancel(target.clone()).unwrap_err(), Code::NotFound, &["is done"]);
        assert_eq!(code(rig.revive(target.clone())), Code::NotFound);
        assert_eq!(code(rig.run_now(target.clone())), Code::NotFound);
        assert_eq!(code(rig.kill(KillTarget::Resting(target))), Code::NotFound);
    }
    let take = ReserveId { id: lease.id, ttr_ms: None, session: None };
    assert_eq!(code(rig.run(Command::ReserveId(take))), Code::NotFound);
    assert_eq!(rig.reserve(&["t"], 1), []);
    assert_eq!(rig.state(lease.id), Some(State::Done));
}

#[test]
fn a_new_job_takes_the_key_of_a_done_one() {
    use OnConflict::{Earliest, Keep, Latest, Reject, Replace};
    for on_conflict in [Keep, Reject, Replace, Earliest, Latest] {
        let mut rig = keeping(1_000);
        let lease = done(&mut rig, keyed());
        let reply = rig.try_put(Put { on_conflict, ..keyed() }).unwrap();
        assert_eq!(reply.outcome, PutOutcome::Created, "{on_conflict:?}");
        assert_eq!(rig.view(by_key("t", "k")).unwrap().job.id, reply.id);
        let old = rig.view(Target::Id(lease.id)).unwrap();
        assert_eq!((old.state, old.job.key()), (State::Done, None));
    }
}

#[test]
fn a_key_is_taken_after_the_ack_whether_its_job_is_kept_or_not() {
    let held = Put { key_ttl_ms: Some(100), ..keyed() };
    // Kept for longer than the key is taken, and shorter.
    for keep_done_ms in [1_000, 10] {
        let mut rig = keeping(keep_done_ms);
        let lease = done(&mut rig, held.clone());
        for _ in 0..2 {
            let reply = rig.try_put(keyed()).unwrap();
            assert_eq!((reply.id, reply.outcome), (lease.id, PutOutcome::Duplicate));
            let reject = Put { on_conflict: OnConflict::Reject, ..keyed() };
            assert_eq!(code(rig.try_put(reject)), Code::Conflict);
            rig.pass(49);
        }
        rig.pass(2);
        assert_eq!(rig.try_put(keyed()).unwrap().outcome, PutOutcome::Created);
    }
}

/// The part of a millisecond that had passed at the ack was taken off the key's time.
#[test]
fn a_key_is_taken_for_its_whole_time_after_an_ack_between_two_milliseconds() {
    let mut rig = keeping(1_000);
    rig.now.fraction = true;
    let held = Put { key_ttl_ms: Some(100), ..keyed() };
    done(&mut rig, held.clone());
    rig.pass(100);
    assert_eq!(rig.try_put(held.clone()).unwrap().outcome, PutOutcome::Duplicate);
    rig.pass(1);
    assert_eq!(rig.try_put(held).unwrap().outcome, PutOutcome::Created);
}

#[test]
fn a_full_topic_has_room_when_its_jobs_are_done() {
    let mut rig = Rig::new();
    let settings = Settings {
        keep_done_ms: Some(1_000),
        jobs_max: Some(1),
        bytes_max: Some(4),
        ..Settings::default()
    };
    rig.set("t", settings);
    done(&mut rig, Put::new(topic("t"), "body"));
    done(&mut rig, Put::new(topic("t"), "body"));
    assert_eq!(rig.stats("t").unwrap().counts.done, 2);
}

#[test]
fn purge_and_a_shorter_span_remove_done_jobs() {
    let mut rig = keeping(1_000);
    let lease = done(&mut rig, Put::new(topic("t"), ""));
    rig.run(Command::Purge(topic("t").into())).unwrap();
    assert_eq!(rig.state(lease.id), None);
    let lease = done(&mut rig, Put::new(topic("t"), ""));
    rig.pass(100);
    rig.set("t", Settings { keep_done_ms: Some(50), ..Settings::default() });
    assert_eq!(rig.state(lease.id), None);
    let lease = done(&mut rig, Put::new(topic("t"), ""));
    rig.set("t", Settings::default());
    assert_eq!(rig.state(lease.id), None, "history is off");
}
