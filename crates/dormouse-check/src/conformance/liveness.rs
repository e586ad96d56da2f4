//! A waiting request gets each job when it is due: no job is forgotten, none needs a second
//! request.

use super::prelude::*;
use crate::generate::rng::Rng;

cases! { liveness:
    one_consumer_gets_each_job_at_its_instant
    many_consumers_get_everything
    retries_come_back_to_who_waits
    due_during_a_stop_is_given_after_it
    time_goes_on_while_the_computer_is_off
    a_wall_clock_set_back_while_off_fires_nothing_early
    a_job_due_in_a_year_among_many_due_soon
}

fn one_consumer_gets_each_job_at_its_instant(s: &mut Subject) {
    let mut rng = Rng::new(12);
    let start = s.now();
    let mut dues: Vec<u64> = (0..200).map(|_| rng.below(50_000)).collect();
    let names = ["a", "b", "c"];
    s.put_many(dues.iter().enumerate().map(|(n, &due)| delayed(names[n % 3], due as i64)));
    s.maybe_reopen();
    dues.sort_unstable();
    for due in dues {
        let reserve = Reserve { topics: names.map(topic).into(), ..wait_for("a", 60_000) };
        let pending = s.send(Command::Reserve(reserve));
        s.advance(start + due - s.now());
        let Ok(Reply::Jobs(jobs)) = pending.wait() else { panic!("no jobs") };
        assert_eq!(jobs.len(), 1);
        assert_eq!((jobs[0].due_at, jobs[0].late_ms), (start + due, 0));
        assert_eq!(s.ack(jobs[0].token), Ok(EndReply::Done));
    }
    assert_eq!(s.total_stats().expect("totals").counts.waiting, 0);
}

fn many_consumers_get_everything(s: &mut Subject) {
    let waiting: Vec<_> = (0..20).map(|_| s.park(wait_for("mail", 60_000))).collect();
    let ids = s.put_many((0..20).map(|n| delayed("mail", 100 * (n % 4))));
    for _ in 0..4 {
        s.advance(100);
    }
    let mut given: Vec<_> = waiting.into_iter().map(|waiting| waiting.job().id).collect();
    given.sort_unstable();
    assert_eq!(given, ids);
}

fn retries_come_back_to_who_waits(s: &mut Subject) {
    let id = s.put(Put { attempts_max: Some(8), ..job("mail") });
    for attempt in 1..=8 {
        let pending = s.send(Command::Reserve(wait_for("mail", 60_000)));
        if attempt > 1 {
            s.advance(Backoff::DEFAULT.delay_ms(id, attempt - 1));
        }
        let Ok(Reply::Jobs(jobs)) = pending.wait() else { panic!("no jobs") };
        assert_eq!((jobs[0].attempt, jobs[0].late_ms), (attempt, 0));
        s.nack(failed(jobs[0].token)).expect("a nack");
    }
    assert_eq!(s.state(id), State::Dead);
}

fn due_during_a_stop_is_given_after_it(s: &mut Subject) {
    let id = s.put(delayed("mail", 1_000));
    let fixed = s.put(Put { at_ms: Some(s.now() as i64 + 1_200), ..job("mail") });
    if !s.reopen_after(1_500) {
        return;
    }
    let given: Vec<_> = s.reserve("mail", 2).iter().map(|job| (job.id, job.late_ms)).collect();
    assert_eq!(given, [(id, 500), (fixed, 300)]);
}

fn time_goes_on_while_the_computer_is_off(s: &mut Subject) {
    s.advance(7_000);
    let id = s.put(delayed("mail", 60_000));
    s.put(Put { key_ttl_ms: Some(60_000), ..keyed("sms", "k") });
    let token = s.reserve_one("sms").token;
    s.ack(token).expect("an ack");
    s.pause("mail", Some(50_000));
    if !s.reboot(59_999) {
        return;
    }
    assert_eq!(s.stats("mail").paused, None);
    assert_eq!(s.reserve("mail", 1), [], "not early");
    let kept = s.try_put(keyed("sms", "k")).expect("a duplicate");
    assert_eq!(kept.outcome, PutOutcome::Duplicate);
    s.advance(1);
    assert_eq!(s.reserve_one("mail").id, id);
    assert_eq!(s.try_put(keyed("sms", "k")).expect("a put").outcome, PutOutcome::Created);
}

fn a_wall_clock_set_back_while_off_fires_nothing_early(s: &mut Subject) {
    let id = s.put(delayed("mail", 60_000));
    if !s.reboot(-3_600_000) {
        return;
    }
    // How long it was off nobody knows: less than no time is taken for none.
    s.advance(59_999);
    assert_eq!(s.reserve("mail", 1), []);
    s.advance(1);
    assert_eq!(s.reserve_one("mail").id, id);
}

fn a_job_due_in_a_year_among_many_due_soon(s: &mut Subject) {
    const YEAR_MS: u64 = 31_536_000_000;
    let far = s.put(delayed("mail", YEAR_MS as i64));
    s.put_many((0..MANY).map(|n| delayed("mail", n as i64)));
    s.maybe_reopen();
    s.advance(MANY as u64);
    // One reserve may end before it has all: on Redis half a second after its first job.
    let mut tokens = Vec::new();
    while tokens.len() < MANY {
        let jobs = s.reserve("mail", limits::RESERVE_MAX);
        assert!(!jobs.is_empty(), "{} of {MANY}", tokens.len());
        tokens.extend(jobs.iter().map(|job| job.token));
    }
    s.ask(Command::Ack(tokens)).expect("acks");
    s.maybe_reopen();
    s.advance(YEAR_MS - MANY as u64 - 1_000);
    let waiting = s.park(wait_for("mail", 60_000));
    s.advance(1_000);
    assert_eq!(waiting.job().id, far);
}
