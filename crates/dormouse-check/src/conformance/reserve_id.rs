//! reserve_id: a given job, whatever its due time.

use super::prelude::*;

cases! { reserve_id:
    takes_a_waiting_job_before_its_time
    takes_a_dead_job
    takes_from_a_paused_topic
    a_leased_job_is_a_conflict
    a_missing_job_is_not_found
    a_ttr_of_its_own
    ttr_out_of_range
    a_lease_that_ran_out_is_taken_over
    takes_any_of_many
}

fn takes_a_waiting_job_before_its_time(s: &mut Subject) {
    let id = s.put(delayed("mail", 3_600_000));
    s.maybe_reopen();
    let lease = s.reserve_id(id);
    assert_eq!((lease.id, lease.attempt, lease.late_ms), (id, 1, 0));
    assert_eq!(lease.due_at, s.now() + 3_600_000);
    assert_eq!(lease.expires_at, s.now() + 60_000);
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
    s.maybe_reopen();
    assert!(s.is_gone(id));
}

fn takes_a_dead_job(s: &mut Subject) {
    let id = s.put(Put { attempts_max: Some(1), ..job("mail") });
    s.kill(kill_resting(by_id(id))).expect("a kill");
    s.maybe_reopen();
    let lease = s.reserve_id(id);
    let stats = s.stats("mail");
    assert_eq!((stats.counts.dead, stats.counts.leased), (0, 1));
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
}

fn takes_from_a_paused_topic(s: &mut Subject) {
    let id = s.put(job("mail"));
    s.pause("mail", None);
    assert_eq!(s.reserve_id(id).id, id, "who names a job means it");
}

fn try_take(s: &Subject, id: JobId, ttr_ms: Option<i64>) -> Result<LeasedJob, Error> {
    s.try_reserve_id(ReserveId { id, ttr_ms, session: None })
}

fn a_leased_job_is_a_conflict(s: &mut Subject) {
    let id = s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    s.maybe_reopen();
    let words = [&number(id)[..], "leased", "wait"];
    let error = refused(try_take(s, id, None), Code::Conflict, &words);
    assert_eq!(error.job, Some((id, State::Leased)));
    assert_eq!(s.ack(token), Ok(EndReply::Done), "the lease is untouched");
}

fn a_missing_job_is_not_found(s: &mut Subject) {
    refused(try_take(s, JobId(77), None), Code::NotFound, &["job 77"]);
    let id = s.put(job("mail"));
    s.cancel(by_id(id)).expect("a cancel");
    s.maybe_reopen();
    refused(try_take(s, id, None), Code::NotFound, &[&number(id)]);
}

fn a_ttr_of_its_own(s: &mut Subject) {
    let id = s.put(job("mail"));
    let lease = try_take(s, id, Some(5)).expect("a lease");
    assert_eq!((lease.ttr_ms, lease.expires_at), (5, s.now() + 5));
    s.advance(5);
    assert_eq!(s.state(id), State::Ready);
}

fn ttr_out_of_range(s: &mut Subject) {
    let id = s.put(job("mail"));
    refused(try_take(s, id, Some(0)), Code::Invalid, &["ttr", "give 1 to"]);
    assert_eq!(s.state(id), State::Ready);
}

fn a_lease_that_ran_out_is_taken_over(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(10), ..job("mail") });
    let late = s.reserve_one("mail").token;
    s.advance(10);
    let lease = s.reserve_id(id);
    assert_eq!(lease.attempt, 2);
    refused(s.ack(late), Code::LeaseLost, &["token"]);
    assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
}

fn takes_any_of_many(s: &mut Subject) {
    let ids = s.put_many((0..MANY).map(|n| delayed("mail", 1_000 + n as i64)));
    s.maybe_reopen();
    for &id in ids.iter().step_by(131) {
        assert_eq!(s.reserve_id(id).id, id);
    }
    s.advance(3_000);
    let taken = ids.iter().step_by(131).count();
    assert_eq!(s.stats("mail").ready, (MANY - taken) as u64);
}
