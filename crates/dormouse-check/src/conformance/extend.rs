//! extend: the same lease for longer, counted from now.

use super::prelude::*;

cases! { extend:
    counts_from_now
    without_a_ttr_the_leases_own_length
    may_shorten
    keeps_token_and_attempt
    again_and_again
    a_lease_that_ran_out_goes_on
    not_after_somebody_took_the_job
    not_after_death
    of_a_missing_job_is_not_found
    ttr_out_of_range
    a_batch_answers_per_item
}

fn leased(s: &Subject, ttr_ms: i64) -> LeasedJob {
    s.put(Put { ttr_ms: Some(ttr_ms), ..job("mail") });
    s.reserve_one("mail")
}

fn counts_from_now(s: &mut Subject) {
    let lease = leased(s, 1_000);
    s.advance(900);
    assert_eq!(s.extend(lease.token, Some(5_000)), Ok(s.now() + 5_000));
    s.advance(4_999);
    assert_eq!(s.state(lease.id), State::Leased);
    s.advance(1);
    assert_eq!(s.state(lease.id), State::Ready);
}

fn without_a_ttr_the_leases_own_length(s: &mut Subject) {
    s.put(Put { ttr_ms: Some(1_000), ..job("mail") });
    let reserve = Reserve { ttr_ms: Some(300), ..take("mail") };
    let lease = s.try_reserve(reserve).expect("a job").remove(0);
    s.advance(200);
    assert_eq!(s.extend(lease.token, None), Ok(s.now() + 300));
}

fn may_shorten(s: &mut Subject) {
    let lease = leased(s, 60_000);
    s.extend(lease.token, Some(1)).expect("an extend");
    s.advance(1);
    assert_eq!(s.state(lease.id), State::Ready);
}

fn keeps_token_and_attempt(s: &mut Subject) {
    let lease = leased(s, 1_000);
    s.extend(lease.token, None).expect("an extend");
    s.maybe_reopen();
    assert_eq!(s.view(lease.id).job.progress.attempts, 1);
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
}

fn again_and_again(s: &mut Subject) {
    let lease = leased(s, 1_000);
    for _ in 0..20 {
        s.advance(999);
        s.extend(lease.token, None).expect("an extend");
        assert_eq!(s.reserve("mail", 1), []);
    }
    assert_eq!(s.view(lease.id).job.progress.expiries, 0);
}

fn a_lease_that_ran_out_goes_on(s: &mut Subject) {
    let lease = leased(s, 1_000);
    s.advance(5_000);
    assert_eq!(s.state(lease.id), State::Ready);
    s.maybe_reopen();
    assert_eq!(s.extend(lease.token, None), Ok(s.now() + 1_000));
    assert_eq!(s.state(lease.id), State::Leased);
    assert_eq!(s.reserve("mail", 1), []);
    s.maybe_reopen();
    let progress = s.view(lease.id).job.progress;
    assert_eq!((progress.attempts, progress.reserves), (1, 1), "the same attempt");
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
}

fn not_after_somebody_took_the_job(s: &mut Subject) {
    let lease = leased(s, 10);
    s.advance(10);
    let other = s.reserve_one("mail");
    let words = ["token", &number(lease.token), "reserve again"];
    refused(s.extend(lease.token, None), Code::LeaseLost, &words);
    assert_eq!(s.view(lease.id).due_at, other.expires_at);
}

fn not_after_death(s: &mut Subject) {
    s.put(Put { ttr_ms: Some(10), attempts_max: Some(1), ..job("mail") });
    let lease = s.reserve_one("mail");
    s.advance(10);
    refused(s.extend(lease.token, None), Code::LeaseLost, &["token"]);
    assert_eq!(s.state(lease.id), State::Dead);
}

fn of_a_missing_job_is_not_found(s: &mut Subject) {
    let lease = leased(s, 1_000);
    s.cancel(by_id(lease.id)).expect("a cancel");
    // Not a harmless `gone` as for ack: a worker that extends goes on working, and must stop.
    refused(s.extend(lease.token, None), Code::NotFound, &[&number(lease.id), "drop"]);
}

fn ttr_out_of_range(s: &mut Subject) {
    let lease = leased(s, 1_000);
    for ttr_ms in [0, -1, limits::TTL_MS_MAX as i64 + 1] {
        let words = ["ttr", &number(ttr_ms), "give 1 to"];
        refused(s.extend(lease.token, Some(ttr_ms)), Code::Invalid, &words);
    }
    assert_eq!(s.view(lease.id).due_at, lease.expires_at);
}

fn a_batch_answers_per_item(s: &mut Subject) {
    let lease = leased(s, 1_000);
    let good = Extend { token: lease.token, ttr_ms: Some(7) };
    let lost = Extend { token: Token { fence: 0, ..lease.token }, ttr_ms: None };
    let Ok(Reply::Extended(answers)) = s.ask(Command::Extend(vec![lost, good])) else {
        panic!("no answers");
    };
    let [Err(error), Ok(extended)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((error.code, extended.expires_at), (Code::LeaseLost, s.now() + 7));
}
