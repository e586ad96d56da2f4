//! peek: the next job of a state, without leasing it.

use super::prelude::*;

cases! { peek:
    ready_as_reserve_would_give_it
    delayed_by_due_time
    leased_by_expiry
    dead_by_age
    nothing_of_that_state
    a_paused_topic_can_be_looked_at
    changes_nothing
}

#[track_caller]
fn next(s: &Subject, state: State) -> Option<JobId> {
    let view = s.peek("mail", state)?;
    assert_eq!((view.state, view.topic), (state, topic("mail")));
    Some(view.job.id)
}

fn ready_as_reserve_would_give_it(s: &mut Subject) {
    s.put(delayed("mail", 10));
    s.put(Put { priority: Some(5), ..delayed("mail", 30) });
    s.put(Put { priority: Some(5), ..delayed("mail", 20) });
    s.put(Put { priority: Some(0), ..delayed("mail", 99) });
    s.maybe_reopen();
    s.advance(30);
    for _ in 0..3 {
        let peeked = next(s, State::Ready);
        assert_eq!(peeked, Some(s.reserve_one("mail").id));
    }
    assert_eq!(next(s, State::Ready), None);
}

fn delayed_by_due_time(s: &mut Subject) {
    s.put(job("mail"));
    s.put(Put { priority: Some(0), ..delayed("mail", 300) });
    let at_ms = Some(s.now() as i64 + 100);
    let soonest = s.put(Put { at_ms, ..job("mail") });
    let second = s.put(delayed("mail", 200));
    s.maybe_reopen();
    assert_eq!(next(s, State::Delayed), Some(soonest), "whatever its priority");
    s.cancel(by_id(soonest)).expect("a cancel");
    s.maybe_reopen();
    assert_eq!(next(s, State::Delayed), Some(second));
}

fn leased_by_expiry(s: &mut Subject) {
    let slow = s.put(Put { ttr_ms: Some(5_000), ..job("mail") });
    let quick = s.put(Put { ttr_ms: Some(1_000), ..job("mail") });
    s.reserve("mail", 2);
    s.maybe_reopen();
    assert_eq!(next(s, State::Leased), Some(quick));
    s.advance(1_000);
    assert_eq!(next(s, State::Leased), Some(slow));
}

fn dead_by_age(s: &mut Subject) {
    let ids = s.put_many((0..3).map(|_| job("mail")));
    for &id in ids.iter().rev() {
        s.kill(kill_resting(by_id(id))).expect("a kill");
        s.advance(1);
    }
    s.maybe_reopen();
    assert_eq!(next(s, State::Dead), Some(ids[2]), "dead the longest");
}

fn nothing_of_that_state(s: &mut Subject) {
    for state in [State::Delayed, State::Ready, State::Leased, State::Dead] {
        assert_eq!(s.peek("mail", state), None, "no topic, no {state} job");
    }
    s.put(delayed("mail", 10));
    s.maybe_reopen();
    for state in [State::Ready, State::Leased, State::Dead] {
        assert_eq!(s.peek("mail", state), None, "{state}");
    }
}

fn a_paused_topic_can_be_looked_at(s: &mut Subject) {
    let id = s.put(job("mail"));
    s.pause("mail", None);
    assert_eq!(next(s, State::Ready), Some(id));
}

fn changes_nothing(s: &mut Subject) {
    s.put(job("mail"));
    let before = s.stats("mail");
    let first = s.peek("mail", State::Ready);
    assert_eq!(s.peek("mail", State::Ready), first);
    assert_eq!(s.stats("mail"), before);
}
