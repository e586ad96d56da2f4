//! nack: backoff to the millisecond, the attempt spent, the error kept, and death at the end.

use super::prelude::*;

cases! { nack:
    waits_for_the_backoff_exactly
    the_default_backoff_doubles_to_its_cap
    jitter_takes_its_part_of_the_delay
    fixed_and_listed_backoffs_are_exact
    backoffs_with_every_jitter
    a_topics_backoff_is_used
    a_given_delay_goes_before_the_backoff
    a_delay_of_zero_is_ready_at_once
    delay_out_of_range
    spends_the_attempt
    keeps_the_error
    a_long_error_is_cut_between_characters
    sets_the_priority
    attempts_spent_make_it_dead
    a_dead_job_dies_once
    a_late_nack_counts_from_now
    of_a_missing_job_is_gone
    a_batch_answers_per_item
}

fn fail(s: &Subject, name: &str) -> (LeasedJob, u64) {
    let lease = s.reserve_one(name);
    let Ok(EndReply::Retry { due_at }) = s.nack(failed(lease.token)) else { panic!("no retry") };
    assert_eq!(s.view(lease.id).due_at, due_at, "the next attempt is told");
    (lease, due_at - s.now())
}

fn waits_for_the_backoff_exactly(s: &mut Subject) {
    let id = s.put(job("mail"));
    let (_, delay_ms) = fail(s, "mail");
    assert_eq!(delay_ms, Backoff::DEFAULT.delay_ms(id, 1));
    s.maybe_reopen();
    s.advance(delay_ms - 1);
    assert_eq!(s.reserve("mail", 1), []);
    s.advance(1);
    assert_eq!(s.reserve_one("mail").attempt, 2);
}

fn the_default_backoff_doubles_to_its_cap(s: &mut Subject) {
    let id = s.put(job("mail"));
    for attempt in 1..=15 {
        let (lease, delay_ms) = fail(s, "mail");
        assert_eq!(lease.attempt, attempt);
        let full_ms = (1_000 << (attempt - 1)).min(600_000);
        assert!((full_ms / 2..=full_ms).contains(&delay_ms), "{delay_ms} after {attempt}");
        assert_eq!(delay_ms, Backoff::DEFAULT.delay_ms(id, attempt), "after {attempt}");
        s.advance(delay_ms);
    }
}

fn jitter_takes_its_part_of_the_delay(s: &mut Subject) {
    let backoff = Backoff::from(Delays::Fixed { delay_ms: 1_000 }).with_jitter(0.5);
    let backoff = Some(Arc::new(backoff));
    s.put_many((0..200).map(|_| Put { backoff: backoff.clone(), ..job("mail") }));
    s.maybe_reopen();
    let delays: Vec<u64> = (0..200).map(|_| fail(s, "mail").1).collect();
    assert!(delays.iter().all(|delay_ms| (500..=1_000).contains(delay_ms)), "{delays:?}");
    // A hash spreads: each quarter of the range has its share, or the jobs come back as a herd.
    for quarter in 0..4_u64 {
        let range = 500 + quarter * 125..500 + (quarter + 1) * 125;
        let share = delays.iter().filter(|delay_ms| range.contains(*delay_ms)).count();
        assert!((20..=90).contains(&share), "{share} of 200 in {range:?}");
    }
}

/// Fails a job of this backoff five times; gives the delays.
fn delays_of(s: &mut Subject, backoff: &Backoff) -> [u64; 5] {
    let id = s.put(Put { backoff: Some(Arc::new(backoff.clone())), ..job("mail") });
    s.maybe_reopen();
    assert_eq!(s.view(id).job.content.backoff.as_deref(), Some(backoff));
    let delays = [1, 2, 3, 4, 5].map(|attempt| {
        let (_, delay_ms) = fail(s, "mail");
        assert_eq!(delay_ms, backoff.delay_ms(id, attempt), "{backoff:?} after {attempt}");
        s.advance(delay_ms);
        delay_ms
    });
    s.cancel(by_id(id)).expect("a cancel");
    delays
}

fn fixed_and_listed_backoffs_are_exact(s: &mut Subject) {
    let fixed = Backoff::from(Delays::Fixed { delay_ms: 900 });
    assert_eq!(delays_of(s, &fixed), [900; 5]);
    let list = Backoff::from(Delays::List { delays_ms: vec![100, 10_000, 0] });
    assert_eq!(delays_of(s, &list), [100, 10_000, 0, 0, 0]);
}

fn backoffs_with_every_jitter(s: &mut Subject) {
    let steep = Backoff::from(Delays::Exponential { base_ms: 10, factor: 10, cap_ms: 1_500 });
    assert_eq!(delays_of(s, &steep.clone().with_jitter(0.0)), [10, 100, 1_000, 1_500, 1_500]);
    let list = Backoff::from(Delays::List { delays_ms: vec![100, 10_000] });
    for backoff in [steep.clone(), steep.with_jitter(1.0), list.with_jitter(0.333)] {
        delays_of(s, &backoff);
    }
}

fn a_topics_backoff_is_used(s: &mut Subject) {
    let backoff = Backoff::from(Delays::Fixed { delay_ms: 77_000 });
    let settings = Settings { backoff: Some(Arc::new(backoff.clone())), ..Settings::default() };
    s.set_topic("mail", settings);
    let id = s.put(job("mail"));
    s.maybe_reopen();
    assert_eq!(fail(s, "mail").1, backoff.delay_ms(id, 1));
}

fn a_given_delay_goes_before_the_backoff(s: &mut Subject) {
    let id = s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    s.nack(Nack { delay_ms: Some(123), ..failed(token) }).expect("a nack");
    s.maybe_reopen();
    assert_eq!(s.view(id).due_at, s.now() + 123, "exactly, without jitter");
}

fn a_delay_of_zero_is_ready_at_once(s: &mut Subject) {
    s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    s.nack(Nack { delay_ms: Some(0), ..failed(token) }).expect("a nack");
    assert_eq!(s.reserve_one("mail").attempt, 2);
}

fn delay_out_of_range(s: &mut Subject) {
    let id = s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    for delay_ms in [-1, limits::DELAY_MS_MAX as i64 + 1] {
        let nack = Nack { delay_ms: Some(delay_ms), ..failed(token) };
        refused(s.nack(nack), Code::Invalid, &["delay", &number(delay_ms), "give 0 to"]);
    }
    assert_eq!(s.state(id), State::Leased);
}

fn spends_the_attempt(s: &mut Subject) {
    let id = s.put(job("mail"));
    fail(s, "mail");
    s.maybe_reopen();
    let progress = s.view(id).job.progress;
    assert_eq!((progress.attempts, progress.reserves, progress.releases), (1, 1, 1));
    assert_eq!(s.stats("mail").counts.nacks, 1);
}

fn keeps_the_error(s: &mut Subject) {
    let id = s.put(job("mail"));
    let nack = |s: &Subject, error| {
        let token = s.reserve_one("mail").token;
        s.nack(Nack { delay_ms: Some(0), error, ..failed(token) }).expect("a nack");
    };
    nack(s, Some(bytes("no route to host")));
    s.maybe_reopen();
    assert_eq!(s.view(id).job.progress.error, Some(bytes("no route to host")));
    nack(s, None);
    assert_eq!(s.view(id).job.progress.error, Some(bytes("no route to host")), "the last known");
    nack(s, Some(bytes("timeout")));
    s.maybe_reopen();
    assert_eq!(s.view(id).job.progress.error, Some(bytes("timeout")));
}

fn a_long_error_is_cut_between_characters(s: &mut Subject) {
    let id = s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    let text = format!("x{}", "\u{e9}".repeat(limits::ERROR_BYTES_MAX));
    s.nack(Nack { error: Some(bytes(&text)), ..failed(token) }).expect("a nack");
    let kept = s.view(id).job.progress.error.expect("an error");
    let kept = std::str::from_utf8(&kept).expect("whole characters");
    assert!(text.starts_with(kept) && kept.len() == limits::ERROR_BYTES_MAX - 1, "{}", kept.len());
}

fn sets_the_priority(s: &mut Subject) {
    let slow = s.put(Put { priority: Some(5), ..job("mail") });
    let other = s.put(Put { priority: Some(7), ..job("mail") });
    let token = s.reserve_one("mail").token;
    s.nack(Nack { delay_ms: Some(0), priority: Some(9), ..failed(token) }).expect("a nack");
    s.maybe_reopen();
    let order: Vec<_> = s.reserve("mail", 2).iter().map(|job| (job.id, job.priority)).collect();
    assert_eq!(order, [(other, 7), (slow, 9)]);
}

fn attempts_spent_make_it_dead(s: &mut Subject) {
    let id = s.put(Put { attempts_max: Some(3), ..job("mail") });
    for attempt in 1..=3 {
        let token = s.reserve_one("mail").token;
        let error = Some(bytes(&format!("failure {attempt}")));
        let ended = s.nack(Nack { delay_ms: Some(0), error, ..failed(token) });
        let retry = EndReply::Retry { due_at: s.now() };
        assert_eq!(ended, Ok(if attempt == 3 { EndReply::Dead } else { retry }));
        s.maybe_reopen();
    }
    let view = s.view(id);
    assert_eq!((view.state, view.due_at), (State::Dead, s.now()), "dead since now");
    assert_eq!(view.job.progress.error, Some(bytes("failure 3")));
    assert_eq!((view.job.progress.attempts, view.job.progress.kills), (3, 1));
    assert_eq!(s.reserve("mail", 1), []);
}

fn a_dead_job_dies_once(s: &mut Subject) {
    s.put(Put { attempts_max: Some(1), ..job("mail") });
    let token = s.reserve_one("mail").token;
    assert_eq!(s.nack(failed(token)), Ok(EndReply::Dead));
    refused(s.nack(failed(token)), Code::LeaseLost, &["token"]);
    s.maybe_reopen();
    let stats = s.stats("mail");
    assert_eq!((stats.counts.dead, stats.counts.kills), (1, 1));
}

fn a_late_nack_counts_from_now(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(10), ..job("mail") });
    let token = s.reserve_one("mail").token;
    s.advance(5_000);
    s.maybe_reopen();
    let due_at = s.now() + Backoff::DEFAULT.delay_ms(id, 1);
    assert_eq!(s.nack(failed(token)), Ok(EndReply::Retry { due_at }));
    let view = s.view(id);
    assert_eq!(view.due_at, due_at);
    assert_eq!(view.job.progress.attempts, 1, "the attempt is spent once");
}

fn of_a_missing_job_is_gone(s: &mut Subject) {
    s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    s.ack(token).expect("an ack");
    assert_eq!(s.nack(failed(token)), Ok(EndReply::Gone));
}

fn a_batch_answers_per_item(s: &mut Subject) {
    s.put_many([job("mail"), job("mail")]);
    let leases = s.reserve("mail", 2);
    let bad = Nack { delay_ms: Some(-1), ..failed(leases[1].token) };
    let items = vec![failed(leases[0].token), bad, failed(leases[0].token)];
    let Ok(Reply::Ended(answers)) = s.ask(Command::Nack(items)) else { panic!("no answers") };
    let codes: Vec<_> = answers.into_iter().map(|item| item.map_err(|error| error.code)).collect();
    let due_at = s.view(leases[0].id).due_at;
    let retry = EndReply::Retry { due_at };
    assert_eq!(codes, [Ok(retry), Err(Code::Invalid), Err(Code::LeaseLost)]);
    assert_eq!(s.state(leases[1].id), State::Leased);
}
