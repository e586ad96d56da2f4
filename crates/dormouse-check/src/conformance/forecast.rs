//! forecast: jobs coming due per step, exactly.

use super::prelude::*;

cases! { forecast:
    counts_per_step
    both_clocks_and_all_priorities
    steps_begin_inclusive_and_end_exclusive
    the_last_step_may_be_shorter
    overdue_jobs_are_in_the_past
    leased_and_dead_jobs_are_not_coming_due
    a_missing_topic_has_nothing
    sums_over_many
    no_step
    too_many_steps
    changes_nothing
}

/// A forecast from an offset to another, in steps.
fn forecast(s: &Subject, from: i64, to: i64, step_ms: u64) -> Result<Vec<u64>, Error> {
    let at = |offset: i64| s.now().saturating_add_signed(offset);
    s.forecast(Forecast { topic: topic("mail"), from_ms: at(from), to_ms: at(to), step_ms })
}

fn counts_per_step(s: &mut Subject) {
    s.put_many([5, 15, 15, 35].map(|delay_ms| delayed("mail", delay_ms)));
    s.put(delayed("sms", 5));
    s.maybe_reopen();
    assert_eq!(forecast(s, 0, 40, 10), Ok(vec![1, 2, 0, 1]));
}

fn both_clocks_and_all_priorities(s: &mut Subject) {
    let at_ms = Some(s.now() as i64 + 5);
    s.put_many([delayed("mail", 5), Put { at_ms, ..job("mail") }]);
    s.put(Put { priority: Some(0), ..delayed("mail", 5) });
    s.maybe_reopen();
    assert_eq!(forecast(s, 0, 20, 10), Ok(vec![3, 0]));
}

fn steps_begin_inclusive_and_end_exclusive(s: &mut Subject) {
    s.put_many([9, 10, 19, 20].map(|delay_ms| delayed("mail", delay_ms)));
    s.maybe_reopen();
    assert_eq!(forecast(s, 10, 20, 10), Ok(vec![2]));
}

fn the_last_step_may_be_shorter(s: &mut Subject) {
    s.put_many([0, 10, 24, 25].map(|delay_ms| delayed("mail", delay_ms)));
    assert_eq!(forecast(s, 0, 25, 10), Ok(vec![1, 1, 1]));
}

fn overdue_jobs_are_in_the_past(s: &mut Subject) {
    s.put_many([0, 10].map(|delay_ms| delayed("mail", delay_ms)));
    s.maybe_reopen();
    s.advance(100);
    assert_eq!(forecast(s, 0, 100, 100), Ok(vec![0]));
    assert_eq!(forecast(s, -100, 0, 50), Ok(vec![2, 0]));
}

fn leased_and_dead_jobs_are_not_coming_due(s: &mut Subject) {
    let ids = s.put_many([0, 0, 5].map(|delay_ms| delayed("mail", delay_ms)));
    s.reserve_id(ids[0]);
    s.kill(kill_resting(by_id(ids[1]))).expect("a kill");
    s.maybe_reopen();
    assert_eq!(forecast(s, 0, 100_000, 100_000), Ok(vec![1]));
}

fn a_missing_topic_has_nothing(s: &mut Subject) {
    assert_eq!(forecast(s, 0, 30, 10), Ok(vec![0, 0, 0]));
}

fn sums_over_many(s: &mut Subject) {
    let ids = s.put_many((0..MANY).map(|n| delayed("mail", n as i64)));
    s.maybe_reopen();
    s.cancel(by_id(ids[7])).expect("a cancel");
    s.delay(by_id(ids[8]), 100).expect("a move");
    s.maybe_reopen();
    let steps = forecast(s, 0, MANY as i64, 10).expect("a forecast");
    assert_eq!(steps.len(), MANY / 10);
    assert_eq!((steps[0], steps[10]), (8, 11));
    assert_eq!(steps.iter().sum::<u64>(), MANY as u64 - 1);
    let stats = s.stats("mail");
    assert_eq!(stats.delayed + stats.ready, MANY as u64 - 1);
}

fn no_step(s: &mut Subject) {
    for (from, to, step_ms) in [(0, 10, 0), (10, 10, 1), (10, 5, 1)] {
        refused(forecast(s, from, to, step_ms), Code::Invalid, &["forecast", "step", "give"]);
    }
}

fn too_many_steps(s: &mut Subject) {
    let words = ["1001 steps", "1000", "longer step"];
    refused(forecast(s, 0, 1_001, 1), Code::Invalid, &words);
    assert_eq!(forecast(s, 0, 1_000, 1).expect("a forecast").len(), 1_000);
    let all = Forecast { topic: topic("mail"), from_ms: s.now(), to_ms: u64::MAX, step_ms: 1 };
    refused(s.forecast(all), Code::Invalid, &["steps", "1000", "longer step"]);
}

fn changes_nothing(s: &mut Subject) {
    s.put(job("mail"));
    let before = s.stats("mail");
    forecast(s, -10, 10, 1).expect("a forecast");
    assert_eq!(s.stats("mail"), before);
    assert_eq!(s.reserve("mail", 1).len(), 1);
}
