//! leased_max, rate, group_leased_max, group_rate: limits of a topic, read when a job is taken.

use dormouse_core::rate::Rate;

use super::prelude::*;

cases! { limits:
    no_more_are_leased_than_allowed
    an_ended_lease_gives_its_slot_to_who_waits
    a_lease_that_runs_out_gives_its_slot_back
    a_lowered_limit_revokes_nothing
    a_raised_limit_wakes_who_waits
    a_rate_gives_a_burst_and_then_its_pace
    the_next_instant_of_a_rate_wakes_who_waits
    a_restart_never_gives_more_than_the_rate
    a_full_group_does_not_hold_up_others
    a_group_with_room_again_goes_on_in_its_order
    a_group_of_many_is_passed_in_portions
    the_rate_of_a_group_is_its_own
    parked_jobs_are_found_by_all_verbs
    parked_jobs_expire_in_time
    a_purge_takes_parked_jobs_too
    limits_that_are_unset_free_what_they_held
    a_given_job_obeys_limits
    settings_and_groups_are_kept
}

fn slots(leased_max: u64) -> Settings {
    Settings { leased_max: Some(leased_max), ..Settings::default() }
}

fn group_slots(group_leased_max: u64) -> Settings {
    Settings { group_leased_max: Some(group_leased_max), ..Settings::default() }
}

fn of_group(group: &str) -> Put {
    Put { group: Some(bytes(group)), ..job("mail") }
}

/// Puts jobs of these groups, a letter each.
fn put_groups(s: &Subject, groups: &str) -> Vec<JobId> {
    s.put_many(groups.chars().map(|group| of_group(&group.to_string())))
}

fn ids(jobs: &[LeasedJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id).collect()
}

fn no_more_are_leased_than_allowed(s: &mut Subject) {
    s.set_topic("mail", slots(2));
    let put = s.put_many((0..5).map(|_| job("mail")));
    s.maybe_reopen();
    let leases = s.reserve("mail", 10);
    assert_eq!(ids(&leases), put[..2]);
    s.maybe_reopen();
    assert_eq!(s.reserve("mail", 10), []);
    let view = s.view(put[2]);
    assert_eq!((view.state, view.held_by), (State::Ready, Some(HeldBy::LeasedMax)));
    assert_eq!(view.job.progress.attempts, 0);
    s.ack(leases[0].token).expect("an ack");
    s.maybe_reopen();
    assert_eq!(ids(&s.reserve("mail", 10)), [put[2]]);
}

fn an_ended_lease_gives_its_slot_to_who_waits(s: &mut Subject) {
    s.set_topic("mail", slots(1));
    s.put_many((0..6).map(|_| job("mail")));
    let mut lease = s.reserve_one("mail");
    for end in 0..4 {
        let waiting = s.park(wait_for("mail", 60_000));
        let other = s.park(wait_for("mail", 60_000));
        let is_done = match end {
            0 => s.ack(lease.token).is_ok(),
            1 => s.nack(Nack { delay_ms: Some(1_000), ..failed(lease.token) }).is_ok(),
            2 => s.cancel(by_id(lease.id)).is_ok(),
            _ => s.release(give_back(lease.token)).is_ok(),
        };
        assert!(is_done);
        lease = waiting.job();
        s.barrier();
        assert!(!other.is_answered(), "one slot woke two");
        s.withdraw(other.ticket());
        other.await_answer();
    }
}

fn a_lease_that_runs_out_gives_its_slot_back(s: &mut Subject) {
    s.set_topic("mail", slots(1));
    let put = s.put_many((0..2).map(|_| Put { ttr_ms: Some(1_000), ..job("mail") }));
    let first = s.reserve_one("mail");
    s.pass(1_000);
    let second = s.reserve_one("mail");
    assert_eq!((first.id, second.id), (put[0], put[1]));
    refused(s.extend(first.token, None), Code::Busy, &["leased_max"]);
    s.ack(second.token).expect("an ack");
    s.extend(first.token, None).expect("a slot");
    assert_eq!(s.reserve("mail", 10), []);
}

fn a_lowered_limit_revokes_nothing(s: &mut Subject) {
    s.put_many((0..4).map(|_| job("mail")));
    let leases = s.reserve("mail", 3);
    s.set_topic("mail", slots(1));
    s.maybe_reopen();
    for lease in leases {
        assert_eq!(s.reserve("mail", 10), []);
        assert_eq!(s.ack(lease.token), Ok(EndReply::Done));
    }
    assert_eq!(s.reserve("mail", 10).len(), 1);
}

fn a_raised_limit_wakes_who_waits(s: &mut Subject) {
    s.set_topic("mail", slots(1));
    s.put_many((0..3).map(|_| job("mail")));
    s.reserve_one("mail");
    let waiting = s.park(wait_for("mail", 60_000));
    s.set_topic("mail", slots(2));
    waiting.job();
}

fn rated(jobs: u64, per_ms: u64, burst: u64) -> Settings {
    Settings { rate: Some(Rate { jobs, per_ms, burst }), ..Settings::default() }
}

fn a_rate_gives_a_burst_and_then_its_pace(s: &mut Subject) {
    s.set_topic("mail", rated(1, 1_000, 3));
    let put = s.put_many((0..9).map(|_| job("mail")));
    assert_eq!(s.reserve("mail", 10).len(), 3);
    assert_eq!(s.view(put[3]).held_by, Some(HeldBy::Rate));
    s.pass(999);
    assert_eq!(s.reserve("mail", 10), []);
    s.pass(1);
    assert_eq!(s.reserve("mail", 10).len(), 1);
    s.pass(2_000);
    assert_eq!(s.reserve("mail", 10).len(), 2);
}

fn the_next_instant_of_a_rate_wakes_who_waits(s: &mut Subject) {
    s.set_topic("mail", rated(1, 1_000, 1));
    s.put_many((0..2).map(|_| job("mail")));
    s.reserve_one("mail");
    let waiting = s.park(wait_for("mail", 60_000));
    s.pass(999);
    assert!(!waiting.is_answered());
    s.pass(1);
    assert_eq!(waiting.job().late_ms, 1_000);
}

fn a_restart_never_gives_more_than_the_rate(s: &mut Subject) {
    s.set_topic("mail", rated(1, 1_000, 2));
    s.put_many((0..9).map(|_| job("mail")));
    assert_eq!(s.reserve("mail", 10).len(), 2);
    s.maybe_reopen();
    assert_eq!(s.reserve("mail", 10), []);
    s.pass(1_001);
    assert_eq!(s.reserve("mail", 10).len(), 1);
}

fn a_full_group_does_not_hold_up_others(s: &mut Subject) {
    s.set_topic("mail", group_slots(1));
    let put = put_groups(s, "aaabab");
    let free = s.put(job("mail"));
    s.maybe_reopen();
    assert_eq!(ids(&s.reserve("mail", 10)), [put[0], put[3], free]);
    s.maybe_reopen();
    assert_eq!(s.reserve("mail", 10), []);
    let view = s.view(put[1]);
    assert_eq!((view.state, view.held_by), (State::Ready, Some(HeldBy::GroupLeasedMax)));
    assert_eq!(view.job.progress.attempts, 0);
    let stats = s.stats("mail");
    assert_eq!((stats.ready, stats.counts.leased, stats.delayed), (4, 3, 0));
}

fn a_group_with_room_again_goes_on_in_its_order(s: &mut Subject) {
    s.set_topic("mail", group_slots(1));
    let put = put_groups(s, "aaabbb");
    let urgent = s.put(Put { priority: Some(1), delay_ms: Some(10), ..of_group("a") });
    let [mut a, mut b] = <[LeasedJob; 2]>::try_from(s.reserve("mail", 10)).expect("two groups");
    s.pass(10);
    assert_eq!(s.reserve("mail", 10), []);
    s.maybe_reopen();
    for (next_a, next_b) in [(urgent, put[4]), (put[1], put[5])] {
        s.ack(b.token).expect("an ack");
        b = s.reserve_one("mail");
        s.maybe_reopen();
        let waiting = s.park(wait_for("mail", 60_000));
        s.ack(a.token).expect("an ack");
        a = waiting.job();
        assert_eq!((a.id, b.id), (next_a, next_b));
        s.maybe_reopen();
    }
}

fn a_group_of_many_is_passed_in_portions(s: &mut Subject) {
    s.set_topic("mail", group_slots(1));
    s.put_many((0..2_000).map(|_| of_group("a")));
    let other = s.put(of_group("b"));
    s.maybe_reopen();
    let first = s.reserve_one("mail");
    let waiting = wait_for("mail", 60_000);
    assert_eq!(ids(&s.try_reserve(waiting).expect("a job")), [other]);
    s.maybe_reopen();
    assert_eq!(s.stats("mail").ready, 1_999);
    s.ack(first.token).expect("an ack");
    assert_eq!(s.reserve("mail", 10).len(), 1);
}

fn the_rate_of_a_group_is_its_own(s: &mut Subject) {
    let group_rate = Some(Rate::new(1, 1_000));
    s.set_topic("mail", Settings { group_rate, ..Settings::default() });
    let put = put_groups(s, "aabb");
    assert_eq!(ids(&s.reserve("mail", 10)), [put[0], put[2]]);
    assert_eq!(s.view(put[1]).held_by, Some(HeldBy::GroupRate));
    s.maybe_reopen();
    s.pass(500);
    let waiting = s.park(wait_for("mail", 60_000));
    s.pass(1_000);
    assert_eq!(waiting.jobs().len(), 1);
    assert_eq!(s.reserve("mail", 10).len(), 1);
}

/// Two jobs of a group, the second parked with this key.
fn parked(s: &Subject) -> (LeasedJob, JobId) {
    s.set_topic("mail", group_slots(1));
    s.put(of_group("a"));
    let lease = s.reserve_one("mail");
    let id = s.put(Put { key: Some(bytes("k")), ..of_group("a") });
    assert_eq!(s.reserve("mail", 10), []);
    (lease, id)
}

fn parked_jobs_are_found_by_all_verbs(s: &mut Subject) {
    let (lease, id) = parked(s);
    s.maybe_reopen();
    assert_eq!(s.get(by_key("mail", "k")).map(|view| view.job.id), Ok(id));
    assert_eq!(s.list_ids("mail", State::Ready, 10), [id]);
    assert_eq!(s.peek("mail", State::Ready).map(|view| view.job.id), Some(id));
    s.delay(by_id(id), 1_000).expect("a reschedule");
    assert_eq!(s.state(id), State::Delayed);
    s.pass(1_000);
    assert_eq!(s.reserve("mail", 10), []);
    s.maybe_reopen();
    s.cancel(by_id(id)).expect("a cancel");
    assert!(s.is_gone(id));
    let next = s.put(of_group("a"));
    s.ack(lease.token).expect("an ack");
    assert_eq!(ids(&s.reserve("mail", 10)), [next]);
}

fn parked_jobs_expire_in_time(s: &mut Subject) {
    s.set_topic("mail", group_slots(1));
    let first = s.put(of_group("a"));
    let second = s.put(Put { expires_after_ms: Some(500), ..of_group("a") });
    assert_eq!(ids(&s.reserve("mail", 10)), [first]);
    s.maybe_reopen();
    s.pass(499);
    assert_eq!(s.state(second), State::Ready);
    s.pass(1);
    assert_eq!(s.state(second), State::Dead);
}

fn a_purge_takes_parked_jobs_too(s: &mut Subject) {
    let (lease, id) = parked(s);
    s.maybe_reopen();
    assert_eq!(s.purge("mail"), 1);
    assert!(s.is_gone(id));
    let next = s.put(of_group("a"));
    assert_eq!(s.reserve("mail", 10), []);
    s.ack(lease.token).expect("an ack");
    assert_eq!(ids(&s.reserve("mail", 10)), [next]);
}

fn limits_that_are_unset_free_what_they_held(s: &mut Subject) {
    s.set_topic("mail", group_slots(1));
    let put = put_groups(s, "aaaa");
    assert_eq!(s.reserve("mail", 10).len(), 1);
    s.set_topic("mail", Settings::default());
    s.maybe_reopen();
    // They come back into the line in steps: whoever waits gets what is there first.
    let mut freed = Vec::new();
    while freed.len() < 3 {
        let waiting = Reserve { max: 10, ..wait_for("mail", 60_000) };
        let leases = s.try_reserve(waiting).expect("jobs");
        assert_ne!(leases, [], "still held: {:?}", &put[1 + freed.len()..]);
        freed.extend(ids(&leases));
    }
    assert_eq!(freed, put[1..]);
}

fn a_given_job_obeys_limits(s: &mut Subject) {
    let (lease, id) = parked(s);
    let ask = ReserveId { id, ttr_ms: None, session: None };
    refused(s.try_reserve_id(ask), Code::Busy, &["group_leased_max"]);
    s.set_topic("mail", slots(1));
    refused(s.try_reserve_id(ask), Code::Busy, &["leased_max"]);
    s.ack(lease.token).expect("an ack");
    s.reserve_id(id);
}

fn settings_and_groups_are_kept(s: &mut Subject) {
    let settings = Settings {
        leased_max: Some(7),
        rate: Some(Rate { jobs: 100, per_ms: 60_000, burst: 5 }),
        group_leased_max: Some(2),
        group_rate: Some(Rate::new(3, 1_000)),
        ..Settings::default()
    };
    s.set_topic("mail", settings.clone());
    let id = s.put(of_group("tenant 1"));
    s.maybe_reopen();
    assert_eq!(s.stats("mail").settings, settings);
    assert_eq!(s.view(id).job.content.group, Some(bytes("tenant 1")));
    s.pass(60_000);
    assert_eq!(s.reserve_one("mail").group, Some(bytes("tenant 1")));
}
