//! remove_schedule: a schedule goes; its jobs stay, unless asked for.

use super::prelude::*;

cases! { remove_schedule:
    its_job_stays
    its_living_job_goes_if_asked_for
    it_ticks_no_more
    one_that_is_not_there
}

fn its_job_stays(s: &mut Subject) {
    s.schedule(every(1_000));
    s.advance(1_001);
    let job = s.take_tick();
    assert_eq!(s.unschedule("s", false), Ok(()));
    assert_eq!(s.ack(job.token), Ok(EndReply::Done));
}

fn its_living_job_goes_if_asked_for(s: &mut Subject) {
    s.schedule(every(1_000));
    s.advance(1_001);
    let job = s.take_tick();
    assert_eq!(s.unschedule("s", true), Ok(()));
    assert_eq!(s.ack(job.token), Ok(EndReply::Gone));
}

fn it_ticks_no_more(s: &mut Subject) {
    s.schedule(every(1_000));
    assert_eq!(s.unschedule("s", false), Ok(()));
    s.maybe_reopen();
    s.advance(10_000);
    s.barrier();
    assert_eq!(s.reserve("t", 1), []);
    // The name is free again.
    assert_eq!(s.schedule(every(1_000)).outcome, ScheduleOutcome::Created);
}

fn one_that_is_not_there(s: &mut Subject) {
    refused(s.unschedule("s", false), Code::NotFound, &["schedule s"]);
    s.schedule(every(1_000));
    assert_eq!(s.unschedule("s", false), Ok(()));
    refused(s.unschedule("s", false), Code::NotFound, &["schedule s"]);
}
