//! Sessions: leases that end with a connection or process.

use super::prelude::*;

cases! { session:
    closing_releases_its_leases_unspent
    closing_answers_its_waiting_reserves
    other_leases_stay
    a_lease_that_ended_before_is_left_alone
    a_lease_that_ran_out_before_stays_spent
    a_worker_that_hangs_and_is_killed_spends_its_attempts
    a_job_that_another_session_took_stays_with_it
    an_extended_lease_that_had_run_out_leaves_the_session
    reserve_id_in_a_session
    released_leases_wake_who_waits
    an_unknown_session_is_not_found
    closing_twice_is_not_found
    extend_keeps_it_in_the_session
    leases_of_sessions_are_released_by_a_restart
    sessions_end_with_a_restart
}

fn reserve_in(s: &Subject, session: SessionId) -> LeasedJob {
    let reserve = Reserve { session: Some(session), ..take("mail") };
    s.try_reserve(reserve).expect("jobs").pop().expect("a job")
}

fn closing_releases_its_leases_unspent(s: &mut Subject) {
    let ids = s.put_many((0..2).map(|_| Put { attempts_max: Some(1), ..job("mail") }));
    let session = s.open_session();
    let leases = [reserve_in(s, session), reserve_in(s, session)];
    s.advance(100);
    s.close_session(session).expect("a close");
    for id in ids {
        let view = s.view(id);
        assert_eq!((view.state, view.due_at), (State::Ready, s.now()));
        assert_eq!((view.job.progress.attempts, view.job.progress.reserves), (0, 1));
        assert_eq!((view.job.progress.releases, view.job.progress.expiries), (0, 0));
    }
    refused(s.ack(leases[0].token), Code::LeaseLost, &["token"]);
    assert_eq!(s.reserve("mail", 2).len(), 2);
}

fn closing_answers_its_waiting_reserves(s: &mut Subject) {
    let session = s.open_session();
    let waiting = s.park(Reserve { session: Some(session), ..wait_for("mail", 60_000) });
    s.close_session(session).expect("a close");
    assert_eq!(waiting.jobs(), []);
    s.put(job("mail"));
    assert_eq!(s.stats("mail").ready, 1, "nobody waits any more");
}

fn other_leases_stay(s: &mut Subject) {
    s.put_many((0..3).map(|_| job("mail")));
    let (one, two) = (s.open_session(), s.open_session());
    assert_ne!(one, two);
    let free = s.reserve_one("mail");
    let mine = reserve_in(s, one);
    let theirs = reserve_in(s, two);
    s.close_session(one).expect("a close");
    assert_eq!(s.state(mine.id), State::Ready);
    assert_eq!(s.ack(free.token), Ok(EndReply::Done));
    assert_eq!(s.ack(theirs.token), Ok(EndReply::Done));
}

fn a_lease_that_ended_before_is_left_alone(s: &mut Subject) {
    let acked = s.put(job("mail"));
    let expired = s.put(Put { ttr_ms: Some(10), ..job("mail") });
    let session = s.open_session();
    let lease = reserve_in(s, session);
    reserve_in(s, session);
    s.ack(lease.token).expect("an ack");
    s.advance(10);
    let other = s.reserve_one("mail");
    assert_eq!(other.id, expired);
    s.close_session(session).expect("a close");
    assert!(s.is_gone(acked));
    assert_eq!(s.ack(other.token), Ok(EndReply::Done), "taken by another since");
}

fn a_lease_that_ran_out_before_stays_spent(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(10), ..job("mail") });
    let session = s.open_session();
    let lease = reserve_in(s, session);
    s.advance(100);
    s.close_session(session).expect("a close");
    let view = s.view(id);
    assert_eq!((view.state, view.due_at), (State::Ready, lease.expires_at));
    let progress = view.job.progress;
    assert_eq!((progress.attempts, progress.reserves), (1, 1));
    assert_eq!((progress.releases, progress.expiries), (0, 1));
    let counts = s.stats("mail").counts;
    assert_eq!((counts.releases, counts.waiting), (0, 1));
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done), "late is not wrong");
}

fn a_worker_that_hangs_and_is_killed_spends_its_attempts(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(10), attempts_max: Some(2), ..job("mail") });
    for attempt in 1..=2 {
        let session = s.open_session();
        assert_eq!(reserve_in(s, session).attempt, attempt);
        s.advance(10);
        s.close_session(session).expect("a close");
    }
    assert_eq!(s.state(id), State::Dead);
}

fn a_job_that_another_session_took_stays_with_it(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(10), ..job("mail") });
    let (one, two) = (s.open_session(), s.open_session());
    reserve_in(s, one);
    s.advance(10);
    let taken = reserve_in(s, two);
    s.close_session(one).expect("a close");
    let view = s.view(id);
    assert_eq!((view.state, view.due_at), (State::Leased, taken.expires_at));
    assert_eq!((view.job.progress.attempts, view.job.progress.releases), (2, 0));
    s.close_session(two).expect("a close");
    let view = s.view(id);
    assert_eq!((view.state, view.due_at), (State::Ready, s.now()));
    assert_eq!(view.job.progress.attempts, 1, "only the second lease was given back");
}

fn an_extended_lease_that_had_run_out_leaves_the_session(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(10), ..job("mail") });
    let session = s.open_session();
    let lease = reserve_in(s, session);
    s.advance(10);
    let expires_at = s.extend(lease.token, Some(1_000)).expect("an extend");
    s.close_session(session).expect("a close");
    let view = s.view(id);
    assert_eq!((view.state, view.due_at), (State::Leased, expires_at));
    // The next lease is again one of its session.
    s.release(give_back(lease.token)).expect("a release");
    let session = s.open_session();
    reserve_in(s, session);
    s.close_session(session).expect("a close");
    assert_eq!(s.view(id).job.progress.attempts, 0);
}

fn reserve_id_in_a_session(s: &mut Subject) {
    let id = s.put(delayed("mail", 1_000));
    let session = s.open_session();
    let reserve = ReserveId { id, ttr_ms: None, session: Some(session) };
    s.try_reserve_id(reserve).expect("a lease");
    s.close_session(session).expect("a close");
    assert_eq!(s.state(id), State::Ready);
}

fn released_leases_wake_who_waits(s: &mut Subject) {
    let id = s.put(job("mail"));
    let session = s.open_session();
    reserve_in(s, session);
    let waiting = s.park(wait_for("mail", 60_000));
    s.close_session(session).expect("a close");
    let lease = waiting.job();
    assert_eq!((lease.id, lease.attempt), (id, 1));
}

fn an_unknown_session_is_not_found(s: &mut Subject) {
    let id = s.put(job("mail"));
    let session = Some(SessionId(777));
    let words = ["session 777", "open"];
    refused(s.try_reserve(Reserve { session, ..take("mail") }), Code::NotFound, &words);
    let reserve = ReserveId { id, ttr_ms: None, session };
    refused(s.try_reserve_id(reserve), Code::NotFound, &words);
    refused(s.close_session(SessionId(777)), Code::NotFound, &words);
    assert_eq!(s.state(id), State::Ready);
}

fn closing_twice_is_not_found(s: &mut Subject) {
    let session = s.open_session();
    s.close_session(session).expect("a close");
    refused(s.close_session(session), Code::NotFound, &["session", "closed before"]);
    let reserve = Reserve { session: Some(session), ..take("mail") };
    refused(s.try_reserve(reserve), Code::NotFound, &["session"]);
    assert_ne!(s.open_session(), session, "names are not given twice");
}

fn extend_keeps_it_in_the_session(s: &mut Subject) {
    let id = s.put(job("mail"));
    let session = s.open_session();
    let lease = reserve_in(s, session);
    s.extend(lease.token, Some(100_000)).expect("an extend");
    s.close_session(session).expect("a close");
    assert_eq!(s.state(id), State::Ready);
}

fn leases_of_sessions_are_released_by_a_restart(s: &mut Subject) {
    let id = s.put(Put { attempts_max: Some(1), ..job("mail") });
    let session = s.open_session();
    let lease = reserve_in(s, session);
    s.churn();
    if !s.reopen() {
        return;
    }
    let view = s.view(id);
    assert_eq!((view.state, view.job.progress.attempts), (State::Ready, 0));
    assert_eq!((view.job.progress.releases, view.job.progress.reserves), (0, 1));
    refused(s.ack(lease.token), Code::LeaseLost, &["token"]);
    assert!(s.reserve_one("mail").token.fence > lease.token.fence);
}

fn sessions_end_with_a_restart(s: &mut Subject) {
    let session = s.open_session();
    if !s.reopen() {
        return;
    }
    refused(s.close_session(session), Code::NotFound, &["session"]);
}
