//! expires_after: a job that nobody takes in time dies, and is never handed out. And `delay`, the
//! other default of a topic that is about time.

use super::prelude::*;

cases! { deadlines:
    a_job_dies_when_its_span_is_over
    get_tells_the_span
    one_that_is_taken_in_time_lives_on
    a_release_begins_a_new_span
    a_nack_begins_a_new_span
    a_lease_that_runs_out_begins_a_new_span
    a_revive_begins_a_new_span
    a_later_due_time_moves_the_deadline
    an_earlier_due_time_moves_the_deadline
    one_taken_early_and_given_back_has_an_earlier_deadline
    a_replace_has_the_new_span
    the_wall_clock_moves_deadlines_of_wall_times
    reserve_gives_none_that_is_too_late
    one_that_waits_gets_the_next_good_job
    a_paused_topic_lets_jobs_expire
    time_without_a_server_counts
    an_expired_job_gives_its_key_up
    many_at_once
    nothing_is_left_of_one_that_went_before
    wrong_spans_are_refused
    the_topic_says_for_jobs_that_do_not
    a_zero_is_never
    the_topic_gives_a_delay_to_jobs_that_name_no_time
    a_delay_of_the_topic_is_for_puts_only
    wrong_settings_are_refused
}

/// A job due after this delay that must be taken within this span.
fn expiring(delay_ms: i64, expires_after_ms: i64) -> Put {
    Put { expires_after_ms: Some(expires_after_ms), ..delayed("mail", delay_ms) }
}

/// It lives until the last millisecond of this span, and then it is dead for the reason.
#[track_caller]
fn expires_in(s: &mut Subject, id: JobId, span_ms: u64) {
    s.pass(span_ms - 1);
    assert!(matches!(s.state(id), State::Ready | State::Delayed), "{:?}", s.view(id));
    s.maybe_reopen();
    s.pass(1);
    is_expired(s, id);
}

#[track_caller]
fn is_expired(s: &Subject, id: JobId) {
    let view = s.view(id);
    assert_eq!((view.state, view.job.progress.error), (State::Dead, Some(bytes("expired"))));
}

fn a_job_dies_when_its_span_is_over(s: &mut Subject) {
    let id = s.put(expiring(1_000, 500));
    s.maybe_reopen();
    expires_in(s, id, 1_500);
    assert_eq!(s.reserve("mail", 1), []);
    let view = s.view(id);
    assert_eq!((view.due_at, view.job.progress.attempts), (s.now(), 0));
    assert_eq!(view.job.progress.kills, 1);
    let counts = s.stats("mail").counts;
    assert_eq!((counts.waiting, counts.dead, counts.kills), (0, 1, 1));
    s.maybe_reopen();
    is_expired(s, id);
}

fn get_tells_the_span(s: &mut Subject) {
    let id = s.put(expiring(0, 500));
    s.maybe_reopen();
    assert_eq!(s.view(id).job.content.expires_after_ms, 500);
}

fn one_that_is_taken_in_time_lives_on(s: &mut Subject) {
    let id = s.put(expiring(0, 500));
    s.maybe_reopen();
    s.pass(499);
    let lease = s.reserve_one("mail");
    s.maybe_reopen();
    s.pass(5_000);
    assert_eq!(s.state(id), State::Leased);
    s.maybe_reopen();
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
    assert!(s.is_gone(id));
}

fn a_release_begins_a_new_span(s: &mut Subject) {
    let id = s.put(expiring(0, 500));
    s.pass(400);
    let lease = s.reserve_one("mail");
    s.pass(300);
    s.release(Release { delay_ms: Some(1_000), ..give_back(lease.token) }).expect("a release");
    s.maybe_reopen();
    expires_in(s, id, 1_500);
}

fn a_nack_begins_a_new_span(s: &mut Subject) {
    let id = s.put(expiring(0, 500));
    let lease = s.reserve_one("mail");
    s.pass(400);
    s.nack(Nack { delay_ms: Some(1_000), ..failed(lease.token) }).expect("a nack");
    s.maybe_reopen();
    expires_in(s, id, 1_500);
    assert_eq!(s.view(id).job.progress.attempts, 1);
}

fn a_lease_that_runs_out_begins_a_new_span(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(1_000), ..expiring(0, 500) });
    s.reserve_one("mail");
    s.maybe_reopen();
    s.pass(1_000);
    assert_eq!(s.state(id), State::Ready);
    expires_in(s, id, 500);
}

fn a_revive_begins_a_new_span(s: &mut Subject) {
    let id = s.put(expiring(0, 500));
    expires_in(s, id, 500);
    s.revive(by_id(id)).expect("a revive");
    s.maybe_reopen();
    expires_in(s, id, 500);
    assert_eq!(s.revive_topic("mail", 10), 1);
    expires_in(s, id, 500);
    assert_eq!(s.view(id).job.progress.kills, 3);
}

fn a_later_due_time_moves_the_deadline(s: &mut Subject) {
    let id = s.put(expiring(100, 500));
    s.delay(by_id(id), 2_000).expect("a reschedule");
    s.maybe_reopen();
    expires_in(s, id, 2_500);
}

fn an_earlier_due_time_moves_the_deadline(s: &mut Subject) {
    let id = s.put(expiring(90_000, 500));
    s.run_now(by_id(id)).expect("a run now");
    s.maybe_reopen();
    expires_in(s, id, 500);
    let id = s.put(expiring(90_000, 500));
    assert_eq!(s.kick("mail", 1), 1);
    s.maybe_reopen();
    expires_in(s, id, 500);
}

fn one_taken_early_and_given_back_has_an_earlier_deadline(s: &mut Subject) {
    let id = s.put(expiring(90_000, 500));
    let lease = s.reserve_id(id);
    s.release(give_back(lease.token)).expect("a release");
    s.maybe_reopen();
    expires_in(s, id, 500);
}

fn a_replace_has_the_new_span(s: &mut Subject) {
    let put = |expires_after_ms| Put {
        key: Some(bytes("k")),
        on_conflict: OnConflict::Replace,
        ..expiring(0, expires_after_ms)
    };
    let id = s.put(put(500));
    assert_eq!(s.put(put(2_000)), id);
    s.maybe_reopen();
    expires_in(s, id, 2_000);
    assert_eq!(s.put(put(0)), id, "replace revives a dead job");
    s.maybe_reopen();
    s.pass(1_000_000);
    assert_eq!(s.state(id), State::Ready);
}

fn the_wall_clock_moves_deadlines_of_wall_times(s: &mut Subject) {
    let at_ms = Some(s.now() as i64 + 1_000);
    let id = s.put(Put { delay_ms: None, at_ms, ..expiring(0, 500) });
    let steady = s.put(expiring(1_000, 500));
    s.maybe_reopen();
    if s.step_wall_ms(1_400) {
        s.barrier();
        assert_eq!(s.state(id), State::Ready);
        s.step_wall_ms(100);
        s.await_that(|s| s.state(id) == State::Dead);
        is_expired(s, id);
        assert_eq!(s.state(steady), State::Delayed);
    }
}

fn reserve_gives_none_that_is_too_late(s: &mut Subject) {
    let late = s.put_many((0..3).map(|_| expiring(0, 500)));
    let good = s.put(job("mail"));
    s.maybe_reopen();
    // No tick need have come.
    s.advance(500);
    let given: Vec<_> = s.reserve("mail", 10).iter().map(|job| job.id).collect();
    assert_eq!(given, [good]);
    s.barrier();
    late.into_iter().for_each(|id| is_expired(s, id));
}

fn one_that_waits_gets_the_next_good_job(s: &mut Subject) {
    let late = s.put(expiring(0, 500));
    s.pass(500);
    let waiting = s.park(wait_for("mail", 60_000));
    let good = s.put(job("mail"));
    assert_eq!(waiting.job().id, good);
    is_expired(s, late);
}

fn a_paused_topic_lets_jobs_expire(s: &mut Subject) {
    let late = s.put(expiring(0, 500));
    let good = s.put(job("mail"));
    s.pause("mail", None);
    let waiting = s.park(wait_for("mail", 60_000));
    s.pass(500);
    is_expired(s, late);
    s.resume("mail");
    assert_eq!(waiting.job().id, good);
}

fn time_without_a_server_counts(s: &mut Subject) {
    let id = s.put(expiring(0, 500));
    let later = s.put(expiring(0, 2_000));
    if s.reopen_after(600) {
        assert_eq!(s.reserve_one("mail").id, later);
        s.barrier();
        is_expired(s, id);
    }
}

fn an_expired_job_gives_its_key_up(s: &mut Subject) {
    let put = Put { key: Some(bytes("k")), ..expiring(0, 500) };
    let id = s.put(put.clone());
    expires_in(s, id, 500);
    let reply = s.try_put(put).expect("a put");
    assert_eq!(reply.outcome, PutOutcome::Created);
    assert_ne!(reply.id, id);
    s.maybe_reopen();
    is_expired(s, id);
}

fn many_at_once(s: &mut Subject) {
    let ids = s.put_many((0..MANY).map(|n| expiring((n % 7) as i64, 1_000)));
    s.maybe_reopen();
    s.pass(900);
    let taken: Vec<_> = s.reserve("mail", 100).iter().map(|job| job.id).collect();
    assert_eq!(taken.len(), 100);
    s.maybe_reopen();
    s.advance(107);
    assert_eq!(s.reserve("mail", 10), []);
    s.await_that(|s| s.stats("mail").counts.waiting == 0);
    let counts = s.stats("mail").counts;
    let (waiting, leased, dead) = (counts.waiting, counts.leased, counts.dead);
    assert_eq!((waiting, leased, dead), (0, 100, MANY as u64 - 100));
    let expected = |id: &JobId| if taken.contains(id) { State::Leased } else { State::Dead };
    assert!(ids.iter().step_by(29).all(|id| s.state(*id) == expected(id)));
}

fn nothing_is_left_of_one_that_went_before(s: &mut Subject) {
    let cancelled = s.put(expiring(0, 500));
    s.cancel(by_id(cancelled)).expect("a cancel");
    let acked = s.put(expiring(0, 500));
    let lease = s.reserve_one("mail");
    s.ack(lease.token).expect("an ack");
    s.put(expiring(0, 500));
    s.purge("mail");
    s.maybe_reopen();
    s.pass(500);
    assert!(s.is_gone(cancelled) && s.is_gone(acked));
    refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
}

fn wrong_spans_are_refused(s: &mut Subject) {
    let most = limits::TTL_MS_MAX as i64;
    for ms in [-1, most + 1, i64::MAX] {
        refused(s.try_put(expiring(0, ms)), Code::Invalid, &["expires_after", &number(most)]);
    }
    refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
    s.put(expiring(0, most));
}

fn the_topic_says_for_jobs_that_do_not(s: &mut Subject) {
    s.set_topic("mail", Settings { expires_after_ms: Some(500), ..Settings::default() });
    let by_topic = s.put(job("mail"));
    let own = s.put(expiring(0, 2_000));
    let never = s.put(expiring(0, 0));
    s.set_topic("mail", Settings::default());
    let put_later = s.put(job("mail"));
    s.maybe_reopen();
    expires_in(s, by_topic, 500);
    expires_in(s, own, 1_500);
    s.pass(1_000_000);
    for id in [never, put_later] {
        assert_eq!(s.state(id), State::Ready);
    }
}

fn a_zero_is_never(s: &mut Subject) {
    let id = s.put(expiring(0, 0));
    s.maybe_reopen();
    s.pass(limits::TTL_MS_MAX / 10);
    assert_eq!(s.reserve_one("mail").id, id);
}

fn the_topic_gives_a_delay_to_jobs_that_name_no_time(s: &mut Subject) {
    s.set_topic("mail", Settings { delay_ms: Some(1_000), ..Settings::default() });
    s.maybe_reopen();
    let reply = s.try_put(job("mail")).expect("a put");
    assert_eq!((reply.state, reply.due_at), (Some(State::Delayed), s.now() + 1_000));
    let own = s.put(delayed("mail", 0));
    assert_eq!(s.state(own), State::Ready, "a delay of its own");
    let at_ms = Some(s.now() as i64 + 500);
    let timed = s.put(Put { at_ms, ..job("mail") });
    assert_eq!(s.view(timed).due_at, s.now() + 500);
    s.maybe_reopen();
    s.pass(1_000);
    assert_eq!(s.state(reply.id), State::Ready);
}

fn a_delay_of_the_topic_is_for_puts_only(s: &mut Subject) {
    s.set_topic("mail", Settings { delay_ms: Some(1_000), ..Settings::default() });
    let id = s.put(job("mail"));
    s.run_now(by_id(id)).expect("a run now");
    assert_eq!(s.state(id), State::Ready);
    let lease = s.reserve_one("mail");
    s.release(give_back(lease.token)).expect("a release");
    s.maybe_reopen();
    assert_eq!(s.state(id), State::Ready);
    s.kill(kill_resting(by_id(id))).expect("a kill");
    s.revive(by_id(id)).expect("a revive");
    assert_eq!(s.state(id), State::Ready);
}

fn wrong_settings_are_refused(s: &mut Subject) {
    let over = limits::TTL_MS_MAX + 1;
    let none = Settings::default();
    for (field, settings) in [
        ("expires_after", Settings { expires_after_ms: Some(over), ..none.clone() }),
        ("delay", Settings { delay_ms: Some(over), ..none.clone() }),
        ("keep_done", Settings { keep_done_ms: Some(over), ..none.clone() }),
    ] {
        let words = [field, &number(limits::TTL_MS_MAX)];
        refused(s.try_set_topic("mail", settings), Code::Invalid, &words);
        refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
    }
}
