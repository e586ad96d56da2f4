//! dead_topic: a job that dies goes on in another topic, once.
//!
//! A letter may come a moment after the death where the two topics rest on different servers: a
//! case waits for it.

use super::prelude::*;

cases! { dead_letters:
    a_letter_says_where_it_comes_from
    a_letter_keeps_body_kind_headers_and_priority
    a_nack_on_the_last_attempt_makes_a_letter
    a_lease_that_runs_out_on_the_last_attempt_makes_a_letter
    a_kill_of_a_waiting_job_makes_a_letter
    a_kill_by_token_makes_a_letter
    an_expired_job_makes_a_letter
    an_expired_job_that_reserve_meets_makes_a_letter
    a_death_makes_one_letter
    the_token_of_a_job_that_left_is_gone
    the_job_leaves_its_key
    a_letter_has_a_key_of_its_own
    a_letter_is_as_its_topic_says
    a_letter_that_dies_again_tells_of_its_last_death
    a_long_reason_is_cut
    a_full_dead_topic_leaves_the_job_dead
    a_revived_job_becomes_a_letter_when_it_dies_again
    dead_jobs_from_before_stay
    cancel_and_ack_make_no_letter
    a_letter_wakes_who_waits
    many_letters_come_once
    a_circle_is_refused
    a_long_row_is_refused
    the_setting_is_told
}

fn with_morgue(s: &Subject) {
    let settings = Settings { dead_topic: Some(topic("morgue")), ..Settings::default() };
    s.set_topic("mail", settings);
}

/// The next letter, which is there or comes at once.
#[track_caller]
fn letter(s: &Subject, name: &str) -> LeasedJob {
    let mut letters = s.try_reserve(wait_for(name, 10_000)).expect("a reserve");
    assert_eq!(letters.len(), 1, "no letter came");
    letters.remove(0)
}

fn header<'a>(letter: &'a LeasedJob, name: &str) -> Option<&'a str> {
    let headers = letter.headers.as_deref()?;
    headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// The job has left its topic, and its letter is the only one and gives this reason.
#[track_caller]
fn left_with(s: &mut Subject, id: JobId, reason: &str) -> LeasedJob {
    let letter = letter(s, "morgue");
    assert_eq!(header(&letter, "dead-id"), Some(&number(id)[..]));
    assert_eq!(header(&letter, "dead-reason"), Some(reason));
    s.maybe_reopen();
    s.await_that(|s| s.is_gone(id));
    assert_eq!(s.reserve("mail", 1), []);
    let counts = s.stats("mail").counts;
    assert_eq!((counts.waiting, counts.leased, counts.dead), (0, 0, 0));
    let counts = s.stats("morgue").counts;
    assert_eq!((counts.waiting, counts.leased), (0, 1), "one letter");
    letter
}

fn a_letter_says_where_it_comes_from(s: &mut Subject) {
    with_morgue(s);
    let id = s.put(keyed("mail", "order-7"));
    let lease = s.reserve_one("mail");
    s.maybe_reopen();
    let kill = Kill { error: Some(bytes("gateway is away")), ..kill_held(lease.token) };
    assert_eq!(s.kill(kill), Ok(EndReply::Done));
    let letter = left_with(s, id, "gateway is away");
    assert_ne!(letter.id, id);
    assert_eq!(letter.body, bytes("work"));
    for (name, value) in [("dead-from", "mail"), ("dead-attempts", "1"), ("dead-key", "order-7")] {
        assert_eq!(header(&letter, name), Some(value), "{name}");
    }
}

fn a_letter_keeps_body_kind_headers_and_priority(s: &mut Subject) {
    with_morgue(s);
    let put = Put {
        body_kind: BodyKind::Text,
        priority: Some(3),
        headers: Some(vec![("a".to_owned(), "b".to_owned())].into()),
        ..job("mail")
    };
    let id = s.put(put);
    s.maybe_reopen();
    s.kill(kill_resting(by_id(id))).expect("a kill");
    let letter = left_with(s, id, "");
    assert_eq!((letter.body_kind, letter.priority), (BodyKind::Text, 3));
    assert_eq!((header(&letter, "a"), header(&letter, "dead-key")), (Some("b"), None));
    assert_eq!(header(&letter, "dead-attempts"), Some("0"));
}

fn a_nack_on_the_last_attempt_makes_a_letter(s: &mut Subject) {
    with_morgue(s);
    let id = s.put(Put { attempts_max: Some(2), ..job("mail") });
    for attempt in 1..=2 {
        let lease = s.reserve_one("mail");
        let error = Some(bytes("no route"));
        let nack = Nack { delay_ms: Some(0), error, ..failed(lease.token) };
        let reply = s.nack(nack).expect("a nack");
        assert_eq!(reply == EndReply::Dead, attempt == 2, "{reply:?}");
        s.maybe_reopen();
    }
    let letter = left_with(s, id, "no route");
    assert_eq!(header(&letter, "dead-attempts"), Some("2"));
}

fn a_lease_that_runs_out_on_the_last_attempt_makes_a_letter(s: &mut Subject) {
    with_morgue(s);
    let id = s.put(Put { ttr_ms: Some(10), attempts_max: Some(1), ..job("mail") });
    s.reserve_one("mail");
    s.maybe_reopen();
    s.pass(60_000);
    left_with(s, id, "lease expired");
}

fn a_kill_of_a_waiting_job_makes_a_letter(s: &mut Subject) {
    with_morgue(s);
    let id = s.put(delayed("mail", 60_000));
    s.maybe_reopen();
    let kill = Kill { error: Some(bytes("poison")), ..kill_resting(by_id(id)) };
    assert_eq!(s.kill(kill), Ok(EndReply::Done));
    left_with(s, id, "poison");
}

fn a_kill_by_token_makes_a_letter(s: &mut Subject) {
    with_morgue(s);
    let id = s.put(Put { ttr_ms: Some(10), ..job("mail") });
    let lease = s.reserve_one("mail");
    // Late, so the job waits again.
    s.pass(10);
    assert_eq!(s.kill(kill_held(lease.token)), Ok(EndReply::Done));
    left_with(s, id, "");
}

fn an_expired_job_makes_a_letter(s: &mut Subject) {
    with_morgue(s);
    let id = s.put(Put { expires_after_ms: Some(500), ..job("mail") });
    s.maybe_reopen();
    s.pass(500);
    left_with(s, id, "expired");
}

fn an_expired_job_that_reserve_meets_makes_a_letter(s: &mut Subject) {
    with_morgue(s);
    let id = s.put(Put { expires_after_ms: Some(500), ..job("mail") });
    s.advance(500);
    assert_eq!(s.reserve("mail", 1), []);
    left_with(s, id, "expired");
}

fn a_death_makes_one_letter(s: &mut Subject) {
    with_morgue(s);
    let id = s.put(job("mail"));
    let lease = s.reserve_one("mail");
    s.kill(kill_held(lease.token)).expect("a kill");
    letter(s, "morgue");
    s.await_that(|s| s.is_gone(id));
    for _ in 0..2 {
        assert_eq!(s.kill(kill_held(lease.token)), Ok(EndReply::Gone));
        refused(s.kill(kill_resting(by_id(id))), Code::NotFound, &[&number(id)]);
        s.maybe_reopen();
        s.pass(60_000);
    }
    assert_eq!(s.stats("morgue").counts.puts, 1);
}

fn the_token_of_a_job_that_left_is_gone(s: &mut Subject) {
    with_morgue(s);
    let id = s.put(Put { attempts_max: Some(1), ..job("mail") });
    let lease = s.reserve_one("mail");
    assert_eq!(s.nack(failed(lease.token)), Ok(EndReply::Dead));
    s.await_that(|s| s.is_gone(id));
    s.maybe_reopen();
    assert_eq!(s.ack(lease.token), Ok(EndReply::Gone));
    assert_eq!(s.nack(failed(lease.token)), Ok(EndReply::Gone));
}

fn the_job_leaves_its_key(s: &mut Subject) {
    with_morgue(s);
    let put = Put { key_ttl_ms: Some(60_000), ..keyed("mail", "k") };
    let id = s.put(put.clone());
    s.kill(kill_resting(by_key("mail", "k"))).expect("a kill");
    letter(s, "morgue");
    s.await_that(|s| s.is_gone(id));
    s.maybe_reopen();
    refused(s.get(by_key("mail", "k")), Code::NotFound, &["mail", "k"]);
    assert_eq!(s.try_put(put).expect("a put").outcome, PutOutcome::Created);
}

fn a_letter_has_a_key_of_its_own(s: &mut Subject) {
    with_morgue(s);
    let id = s.put(keyed("mail", "k"));
    s.kill(kill_resting(by_id(id))).expect("a kill");
    let letter = letter(s, "morgue");
    s.maybe_reopen();
    assert_eq!(letter.key, Some(bytes(&format!("dormouse:dead:{id}"))));
    let words = ["key", "dormouse:"];
    refused(s.try_put(keyed("mail", "dormouse:mine")), Code::Invalid, &words);
}

fn a_letter_is_as_its_topic_says(s: &mut Subject) {
    with_morgue(s);
    let settings = Settings {
        ttr_ms: Some(7_000),
        attempts_max: Some(9),
        delay_ms: Some(60_000),
        ..Settings::default()
    };
    s.set_topic("morgue", settings);
    let id = s.put(Put { ttr_ms: Some(1), attempts_max: Some(1), ..job("mail") });
    s.kill(kill_resting(by_id(id))).expect("a kill");
    let letter = letter(s, "morgue");
    let view = s.view(letter.id);
    let content = view.job.content;
    assert_eq!((content.ttr_ms, content.attempts_max), (7_000, 9));
}

fn a_letter_that_dies_again_tells_of_its_last_death(s: &mut Subject) {
    with_morgue(s);
    let settings = Settings { dead_topic: Some(topic("crypt")), ..Settings::default() };
    s.set_topic("morgue", settings);
    let id = s.put(keyed("mail", "k"));
    s.kill(kill_resting(by_id(id))).expect("a kill");
    let first = letter(s, "morgue");
    s.maybe_reopen();
    s.kill(Kill { error: Some(bytes("again")), ..kill_held(first.token) }).expect("a kill");
    let last = letter(s, "crypt");
    let key = format!("dormouse:dead:{id}");
    for (name, value) in [
        ("dead-from", "morgue"),
        ("dead-reason", "again"),
        ("dead-attempts", "1"),
        ("dead-id", &number(first.id)),
        ("dead-key", &key),
    ] {
        let headers = last.headers.as_deref().expect("headers");
        let values: Vec<_> = headers.iter().filter(|(key, _)| key == name).collect();
        assert_eq!(values, [&(name.to_owned(), value.to_owned())]);
    }
}

fn a_long_reason_is_cut(s: &mut Subject) {
    with_morgue(s);
    let id = s.put(job("mail"));
    // 300 characters of two bytes each.
    let error = Some(bytes(&"ä".repeat(300)));
    s.kill(Kill { error, ..kill_resting(by_id(id)) }).expect("a kill");
    left_with(s, id, &"ä".repeat(limits::DEAD_REASON_BYTES_MAX / 2));
}

fn a_full_dead_topic_leaves_the_job_dead(s: &mut Subject) {
    with_morgue(s);
    s.set_topic("morgue", Settings { jobs_max: Some(1), ..Settings::default() });
    let first = s.put(job("mail"));
    s.kill(kill_resting(by_id(first))).expect("a kill");
    let lease = letter(s, "morgue");
    let second = s.put(Put { attempts_max: Some(1), ..job("mail") });
    let held = s.reserve_id(second);
    s.maybe_reopen();
    assert_eq!(s.nack(failed(held.token)), Ok(EndReply::Dead));
    s.maybe_reopen();
    assert_eq!(s.state(second), State::Dead);
    let counts = s.stats("morgue").counts;
    assert_eq!((counts.waiting, counts.leased, counts.puts), (0, 1, 1));
    // Room comes too late: it is dead and stays.
    s.ack(lease.token).expect("an ack");
    s.maybe_reopen();
    s.pass(60_000);
    assert_eq!(s.state(second), State::Dead);
}

fn a_revived_job_becomes_a_letter_when_it_dies_again(s: &mut Subject) {
    let id = s.put(job("mail"));
    s.kill(kill_resting(by_id(id))).expect("a kill");
    with_morgue(s);
    s.maybe_reopen();
    s.revive(by_id(id)).expect("a revive");
    s.kill(kill_resting(by_id(id))).expect("a kill");
    left_with(s, id, "");
}

fn dead_jobs_from_before_stay(s: &mut Subject) {
    let id = s.put(job("mail"));
    s.kill(kill_resting(by_id(id))).expect("a kill");
    with_morgue(s);
    s.maybe_reopen();
    s.pass(60_000);
    assert_eq!(s.state(id), State::Dead);
    refused(s.try_stats("morgue"), Code::NotFound, &["morgue"]);
}

fn cancel_and_ack_make_no_letter(s: &mut Subject) {
    with_morgue(s);
    let id = s.put(job("mail"));
    s.cancel(by_id(id)).expect("a cancel");
    s.put(job("mail"));
    let lease = s.reserve_one("mail");
    s.ack(lease.token).expect("an ack");
    s.put(job("mail"));
    s.purge("mail");
    s.maybe_reopen();
    refused(s.try_stats("morgue"), Code::NotFound, &["morgue"]);
}

fn a_letter_wakes_who_waits(s: &mut Subject) {
    with_morgue(s);
    let id = s.put(Put { expires_after_ms: Some(500), ..job("mail") });
    let waiting = s.park(wait_for("morgue", 60_000));
    s.pass(500);
    let letter = waiting.job();
    assert_eq!(header(&letter, "dead-id"), Some(&number(id)[..]));
    assert_eq!(letter.attempt, 1);
}

fn many_letters_come_once(s: &mut Subject) {
    with_morgue(s);
    let put = || Put { expires_after_ms: Some(500), ..job("mail") };
    let ids = s.put_many((0..MANY).map(|_| put()));
    s.maybe_reopen();
    s.pass(500);
    s.await_that(|s| s.try_stats("mail").is_ok_and(|stats| stats.counts.waiting == 0));
    s.await_that(|s| s.try_stats("morgue").is_ok_and(|one| one.counts.puts == MANY as u64));
    s.maybe_reopen();
    let mut origins = Vec::new();
    while origins.len() < MANY {
        let letters = s.reserve("morgue", MANY);
        assert!(!letters.is_empty(), "{} letters, and no more", origins.len());
        let origin = |one: &LeasedJob| header(one, "dead-id").map(str::to_owned);
        origins.extend(letters.iter().filter_map(origin));
    }
    let mut expected: Vec<String> = ids.iter().map(number).collect();
    origins.sort();
    expected.sort();
    assert_eq!(origins, expected);
    assert_eq!(s.reserve("morgue", 1), []);
}

fn a_circle_is_refused(s: &mut Subject) {
    let to = |name: &str| Settings { dead_topic: Some(topic(name)), ..Settings::default() };
    s.set_topic("a", to("b"));
    s.set_topic("b", to("c"));
    s.maybe_reopen();
    for (name, dead_topic) in [("c", "a"), ("c", "b"), ("c", "c"), ("d", "d")] {
        let words = ["dead_topic", "come back"];
        refused(s.try_set_topic(name, to(dead_topic)), Code::Invalid, &words);
        refused(s.try_stats(name), Code::NotFound, &[name]);
    }
    s.set_topic("c", to("d"));
}

fn a_long_row_is_refused(s: &mut Subject) {
    let name = |n: usize| format!("t{n}");
    let to = |n: usize| Settings { dead_topic: Some(topic(&name(n))), ..Settings::default() };
    for n in 1..=limits::DEAD_TOPICS_MAX {
        let set = s.try_set_topic(&name(n), to(n - 1));
        let is_last = n == limits::DEAD_TOPICS_MAX;
        assert_eq!(set.is_err(), is_last, "{n}: {set:?}");
        if is_last {
            refused(set, Code::Invalid, &["dead_topic", &number(limits::DEAD_TOPICS_MAX)]);
        }
    }
}

fn the_setting_is_told(s: &mut Subject) {
    with_morgue(s);
    s.maybe_reopen();
    assert_eq!(s.stats("mail").settings.dead_topic, Some(topic("morgue")));
    s.set_topic("mail", Settings::default());
    let id = s.put(job("mail"));
    s.kill(kill_resting(by_id(id))).expect("a kill");
    s.maybe_reopen();
    assert_eq!(s.state(id), State::Dead);
}
