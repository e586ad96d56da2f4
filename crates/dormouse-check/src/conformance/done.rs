//! keep_done: an acked job rests as done for a while, to be looked at and for nothing else.

use super::prelude::*;

cases! { done:
    get_finds_it_by_id_and_key_until_its_time_is_over
    list_gives_it_by_age
    pages_of_done_jobs
    peek_gives_the_oldest
    nothing_happens_to_it
    its_token_is_gone
    a_late_ack_makes_it_done
    a_new_job_takes_its_key
    a_job_that_lost_its_key_is_done_without
    key_ttl_holds_the_key_while_it_is_kept
    key_ttl_holds_the_key_after_it_is_gone
    replace_takes_a_held_key
    it_needs_no_room
    it_is_counted_apart
    purge_removes_it
    a_shorter_span_removes_it
    a_longer_span_keeps_it
    without_the_setting_it_goes_at_once
    cancelled_and_dead_jobs_are_not_done
    time_without_a_server_counts
    many_are_kept_and_go_together
    its_topic_goes_with_it
}

fn keep(s: &Subject, keep_done_ms: u64) {
    s.set_topic("mail", Settings { keep_done_ms: Some(keep_done_ms), ..Settings::default() });
}

/// A job that was put, taken and acked.
#[track_caller]
fn acked(s: &Subject, put: Put) -> LeasedJob {
    let id = s.put(put);
    let lease = s.reserve_id(id);
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
    lease
}

fn get_finds_it_by_id_and_key_until_its_time_is_over(s: &mut Subject) {
    keep(s, 5_000);
    let headers = Some(vec![("a".to_owned(), "b".to_owned())].into());
    let put_at = s.now();
    let id = s.put(Put { headers, priority: Some(7), ..keyed("mail", "k") });
    s.pass(100);
    let lease = s.reserve_one("mail");
    s.pass(100);
    s.ack(lease.token).expect("an ack");
    let acked_at = s.now();
    s.maybe_reopen();
    for target in [by_id(id), by_key("mail", "k")] {
        let view = s.get(target).expect("the done job");
        assert_eq!((view.state, view.due_at, view.job.id), (State::Done, acked_at, id));
        let (content, progress) = (view.job.content, view.job.progress);
        assert_eq!((content.body, content.put_at), (bytes("work"), put_at));
        assert_eq!((progress.attempts, progress.priority), (1, 7));
        assert_eq!(content.headers.map(|headers| headers.len()), Some(1));
    }
    s.pass(4_999);
    assert_eq!(s.state(id), State::Done);
    s.maybe_reopen();
    s.pass(1);
    assert!(s.is_gone(id));
    refused(s.get(by_key("mail", "k")), Code::NotFound, &["mail", "k"]);
    s.maybe_reopen();
    assert!(s.is_gone(id));
}

fn list_gives_it_by_age(s: &mut Subject) {
    keep(s, 5_000);
    let ids = s.put_many((0..3).map(|_| job("mail")));
    let leases: Vec<_> = ids.iter().map(|id| s.reserve_id(*id)).collect();
    for lease in leases.iter().rev() {
        s.ack(lease.token).expect("an ack");
        s.pass(1);
    }
    s.maybe_reopen();
    let expected: Vec<_> = ids.into_iter().rev().collect();
    assert_eq!(s.list_ids("mail", State::Done, 10), expected);
    for state in [State::Ready, State::Delayed, State::Leased, State::Dead] {
        assert_eq!(s.list_ids("mail", state, 10), []);
    }
}

fn pages_of_done_jobs(s: &mut Subject) {
    keep(s, 5_000);
    for _ in 0..10 {
        acked(s, job("mail"));
        s.pass(1);
    }
    s.maybe_reopen();
    let all = s.list_ids("mail", State::Done, 100);
    assert_eq!(all.len(), 10);
    assert_eq!(s.list_ids("mail", State::Done, 3), all);
    let cursor = s.list("mail", State::Done, None, 3).cursor;
    let foreign = List {
        topic: topic("mail"),
        state: State::Dead,
        cursor,
        limit: 3,
        range: ListRange::default(),
    };
    refused(s.try_list(foreign), Code::Invalid, &["cursor"]);
}

fn peek_gives_the_oldest(s: &mut Subject) {
    keep(s, 5_000);
    assert_eq!(s.peek("mail", State::Done), None);
    let first = acked(s, job("mail"));
    s.pass(1);
    acked(s, job("mail"));
    s.maybe_reopen();
    let view = s.peek("mail", State::Done).expect("the oldest");
    assert_eq!((view.state, view.job.id), (State::Done, first.id));
}

fn nothing_happens_to_it(s: &mut Subject) {
    keep(s, 5_000);
    let id = acked(s, keyed("mail", "k")).id;
    s.maybe_reopen();
    let before = s.view(id);
    for target in [by_id(id), by_key("mail", "k")] {
        let words = [&number(id)[..], "is done"];
        refused(s.cancel(target.clone()), Code::NotFound, &words);
        refused(s.cancel_unless_leased(target.clone()), Code::NotFound, &words);
        refused(s.revive(target.clone()), Code::NotFound, &words);
        refused(s.run_now(target.clone()), Code::NotFound, &words);
        refused(s.delay(target.clone(), 1_000), Code::NotFound, &words);
        refused(s.kill(kill_resting(target)), Code::NotFound, &words);
    }
    let take = ReserveId { id, ttr_ms: None, session: None };
    refused(s.try_reserve_id(take), Code::NotFound, &["is done"]);
    assert_eq!(s.reserve("mail", 1), []);
    assert_eq!((s.kick("mail", 10), s.revive_topic("mail", 10)), (0, 0));
    s.maybe_reopen();
    assert_eq!(s.view(id), before);
}

fn its_token_is_gone(s: &mut Subject) {
    keep(s, 5_000);
    let token = acked(s, job("mail")).token;
    s.maybe_reopen();
    assert_eq!(s.ack(token), Ok(EndReply::Gone), "as if it were gone");
    assert_eq!(s.nack(failed(token)), Ok(EndReply::Gone));
    assert_eq!(s.release(give_back(token)), Ok(EndReply::Gone));
    assert_eq!(s.kill(kill_held(token)), Ok(EndReply::Gone));
    assert!(s.extend(token, None).is_err());
    assert_eq!(s.state(token.id), State::Done);
}

fn a_late_ack_makes_it_done(s: &mut Subject) {
    keep(s, 5_000);
    let id = s.put(Put { ttr_ms: Some(10), ..job("mail") });
    let lease = s.reserve_one("mail");
    s.pass(20);
    s.maybe_reopen();
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
    s.maybe_reopen();
    assert_eq!(s.state(id), State::Done);
    assert_eq!(s.reserve("mail", 1), []);
    assert_eq!(s.ack(lease.token), Ok(EndReply::Gone));
}

fn a_new_job_takes_its_key(s: &mut Subject) {
    use OnConflict::{Earliest, Keep, Latest, Reject, Replace};
    keep(s, 5_000);
    for on_conflict in [Keep, Reject, Replace, Earliest, Latest] {
        let old = acked(s, keyed("mail", "k")).id;
        s.maybe_reopen();
        let reply = s.try_put(Put { on_conflict, ..keyed("mail", "k") }).expect("a put");
        assert_eq!(reply.outcome, PutOutcome::Created, "{on_conflict:?}");
        s.maybe_reopen();
        assert_eq!(s.get(by_key("mail", "k")).expect("the new job").job.id, reply.id);
        let view = s.view(old);
        assert_eq!((view.state, view.job.key()), (State::Done, None));
        s.cancel(by_key("mail", "k")).expect("the new job can be cancelled");
        refused(s.get(by_key("mail", "k")), Code::NotFound, &["k"]);
    }
    assert_eq!(s.stats("mail").counts.done, 5);
}

fn a_job_that_lost_its_key_is_done_without(s: &mut Subject) {
    keep(s, 5_000);
    let id = s.put(keyed("mail", "k"));
    let lease = s.reserve_one("mail");
    let new = s.put(Put { on_conflict: OnConflict::Replace, ..keyed("mail", "k") });
    s.ack(lease.token).expect("an ack");
    s.maybe_reopen();
    assert_eq!(s.state(id), State::Done);
    assert_eq!(s.get(by_key("mail", "k")).expect("the new job").job.id, new);
}

fn key_ttl_holds_the_key_while_it_is_kept(s: &mut Subject) {
    keep(s, 60_000);
    let held = Put { key_ttl_ms: Some(1_000), ..keyed("mail", "k") };
    let id = acked(s, held.clone()).id;
    for _ in 0..2 {
        s.maybe_reopen();
        let reply = s.try_put(held.clone()).expect("a duplicate");
        assert_eq!((reply.id, reply.outcome), (id, PutOutcome::Duplicate));
        let reject = Put { on_conflict: OnConflict::Reject, ..held.clone() };
        refused(s.try_put(reject), Code::Conflict, &["key"]);
        s.pass(499);
    }
    s.pass(2);
    assert_eq!(s.try_put(held).expect("a put").outcome, PutOutcome::Created);
    assert_eq!(s.state(id), State::Done);
}

fn key_ttl_holds_the_key_after_it_is_gone(s: &mut Subject) {
    keep(s, 100);
    let held = Put { key_ttl_ms: Some(1_000), ..keyed("mail", "k") };
    let id = acked(s, held.clone()).id;
    s.maybe_reopen();
    s.pass(100);
    assert!(s.is_gone(id));
    s.maybe_reopen();
    let reply = s.try_put(held.clone()).expect("a duplicate");
    assert_eq!((reply.id, reply.outcome), (id, PutOutcome::Duplicate));
    s.pass(899);
    assert_eq!(s.try_put(held.clone()).expect("a put").outcome, PutOutcome::Duplicate);
    s.maybe_reopen();
    s.pass(1);
    assert_eq!(s.try_put(held).expect("a put").outcome, PutOutcome::Created);
}

fn replace_takes_a_held_key(s: &mut Subject) {
    keep(s, 5_000);
    let held = Put { key_ttl_ms: Some(60_000), ..keyed("mail", "k") };
    let id = acked(s, held.clone()).id;
    s.maybe_reopen();
    let replace = Put { on_conflict: OnConflict::Replace, ..held };
    let reply = s.try_put(replace).expect("a put");
    assert_eq!(reply.outcome, PutOutcome::Created);
    s.maybe_reopen();
    s.cancel(by_id(reply.id)).expect("a cancel");
    s.pass(5_000);
    assert!(s.is_gone(id));
    assert_eq!(s.try_put(keyed("mail", "k")).expect("a put").outcome, PutOutcome::Created);
}

fn it_needs_no_room(s: &mut Subject) {
    let settings = Settings {
        keep_done_ms: Some(5_000),
        jobs_max: Some(1),
        bytes_max: Some(4),
        ..Settings::default()
    };
    s.set_topic("mail", settings);
    for _ in 0..3 {
        acked(s, job("mail"));
        s.maybe_reopen();
    }
    assert_eq!(s.stats("mail").counts.done, 3);
}

fn it_is_counted_apart(s: &mut Subject) {
    keep(s, 5_000);
    acked(s, job("mail"));
    s.maybe_reopen();
    let stats = s.stats("mail");
    let counts = stats.counts;
    assert_eq!((counts.done, counts.acks, counts.bytes), (1, 1, 0));
    assert_eq!((counts.waiting, counts.leased, counts.dead), (0, 0, 0));
    assert_eq!((stats.ready, stats.delayed), (0, 0));
    let total = s.total_stats().expect("stats");
    assert_eq!(total.counts.done, 1);
    s.pass(5_000);
    s.maybe_reopen();
    assert_eq!(s.stats("mail").counts.done, 0);
}

fn purge_removes_it(s: &mut Subject) {
    keep(s, 5_000);
    let id = acked(s, Put { key_ttl_ms: Some(60_000), ..keyed("mail", "k") }).id;
    let other = acked(s, keyed("mail", "other")).id;
    s.maybe_reopen();
    s.purge("mail");
    s.maybe_reopen();
    assert!(s.is_gone(id) && s.is_gone(other));
    assert_eq!(s.list_ids("mail", State::Done, 10), []);
    assert_eq!(s.stats("mail").counts.done, 0);
    assert_eq!(s.try_put(keyed("mail", "other")).expect("a put").outcome, PutOutcome::Created);
}

fn a_shorter_span_removes_it(s: &mut Subject) {
    keep(s, 5_000);
    let old = acked(s, job("mail")).id;
    s.pass(1_000);
    let young = acked(s, job("mail")).id;
    s.maybe_reopen();
    keep(s, 500);
    s.barrier();
    assert!(s.is_gone(old));
    assert_eq!(s.state(young), State::Done);
    s.maybe_reopen();
    s.pass(500);
    assert!(s.is_gone(young));
}

fn a_longer_span_keeps_it(s: &mut Subject) {
    keep(s, 500);
    let id = acked(s, job("mail")).id;
    keep(s, 5_000);
    s.maybe_reopen();
    s.pass(4_999);
    assert_eq!(s.state(id), State::Done);
    s.pass(1);
    assert!(s.is_gone(id));
}

fn without_the_setting_it_goes_at_once(s: &mut Subject) {
    keep(s, 5_000);
    let kept = acked(s, keyed("mail", "k")).id;
    s.set_topic("mail", Settings { ttr_ms: Some(7_000), ..Settings::default() });
    s.maybe_reopen();
    s.barrier();
    assert!(s.is_gone(kept), "history is off");
    refused(s.get(by_key("mail", "k")), Code::NotFound, &["k"]);
    let id = acked(s, job("mail")).id;
    assert!(s.is_gone(id));
}

fn cancelled_and_dead_jobs_are_not_done(s: &mut Subject) {
    keep(s, 5_000);
    let cancelled = s.put(job("mail"));
    s.cancel(by_id(cancelled)).expect("a cancel");
    let dead = s.put(job("mail"));
    s.kill(kill_resting(by_id(dead))).expect("a kill");
    s.maybe_reopen();
    assert!(s.is_gone(cancelled));
    assert_eq!(s.state(dead), State::Dead);
    assert_eq!(s.list_ids("mail", State::Done, 10), []);
}

fn time_without_a_server_counts(s: &mut Subject) {
    keep(s, 5_000);
    let id = acked(s, job("mail")).id;
    if s.reopen_after(4_999) {
        assert_eq!(s.state(id), State::Done);
    }
    if s.reopen_after(1) {
        s.barrier();
        assert!(s.is_gone(id));
    }
}

fn many_are_kept_and_go_together(s: &mut Subject) {
    keep(s, 5_000);
    let put = |n| Put { key: Some(bytes(&format!("k{n}"))), ..job("mail") };
    let ids = s.put_many((0..MANY).map(put));
    let mut tokens = Vec::new();
    while tokens.len() < MANY {
        let jobs = s.reserve("mail", MANY - tokens.len());
        assert!(!jobs.is_empty(), "{} jobs were given, and no more", tokens.len());
        tokens.extend(jobs.iter().map(|job| job.token));
    }
    s.ask(Command::Ack(tokens)).expect("acks");
    s.maybe_reopen();
    assert_eq!(s.stats("mail").counts.done, MANY as u64);
    for n in (0..MANY).step_by(97) {
        let view = s.get(by_key("mail", &format!("k{n}"))).expect("a done job");
        assert_eq!((view.state, view.job.id), (State::Done, ids[n]));
    }
    s.maybe_reopen();
    s.advance(5_000);
    s.await_that(|s| s.stats("mail").counts.done == 0);
    assert!(ids.iter().step_by(97).all(|id| s.is_gone(*id)));
    assert_eq!(s.list_ids("mail", State::Done, 100), []);
}

fn its_topic_goes_with_it(s: &mut Subject) {
    keep(s, 5_000);
    acked(s, job("mail"));
    s.set_topic("mail", Settings::default());
    s.maybe_reopen();
    s.barrier();
    refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
}
