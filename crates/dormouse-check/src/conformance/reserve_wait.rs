//! reserve that waits: answered as soon as one job can be given, and not before.

use std::time::Duration;

use super::prelude::*;
use crate::harness::redis::wait::until;

/// Longer than it takes on a busy machine.
const ANSWER_MAX: Duration = Duration::from_secs(10);

cases! { reserve_wait:
    answered_on_due
    answered_on_put
    answered_on_sync
    answered_on_release_nack_and_expiry
    answered_on_run_now_kick_and_revive
    answered_on_resume
    answered_when_a_pause_ends
    answered_when_the_wall_clock_is_set_forward
    answered_with_nothing_when_the_wait_is_over
    a_job_due_when_the_wait_ends_is_given
    takes_up_to_max_at_once
    several_topics_wake_one_reserve
    first_come_first_served
    one_job_wakes_one_reserve
    an_earlier_job_is_not_missed
    a_newcomer_does_not_overtake
    waiting_costs_no_topic
}

const WAIT_MS: i64 = 60_000;

fn answered_on_due(s: &mut Subject) {
    let id = s.put(delayed("mail", 5_000));
    s.maybe_reopen();
    let waiting = s.park(wait_for("mail", WAIT_MS));
    s.advance(4_999);
    s.barrier();
    assert!(!waiting.is_answered(), "early");
    s.advance(1);
    let got = waiting.job();
    assert_eq!((got.id, got.late_ms), (id, 0));
}

fn answered_on_put(s: &mut Subject) {
    let waiting = s.park(wait_for("mail", WAIT_MS));
    s.put(job("sms"));
    s.barrier();
    assert!(!waiting.is_answered(), "another topic");
    let id = s.put(job("mail"));
    assert_eq!(waiting.job().id, id);
}

fn answered_on_sync(s: &mut Subject) {
    // In one batch the reserve comes before the put can be durable: it waits for that, not for
    // time, which stands still.
    let reserve = Command::Reserve(wait_for("mail", WAIT_MS));
    let answers = s.batch(vec![Command::Put(vec![job("mail")]), reserve]);
    let [Ok(Reply::Put(put)), Ok(Reply::Jobs(jobs))] = &answers[..] else {
        panic!("{answers:?}");
    };
    assert_eq!(jobs.len(), 1);
    assert_eq!(put[0].as_ref().map(|put| put.id), Ok(jobs[0].id));
}

fn answered_on_release_nack_and_expiry(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(1_000), ..job("mail") });
    let lease = s.reserve_one("mail");
    let waiting = s.park(wait_for("mail", WAIT_MS));
    s.release(give_back(lease.token)).expect("a release");
    let lease = waiting.job();
    let waiting = s.park(wait_for("mail", WAIT_MS));
    s.nack(Nack { delay_ms: Some(300), ..failed(lease.token) }).expect("a nack");
    s.barrier();
    assert!(!waiting.is_answered(), "the nack asked for a delay");
    s.advance(300);
    assert_eq!(waiting.job().id, id);
    let waiting = s.park(wait_for("mail", WAIT_MS));
    s.advance(1_000);
    let lease = waiting.job();
    assert_eq!((lease.id, lease.attempt), (id, 3));
}

fn answered_on_run_now_kick_and_revive(s: &mut Subject) {
    let id = s.put(delayed("mail", 90_000));
    let waiting = s.park(wait_for("mail", WAIT_MS));
    s.run_now(by_id(id)).expect("a run now");
    s.ack(waiting.job().token).expect("an ack");

    let id = s.put(delayed("mail", 90_000));
    let waiting = s.park(wait_for("mail", WAIT_MS));
    assert_eq!(s.kick("mail", 1), 1);
    let lease = waiting.job();
    assert_eq!(lease.id, id);

    s.kill(kill_held(lease.token)).expect("a kill");
    let waiting = s.park(wait_for("mail", WAIT_MS));
    s.revive(by_id(id)).expect("a revive");
    assert_eq!(waiting.job().id, id);
}

fn answered_on_resume(s: &mut Subject) {
    let id = s.put(job("mail"));
    s.pause("mail", None);
    let waiting = s.park(wait_for("mail", WAIT_MS));
    s.resume("mail");
    assert_eq!(waiting.job().id, id);
}

fn answered_when_a_pause_ends(s: &mut Subject) {
    let id = s.put(job("mail"));
    s.pause("mail", Some(2_000));
    let waiting = s.park(wait_for("mail", WAIT_MS));
    s.advance(1_999);
    s.barrier();
    assert!(!waiting.is_answered());
    s.advance(1);
    assert_eq!(waiting.job().id, id);
}

fn answered_when_the_wall_clock_is_set_forward(s: &mut Subject) {
    let at_ms = s.now() as i64 + 3_600_000;
    let id = s.put(Put { at_ms: Some(at_ms), ..job("mail") });
    let waiting = s.park(wait_for("mail", WAIT_MS));
    if s.step_wall_ms(3_600_000) {
        assert_eq!(waiting.job().id, id);
    }
}

fn answered_with_nothing_when_the_wait_is_over(s: &mut Subject) {
    s.put(delayed("mail", 10_001));
    let waiting = s.park(wait_for("mail", 10_000));
    s.advance(9_999);
    s.barrier();
    assert!(!waiting.is_answered());
    s.advance(1);
    assert_eq!(waiting.jobs(), []);
    s.advance(1);
    assert_eq!(s.stats("mail").ready, 1, "who gave up takes nothing");
}

fn a_job_due_when_the_wait_ends_is_given(s: &mut Subject) {
    let id = s.put(delayed("mail", 10_000));
    let waiting = s.park(wait_for("mail", 10_000));
    s.advance(10_000);
    assert_eq!(waiting.job().id, id);
}

fn takes_up_to_max_at_once(s: &mut Subject) {
    let waiting = s.park(Reserve { max: 2, ..wait_for("mail", WAIT_MS) });
    s.put_many((0..3).map(|_| job("mail")));
    assert_eq!(waiting.jobs().len(), 2);
    assert_eq!(s.stats("mail").ready, 1);
}

fn several_topics_wake_one_reserve(s: &mut Subject) {
    let both = || Reserve { topics: ["a", "b"].map(topic).into(), ..wait_for("a", WAIT_MS) };
    let waiting = s.park(both());
    let id = s.put(job("b"));
    assert_eq!(waiting.job().id, id);
    s.put(delayed("b", 2_000));
    let sooner = s.put(delayed("a", 1_000));
    let waiting = s.park(both());
    s.advance(1_000);
    assert_eq!(waiting.job().id, sooner);
}

fn first_come_first_served(s: &mut Subject) {
    let first = s.park(wait_for("mail", WAIT_MS));
    let second = s.park(wait_for("mail", WAIT_MS));
    let one = s.put(job("mail"));
    assert_eq!(first.job().id, one);
    assert!(!second.is_answered());
    let two = s.put(job("mail"));
    assert_eq!(second.job().id, two);
}

fn one_job_wakes_one_reserve(s: &mut Subject) {
    let waiting = [(); 3].map(|()| s.park(wait_for("mail", WAIT_MS)));
    s.put(job("mail"));
    let answered = || waiting.iter().filter(|waiting| waiting.is_answered()).count();
    until("an answer", ANSWER_MAX, || if answered() > 0 { Ok(()) } else { Err("none".into()) });
    s.barrier();
    assert_eq!(answered(), 1);
    assert_eq!(s.stats("mail").waiters, 2);
}

fn an_earlier_job_is_not_missed(s: &mut Subject) {
    s.put(delayed("mail", 50_000));
    let waiting = s.park(wait_for("mail", WAIT_MS));
    let earlier = s.put(delayed("mail", 1_000));
    s.advance(1_000);
    assert_eq!(waiting.job().id, earlier);
}

fn a_newcomer_does_not_overtake(s: &mut Subject) {
    let id = s.put(delayed("mail", 1_000));
    let waiting = s.park(wait_for("mail", WAIT_MS));
    s.advance(1_000);
    assert_eq!(s.reserve("mail", 1), []);
    assert_eq!(waiting.job().id, id);
}

fn waiting_costs_no_topic(s: &mut Subject) {
    let waiting = s.park(wait_for("mail", 1_000));
    assert_eq!(s.stats("mail").waiters, 1, "a watched name can be asked about");
    s.advance(1_000);
    assert_eq!(waiting.jobs(), []);
    refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
}
