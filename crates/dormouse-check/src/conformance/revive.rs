//! revive: back from dead, one, by key, some of a topic, all.

use super::prelude::*;

cases! { revive:
    is_ready_now_with_a_fresh_budget
    by_its_key
    keeps_error_and_counters
    not_dead_is_a_conflict
    missing_is_not_found
    n_of_a_topic_oldest_first
    all_of_a_topic
    none_of_a_topic
    of_a_topic_only
    at_most_a_batch_at_once
    a_batch_answers_per_item
}

/// A job that died of its last attempt.
fn dead(s: &Subject, put: Put) -> JobId {
    let id = s.put(Put { attempts_max: Some(1), ..put });
    let token = s.reserve_id(id).token;
    let nack = Nack { error: Some(bytes("no")), ..failed(token) };
    assert_eq!(s.nack(nack), Ok(EndReply::Dead));
    id
}

fn is_ready_now_with_a_fresh_budget(s: &mut Subject) {
    let id = dead(s, job("mail"));
    s.maybe_reopen();
    s.advance(500);
    let changed = s.revive(by_id(id)).expect("a revive");
    assert_eq!(changed, ChangeReply { id, was: State::Dead, due_at: s.now() });
    s.maybe_reopen();
    let view = s.view(id);
    assert_eq!((view.state, view.due_at, view.job.progress.attempts), (State::Ready, s.now(), 0));
    let lease = s.reserve_one("mail");
    assert_eq!((lease.id, lease.attempt), (id, 1));
    assert_eq!(s.nack(failed(lease.token)), Ok(EndReply::Dead), "the budget is one attempt again");
}

fn by_its_key(s: &mut Subject) {
    let id = dead(s, keyed("mail", "k"));
    s.maybe_reopen();
    assert_eq!(s.revive(by_key("mail", "k")).expect("a revive").id, id);
    assert_eq!(s.reserve_one("mail").key, Some(bytes("k")));
}

fn keeps_error_and_counters(s: &mut Subject) {
    let id = dead(s, job("mail"));
    s.revive(by_id(id)).expect("a revive");
    s.maybe_reopen();
    let progress = s.view(id).job.progress;
    assert_eq!(progress.error, Some(bytes("no")), "what went wrong is still known");
    assert_eq!((progress.reserves, progress.kills, progress.kicks), (1, 1, 1));
}

fn not_dead_is_a_conflict(s: &mut Subject) {
    let later = s.put(delayed("mail", 5));
    let ready = s.put(job("mail"));
    let leased = s.put(job("mail"));
    s.reserve_id(leased);
    s.maybe_reopen();
    for (id, state) in [(later, State::Delayed), (ready, State::Ready), (leased, State::Leased)] {
        let words = [&number(id)[..], state.as_str(), "not dead"];
        let error = refused(s.revive(by_id(id)), Code::Conflict, &words);
        assert_eq!(error.job, Some((id, state)));
        assert_eq!(s.state(id), state);
    }
}

fn missing_is_not_found(s: &mut Subject) {
    refused(s.revive(by_id(JobId(3))), Code::NotFound, &["job 3"]);
    refused(s.revive(by_key("mail", "k")), Code::NotFound, &["mail", "k"]);
}

/// Dead jobs, a millisecond apart.
fn graves(s: &Subject, name: &str, count: usize) -> Vec<JobId> {
    let bury = |_| {
        s.advance(1);
        dead(s, job(name))
    };
    (0..count).map(bury).collect()
}

fn n_of_a_topic_oldest_first(s: &mut Subject) {
    let ids = graves(s, "mail", 5);
    s.maybe_reopen();
    assert_eq!(s.revive_topic("mail", 2), 2);
    s.maybe_reopen();
    assert_eq!(s.list_ids("mail", State::Ready, 10), &ids[..2]);
    assert_eq!(s.list_ids("mail", State::Dead, 10), &ids[2..]);
    assert_eq!(s.stats("mail").counts.dead, 3);
}

fn all_of_a_topic(s: &mut Subject) {
    let ids = graves(s, "mail", 40);
    s.maybe_reopen();
    assert_eq!(s.revive_topic("mail", usize::MAX), 40);
    s.maybe_reopen();
    let given: Vec<_> = s.reserve("mail", 100).iter().map(|job| (job.id, job.attempt)).collect();
    assert!(given.iter().map(|(id, _)| id).eq(&ids) && given.iter().all(|&(_, n)| n == 1));
    assert_eq!(s.revive_topic("mail", usize::MAX), 0);
}

fn none_of_a_topic(s: &mut Subject) {
    assert_eq!(s.revive_topic("mail", 10), 0, "a topic that is not there");
    graves(s, "mail", 1);
    assert_eq!(s.revive_topic("mail", 0), 0);
}

fn of_a_topic_only(s: &mut Subject) {
    graves(s, "mail", 2);
    let other = graves(s, "sms", 1);
    assert_eq!(s.revive_topic("mail", 10), 2);
    assert_eq!(s.state(other[0]), State::Dead);
}

fn at_most_a_batch_at_once(s: &mut Subject) {
    let count = limits::BATCH_MAX + 10;
    let ids = s.put_many((0..count).map(|_| job("mail")));
    for chunk in ids.chunks(limits::BATCH_MAX) {
        let kills = chunk.iter().map(|&id| kill_resting(by_id(id))).collect();
        s.ask(Command::Kill(kills)).expect("kills");
    }
    s.maybe_reopen();
    assert_eq!(s.revive_topic("mail", usize::MAX), limits::BATCH_MAX as u64);
    assert_eq!(s.revive_topic("mail", usize::MAX), 10);
    assert_eq!(s.stats("mail").ready, count as u64);
}

fn a_batch_answers_per_item(s: &mut Subject) {
    let id = dead(s, job("mail"));
    let items = vec![by_id(id), by_id(JobId(0)), by_id(id)];
    let Ok(Reply::Changed(answers)) = s.ask(Command::Revive(items)) else { panic!("no answers") };
    let codes: Vec<_> =
        answers.into_iter().map(|item| item.map(|c| c.id).map_err(|e| e.code)).collect();
    assert_eq!(codes, [Ok(id), Err(Code::NotFound), Err(Code::Conflict)]);
}
