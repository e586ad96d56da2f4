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
