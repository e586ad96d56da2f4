//! pause and resume: reserve gives nothing, everything else goes on.

use super::prelude::*;

cases! { pause:
    reserve_gives_nothing
    resume_gives_again
    everything_else_goes_on
    other_topics_go_on
    for_a_while
    a_later_pause_replaces_the_earlier
    survives_a_restart
    before_the_first_job
    resume_of_what_is_not_paused
    leases_run_out_meanwhile
    out_of_range
}

fn reserve_gives_nothing(s: &mut Subject) {
    s.put(job("mail"));
    s.pause("mail", None);
    assert_eq!(s.reserve("mail", 1), []);
    s.put(job("mail"));
    s.advance(31_536_000_000);
    assert_eq!(s.reserve("mail", 1), [], "without a duration until resumed");
    assert_eq!(s.stats("mail").ready, 2);
}

fn resume_gives_again(s: &mut Subject) {
    s.put(job("mail"));
    s.pause("mail", None);
    s.maybe_reopen();
    s.resume("mail");
    s.maybe_reopen();
    assert_eq!(s.stats("mail").paused, None);
    assert_eq!(s.reserve("mail", 1).len(), 1);
}

fn everything_else_goes_on(s: &mut Subject) {
    s.put_many((0..3).map(|_| job("mail")));
    let leases = s.reserve("mail", 3);
    s.pause("mail", None);
    let later = s.put(delayed("mail", 100));
    assert_eq!(s.ack(leases[0].token), Ok(EndReply::Done));
    assert!(matches!(s.nack(failed(leases[1].token)), Ok(EndReply::Retry { .. })));
    assert_eq!(s.release(give_back(leases[2].token)), Ok(EndReply::Done));
    s.run_now(by_id(later)).expect("a run now");
    s.cancel(by_id(later)).expect("a cancel");
    assert_eq!(s.list_ids("mail", State::Ready, 10), [leases[2].id]);
}

fn other_topics_go_on(s: &mut Subject) {
    s.put_many(["mail", "sms"].map(job));
    s.pause("mail", None);
    let reserve = Reserve { topics: ["mail", "sms"].map(topic).into(), max: 2, ..take("mail") };
    let jobs = s.try_reserve(reserve).expect("jobs");
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].topic, topic("sms"));
}

fn for_a_while(s: &mut Subject) {
    s.put(job("mail"));
    s.pause("mail", Some(5_000));
    s.maybe_reopen();
    s.advance(4_999);
    assert_eq!(s.reserve("mail", 1), []);
    assert_eq!(s.stats("mail").paused, Some(Some(1)));
    s.advance(1);
    assert_eq!(s.stats("mail").paused, None);
    assert_eq!(s.reserve("mail", 1).len(), 1);
}

fn a_later_pause_replaces_the_earlier(s: &mut Subject) {
    s.put(job("mail"));
    s.pause("mail", Some(5_000));
    s.pause("mail", Some(1_000));
    s.advance(1_000);
    assert_eq!(s.reserve("mail", 1).len(), 1);
}

fn survives_a_restart(s: &mut Subject) {
    s.put(job("mail"));
    s.pause("mail", Some(5_000));
    s.put(job("sms"));
    s.pause("sms", None);
    s.advance(1_000);
    s.barrier();
    s.reopen();
    assert_eq!((s.reserve("mail", 1), s.reserve("sms", 1)), (vec![], vec![]));
    s.advance(4_000);
    assert_eq!(s.reserve("mail", 1).len(), 1, "the rest of its time, not all of it");
    assert_eq!(s.reserve("sms", 1), []);
}

fn before_the_first_job(s: &mut Subject) {
    s.pause("mail", None);
    s.maybe_reopen();
    s.put(job("mail"));
    assert_eq!(s.reserve("mail", 1), []);
}

fn resume_of_what_is_not_paused(s: &mut Subject) {
    s.resume("mail");
    refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
    s.put(job("mail"));
    s.resume("mail");
    assert_eq!(s.reserve("mail", 1).len(), 1);
}

fn leases_run_out_meanwhile(s: &mut Subject) {
    let id = s.put(Put { ttr_ms: Some(10), ..job("mail") });
    s.reserve_one("mail");
    s.pause("mail", None);
    s.advance(10);
    assert_eq!(s.state(id), State::Ready);
}

fn out_of_range(s: &mut Subject) {
    for for_ms in [-1, limits::TTL_MS_MAX as i64 + 1] {
        let words = ["pause", &number(for_ms), &number(limits::TTL_MS_MAX), "give"];
        refused(s.try_pause("mail", Some(for_ms)), Code::Invalid, &words);
    }
    refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
}
