//! withdraw: a waiting request is answered now, with nothing, and takes nothing.

use std::time::Duration;

use super::prelude::*;
use crate::harness::redis::wait::until;
use dormouse_core::backend::Ticket;

/// Longer than it takes on a busy machine.
const GIVE_BACK_MAX: Duration = Duration::from_secs(10);

cases! { withdraw:
    a_waiting_reserve_is_answered_empty
    nothing_is_leased_afterwards
    others_keep_waiting
    on_several_topics
    what_is_answered_already_stays_so
    an_unknown_ticket_is_as_good_as_withdrawn
    the_watched_topic_is_watched_no_more
    in_the_batch_of_the_put
}

fn a_waiting_reserve_is_answered_empty(s: &mut Subject) {
    let waiting = s.park(wait_for("mail", 60_000));
    s.withdraw(waiting.ticket());
    assert_eq!(waiting.jobs(), []);
}

fn nothing_is_leased_afterwards(s: &mut Subject) {
    let id = s.put(delayed("mail", 1_000));
    let waiting = s.park(wait_for("mail", 60_000));
    s.withdraw(waiting.ticket());
    s.advance(1_000);
    s.barrier();
    assert_eq!(waiting.jobs(), []);
    let view = s.view(id);
    assert_eq!((view.state, view.job.progress.reserves), (State::Ready, 0));
}

fn others_keep_waiting(s: &mut Subject) {
    let first = s.park(wait_for("mail", 60_000));
    let second = s.park(wait_for("mail", 60_000));
    s.withdraw(first.ticket());
    let id = s.put(job("mail"));
    assert_eq!(second.job().id, id);
    assert_eq!(first.jobs(), []);
}

fn on_several_topics(s: &mut Subject) {
    let topics = ["a", "b", "c"].map(topic).into();
    let waiting = s.park(Reserve { topics, ..wait_for("a", 60_000) });
    s.withdraw(waiting.ticket());
    assert_eq!(waiting.jobs(), []);
    s.put_many(["a", "b", "c"].map(job));
    assert_eq!(s.total_stats().expect("totals").ready, 3);
}

fn what_is_answered_already_stays_so(s: &mut Subject) {
    let waiting = s.park(wait_for("mail", 60_000));
    let id = s.put(job("mail"));
    waiting.await_answer();
    s.withdraw(waiting.ticket());
    let lease = waiting.job();
    assert_eq!(lease.id, id);
    assert_eq!(s.release(give_back(lease.token)), Ok(EndReply::Done));
}

fn an_unknown_ticket_is_as_good_as_withdrawn(s: &mut Subject) {
    s.withdraw(Ticket::next());
    let waiting = s.park(wait_for("mail", 1_000));
    let ticket = waiting.ticket();
    s.advance(1_000);
    assert_eq!(waiting.jobs(), []);
    s.withdraw(ticket);
}

fn the_watched_topic_is_watched_no_more(s: &mut Subject) {
    let waiting = s.park(wait_for("mail", 60_000));
    assert_eq!(s.stats("mail").waiters, 1);
    s.withdraw(waiting.ticket());
    refused(s.try_stats("mail"), Code::NotFound, &["mail"]);
    assert_eq!(s.total_stats().expect("totals").waiters, 0);
}

fn in_the_batch_of_the_put(s: &mut Subject) {
    // The job cannot be durable yet: the withdrawn reserve either takes it whole or not at all.
    let waiting = s.park(wait_for("mail", 60_000));
    let ticket = waiting.ticket();
    let answers = s.batch(vec![Command::Put(vec![job("mail")]), Command::Withdraw(ticket)]);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let taken = waiting.jobs().len() as u64;
    // A server gives back a lease that was on its way to a client that left, a moment later.
    until("the job is leased or ready", GIVE_BACK_MAX, || {
        let stats = s.stats("mail");
        let is_right = (stats.counts.leased, stats.ready) == (taken, 1 - taken);
        if is_right { Ok(()) } else { Err(format!("{taken} taken: {stats:?}")) }
    });
}
