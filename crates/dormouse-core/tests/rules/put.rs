//! put: the table of keys, due times, quotas.

use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::event::EventKind;
use dormouse_core::job::{JobId, Progress, State};
use dormouse_core::op::OnConflict::{Earliest, Keep, Latest, Reject, Replace};
use dormouse_core::op::*;
use dormouse_core::topic::Settings;

use crate::support::*;

/// The states a key's owner can be in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Owner {
    Free,
    Delayed,
    Ready,
    Leased,
    Dead,
    Held,
    Over,
}

const OWNERS: [Owner; 7] = [
    Owner::Free,
    Owner::Delayed,
    Owner::Ready,
    Owner::Leased,
    Owner::Dead,
    Owner::Held,
    Owner::Over,
];

fn keyed(delay_ms: i64) -> Put {
    Put {
        key: Some(bytes("k")),
        key_ttl_ms: Some(5_000),
        delay_ms: Some(delay_ms),
        ..Put::new(topic("t"), "old")
    }
}

/// A rig where key `k` is owned so by job 1; a delayed owner is due in 500 ms.
fn owned(owner: Owner) -> (Rig, Option<LeasedJob>) {
    let mut rig = Rig::new();
    if owner == Owner::Free {
        return (rig, None);
    }
    rig.put(keyed(if owner == Owner::Delayed { 500 } else { 0 }));
    if matches!(owner, Owner::Delayed | Owner::Ready) {
        return (rig, None);
    }
    let lease = rig.take("t");
    match owner {
        Owner::Dead => {
            rig.kill(KillTarget::Token(lease.token)).unwrap();
        }
        Owner::Held | Owner::Over => {
            rig.ack(lease.token).unwrap();
        }
        _ => {}
    }
    if owner == Owner::Over {
        // The hold is over but may still rest: nobody swept it.
        rig.now.steady_ms += 5_000;
        rig.now.wall_ms += 5_000;
    }
    (rig, Some(lease))
}

/// What a put must come to.
#[derive(Debug, PartialEq)]
enum Want {
    Created,
    Replaced,
    Duplicate(Option<State>),
    Conflict(Option<State>),
}

/// DESIGN's table; `earlier` says how the new due time compares with a delayed owner's.
fn wanted(mode: OnConflict, owner: Owner, earlier: bool) -> Want {
    let state = match owner {
        Owner::Free | Owner::Over => return Want::Created,
        Owner::Delayed => Some(State::Delayed),
        Owner::Ready => Some(State::Ready),
        Owner::Leased => Some(State::Leased),
        Owner::Dead => Some(State::Dead),
        Owner::Held => None,
    };
    match (mode, owner) {
        (Replace, Owner::Dead) => Want::Replaced,
        (_, Owner::Dead) => Want::Created,
        (Keep, _) => Want::Duplicate(state),
        (Reject, _) => Want::Conflict(state),
        (Replace, Owner::Leased | Owner::Held) => Want::Created,
        (Replace, _) => Want::Replaced,
        (Earliest | Latest, Owner::Leased) => Want::Created,
        (Earliest | Latest, Owner::Held) => Want::Duplicate(None),
        (Earliest, _) if earlier => Want::Replaced,
        (Latest, _) if !earlier => Want::Replaced,
        (Earliest | Latest, _) => Want::Duplicate(state),
    }
}

#[test]
fn the_key_table_holds_for_every_mode_and_state() {
    for mode in [Keep, Reject, Replace, Earliest, Latest] {
        for owner in OWNERS {
            for earlier in [true, false] {
                check_cell(mode, owner, earlier);
            }
        }
    }
}

fn check_cell(mode: OnConflict, owner: Owner, earlier: bool) {
    let context = format!("{mode:?} on {owner:?}, earlier: {earlier}");
    let (mut rig, _) = owned(owner);
    // A ready owner has been due for a moment, so that a new time can be earlier than its own.
    if owner == Owner::Ready {
        rig.pass(1);
    }
    let at_ms = match (owner, earlier) {
        (Owner::Delayed, true) => WALL_0 + 400,
        (Owner::Delayed, false) => WALL_0 + 600,
        (_, true) => WALL_0 - 1,
        (_, false) => WALL_0 + 50_000,
    };
    let put = Put {
        at_ms: Some(at_ms as i64),
        delay_ms: None,
        on_conflict: mode,
        body: bytes("new"),
        ..keyed(0)
    };
    let got = rig.try_put(put);
    let new_state = if at_ms <= rig.now.wall_ms { State::Ready } else { State::Delayed };
    match (wanted(mode, owner, earlier), &got) {
        (Want::Conflict(state), Err(error)) => {
            assert_eq!(error.code, Code::Conflict, "{context}");
            assert_eq!(error.job, state.map(|state| (JobId(1), state)), "{context}");
        }
        (Want::Duplicate(state), Ok(reply)) => {
            assert_eq!((reply.id, reply.outcome), (JobId(1), PutOutcome::Duplicate), "{context}");
            assert_eq!(reply.state, state, "{context}");
        }
        (want @ (Want::Created | Want::Replaced), Ok(reply)) => {
            let (id, outcome) = match want {
                Want::Replaced => (1, PutOutcome::Replaced),
                _ if owner == Owner::Free => (1, PutOutcome::Created),
                _ => (2, PutOutcome::Created),
            };
            assert_eq!((reply.id, reply.outcome), (JobId(id), outcome), "{context}");
            assert_eq!((reply.state, reply.due_at), (Some(new_state), at_ms), "{context}");
            let view = rig.view(by_key("t", "k")).unwrap();
            assert_eq!((view.job.id, view.state), (JobId(id), new_state), "{context}");
            assert_eq!(view.job.content.body, bytes("new"), "{context}");
            assert_eq!(view.job.progress.attempts, 0, "{context}");
        }
        (want, got) => panic!("{context}: wanted {want:?}, got {got:?}"),
    }
}

#[test]
fn a_dead_job_that_lost_its_key_died_once() {
    let (mut rig, _) = owned(Owner::Dead);
    let before = rig.view(Target::Id(JobId(1))).unwrap();
    rig.facts.clear();
    rig.put(keyed(500));
    let mut events = Vec::new();
    rig.machine.add_events(rig.now, &rig.facts, &mut events);
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Put]);
    let after = rig.view(Target::Id(JobId(1))).unwrap();
    assert_eq!((after.state, after.due_at), (State::Dead, before.due_at));
    assert_eq!(after.job.key(), None);
    assert_eq!(after.job.progress, Progress { key_lost: true, ..before.job.progress });
    let counts = rig.stats("t").unwrap().counts;
    assert_eq!((counts.dead, counts.kills, counts.waiting), (1, 1, 1));
}

#[test]
fn the_same_due_time_is_neither_earlier_nor_later() {
    for mode in [Earliest, Latest] {
        let (mut rig, _) = owned(Owner::Delayed);
        let reply = rig.try_put(Put { on_conflict: mode, ..keyed(500) }).unwrap();
        assert_eq!(reply.outcome, PutOutcome::Duplicate);
    }
}

#[test]
fn a_leased_job_that_lost_its_key_goes_on_without_it() {
    let (mut rig, lease) = owned(Owner::Leased);
    let newer = rig.put(Put { on_conflict: Replace, ..keyed(500) });
    assert_eq!(newer, JobId(2));
    assert_eq!(rig.view(by_key("t", "k")).unwrap().job.id, newer);
    // It comes back, is acked: the key stays with the newer job, and there is no hold.
    let token = lease.unwrap().token;
    rig.release(token).unwrap();
    assert_eq!(rig.view(by_key("t", "k")).unwrap().job.id, newer);
    let again = rig.take("t");
    assert_eq!((again.id, again.key), (JobId(1), None));
    rig.ack(again.token).unwrap();
    rig.cancel(by_key("t", "k")).unwrap();
    assert_eq!(rig.try_put(keyed(0)).unwrap().outcome, PutOutcome::Created);
}

#[test]
fn a_replaced_job_starts_afresh_but_keeps_its_fence() {
    let mut rig = Rig::new();
    let id = rig.put(keyed(0));
    let first = rig.take("t");
    rig.nack(first.token).unwrap();
    rig.put(Put { on_conflict: Replace, priority: Some(7), ..keyed(0) });
    let progress = rig.view(Target::Id(id)).unwrap().job.progress;
    assert_eq!((progress.attempts, progress.reserves, progress.releases), (0, 0, 0));
    assert_eq!((progress.fence, progress.priority), (first.token.fence, 7));
    assert_eq!(code(rig.ack(first.token)), Code::LeaseLost);
    let second = rig.take("t");
    assert!(second.token.fence > first.token.fence);
    assert_eq!(second.attempt, 1);
}

#[test]
fn replacing_a_job_whose_lease_ran_out_revokes_the_token() {
    let mut rig = Rig::new();
    rig.put(keyed(0));
    let lease = rig.take("t");
    rig.pass(60_000);
    rig.put(Put { on_conflict: Replace, ..keyed(0) });
    assert_eq!(code(rig.ack(lease.token)), Code::LeaseLost);
}

#[test]
fn a_key_is_held_from_the_ack_until_its_time_is_over() {
    let (mut rig, _) = owned(Owner::Held);
    let reply = rig.try_put(keyed(0)).unwrap();
    assert_eq!((reply.outcome, reply.state), (PutOutcome::Duplicate, None));
    assert_eq!(reply.due_at, WALL_0 + 5_000);
    assert_eq!(code(rig.cancel(by_key("t", "k"))), Code::NotFound);
    rig.pass(4_999);
    assert_eq!(rig.try_put(keyed(0)).unwrap().outcome, PutOutcome::Duplicate);
    rig.pass(1);
    assert_eq!(rig.try_put(keyed(0)).unwrap().outcome, PutOutcome::Created);
}

#[test]
fn holds_that_are_over_do_not_pile_up() {
    let mut rig = Rig::new();
    rig.put_in("t", 1_000_000);
    for n in 0..50 {
        let key = Some(bytes(&n.to_string()));
        rig.put(Put { key, key_ttl_ms: Some(100), ..Put::new(topic("t"), "") });
        let lease = rig.take("t");
        rig.ack(lease.token).unwrap();
        rig.pass(1_000);
    }
    assert!(rig.machine.timeline().iter().count() < 15);
    rig.pass(10_000);
    assert_eq!(rig.machine.timeline().iter().count(), 1);
    assert_eq!(rig.machine.next_wake(rig.now), None);
}

#[test]
fn cancel_and_purge_free_the_key_at_once() {
    let (mut rig, _) = owned(Owner::Leased);
    rig.cancel(by_key("t", "k")).unwrap();
    assert_eq!(rig.try_put(keyed(0)).unwrap().outcome, PutOutcome::Created);
    let (mut rig, _) = owned(Owner::Held);
    assert_eq!(rig.run(Command::Purge(topic("t").into())), Ok(Reply::Count(0)));
    assert!(rig.stats("t").is_err(), "no hold keeps it alive");
    assert_eq!(rig.try_put(keyed(0)).unwrap().outcome, PutOutcome::Created);
}

#[test]
fn keys_are_unique_per_topic_only() {
    let mut rig = Rig::new();
    rig.put(keyed(0));
    let other = Put { topic: topic("u"), ..keyed(0) };
    assert_eq!(rig.try_put(other).unwrap().outcome, PutOutcome::Created);
}

#[test]
fn a_delay_that_begins_within_a_millisecond_is_rounded_up() {
    let mut rig = Rig::new();
    rig.now.fraction = true;
    let reply = rig.try_put(Put { delay_ms: Some(10), ..Put::new(topic("t"), "") }).unwrap();
    assert_eq!(reply.due_at, WALL_0 + 11);
    let reply = rig.try_put(Put { delay_ms: Some(0), ..Put::new(topic("t"), "") }).unwrap();
    assert_eq!((reply.due_at, reply.state), (WALL_0, Some(State::Ready)));
}

#[test]
fn a_stepped_wall_clock_moves_absolute_times_only() {
    let mut rig = Rig::new();
    let relative = rig.put_in("t", 1_000);
    let at_ms = Some((WALL_0 + 1_000) as i64);
    let absolute = rig.put(Put { at_ms, ..Put::new(topic("t"), "") });
    rig.now.wall_ms += 10_000;
    assert_eq!(rig.state(relative), Some(State::Delayed));
    assert_eq!(rig.state(absolute), Some(State::Ready));
    assert_eq!(ids(&rig.reserve(&["t"], 10)), [absolute.0]);
}

#[test]
fn far_due_times_do_not_overflow() {
    use dormouse_core::limits::{AT_MS_MAX, DELAY_MS_MAX};
    let mut rig = Rig::new();
    rig.put_in("t", DELAY_MS_MAX as i64);
    rig.put(Put { at_ms: Some(AT_MS_MAX as i64), ..Put::new(topic("t"), "") });
    rig.now.steady_ms = u64::MAX - 10;
    rig.now.wall_ms = u64::MAX - 10;
    rig.put_in("t", DELAY_MS_MAX as i64);
    assert_eq!(rig.reserve(&["t"], 10).len(), 2);
    assert_eq!(rig.machine.next_wake(rig.now), Some(10));
}

#[test]
fn quotas_count_what_a_put_really_adds() {
    let mut rig = Rig::new();
    let settings = Settings { jobs_max: Some(2), bytes_max: Some(20), ..Settings::default() };
    rig.set("t", settings);
    let key = |key: &str, body: &'static str| Put {
        key: Some(bytes(key)),
        on_conflict: Replace,
        ..Put::new(topic("t"), body)
    };
    rig.put(key("a", "123456789"));
    rig.put(key("b", "123456789"));
    let full = |result: Result<PutReply, Error>| assert_eq!(code(result), Code::Full);
    full(rig.try_put(Put::new(topic("t"), "")));
    // A replace adds no job, and only the bytes it has more.
    full(rig.try_put(key("a", "1234567890")));
    rig.put(key("a", "12345678"));
    rig.put(key("b", "1234567890"));
    let lease = rig.take("t");
    full(rig.try_put(Put::new(topic("t"), "")));
    rig.ack(lease.token).unwrap();
    rig.put(Put::new(topic("t"), "x"));
}

#[test]
fn short_of_space_only_puts_that_add_are_refused() {
    let mut rig = Rig::new();
    rig.put(keyed(0));
    let full = Error::new(Code::Full, "the disk is nearly full");
    rig.machine.set_full(Some(full.clone()));
    assert_eq!(rig.try_put(Put::new(topic("u"), "")), Err(full.clone()));
    assert_eq!(rig.try_put(Put { on_conflict: Replace, ..keyed(0) }), Err(full));
    assert_eq!(rig.try_put(keyed(0)).unwrap().outcome, PutOutcome::Duplicate);
    let lease = rig.take("t");
    rig.ack(lease.token).unwrap();
    assert!(rig.stats("u").is_err(), "a refused put brings no topic to life");
}

#[test]
fn defaults_come_from_the_topic() {
    let mut rig = Rig::new();
    let settings = Settings { ttr_ms: Some(7_000), attempts_max: Some(3), ..Settings::default() };
    rig.set("t", settings);
    let id = rig.put_now("t");
    let content = rig.view(Target::Id(id)).unwrap().job.content;
    assert_eq!((content.ttr_ms, content.attempts_max), (7_000, 3));
    let own = Put { ttr_ms: Some(1), attempts_max: Some(0), ..Put::new(topic("t"), "") };
    let id = rig.put(own);
    let content = rig.view(Target::Id(id)).unwrap().job.content;
    assert_eq!((content.ttr_ms, content.attempts_max), (1, 0));
}

#[test]
fn a_batch_answers_per_item() {
    let mut rig = Rig::new();
    let bad = Put { delay_ms: Some(-1), ..Put::new(topic("t"), "") };
    let puts = vec![Put::new(topic("t"), ""), bad, Put::new(topic("t"), "")];
    let Ok(Reply::Put(replies)) = rig.run(Command::Put(puts)) else { panic!() };
    assert_eq!(replies.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(rig.stats("t").unwrap().ready, 2);
}

#[test]
fn keys_of_the_server_are_refused() {
    let mut rig = Rig::new();
    let put = Put { key: Some(bytes("dormouse:dead:7")), ..Put::new(topic("t"), "") };
    says(&rig.try_put(put).unwrap_err(), Code::Invalid, &["dormouse:", "put something before"]);
    rig.put(Put { key: Some(bytes("dormouse")), ..Put::new(topic("t"), "") });
}
