//! A virtual clock in a user's own tests.

use std::time::Duration;

use crate::util::{SECOND, take, virtual_queue};

#[test]
fn thirty_days_pass_in_an_instant() {
    let (queue, clock) = virtual_queue();
    let day = 24 * 3_600 * SECOND;
    queue.put("shops", "freeze").delay(30 * day).wait().unwrap();
    for _ in 0..29 {
        clock.advance(day);
        assert!(queue.reserve("shops").wait().unwrap().is_empty());
    }
    clock.advance(day);
    assert_eq!(take(&queue, "shops").late(), Duration::ZERO);
}

#[test]
fn time_stands_still_until_it_is_moved() {
    let (queue, clock) = virtual_queue();
    let before = queue.put("t", "b").wait().unwrap().due_at;
    assert_eq!(queue.put("t", "b").wait().unwrap().due_at, before);
    clock.advance(SECOND);
    assert_eq!(queue.put("t", "b").wait().unwrap().due_at, before + 1_000);
}

/// A call after a move always sees the new time: no test needs to wait for the engine to notice.
#[test]
fn a_call_after_a_move_sees_the_new_time() {
    let (queue, clock) = virtual_queue();
    for round in 0..1_000 {
        queue.put("t", "b").delay(60 * SECOND).wait().unwrap();
        assert!(queue.reserve("t").wait().unwrap().is_empty(), "round {round}");
        clock.advance(60 * SECOND);
        take(&queue, "t").ack().wait().unwrap();
    }
}

#[test]
fn a_stepped_wall_clock_moves_no_relative_delay() {
    let (queue, clock) = virtual_queue();
    queue.put("t", "b").delay(60 * SECOND).wait().unwrap();
    clock.step_wall_ms(3_600_000);
    assert!(queue.reserve("t").wait().unwrap().is_empty());
    clock.step_wall_ms(-7_200_000);
    clock.advance(60 * SECOND);
    assert_eq!(take(&queue, "t").attempt(), 1);
}
