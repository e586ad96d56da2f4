//! put_schedule: a job at each tick, each tick once.

use super::prelude::*;

cases! { put_schedule:
    a_tick_comes_though_nobody_waits
    a_waiting_reserve_gets_the_tick
    the_job_tells_its_tick
    the_template_comes_back_in_each_job
    the_same_again_changes_nothing
    another_definition_is_a_new_version
    a_new_rule_gives_no_tick_of_the_past
    keep_and_reject_leave_it_as_it_is
    a_version_must_be_the_one_that_is_there
    ticks_pass_while_the_job_lives
    the_latest_tick_waits_for_the_job
    each_tick_waits_for_the_job_before
    jobs_live_beside_each_other_if_allowed
    the_job_before_is_replaced
    a_gap_counts_from_the_end_of_the_job
    a_dead_job_is_not_in_the_way
    a_purge_wakes_what_waited_for_its_job
    the_latest_tick_that_passed_is_given
    a_tick_that_is_too_late_is_missed
    a_schedule_ends_with_its_last_job
    ticks_survive_a_restart
    a_full_topic_loses_no_tick
    one_that_does_not_fit_holds_up_no_other
    a_full_topic_does_not_keep_a_job_from_being_replaced
    a_schedule_is_no_job
    a_topic_lives_as_long_as_its_schedules
    wrong_rules_and_fields_are_refused
}

fn a_tick_comes_though_nobody_waits(s: &mut Subject) {
    let reply = s.schedule(every(1_000));
    assert_eq!((reply.outcome, reply.version), (ScheduleOutcome::Created, 1));
    assert_eq!(reply.words, "every 1s");
    s.maybe_reopen();
    s.advance(1_001);
    s.look_until(|view| view.counts.given == 1);
    assert_eq!(s.stats("t").ready, 1);
}

fn a_waiting_reserve_gets_the_tick(s: &mut Subject) {
    s.schedule(every(1_000));
    let waiting = s.park(wait_for("t", 30_000));
    s.advance(1_001);
    assert_eq!(waiting.job().body, "work");
}

fn the_job_tells_its_tick(s: &mut Subject) {
    let next_at = s.schedule(every(1_000)).next_at.expect("a next tick");
    s.advance(1_001);
    let job = s.take_tick();
    let tick = job.tick.as_ref().expect("it is of a tick");
    assert_eq!((tick.schedule.as_str(), tick.missed), ("s", 0));
    assert_eq!((tick.tick_ms, job.due_at), (next_at, next_at));
    assert_eq!(s.view(job.id).job.content.tick, job.tick);
    let last = s.look().last.expect("a last job");
    assert_eq!((last.id, last.tick_ms), (job.id, next_at));
}

fn the_template_comes_back_in_each_job(s: &mut Subject) {
    let mut put = every(1_000);
    put.template.headers = Some(Arc::new(vec![("a".to_owned(), "b".to_owned())]));
    put.template.priority = Some(7);
    put.template.ttr_ms = Some(12_345);
    put.template.attempts_max = Some(3);
    put.template.expires_after_ms = Some(500_000);
    s.schedule(put.clone());
    let definition = s.look().definition;
    assert_eq!(definition.template.expires_after_ms, Some(500_000));
    assert_eq!(definition.template.headers, put.template.headers);
    assert_eq!((definition.template.priority, definition.template.ttr_ms), (Some(7), Some(12_345)));
    s.advance(1_001);
    let job = s.take_tick();
    assert_eq!((job.body.as_ref(), &job.headers), (b"work".as_ref(), &put.template.headers));
    assert_eq!((job.priority, job.ttr_ms, job.expires_after_ms), (7, 12_345, 500_000));
    let content = s.view(job.id).job.content;
    assert_eq!((content.attempts_max, content.expires_after_ms), (3, 500_000));
}

fn the_same_again_changes_nothing(s: &mut Subject) {
    let first = s.schedule(every(10_000));
    s.advance(300);
    for _ in 0..20 {
        let reply = s.schedule(every(10_000));
        assert_eq!((reply.outcome, reply.version), (ScheduleOutcome::Unchanged, 1));
        assert_eq!(reply.next_at, first.next_at);
    }
}

fn another_definition_is_a_new_version(s: &mut Subject) {
    let first = s.schedule(every(10_000));
    s.advance(3_000);
    let reply = s.schedule(PutSchedule { overlap: Some(Overlap::Allow), ..every(10_000) });
    assert_eq!((reply.outcome, reply.version), (ScheduleOutcome::Replaced, 2));
    assert_eq!(reply.next_at, first.next_at, "the rule is the same, so the tick stays");
    let reply = s.schedule(every(20_000));
    assert_eq!((reply.outcome, reply.version), (ScheduleOutcome::Replaced, 3));
    assert_eq!(reply.next_at.map(|at| at / 10), Some((s.now() + 20_000) / 10));
}

fn a_new_rule_gives_no_tick_of_the_past(s: &mut Subject) {
    s.pause("t", None);
    s.schedule(every(60_000));
    s.advance(30_000);
    s.schedule(every(1_000));
    s.advance(500);
    assert_eq!(s.tick_counts(), [0, 0, 0, 0]);
    s.advance(600);
    s.look_until(|view| view.counts.given == 1);
}

fn keep_and_reject_leave_it_as_it_is(s: &mut Subject) {
    s.schedule(every(10_000));
    let keep = PutSchedule { on_conflict: ScheduleConflict::Keep, ..every(1_000) };
    assert_eq!(s.schedule(keep).outcome, ScheduleOutcome::Duplicate);
    let reject = PutSchedule { on_conflict: ScheduleConflict::Reject, ..every(1_000) };
    refused(s.try_schedule(reject), Code::Conflict, &["schedule s", "version 1"]);
    assert_eq!(s.look().words, "every 10s");
}

fn a_version_must_be_the_one_that_is_there(s: &mut Subject) {
    let put = |version| PutSchedule { if_version: Some(version), ..every(1_000) };
    refused(s.try_schedule(put(1)), Code::Conflict, &["schedule s is not there"]);
    s.schedule(every(10_000));
    refused(s.try_schedule(put(2)), Code::Conflict, &["version 1, not 2"]);
    assert_eq!(s.schedule(put(1)).version, 2);
}

fn ticks_pass_while_the_job_lives(s: &mut Subject) {
    s.schedule(every(1_000));
    s.advance(1_001);
    let job = s.take_tick();
    s.advance(3_000);
    s.look_until(|view| view.state == ScheduleState::Busy);
    s.maybe_reopen();
    assert_eq!(s.ack(job.token), Ok(EndReply::Done));
    let view = s.look_until(|view| view.state == ScheduleState::Waiting);
    assert_eq!((view.counts.given, view.counts.missed, view.counts.overlapped), (1, 0, 3));
    s.advance(1_000);
    s.take_tick();
}

fn the_latest_tick_waits_for_the_job(s: &mut Subject) {
    s.schedule(PutSchedule { overlap: Some(Overlap::Wait), ..every(1_000) });
    s.advance(1_001);
    let first = s.take_tick();
    s.advance(3_000);
    s.look_until(|view| view.state == ScheduleState::Busy);
    assert_eq!(s.ack(first.token), Ok(EndReply::Done));
    let second = s.take_tick();
    let tick_of = |job: &LeasedJob| job.tick.as_ref().map_or(0, |tick| tick.tick_ms);
    assert_eq!(tick_of(&second) - tick_of(&first), 3_000);
    assert_eq!(s.tick_counts(), [2, 0, 2, 0]);
}

fn each_tick_waits_for_the_job_before(s: &mut Subject) {
    let (overlap, catchup) = (Some(Overlap::Wait), Some(Catchup::All));
    s.schedule(PutSchedule { overlap, catchup, ..every(1_000) });
    s.advance(3_001);
    for _ in 0..3 {
        let job = s.take_tick();
        assert_eq!(s.reserve("t", 5), []);
        assert_eq!(s.ack(job.token), Ok(EndReply::Done));
    }
    assert_eq!(s.tick_counts(), [3, 0, 0, 0]);
}

fn jobs_live_beside_each_other_if_allowed(s: &mut Subject) {
    s.schedule(PutSchedule { overlap: Some(Overlap::Allow), ..every(1_000) });
    for given in 1..=3 {
        s.advance(1_001);
        s.look_until(|view| view.counts.given == given);
    }
    assert_eq!(s.reserve("t", 5).len(), 3);
}

fn the_job_before_is_replaced(s: &mut Subject) {
    s.schedule(PutSchedule { overlap: Some(Overlap::Replace), ..every(1_000) });
    s.advance(1_001);
    let first = s.take_tick();
    s.advance(1_000);
    let second = s.take_tick();
    assert_eq!(s.ack(first.token), Ok(EndReply::Gone));
    assert_eq!(s.ack(second.token), Ok(EndReply::Done));
}

fn a_gap_counts_from_the_end_of_the_job(s: &mut Subject) {
    s.schedule(PutSchedule { every_ms: None, gap_ms: Some(1_000), ..every(1) });
    s.advance(1_001);
    let job = s.take_tick();
    s.advance(30_000);
    assert_eq!(s.ack(job.token), Ok(EndReply::Done));
    let view = s.look_until(|view| view.state == ScheduleState::Waiting);
    assert_eq!(view.counts.given, 1);
    s.advance(500);
    assert_eq!(s.reserve("t", 1), []);
    s.advance(501);
    s.take_tick();
}

fn a_dead_job_is_not_in_the_way(s: &mut Subject) {
    s.schedule(every(1_000));
    s.advance(1_001);
    let job = s.take_tick();
    assert_eq!(s.kill(kill_held(job.token)), Ok(EndReply::Done));
    s.advance(1_000);
    s.take_tick();
    assert_eq!(s.stats("t").counts.dead, 1);
}

fn a_purge_wakes_what_waited_for_its_job(s: &mut Subject) {
    s.schedule(every(1_000));
    s.advance(3_001);
    s.look_until(|view| view.counts.given == 1);
    s.advance(1_000);
    s.look_until(|view| view.state == ScheduleState::Busy);
    assert_eq!(s.purge("t"), 1);
    s.look_until(|view| view.state == ScheduleState::Waiting);
    s.advance(1_000);
    s.take_tick();
}

fn the_latest_tick_that_passed_is_given(s: &mut Subject) {
    s.schedule(every(1_000));
    s.advance(5_200);
    let job = s.take_tick();
    assert_eq!(job.tick.map(|tick| tick.missed), Some(4));
    assert_eq!(s.tick_counts(), [1, 4, 0, 0]);
}

fn a_tick_that_is_too_late_is_missed(s: &mut Subject) {
    s.schedule(PutSchedule { late_max_ms: Some(300), ..every(1_000) });
    s.advance(1_500);
    s.look_until(|view| view.counts.missed == 1);
    s.advance(600);
    s.take_tick();
    assert_eq!(s.tick_counts(), [1, 1, 0, 0]);
}

fn a_schedule_ends_with_its_last_job(s: &mut Subject) {
    s.schedule(PutSchedule { ticks_max: Some(1), ..every(1_000) });
    s.advance(1_001);
    let job = s.take_tick();
    assert_eq!(s.look().state, ScheduleState::Busy);
    assert_eq!(s.ack(job.token), Ok(EndReply::Done));
    for _ in 0..10_000 {
        if s.try_look("s").is_err() {
            break;
        }
    }
    refused(s.try_look("s"), Code::NotFound, &["schedule s"]);
}

fn ticks_survive_a_restart(s: &mut Subject) {
    s.schedule(every(10_000));
    s.schedule(PutSchedule { name: schedule_name("c"), ..cron("0 3 * * *") });
    let before = (s.look().next, s.try_look("c").expect("there").next);
    if !s.reopen() {
        return;
    }
    assert_eq!(s.try_look("c").expect("there").next, before.1);
    s.advance(10_001);
    s.take_tick();
    assert_eq!(s.tick_counts(), [1, 0, 0, 0]);
}

fn a_full_topic_loses_no_tick(s: &mut Subject) {
    s.set_topic("t", Settings { jobs_max: Some(1), ..Settings::default() });
    let filler = s.put(delayed("t", 3_600_000));
    s.schedule(every(1_000));
    s.advance(4_200);
    s.barrier();
    assert_eq!(s.tick_counts(), [0, 0, 0, 0]);
    s.cancel(by_id(filler)).expect("cancelled");
    s.advance(1_100);
    s.take_tick();
    let [given, missed, ..] = s.tick_counts();
    assert_eq!((given, given + missed), (1, 5));
}

fn one_that_does_not_fit_holds_up_no_other(s: &mut Subject) {
    s.set_topic("t", Settings { bytes_max: Some(100), ..Settings::default() });
    let mut large = PutSchedule { name: schedule_name("large"), ..every(1_000) };
    large.template.body = bytes(&"x".repeat(200));
    s.schedule(large);
    s.schedule(every(1_500));
    s.advance(1_600);
    assert_eq!(s.take_tick().tick.map(|tick| tick.schedule.clone()), Some(schedule_name("s")));
}

fn a_full_topic_does_not_keep_a_job_from_being_replaced(s: &mut Subject) {
    s.set_topic("t", Settings { jobs_max: Some(1), ..Settings::default() });
    s.schedule(PutSchedule { overlap: Some(Overlap::Replace), ..every(1_000) });
    s.advance(1_001);
    let first = s.take_tick();
    s.advance(1_000);
    let second = s.take_tick();
    assert_ne!(first.id, second.id);
    assert_eq!(s.ack(first.token), Ok(EndReply::Gone));
}

fn a_schedule_is_no_job(s: &mut Subject) {
    s.schedule(every(1_000));
    assert_eq!(s.stats("t").delayed, 0);
    refused(s.get(by_key("t", "s")), Code::NotFound, &[]);
    assert_eq!(s.purge("t"), 0);
    s.advance(1_001);
    s.take_tick();
}

fn a_topic_lives_as_long_as_its_schedules(s: &mut Subject) {
    s.schedule(every(86_400_000));
    s.advance(60_000);
    assert!(s.try_stats("t").is_ok());
    s.unschedule("s", false).expect("removed");
}

fn wrong_rules_and_fields_are_refused(s: &mut Subject) {
    let past_ms = 1_000_000_000_000;
    let zone = |zone: &str| PutSchedule { zone: Some(zone.to_owned()), ..cron("0 3 * * *") };
    let cases: Vec<(PutSchedule, &[&str])> = vec![
        (PutSchedule { every_ms: None, ..every(1) }, &["cron, every and gap"]),
        (PutSchedule { gap_ms: Some(1_000), ..every(1_000) }, &["every and gap"]),
        (every(99), &["every is 99 ms", "100 ms"]),
        (PutSchedule { zone: Some("UTC".to_owned()), ..every(1_000) }, &["zone goes with cron"]),
        (cron("60 * * * *"), &["minutes", "60", "0-59"]),
        (cron("0 0 30 2 *"), &["never comes"]),
        (cron("@every 5m"), &["every"]),
        (cron(""), &["cron"]),
        (zone("Europe/Berln"), &["Europe/Berlin"]),
        (zone("Local"), &["zone"]),
        (zone("EST"), &["America/New_York"]),
        (PutSchedule { catchup: Some(Catchup::All), ..every(1_000) }, &["catchup all", "overlap"]),
        (
            PutSchedule {
                overlap: Some(Overlap::Allow),
                gap_ms: Some(1_000),
                every_ms: None,
                ..every(1)
            },
            &["overlap", "gap"],
        ),
        (
            PutSchedule { start_at_ms: Some(past_ms), end_at_ms: Some(past_ms), ..every(1_000) },
            &["end_at", "start_at"],
        ),
        (PutSchedule { end_at_ms: Some(past_ms), ..every(1_000) }, &["never tick"]),
        (PutSchedule { jitter_ms: Some(86_400_001), ..every(1_000) }, &["jitter", "86400000"]),
        (PutSchedule { late_max_ms: Some(-1), ..every(1_000) }, &["late_max"]),
        (PutSchedule { ticks_max: Some(0), ..every(1_000) }, &["ticks_max"]),
    ];
    for (put, words) in cases {
        let error = s.try_schedule(put.clone()).expect_err("a refusal");
        assert_eq!(error.code, Code::Invalid, "{put:?}: {error}");
        for word in words {
            assert!(error.text.contains(word), "{word:?} is missing in: {error}");
        }
    }
    refused(s.try_look("s"), Code::NotFound, &["schedule s"]);
}
