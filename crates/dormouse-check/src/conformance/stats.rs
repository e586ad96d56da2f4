//! stats: exact counts, whatever the backlog.

use super::prelude::*;

cases! { stats:
    every_state_is_counted
    urgent_is_ready_below_the_default_priority
    delayed_and_ready_follow_the_clock
    bytes_are_those_of_body_key_and_headers
    running_totals
    waiters_and_pause_and_settings
    the_oldest_ready_job_tells_the_lateness
    totals_add_topics_up
    totals_count_topics_alive_and_locks
    totals_forget_a_topic_that_vanished
    totals_outlive_topics
    a_missing_topic_is_not_found
    exact_over_many
    the_counts_add_up
}

fn every_state_is_counted(s: &mut Subject) {
    let ids = s.put_many((0..7).map(|_| job("mail")));
    s.put_many((1..4).map(|delay_ms| delayed("mail", delay_ms)));
    s.kill(kill_resting(by_id(ids[6]))).expect("a kill");
    s.reserve("mail", 2);
    s.maybe_reopen();
    let stats = s.stats("mail");
    assert_eq!((stats.delayed, stats.ready), (3, 4));
    assert_eq!((stats.counts.waiting, stats.counts.leased, stats.counts.dead), (7, 2, 1));
    assert_eq!(stats.topics, 1);
}

fn urgent_is_ready_below_the_default_priority(s: &mut Subject) {
    let with = |priority, delay_ms| Put { priority: Some(priority), ..delayed("mail", delay_ms) };
    s.put_many([with(0, 0), with(1_023, 0), with(1_024, 0), with(1_025, 0), with(5, 100)]);
    s.maybe_reopen();
    assert_eq!((s.stats("mail").urgent, s.stats("mail").ready), (2, 4));
    s.advance(100);
    assert_eq!((s.stats("mail").urgent, s.stats("mail").ready), (3, 5));
}

fn delayed_and_ready_follow_the_clock(s: &mut Subject) {
    let now = s.now() as i64;
    s.put_many((1..=5).map(|n| delayed("mail", n * 10)));
    s.put_many((1..=5).map(|n| Put { at_ms: Some(now + n * 10), ..job("mail") }));
    s.maybe_reopen();
    for due in 0..=5 {
        let stats = s.stats("mail");
        assert_eq!((stats.delayed, stats.ready), (10 - 2 * due, 2 * due));
        s.advance(10);
    }
}

fn bytes_are_those_of_body_key_and_headers(s: &mut Subject) {
    let headers = Some(Arc::new(vec![("ab".to_owned(), "cde".to_owned())]));
    s.put(Put { headers, ..keyed("mail", "k") });
    s.maybe_reopen();
    assert_eq!(s.stats("mail").counts.bytes, 4 + 1 + 5);
    s.reserve_one("mail");
    assert_eq!(s.stats("mail").counts.bytes, 10, "leased jobs count");
    let put = Put { on_conflict: OnConflict::Replace, ..keyed("mail", "k") };
    s.put(put);
    s.maybe_reopen();
    assert_eq!(s.stats("mail").counts.bytes, 15, "the leased one and the one with the key");
}

fn running_totals(s: &mut Subject) {
    s.put_many((0..6).map(|_| Put { ttr_ms: Some(100), attempts_max: Some(2), ..job("mail") }));
    let leases = s.reserve("mail", 5);
    s.ack(leases[0].token).expect("an ack");
    s.nack(failed(leases[1].token)).expect("a nack");
    s.release(give_back(leases[2].token)).expect("a release");
    s.kill(kill_held(leases[3].token)).expect("a kill");
    s.advance(100);
    s.cancel(by_id(leases[4].id)).expect("a cancel");
    s.maybe_reopen();
    let counts = s.stats("mail").counts;
    let seen = [counts.puts, counts.reserves, counts.acks, counts.nacks, counts.releases];
    assert_eq!(seen, [6, 5, 1, 1, 1]);
    assert_eq!([counts.kills, counts.expiries, counts.cancels], [1, 1, 1]);
    assert_eq!((counts.waiting, counts.leased, counts.dead), (3, 0, 1));
}

fn waiters_and_pause_and_settings(s: &mut Subject) {
    let settings = Settings { ttr_ms: Some(9), ..Settings::default() };
    s.set_topic("mail", settings.clone());
    assert_eq!(s.stats("mail").paused, None);
    let _waiting = [s.park(wait_for("mail", 1_000)), s.park(wait_for("mail", 1_000))];
    s.pause("mail", Some(500));
    s.advance(100);
    let stats = s.stats("mail");
    assert_eq!((stats.waiters, stats.paused, stats.settings), (2, Some(Some(400)), settings));
    s.pause("mail", None);
    assert_eq!(s.stats("mail").paused, Some(None));
    assert_eq!(s.total_stats().expect("totals").waiters, 2);
}

fn the_oldest_ready_job_tells_the_lateness(s: &mut Subject) {
    s.put(delayed("mail", 100));
    s.maybe_reopen();
    assert_eq!(s.stats("mail").oldest_ready_ms, None);
    s.advance(100);
    assert_eq!(s.stats("mail").oldest_ready_ms, Some(0));
    s.advance(250);
    assert_eq!(s.stats("mail").oldest_ready_ms, Some(250));
}

fn totals_add_topics_up(s: &mut Subject) {
    s.put_many([job("mail"), job("sms"), delayed("sms", 50), job("sms")]);
    s.reserve_one("sms");
    s.maybe_reopen();
    let totals = s.total_stats().expect("totals");
    assert_eq!((totals.delayed, totals.ready), (1, 2));
    assert_eq!((totals.counts.waiting, totals.counts.leased), (3, 1));
    assert_eq!(totals.counts.bytes, 16);
}

fn totals_count_topics_alive_and_locks(s: &mut Subject) {
    s.put_many([job("mail"), job("sms")]);
    s.lock("lock", "me", 10_000);
    s.maybe_reopen();
    let totals = s.total_stats().expect("totals");
    assert_eq!((totals.topics, totals.locks), (2, 1));
    s.advance(10_000);
    let totals = s.total_stats().expect("totals");
    assert_eq!((totals.topics, totals.locks), (2, 0));
}

fn totals_forget_a_topic_that_vanished(s: &mut Subject) {
    let id = s.put(job("mail"));
    s.put(job("sms"));
    s.cancel(by_id(id)).expect("a cancel");
    refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
    assert_eq!(s.total_stats().expect("totals").topics, 1, "as those who ask for it see it");
}

fn totals_outlive_topics(s: &mut Subject) {
    let before = s.total_stats().expect("totals").counts.acks;
    s.put(job("mail"));
    let token = s.reserve_one("mail").token;
    s.ack(token).expect("an ack");
    s.advance(10_000);
    s.barrier();
    s.maybe_reopen();
    assert_eq!(s.total_stats().expect("totals").counts.acks, before + 1);
}

fn a_missing_topic_is_not_found(s: &mut Subject) {
    refused(s.try_stats("mail"), Code::NotFound, &["topic mail"]);
}

fn exact_over_many(s: &mut Subject) {
    let put = |n: usize| Put { priority: Some(n as u32 % 3 * 1_024), ..delayed("mail", n as i64) };
    let ids = s.put_many((0..MANY).map(put));
    s.maybe_reopen();
    let cancels =
        ids.iter().step_by(5).map(|&id| Cancel { target: by_id(id), unless_leased: true });
    s.ask(Command::Cancel(cancels.collect())).expect("cancels");
    s.maybe_reopen();
    s.advance(599);
    let kept = (0..MANY).filter(|n| n % 5 != 0);
    let ready = kept.clone().filter(|&n| n <= 599).count() as u64;
    let urgent = kept.clone().filter(|&n| n <= 599 && n % 3 == 0).count() as u64;
    let stats = s.stats("mail");
    assert_eq!((stats.ready, stats.urgent), (ready, urgent));
    assert_eq!(stats.delayed, kept.count() as u64 - ready);
}

fn the_counts_add_up(s: &mut Subject) {
    let put =
        |n: usize| Put { ttr_ms: Some(50), attempts_max: Some(2), ..delayed("mail", n as i64) };
    s.put_many((0..300).map(put));
    for round in 0..6_u64 {
        s.advance(40);
        let leases = s.reserve("mail", 60);
        for (n, lease) in leases.iter().enumerate() {
            match n % 6 {
                0 => drop(s.ack(lease.token)),
                1 => drop(s.nack(failed(lease.token))),
                2 => drop(s.release(give_back(lease.token))),
                3 => drop(s.cancel(by_id(lease.id))),
                4 => drop(s.kill(kill_held(lease.token))),
                _ => {}
            }
        }
        if round % 2 == 0 {
            s.maybe_reopen();
        }
        let stats = s.stats("mail");
        let counts = stats.counts;
        let there = stats.delayed + stats.ready + counts.leased + counts.dead;
        assert_eq!(counts.puts - counts.acks - counts.cancels, there, "{stats:?}");
        let listed = |state| s.list_ids("mail", state, 1_000).len() as u64;
        assert_eq!(listed(State::Ready), stats.ready);
        assert_eq!(listed(State::Delayed), stats.delayed);
        assert_eq!(listed(State::Leased), counts.leased);
        assert_eq!(listed(State::Dead), counts.dead);
    }
}
