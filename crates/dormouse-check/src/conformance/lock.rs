//! Locks: exclusive, re-entrant, expiring, renewable, waited for in order, fenced.

use super::prelude::*;
use super::verbs::lock_of;

cases! { lock:
    is_exclusive
    a_free_lock_is_granted_with_its_end
    fences_grow_with_every_grant
    is_reentrant_for_its_owner
    taking_again_does_not_shorten
    runs_out_at_its_instant
    running_out_ends_all_depths
    renew_counts_from_now
    renew_by_another_or_of_a_free_lock
    unlock_by_another_or_of_a_free_lock
    names_are_apart
    waits_until_unlocked
    waits_until_it_runs_out
    waits_in_order
    a_wait_that_is_over_is_a_conflict
    withdrawn_is_a_conflict_and_takes_nothing
    who_waits_gets_its_own_ttl
    survives_a_restart
    fences_grow_through_restarts
    names_and_owners_out_of_range
    ttl_and_wait_out_of_range
    broken_is_free_whoever_holds_it
    broken_passes_to_the_first_who_waits
    only_the_grant_that_is_named_is_broken
}

fn broken_is_free_whoever_holds_it(s: &mut Subject) {
    refused(s.break_lock("shop"), Code::NotFound, &["lock", "shop", "free"]);
    let fence = s.lock("shop", "one", 10_000).fence;
    s.lock("shop", "one", 10_000);
    s.lock("mail", "one", 10_000);
    s.break_lock("shop").expect("a break");
    s.maybe_reopen();
    refused(s.renew("shop", "one", None), Code::NotFound, &["lock", "shop", "free"]);
    refused(s.break_lock("shop"), Code::NotFound, &["shop"]);
    assert!(s.lock("shop", "two", 10_000).fence > fence);
    assert_eq!(s.unlock("mail", "one"), Ok(true), "others stay");
}

fn broken_passes_to_the_first_who_waits(s: &mut Subject) {
    s.lock("shop", "one", 50_000);
    let waiting = s.park_lock(lock_of("shop", "two", 10_000, 10_000));
    s.break_lock("shop").expect("a break");
    assert_eq!(waiting.answer().expect("the lock").depth, 1);
    refused(s.unlock("shop", "one"), Code::Conflict, &["shop", "two"]);
}

fn only_the_grant_that_is_named_is_broken(s: &mut Subject) {
    let fence = s.lock("shop", "one", 10_000).fence;
    assert_eq!(s.unlock("shop", "one"), Ok(true));
    let next = s.lock("shop", "two", 10_000).fence;
    let words = ["shop", "fence", &number(next)];
    refused(s.break_grant("shop", Some(fence)), Code::Conflict, &words);
    s.renew("shop", "two", None).expect("it is held");
    s.break_grant("shop", Some(next)).expect("a break");
    refused(s.break_grant("shop", Some(next)), Code::NotFound, &["shop", "free", "break"]);
}

fn is_exclusive(s: &mut Subject) {
    s.lock("shop", "one", 10_000);
    s.maybe_reopen();
    let words = ["lock", "shop", "held by", "one", "wait"];
    refused(s.try_lock(lock_of("shop", "two", 10_000, 0)), Code::Conflict, &words);
    assert_eq!(s.unlock("shop", "one"), Ok(true));
    s.maybe_reopen();
    s.lock("shop", "two", 10_000);
}

fn a_free_lock_is_granted_with_its_end(s: &mut Subject) {
    let held = s.lock("shop", "one", 10_000);
    assert_eq!((held.depth, held.expires_at), (1, s.now() + 10_000));
    assert!(held.fence > 0);
}

fn fences_grow_with_every_grant(s: &mut Subject) {
    let mut last = 0;
    for round in 0..6 {
        let fence = s.lock("shop", if round % 2 == 0 { "one" } else { "two" }, 10).fence;
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        if round < 3 {
            s.unlock("shop", if round % 2 == 0 { "one" } else { "two" }).expect("an unlock");
        } else {
            s.advance(10);
        }
        s.maybe_reopen();
    }
}

fn is_reentrant_for_its_owner(s: &mut Subject) {
    let first = s.lock("shop", "one", 10_000);
    let second = s.lock("shop", "one", 10_000);
    assert_eq!((first.depth, second.depth), (1, 2));
    assert_eq!(second.fence, first.fence, "the same hold");
    s.maybe_reopen();
    assert_eq!(s.unlock("shop", "one"), Ok(false));
    s.maybe_reopen();
    refused(s.try_lock(lock_of("shop", "two", 1, 0)), Code::Conflict, &["shop"]);
    assert_eq!(s.unlock("shop", "one"), Ok(true));
    s.lock("shop", "two", 1);
}

fn taking_again_does_not_shorten(s: &mut Subject) {
    s.lock("shop", "one", 10_000);
    assert_eq!(s.lock("shop", "one", 5).expires_at, s.now() + 10_000);
    assert_eq!(s.lock("shop", "one", 20_000).expires_at, s.now() + 20_000);
}

fn runs_out_at_its_instant(s: &mut Subject) {
    s.lock("shop", "one", 1_000);
    s.advance(999);
    refused(s.try_lock(lock_of("shop", "two", 1_000, 0)), Code::Conflict, &["shop"]);
    s.advance(1);
    s.lock("shop", "two", 1_000);
    refused(s.unlock("shop", "one"), Code::Conflict, &["shop", "two"]);
}

fn running_out_ends_all_depths(s: &mut Subject) {
    s.lock("shop", "one", 1_000);
    s.lock("shop", "one", 1_000);
    s.advance(1_000);
    assert_eq!(s.lock("shop", "one", 1_000).depth, 1);
}

fn renew_counts_from_now(s: &mut Subject) {
    let held = s.lock("shop", "one", 1_000);
    s.advance(900);
    let renewed = s.renew("shop", "one", None).expect("a renewal");
    assert_eq!((renewed.fence, renewed.depth), (held.fence, 1));
    assert_eq!(renewed.expires_at, s.now() + 1_000, "as it was granted");
    let renewed = s.renew("shop", "one", Some(5_000)).expect("a renewal");
    assert_eq!(renewed.expires_at, s.now() + 5_000);
    s.advance(4_999);
    refused(s.try_lock(lock_of("shop", "two", 1, 0)), Code::Conflict, &["shop"]);
    s.advance(1);
    s.lock("shop", "two", 1);
}

fn renew_by_another_or_of_a_free_lock(s: &mut Subject) {
    refused(s.renew("shop", "one", None), Code::NotFound, &["shop", "free", "take it again"]);
    s.lock("shop", "one", 1_000);
    refused(s.renew("shop", "two", None), Code::Conflict, &["shop", "held by", "one"]);
    s.advance(1_000);
    refused(s.renew("shop", "one", None), Code::NotFound, &["shop", "free", "take it again"]);
}

fn unlock_by_another_or_of_a_free_lock(s: &mut Subject) {
    refused(s.unlock("shop", "one"), Code::NotFound, &["shop", "free"]);
    s.lock("shop", "one", 1_000);
    refused(s.unlock("shop", "two"), Code::Conflict, &["shop", "held by", "one"]);
    assert_eq!(s.unlock("shop", "one"), Ok(true));
    refused(s.unlock("shop", "one"), Code::NotFound, &["shop", "free"]);
}

fn names_are_apart(s: &mut Subject) {
    s.lock("shop", "one", 1_000);
    s.lock("Shop", "two", 1_000);
    assert_eq!(s.total_stats().expect("totals").locks, 2);
}

fn waits_until_unlocked(s: &mut Subject) {
    let first = s.lock("shop", "one", 10_000);
    let waiting = s.park_lock(lock_of("shop", "two", 3_000, 60_000));
    s.unlock("shop", "one").expect("an unlock");
    let held = waiting.answer().expect("the lock");
    assert!(held.fence > first.fence);
    assert_eq!((held.depth, held.expires_at), (1, s.now() + 3_000));
}

fn waits_until_it_runs_out(s: &mut Subject) {
    s.lock("shop", "one", 10_000);
    let waiting = s.park_lock(lock_of("shop", "two", 3_000, 60_000));
    s.advance(9_999);
    s.barrier();
    assert!(!waiting.is_answered());
    s.advance(1);
    assert_eq!(waiting.answer().expect("the lock").expires_at, s.now() + 3_000);
}

fn waits_in_order(s: &mut Subject) {
    s.lock("shop", "one", 10_000);
    let second = s.park_lock(lock_of("shop", "two", 10_000, 60_000));
    let third = s.park_lock(lock_of("shop", "three", 10_000, 60_000));
    s.unlock("shop", "one").expect("an unlock");
    let two = second.answer().expect("the lock");
    s.barrier();
    assert!(!third.is_answered(), "first come, first served");
    s.unlock("shop", "two").expect("an unlock");
    assert!(third.answer().expect("the lock").fence > two.fence);
}

fn a_wait_that_is_over_is_a_conflict(s: &mut Subject) {
    s.lock("shop", "one", 10_000);
    let waiting = s.park_lock(lock_of("shop", "two", 10_000, 2_000));
    s.advance(2_000);
    refused(waiting.answer(), Code::Conflict, &["shop", "held by", "one"]);
    s.unlock("shop", "one").expect("an unlock");
    s.lock("shop", "three", 1_000);
}

fn withdrawn_is_a_conflict_and_takes_nothing(s: &mut Subject) {
    s.lock("shop", "one", 10_000);
    let waiting = s.park_lock(lock_of("shop", "two", 10_000, 60_000));
    s.withdraw(waiting.ticket());
    refused(waiting.answer(), Code::Conflict, &["shop"]);
    s.unlock("shop", "one").expect("an unlock");
    assert_eq!(s.total_stats().expect("totals").locks, 0);
}

fn who_waits_gets_its_own_ttl(s: &mut Subject) {
    s.lock("shop", "one", 1_000);
    let waiting = s.park_lock(lock_of("shop", "two", 7_000, 60_000));
    s.advance(1_000);
    assert_eq!(waiting.answer().expect("the lock").expires_at, s.now() + 7_000);
}

fn survives_a_restart(s: &mut Subject) {
    let held = s.lock("shop", "one", 10_000);
    s.lock("shop", "one", 10_000);
    s.advance(9_000);
    s.barrier();
    if !s.reopen() {
        return;
    }
    refused(s.try_lock(lock_of("shop", "two", 1, 0)), Code::Conflict, &["shop", "one"]);
    let renewed = s.renew("shop", "one", None).expect("a renewal");
    assert_eq!((renewed.fence, renewed.depth), (held.fence, 2));
    s.advance(10_000);
    s.lock("shop", "two", 1_000);
}

fn fences_grow_through_restarts(s: &mut Subject) {
    let mut last = 0;
    for owner in ["one", "two", "three"] {
        let fence = s.lock("shop", owner, 1_000).fence;
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        s.reopen();
        s.unlock("shop", owner).expect("an unlock");
    }
}

fn names_and_owners_out_of_range(s: &mut Subject) {
    let long = "x".repeat(limits::LOCK_NAME_BYTES_MAX + 1);
    for (name, owner, field) in [
        ("", "one", "lock name"),
        (&long, "one", "lock name"),
        ("a", "", "owner"),
        ("a", &long, "owner"),
    ] {
        let words = [field, "1 to 200", "give"];
        refused(s.try_lock(lock_of(name, owner, 1, 0)), Code::Invalid, &words);
        refused(s.renew(name, owner, None), Code::Invalid, &words);
        refused(s.unlock(name, owner), Code::Invalid, &words);
    }
}

fn ttl_and_wait_out_of_range(s: &mut Subject) {
    for ttl_ms in [0, -1, limits::TTL_MS_MAX as i64 + 1] {
        let words = ["ttl", &number(ttl_ms), "give 1 to"];
        refused(s.try_lock(lock_of("shop", "one", ttl_ms, 0)), Code::Invalid, &words);
    }
    for wait_ms in [-1, limits::WAIT_MS_MAX as i64 + 1] {
        let words = ["wait", &number(wait_ms), "0 to 60000"];
        refused(s.try_lock(lock_of("shop", "one", 1, wait_ms)), Code::Invalid, &words);
    }
    s.lock("shop", "one", 1_000);
    refused(s.renew("shop", "one", Some(0)), Code::Invalid, &["ttl", "give 1 to"]);
}
