//! change_schedule: pause, resume, skip, replan.

use super::prelude::*;

cases! { change_schedule:
    a_pause_gives_no_ticks_and_none_later
    a_pause_ends_by_itself
    to_pause_twice_and_to_resume_a_running_one_changes_nothing
    a_skipped_tick_is_left_out_and_counted
    a_replan_gives_up_what_was_to_be_given
    one_that_is_not_there
    a_pause_out_of_range
}

fn a_pause_gives_no_ticks_and_none_later(s: &mut Subject) {
    s.schedule(every(1_000));
    let view = s.change(ScheduleChange::Pause { for_ms: None }).expect("paused");
    assert_eq!((view.state, view.next), (ScheduleState::Paused, vec![]));
    s.maybe_reopen();
    s.advance(2_500);
    let view = s.change(ScheduleChange::Resume).expect("resumed");
    assert_eq!((view.state, view.counts.skipped), (ScheduleState::Waiting, 2));
    assert_eq!(s.reserve("t", 1), []);
    s.advance(600);
    s.take_tick();
    assert_eq!(s.tick_counts(), [1, 0, 0, 2]);
}

fn a_pause_ends_by_itself(s: &mut Subject) {
    let first = s.schedule(every(1_000)).next_at.expect("a next tick");
    let view = s.change(ScheduleChange::Pause { for_ms: Some(3_500) }).expect("paused");
    assert_eq!((view.state, view.next.first()), (ScheduleState::Paused, Some(&(first + 3_000))));
    assert!(view.paused_until.is_some());
    s.advance(4_002);
    s.take_tick();
    assert_eq!(s.tick_counts(), [1, 0, 0, 3]);
}

fn to_pause_twice_and_to_resume_a_running_one_changes_nothing(s: &mut Subject) {
    s.schedule(every(10_000));
    let pause = ScheduleChange::Pause { for_ms: None };
    s.change(pause).expect("paused");
    assert_eq!(s.change(pause).expect("paused").state, ScheduleState::Paused);
    s.change(ScheduleChange::Resume).expect("resumed");
    let view = s.change(ScheduleChange::Resume).expect("it runs");
    assert_eq!((view.state, view.version), (ScheduleState::Waiting, 1));
    assert_eq!(s.tick_counts(), [0; 4]);
}

fn a_skipped_tick_is_left_out_and_counted(s: &mut Subject) {
    let first = s.schedule(every(1_000)).next_at.expect("a next tick");
    let view = s.change(ScheduleChange::Skip).expect("skipped");
    assert_eq!((view.next.first(), view.counts.skipped), (Some(&(first + 1_000)), 1));
    s.advance(1_500);
    s.barrier();
    assert_eq!(s.reserve("t", 1), []);
    s.advance(600);
    s.take_tick();
    assert_eq!(s.tick_counts(), [1, 0, 0, 1]);
}

fn a_replan_gives_up_what_was_to_be_given(s: &mut Subject) {
    s.set_topic("t", Settings { jobs_max: Some(1), ..Settings::default() });
    s.put(delayed("t", 3_600_000));
    s.schedule(every(1_000));
    s.advance(3_200);
    let view = s.change(ScheduleChange::Replan).expect("replanned");
    assert_eq!((view.counts.given, view.counts.missed), (0, 3));
    assert!(view.next.first().is_some_and(|next| *next > s.now()));
}

fn one_that_is_not_there(s: &mut Subject) {
    for change in [ScheduleChange::Resume, ScheduleChange::Skip, ScheduleChange::Replan] {
        refused(s.change(change), Code::NotFound, &["schedule s"]);
    }
}

fn a_pause_out_of_range(s: &mut Subject) {
    s.schedule(every(1_000));
    let pause = ScheduleChange::Pause { for_ms: Some(-1) };
    refused(s.change(pause), Code::Invalid, &["pause"]);
}
