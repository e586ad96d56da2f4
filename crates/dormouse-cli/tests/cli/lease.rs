//! Taking jobs and ending their leases.

use serde_json::json;

use crate::fake::{Fake, ReceivedRequest, Response, ok, problem};
use crate::util::{run, run_with};

const JOB: &str = r#"{"jobs":[{"topic":"a","id":"1","key":"42","token":"1.9","attempt":1,
"due_at":"2027-01-01T08:00:00.000Z","put_at":"2027-01-01T07:00:00.000Z","late_ms":3,
"expires_at":"2027-01-01T08:01:00.000Z","ttr_ms":60000,"priority":1024,"body":{"order": 42}}]}"#;

#[test]
fn reserve_asks_for_all_topics_at_once() {
    let fake = Fake::always(200, JOB);
    let args = ["reserve", "a", "b", "--max", "5", "--wait", "20s", "--ttr", "5m"];
    let done = run(&fake.url, &args).exits(0);
    let fields = json!({"topics": ["a", "b"], "max": 5, "wait": 20_000, "ttr": 300_000});
    let mut sent = fake.only().json();
    // The rest of the wait when the request is sent.
    let wait_ms = sent["wait"].as_u64().unwrap();
    assert!((15_000..=20_000).contains(&wait_ms), "{wait_ms}");
    sent["wait"] = json!(20_000);
    assert_eq!((fake.only().line().as_str(), sent), ("POST /v1/reserve", fields));
    assert!(done.stdout.contains("1.9") && done.stdout.contains(r#"{"order": 42}"#));
    let done = run(&fake.url, &["reserve", "a", "-o", "json"]).exits(0);
    assert_eq!(done.stdout, format!("{JOB}\n"));
}

#[test]
fn no_job_is_exit_code_3() {
    let fake = Fake::always(200, r#"{"jobs":[]}"#);
    let done = run(&fake.url, &["reserve", "a"]).exits(3);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", "dormouse: no job is due\n"));
    let done = run(&fake.url, &["-o", "json", "reserve", "a"]).exits(3);
    assert_eq!(done.stdout, "{\"jobs\":[]}\n");
}

#[test]
fn one_token_answers_for_itself() {
    let fake = Fake::always(200, r#"{"token":"1.9","code":"done"}"#);
    let done = run(&fake.url, &["ack", "1.9"]).exits(0);
    assert_eq!(done.stdout, "TOKEN  CODE\n1.9    done\n");
    assert_eq!(fake.only().json(), json!({"token": "1.9"}));

    let fake = Fake::start(|_| problem(409, "lease_lost"));
    run(&fake.url, &["ack", "1.9"]).exits(4);
    let fake = Fake::always(200, r#"{"token":"1.9","code":"gone"}"#);
    run(&fake.url, &["ack", "1.9"]).exits(0);
}

#[test]
fn an_ack_puts_what_comes_after() {
    let puts = r#"{"token":"1.9","code":"done","put":[{"id":"7","code":"created"},
{"id":"8","code":"created"}]}"#;
    let fake = Fake::always(200, puts);
    let object = r#"{"topic": "c", "body": {"n": 1}, "delay": "1h"}"#;
    let args = ["ack", "1.9", "--put", "b", "-x", "--put-json", object];
    let done = run(&fake.url, &args).exits(0);
    assert_eq!(done.stdout, "TOKEN  CODE  PUT\n1.9    done  7 8\n");
    let next = json!([
        {"topic": "b", "text": "-x"},
        {"topic": "c", "body": {"n": 1}, "delay": "1h"},
    ]);
    assert_eq!(fake.only().json(), json!({"token": "1.9", "put": next}));
    run(&fake.url, &["ack", "1.9", "--put", "b"]).exits(2);
    run(&fake.url, &["ack", "1.9", "--put-json", "[]"]).exits(2);
}

fn results(codes: &'static [&'static str]) -> impl Fn(&ReceivedRequest) -> Response {
    move |_| {
        let result = |code: &&str| match *code {
            "done" | "gone" => json!({"token": "1.9", "code": code}),
            code => json!({"token": "1.9", "code": code, "detail": "why", "retryable": false}),
        };
        ok(&json!({"results": codes.iter().map(result).collect::<Vec<_>>()}).to_string())
    }
}

#[test]
fn many_tokens_answer_one_by_one() {
    let check = |codes: &'static [&'static str], exit: i32| {
        let fake = Fake::start(results(codes));
        let done = run_with(&fake.url, &["ack", "-"], b"1.9 2.9\n").exits(exit);
        assert_eq!(fake.only().json(), json!({"tokens": ["1.9", "2.9"]}));
        assert_eq!(done.stdout.lines().count(), 3);
    };
    check(&["done", "gone"], 0);
    check(&["done", "lease_lost"], 4);
    check(&["not_found", "lease_lost"], 1);
    let fake = Fake::always(200, "{}");
    run_with(&fake.url, &["ack", "-"], b"\n").exits(2);
}

#[test]
fn each_ending_has_its_fields() {
    let check = |args: &[&str], path: &str, expected: serde_json::Value| {
        let fake = Fake::always(200, r#"{"token":"1.9","code":"done"}"#);
        run(&fake.url, args).exits(0);
        assert_eq!((fake.only().path.as_str(), fake.only().json()), (path, expected));
    };
    let nack = json!({"token": "1.9", "delay": 5_000, "priority": 3, "error": "no"});
    let args = ["nack", "1.9", "--delay", "5s", "--priority", "3", "--error", "no"];
    check(&args, "/v1/nack", nack);
    let release = json!({"token": "1.9", "delay": 0});
    check(&["release", "1.9", "--delay", "0s"], "/v1/release", release);
    let extend = json!({"token": "1.9", "ttr": 300_000});
    check(&["extend", "1.9", "--ttr", "5m"], "/v1/extend", extend);
    let kill = json!({"token": "1.9", "error": "no"});
    check(&["kill", "1.9", "--error", "no"], "/v1/kill", kill);
}
