//! Real sentinels: the primary dies or freezes, they choose another, and work goes on there.

use std::time::{Duration, Instant};

use dormouse_check::generate::seed::{seed, soak};
use dormouse_check::harness::redis::SentinelRig;
use dormouse_check::harness::redis::loss_audit::LossAudit;
use dormouse_check::harness::redis::probe::Probe;
use dormouse_core::error::Code;
use dormouse_redis::{Level, Options, RedisBackend};

use crate::{Took, open, work};

/// Callers are served at most this long after the sentinels agree; more than it takes, for a busy
/// machine.
const GRACE: Duration = Duration::from_secs(4);
/// `applied` loses what was answered in this time before the end of a primary, at most.
const WINDOW: Duration = Duration::from_secs(1);

/// Puts, reserves and acks of two servers, while `fail` takes the primary away.
fn check(rig: &mut SentinelRig, level: Level, fail: fn(&mut SentinelRig, usize)) {
    let url = rig.url();
    let backends = [open(&url, level, None), open(&url, level, None)];
    let alone = open(&url, level, Some(1));
    let probe = Probe::start(&alone).expect("the probe begins");
    let audit = LossAudit::new("kept", "done");
    let victim = rig.primary(0).expect("a sentinel names the primary");
    let (failed_at, failover) = audit.keep(&backends, 3, || {
        work(500);
        let failed_at = Instant::now();
        fail(rig, victim);
        let failover = rig.await_failover(failed_at);
        work(2_000);
        (failed_at, failover)
    });
    let gap = probe.gap(failed_at).expect("answers before and after");
    let losses = audit.audit(&backends[0], failed_at);
    eprintln!("sentinels, {level:?}: {failover:?}, {gap:?}, {losses:?}");
    assert_ne!(rig.primary(0).expect("a sentinel names the primary"), victim);
    assert!(gap.served <= failover + GRACE, "served after {gap:?}, failover took {failover:?}");
    assert!(losses.promised > 100, "{losses:?}");
    assert_eq!(losses.twins, 0, "no token is given twice");
    match level {
        Level::Applied => assert!(losses.window <= WINDOW, "{losses:?}"),
        Level::Replicated(_) => assert_eq!(losses.lost(), 0, "{losses:?}"),
    }
}

#[test]
fn sentinels_are_followed_and_nothing_that_was_confirmed_is_lost() {
    let _took = Took::new("sentinels");
    let mut rig = SentinelRig::start(2, 3);
    check(&mut rig, Level::Replicated(1), SentinelRig::kill);
}

/// The old primary wakes up and still takes itself for one, until sentinels tell it otherwise.
#[test]
fn sentinels_are_followed_away_from_a_frozen_primary_that_comes_back() {
    let _took = Took::new("sentinels, frozen");
    let mut rig = SentinelRig::start(1, 3);
    check(&mut rig, Level::Applied, SentinelRig::freeze);
    let (old, new) = match rig.primary(0) {
        Ok(0) => (1, 0),
        _ => (0, 1),
    };
    rig.thaw(old);
    let backend = open(&rig.url(), Level::Applied, None);
    let audit = LossAudit::new("kept-on", "done-on");
    audit.keep(std::slice::from_ref(&backend), 2, || work(1_000));
    let losses = audit.audit(&backend, Instant::now());
    assert_eq!(losses.lost(), 0, "{losses:?}");
    assert!(losses.promised > 10, "{losses:?}");
    assert_eq!(rig.servers()[new].info("replication", "role"), "master");
}

#[test]
fn a_login_is_for_redis_and_for_sentinels_that_ask_for_one() {
    let mut rig = SentinelRig::start(0, 1);
    let address = rig.sentinels()[0].address();
    let url = |login: &str| format!("redis+sentinel://{login}{address}/main");
    let opens = |login: &str| RedisBackend::open(&url(login), Options::default()).map(|_| ());
    let only_for = ["ACL", "SETUSER", "u", "on", ">secret", "~*", "&*", "+@all"];
    rig.servers()[0].must(&only_for);
    opens("u:secret@").unwrap_or_else(|error| panic!("the sentinel asks for no login: {error}"));
    rig.sentinels()[0].must(&only_for);
    rig.sentinels()[0].must(&["ACL", "SETUSER", "default", "resetpass"]);
    opens("u:secret@").unwrap_or_else(|error| panic!("both ask for the login: {error}"));
    for login in ["", "u:wrong@"] {
        let error = opens(login).expect_err("the sentinel asks for a login");
        assert_eq!(error.code, Code::Invalid, "{error}");
        assert!(error.text.contains("the sentinel at"), "{error}");
        assert!(!error.text.contains("wrong@"), "{error}");
    }
}

#[test]
#[ignore = "a campaign: cargo xtask soak"]
fn soak_redis_sentinels() {
    eprintln!("sentinels: DORMOUSE_SEED={}", seed());
    soak(|_| {
        let mut rig = SentinelRig::start(2, 3);
        check(&mut rig, Level::Replicated(1), SentinelRig::kill);
    });
}
