//! reserve and reserve_id: order, bounds, pauses, what is not durable yet.

use dormouse_core::command::Command;
use dormouse_core::error::Code;
use dormouse_core::job::State;
use dormouse_core::limits::{BODY_BYTES_MAX, REPLY_BYTES_MAX};
use dormouse_core::op::*;

use crate::support::*;

#[test]
fn a_reserved_job_carries_all_that_is_known_of_it() {
    let mut rig = Rig::new();
    let headers = std::sync::Arc::new(vec![("a".to_owned(), "b".to_owned())]);
    rig.put(Put {
        delay_ms: Some(100),
        priority: Some(5),
        key: Some(bytes("k")),
        headers: Some(headers.clone()),
        ttr_ms: Some(3_000),
        ..Put::new(topic("t"), "work")
    });
    rig.pass(130);
    let job = rig.take("t");
    assert_eq!((job.topic, job.key), (topic("t"), Some(bytes("k"))));
    assert_eq!((job.attempt, job.priority), (1, 5));
    assert_eq!((job.put_at, job.due_at, job.late_ms), (WALL_0, WALL_0 + 100, 30));
    assert_eq!((job.expires_at, job.ttr_ms), (WALL_0 + 3_130, 3_000));
    assert_eq!((job.headers, job.body), (Some(headers), bytes("work")));
}

#[test]
fn never_early_by_a_millisecond() {
    let mut rig = Rig::new();
    rig.put_in("t", 1_000);
    rig.pass(999);
    assert!(rig.reserve(&["t"], 1).is_empty());
    rig.pass(1);
    assert_eq!(rig.reserve(&["t"], 1).len(), 1);
}

#[test]
fn order_over_topics_is_priority_then_longest_overdue_then_id() {
    let mut rig = Rig::new();
    let mut put = |name: &str, priority, delay_ms, at_ms| {
        let put = Put { priority: Some(priority), delay_ms, at_ms, ..Put::new(topic(name), "") };
        rig.put(put).0
    };
    let late = put("a", 10, Some(30), None);
    let tie_1 = put("b", 10, Some(20), None);
    let tie_2 = put("a", 10, Some(20), None);
    let wall = put("c", 10, None, Some((WALL_0 + 25) as i64));
    let urgent = put("c", 9, Some(40), None);
    let last = put("a", 11, Some(0), None);
    rig.pass(100);
    let got = ids(&rig.reserve(&["c", "a", "b", "a"], 10));
    assert_eq!(got, [urgent, tie_1, tie_2, wall, late, last]);
}

#[test]
fn never_more_than_max_and_only_of_named_topics() {
    let mut rig = Rig::new();
    for name in ["a", "b", "c"] {
        for _ in 0..3 {
            rig.put_now(name);
        }
    }
    assert_eq!(rig.reserve(&["a", "b"], 4).len(), 4);
    assert_eq!(rig.reserve(&["a", "b"], 4).len(), 2);
    assert!(rig.reserve(&["a", "b", "none"], 4).is_empty());
    assert_eq!(rig.stats("c").unwrap().ready, 3);
}

#[test]
fn a_reply_stops_at_its_size() {
    let mut rig = Rig::new();
    let body = bytes::Bytes::from(vec![0; BODY_BYTES_MAX]);
    for _ in 0..20 {
        rig.put(Put::new(topic("t"), body.clone()));
    }
    let taken = rig.reserve(&["t"], 20);
    let total: u64 = taken.iter().map(|job| job.body.len() as u64).sum();
    assert!(total <= REPLY_BYTES_MAX && taken.len() >= 15, "{} jobs", taken.len());
}

#[test]
fn a_paused_topic_gives_nothing_until_it_is_over() {
    let mut rig = Rig::new();
    let id = rig.put_now("t");
    let pause = |for_ms| Command::Pause(PauseTopic { topic: topic("t"), for_ms });
    rig.run(pause(Some(1_000))).unwrap();
    assert_eq!(rig.stats("t").unwrap().paused, Some(Some(1_000)));
    rig.pass(999);
    assert!(rig.reserve(&["t"], 1).is_empty());
    rig.pass(1);
    let lease = rig.take("t");
    assert_eq!(rig.stats("t").unwrap().paused, None);
    rig.release(lease.token).unwrap();
    rig.run(pause(None)).unwrap();
    rig.pass(1_000_000);
    assert!(rig.reserve(&["t"], 1).is_empty());
    assert_eq!(rig.stats("t").unwrap().paused, Some(None));
    // Everything but reserve goes on.
    rig.put_now("t");
    let by_id = ReserveId { id, ttr_ms: None, session: None };
    assert_eq!(jobs(rig.run(Command::ReserveId(by_id))).len(), 1);
    rig.run(Command::Resume(topic("t"))).unwrap();
    assert_eq!(rig.reserve(&["t"], 1).len(), 1);
}

#[test]
fn reserve_id_takes_waiting_and_dead_jobs() {
    let mut rig = Rig::new();
    let id = rig.put_in("t", 1_000_000);
    let by_id = || Command::ReserveId(ReserveId { id, ttr_ms: Some(5), session: None });
    let taken = jobs(rig.run(by_id())).pop().unwrap();
    assert_eq!((taken.late_ms, taken.expires_at, taken.attempt), (0, WALL_0 + 5, 1));
    let error = rig.run(by_id()).unwrap_err();
    assert_eq!((error.code, error.job), (Code::Conflict, Some((id, State::Leased))));
    rig.kill(KillTarget::Token(taken.token)).unwrap();
    assert_eq!(jobs(rig.run(by_id())).pop().unwrap().attempt, 2);
    rig.cancel(Target::Id(id)).unwrap();
    assert_eq!(code(rig.run(by_id())), Code::NotFound);
}

#[test]
fn an_unsynced_put_at_the_head_stops_its_whole_lane() {
    let mut rig = Rig::new();
    let first = rig.put_in("t", 10);
    rig.machine.set_batch(7);
    let at = |priority| Put { priority: Some(priority), ..Put::new(topic("t"), "") };
    let unsynced = rig.put(Put { delay_ms: Some(5), ..at(1_024) });
    let lower = rig.put(at(2_000));
    rig.pass(100);
    // `first` is durable, but stands behind `unsynced`; another lane is blocked on its own.
    assert!(rig.reserve(&["t"], 10).is_empty());
    rig.machine.timeline_mut().set_synced(7);
    rig.machine.synced();
    assert_eq!(ids(&rig.reserve(&["t"], 10)), [unsynced.0, first.0, lower.0]);
}

#[test]
fn a_replace_is_a_put_and_must_be_durable_too() {
    let mut rig = Rig::new();
    let put = Put { key: Some(bytes("k")), ..Put::new(topic("t"), "") };
    rig.put(put.clone());
    rig.machine.set_batch(3);
    rig.put(Put { on_conflict: OnConflict::Replace, ..put });
    assert!(rig.reserve(&["t"], 1).is_empty());
    // Moved jobs keep the batch of their put.
    rig.run_now(by_key("t", "k")).unwrap();
    assert!(rig.reserve(&["t"], 1).is_empty());
    rig.machine.timeline_mut().set_synced(3);
    assert_eq!(rig.reserve(&["t"], 1).len(), 1);
}

#[test]
fn reserve_id_of_a_job_that_may_not_be_durable_waits_for_the_disk() {
    use dormouse_core::backend::{Request, Ticket};
    use dormouse_core::machine::{Output, When};
    let mut rig = Rig::new();
    let durable = rig.put_now("t");
    rig.machine.set_batch(3);
    let fresh = rig.put_now("t");
    for (id, want) in [(durable, When::Prompt), (fresh, When::Durable)] {
        let mut out = Output::default();
        let command = Command::ReserveId(ReserveId { id, ttr_ms: None, session: None });
        let request = Request::new(Ticket(1_000 + id.0), command);
        rig.machine.step(rig.now, request, &mut out).unwrap();
        assert_eq!(out.answers.pop().unwrap().2, want);
    }
    // Back in the line before its put is durable, it is not handed out at once either.
    rig.pass(60_000);
    assert_eq!(ids(&rig.reserve(&["t"], 10)), [durable.0]);
}
