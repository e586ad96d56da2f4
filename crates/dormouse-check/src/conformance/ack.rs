//! ack, and what makes a token good: late is not wrong, twice is harmless, another's is lost.

use super::prelude::*;

cases! { ack:
    removes_the_job
    twice_is_gone
    of_a_job_that_never_was_is_gone
    after_the_lease_ran_out_is_still_good
    after_somebody_took_the_job_is_lost
    another_fence_is_lost
    a_token_is_of_one_job
    a_token_ends_with_nack_release_kill_and_reschedule
    a_token_ends_with_cancel
    a_token_ends_with_death
    a_lost_token_changes_nothing
    a_batch_answers_per_item
    is_final_through_restarts
    holds_the_key_from_the_ack_on
    a_late_ack_holds_the_key_too
    malformed_is_invalid
}

fn leased(s: &Subject, put: Put) -> LeasedJob {
    let id = s.put(put);
    s.reserve_id(id)
}

fn removes_the_job(s: &mut Subject) {
    let lease = leased(s, keyed("mail", "k"));
    s.maybe_reopen();
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
    s.maybe_reopen();
    assert!(s.is_gone(lease.id));
    refused(s.get(by_key("mail", "k")), Code::NotFound, &["mail", "k"]);
}

fn twice_is_gone(s: &mut Subject) {
    let lease = leased(s, job("mail"));
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
    assert_eq!(s.ack(lease.token), Ok(EndReply::Gone));
    s.maybe_reopen();
    assert_eq!(s.ack(lease.token), Ok(EndReply::Gone));
}

fn of_a_job_that_never_was_is_gone(s: &mut Subject) {
    assert_eq!(s.ack(Token { id: JobId(99), fence: 1 }), Ok(EndReply::Gone));
}

fn after_the_lease_ran_out_is_still_good(s: &mut Subject) {
    let lease = leased(s, Put { ttr_ms: Some(10), ..job("mail") });
    s.advance(5_000);
    assert_eq!(s.state(lease.id), State::Ready);
    s.maybe_reopen();
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
    s.maybe_reopen();
    assert!(s.is_gone(lease.id));
    assert_eq!(s.reserve("mail", 1), []);
}

fn after_somebody_took_the_job_is_lost(s: &mut Subject) {
    let late = leased(s, Put { ttr_ms: Some(10), ..job("mail") });
    s.advance(10);
    let lease = s.reserve_one("mail");
    s.maybe_reopen();
    let words = ["token", &number(late.token), "reserve again"];
    refused(s.ack(late.token), Code::LeaseLost, &words);
    // Also when the second lease ran out: the first token does not come back to life.
    s.advance(10);
    refused(s.ack(late.token), Code::LeaseLost, &words);
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
}

fn another_fence_is_lost(s: &mut Subject) {
    let lease = leased(s, job("mail"));
    for fence in [0, lease.token.fence - 1, lease.token.fence + 1, u64::MAX] {
        refused(s.ack(Token { fence, ..lease.token }), Code::LeaseLost, &["token"]);
    }
    assert_eq!(s.state(lease.id), State::Leased);
    let waiting = s.put(delayed("mail", 1_000));
    s.maybe_reopen();
    refused(s.ack(Token { id: waiting, fence: 0 }), Code::LeaseLost, &["token"]);
    assert_eq!(s.state(waiting), State::Delayed, "a job never taken has no good token");
}

fn a_token_is_of_one_job(s: &mut Subject) {
    let (one, two) = (leased(s, job("mail")), leased(s, job("mail")));
    let mixed = Token { id: two.id, fence: one.token.fence };
    refused(s.ack(mixed), Code::LeaseLost, &["token"]);
    assert_eq!((s.state(one.id), s.state(two.id)), (State::Leased, State::Leased));
}

fn a_token_ends_with_nack_release_kill_and_reschedule(s: &mut Subject) {
    let lease = leased(s, Put { attempts_max: Some(0), ..job("mail") });
    s.nack(failed(lease.token)).expect("a nack");
    refused(s.ack(lease.token), Code::LeaseLost, &["token"]);

    let lease = s.reserve_id(lease.id);
    s.release(give_back(lease.token)).expect("a release");
    s.maybe_reopen();
    refused(s.ack(lease.token), Code::LeaseLost, &["token"]);

    let lease = s.reserve_id(lease.id);
    s.advance(60_000);
    s.delay(by_id(lease.id), 5_000).expect("a reschedule of a job whose lease ran out");
    s.maybe_reopen();
    refused(s.ack(lease.token), Code::LeaseLost, &["token"]);

    let lease = s.reserve_id(lease.id);
    s.kill(kill_held(lease.token)).expect("a kill");
    s.maybe_reopen();
    refused(s.ack(lease.token), Code::LeaseLost, &["token"]);
    assert_eq!(s.state(lease.id), State::Dead);
}

fn a_token_ends_with_cancel(s: &mut Subject) {
    let lease = leased(s, job("mail"));
    s.cancel(by_id(lease.id)).expect("a cancel");
    s.maybe_reopen();
    assert_eq!(s.ack(lease.token), Ok(EndReply::Gone), "the job is absent");
}

fn a_token_ends_with_death(s: &mut Subject) {
    let lease = leased(s, Put { ttr_ms: Some(10), attempts_max: Some(1), ..job("mail") });
    s.advance(10);
    assert_eq!(s.state(lease.id), State::Dead);
    s.maybe_reopen();
    refused(s.ack(lease.token), Code::LeaseLost, &["token"]);
    assert_eq!(s.state(lease.id), State::Dead);
}

fn a_lost_token_changes_nothing(s: &mut Subject) {
    let late = leased(s, Put { ttr_ms: Some(10), ..job("mail") });
    s.advance(10);
    s.reserve_one("mail");
    let before = (s.view(late.id), s.stats("mail"));
    refused(s.ack(late.token), Code::LeaseLost, &[]);
    refused(s.nack(failed(late.token)), Code::LeaseLost, &[]);
    refused(s.release(give_back(late.token)), Code::LeaseLost, &[]);
    refused(s.kill(kill_held(late.token)), Code::LeaseLost, &[]);
    refused(s.extend(late.token, None), Code::LeaseLost, &[]);
    assert_eq!((s.view(late.id), s.stats("mail")), before);
}

fn a_batch_answers_per_item(s: &mut Subject) {
    let (one, two) = (leased(s, job("mail")), leased(s, job("mail")));
    let lost = Token { fence: 1, ..two.token };
    let tokens = vec![one.token, lost, one.token, two.token];
    let Ok(Reply::Ended(answers)) = s.ask(Command::Ack(tokens)) else { panic!("no answers") };
    let codes: Vec<_> = answers.into_iter().map(|item| item.map_err(|error| error.code)).collect();
    assert_eq!(
        codes,
        [Ok(EndReply::Done), Err(Code::LeaseLost), Ok(EndReply::Gone), Ok(EndReply::Done)]
    );
}

fn is_final_through_restarts(s: &mut Subject) {
    let ids = s.put_many((0..MANY).map(|_| Put { ttr_ms: Some(10), ..job("mail") }));
    s.maybe_reopen();
    let leases = s.reserve("mail", MANY);
    let tokens: Vec<Token> = leases.iter().step_by(2).map(|job| job.token).collect();
    let acked: Vec<JobId> = tokens.iter().map(|token| token.id).collect();
    s.ask(Command::Ack(tokens)).expect("acks");
    s.maybe_reopen();
    s.advance(10);
    s.maybe_reopen();
    let again: Vec<JobId> = s.reserve("mail", MANY).iter().map(|job| job.id).collect();
    assert_eq!(again.len(), ids.len() - acked.len());
    assert!(acked.iter().all(|id| !again.contains(id)), "an acked job came back");
}

fn holds_the_key_from_the_ack_on(s: &mut Subject) {
    let lease = leased(s, Put { key_ttl_ms: Some(1_000), ..keyed("mail", "k") });
    s.advance(30_000);
    s.ack(lease.token).expect("an ack");
    s.maybe_reopen();
    s.advance(999);
    let kept = s.try_put(keyed("mail", "k")).expect("a duplicate");
    assert_eq!((kept.id, kept.outcome), (lease.id, PutOutcome::Duplicate));
    s.advance(1);
    assert_eq!(s.try_put(keyed("mail", "k")).expect("a put").outcome, PutOutcome::Created);
}

fn a_late_ack_holds_the_key_too(s: &mut Subject) {
    let put = Put { key_ttl_ms: Some(1_000), ttr_ms: Some(10), ..keyed("mail", "k") };
    let lease = leased(s, put);
    s.advance(10);
    s.maybe_reopen();
    s.ack(lease.token).expect("an ack");
    s.maybe_reopen();
    let kept = s.try_put(keyed("mail", "k")).expect("a duplicate");
    assert_eq!((kept.outcome, kept.state), (PutOutcome::Duplicate, None));
}

fn malformed_is_invalid(_: &mut Subject) {
    for text in ["", "1", "1.", ".1", "a.b", "1.2.3", "-1.2", "1 .2"] {
        refused(text.parse::<Token>(), Code::Invalid, &["token", "<id>.<fence>", "reserve"]);
    }
    let token = Token { id: JobId(7), fence: u64::MAX };
    assert_eq!(token.to_string().parse(), Ok(token));
}
