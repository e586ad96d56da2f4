//! run_schedule: jobs of a schedule by request.

use super::prelude::*;

cases! { run_schedule:
    one_job_now_beside_the_ticks
    a_job_for_each_tick_of_a_time
    too_many_ticks
    a_gap_has_no_ticks_of_the_past
    one_that_is_not_there
}

fn one_job_now_beside_the_ticks(s: &mut Subject) {
    let next_at = s.schedule(every(10_000)).next_at;
    let ran = s.run_schedule(None).expect("it ran");
    assert_eq!(ran.len(), 1);
    let job = s.reserve_one("t");
    assert_eq!((job.body.as_ref(), &job.tick), (b"work".as_ref(), &None));
    assert_eq!(ran[0].as_ref().map(|put| put.id), Ok(job.id));
    assert_eq!((s.tick_counts(), s.look().next.first().copied()), ([0; 4], next_at));
}

fn a_job_for_each_tick_of_a_time(s: &mut Subject) {
    s.schedule(cron("0 * * * *"));
    let hour_ms = 3_600_000;
    let from_ms = (s.now() / hour_ms * hour_ms) as i64 - 5 * hour_ms as i64;
    let to_ms = from_ms + 3 * hour_ms as i64;
    let ran = s.run_schedule(Some((from_ms, to_ms))).expect("it ran");
    assert_eq!(ran.len(), 3);
    let jobs = s.reserve("t", 10);
    let mut ticks: Vec<i64> = jobs
        .iter()
        .map(|job| job.tick.as_ref().map_or(0, |tick| tick.tick_ms as i64) - from_ms)
        .collect();
    ticks.sort_unstable();
    assert_eq!(ticks, [0, hour_ms as i64, 2 * hour_ms as i64]);
    assert_eq!(s.tick_counts(), [0; 4]);
}

fn too_many_ticks(s: &mut Subject) {
    s.schedule(cron("* * * * * *"));
    let now = s.now() as i64;
    let ran = s.run_schedule(Some((now - 1_002_000, now)));
    refused(ran, Code::Invalid, &["1000 ticks", "shorter"]);
    assert_eq!(s.reserve("t", 1), []);
}

fn a_gap_has_no_ticks_of_the_past(s: &mut Subject) {
    s.schedule(PutSchedule { every_ms: None, gap_ms: Some(1_000), ..every(1) });
    let now = s.now() as i64;
    refused(s.run_schedule(Some((now - 5_000, now))), Code::Invalid, &["gap"]);
}

fn one_that_is_not_there(s: &mut Subject) {
    refused(s.run_schedule(None), Code::NotFound, &["schedule s"]);
}
