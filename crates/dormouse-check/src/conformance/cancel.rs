//! cancel: gone for good, with an exact answer, in every state.

use super::prelude::*;

cases! { cancel:
    delayed_and_ready_and_dead
    it_tells_when_the_job_would_have_been_due
    leased_revokes_the_token
    leased_with_unless_leased_is_a_conflict
    unless_leased_cancels_what_rests
    by_its_key
    a_lease_that_ran_out_is_resting
    missing_is_not_found
    a_held_key_is_not_found
    twice_is_not_found
    frees_the_key_at_once
    any_of_many
    is_final_through_restarts
    a_batch_answers_per_item
    counts
}

fn delayed_and_ready_and_dead(s: &mut Subject) {
    for state in [State::Delayed, State::Ready, State::Dead] {
        let delay_ms = if state == State::Delayed { 31_536_000_000 } else { 0 };
        let id = s.put(delayed("mail", delay_ms));
        if state == State::Dead {
            s.kill(kill_resting(by_id(id))).expect("a kill");
        }
        s.maybe_reopen();
        let changed = s.cancel(by_id(id)).expect("a cancel");
        assert_eq!((changed.id, changed.was), (id, state));
        s.maybe_reopen();
        assert!(s.is_gone(id), "{state}");
        assert_eq!(s.reserve("mail", 1), []);
    }
    refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
}

fn it_tells_when_the_job_would_have_been_due(s: &mut Subject) {
    let id = s.put(delayed("mail", 31_536_000_000));
    s.maybe_reopen();
    let due_at = s.now() + 31_536_000_000;
    assert_eq!(s.cancel(by_id(id)), Ok(ChangeReply { id, was: State::Delayed, due_at }));
}

fn leased_revokes_the_token(s: &mut Subject) {
    let id = s.put(job("mail"));
    let lease = s.reserve_one("mail");
    s.maybe_reopen();
    let changed = s.cancel(by_id(id)).expect("a cancel");
    assert_eq!((changed.id, changed.was), (id, State::Leased));
    s.maybe_reopen();
    assert!(s.is_gone(id));
    assert_eq!(s.ack(lease.token), Ok(EndReply::Gone));
    s.advance(60_000);
    assert_eq!(s.reserve("mail", 1), [], "its expiry brings nothing back");
}

fn leased_with_unless_leased_is_a_conflict(s: &mut Subject) {
    let id = s.put(keyed("mail", "k"));
    let lease = s.reserve_one("mail");
    s.maybe_reopen();
    for target in [by_id(id), by_key("mail", "k")] {
        let words = [&number(id)[..], "leased", "unless_leased"];
        let error = refused(s.cancel_unless_leased(target), Code::Conflict, &words);
        assert_eq!(error.job, Some((id, State::Leased)));
    }
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
}

fn unless_leased_cancels_what_rests(s: &mut Subject) {
    let id = s.put(delayed("mail", 10));
    s.maybe_reopen();
    assert_eq!(s.cancel_unless_leased(by_id(id)).expect("a cancel").was, State::Delayed);
    assert!(s.is_gone(id));
}

fn by_its_key(s: &mut Subject) {
    let id = s.put(keyed("mail", "k"));
    s.put(keyed("sms", "k"));
    s.maybe_reopen();
    let changed = s.cancel(by_key("mail", "k")).expect("a cancel");
    assert_eq!(changed.id, id);
    assert!(s.is_gone(id));
    assert_eq!(s.stats("sms").ready, 1);
}

fn a_lease_that_ran_out_is_resting(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(10), ..job("mail") });
    let token = s.reserve_one("mail").token;
    s.advance(10);
    assert_eq!(s.cancel_unless_leased(by_id(id)).expect("a cancel").was, State::Ready);
    assert_eq!(s.ack(token), Ok(EndReply::Gone));
}

fn missing_is_not_found(s: &mut Subject) {
    refused(s.cancel(by_id(JobId(5))), Code::NotFound, &["job 5", "never put"]);
    let target = by_key("mail", "k");
    refused(s.cancel(target), Code::NotFound, &["mail", "k", "never put"]);
}

fn a_held_key_is_not_found(s: &mut Subject) {
    s.put(Put { key_ttl_ms: Some(1_000), ..keyed("mail", "k") });
    let token = s.reserve_one("mail").token;
    s.ack(token).expect("an ack");
    s.maybe_reopen();
    refused(s.cancel(by_key("mail", "k")), Code::NotFound, &["k"]);
    refused(s.cancel(by_id(token.id)), Code::NotFound, &[&number(token.id)]);
    let kept = s.try_put(keyed("mail", "k")).expect("a duplicate");
    assert_eq!(kept.outcome, PutOutcome::Duplicate, "the hold stays");
}

fn twice_is_not_found(s: &mut Subject) {
    let id = s.put(job("mail"));
    s.cancel(by_id(id)).expect("a cancel");
    refused(s.cancel(by_id(id)), Code::NotFound, &[&number(id)]);
    s.maybe_reopen();
    refused(s.cancel(by_id(id)), Code::NotFound, &[&number(id)]);
}

fn frees_the_key_at_once(s: &mut Subject) {
    let first = s.put(Put { key_ttl_ms: Some(60_000), ..keyed("mail", "k") });
    s.maybe_reopen();
    s.cancel(by_id(first)).expect("a cancel");
    let second = s.try_put(keyed("mail", "k")).expect("a put");
    assert_eq!(second.outcome, PutOutcome::Created);
    assert_ne!(second.id, first);
}

fn any_of_many(s: &mut Subject) {
    let year_ms = 31_536_000_000;
    let ids = s.put_many((0..MANY).map(|n| delayed("mail", n as i64 * (year_ms / MANY as i64))));
    s.maybe_reopen();
    let cancelled: Vec<_> = ids.iter().copied().step_by(7).collect();
    for &id in &cancelled {
        assert_eq!(s.cancel(by_id(id)).expect("a cancel").id, id);
    }
    s.maybe_reopen();
    assert_eq!(s.stats("mail").counts.waiting, (MANY - cancelled.len()) as u64);
    s.advance(year_ms as u64);
    let given: Vec<_> = s.reserve("mail", MANY).iter().map(|job| job.id).collect();
    let kept: Vec<_> = ids.into_iter().filter(|id| !cancelled.contains(id)).collect();
    assert_eq!(given, kept);
}

fn is_final_through_restarts(s: &mut Subject) {
    let id = s.put(delayed("mail", 1_000));
    s.maybe_reopen();
    s.cancel(by_id(id)).expect("a cancel");
    for _ in 0..3 {
        s.maybe_reopen();
        assert!(s.is_gone(id));
    }
    s.advance(1_000);
    assert_eq!(s.reserve("mail", 1), []);
}

fn a_batch_answers_per_item(s: &mut Subject) {
    let id = s.put(job("mail"));
    let cancel = |target| Cancel { target, unless_leased: false };
    let items = [by_id(JobId(0)), by_id(id), by_id(id)].map(cancel);
    let Ok(Reply::Changed(answers)) = s.ask(Command::Cancel(items.into())) else {
        panic!("no answers");
    };
    let codes: Vec<_> =
        answers.into_iter().map(|item| item.map(|c| c.id).map_err(|e| e.code)).collect();
    assert_eq!(codes, [Err(Code::NotFound), Ok(id), Err(Code::NotFound)]);
}

fn counts(s: &mut Subject) {
    let id = s.put(Put::new(topic("mail"), "12345"));
    s.put(Put::new(topic("mail"), "123"));
    s.cancel(by_id(id)).expect("a cancel");
    s.maybe_reopen();
    let counts = s.stats("mail").counts;
    assert_eq!((counts.waiting, counts.bytes, counts.cancels), (1, 3, 1));
}
