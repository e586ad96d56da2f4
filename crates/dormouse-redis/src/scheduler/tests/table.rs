//! Cases by hand: what goes in, and which actions come out.

use std::time::Duration;

use dormouse_core::job::JobId;

use super::super::{
    Action, BATCH_JOBS_MAX, Heads, HeadsReport, NewWaiter, Now, REPLY_TIMEOUT, SECOND_BATCH_MIN,
    Scheduler, TicksReport, WakeAt,
};
use super::fake::{Kind, Lease, TestRequest};

type TestScheduler = Scheduler<TestRequest, &'static str>;

fn at(ms: u64) -> Now {
    Now { steady: Duration::from_millis(ms), redis_ms: ms }
}

fn scheduler(partitions: usize, replicas: u32) -> TestScheduler {
    let mut scheduler = Scheduler::new(replicas, 100);
    for _ in 0..partitions {
        scheduler.add_partition(partitions, Duration::from_secs(60), at(0));
    }
    scheduler
}

fn submit(scheduler: &mut TestScheduler, no: u64, submission: Option<u64>, kind: Kind) {
    let request = TestRequest { no, submission: None, kind };
    scheduler.submit(0, submission, request, at(0));
}

fn put(jobs: usize) -> Kind {
    Kind::Put { jobs, delay_ms: 0 }
}

fn park(scheduler: &mut TestScheduler, no: u64, max: usize, is_blocking: bool) {
    let waiter = NewWaiter { max, ttr_ms: None, submission: None, is_blocking };
    scheduler.park(no, waiter, &[0], at(0));
}

/// The sequence of the next action, which must be to send.
fn sends(scheduler: &mut TestScheduler, now: Now) -> Option<u8> {
    match scheduler.next_action(0, now) {
        Some(Action::Send { sequence }) => Some(sequence),
        None => None,
        other => panic!("{other:?}"),
    }
}

/// Whether the next action is to give ticks.
fn gives(scheduler: &mut TestScheduler, now: Now) -> bool {
    match scheduler.next_action(0, now) {
        Some(Action::GiveTicks) => true,
        None => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn ticks_are_given_when_they_are_due_and_looked_for_every_few_seconds() {
    let mut scheduler = scheduler(1, 0);
    assert!(!gives(&mut scheduler, at(0)));
    scheduler.expect_tick(0, at(50).redis_ms);
    assert_eq!(scheduler.wake_at(0, at(0)).redis_ms, Some(at(50).redis_ms));
    assert!(!gives(&mut scheduler, at(49)) && gives(&mut scheduler, at(50)));
    // One portion at a time; what becomes due meanwhile is not forgotten.
    scheduler.expect_tick(0, 0);
    assert!(!gives(&mut scheduler, at(60)));
    assert_eq!(scheduler.wake_at(0, at(60)), WakeAt::default());
    let next_at = Some(at(900).redis_ms);
    let report = TicksReport { is_watched: true, next_at, is_refused: false };
    scheduler.ticks_given(0, report, at(60));
    assert!(gives(&mut scheduler, at(60)));
    scheduler.ticks_given(0, report, at(70));
    assert!(!gives(&mut scheduler, at(899)) && gives(&mut scheduler, at(900)));
    // All are parked: only the recheck is left.
    scheduler.ticks_given(0, TicksReport { next_at: None, ..report }, at(900));
    assert!(!gives(&mut scheduler, at(5_899)) && gives(&mut scheduler, at(5_900)));
    // After a refusal or a failure there is a pause, whatever is due.
    let refused = TicksReport { next_at: Some(0), is_refused: true, ..report };
    scheduler.ticks_given(0, refused, at(5_900));
    assert!(!gives(&mut scheduler, at(6_899)) && gives(&mut scheduler, at(6_900)));
    scheduler.ticks_failed(0, at(6_900));
    assert!(!gives(&mut scheduler, at(7_899)) && gives(&mut scheduler, at(7_900)));
    // No schedules: it is looked at when the register names the topic again.
    scheduler.ticks_given(0, TicksReport::default(), at(7_900));
    assert!(!gives(&mut scheduler, at(100_000)));
    scheduler.watch_ticks(0);
    assert!(gives(&mut scheduler, at(100_000)));
}

/// Number and requests of the batch in a sequence.
fn batch(scheduler: &mut TestScheduler, sequence: u8) -> (u64, Vec<u64>) {
    let (number, batch) = scheduler.batch(0, sequence).expect("it is in flight");
    (number, batch.requests.iter().map(|request| request.no).collect())
}

#[test]
fn requests_are_sorted_by_phase_but_a_submission_keeps_its_order() {
    let mut scheduler = scheduler(1, 0);
    submit(&mut scheduler, 1, Some(1), Kind::Read);
    submit(&mut scheduler, 2, Some(1), put(1));
    submit(&mut scheduler, 3, None, put(1));
    submit(&mut scheduler, 4, Some(1), Kind::Read);
    assert_eq!(sends(&mut scheduler, at(1)), Some(0));
    assert_eq!(batch(&mut scheduler, 0), (101, vec![3, 1]));
    scheduler.completed(0, 0, "", false);
    assert_eq!(sends(&mut scheduler, at(2)), Some(0));
    assert_eq!(batch(&mut scheduler, 0), (102, vec![2, 4]));
}

#[test]
fn a_second_batch_is_sent_if_it_is_large_and_the_first_is_not_slow() {
    for (replicas, items, at_ms, is_sent) in [
        (0, SECOND_BATCH_MIN, 1, true),
        (0, SECOND_BATCH_MIN - 1, 1, false),
        (0, SECOND_BATCH_MIN, 600, false),
        (1, SECOND_BATCH_MIN, 1, false),
    ] {
        let mut scheduler = scheduler(1, replicas);
        submit(&mut scheduler, 1, None, put(1));
        assert_eq!(sends(&mut scheduler, at(0)), Some(0));
        (0..items).for_each(|no| submit(&mut scheduler, 2 + no as u64, None, put(1)));
        assert_eq!(sends(&mut scheduler, at(at_ms)), is_sent.then_some(1), "{items} items");
    }
}

#[test]
fn a_batch_has_a_bound_and_the_rest_follows() {
    let mut scheduler = scheduler(1, 0);
    (1..=3).for_each(|no| submit(&mut scheduler, no, None, put(BATCH_JOBS_MAX / 2)));
    assert_eq!(sends(&mut scheduler, at(0)), Some(0));
    assert_eq!(sends(&mut scheduler, at(0)), Some(1));
    assert_eq!(batch(&mut scheduler, 0), (101, vec![1, 2]));
    assert_eq!(batch(&mut scheduler, 1), (102, vec![3]));
}

#[test]
fn a_repeat_keeps_its_number() {
    let mut scheduler = scheduler(1, 0);
    submit(&mut scheduler, 1, None, put(1));
    assert_eq!(sends(&mut scheduler, at(0)), Some(0));
    scheduler.again(0, 0);
    assert_eq!(sends(&mut scheduler, at(5)), Some(0));
    assert_eq!(batch(&mut scheduler, 0), (101, vec![1]));
}

#[test]
fn a_batch_without_reply_times_out_once_and_is_not_encoded_again() {
    let mut scheduler = scheduler(1, 0);
    submit(&mut scheduler, 1, None, put(1));
    park(&mut scheduler, 7, 1, false);
    assert_eq!(sends(&mut scheduler, at(0)), Some(0));
    assert!(scheduler.next_action(0, at(9_999)).is_none());
    let wake_at = scheduler.wake_at(0, at(9_999)).steady;
    assert_eq!(wake_at, Some(REPLY_TIMEOUT));
    submit(&mut scheduler, 2, None, put(1));
    match scheduler.next_action(0, at(10_000)) {
        Some(Action::TimeOut { sequence: 0, waiters }) => assert_eq!(waiters, [7]),
        other => panic!("{other:?}"),
    }
    // Request 2 was queued at 0: it is never sent.
    match scheduler.next_action(0, at(10_000)) {
        Some(Action::Refuse { requests, waiters }) => {
            assert_eq!((requests.len(), waiters.len()), (1, 0));
        }
        other => panic!("{other:?}"),
    }
    assert!(scheduler.next_action(0, at(10_000)).is_none());
    scheduler.again(0, 0);
    assert!(scheduler.batch(0, 0).is_none());
    assert!(scheduler.next_action(0, at(10_001)).is_none());
}

#[test]
fn a_batch_that_was_never_sent_is_replaced_by_an_empty_one() {
    let mut scheduler = scheduler(1, 0);
    submit(&mut scheduler, 1, None, put(1));
    assert_eq!(sends(&mut scheduler, at(0)), Some(0));
    assert!(matches!(scheduler.next_action(0, at(10_000)), Some(Action::TimeOut { .. })));
    scheduler.clear(0, 0);
    assert_eq!(sends(&mut scheduler, at(10_000)), Some(0));
    assert_eq!(batch(&mut scheduler, 0), (101, vec![]));
}

#[test]
fn the_next_batch_is_sent_before_replies_are_delivered_unless_a_waiter_may_wait_on() {
    for is_blocking in [false, true] {
        let mut scheduler = scheduler(1, 0);
        park(&mut scheduler, 7, 1, is_blocking);
        assert_eq!(sends(&mut scheduler, at(0)), Some(0));
        submit(&mut scheduler, 1, None, put(1));
        scheduler.completed(0, 0, "reply", false);
        let first = scheduler.next_action(0, at(1));
        assert_eq!(matches!(first, Some(Action::Deliver { .. })), is_blocking, "{first:?}");
    }
}

#[test]
fn the_oldest_waiter_is_served_first_and_the_others_stay() {
    let mut scheduler = scheduler(1, 0);
    (7..=9).for_each(|no| park(&mut scheduler, no, 2, true));
    assert_eq!(sends(&mut scheduler, at(0)), Some(0));
    let (_, batch) = scheduler.batch(0, 0).expect("it is in flight");
    let poll = batch.polls.remove(0);
    assert_eq!((&poll.waiters[..], poll.max), (&[7, 8, 9][..], 6));
    scheduler.remove_waiter(8);
    let leases: Vec<_> = (0..3).map(|id| Lease { id, fence: 1 }).collect();
    let outcome = scheduler.polled(0, &poll, leases);
    let done: Vec<_> = outcome.done.iter().map(|(no, jobs)| (*no, jobs.len())).collect();
    assert_eq!((done, outcome.left.len()), (vec![(7, 2), (9, 1)], 0));
    assert_eq!(scheduler.blocking_waiters(0), 0);
}

#[test]
fn a_failure_delays_polls_of_blocking_waiters_but_no_requests() {
    let mut scheduler = scheduler(1, 0);
    park(&mut scheduler, 7, 1, true);
    assert_eq!(sends(&mut scheduler, at(0)), Some(0));
    let (_, waiters) = scheduler.failed(0, 0, at(1)).expect("it is in flight");
    assert!(waiters.is_empty());
    scheduler.poll_now(0);
    assert_eq!(sends(&mut scheduler, at(50)), None);
    assert_eq!(scheduler.wake_at(0, at(50)).steady, Some(Duration::from_millis(101)));
    submit(&mut scheduler, 1, None, Kind::Read);
    assert_eq!(sends(&mut scheduler, at(50)), Some(0));
}

#[test]
fn a_wakeup_polls_at_its_time() {
    let mut scheduler = scheduler(1, 0);
    park(&mut scheduler, 7, 1, true);
    assert!(scheduler.subscribe(0, at(0)) && !scheduler.subscribe(0, at(0)));
    assert_eq!(sends(&mut scheduler, at(0)), Some(0));
    scheduler.completed(0, 0, "", false);
    let Some(Action::Deliver { batch, .. }) = scheduler.next_action(0, at(1)) else { panic!() };
    scheduler.heads_mut(0).update(&Default::default(), &[]);
    assert!(scheduler.polled(0, &batch.polls[0], Vec::<Lease>::new()).done.is_empty());
    assert_eq!(sends(&mut scheduler, at(2)), None);
    scheduler.wakeup(0, 500);
    scheduler.wakeup(0, 900);
    assert_eq!(scheduler.wake_at(0, at(2)).redis_ms, Some(500));
    assert_eq!(sends(&mut scheduler, at(499)), None);
    assert_eq!(sends(&mut scheduler, at(500)), Some(0));
}

#[test]
fn a_channel_that_nobody_needs_is_left() {
    let mut scheduler = scheduler(1, 0);
    assert!(scheduler.subscribe(0, at(0)));
    assert_eq!(scheduler.wake_at(0, at(1)).steady, Some(Duration::from_secs(10)));
    assert!(scheduler.next_action(0, at(9_999)).is_none());
    assert!(matches!(scheduler.next_action(0, at(10_000)), Some(Action::Unsubscribe)));
    assert!(scheduler.subscribe(0, at(10_001)));
}

#[test]
fn a_batch_of_which_nothing_is_left_makes_room_for_the_next() {
    let mut scheduler = scheduler(1, 0);
    submit(&mut scheduler, 1, None, put(1));
    assert_eq!(sends(&mut scheduler, at(0)), Some(0));
    scheduler.cancel(0, 0);
    submit(&mut scheduler, 2, None, put(1));
    assert_eq!(sends(&mut scheduler, at(0)), Some(0));
    assert_eq!(batch(&mut scheduler, 0), (102, vec![2]));
}

#[test]
fn a_waiter_at_a_silent_partition_may_be_served_by_another() {
    let mut scheduler = scheduler(2, 0);
    let waiter = NewWaiter { max: 1, ttr_ms: None, submission: None, is_blocking: true };
    scheduler.park(7, waiter, &[0, 1], at(0));
    assert_eq!(sends(&mut scheduler, at(0)), Some(0));
    assert!(scheduler.is_polled(7) && !scheduler.is_away(0, at(500)));
    assert!(scheduler.next_action(1, at(500)).is_none());
    assert!(scheduler.is_away(0, at(501)));
    assert!(scheduler.next_action(0, at(501)).is_none());
    assert!(!scheduler.is_polled(7));
    assert!(matches!(scheduler.next_action(1, at(501)), Some(Action::Send { .. })));
}

#[test]
fn after_batches_in_an_unknown_order_the_first_jobs_are_unknown() {
    for (was_resent, next) in [(false, None), (true, Some(0))] {
        let mut scheduler = scheduler(1, 0);
        submit(&mut scheduler, 1, None, put(1));
        assert_eq!(sends(&mut scheduler, at(0)), Some(0));
        submit(&mut scheduler, 2, None, put(SECOND_BATCH_MIN));
        assert_eq!(sends(&mut scheduler, at(0)), Some(1));
        scheduler.completed(0, 0, "", was_resent);
        let Some(Action::Deliver { is_reordered, .. }) = scheduler.next_action(0, at(1)) else {
            panic!("no reply is delivered")
        };
        scheduler.heads_mut(0).update(&HeadsReport::default(), &[]);
        scheduler.delivered(0, is_reordered);
        assert_eq!(scheduler.heads_mut(0).next_visible_at(), next);
    }
}

/// What is known of the first jobs: inputs, when a job is next visible, and the first visible one.
#[test]
fn heads_are_never_later_than_what_was_seen() {
    let report = |closed_until, lease_end, heads: &[(u32, Option<(u64, JobId)>)]| HeadsReport {
        closed_until,
        lease_end,
        heads: heads.to_vec(),
        is_partial: false,
    };
    let check = |heads: &Heads, next: Option<u64>, first: Option<(u32, u64, u64)>| {
        assert_eq!(heads.next_visible_at(), next);
        let rank = heads.first_visible(100).map(|(priority, due_at, id)| (priority, due_at, id.0));
        assert_eq!(rank, first);
    };
    let mut heads = Heads::default();
    check(&heads, Some(0), Some((0, 0, 0)));
    // The poll read one of two priorities, and its first job is left: the other is unknown.
    let seen = report(0, None, &[(1, Some((90, JobId(5))))]);
    assert_eq!(seen.next(100), Some((1, 90, JobId(5))));
    assert_eq!(seen.next(89), None);
    heads.update(&seen, &[1, 2]);
    check(&heads, Some(0), Some((1, 90, 5)));
    heads.update(&report(0, Some(150), &[(1, None), (2, Some((200, JobId(6))))]), &[1, 2]);
    check(&heads, Some(150), None);
    heads.lower(2, 120, JobId(7));
    heads.lower(2, 300, JobId(8));
    check(&heads, Some(120), None);
    heads.lower(3, 95, JobId(9));
    check(&heads, Some(95), Some((3, 95, 9)));
    // The job of a lease that has ended may have any priority.
    heads.lower_lease_end(99);
    heads.lower_lease_end(170);
    check(&heads, Some(95), Some((0, 0, 0)));
    heads.update(&report(400, None, &[]), &[1, 2]);
    check(&heads, Some(400), None);
    heads.invalidate();
    heads.lower(1, 5, JobId(1));
    check(&heads, Some(0), Some((0, 0, 0)));
}
