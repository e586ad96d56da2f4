//! Settings of a topic: defaults for its jobs, and limits.

use super::prelude::*;

cases! { set_topic:
    defaults_for_puts_without_their_own
    a_put_may_say_otherwise
    jobs_put_before_keep_theirs
    jobs_max_makes_it_full
    jobs_in_every_state_count
    a_replace_is_no_more_jobs
    a_duplicate_is_no_more_jobs
    bytes_max_makes_it_full
    full_is_per_topic_and_per_item
    a_lower_limit_removes_nothing
    dead_max_keeps_the_newest
    dead_max_of_zero_keeps_none
    dead_max_set_later_trims
    dead_ttl_removes_the_old
    dead_ttl_set_later_removes
    trimmed_jobs_free_their_keys
    settings_survive_a_restart
    all_settings_are_replaced_at_once
    out_of_range
}

fn set(s: &Subject, change: impl FnOnce(&mut Settings)) {
    let mut settings = Settings::default();
    change(&mut settings);
    s.set_topic("mail", settings);
}

fn defaults_for_puts_without_their_own(s: &mut Subject) {
    let backoff = Arc::new(Backoff::from(Delays::Fixed { delay_ms: 5 }));
    set(s, |settings| {
        settings.ttr_ms = Some(700);
        settings.attempts_max = Some(2);
        settings.backoff = Some(Arc::clone(&backoff));
    });
    s.maybe_reopen();
    let id = s.put(job("mail"));
    let content = s.view(id).job.content;
    assert_eq!((content.ttr_ms, content.attempts_max), (700, 2));
    assert_eq!(content.backoff, Some(backoff));
    assert_eq!(s.reserve_one("mail").expires_at, s.now() + 700);
    let other = s.put(job("sms"));
    assert_eq!(s.view(other).job.content.ttr_ms, 60_000, "of this topic only");
}

fn a_put_may_say_otherwise(s: &mut Subject) {
    set(s, |settings| {
        settings.ttr_ms = Some(700);
        settings.attempts_max = Some(2);
    });
    let id = s.put(Put { ttr_ms: Some(900), attempts_max: Some(0), ..job("mail") });
    let content = s.view(id).job.content;
    assert_eq!((content.ttr_ms, content.attempts_max), (900, 0));
}

fn jobs_put_before_keep_theirs(s: &mut Subject) {
    let id = s.put(job("mail"));
    set(s, |settings| settings.ttr_ms = Some(700));
    s.maybe_reopen();
    assert_eq!(s.view(id).job.content.ttr_ms, 60_000);
}

#[track_caller]
fn full(answer: Result<PutReply, Error>, setting: &str, limit: u64) {
    let error = refused(answer, Code::Full, &["mail", setting, &number(limit), "raise"]);
    assert!(error.code.is_retryable());
}

fn jobs_max_makes_it_full(s: &mut Subject) {
    set(s, |settings| settings.jobs_max = Some(2));
    let id = s.put(job("mail"));
    s.put(delayed("mail", 10));
    s.maybe_reopen();
    full(s.try_put(job("mail")), "jobs_max", 2);
    assert_eq!(s.stats("mail").counts.waiting, 2);
    s.cancel(by_id(id)).expect("a cancel");
    s.put(job("mail"));
}

fn jobs_in_every_state_count(s: &mut Subject) {
    set(s, |settings| settings.jobs_max = Some(2));
    let dead = s.put(job("mail"));
    s.kill(kill_resting(by_id(dead))).expect("a kill");
    s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    s.maybe_reopen();
    full(s.try_put(job("mail")), "jobs_max", 2);
    s.ack(token).expect("an ack");
    s.put(job("mail"));
}

fn a_replace_is_no_more_jobs(s: &mut Subject) {
    set(s, |settings| settings.jobs_max = Some(1));
    s.put(keyed("mail", "k"));
    s.maybe_reopen();
    let put = Put { on_conflict: OnConflict::Replace, ..keyed("mail", "k") };
    assert_eq!(s.try_put(put).expect("a replace").outcome, PutOutcome::Replaced);
}

fn a_duplicate_is_no_more_jobs(s: &mut Subject) {
    set(s, |settings| settings.jobs_max = Some(1));
    s.put(keyed("mail", "k"));
    assert_eq!(s.try_put(keyed("mail", "k")).expect("a put").outcome, PutOutcome::Duplicate);
}

fn bytes_max_makes_it_full(s: &mut Subject) {
    set(s, |settings| settings.bytes_max = Some(10));
    let put = |bytes: usize| Put::new(topic("mail"), vec![b'x'; bytes]);
    let id = s.put(put(6));
    s.maybe_reopen();
    full(s.try_put(put(5)), "bytes_max", 10);
    s.put(put(4));
    s.cancel(by_id(id)).expect("a cancel");
    full(s.try_put(Put { key: Some(bytes("k")), ..put(6) }), "bytes_max", 10);
    s.put(Put { key: Some(bytes("k")), ..put(5) });
    assert_eq!(s.stats("mail").counts.bytes, 10);
}

fn full_is_per_topic_and_per_item(s: &mut Subject) {
    set(s, |settings| settings.jobs_max = Some(1));
    let items = vec![job("mail"), job("mail"), job("sms")];
    let answers = s.put_all(items).expect("answers per item");
    let codes: Vec<_> =
        answers.iter().map(|item| item.as_ref().map_err(|e| e.code).err()).collect();
    assert_eq!(codes, [None, Some(Code::Full), None]);
}

fn a_lower_limit_removes_nothing(s: &mut Subject) {
    s.put_many((0..5).map(|_| keyed("mail", "k")).chain((0..4).map(|_| job("mail"))));
    set(s, |settings| settings.jobs_max = Some(2));
    s.maybe_reopen();
    assert_eq!(s.stats("mail").ready, 5);
    full(s.try_put(job("mail")), "jobs_max", 2);
    let put = Put { on_conflict: OnConflict::Replace, ..keyed("mail", "k") };
    assert_eq!(s.try_put(put).expect("a replace").outcome, PutOutcome::Replaced);
}

/// Dead jobs, a second apart, the oldest first.
fn graves(s: &Subject, count: usize) -> Vec<JobId> {
    let bury = |n| {
        let id = s.put(keyed("mail", &format!("grave {n}")));
        s.kill(kill_resting(by_id(id))).expect("a kill");
        s.advance(1_000);
        id
    };
    (0..count).map(bury).collect()
}

fn dead_max_keeps_the_newest(s: &mut Subject) {
    set(s, |settings| settings.dead_max = Some(2));
    let ids = graves(s, 4);
    s.maybe_reopen();
    assert_eq!(s.list_ids("mail", State::Dead, 10), &ids[2..]);
    assert_eq!(s.stats("mail").counts.dead, 2);
    assert!(s.is_gone(ids[0]));
}

fn dead_max_of_zero_keeps_none(s: &mut Subject) {
    set(s, |settings| settings.dead_max = Some(0));
    let ids = graves(s, 2);
    assert!(ids.into_iter().all(|id| s.is_gone(id)));
    let id = s.put(Put { attempts_max: Some(1), ..job("mail") });
    let token = s.reserve_one("mail").token;
    assert_eq!(s.nack(failed(token)), Ok(EndReply::Dead));
    assert!(s.is_gone(id));
}

fn dead_max_set_later_trims(s: &mut Subject) {
    let ids = graves(s, 5);
    s.maybe_reopen();
    set(s, |settings| settings.dead_max = Some(1));
    s.barrier();
    assert_eq!(s.list_ids("mail", State::Dead, 10), &ids[4..]);
    s.maybe_reopen();
    assert_eq!(s.list_ids("mail", State::Dead, 10), &ids[4..]);
}

fn dead_ttl_removes_the_old(s: &mut Subject) {
    set(s, |settings| settings.dead_ttl_ms = Some(10_000));
    let ids = graves(s, 2);
    s.maybe_reopen();
    // The first died 2 s ago, the second 1 s ago.
    s.advance(7_999);
    s.barrier();
    assert_eq!(s.list_ids("mail", State::Dead, 10), ids);
    s.advance(1);
    s.barrier();
    assert_eq!(s.list_ids("mail", State::Dead, 10), &ids[1..]);
    s.maybe_reopen();
    s.advance(1_000);
    s.barrier();
    assert_eq!(s.stats("mail").counts.dead, 0);
    assert!(ids.into_iter().all(|id| s.is_gone(id)));
}

fn dead_ttl_set_later_removes(s: &mut Subject) {
    let ids = graves(s, 3);
    s.maybe_reopen();
    set(s, |settings| settings.dead_ttl_ms = Some(1_500));
    s.barrier();
    assert_eq!(s.list_ids("mail", State::Dead, 10), &ids[2..]);
}

fn trimmed_jobs_free_their_keys(s: &mut Subject) {
    set(s, |settings| settings.dead_max = Some(0));
    graves(s, 1);
    s.maybe_reopen();
    let put = s.try_put(keyed("mail", "grave 0")).expect("a put");
    assert_eq!(put.outcome, PutOutcome::Created);
}

fn settings_survive_a_restart(s: &mut Subject) {
    let settings = Settings {
        ttr_ms: Some(1),
        attempts_max: Some(0),
        backoff: Some(Arc::new(Backoff::from(Delays::List { delays_ms: vec![1, 2, 3] }))),
        jobs_max: Some(4),
        bytes_max: Some(5),
        dead_ttl_ms: Some(6),
        dead_max: Some(7),
        ..Settings::default()
    };
    s.set_topic("mail", settings.clone());
    s.maybe_reopen();
    assert_eq!(s.stats("mail").settings, settings);
}

fn all_settings_are_replaced_at_once(s: &mut Subject) {
    set(s, |settings| settings.ttr_ms = Some(1));
    set(s, |settings| settings.jobs_max = Some(4));
    s.maybe_reopen();
    let expected = Settings { jobs_max: Some(4), ..Settings::default() };
    assert_eq!(s.stats("mail").settings, expected);
}

fn out_of_range(s: &mut Subject) {
    let default = Settings::default;
    let over = limits::TTL_MS_MAX + 1;
    let list = Backoff::from(Delays::List { delays_ms: Vec::new() });
    let bad = [
        (Settings { ttr_ms: Some(0), ..default() }, "ttr"),
        (Settings { ttr_ms: Some(over), ..default() }, "ttr"),
        (Settings { dead_ttl_ms: Some(over), ..default() }, "dead_ttl"),
        (Settings { dead_ttl_ms: Some(u64::MAX), ..default() }, "dead_ttl"),
        (Settings { backoff: Some(Arc::new(list)), ..default() }, "backoff"),
    ];
    for (settings, field) in bad {
        refused(s.try_set_topic("mail", settings), Code::Invalid, &[field, "give"]);
    }
    s.maybe_reopen();
    refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
}
