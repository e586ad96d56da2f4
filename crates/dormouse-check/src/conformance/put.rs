//! put: what is given comes back, what is not has its default, and nothing is early.

use super::prelude::*;

cases! { put:
    answers_id_state_and_due
    ids_grow
    everything_given_comes_back
    headers_keep_their_order_and_repetitions
    defaults_fill_the_rest
    an_empty_body_is_a_body
    neither_delay_nor_at_is_due_now
    a_delay_is_never_early
    an_at_is_never_early
    an_at_in_the_past_is_ready_and_overdue
    a_delay_of_a_hundred_years_waits
    a_stepped_wall_clock_moves_no_delay
    a_stepped_wall_clock_moves_what_is_due_by_it
    a_batch_answers_per_item_and_stores_only_the_good
    a_batch_sees_its_own_keys
    an_empty_batch_answers_nothing
    bodies_of_all_kinds_keep_their_kind
    many_jobs_rest_and_come_back_once
}

fn answers_id_state_and_due(s: &mut Subject) {
    let now = s.now();
    let ready = s.try_put(job("mail")).expect("a put");
    assert_eq!((ready.outcome, ready.state), (PutOutcome::Created, Some(State::Ready)));
    assert_eq!(ready.due_at, now);
    let later = s.try_put(delayed("mail", 1_500)).expect("a put");
    assert_eq!((later.outcome, later.state), (PutOutcome::Created, Some(State::Delayed)));
    assert_eq!(later.due_at, now + 1_500);
}

fn ids_grow(s: &mut Subject) {
    let first = s.put(job("mail"));
    let second = s.put(job("sms"));
    s.cancel(by_id(second)).expect("a cancel");
    s.maybe_reopen();
    // Also not after a cancel and a restart: an id names one job for good.
    let third = s.put(job("mail"));
    assert!(first < second && second < third, "{first} {second} {third}");
}

fn full_put() -> Put {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Put {
        body_kind: BodyKind::Json,
        priority: Some(7),
        ttr_ms: Some(1_234),
        attempts_max: Some(3),
        backoff: Some(Arc::new(Backoff::from(Delays::Fixed { delay_ms: 500 }))),
        key: Some(bytes("order 1")),
        key_ttl_ms: Some(9_000),
        headers: Some(Arc::new(vec![header("a", ""), header("trace", "c")])),
        ..Put::new(topic("mail"), r#"{"to":"x"}"#)
    }
}

fn everything_given_comes_back(s: &mut Subject) {
    let (put, put_at) = (full_put(), s.now());
    let id = s.put(put.clone());
    s.maybe_reopen();
    let content = s.view(id).job.content;
    assert_eq!((content.ttr_ms, content.attempts_max, content.key_ttl_ms), (1_234, 3, 9_000));
    assert_eq!((&content.backoff, content.put_at), (&put.backoff, put_at));
    s.advance(10);
    let got = s.reserve_one("mail");
    assert_eq!((got.id, &got.topic, &got.key), (id, &put.topic, &put.key));
    assert_eq!((&got.body, got.body_kind, &got.headers), (&put.body, put.body_kind, &put.headers));
    assert_eq!((got.priority, got.attempt, got.ttr_ms), (7, 1, 1_234));
    assert_eq!((got.put_at, got.due_at, got.late_ms), (put_at, put_at, 10));
    assert_eq!(got.expires_at, put_at + 10 + 1_234);
}

fn headers_keep_their_order_and_repetitions(s: &mut Subject) {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let given = Some(Arc::new(vec![header("trace", "b"), header("a", ""), header("trace", "c")]));
    let id = s.put(Put { headers: given.clone(), ..job("mail") });
    s.maybe_reopen();
    assert_eq!(s.view(id).job.content.headers, given);
    assert_eq!(s.reserve_one("mail").headers, given);
}

fn defaults_fill_the_rest(s: &mut Subject) {
    let id = s.put(job("mail"));
    s.maybe_reopen();
    let job = s.view(id).job;
    assert_eq!(job.progress.priority, limits::PRIORITY_DEFAULT);
    assert_eq!(job.content.ttr_ms, 60_000);
    assert_eq!(job.content.attempts_max, 16);
    assert_eq!((job.content.key_ttl_ms, job.content.key, job.content.headers), (0, None, None));
}

fn an_empty_body_is_a_body(s: &mut Subject) {
    let id = s.put(Put::new(topic("mail"), ""));
    s.maybe_reopen();
    let got = s.reserve_one("mail");
    assert_eq!((got.id, got.body.len()), (id, 0));
}

fn neither_delay_nor_at_is_due_now(s: &mut Subject) {
    let id = s.put(job("mail"));
    assert_eq!(s.reserve_one("mail").id, id);
}

fn a_delay_is_never_early(s: &mut Subject) {
    let id = s.put(delayed("mail", 5_000));
    s.maybe_reopen();
    s.advance(4_999);
    assert_eq!(s.reserve("mail", 1), []);
    assert_eq!(s.state(id), State::Delayed);
    s.advance(1);
    assert_eq!(s.state(id), State::Ready);
    assert_eq!(s.reserve_one("mail").late_ms, 0);
}

fn an_at_is_never_early(s: &mut Subject) {
    let at_ms = s.now() + 86_400_000;
    let id = s.put(Put { at_ms: Some(at_ms as i64), ..job("mail") });
    s.maybe_reopen();
    s.advance(86_399_999);
    assert_eq!(s.reserve("mail", 1), []);
    s.advance(1);
    let got = s.reserve_one("mail");
    assert_eq!((got.id, got.due_at, got.late_ms), (id, at_ms, 0));
}

fn an_at_in_the_past_is_ready_and_overdue(s: &mut Subject) {
    let at_ms = s.now() - 3_000;
    let put = s.try_put(Put { at_ms: Some(at_ms as i64), ..job("mail") }).expect("a put");
    assert_eq!((put.state, put.due_at), (Some(State::Ready), at_ms));
    s.maybe_reopen();
    assert_eq!(s.reserve_one("mail").late_ms, 3_000);
}

fn a_delay_of_a_hundred_years_waits(s: &mut Subject) {
    const CENTURY_MS: u64 = 36_525 * 86_400_000;
    let id = s.put(delayed("mail", CENTURY_MS as i64));
    s.maybe_reopen();
    s.advance(CENTURY_MS - 1);
    assert_eq!(s.reserve("mail", 1), []);
    s.advance(1);
    assert_eq!(s.reserve_one("mail").id, id);
}

fn a_stepped_wall_clock_moves_no_delay(s: &mut Subject) {
    let id = s.put(delayed("mail", 5_000));
    if !s.step_wall_ms(3_600_000) {
        return;
    }
    assert_eq!(s.state(id), State::Delayed, "the step is not time that passed");
    s.step_wall_ms(-7_200_000);
    s.maybe_reopen();
    s.advance(4_999);
    assert_eq!(s.reserve("mail", 1), []);
    s.advance(1);
    assert_eq!(s.reserve_one("mail").id, id);
}

fn a_stepped_wall_clock_moves_what_is_due_by_it(s: &mut Subject) {
    let at_ms = s.now() as i64 + 5_000;
    let id = s.put(Put { at_ms: Some(at_ms), ..job("mail") });
    if !s.step_wall_ms(5_000) {
        return;
    }
    assert_eq!(s.state(id), State::Ready);
    s.step_wall_ms(-1);
    assert_eq!(s.state(id), State::Delayed, "by the calendar it is not yet time");
}

fn a_batch_answers_per_item_and_stores_only_the_good(s: &mut Subject) {
    let both = Put { delay_ms: Some(1), at_ms: Some(s.now() as i64), ..job("mail") };
    let large = Put::new(topic("mail"), vec![0; limits::BODY_BYTES_MAX + 1]);
    let items = vec![job("mail"), both, keyed("sms", "k"), large, job("mail")];
    let answers = s.put_all(items).expect("answers per item");
    let codes: Vec<_> =
        answers.iter().map(|item| item.as_ref().map_err(|e| e.code).err()).collect();
    assert_eq!(codes, [None, Some(Code::Invalid), None, Some(Code::TooLarge), None]);
    s.maybe_reopen();
    assert_eq!((s.stats("mail").ready, s.stats("sms").ready), (2, 1));
    assert_eq!(s.reserve("mail", 10).len(), 2);
}

fn a_batch_sees_its_own_keys(s: &mut Subject) {
    let answers = s.put_all(vec![keyed("mail", "k"), keyed("mail", "k"), keyed("sms", "k")]);
    let answers = answers.expect("answers per item");
    let outcomes: Vec<_> = answers.iter().flatten().map(|put| put.outcome).collect();
    use PutOutcome::{Created, Duplicate};
    assert_eq!(outcomes, [Created, Duplicate, Created]);
    assert_eq!(answers[0].as_ref().map(|put| put.id), answers[1].as_ref().map(|put| put.id));
}

fn an_empty_batch_answers_nothing(s: &mut Subject) {
    assert_eq!(s.put_all(Vec::new()).expect("an answer"), []);
}

fn bodies_of_all_kinds_keep_their_kind(s: &mut Subject) {
    let kinds = [BodyKind::Bytes, BodyKind::Text, BodyKind::Json];
    for body_kind in kinds {
        s.put(Put { body_kind, ..Put::new(topic("mail"), vec![0, 255, b'\n']) });
    }
    s.maybe_reopen();
    let got: Vec<_> = s.reserve("mail", 3).into_iter().map(|job| job.body_kind).collect();
    assert_eq!(got, kinds);
}

fn many_jobs_rest_and_come_back_once(s: &mut Subject) {
    let ids = s.put_many((0..MANY).map(|n| Put {
        delay_ms: Some(n as i64 % 97),
        ..Put::new(topic("mail"), format!("body {n}"))
    }));
    s.maybe_reopen();
    s.advance(100);
    let mut got = Vec::new();
    while let jobs = s.reserve("mail", 100)
        && !jobs.is_empty()
    {
        got.extend(jobs.into_iter().map(|job| (job.id, job.body)));
    }
    got.sort_unstable();
    let put: Vec<_> = ids.iter().enumerate().map(|(n, &id)| (id, format!("body {n}"))).collect();
    assert_eq!(got.len(), put.len());
    assert!(got.iter().zip(&put).all(|(got, put)| got.0 == put.0 && got.1 == put.1.as_bytes()));
}
