//! purge: all that rests goes, what is leased stays.

use super::prelude::*;

cases! { purge:
    removes_delayed_ready_and_dead
    leased_jobs_stay
    frees_keys
    frees_held_keys
    other_topics_stay
    of_nothing
    the_topic_goes_on
    of_many
    what_comes_after_stays
    is_final_through_restarts
    bytes_go_too
    of_one_state_leaves_the_others
    of_one_state_frees_keys
    of_done_jobs_leaves_held_keys
    of_one_state_of_many
    of_leased_jobs_is_refused
    of_more_than_at_most_removes_nothing
    at_most_is_per_state
}

fn removes_delayed_ready_and_dead(s: &mut Subject) {
    let ids = s.put_many([job("mail"), delayed("mail", 10), job("mail")]);
    s.kill(kill_resting(by_id(ids[2]))).expect("a kill");
    s.maybe_reopen();
    assert_eq!(s.purge("mail"), 3);
    s.maybe_reopen();
    assert!(ids.into_iter().all(|id| s.is_gone(id)));
    s.advance(10);
    assert_eq!(s.reserve("mail", 10), []);
}

fn leased_jobs_stay(s: &mut Subject) {
    s.put_many([Put { ttr_ms: Some(100), ..job("mail") }, job("mail")]);
    let lease = s.reserve_one("mail");
    s.maybe_reopen();
    assert_eq!(s.purge("mail"), 1);
    s.maybe_reopen();
    assert_eq!(s.state(lease.id), State::Leased);
    s.advance(100);
    assert_eq!(s.reserve_one("mail").id, lease.id, "it comes back as if nothing had been");
}

fn frees_keys(s: &mut Subject) {
    let old = s.put(keyed("mail", "k"));
    s.maybe_reopen();
    s.purge("mail");
    refused(s.get(by_key("mail", "k")), Code::NotFound, &["k"]);
    let new = s.try_put(keyed("mail", "k")).expect("a put");
    assert_eq!(new.outcome, PutOutcome::Created);
    assert_ne!(new.id, old);
    s.maybe_reopen();
    assert_eq!(s.get(by_key("mail", "k")).expect("the job").job.id, new.id);
}

fn frees_held_keys(s: &mut Subject) {
    s.put(Put { key_ttl_ms: Some(60_000), ..keyed("mail", "k") });
    let token = s.reserve_one("mail").token;
    s.ack(token).expect("an ack");
    s.maybe_reopen();
    assert_eq!(s.purge("mail"), 0, "a hold is no job");
    s.maybe_reopen();
    assert_eq!(s.try_put(keyed("mail", "k")).expect("a put").outcome, PutOutcome::Created);
}

fn other_topics_stay(s: &mut Subject) {
    s.put_many([job("mail"), job("mail2")]);
    s.maybe_reopen();
    s.purge("mail");
    assert_eq!(s.stats("mail2").ready, 1);
}

fn of_nothing(s: &mut Subject) {
    assert_eq!(s.purge("mail"), 0);
    refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
}

fn the_topic_goes_on(s: &mut Subject) {
    let settings = Settings { ttr_ms: Some(7), ..Settings::default() };
    s.set_topic("mail", settings.clone());
    s.put(job("mail"));
    s.purge("mail");
    s.maybe_reopen();
    assert_eq!(s.stats("mail").settings, settings);
}

fn of_many(s: &mut Subject) {
    let ids = s.put_many((0..MANY).map(|n| delayed("mail", n as i64)));
    s.maybe_reopen();
    s.advance(500);
    assert_eq!(s.purge("mail"), MANY as u64);
    s.maybe_reopen();
    assert!(ids.into_iter().step_by(101).all(|id| s.is_gone(id)));
    s.advance(1_000);
    assert_eq!(s.reserve("mail", 1), []);
}

fn what_comes_after_stays(s: &mut Subject) {
    s.put_many((0..10).map(|n| delayed("mail", n)));
    s.maybe_reopen();
    s.purge("mail");
    let id = s.put(job("mail"));
    s.maybe_reopen();
    s.advance(10);
    let given: Vec<_> = s.reserve("mail", 10).iter().map(|job| job.id).collect();
    assert_eq!(given, [id]);
}

fn is_final_through_restarts(s: &mut Subject) {
    s.set_topic("mail", Settings { ttr_ms: Some(7), ..Settings::default() });
    s.put_many((0..40).map(|n| delayed("mail", n)));
    s.maybe_reopen();
    s.purge("mail");
    for _ in 0..3 {
        s.maybe_reopen();
        let stats = s.stats("mail");
        assert_eq!((stats.ready, stats.delayed, stats.counts.bytes), (0, 0, 0));
    }
}

fn bytes_go_too(s: &mut Subject) {
    s.put_many([Put::new(topic("mail"), "12345"), Put::new(topic("mail"), "123")]);
    s.reserve_one("mail");
    s.purge("mail");
    s.maybe_reopen();
    assert_eq!(s.stats("mail").counts.bytes, 5, "those of the leased job");
}

/// Two delayed jobs, three ready ones, one dead, one done, one leased.
fn one_of_each(s: &mut Subject) {
    s.set_topic("mail", Settings { keep_done_ms: Some(60_000), ..Settings::default() });
    let dead = s.put(job("mail"));
    s.kill(kill_resting(by_id(dead))).expect("a kill");
    s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    s.ack(token).expect("an ack");
    s.put(Put { ttr_ms: Some(50_000), ..job("mail") });
    s.reserve_one("mail");
    s.put_many([delayed("mail", 30_000), delayed("mail", 40_000)]);
    s.put_many([job("mail"), Put { priority: Some(7), ..job("mail") }, job("mail")]);
    s.maybe_reopen();
}

/// Delayed, ready, leased, dead, done.
fn counts(s: &Subject) -> [u64; 5] {
    let stats = s.stats("mail");
    [stats.delayed, stats.ready, stats.counts.leased, stats.counts.dead, stats.counts.done]
}

fn of_one_state_leaves_the_others(s: &mut Subject) {
    one_of_each(s);
    assert_eq!(counts(s), [2, 3, 1, 1, 1]);
    let steps = [
        (State::Ready, 3, [2, 0, 1, 1, 1]),
        (State::Done, 1, [2, 0, 1, 1, 0]),
        (State::Dead, 1, [2, 0, 1, 0, 0]),
        (State::Delayed, 2, [0, 0, 1, 0, 0]),
    ];
    for (state, removed, left) in steps {
        assert_eq!(s.purge_some("mail", Some(state), None), Ok(removed), "{state:?}");
        s.maybe_reopen();
        assert_eq!(counts(s), left, "{state:?}");
        assert_eq!(s.purge_some("mail", Some(state), Some(0)), Ok(0), "{state:?}");
    }
    assert_eq!(s.purge_some("none", Some(State::Ready), Some(0)), Ok(0));
}

fn of_one_state_frees_keys(s: &mut Subject) {
    s.put_many([keyed("mail", "a"), Put { delay_ms: Some(9_000), ..keyed("mail", "b") }]);
    s.maybe_reopen();
    assert_eq!(s.purge_some("mail", Some(State::Ready), None), Ok(1));
    s.maybe_reopen();
    assert_eq!(s.try_put(keyed("mail", "a")).expect("a put").outcome, PutOutcome::Created);
    assert_eq!(s.try_put(keyed("mail", "b")).expect("a put").outcome, PutOutcome::Duplicate);
}

fn of_done_jobs_leaves_held_keys(s: &mut Subject) {
    s.set_topic("mail", Settings { keep_done_ms: Some(60_000), ..Settings::default() });
    let put = s.put(Put { key_ttl_ms: Some(30_000), ..keyed("mail", "k") });
    let token = s.reserve_one("mail").token;
    s.ack(token).expect("an ack");
    assert_eq!(s.purge_some("mail", Some(State::Done), Some(1)), Ok(1));
    s.maybe_reopen();
    let again = s.try_put(keyed("mail", "k")).expect("a put");
    assert_eq!((again.outcome, again.id), (PutOutcome::Duplicate, put), "producers rely on it");
    s.advance(30_000);
    assert_eq!(s.try_put(keyed("mail", "k")).expect("a put").outcome, PutOutcome::Created);
}

fn of_one_state_of_many(s: &mut Subject) {
    s.put_many((0..MANY).map(|n| delayed("mail", n as i64 % 2 * 50_000)));
    s.maybe_reopen();
    let half = MANY as u64 / 2;
    refused(
        s.purge_some("mail", Some(State::Delayed), Some(half - 1)),
        Code::Conflict,
        &[&half.to_string()],
    );
    assert_eq!(s.purge_some("mail", Some(State::Delayed), Some(half)), Ok(half));
    s.maybe_reopen();
    let stats = s.stats("mail");
    assert_eq!((stats.ready, stats.delayed), (MANY as u64 - half, 0));
}

fn of_leased_jobs_is_refused(s: &mut Subject) {
    one_of_each(s);
    let refusal = s.purge_some("mail", Some(State::Leased), None);
    refused(refusal, Code::Invalid, &["leased", "release"]);
    assert_eq!(counts(s), [2, 3, 1, 1, 1]);
}

fn of_more_than_at_most_removes_nothing(s: &mut Subject) {
    one_of_each(s);
    let refusal = s.purge_some("mail", None, Some(5));
    refused(refusal, Code::Conflict, &["mail has 6 jobs", "at_most is 5", "nothing was removed"]);
    s.maybe_reopen();
    assert_eq!(counts(s), [2, 3, 1, 1, 1]);
    assert_eq!(s.purge_some("mail", None, Some(6)), Ok(6));
    s.maybe_reopen();
    assert_eq!(counts(s), [0, 0, 1, 0, 0]);
}

fn at_most_is_per_state(s: &mut Subject) {
    one_of_each(s);
    let refusal = s.purge_some("mail", Some(State::Ready), Some(2));
    refused(refusal, Code::Conflict, &["mail has 3 ready jobs", "at_most is 2"]);
    refused(s.purge_some("mail", Some(State::Dead), Some(0)), Code::Conflict, &["1 dead jobs"]);
    refused(s.purge_some("mail", Some(State::Done), Some(0)), Code::Conflict, &["1 done jobs"]);
    assert_eq!(counts(s), [2, 3, 1, 1, 1]);
    assert_eq!(s.purge_some("mail", Some(State::Ready), Some(3)), Ok(3));
    assert_eq!(counts(s), [2, 0, 1, 1, 1]);
}
