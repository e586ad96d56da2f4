//! Commands that run while a lock is held.

use rustix::process::Signal;
use serde_json::json;

use crate::fake::{Fake, ReceivedRequest, Response, ok, problem};
use crate::util::{dormouse, finish, run, signal};

const GRANT: &str = r#"{"fence":"7","expires_at":"2027-01-01T08:00:00.000Z","depth":1}"#;
const ACQUIRE: &str = "/v1/locks/a%2Fb/acquire";
const RENEW: &str = "/v1/locks/a%2Fb/renew";
const RELEASE: &str = "/v1/locks/a%2Fb/release";

fn granted(seen: &ReceivedRequest) -> Response {
    ok(if seen.path == RELEASE { r#"{"code":"free"}"# } else { GRANT })
}

#[test]
fn the_command_runs_under_the_lock_and_decides_the_exit_code() {
    let fake = Fake::start(granted);
    let script = "echo $DORMOUSE_LOCK_NAME $DORMOUSE_LOCK_FENCE $DORMOUSE_LOCK_OWNER; exit 9";
    let args = ["lock", "a/b", "--owner", "me", "--ttl", "1m", "--", "sh", "-c", script];
    let done = run(&fake.url, &args).exits(9);
    assert_eq!(done.stdout, "a/b 7 me\n");
    let seen = fake.seen();
    assert_eq!(seen[0].path, ACQUIRE);
    assert_eq!(seen[0].json(), json!({"owner": "me", "ttl": 60_000, "wait": 0}));
    assert_eq!((seen[1].path.as_str(), seen[1].json()), (RELEASE, json!({"owner": "me"})));
    run(&fake.url, &["lock", "run", "a/b", "--", "true"]).exits(0);
    run(&fake.url, &["lock", "a/b", "--", "sh", "-c", "kill -9 $$"]).exits(137);
}

#[test]
fn owners_are_not_shared_by_chance() {
    let fake = Fake::start(granted);
    run(&fake.url, &["lock", "a/b", "--", "true"]).exits(0);
    run(&fake.url, &["lock", "a/b", "--", "true"]).exits(0);
    let acquires = fake.to(ACQUIRE);
    assert_ne!(acquires[0].json()["owner"], acquires[1].json()["owner"]);
}

#[test]
fn a_held_lock_is_a_conflict_and_nothing_runs() {
    let fake = Fake::start(|_| problem(409, "conflict"));
    let done = run(&fake.url, &["lock", "a/b", "--", "echo", "ran"]).exits(4);
    assert_eq!((done.stdout.as_str(), fake.seen().len()), ("", 1));
}

#[test]
fn a_long_wait_is_made_of_several() {
    let fake = Fake::start(|seen| match (seen.path.as_str(), seen.nth) {
        (ACQUIRE, 0) => problem(409, "conflict"),
        _ => granted(seen),
    });
    run(&fake.url, &["lock", "a/b", "--wait", "10m", "--", "true"]).exits(0);
    assert_eq!(fake.to(ACQUIRE)[0].json()["wait"], 50_000);
    assert_eq!(fake.to(ACQUIRE).len(), 2);
}

#[test]
fn the_lock_is_renewed_and_lost() {
    let fake = Fake::start(|seen| match (seen.path.as_str(), seen.nth) {
        (RENEW, 2) => problem(409, "conflict"),
        (RELEASE, _) => problem(409, "conflict"),
        _ => granted(seen),
    });
    let script = "sleep 1000 & wait";
    // Long enough that a busy computer does not lose it before the third renewal.
    let done = run(&fake.url, &["lock", "a/b", "--ttl", "3s", "--", "sh", "-c", script]).exits(4);
    assert_eq!(fake.to(RENEW).len(), 3);
    assert_eq!(fake.to(RENEW)[0].json()["ttl"], 3_000);
    assert!(done.stderr.contains("the lock was lost"), "{}", done.stderr);
}

#[test]
fn a_lock_that_cannot_be_renewed_in_time_is_lost() {
    let fake = Fake::start(|seen| match seen.path.as_str() {
        RENEW => Response::Close,
        _ => granted(seen),
    });
    let args = ["lock", "a/b", "--ttl", "200ms", "--", "sleep", "1000"];
    run(&fake.url, &args).exits(4);
    assert_eq!(fake.to(RELEASE).len(), 1);
}

#[test]
fn a_signal_is_passed_on_and_the_lock_released() {
    let fake = Fake::start(granted);
    let args = ["lock", "a/b", "--ttl", "3s", "--", "sleep", "1000"];
    let child = dormouse(&fake.url, &args).spawn().unwrap();
    fake.wait_for(RENEW, 1);
    signal(&child, Signal::TERM);
    finish(child).exits(143);
    assert_eq!(fake.to(RELEASE).len(), 1);
}

#[test]
fn a_signal_while_waiting_leaves_no_lock_behind() {
    let fake = Fake::start(|seen| match seen.path.as_str() {
        ACQUIRE => Response::Hold,
        _ => problem(404, "not_found"),
    });
    let args = ["lock", "a/b", "--wait", "10m", "--", "true"];
    let child = dormouse(&fake.url, &args).spawn().unwrap();
    fake.wait_for(ACQUIRE, 1);
    signal(&child, Signal::TERM);
    finish(child).exits(4);
    assert_eq!(fake.to(RELEASE).len(), 1);
}

#[test]
fn a_lock_can_be_acquired_renewed_and_released() {
    let fake = Fake::start(granted);
    let done = run(&fake.url, &["lock", "acquire", "a/b", "--owner", "me"]).exits(0);
    assert!(done.stdout.lines().nth(1).unwrap().trim_start().starts_with('7'), "{}", done.stdout);
    run(&fake.url, &["lock", "renew", "a/b", "--owner", "me", "--ttl", "5s"]).exits(0);
    let done = run(&fake.url, &["lock", "release", "a/b", "--owner", "me"]).exits(0);
    assert_eq!(done.stdout, "free\n");
    let lines: Vec<String> = fake.seen().iter().map(|seen| seen.path.clone()).collect();
    assert_eq!(lines, [ACQUIRE, RENEW, RELEASE]);
    run(&fake.url, &["lock", "acquire", "a/b"]).exits(2);
}
