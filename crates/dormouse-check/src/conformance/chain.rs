//! chain: an ack that puts the jobs that come after, all or nothing.

use super::prelude::*;

cases! { chain:
    ends_the_job_and_puts_the_next_ones
    sent_again_puts_nothing
    a_token_that_never_was_puts_nothing
    who_lost_the_lease_puts_nothing
    after_the_lease_ran_out_it_is_still_good
    one_refused_put_refuses_everything
    a_full_topic_refuses_everything
    the_same_key_twice_is_invalid
    the_number_of_puts_is_bounded
    the_next_job_may_have_the_room_of_the_acked_one
    the_next_job_may_have_the_key_of_the_acked_one
    a_key_that_stays_taken_is_a_duplicate
    a_lapsed_job_makes_room_once
    on_conflict_holds_for_each_put
    the_next_job_wakes_who_waits
    a_kept_job_is_done
    counts_an_ack_and_puts
}

fn chain(s: &Subject, token: Token, puts: Vec<Put>) -> Result<ChainReply, Error> {
    match s.ask(Command::Chain(Chain { token, puts }))? {
        Reply::Chain(reply) => Ok(reply),
        other => panic!("not a reply to a chain: {other:?}"),
    }
}

fn leased(s: &Subject, put: Put) -> LeasedJob {
    let id = s.put(put);
    s.reserve_id(id)
}

/// Nothing of the chain was done.
#[track_caller]
fn refuses(s: &mut Subject, lease: &LeasedJob, puts: Vec<Put>, code: Code, words: &[&str]) {
    let names: Vec<TopicName> = puts.iter().map(|put| put.topic.clone()).collect();
    let count = |s: &Subject, name: &TopicName| {
        s.try_stats(name.as_str()).map_or((0, 0), |stats| (stats.counts.waiting, stats.counts.puts))
    };
    let before: Vec<_> = names.iter().map(|name| count(s, name)).collect();
    refused(chain(s, lease.token, puts), code, words);
    s.maybe_reopen();
    assert_eq!(s.state(lease.id), State::Leased);
    let after: Vec<_> = names.iter().map(|name| count(s, name)).collect();
    assert_eq!(after, before);
}

fn ends_the_job_and_puts_the_next_ones(s: &mut Subject) {
    let lease = leased(s, job("mail"));
    let puts = vec![delayed("mail", 5_000), job("next")];
    let reply = chain(s, lease.token, puts).expect("a chain");
    assert_eq!(reply.end, EndReply::Done);
    let told: Vec<_> = reply.puts.iter().map(|put| (put.outcome, put.state)).collect();
    let created = |state| (PutOutcome::Created, Some(state));
    assert_eq!(told, [created(State::Delayed), created(State::Ready)]);
    s.maybe_reopen();
    assert!(s.is_gone(lease.id));
    assert_eq!(s.state(reply.puts[0].id), State::Delayed);
    assert_eq!(s.reserve_one("next").id, reply.puts[1].id);
}

fn sent_again_puts_nothing(s: &mut Subject) {
    let lease = leased(s, job("mail"));
    chain(s, lease.token, vec![job("next")]).expect("a chain");
    s.maybe_reopen();
    let again = chain(s, lease.token, vec![job("next")]);
    assert_eq!(again, Ok(ChainReply { end: EndReply::Gone, puts: Vec::new() }));
    assert_eq!(s.stats("next").counts.waiting, 1);
}

fn a_token_that_never_was_puts_nothing(s: &mut Subject) {
    let token = Token { id: JobId(99), fence: 1 };
    let reply = chain(s, token, vec![job("next")]).expect("an answer");
    assert_eq!(reply, ChainReply { end: EndReply::Gone, puts: Vec::new() });
    refused(s.try_stats("next"), Code::NotFound, &["next"]);
}

fn who_lost_the_lease_puts_nothing(s: &mut Subject) {
    let lost = leased(s, job("mail"));
    s.release(give_back(lost.token)).expect("a release");
    let lease = s.reserve_one("mail");
    refused(chain(s, lost.token, vec![job("next")]), Code::LeaseLost, &["token"]);
    s.maybe_reopen();
    assert_eq!(s.state(lease.id), State::Leased);
    refused(s.try_stats("next"), Code::NotFound, &["next"]);
}

fn after_the_lease_ran_out_it_is_still_good(s: &mut Subject) {
    let lease = leased(s, Put { ttr_ms: Some(10), ..job("mail") });
    s.advance(20);
    s.maybe_reopen();
    let reply = chain(s, lease.token, vec![job("next")]).expect("a chain");
    assert_eq!((reply.end, reply.puts.len()), (EndReply::Done, 1));
    s.maybe_reopen();
    assert!(s.is_gone(lease.id));
    assert_eq!(s.stats("next").ready, 1);
}

fn one_refused_put_refuses_everything(s: &mut Subject) {
    s.put(keyed("next", "k"));
    let lease = leased(s, job("mail"));
    let wrong = Put { ttr_ms: Some(-1), ..job("next") };
    let words = ["put 2 of the chain", "ttr", "nothing was done"];
    refuses(s, &lease, vec![job("next"), wrong, job("next")], Code::Invalid, &words);
    let taken = Put { on_conflict: OnConflict::Reject, ..keyed("next", "k") };
    let words = ["put 2 of the chain", "nothing was done"];
    refuses(s, &lease, vec![job("next"), taken], Code::Conflict, &words);
    let reply = chain(s, lease.token, vec![job("next")]).expect("the token is still good");
    assert_eq!(reply.end, EndReply::Done);
}

fn a_full_topic_refuses_everything(s: &mut Subject) {
    s.set_topic("small", Settings { jobs_max: Some(1), ..Settings::default() });
    let lease = leased(s, job("mail"));
    let words = ["put 3 of the chain", "small", "nothing was done"];
    let puts = vec![job("next"), job("small"), job("small")];
    refuses(s, &lease, puts, Code::Full, &words);
    s.set_topic("small", Settings { bytes_max: Some(7), ..Settings::default() });
    let words = ["put 2 of the chain", "small", "nothing was done"];
    refuses(s, &lease, vec![job("small"), job("small")], Code::Full, &words);
}

fn the_same_key_twice_is_invalid(s: &mut Subject) {
    let lease = leased(s, job("mail"));
    let twice = vec![keyed("next", "k"), job("next"), keyed("next", "k")];
    refuses(s, &lease, twice, Code::Invalid, &["put 3 of the chain", "same key"]);
    let elsewhere = vec![keyed("next", "k"), keyed("mail", "k")];
    let reply = chain(s, lease.token, elsewhere).expect("keys are of a topic");
    assert_eq!(reply.puts.len(), 2);
}

fn the_number_of_puts_is_bounded(s: &mut Subject) {
    let lease = leased(s, job("mail"));
    refuses(s, &lease, vec![], Code::Invalid, &["0 puts", "1 to 100"]);
    let many = vec![job("next"); limits::CHAIN_PUTS_MAX + 1];
    refuses(s, &lease, many, Code::Invalid, &["101 puts", "1 to 100"]);
    let most = vec![job("next"); limits::CHAIN_PUTS_MAX];
    let reply = chain(s, lease.token, most).expect("as many as are allowed");
    assert_eq!(reply.puts.len(), limits::CHAIN_PUTS_MAX);
    s.maybe_reopen();
    assert_eq!(s.stats("next").ready, limits::CHAIN_PUTS_MAX as u64);
}

fn the_next_job_may_have_the_room_of_the_acked_one(s: &mut Subject) {
    let settings = Settings { jobs_max: Some(1), bytes_max: Some(4), ..Settings::default() };
    s.set_topic("mail", settings);
    s.put(job("mail"));
    for _ in 0..3 {
        let lease = s.reserve_one("mail");
        refuses(s, &lease, vec![job("mail"); 2], Code::Full, &["put 2", "mail"]);
        let reply = chain(s, lease.token, vec![job("mail")]).expect("a chain");
        assert_eq!(reply.puts[0].outcome, PutOutcome::Created);
        s.maybe_reopen();
    }
    assert_eq!(s.stats("mail").counts.waiting, 1);
}

fn the_next_job_may_have_the_key_of_the_acked_one(s: &mut Subject) {
    use OnConflict::{Earliest, Keep, Latest, Reject, Replace};
    s.put(keyed("mail", "k"));
    for on_conflict in [Keep, Reject, Replace, Earliest, Latest] {
        let lease = s.reserve_one("mail");
        let next = Put { on_conflict, ..keyed("mail", "k") };
        let reply = chain(s, lease.token, vec![next]).expect("a chain");
        assert_eq!(reply.puts[0].outcome, PutOutcome::Created, "{on_conflict:?}");
        s.maybe_reopen();
        let view = s.get(by_key("mail", "k")).expect("the new job");
        assert_eq!(view.job.id, reply.puts[0].id);
    }
}

fn a_key_that_stays_taken_is_a_duplicate(s: &mut Subject) {
    let held = Put { key_ttl_ms: Some(5_000), ..keyed("mail", "k") };
    let lease = leased(s, held.clone());
    let reject = Put { on_conflict: OnConflict::Reject, ..held.clone() };
    refuses(s, &lease, vec![reject], Code::Conflict, &["put 1 of the chain"]);
    let reply = chain(s, lease.token, vec![held]).expect("a chain");
    let told = (reply.puts[0].outcome, reply.puts[0].id);
    assert_eq!(told, (PutOutcome::Duplicate, lease.id));
    s.maybe_reopen();
    assert!(s.is_gone(lease.id));
    assert_eq!(s.reserve("mail", 1), []);
}

/// Its lease ran out, so it waits, and its key stays taken after the ack: what replaces it is one
/// more job than is left.
fn a_lapsed_job_makes_room_once(s: &mut Subject) {
    s.set_topic("mail", Settings { jobs_max: Some(1), ..Settings::default() });
    let held = Put { key_ttl_ms: Some(5_000), ttr_ms: Some(10), ..keyed("mail", "k") };
    let lease = leased(s, held.clone());
    s.advance(10);
    assert_eq!(s.state(lease.id), State::Ready);
    let replace = Put { on_conflict: OnConflict::Replace, ..held };
    let puts = vec![replace.clone(), job("mail")];
    refused(chain(s, lease.token, puts), Code::Full, &["put 2 of the chain"]);
    let reply = chain(s, lease.token, vec![replace]).expect("a chain");
    assert_eq!(reply.puts[0].outcome, PutOutcome::Created);
    s.maybe_reopen();
    assert_eq!(s.stats("mail").counts.waiting, 1);
}

fn on_conflict_holds_for_each_put(s: &mut Subject) {
    let kept = s.put(Put { delay_ms: Some(1_000), ..keyed("next", "kept") });
    let replaced = s.put(keyed("next", "replaced"));
    let lease = leased(s, job("mail"));
    let puts = vec![
        keyed("next", "kept"),
        Put { on_conflict: OnConflict::Replace, ..keyed("next", "replaced") },
        keyed("next", "new"),
    ];
    let reply = chain(s, lease.token, puts).expect("a chain");
    let told: Vec<_> = reply.puts.iter().map(|put| (put.id, put.outcome)).collect();
    let new = reply.puts[2].id;
    use PutOutcome::{Created, Duplicate, Replaced};
    assert_eq!(told, [(kept, Duplicate), (replaced, Replaced), (new, Created)]);
    s.maybe_reopen();
    assert_eq!(s.stats("next").counts.waiting, 3);
}

fn the_next_job_wakes_who_waits(s: &mut Subject) {
    let lease = leased(s, job("mail"));
    let waiting = s.park(wait_for("next", 60_000));
    let reply = chain(s, lease.token, vec![job("next")]).expect("a chain");
    assert_eq!(waiting.job().id, reply.puts[0].id);
}

fn a_kept_job_is_done(s: &mut Subject) {
    s.set_topic("mail", Settings { keep_done_ms: Some(5_000), ..Settings::default() });
    let lease = leased(s, keyed("mail", "k"));
    let reply = chain(s, lease.token, vec![keyed("mail", "k")]).expect("a chain");
    assert_eq!(reply.puts[0].outcome, PutOutcome::Created);
    s.maybe_reopen();
    let old = s.view(lease.id);
    assert_eq!((old.state, old.job.key()), (State::Done, None));
    let again = chain(s, lease.token, vec![job("mail")]).expect("an answer");
    assert_eq!(again, ChainReply { end: EndReply::Gone, puts: Vec::new() });
}

fn counts_an_ack_and_puts(s: &mut Subject) {
    let lease = leased(s, job("mail"));
    chain(s, lease.token, vec![job("mail"), job("mail")]).expect("a chain");
    s.maybe_reopen();
    let counts = s.stats("mail").counts;
    assert_eq!((counts.puts, counts.acks, counts.waiting, counts.leased), (3, 1, 2, 0));
}
