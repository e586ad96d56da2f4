//! kick: delayed jobs to ready, the earliest first.

use super::prelude::*;

cases! { kick:
    the_earliest_are_ready_now
    earliest_over_priorities_and_clocks
    more_than_there_are
    nothing_to_kick
    ready_leased_and_dead_stay
    of_one_topic_only
    counts_with_the_job
    at_most_a_batch_at_once
    revokes_no_token_in_course
}

fn the_earliest_are_ready_now(s: &mut Subject) {
    let ids = s.put_many([300, 100, 200].map(|delay_ms| delayed("mail", delay_ms)));
    s.maybe_reopen();
    assert_eq!(s.kick("mail", 2), 2);
    s.maybe_reopen();
    let now = s.now();
    assert_eq!((s.state(ids[0]), s.state(ids[1])), (State::Delayed, State::Ready));
    assert_eq!((s.view(ids[1]).due_at, s.view(ids[2]).due_at), (now, now));
    let given: Vec<_> = s.reserve("mail", 3).iter().map(|job| job.id).collect();
    assert_eq!(given, [ids[1], ids[2]], "both due now, so by id");
}

fn earliest_over_priorities_and_clocks(s: &mut Subject) {
    let at = Some(s.now() as i64 + 20);
    let slow = s.put(Put { priority: Some(9), ..delayed("mail", 10) });
    let fixed = s.put(Put { priority: Some(5), at_ms: at, ..job("mail") });
    let urgent = s.put(Put { priority: Some(0), ..delayed("mail", 30) });
    s.maybe_reopen();
    assert_eq!(s.kick("mail", 1), 1);
    assert_eq!((s.state(slow), s.state(fixed)), (State::Ready, State::Delayed));
    assert_eq!(s.kick("mail", 1), 1);
    assert_eq!((s.state(fixed), s.state(urgent)), (State::Ready, State::Delayed));
    assert_eq!(s.view(slow).job.progress.priority, 9, "the priority stays");
}

fn more_than_there_are(s: &mut Subject) {
    s.put_many((1..=3).map(|delay_ms| delayed("mail", delay_ms)));
    s.maybe_reopen();
    assert_eq!(s.kick("mail", 100), 3);
    assert_eq!(s.kick("mail", 100), 0);
}

fn nothing_to_kick(s: &mut Subject) {
    assert_eq!(s.kick("mail", 5), 0);
    s.put(delayed("mail", 5));
    assert_eq!(s.kick("mail", 0), 0);
    assert_eq!(s.stats("mail").delayed, 1);
}

fn ready_leased_and_dead_stay(s: &mut Subject) {
    let dead = s.put(job("mail"));
    s.kill(kill_resting(by_id(dead))).expect("a kill");
    let leased = s.put(job("mail"));
    s.reserve_one("mail");
    let ready = s.put(job("mail"));
    let before = [dead, leased, ready].map(|id| s.view(id));
    assert_eq!(s.kick("mail", 10), 0);
    assert_eq!([dead, leased, ready].map(|id| s.view(id)), before);
}

fn of_one_topic_only(s: &mut Subject) {
    s.put(delayed("mail", 10));
    let other = s.put(delayed("sms", 5));
    assert_eq!(s.kick("mail", 10), 1);
    assert_eq!(s.state(other), State::Delayed);
}

fn counts_with_the_job(s: &mut Subject) {
    let id = s.put(delayed("mail", 10));
    s.kick("mail", 1);
    s.maybe_reopen();
    assert_eq!(s.view(id).job.progress.kicks, 1);
}

fn at_most_a_batch_at_once(s: &mut Subject) {
    let count = limits::BATCH_MAX + 10;
    let ids = s.put_many((0..count).map(|n| delayed("mail", 1 + n as i64)));
    s.maybe_reopen();
    assert_eq!(s.kick("mail", usize::MAX), limits::BATCH_MAX as u64);
    s.maybe_reopen();
    assert_eq!(s.list_ids("mail", State::Delayed, 1_000), &ids[limits::BATCH_MAX..]);
    assert_eq!(s.kick("mail", usize::MAX), 10);
}

fn revokes_no_token_in_course(s: &mut Subject) {
    s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    s.kick("mail", 10);
    assert_eq!(s.ack(token), Ok(EndReply::Done));
}
