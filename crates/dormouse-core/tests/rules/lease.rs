//! Leases and tokens: ack, nack, release, extend, expiry.

use std::sync::Arc;

use dormouse_core::backoff::{Backoff, Delays};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::job::{State, Token};
use dormouse_core::limits::{BODY_BYTES_MAX, ERROR_BYTES_MAX, TICK_BEHIND_MAX, TICK_MAX};
use dormouse_core::op::*;

use crate::support::*;

#[test]
fn an_acked_job_is_gone_and_acking_twice_is_harmless() {
    let mut rig = Rig::new();
    rig.put_now("t");
    let lease = rig.take("t");
    assert_eq!(rig.ack(lease.token), Ok(EndReply::Done));
    assert_eq!(rig.ack(lease.token), Ok(EndReply::Gone));
    assert_eq!(rig.nack(lease.token), Ok(EndReply::Gone));
    assert_eq!(rig.release(lease.token), Ok(EndReply::Gone));
    assert_eq!(code(rig.extend(lease.token, None)), Code::NotFound);
}

#[test]
fn a_lease_that_ran_out_keeps_its_token_until_somebody_takes_the_job() {
    let mut rig = Rig::new();
    let id = rig.put_now("t");
    let lease = rig.take("t");
    rig.pass(59_999);
    assert_eq!(rig.state(id), Some(State::Leased));
    rig.pass(1);
    let view = rig.view(Target::Id(id)).unwrap();
    assert_eq!((view.state, view.due_at), (State::Ready, WALL_0 + 60_000));
    assert_eq!((view.job.progress.expiries, view.job.progress.attempts), (1, 1));
    assert_eq!(rig.ack(lease.token), Ok(EndReply::Done));
    assert_eq!(rig.ack(lease.token), Ok(EndReply::Gone));
}

/// Each of them has to be read: gigabytes, if all are large.
#[test]
fn large_jobs_whose_lease_ran_out_are_ended_in_portions() {
    type Make = fn(Vec<Token>) -> Command;
    let ends: [Make; 4] = [
        |tokens| Command::Ack(tokens),
        |tokens| {
            let nack = |token| Nack { token, delay_ms: None, priority: None, error: None };
            Command::Nack(tokens.into_iter().map(nack).collect())
        },
        |tokens| {
            let release = |token| Release { token, delay_ms: None, priority: None };
            Command::Release(tokens.into_iter().map(release).collect())
        },
        |tokens| {
            let kill = |token: Token| {
                let target = KillTarget::Resting(Target::Id(token.id));
                Kill { target, error: None, priority: None }
            };
            Command::Kill(tokens.into_iter().map(kill).collect())
        },
    ];
    for end in ends {
        let mut rig = Rig::new();
        for _ in 0..12 {
            rig.put(Put::new(topic("t"), vec![b'x'; BODY_BYTES_MAX]));
        }
        let leases = rig.reserve(&["t"], 12);
        rig.pass(60_000);
        let ticket = rig.begin(end(leases.iter().map(|lease| lease.token).collect()));
        assert_eq!(rig.answer(ticket), None, "all at once");
        rig.tick();
        rig.tick();
        let Some(Ok(Reply::Ended(ended))) = rig.answer(ticket) else { panic!("no answer") };
        assert_eq!(ended.len(), 12);
        assert!(ended.iter().all(|end| matches!(end, Ok(EndReply::Done | EndReply::Retry { .. }))));
    }
}

#[test]
fn a_token_is_lost_when_the_job_is_taken_again() {
    let mut rig = Rig::new();
    rig.put_now("t");
    let first = rig.take("t");
    rig.pass(60_000);
    let second = rig.take("t");
    assert_eq!(second.attempt, 2);
    assert_eq!(code(rig.ack(first.token)), Code::LeaseLost);
    assert_eq!(code(rig.extend(first.token, None)), Code::LeaseLost);
    assert_eq!(rig.ack(second.token), Ok(EndReply::Done));
}

/// Whatever ends a lease on purpose, or moves the job after it ran out, makes the token bad.
#[test]
fn a_token_is_good_no_more_after_the_job_went_on() {
    type End = fn(&mut Rig, Token);
    let ends: [(&str, End); 8] = [
        ("nack", |rig, token| assert!(rig.nack(token).is_ok())),
        ("release", |rig, token| assert!(rig.release(token).is_ok())),
        ("kill", |rig, token| assert!(rig.kill(KillTarget::Token(token)).is_ok())),
        ("expiry, run now", |rig, token| {
            rig.pass(60_000);
            rig.run_now(Target::Id(token.id)).unwrap();
        }),
        ("expiry, kill", |rig, token| {
            rig.pass(60_000);
            rig.kill(KillTarget::Resting(Target::Id(token.id))).unwrap();
        }),
        ("expiry, nack", |rig, token| {
            rig.pass(60_000);
            rig.nack(token).unwrap();
        }),
        ("expiry, release", |rig, token| {
            rig.pass(60_000);
            rig.release(token).unwrap();
        }),
        ("reserve_id by another", |rig, token| {
            rig.pass(60_000);
            let again = ReserveId { id: token.id, ttr_ms: None, session: None };
            assert_eq!(jobs(rig.run(Command::ReserveId(again))).len(), 1);
        }),
    ];
    for (how, end) in ends {
        let mut rig = Rig::new();
        rig.put_now("t");
        let token = rig.take("t").token;
        end(&mut rig, token);
        assert_eq!(code(rig.ack(token)), Code::LeaseLost, "{how}");
        assert_eq!(code(rig.extend(token, None)), Code::LeaseLost, "{how}");
    }
}

#[test]
fn a_good_late_token_does_all_a_token_does() {
    let late = || {
        let mut rig = Rig::new();
        rig.put_now("t");
        let token = rig.take("t").token;
        rig.pass(60_000);
        (rig, token)
    };
    let (mut rig, token) = late();
    rig.nack(token).unwrap();
    assert_eq!(rig.state(token.id), Some(State::Delayed));
    let (mut rig, token) = late();
    rig.release(token).unwrap();
    assert_eq!(rig.view(Target::Id(token.id)).unwrap().job.progress.attempts, 0);
    let (mut rig, token) = late();
    assert_eq!(rig.kill(KillTarget::Token(token)), Ok(EndReply::Done));
    assert_eq!(rig.state(token.id), Some(State::Dead));
    let (mut rig, token) = late();
    assert_eq!(rig.extend(token, Some(1_000)), Ok(WALL_0 + 61_000));
    let view = rig.view(Target::Id(token.id)).unwrap();
    assert_eq!((view.state, view.job.progress.attempts), (State::Leased, 1));
    assert_eq!((view.job.progress.fence, view.job.progress.lapsed), (token.fence, false));
    assert!(rig.reserve(&["t"], 1).is_empty());
    assert_eq!(rig.ack(token), Ok(EndReply::Done));
}

#[test]
fn what_ran_out_before_a_command_has_run_out_for_it() {
    let mut rig = Rig::new();
    rig.put(Put { attempts_max: Some(1), ..Put::new(topic("t"), "") });
    let lease = rig.take("t");
    // No tick in between.
    rig.now.steady_ms += 60_000;
    assert_eq!(code(rig.ack(lease.token)), Code::LeaseLost);
    assert_eq!(rig.state(lease.id), Some(State::Dead));
}

#[test]
fn a_job_is_ready_from_the_instant_its_lease_ran_out_even_if_noticed_later() {
    let mut rig = Rig::new();
    let id = rig.put_now("t");
    rig.take("t");
    rig.now.steady_ms += 60_500;
    rig.now.wall_ms += 60_500;
    assert_eq!(rig.view(Target::Id(id)).unwrap().due_at, WALL_0 + 60_000);
    assert_eq!(rig.take("t").late_ms, 500);
}

#[test]
fn a_lease_that_begins_within_a_millisecond_is_rounded_up() {
    let mut rig = Rig::new();
    rig.put_now("t");
    rig.now.fraction = true;
    let lease = rig.take("t");
    assert_eq!(lease.expires_at, WALL_0 + 60_001);
    rig.pass(60_000);
    assert_eq!(rig.state(lease.id), Some(State::Leased));
    rig.pass(1);
    assert_eq!(rig.state(lease.id), Some(State::Ready));
}

#[test]
fn nack_waits_for_the_backoff_and_counts() {
    let mut rig = Rig::new();
    let backoff = Backoff::from(Delays::Exponential { base_ms: 1_000, factor: 10, cap_ms: 50_000 });
    let put = Put { backoff: Some(Arc::new(backoff.clone())), ..Put::new(topic("t"), "") };
    let id = rig.put(put);
    for attempt in 1..=4 {
        let lease = rig.take("t");
        assert_eq!(lease.attempt, attempt);
        let delay_ms = backoff.delay_ms(id, attempt);
        let due_at = rig.now.wall_ms + delay_ms;
        assert_eq!(rig.nack(lease.token), Ok(EndReply::Retry { due_at }));
        let full_ms = (1_000 * 10_u64.pow(attempt - 1)).min(50_000);
        assert!((full_ms / 2..=full_ms).contains(&delay_ms), "{delay_ms} of {full_ms}");
        rig.pass(delay_ms - 1);
        assert!(rig.reserve(&["t"], 1).is_empty());
        rig.pass(1);
    }
    let counts = rig.stats("t").unwrap().counts;
    assert_eq!((counts.nacks, counts.reserves, counts.releases), (4, 4, 0));
}

#[test]
fn a_list_backoff_repeats_its_last_wait() {
    let list = Backoff::from(Delays::List { delays_ms: vec![100, 200] });
    let id = dormouse_core::job::JobId(9);
    for (attempt, full_ms) in [(1, 100), (2, 200), (3, 200), (u32::MAX, 200)] {
        let delay_ms = list.delay_ms(id, attempt);
        assert!((full_ms / 2..=full_ms).contains(&delay_ms));
    }
    let huge =
        Backoff::from(Delays::Exponential { base_ms: u64::MAX, factor: u32::MAX, cap_ms: 1_000 });
    assert!(huge.delay_ms(id, u32::MAX) <= 1_000);
}

#[test]
fn the_last_attempt_makes_a_job_dead_with_its_error() {
    let mut rig = Rig::new();
    let put = Put { attempts_max: Some(2), ..Put::new(topic("t"), "") };
    let id = rig.put(put);
    let lease = rig.take("t");
    rig.pass(60_000);
    assert_eq!(rig.state(id), Some(State::Ready));
    let again = rig.take("t");
    assert_ne!(lease.token, again.token);
    let nack = Nack {
        token: again.token,
        delay_ms: Some(0),
        priority: Some(3),
        error: Some(bytes("no route")),
    };
    let answer = rig.run(Command::Nack(vec![nack]));
    assert_eq!(answer, Ok(Reply::Ended(vec![Ok(EndReply::Dead)])));
    let view = rig.view(Target::Id(id)).unwrap();
    let progress = view.job.progress;
    assert_eq!((view.state, view.due_at), (State::Dead, WALL_0 + 60_000));
    assert_eq!(progress.error, Some(bytes("no route")));
    assert_eq!((progress.kills, progress.expiries, progress.reserves), (1, 1, 2));
    assert_eq!(progress.priority, 3);
}

#[test]
fn expiry_of_the_last_attempt_says_so() {
    let mut rig = Rig::new();
    let id = rig.put(Put { attempts_max: Some(1), ..Put::new(topic("t"), "") });
    let lease = rig.take("t");
    rig.pass(60_000);
    let view = rig.view(Target::Id(id)).unwrap();
    assert_eq!(view.state, State::Dead);
    assert_eq!(view.job.progress.error, Some(bytes("lease expired")));
    assert_eq!(code(rig.ack(lease.token)), Code::LeaseLost);
    let counts = rig.stats("t").unwrap().counts;
    assert_eq!((counts.expiries, counts.kills, counts.dead), (1, 1, 1));
}

#[test]
fn release_gives_back_unspent() {
    let mut rig = Rig::new();
    let id = rig.put(Put { attempts_max: Some(1), ..Put::new(topic("t"), "") });
    for _ in 0..3 {
        let lease = rig.take("t");
        assert_eq!(lease.attempt, 1);
        assert_eq!(rig.release(lease.token), Ok(EndReply::Done));
    }
    let lease = rig.take("t");
    let release = Release { token: lease.token, delay_ms: Some(500), priority: Some(1) };
    rig.run(Command::Release(vec![release])).unwrap();
    let view = rig.view(Target::Id(id)).unwrap();
    assert_eq!((view.state, view.due_at), (State::Delayed, WALL_0 + 500));
    assert_eq!((view.job.progress.priority, view.job.progress.releases), (1, 4));
}

#[test]
fn extend_prolongs_from_now_without_a_new_token() {
    let mut rig = Rig::new();
    rig.put_now("t");
    let lease = rig.take("t");
    rig.pass(50_000);
    assert_eq!(rig.extend(lease.token, None), Ok(WALL_0 + 110_000));
    rig.pass(59_999);
    assert_eq!(rig.state(lease.id), Some(State::Leased));
    assert_eq!(rig.extend(lease.token, Some(10)), Ok(WALL_0 + 110_009));
    rig.pass(10);
    assert_eq!(rig.state(lease.id), Some(State::Ready));
}

#[test]
fn long_error_texts_are_cut_between_characters() {
    let mut rig = Rig::new();
    let id = rig.put_now("t");
    let lease = rig.take("t");
    let text = "ä".repeat(ERROR_BYTES_MAX);
    let error = Some(bytes(&format!("x{text}")));
    let nack = Nack { token: lease.token, delay_ms: None, priority: None, error };
    rig.run(Command::Nack(vec![nack])).unwrap();
    let kept = rig.view(Target::Id(id)).unwrap().job.progress.error.unwrap();
    assert_eq!(kept.len(), ERROR_BYTES_MAX - 1);
    assert!(std::str::from_utf8(&kept).is_ok());
}

#[test]
fn fences_only_grow_also_over_epochs() {
    let mut rig = Rig::new();
    rig.put_now("t");
    let first = rig.take("t");
    rig.release(first.token).unwrap();
    rig.machine.set_epoch(2);
    let second = rig.take("t");
    assert!(second.token.fence > first.token.fence);
    assert_eq!(second.token.fence >> 40, 2);
    rig.machine.set_epoch(1);
    assert_eq!(rig.machine.epoch(), 2);
}

/// A job that comes back is copied into the memtable: large ones run out a few at a time.
#[test]
fn large_jobs_cost_a_tick_more_than_small_ones() {
    let mut rig = Rig::new();
    let large = Put { ttr_ms: Some(10), ..Put::new(topic("t"), vec![0; BODY_BYTES_MAX]) };
    for _ in 0..12 {
        rig.put(large.clone());
    }
    assert_eq!(rig.reserve(&["t"], 12).len(), 12);
    rig.now.steady_ms += 10;
    rig.now.wall_ms += 10;
    rig.tick();
    assert!((4..12).contains(&rig.machine.leased_jobs()), "{}", rig.machine.leased_jobs());
    rig.pass(0);
    assert_eq!(rig.machine.leased_jobs(), 0);
}

/// A million leases that ran out at once once filled the journal faster than the disk took it, and
/// requests waited for that.
#[test]
fn leases_run_out_slowly_while_the_disk_is_behind() {
    let mut rig = Rig::new();
    let count = 2 * TICK_MAX;
    rig.begin(Command::Put(vec![Put::new(topic("t"), "body"); count]));
    let terms = Reserve { ttr_ms: Some(1_000), ..reserve(&["t"], count, 0) };
    assert_eq!(jobs(rig.run(Command::Reserve(terms))).len(), count);
    let waiting = rig.begin(Command::Reserve(reserve(&["t"], 1, 60_000)));
    rig.machine.set_disk_behind(true);
    rig.tick();
    rig.now.steady_ms += 1_000;
    rig.now.wall_ms += 1_000;
    rig.tick();
    assert_eq!(jobs(rig.answer(waiting).unwrap()).len(), 1, "who waits gets what ran out");
    assert_eq!(rig.machine.leased_jobs(), count - TICK_BEHIND_MAX + 1);
    assert_eq!(rig.machine.next_wake(rig.now), Some(1), "not at once, and not never");
    // However many commands and ticks there are in this ms.
    rig.put_now("other");
    rig.tick();
    assert_eq!(rig.machine.leased_jobs(), count - TICK_BEHIND_MAX + 1);
    rig.pass(1);
    assert_eq!(rig.machine.leased_jobs(), count - 2 * TICK_BEHIND_MAX + 1);
    rig.machine.set_disk_behind(false);
    rig.pass(1);
    assert_eq!(rig.machine.leased_jobs(), 1);
    assert_eq!(rig.stats("t").unwrap().ready, count as u64 - 1);
}

/// An operator gives all leases back while their workers take jobs again at once: each call would
/// meet the same jobs, and the others would stay leased.
#[test]
fn releases_of_a_topic_go_on_where_the_last_ended() {
    let mut rig = Rig::new();
    let ids: Vec<_> = (0..6).map(|_| rig.put_now("t")).collect();
    let first = rig.reserve(&["t"], 6);
    assert_eq!(first.len(), 6);
    for _ in 0..3 {
        let release = ReleaseTopic { topic: topic("t"), max: 2 };
        assert_eq!(rig.run(Command::ReleaseTopic(release)), Ok(Reply::Count(2)));
        assert_eq!(rig.reserve(&["t"], 6).len(), 2);
    }
    for lease in first {
        assert_eq!(code(rig.extend(lease.token, None)), Code::LeaseLost, "{}", lease.id);
    }
    // It begins again with the first job, and ends where it began.
    let release = |rig: &mut Rig, max| {
        let release = ReleaseTopic { topic: topic("t"), max };
        let ticket = rig.begin(Command::ReleaseTopic(release));
        // What is left after the end of the topic is another portion.
        rig.tick();
        rig.answer(ticket)
    };
    assert_eq!(release(&mut rig, 1), Some(Ok(Reply::Count(1))));
    assert_eq!(rig.state(ids[0]), Some(State::Ready));
    assert_eq!(release(&mut rig, 100), Some(Ok(Reply::Count(5))));
}
