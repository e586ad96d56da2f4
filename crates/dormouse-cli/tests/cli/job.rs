//! One job, and lists of them.

use serde_json::{Value, json};

use crate::fake::{Fake, ReceivedRequest, Response, ok};
use crate::util::{run, run_with};

fn check(args: &[&str], line: &str, body: Value) {
    let fake = Fake::always(200, r#"{"id":"7","code":"done","was":"delayed","due_at":"soon"}"#);
    let done = run(&fake.url, args).exits(0);
    assert_eq!((fake.only().line().as_str(), fake.only().json()), (line, body), "{args:?}");
    assert_eq!(done.stdout, "ID  CODE  WAS      DUE_AT\n 7  done  delayed  soon\n");
}

#[test]
fn a_job_is_named_by_id_or_key() {
    let null = Value::Null;
    check(&["cancel", "7"], "DELETE /v1/jobs/7", null.clone());
    let args = ["cancel", "--topic", "a/b", "--key", "k 1", "--unless-leased"];
    check(&args, "DELETE /v1/topics/a%2Fb/keys/k%201?unless_leased=true", null.clone());
    check(&["run", "7"], "POST /v1/jobs/7/run", null.clone());
    check(&["revive", "7"], "POST /v1/jobs/7/revive", null.clone());
    check(&["revive", "--topic", "t", "--key", "k"], "POST /v1/topics/t/keys/k/revive", null);
    check(&["kill", "7"], "POST /v1/jobs/7/kill", json!({}));
    let args = ["kill", "--topic", "t", "--key", "k", "--priority", "3"];
    check(&args, "POST /v1/topics/t/keys/k/kill", json!({"priority": 3}));
    check(&["reschedule", "7", "--delay", "1m"], "PATCH /v1/jobs/7", json!({"delay": 60_000}));
    let args = ["reschedule", "7", "--at", "1798790400000"];
    check(&args, "PATCH /v1/jobs/7", json!({"at": 1_798_790_400_000_u64}));
}

#[test]
fn a_job_is_named_by_topic_and_key_in_this_order() {
    let null = Value::Null;
    check(&["cancel", "orders", "42"], "DELETE /v1/topics/orders/keys/42", null.clone());
    check(&["cancel", "orders", "--key", "42"], "DELETE /v1/topics/orders/keys/42", null.clone());
    check(&["run", "a/b", "k 1"], "POST /v1/topics/a%2Fb/keys/k%201/run", null.clone());
    check(&["revive", "t", "k"], "POST /v1/topics/t/keys/k/revive", null);
    check(&["kill", "t", "1.5"], "POST /v1/topics/t/keys/1.5/kill", json!({}));
    let args = ["reschedule", "t", "k", "--delay", "1m"];
    check(&args, "PATCH /v1/topics/t/keys/k", json!({"delay": 60_000}));
    let fake = Fake::always(200, JOB);
    run(&fake.url, &["get", "t", "k"]).exits(0);
    assert_eq!(fake.only().line(), "GET /v1/topics/t/keys/k");
}

#[test]
fn wrong_usage_says_what_to_write() {
    for (args, part) in [
        (&["cancel", "orders"][..], "orders KEY"),
        (&["revive", "orders"], "orders KEY, for a topic --all or --max N"),
        (&["put", "t", "x", "--delay", "-5s"], "a span cannot be negative"),
        (&["put", "t", "x", "--at", "1798790400"], "looks like seconds"),
    ] {
        let done = run("http://127.0.0.1:1", args).exits(2);
        assert!(done.stderr.contains(part), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn a_topic_alone_lists_its_dead_jobs() {
    let fake = Fake::start(pages);
    let done = run(&fake.url, &["dead", "a"]).exits(0);
    assert_eq!(done.stdout, run(&fake.url, &["dead", "ls", "a"]).exits(0).stdout);
    run(&fake.url, &["dead"]).exits(2);
}

const JOB: &str = r#"{"topic":"a","id":"7","key":"42","state":"delayed","due_at":"soon",
    "priority":1024,"ttr_ms":60000,"attempts":0,"headers":{"h":"v"},"base64":"/wA="}"#;

#[test]
fn get_shows_all_fields_or_only_the_body() {
    let fake = Fake::always(200, JOB);
    let done = run(&fake.url, &["get", "7"]).exits(0);
    for line in ["topic     a", "key       42", "headers   {\"h\":\"v\"}", "body      base64:/wA="]
    {
        assert!(done.stdout.lines().any(|found| found == line), "{line}: {}", done.stdout);
    }
    let fake = Fake::always(200, r#"{"topic":"a","id":"7","due_at":"","body": {"a":  1.0}}"#);
    let done = run(&fake.url, &["get", "7", "--body"]).exits(0);
    assert_eq!(done.stdout, r#"{"a":  1.0}"#);
}

/// Two pages of dead jobs, and no others.
fn pages(seen: &ReceivedRequest) -> Response {
    let job = |id: u32| format!(r#"{{"topic":"a","id":"{id}","state":"dead","due_at":"then"}}"#);
    if !seen.path.contains("state=dead") {
        return ok(r#"{"jobs":[]}"#);
    }
    if seen.path.contains("cursor=c%2B1") {
        return ok(&format!(r#"{{"jobs":[{}]}}"#, job(3)));
    }
    ok(&format!(r#"{{"jobs":[{},{}],"cursor":"c+1"}}"#, job(1), job(2)))
}

#[test]
fn lists_go_through_the_states_and_say_that_there_is_more() {
    let fake = Fake::start(pages);
    let done = run(&fake.url, &["ls", "a", "--limit", "2"]).exits(0);
    assert_eq!(done.stdout.lines().count(), 3, "{}", done.stdout);
    assert!(done.stderr.contains("--state dead --cursor c+1"), "{}", done.stderr);
    assert_eq!(fake.seen().len(), 5);
    assert_eq!(fake.seen()[0].path, "/v1/topics/a/jobs?state=delayed&limit=2");
}

#[test]
fn a_whole_list_is_one_document() {
    let fake = Fake::start(pages);
    let args = ["ls", "a", "--state", "dead", "--all", "--no-bodies", "-o", "json"];
    let done = run(&fake.url, &args).exits(0);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(document["jobs"].as_array().unwrap().len(), 3);
    assert_eq!(document.get("cursor"), None);
    assert!(fake.seen()[0].path.ends_with("&bodies=false"));
    let args = ["ls", "a", "--state", "dead", "--limit", "2", "-o", "json"];
    let document: Value = serde_json::from_str(&run(&fake.url, &args).exits(0).stdout).unwrap();
    assert_eq!(document["cursor"], "c+1");
}

#[test]
fn dead_jobs_are_listed_revived_and_removed() {
    let fake = Fake::start(|seen| match seen.method.as_str() {
        "POST" if seen.json().get("cursor").is_some() => ok(r#"{"count":1,"looked":7}"#),
        "POST" if seen.path.ends_with("/cancel") => {
            ok(r#"{"count":2,"looked":10000,"cursor":"c+1"}"#)
        }
        "POST" => ok(r#"{"count":3}"#),
        _ => pages(seen),
    });
    let done = run(&fake.url, &["dead", "ls", "a", "--all"]).exits(0);
    assert_eq!(done.stdout.lines().count(), 4);
    let done = run(&fake.url, &["dead", "revive", "a", "--max", "3"]).exits(0);
    assert_eq!(done.stdout, "3 revived\n");
    assert_eq!(fake.to("/v1/topics/a/revive")[0].json(), json!({"max": 3}));
    run(&fake.url, &["dead", "rm", "a", "--all"]).exits(2);
    let done = run(&fake.url, &["dead", "rm", "a", "--all", "--yes"]).exits(0);
    assert_eq!(done.stdout, "3 removed, 10007 looked at\n");
    let asked: Vec<_> = fake.to("/v1/topics/a/cancel").iter().map(|seen| seen.json()).collect();
    assert_eq!(asked, [json!({}), json!({"cursor": "c+1"})]);
}

#[test]
fn dead_jobs_are_found_by_filters() {
    let fake = Fake::start(|seen| match seen.method.as_str() {
        "POST" => ok(r#"{"count":2,"looked":5}"#),
        _ => ok(r#"{"jobs":[],"looked":5}"#),
    });
    let filter = ["--error-prefix", "exit 1", "--key-prefix", "a/", "--older-than", "1h"];
    let with = |verb: &[&'static str]| [verb, &filter[..]].concat();
    run(&fake.url, &with(&["dead", "ls", "t"])).exits(0);
    let query = "&error_prefix=exit%201&key_prefix=a%2F&older_than=3600000";
    assert!(fake.seen()[0].path.ends_with(query), "{}", fake.seen()[0].path);
    let done = run(&fake.url, &with(&["dead", "revive", "t", "--max", "2"])).exits(0);
    assert_eq!(done.stdout, "2 revived, 5 looked at\n");
    let fields =
        json!({"max": 2, "error_prefix": "exit 1", "key_prefix": "a/", "older_than": 3_600_000});
    assert_eq!(fake.to("/v1/topics/t/revive")[0].json(), fields);
    let args = with(&["-o", "json", "dead", "cancel", "t", "--all", "--yes"]);
    assert_eq!(run(&fake.url, &args).exits(0).stdout, "{\"count\":2,\"looked\":5}\n");
}

#[test]
fn purge_needs_a_yes() {
    let fake = Fake::always(200, r#"{"count":12}"#);
    run_with(&fake.url, &["purge", "a"], b"y\n").exits(2);
    assert!(fake.seen().is_empty());
    let done = run(&fake.url, &["purge", "a", "--yes"]).exits(0);
    assert_eq!(
        (done.stdout.as_str(), &*fake.only().line()),
        ("12 removed\n", "DELETE /v1/topics/a")
    );
}
