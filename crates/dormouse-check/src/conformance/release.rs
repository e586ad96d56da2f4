//! release: give back unspent.

use super::prelude::*;

cases! { release:
    is_ready_now_and_unspent
    never_makes_it_dead
    a_delay_of_its_own
    delay_out_of_range
    sets_the_priority
    stands_in_line_from_now
    after_the_lease_ran_out_is_unspent_too
    of_a_missing_job_is_gone
    twice_is_lost
    of_a_topic_gives_all_leases_back
    of_a_topic_in_portions
    of_a_topic_takes_the_last_attempt_back
}

fn of_a_topic_gives_all_leases_back(s: &mut Subject) {
    let day_ms = 24 * 3_600 * 1_000;
    assert_eq!(s.release_topic("mail", 10), 0);
    let ids = s.put_many([job("mail"), Put { priority: Some(7), ..job("mail") }, job("mail")]);
    let other = s.put(job("sms"));
    let later = s.put(delayed("mail", 60_000));
    let lease = |name| Reserve { max: 10, ttr_ms: Some(day_ms), ..take(name) };
    let leased = s.try_reserve(lease("mail")).expect("jobs");
    let kept = s.try_reserve(lease("sms")).expect("a job");
    assert_eq!((leased.len(), kept.len()), (3, 1));
    s.maybe_reopen();
    assert_eq!(s.release_topic("mail", 100), 3);
    s.maybe_reopen();
    for id in ids {
        let view = s.view(id);
        assert_eq!((view.state, view.due_at), (State::Ready, s.now()));
        let progress = view.job.progress;
        assert_eq!((progress.attempts, progress.reserves, progress.releases), (0, 1, 1));
    }
    assert_eq!(s.view(other).state, State::Leased);
    assert_eq!(s.view(later).state, State::Delayed);
    let stats = s.stats("mail");
    assert_eq!((stats.counts.leased, stats.counts.releases), (0, 3));
    assert_eq!(s.release_topic("mail", 100), 0);
    // Who took them has lost them.
    assert_eq!(s.ack(leased[0].token).map_err(|error| error.code), Err(Code::LeaseLost));
    assert_eq!(s.ack(kept[0].token), Ok(EndReply::Done));
    assert_eq!(s.reserve("mail", 10).len(), 3);
}

fn of_a_topic_in_portions(s: &mut Subject) {
    s.put_many((0..300).map(|_| job("mail")));
    let mut leased = 0;
    while leased < 300 {
        leased += s.reserve("mail", 300).len();
    }
    assert_eq!(s.release_topic("mail", 0), 0);
    assert_eq!(s.release_topic("mail", 1), 1);
    assert_eq!(s.release_topic("mail", 280), 280);
    assert_eq!(s.stats("mail").counts.leased, 19);
    assert_eq!(s.release_topic("mail", limits::BATCH_MAX), 19);
    assert_eq!(s.stats("mail").ready, 300);
}

fn of_a_topic_takes_the_last_attempt_back(s: &mut Subject) {
    let id = s.put(Put { attempts_max: Some(1), ..job("mail") });
    s.reserve_one("mail");
    assert_eq!(s.release_topic("mail", 10), 1);
    assert_eq!(s.state(id), State::Ready);
    assert_eq!(s.reserve_one("mail").attempt, 1);
}

fn is_ready_now_and_unspent(s: &mut Subject) {
    let id = s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    s.advance(500);
    assert_eq!(s.release(give_back(token)), Ok(EndReply::Done));
    s.maybe_reopen();
    let view = s.view(id);
    assert_eq!((view.state, view.due_at), (State::Ready, s.now()));
    let progress = view.job.progress;
    assert_eq!((progress.attempts, progress.reserves, progress.releases), (0, 1, 1));
    assert_eq!(s.reserve_one("mail").attempt, 1);
    assert_eq!(s.stats("mail").counts.releases, 1);
}

fn never_makes_it_dead(s: &mut Subject) {
    s.put(Put { attempts_max: Some(1), ..job("mail") });
    for _ in 0..5 {
        let lease = s.reserve_one("mail");
        assert_eq!(lease.attempt, 1);
        assert_eq!(s.release(give_back(lease.token)), Ok(EndReply::Done));
    }
}

fn a_delay_of_its_own(s: &mut Subject) {
    let id = s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    s.release(Release { delay_ms: Some(400), ..give_back(token) }).expect("a release");
    s.maybe_reopen();
    let view = s.view(id);
    assert_eq!((view.state, view.due_at), (State::Delayed, s.now() + 400));
    s.advance(400);
    assert_eq!(s.reserve_one("mail").attempt, 1);
}

fn delay_out_of_range(s: &mut Subject) {
    let id = s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    for delay_ms in [-1, limits::DELAY_MS_MAX as i64 + 1] {
        let release = Release { delay_ms: Some(delay_ms), ..give_back(token) };
        refused(s.release(release), Code::Invalid, &["delay", &number(delay_ms), "give 0 to"]);
    }
    assert_eq!(s.state(id), State::Leased);
}

fn sets_the_priority(s: &mut Subject) {
    let id = s.put(Put { priority: Some(5), ..job("mail") });
    let token = s.reserve_one("mail").token;
    s.release(Release { priority: Some(0), ..give_back(token) }).expect("a release");
    s.maybe_reopen();
    s.put(Put { priority: Some(1), ..job("mail") });
    let lease = s.reserve_one("mail");
    assert_eq!((lease.id, lease.priority), (id, 0));
}

fn stands_in_line_from_now(s: &mut Subject) {
    let first = s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    s.advance(10);
    let second = s.put(job("mail"));
    s.advance(10);
    s.release(give_back(token)).expect("a release");
    let order: Vec<_> = s.reserve("mail", 2).iter().map(|job| job.id).collect();
    assert_eq!(order, [second, first]);
}

fn after_the_lease_ran_out_is_unspent_too(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(10), ..job("mail") });
    let token = s.reserve_one("mail").token;
    s.advance(100);
    s.maybe_reopen();
    assert_eq!(s.release(give_back(token)), Ok(EndReply::Done));
    let view = s.view(id);
    assert_eq!((view.due_at, view.job.progress.attempts), (s.now(), 0));
}

fn of_a_missing_job_is_gone(s: &mut Subject) {
    s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    s.cancel(by_id(token.id)).expect("a cancel");
    assert_eq!(s.release(give_back(token)), Ok(EndReply::Gone));
}

fn twice_is_lost(s: &mut Subject) {
    s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    s.release(give_back(token)).expect("a release");
    s.maybe_reopen();
    refused(s.release(give_back(token)), Code::LeaseLost, &["token"]);
}
