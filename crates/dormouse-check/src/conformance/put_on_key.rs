//! put on a key that is taken: the whole table, on_conflict by state.

use super::prelude::*;
use OnConflict::{Earliest, Keep, Latest, Reject, Replace};
use PutOutcome::{Created, Duplicate, Replaced};

cases! { put_on_key:
    keep_answers_the_existing_job
    keep_is_the_default
    keep_answers_a_hold
    reject_names_the_job_and_its_state
    reject_of_a_hold
    replace_of_a_waiting_job_keeps_the_id
    replace_resets_attempts_and_counters
    replace_revokes_a_token_whose_lease_ran_out
    replace_of_a_leased_job_passes_the_key_on
    a_job_that_lost_its_key_holds_nothing
    a_job_that_lost_its_key_never_gets_it_back
    replace_of_a_dead_job_revives_it
    replace_of_a_hold_is_a_new_job
    earliest_moves_only_forward
    latest_moves_only_back
    earliest_and_latest_of_a_leased_job_pass_the_key_on
    a_dead_job_does_not_hold_its_key
    a_job_that_died_by_expiry_does_not_hold_its_key
    a_revived_job_does_not_get_its_key_back
    keys_of_dead_jobs_pass_on_again_and_again
    a_full_topic_leaves_the_key_with_the_dead_job
    earliest_and_latest_of_a_hold_keep
    earliest_compares_delay_with_at
    a_key_is_taken_per_topic
    a_key_is_free_after_ack_without_ttl
    a_key_is_free_when_its_hold_ends
    cancel_frees_the_key_at_once
    many_keys_stay_unique
}

const STATES: [State; 4] = [State::Delayed, State::Ready, State::Leased, State::Dead];
/// States in which a job holds its key against others.
const LIVING: [State; 3] = [State::Delayed, State::Ready, State::Leased];

/// A job with key `k` in this state, its lease's token if it has one.
fn in_state(s: &mut Subject, state: State) -> (JobId, Option<Token>) {
    let delay_ms = Some(if state == State::Delayed { 60_000 } else { 0 });
    let id = s.put(Put { delay_ms, attempts_max: Some(2), ..keyed("mail", "k") });
    let token = (state == State::Leased).then(|| s.reserve_one("mail").token);
    if state == State::Dead {
        s.kill(kill_resting(by_id(id))).expect("a kill");
    }
    s.maybe_reopen();
    (id, token)
}

/// An acked job whose key is held for 5 s.
fn hold(s: &mut Subject) -> JobId {
    let id = s.put(Put { key_ttl_ms: Some(5_000), ..keyed("mail", "k") });
    let token = s.reserve_one("mail").token;
    assert_eq!(s.ack(token), Ok(EndReply::Done));
    s.maybe_reopen();
    id
}

/// Puts on the key, with another body, due in 10 s.
fn again(s: &Subject, on_conflict: OnConflict) -> Result<PutReply, Error> {
    let put = Put { on_conflict, delay_ms: Some(10_000), ..Put::new(topic("mail"), "new") };
    s.try_put(Put { key: Some(bytes("k")), ..put })
}

/// Removes the job, so that the next round starts with a free key.
fn clear(s: &Subject) {
    while s.cancel(by_key("mail", "k")).is_ok() {}
    s.purge("mail");
}

fn keep_answers_the_existing_job(s: &mut Subject) {
    for state in LIVING {
        let (id, _) = in_state(s, state);
        let before = s.view(id);
        let put = again(s, Keep).expect("a duplicate");
        assert_eq!((put.id, put.outcome, put.state), (id, Duplicate, Some(state)));
        assert_eq!(put.due_at, before.due_at, "{state}");
        assert_eq!(s.view(id), before, "{state}");
        clear(s);
    }
}

fn keep_is_the_default(s: &mut Subject) {
    assert_eq!(job("mail").on_conflict, Keep);
    assert_eq!(OnConflict::default(), Keep);
    let id = s.put(keyed("mail", "k"));
    assert_eq!(s.put(keyed("mail", "k")), id);
}

fn keep_answers_a_hold(s: &mut Subject) {
    let id = hold(s);
    let put = again(s, Keep).expect("a duplicate");
    assert_eq!((put.id, put.outcome, put.state), (id, Duplicate, None));
    assert_eq!(put.due_at, s.now() + 5_000, "when the key becomes free");
    assert!(s.is_gone(id));
}

fn reject_names_the_job_and_its_state(s: &mut Subject) {
    for state in LIVING {
        let (id, _) = in_state(s, state);
        let before = s.view(id);
        let words = ["key", &number(id), state.as_str(), "on_conflict"];
        let error = refused(again(s, Reject), Code::Conflict, &words);
        assert_eq!(error.job, Some((id, state)));
        assert_eq!(s.view(id), before, "{state}");
        clear(s);
    }
}

fn reject_of_a_hold(s: &mut Subject) {
    let id = hold(s);
    refused(again(s, Reject), Code::Conflict, &["key", &number(id), "key_ttl", "on_conflict"]);
}

fn replace_of_a_waiting_job_keeps_the_id(s: &mut Subject) {
    for state in [State::Delayed, State::Ready] {
        let (id, _) = in_state(s, state);
        let put = again(s, Replace).expect("a replace");
        assert_eq!((put.id, put.outcome, put.state), (id, Replaced, Some(State::Delayed)));
        assert_eq!(put.due_at, s.now() + 10_000);
        s.maybe_reopen();
        let view = s.view(id);
        assert_eq!((&view.job.content.body[..], view.due_at), (&b"new"[..], put.due_at));
        assert_eq!(view.job.content.attempts_max, 16, "options are replaced too");
        assert_eq!(s.stats("mail").delayed, 1, "still one job");
        s.advance(10_000);
        assert_eq!(s.reserve_one("mail").body, "new");
        assert_eq!(s.reserve("mail", 1), []);
        clear(s);
    }
}

fn replace_resets_attempts_and_counters(s: &mut Subject) {
    let (id, _) = in_state(s, State::Ready);
    let token = s.reserve_one("mail").token;
    let error = Some(bytes("no route"));
    s.nack(Nack { delay_ms: Some(0), error, ..failed(token) }).expect("a nack");
    s.maybe_reopen();
    again(s, Replace).expect("a replace");
    let progress = s.view(id).job.progress;
    assert_eq!((progress.attempts, progress.error), (0, None));
    s.advance(10_000);
    assert_eq!(s.reserve_one("mail").attempt, 1);
}

fn replace_revokes_a_token_whose_lease_ran_out(s: &mut Subject) {
    let (_, token) = in_state(s, State::Leased);
    s.advance(60_000);
    s.maybe_reopen();
    assert_eq!(again(s, Replace).expect("a replace").outcome, Replaced);
    // An ack of the old work must not remove the new.
    refused(s.ack(token.expect("a token")), Code::LeaseLost, &["token"]);
    s.advance(10_000);
    let new = s.reserve_one("mail").token;
    assert!(Some(new) > token, "the fence grows through a replace: {new} {token:?}");
}

fn replace_of_a_leased_job_passes_the_key_on(s: &mut Subject) {
    let (id, token) = in_state(s, State::Leased);
    let put = again(s, Replace).expect("a put");
    assert_eq!((put.outcome, put.state), (Created, Some(State::Delayed)));
    assert_ne!(put.id, id);
    s.maybe_reopen();
    assert_eq!(s.get(by_key("mail", "k")).expect("the new job").job.id, put.id);
    assert_eq!(s.view(id).job.key(), None, "the old one has lost it");
    assert_eq!(s.ack(token.expect("a token")), Ok(EndReply::Done), "its lease goes on");
    assert_eq!(s.get(by_key("mail", "k")).expect("the new job").job.id, put.id);
}

fn a_job_that_lost_its_key_holds_nothing(s: &mut Subject) {
    let put = Put { key_ttl_ms: Some(60_000), ..keyed("mail", "k") };
    let old = s.put(put);
    let token = s.reserve_one("mail").token;
    let new = again(s, Replace).expect("a put").id;
    s.maybe_reopen();
    s.nack(Nack { delay_ms: Some(0), ..failed(token) }).expect("a nack");
    s.maybe_reopen();
    let lease = s.reserve_one("mail");
    assert_eq!((lease.id, lease.key), (old, None));
    s.ack(lease.token).expect("an ack");
    s.cancel(by_id(new)).expect("a cancel");
    s.maybe_reopen();
    assert_eq!(again(s, Keep).expect("a put").outcome, Created);
}

fn a_job_that_lost_its_key_never_gets_it_back(s: &mut Subject) {
    let (old, _) = in_state(s, State::Ready);
    let token = s.reserve_one("mail").token;
    let new = again(s, Replace).expect("a put").id;
    s.release(give_back(token)).expect("a release");
    s.maybe_reopen();
    s.cancel(by_key("mail", "k")).expect("a cancel of the new job");
    s.maybe_reopen();
    assert!(s.is_gone(new) && s.state(old) == State::Ready);
    refused(s.cancel(by_key("mail", "k")), Code::NotFound, &["k"]);
    assert_eq!(again(s, Reject).expect("the key is free").outcome, Created);
}

fn replace_of_a_dead_job_revives_it(s: &mut Subject) {
    let (id, _) = in_state(s, State::Dead);
    let put = again(s, Replace).expect("a replace");
    assert_eq!((put.id, put.outcome, put.state), (id, Replaced, Some(State::Delayed)));
    s.maybe_reopen();
    let stats = s.stats("mail");
    assert_eq!((stats.counts.dead, stats.delayed), (0, 1));
    s.advance(10_000);
    let got = s.reserve_one("mail");
    assert_eq!((got.id, got.attempt, &got.body[..]), (id, 1, &b"new"[..]));
}

fn replace_of_a_hold_is_a_new_job(s: &mut Subject) {
    let id = hold(s);
    let put = again(s, Replace).expect("a put");
    assert_eq!(put.outcome, Created);
    assert_ne!(put.id, id);
    s.maybe_reopen();
    assert_eq!(s.get(by_key("mail", "k")).expect("the new job").job.id, put.id);
}

/// Puts on the key with this delay and tells whether the job has it now.
fn moves(s: &mut Subject, on_conflict: OnConflict, delay_ms: i64) -> bool {
    let before = s.get(by_key("mail", "k")).expect("the job").due_at;
    let put = Put { on_conflict, delay_ms: Some(delay_ms), ..keyed("mail", "k") };
    let reply = s.try_put(put).expect("a put");
    s.maybe_reopen();
    let after = s.get(by_key("mail", "k")).expect("the job").due_at;
    assert_eq!(reply.due_at, after);
    let moved = reply.outcome == Replaced;
    assert_eq!(after, if moved { s.now() + delay_ms as u64 } else { before });
    moved
}

fn earliest_moves_only_forward(s: &mut Subject) {
    let (id, _) = in_state(s, State::Delayed);
    assert!(!moves(s, Earliest, 60_001));
    assert!(!moves(s, Earliest, 60_000), "the same is not earlier");
    assert!(moves(s, Earliest, 59_999));
    assert!(moves(s, Earliest, 0));
    s.advance(1_000);
    assert!(!moves(s, Earliest, 0), "a job that is due already is earlier");
    assert_eq!(s.get(by_key("mail", "k")).expect("the job").job.id, id);
}

fn latest_moves_only_back(s: &mut Subject) {
    let (id, _) = in_state(s, State::Ready);
    assert!(!moves(s, Latest, 0), "the same is not later");
    assert!(moves(s, Latest, 1_000));
    assert!(!moves(s, Latest, 999));
    s.advance(2_000);
    assert!(moves(s, Latest, 0), "debounce: now is later than a due time in the past");
    assert_eq!(s.get(by_key("mail", "k")).expect("the job").job.id, id);
}

fn earliest_and_latest_of_a_leased_job_pass_the_key_on(s: &mut Subject) {
    for on_conflict in [Earliest, Latest] {
        let (id, token) = in_state(s, State::Leased);
        let put = again(s, on_conflict).expect("a put");
        assert_eq!(put.outcome, Created);
        assert_ne!(put.id, id);
        assert_eq!(s.ack(token.expect("a token")), Ok(EndReply::Done));
        clear(s);
    }
}

fn a_dead_job_does_not_hold_its_key(s: &mut Subject) {
    // Whether the new due time is before its death or after it.
    for (on_conflict, offset_ms) in [
        (Keep, 10_000),
        (Reject, 10_000),
        (Earliest, 10_000),
        (Earliest, -10_000),
        (Latest, 10_000),
        (Latest, -10_000),
    ] {
        let (dead, _) = in_state(s, State::Dead);
        let before = s.view(dead);
        let at_ms = Some(s.now() as i64 + offset_ms);
        let put = s.try_put(Put { on_conflict, at_ms, ..keyed("mail", "k") }).expect("a put");
        let state = if offset_ms > 0 { State::Delayed } else { State::Ready };
        assert_eq!((put.outcome, put.state), (Created, Some(state)), "{on_conflict:?}");
        assert_ne!(put.id, dead);
        assert_eq!(Some(put.due_at as i64), at_ms);
        s.maybe_reopen();
        assert_eq!(s.get(by_key("mail", "k")).expect("the new job").job.id, put.id);
        let after = s.view(dead);
        assert_eq!((after.state, after.due_at), (State::Dead, before.due_at), "it stays dead");
        assert_eq!((after.job.key(), after.job.progress.kills), (None, 1), "without the key");
        let stats = s.stats("mail");
        assert_eq!((stats.counts.dead, stats.delayed + stats.ready), (1, 1));
        clear(s);
    }
}

fn a_job_that_died_by_expiry_does_not_hold_its_key(s: &mut Subject) {
    let dead = s.put(Put { attempts_max: Some(1), ..keyed("mail", "k") });
    let token = s.reserve_one("mail").token;
    s.advance(60_000);
    s.maybe_reopen();
    let put = again(s, Reject).expect("a put");
    assert_eq!((put.outcome, put.id != dead), (Created, true));
    assert_eq!(s.state(dead), State::Dead);
    refused(s.ack(token), Code::LeaseLost, &["token"]);
}

fn a_revived_job_does_not_get_its_key_back(s: &mut Subject) {
    let (dead, _) = in_state(s, State::Dead);
    let new = again(s, Keep).expect("a put").id;
    s.maybe_reopen();
    s.revive(by_id(dead)).expect("a revive");
    s.maybe_reopen();
    assert_eq!(again(s, Keep).expect("a duplicate").id, new);
    let lease = s.reserve_one("mail");
    assert_eq!((lease.id, lease.key), (dead, None));
    s.ack(lease.token).expect("an ack");
    s.maybe_reopen();
    assert_eq!(again(s, Keep).expect("a duplicate").id, new, "its ack frees nothing");
    s.cancel(by_key("mail", "k")).expect("a cancel");
    s.maybe_reopen();
    assert_eq!(again(s, Reject).expect("the key is free").outcome, Created);
}

fn keys_of_dead_jobs_pass_on_again_and_again(s: &mut Subject) {
    let mut dead = Vec::new();
    for _ in 0..3 {
        let put = s.try_put(keyed("mail", "k")).expect("a put");
        assert_eq!(put.outcome, Created);
        s.kill(kill_resting(by_key("mail", "k"))).expect("a kill");
        dead.push(put.id);
        s.maybe_reopen();
    }
    assert_eq!(s.stats("mail").counts.dead, 3);
    // Only the last one has the key; without it nobody has.
    assert_eq!(s.get(by_key("mail", "k")).expect("the last").job.id, dead[2]);
    s.cancel(by_id(dead[2])).expect("a cancel");
    s.maybe_reopen();
    refused(s.get(by_key("mail", "k")), Code::NotFound, &["k"]);
    for id in &dead[..2] {
        s.cancel(by_id(*id)).expect("a cancel");
    }
    assert_eq!(again(s, Reject).expect("the key is free").outcome, Created);
}

fn a_full_topic_leaves_the_key_with_the_dead_job(s: &mut Subject) {
    let (dead, _) = in_state(s, State::Dead);
    let settings = Settings { jobs_max: Some(1), ..Settings::default() };
    s.set_topic("mail", settings);
    refused(again(s, Keep), Code::Full, &["mail"]);
    s.maybe_reopen();
    assert_eq!(s.get(by_key("mail", "k")).expect("the dead job").job.id, dead);
}

fn earliest_and_latest_of_a_hold_keep(s: &mut Subject) {
    let id = hold(s);
    for on_conflict in [Earliest, Latest] {
        let put = again(s, on_conflict).expect("a duplicate");
        assert_eq!((put.id, put.outcome, put.state), (id, Duplicate, None));
    }
}

fn earliest_compares_delay_with_at(s: &mut Subject) {
    let (id, _) = in_state(s, State::Delayed);
    let at =
        |at_ms: u64| Put { on_conflict: Earliest, at_ms: Some(at_ms as i64), ..keyed("mail", "k") };
    let kept = s.try_put(at(s.now() + 60_000)).expect("a duplicate");
    assert_eq!((kept.id, kept.outcome), (id, Duplicate));
    let moved = s.try_put(at(s.now() + 59_999)).expect("a replace");
    assert_eq!((moved.id, moved.outcome), (id, Replaced));
}

fn a_key_is_taken_per_topic(s: &mut Subject) {
    let mail = s.put(keyed("mail", "k"));
    s.maybe_reopen();
    assert_ne!(s.put(keyed("sms", "k")), mail);
    assert_ne!(s.put(keyed("mail", "K")), mail, "keys are bytes");
}

fn a_key_is_free_after_ack_without_ttl(s: &mut Subject) {
    let (id, token) = in_state(s, State::Leased);
    s.ack(token.expect("a token")).expect("an ack");
    s.maybe_reopen();
    let put = again(s, Reject).expect("the key is free");
    assert!(put.id != id && put.outcome == Created);
}

fn a_key_is_free_when_its_hold_ends(s: &mut Subject) {
    let id = hold(s);
    s.advance(4_999);
    assert_eq!(again(s, Keep).expect("a duplicate").id, id);
    s.maybe_reopen();
    s.advance(1);
    assert_eq!(again(s, Reject).expect("the key is free").outcome, Created);
}

fn cancel_frees_the_key_at_once(s: &mut Subject) {
    for state in STATES {
        let put = Put { key_ttl_ms: Some(60_000), ..keyed("mail", "k") };
        let id = s.put(put);
        match state {
            State::Leased => drop(s.reserve_one("mail")),
            State::Dead => drop(s.kill(kill_resting(by_id(id)))),
            _ => {}
        }
        s.maybe_reopen();
        s.cancel(by_key("mail", "k")).expect("a cancel");
        assert_eq!(again(s, Reject).expect("the key is free").outcome, Created, "{state}");
        clear(s);
    }
}

fn many_keys_stay_unique(s: &mut Subject) {
    let puts = || (0..MANY).map(|n| keyed("mail", &format!("key-{n}")));
    let ids = s.put_many(puts());
    s.maybe_reopen();
    assert_eq!(s.put_many(puts()), ids);
    assert_eq!(s.stats("mail").ready, MANY as u64);
}
