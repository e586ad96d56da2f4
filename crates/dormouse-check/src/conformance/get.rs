//! get: a job as it is, without leasing it.

use super::prelude::*;

cases! { get:
    every_state_with_its_time
    by_its_key
    missing_is_not_found
    changes_nothing
    a_leased_job_shows_its_lease
    the_fence_of_the_newest_lease
    any_of_many
    a_batch_answers_per_item
    a_reply_is_bounded_in_bytes
}

fn every_state_with_its_time(s: &mut Subject) {
    let now = s.now();
    let later = s.put(delayed("mail", 500));
    let ready = s.put(job("mail"));
    let dead = s.put(job("mail"));
    s.kill(kill_resting(by_id(dead))).expect("a kill");
    let leased = s.put(job("mail"));
    s.reserve_id(leased);
    s.maybe_reopen();
    let seen = [later, ready, dead, leased].map(|id| (s.view(id).state, s.view(id).due_at));
    let expected = [
        (State::Delayed, now + 500),
        (State::Ready, now),
        (State::Dead, now),
        (State::Leased, now + 60_000),
    ];
    assert_eq!(seen, expected);
    s.advance(500);
    assert_eq!(s.state(later), State::Ready, "becoming due is not an event");
}

fn by_its_key(s: &mut Subject) {
    let id = s.put(keyed("mail", "k"));
    let other = s.put(keyed("sms", "k"));
    s.maybe_reopen();
    let get = |name| s.get(by_key(name, "k")).expect("the job of the key");
    assert_eq!((get("mail").job.id, get("sms").job.id), (id, other));
    assert_eq!(get("mail").topic, topic("mail"));
}

fn missing_is_not_found(s: &mut Subject) {
    refused(s.get(by_id(JobId(3))), Code::NotFound, &["job 3", "never put"]);
    refused(s.get(by_key("mail", "k")), Code::NotFound, &["mail", "k"]);
    s.put(keyed("mail", "k"));
    refused(s.get(by_key("mail", "other")), Code::NotFound, &["other"]);
}

fn changes_nothing(s: &mut Subject) {
    let id = s.put(job("mail"));
    let before = (s.view(id), s.stats("mail"));
    assert_eq!((s.view(id), s.stats("mail")), before);
    s.maybe_reopen();
    assert_eq!((s.view(id), s.stats("mail")), before);
}

fn a_leased_job_shows_its_lease(s: &mut Subject) {
    let id = s.put(job("mail"));
    let lease = s.reserve_one("mail");
    s.maybe_reopen();
    let view = s.view(id);
    assert_eq!((view.state, view.due_at), (State::Leased, lease.expires_at));
    assert_eq!((view.job.progress.attempts, view.job.progress.reserves), (1, 1));
    assert_eq!(view.job.content.body, "work");
}

fn the_fence_of_the_newest_lease(s: &mut Subject) {
    let id = s.put(job("mail"));
    assert_eq!(s.view(id).job.progress.fence, 0);
    let lease = s.reserve_one("mail");
    s.maybe_reopen();
    assert_eq!(s.view(id).job.progress.fence, lease.token.fence);
}

fn any_of_many(s: &mut Subject) {
    let put = |n: usize| Put { delay_ms: Some(n as i64), ..keyed("mail", &format!("key-{n}")) };
    let ids = s.put_many((0..MANY).map(put));
    s.maybe_reopen();
    for (n, &id) in ids.iter().enumerate().step_by(37) {
        assert_eq!(s.view(id).due_at, s.now() + n as u64);
        let found = s.get(by_key("mail", &format!("key-{n}")));
        assert_eq!(found.expect("the job of the key").job.id, id);
    }
}

fn a_batch_answers_per_item(s: &mut Subject) {
    let id = s.put(keyed("mail", "k"));
    let items = vec![by_id(JobId(0)), by_id(id), by_key("mail", "k")];
    let Ok(Reply::Views(views)) = s.ask(Command::Get(items)) else { panic!("no answers") };
    let seen: Vec<_> = views.into_iter().map(|v| v.map(|v| v.job.id).map_err(|e| e.code)).collect();
    assert_eq!(seen, [Err(Code::NotFound), Ok(id), Ok(id)]);
}

fn a_reply_is_bounded_in_bytes(s: &mut Subject) {
    let body = bytes::Bytes::from(vec![b'x'; limits::BODY_BYTES_MAX]);
    let large: Vec<JobId> = (0..18).map(|_| s.put(Put::new(topic("mail"), body.clone()))).collect();
    s.maybe_reopen();
    let targets = large.iter().map(|&id| by_id(id)).collect();
    let Ok(Reply::Views(views)) = s.ask(Command::Get(targets)) else { panic!("no views") };
    assert!(views[..16].iter().all(Result::is_ok));
    for view in views.into_iter().skip(16) {
        refused(view, Code::TooLarge, &["16777216", "another batch"]);
    }
}
