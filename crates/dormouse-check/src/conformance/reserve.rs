//! reserve: order, bounds, and what a lease is.

use super::prelude::*;

cases! { reserve:
    nothing_there_answers_at_once
    a_topic_gives_by_priority_then_due_then_id
    several_topics_give_in_one_order
    a_topic_named_twice_counts_once
    absolute_and_relative_times_give_in_one_order
    order_holds_over_many_jobs
    jobs_behind_many_cancelled_ones_are_given
    never_more_than_max
    stops_at_the_reply_size
    a_leased_job_is_not_given_again
    a_ttr_of_its_own
    leases_run_out_at_their_instant
    leases_noticed_late_ran_out_at_their_instant
    an_expired_lease_spends_the_attempt
    attempts_spent_by_expiry_make_it_dead
    fences_only_grow
    leases_go_on_after_a_restart_with_their_full_time
    fences_grow_through_restarts
    counters_are_kept_with_the_job
    leased_bytes_are_shared_by_topics
    no_topic_is_invalid
    too_many_topics_are_invalid
    max_out_of_range
    wait_out_of_range
    ttr_out_of_range
}

fn ids(jobs: &[LeasedJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id).collect()
}

fn nothing_there_answers_at_once(s: &mut Subject) {
    assert_eq!(s.reserve("mail", 10), []);
    s.put(delayed("mail", 1));
    assert_eq!(s.reserve("mail", 10), []);
    assert_eq!(s.stats("mail").counts.reserves, 0);
}

/// More than a store passes at one look: a reserve without a wait must not be answered with nothing
/// because of that, and one that waits must be woken.
fn jobs_behind_many_cancelled_ones_are_given(s: &mut Subject) {
    let cancelled = s.put_many((0..2_200).map(|_| delayed("mail", 10)));
    let last = s.put_many([delayed("mail", 20), delayed("mail", 30)]);
    s.churn();
    for ids in cancelled.chunks(limits::BATCH_MAX) {
        let cancel = |id: &JobId| Cancel { target: by_id(*id), unless_leased: false };
        let answers = s.batch(vec![Command::Cancel(ids.iter().map(cancel).collect())]);
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }
    s.maybe_reopen();
    s.advance(20);
    assert_eq!(ids(&s.reserve("mail", 1)), last[..1]);
    let waiting = s.park(wait_for("mail", 60_000));
    s.advance(10);
    assert_eq!(waiting.job().id, last[1]);
    assert_eq!(s.reserve("mail", 1), []);
}

fn with(name: &str, priority: u32, delay_ms: i64) -> Put {
    Put { priority: Some(priority), ..delayed(name, delay_ms) }
}

fn a_topic_gives_by_priority_then_due_then_id(s: &mut Subject) {
    let late = s.put(with("mail", 5, 30));
    let early = s.put(with("mail", 5, 10));
    let urgent = s.put(with("mail", 0, 50));
    let twin = s.put(with("mail", 5, 10));
    let last = s.put(with("mail", u32::MAX, 0));
    s.maybe_reopen();
    s.advance(50);
    assert_eq!(ids(&s.reserve("mail", 10)), [urgent, early, twin, late, last]);
}

fn several_topics_give_in_one_order(s: &mut Subject) {
    let b20 = s.put(with("b", 5, 20));
    let a10 = s.put(with("a", 5, 10));
    let c30 = s.put(with("c", 1, 30));
    let a20 = s.put(with("a", 5, 20));
    let other = s.put(with("other", 0, 0));
    let b10 = s.put(with("b", 5, 10));
    s.maybe_reopen();
    s.advance(30);
    let reserve = Reserve { topics: ["a", "b", "c"].map(topic).into(), max: 10, ..take("a") };
    let jobs = s.try_reserve(reserve).expect("jobs");
    assert_eq!(ids(&jobs), [c30, a10, b10, b20, a20]);
    assert_eq!(s.state(other), State::Ready, "only the named topics give");
}

fn a_topic_named_twice_counts_once(s: &mut Subject) {
    s.put_many([job("a"), job("a")]);
    let reserve = Reserve { topics: ["a", "a"].map(topic).into(), max: 10, ..take("a") };
    assert_eq!(s.try_reserve(reserve).expect("jobs").len(), 2);
}

fn absolute_and_relative_times_give_in_one_order(s: &mut Subject) {
    let now = s.now() as i64;
    let at = |offset: i64| Put { at_ms: Some(now + offset), ..job("mail") };
    let puts =
        [delayed("mail", 20), at(10), delayed("mail", 15), at(18), at(-5), delayed("mail", 0)];
    let put = s.put_many(puts);
    s.maybe_reopen();
    s.advance(20);
    let order = [4, 5, 1, 2, 3, 0].map(|index: usize| put[index]);
    assert_eq!(ids(&s.reserve("mail", 10)), order);
}

fn order_holds_over_many_jobs(s: &mut Subject) {
    // Any numbers do, if they repeat: equal priorities and due times are ordered by id.
    let rank = |n: usize| ((n * 7919 % 5) as u32, (n * 104_729 % 311) as i64);
    let put = s.put_many((0..MANY).map(|n| with("mail", rank(n).0, rank(n).1)));
    s.maybe_reopen();
    let mut expected: Vec<_> = put.iter().enumerate().map(|(n, &id)| (rank(n), id)).collect();
    expected.sort_unstable();
    s.advance(311);
    let mut got = Vec::new();
    while got.len() < MANY {
        let jobs = s.reserve("mail", 70);
        assert!(!jobs.is_empty(), "{} of {MANY} given", got.len());
        got.extend(ids(&jobs));
    }
    assert!(got.iter().eq(expected.iter().map(|(_, id)| id)), "given in another order");
}

fn never_more_than_max(s: &mut Subject) {
    s.put_many((0..10).map(|_| job("mail")));
    assert_eq!(s.reserve("mail", 3).len(), 3);
    assert_eq!(s.stats("mail").counts.leased, 3);
    assert_eq!(s.reserve("mail", limits::RESERVE_MAX).len(), 7);
}

fn stops_at_the_reply_size(s: &mut Subject) {
    let body = bytes::Bytes::from(vec![b'x'; limits::BODY_BYTES_MAX]);
    for _ in 0..18 {
        s.put(Put::new(topic("mail"), body.clone()));
    }
    let first = s.reserve("mail", 100);
    let size: usize = first.iter().map(|job| job.body.len()).sum();
    assert!(!first.is_empty() && size as u64 <= limits::REPLY_BYTES_MAX, "{size} bytes");
    assert_eq!(s.stats("mail").counts.leased, first.len() as u64, "no lease without its job");
    let rest = s.reserve("mail", 100);
    assert_eq!(first.len() + rest.len(), 18);
}

fn a_leased_job_is_not_given_again(s: &mut Subject) {
    s.put(job("mail"));
    s.reserve_one("mail");
    s.maybe_reopen();
    assert_eq!(s.reserve("mail", 1), []);
}

fn a_ttr_of_its_own(s: &mut Subject) {
    s.put(Put { ttr_ms: Some(5_000), ..job("mail") });
    let reserve = Reserve { ttr_ms: Some(700), ..take("mail") };
    let lease = s.try_reserve(reserve).expect("a job").remove(0);
    assert_eq!((lease.ttr_ms, lease.expires_at), (700, s.now() + 700));
    s.advance(700);
    let again = s.reserve_one("mail");
    assert_eq!((again.ttr_ms, again.attempt), (5_000, 2), "the job's own is unchanged");
}

fn leases_run_out_at_their_instant(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(1_000), ..job("mail") });
    let expires_at = s.reserve_one("mail").expires_at;
    assert_eq!(expires_at, s.now() + 1_000);
    s.advance(999);
    assert_eq!(s.state(id), State::Leased);
    s.advance(1);
    let view = s.view(id);
    assert_eq!((view.state, view.due_at), (State::Ready, expires_at));
    s.advance(50);
    s.maybe_reopen();
    let again = s.reserve_one("mail");
    assert_eq!((again.due_at, again.late_ms, again.attempt), (expires_at, 50, 2));
}

fn leases_noticed_late_ran_out_at_their_instant(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(1_000), ..job("mail") });
    let expires_at = s.reserve_one("mail").expires_at;
    s.advance(1_700);
    assert_eq!(s.view(id).due_at, expires_at);
    s.maybe_reopen();
    let again = s.reserve_one("mail");
    assert_eq!((again.due_at, again.late_ms), (expires_at, 700));
}

fn an_expired_lease_spends_the_attempt(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(10), attempts_max: Some(2), ..job("mail") });
    s.reserve_one("mail");
    s.advance(10);
    s.maybe_reopen();
    let progress = s.view(id).job.progress;
    assert_eq!((progress.attempts, progress.expiries, progress.reserves), (1, 1, 1));
    assert_eq!(s.reserve_one("mail").attempt, 2);
}

fn attempts_spent_by_expiry_make_it_dead(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(10), attempts_max: Some(2), ..job("mail") });
    for _ in 0..2 {
        s.reserve_one("mail");
        s.advance(10);
    }
    s.barrier();
    s.maybe_reopen();
    let view = s.view(id);
    assert_eq!(view.state, State::Dead);
    let error = view.job.progress.error.expect("a dead job says why");
    assert!(error.windows(7).any(|word| word == b"expired"), "{error:?}");
    assert_eq!((view.job.progress.expiries, view.job.progress.kills), (2, 1));
    assert_eq!(s.reserve("mail", 1), []);
    assert_eq!(s.stats("mail").counts.dead, 1);
}

fn fences_only_grow(s: &mut Subject) {
    let id = s.put(Put { attempts_max: Some(0), ..job("mail") });
    let mut last = 0;
    for _ in 0..5 {
        let token = s.reserve_one("mail").token;
        assert_eq!(token.id, id);
        assert!(token.fence > last, "{} after {last}", token.fence);
        last = token.fence;
        s.release(give_back(token)).expect("a release");
        s.maybe_reopen();
    }
}

fn leases_go_on_after_a_restart_with_their_full_time(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(1_000), ..job("mail") });
    let token = s.reserve_one("mail").token;
    s.advance(900);
    if !s.reopen() {
        return;
    }
    assert_eq!(s.view(id).due_at, s.now() + 1_000);
    s.advance(999);
    assert_eq!(s.state(id), State::Leased);
    assert_eq!(s.ack(token), Ok(EndReply::Done), "its token is good");
    assert!(s.is_gone(id));
}

fn fences_grow_through_restarts(s: &mut Subject) {
    s.put(Put { ttr_ms: Some(10), attempts_max: Some(0), ..job("mail") });
    let mut last = 0;
    for _ in 0..3 {
        let fence = s.reserve_one("mail").token.fence;
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        s.reopen();
        s.advance(10);
    }
}

fn counters_are_kept_with_the_job(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(10), ..job("mail") });
    s.reserve_one("mail");
    s.advance(10);
    let token = s.reserve_one("mail").token;
    s.release(give_back(token)).expect("a release");
    s.kill(kill_resting(by_id(id))).expect("a kill");
    s.revive(by_id(id)).expect("a revive");
    s.maybe_reopen();
    let progress = s.view(id).job.progress;
    let counters = [progress.reserves, progress.expiries, progress.releases];
    assert_eq!(counters, [2, 1, 1]);
    assert_eq!((progress.kills, progress.kicks), (1, 1));
}

fn leased_bytes_are_shared_by_topics(s: &mut Subject) {
    if !s.bytes_are_cheap() {
        return;
    }
    let body = bytes::Bytes::from(vec![b'x'; limits::BODY_BYTES_MAX]);
    let lease_all = |s: &mut Subject, name: &str| {
        for _ in 0..130 {
            s.put(Put { ttr_ms: Some(1_000), ..Put::new(topic(name), body.clone()) });
        }
        let mut tokens = Vec::new();
        loop {
            match s.try_reserve(Reserve { max: 100, ..take(name) }) {
                Ok(jobs) => tokens.extend(jobs.into_iter().map(|job| job.token)),
                Err(error) => return (tokens, Err::<(), _>(error)),
            }
        }
    };
    let limit = number(limits::LEASED_BYTES_MAX);
    let (tokens, error) = lease_all(s, "mail");
    refused(error, Code::Busy, &["topic mail", "leased", "share", &limit, "ack"]);
    assert!((126..=129).contains(&tokens.len()), "half of the limit: {} leased", tokens.len());
    let (others, error) = lease_all(s, "sms");
    refused(error, Code::Busy, &["topic sms", "share"]);
    assert!((62..=65).contains(&others.len()), "a quarter: {} leased", others.len());
    let (_, error) = lease_all(s, "push");
    refused(error, Code::Busy, &["leased", "the limit is", &limit, "ack"]);
    s.ack(others[0]).expect("an ack");
    s.ack(others[1]).expect("an ack");
    assert_eq!(s.reserve("sms", 1).len(), 1, "after an ack there is room");
}

fn no_topic_is_invalid(s: &mut Subject) {
    let reserve = Reserve { topics: Vec::new(), ..take("mail") };
    refused(s.try_reserve(reserve), Code::Invalid, &["0 topics", "1 to 1000", "name"]);
}

fn too_many_topics_are_invalid(s: &mut Subject) {
    let topics = vec![topic("mail"); limits::RESERVE_TOPICS_MAX + 1];
    let reserve = Reserve { topics, ..take("mail") };
    refused(s.try_reserve(reserve), Code::Invalid, &["1001 topics", "1 to 1000"]);
}

fn max_out_of_range(s: &mut Subject) {
    for max in [0, limits::RESERVE_MAX + 1] {
        let reserve = Reserve { max, ..take("mail") };
        refused(s.try_reserve(reserve), Code::Invalid, &["max", &number(max), "1 to 4096"]);
    }
}

fn wait_out_of_range(s: &mut Subject) {
    for wait_ms in [-1, 60_001] {
        let reserve = wait_for("mail", wait_ms);
        refused(s.try_reserve(reserve), Code::Invalid, &["wait", &number(wait_ms), "0 to 60000"]);
    }
}

fn ttr_out_of_range(s: &mut Subject) {
    let id = s.put(job("mail"));
    for ttr_ms in [0, -1, limits::TTL_MS_MAX as i64 + 1] {
        let reserve = Reserve { ttr_ms: Some(ttr_ms), ..take("mail") };
        refused(s.try_reserve(reserve), Code::Invalid, &["ttr", &number(ttr_ms), "give 1 to"]);
    }
    assert_eq!(s.state(id), State::Ready);
}
