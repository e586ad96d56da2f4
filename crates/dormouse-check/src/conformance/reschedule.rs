//! reschedule and run now: the due time moves, everything else stays.

use super::prelude::*;

cases! { reschedule:
    moves_forward_and_back
    to_an_absolute_time
    a_ready_job_waits_again
    run_now
    by_its_key
    leased_is_a_conflict
    dead_is_a_conflict
    missing_is_not_found
    keeps_everything_else
    delay_and_at_together
    out_of_range
    moves_in_line
    any_of_many
    wakes_nobody_too_early
    a_batch_answers_per_item
}

fn moves_forward_and_back(s: &mut Subject) {
    let id = s.put(delayed("mail", 10_000));
    s.maybe_reopen();
    let changed = s.delay(by_id(id), 20_000).expect("a move");
    assert_eq!(changed, ChangeReply { id, was: State::Delayed, due_at: s.now() + 20_000 });
    s.maybe_reopen();
    s.advance(10_000);
    assert_eq!(s.reserve("mail", 1), [], "the old due time is forgotten");
    let changed = s.delay(by_id(id), 1_000).expect("a move");
    assert_eq!(changed.due_at, s.now() + 1_000);
    s.maybe_reopen();
    s.advance(999);
    assert_eq!(s.reserve("mail", 1), []);
    s.advance(1);
    let lease = s.reserve_one("mail");
    assert_eq!((lease.id, lease.late_ms), (id, 0));
    assert_eq!(s.reserve("mail", 1), [], "one job, one place");
}

fn to_an_absolute_time(s: &mut Subject) {
    let id = s.put(delayed("mail", 10));
    let at_ms = s.now() + 5_000;
    let item = Reschedule { target: by_id(id), delay_ms: None, at_ms: Some(at_ms as i64) };
    assert_eq!(s.reschedule(item).expect("a move").due_at, at_ms);
    s.maybe_reopen();
    s.advance(4_999);
    assert_eq!(s.reserve("mail", 1), []);
    s.advance(1);
    assert_eq!(s.reserve_one("mail").due_at, at_ms);
}

fn a_ready_job_waits_again(s: &mut Subject) {
    let id = s.put(job("mail"));
    s.maybe_reopen();
    assert_eq!(s.delay(by_id(id), 500).expect("a move").was, State::Ready);
    assert_eq!(s.state(id), State::Delayed);
    assert_eq!(s.reserve("mail", 1), []);
}

fn run_now(s: &mut Subject) {
    let id = s.put(delayed("mail", 3_600_000));
    s.maybe_reopen();
    let changed = s.run_now(by_id(id)).expect("a run now");
    assert_eq!(changed, ChangeReply { id, was: State::Delayed, due_at: s.now() });
    s.maybe_reopen();
    assert_eq!(s.view(id).job.progress.kicks, 1);
    assert_eq!(s.reserve_one("mail").id, id);
}

fn by_its_key(s: &mut Subject) {
    let id = s.put(Put { delay_ms: Some(60_000), ..keyed("mail", "k") });
    s.maybe_reopen();
    let target = || by_key("mail", "k");
    assert_eq!(s.delay(target(), 70_000).expect("a move").id, id);
    s.maybe_reopen();
    assert_eq!(s.run_now(target()).expect("a run now").id, id);
    assert_eq!(s.reserve_one("mail").id, id);
}

fn leased_is_a_conflict(s: &mut Subject) {
    let id = s.put(job("mail"));
    let lease = s.reserve_one("mail");
    s.maybe_reopen();
    for answer in [s.delay(by_id(id), 5), s.run_now(by_id(id))] {
        let error = refused(answer, Code::Conflict, &[&number(id), "leased", "extend"]);
        assert_eq!(error.job, Some((id, State::Leased)));
    }
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
}

fn dead_is_a_conflict(s: &mut Subject) {
    let id = s.put(job("mail"));
    s.kill(kill_resting(by_id(id))).expect("a kill");
    s.maybe_reopen();
    let error = refused(s.delay(by_id(id), 5), Code::Conflict, &[&number(id), "dead", "revive"]);
    assert_eq!(error.job, Some((id, State::Dead)));
    assert_eq!(s.state(id), State::Dead);
}

fn missing_is_not_found(s: &mut Subject) {
    refused(s.run_now(by_id(JobId(3))), Code::NotFound, &["job 3"]);
    refused(s.run_now(by_key("mail", "k")), Code::NotFound, &["mail", "k"]);
}

fn keeps_everything_else(s: &mut Subject) {
    let put = Put { priority: Some(7), ttr_ms: Some(99), delay_ms: Some(5), ..keyed("mail", "k") };
    let id = s.put(put);
    s.maybe_reopen();
    let before = s.view(id);
    s.delay(by_id(id), 900).expect("a move");
    s.maybe_reopen();
    let after = s.view(id);
    assert_eq!(after.job.content, before.job.content);
    assert_eq!(after.job.progress, before.job.progress);
    assert_eq!(s.stats("mail").counts.bytes, 5);
}

fn delay_and_at_together(s: &mut Subject) {
    let id = s.put(delayed("mail", 5));
    let item = Reschedule { target: by_id(id), delay_ms: Some(1), at_ms: Some(s.now() as i64) };
    refused(s.reschedule(item), Code::Invalid, &["delay", "at", "one of them"]);
    assert_eq!(s.view(id).due_at, s.now() + 5);
}

fn out_of_range(s: &mut Subject) {
    let id = s.put(delayed("mail", 5));
    let limit = number(limits::DELAY_MS_MAX);
    for delay_ms in [-1, limits::DELAY_MS_MAX as i64 + 1] {
        let words = ["delay", &number(delay_ms), &limit, "give"];
        refused(s.delay(by_id(id), delay_ms), Code::Invalid, &words);
    }
    let item = Reschedule { target: by_id(id), delay_ms: None, at_ms: Some(-1) };
    refused(s.reschedule(item), Code::Invalid, &["at", "-1", "give"]);
    assert_eq!(s.view(id).due_at, s.now() + 5);
}

fn moves_in_line(s: &mut Subject) {
    let ids = s.put_many([10, 20, 30].map(|delay_ms| delayed("mail", delay_ms)));
    s.maybe_reopen();
    s.delay(by_id(ids[0]), 25).expect("a move");
    s.delay(by_id(ids[2]), 5).expect("a move");
    s.maybe_reopen();
    s.advance(30);
    let order: Vec<_> = s.reserve("mail", 3).iter().map(|job| job.id).collect();
    assert_eq!(order, [ids[2], ids[1], ids[0]]);
}

fn any_of_many(s: &mut Subject) {
    let ids = s.put_many((0..MANY).map(|n| delayed("mail", 1_000_000 + n as i64)));
    s.maybe_reopen();
    let moved: Vec<_> = ids.iter().copied().step_by(61).collect();
    for (delay_ms, &id) in moved.iter().enumerate() {
        s.delay(by_id(id), delay_ms as i64).expect("a move");
    }
    s.maybe_reopen();
    s.advance(moved.len() as u64);
    let given: Vec<_> = s.reserve("mail", MANY).iter().map(|job| job.id).collect();
    assert_eq!(given, moved);
    assert_eq!(s.stats("mail").delayed, (MANY - moved.len()) as u64);
}

fn wakes_nobody_too_early(s: &mut Subject) {
    let id = s.put(delayed("mail", 1_000));
    let waiting = s.park(wait_for("mail", 60_000));
    s.delay(by_id(id), 5_000).expect("a move");
    s.advance(1_000);
    s.barrier();
    assert!(!waiting.is_answered());
    s.advance(4_000);
    assert_eq!(waiting.job().late_ms, 0);
}

fn a_batch_answers_per_item(s: &mut Subject) {
    let id = s.put(delayed("mail", 5));
    let item = |target| Reschedule { target, delay_ms: None, at_ms: None };
    let items = vec![item(by_id(id)), item(by_id(JobId(0)))];
    let Ok(Reply::Changed(answers)) = s.ask(Command::Reschedule(items)) else {
        panic!("no answers");
    };
    assert!(matches!(&answers[..], [Ok(_), Err(error)] if error.code == Code::NotFound));
}
