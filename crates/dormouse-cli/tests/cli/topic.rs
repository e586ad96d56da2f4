//! Topics and their settings.

use serde_json::{Value, json};

use crate::fake::{Fake, ok, problem};
use crate::util::run;

const TOPIC: &str = r#"{"topic":"a","delayed":1,"ready":2,"urgent":0,"leased":3,"dead":4,"bytes":5,
"waiters":6,"oldest_ready_ms":7,"paused":true,"paused_ms":1000,
"settings":{"ttr_ms":60000,"attempts_max":16,"backoff":{"fixed":1000,"jitter":0.2},"jobs_max":null},
"totals":{"puts":9}}"#;

#[test]
fn topics_are_listed_to_the_end() {
    let fake = Fake::start(|seen| match seen.path.contains("after=a") {
        false => ok(&format!(r#"{{"topics":[{TOPIC}],"next":"a"}}"#)),
        true => ok(r#"{"topics":[{"topic":"b","delayed":0,"ready":0,"leased":0,"dead":0}]}"#),
    });
    let done = run(&fake.url, &["topics"]).exits(0);
    assert_eq!(done.stdout.lines().count(), 3, "{}", done.stdout);
    assert!(done.stdout.contains("paused"));
    let done = run(&fake.url, &["topics", "-o", "json"]).exits(0);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(document["topics"][1]["topic"], "b");
}

#[test]
fn topics_are_asked_for_by_prefix_and_order() {
    let fake = Fake::always(200, r#"{"topics":[],"looked_at":0,"complete":true}"#);
    run(&fake.url, &["topics", "--prefix", "a/b", "--sort", "dead", "--limit", "5"]).exits(0);
    assert_eq!(fake.only().line(), "GET /v1/topics?limit=5&sort=dead&prefix=a%2Fb");
    run(&fake.url, &["topics", "--sort", "size"]).exits(2);
    run(&fake.url, &["topics", "--sort", "dead", "--after", "a"]).exits(2);
}

#[test]
fn a_topic_is_shown_with_its_settings() {
    let fake = Fake::always(200, TOPIC);
    let done = run(&fake.url, &["topic", "show", "a"]).exits(0);
    for line in ["settings.ttr_ms          60000", "totals.puts              9"] {
        assert!(done.stdout.lines().any(|found| found == line), "{line}: {}", done.stdout);
    }
}

#[test]
fn settings_that_are_not_given_stay() {
    let fake = Fake::always(200, TOPIC);
    run(&fake.url, &["topic", "set", "a", "--ttr", "5m", "--dead-ttl", "30d"]).exits(0);
    let put = fake.seen().pop().unwrap();
    assert_eq!(put.line(), "PUT /v1/topics/a");
    let backoff = json!({"fixed": 1000, "jitter": 0.2});
    let expected = json!({"ttr": 300_000, "attempts_max": 16, "backoff": backoff,
                          "dead_ttl": 2_592_000_000_u64});
    assert_eq!(put.json(), expected);

    let fake = Fake::always(200, TOPIC);
    run(&fake.url, &["topic", "set", "a", "--jobs-max", "9", "--reset"]).exits(0);
    assert_eq!(fake.only().json(), json!({"jobs_max": 9}));

    let fake = Fake::start(|seen| match seen.method.as_str() {
        "GET" => problem(404, "not_found"),
        _ => ok(TOPIC),
    });
    run(&fake.url, &["topic", "set", "new", "--dead-max", "9"]).exits(0);
    assert_eq!(fake.seen().pop().unwrap().json(), json!({"dead_max": 9}));
}

#[test]
fn limits_are_set_and_stay() {
    let fake = Fake::start(|seen| match seen.method.as_str() {
        "GET" => ok(r#"{"topic":"a","settings":{"rate":{"jobs":5,"per":1000,"burst":2}}}"#),
        _ => ok(TOPIC),
    });
    let args = "topic set a --leased-max 50 --group-leased-max 2 --group-rate 100/1m:burst=5";
    let args: Vec<&str> = args.split(' ').collect();
    run(&fake.url, &args).exits(0);
    let expected = json!({"rate": {"jobs": 5, "per": 1_000, "burst": 2}, "leased_max": 50,
        "group_leased_max": 2, "group_rate": {"jobs": 100, "per": 60_000, "burst": 5}});
    assert_eq!(fake.seen().pop().unwrap().json(), expected);
    let done = run(&fake.url, &["topic", "set", "a", "--rate", "fast"]).exits(2);
    assert!(done.stderr.contains("write 100/1m"), "{}", done.stderr);
}

#[test]
fn pause_resume_and_kick() {
    let check = |args: &[&str], path: &str, body: Value, stdout: &str| {
        let fake = Fake::always(200, r#"{"count":2}"#);
        let done = run(&fake.url, args).exits(0);
        assert_eq!((fake.only().path.as_str(), fake.only().json()), (path, body));
        assert_eq!(done.stdout, stdout);
    };
    let minutes = json!({"for": 600_000});
    check(&["pause", "a", "--for", "10m"], "/v1/topics/a/pause", minutes, "paused\n");
    check(&["pause", "a"], "/v1/topics/a/pause", json!({}), "paused\n");
    check(&["resume", "a"], "/v1/topics/a/resume", Value::Null, "resumed\n");
    check(&["kick", "a", "--all"], "/v1/topics/a/kick", json!({}), "2 kicked\n");
    check(&["kick", "a", "--max", "5"], "/v1/topics/a/kick", json!({"max": 5}), "2 kicked\n");
    check(&["revive", "a", "--all"], "/v1/topics/a/revive", json!({}), "2 revived\n");
}

#[test]
fn a_forecast_is_a_chart() {
    let answer = r#"{"from":"2027-01-01T08:00:00.000Z","to":"2027-01-01T10:00:00.000Z",
                     "step_ms":3600000,"counts":[2,1]}"#;
    let fake = Fake::always(200, answer);
    let args = ["forecast", "a", "--from", "2027-01-01T09:00:00+01:00", "--step", "1h"];
    let done = run(&fake.url, &args).exits(0);
    let path = "/v1/topics/a/forecast?from=1798790400000&step=3600000";
    assert_eq!(fake.only().path, path);
    let last = done.stdout.lines().last().unwrap();
    assert_eq!(last, format!("2027-01-01T09:00:00.000Z     1  {}", "#".repeat(25)));
}

#[test]
fn a_rule_is_previewed_by_the_server() {
    let answer = r#"{"ticks":["2027-03-15T02:00:00.000Z"],"words":"at 03:00","notes":["a note"]}"#;
    let check = |args: &[&str], form: serde_json::Value| {
        let fake = Fake::always(200, answer);
        let args = [&["schedule", "preview"], args].concat();
        let done = run(&fake.url, &args).exits(0);
        let request = fake.only();
        assert_eq!(request.path, "/v1/schedules/preview");
        assert_eq!(request.json(), form);
        assert_eq!(done.stdout, "at 03:00\n  2027-03-15T02:00:00.000Z\nnote: a note\n");
    };
    let zone = ["0 3 * * 1-5", "--zone", "Europe/Berlin"];
    check(&zone, json!({"cron": "0 3 * * 1-5", "zone": "Europe/Berlin"}));
    check(
        &["@daily", "--zone", "-03:00", "--limit", "3"],
        json!({"cron": "@daily", "zone": "-03:00", "limit": 3}),
    );
    check(
        &["--every", "90m", "--from", "2027-01-01T09:00:00+01:00"],
        json!({"every": 5_400_000, "from": 1_798_790_400_000_i64}),
    );
    check(&["--gap", "5s"], json!({"gap": 5_000}));
}

#[test]
fn schedules_are_listed_of_a_topic_or_of_all() {
    let row = |topic: &str| {
        format!(
            r#"{{"topic":"{topic}","name":"nightly","state":"waiting","words":"at 03:00",
                "next":["2027-01-01T03:00:00.000Z"],
                "counts":{{"given":1,"missed":2,"overlapped":3,"skipped":4}}}}"#
        )
    };
    let answer = format!(r#"{{"schedules":[{},{}]}}"#, row("a"), row("b"));
    let check = |args: &[&str], path: &str, has_topic: bool| {
        let fake = Fake::always(200, &answer);
        let done = run(&fake.url, &[&["schedule", "ls"], args].concat()).exits(0);
        assert_eq!(fake.only().line(), format!("GET {path}"));
        let header = done.stdout.lines().next().unwrap();
        assert_eq!(header.starts_with("TOPIC"), has_topic, "{}", done.stdout);
        assert_eq!(done.stdout.lines().count(), 3);
    };
    check(&["a"], "/v1/topics/a/schedules?limit=1000", false);
    check(&[], "/v1/schedules?limit=1000", true);
    let path = "/v1/schedules?limit=5&state=paused&prefix=shop.";
    check(&["--prefix", "shop.", "--state", "paused", "--limit", "5"], path, true);
    run("", &["schedule", "ls", "a", "--prefix", "shop."]).exits(2);
}

#[test]
fn a_schedule_that_the_server_cannot_read_is_wrong_usage() {
    for args in [&["put", "t", "s", "--cron", "60 * * * *"][..], &["preview", "60 * * * *"]] {
        let fake = Fake::start(|_| problem(422, "invalid"));
        run(&fake.url, &[&["schedule"], args].concat()).exits(2);
    }
    let fake = Fake::start(|_| problem(507, "full"));
    let args =
        ["schedule", "put", "t", "s", "--every", "1h", "--expires-after", "5m", "--group", "g"];
    let done = run(&fake.url, &args);
    assert_ne!(done.code, Some(2), "{}", done.stderr);
    let form = json!({"every": 3_600_000, "expires_after": 300_000, "group": "g"});
    assert_eq!(fake.only().json(), form);
}

#[test]
fn stats_are_pairs() {
    let fake = Fake::always(200, TOPIC);
    let done = run(&fake.url, &["stats"]).exits(0);
    assert!(done.stdout.contains("delayed                  1\n"), "{}", done.stdout);
    assert_eq!(fake.only().line(), "GET /v1/stats");
    let fake = Fake::always(200, TOPIC);
    assert_eq!(run(&fake.url, &["stats", "a"]).exits(0).stdout, done.stdout);
    assert_eq!(fake.only().line(), "GET /v1/topics/a");
}

#[test]
fn the_end_of_jobs_is_set() {
    let fake = Fake::always(200, "{}");
    let args =
        "topic set a --reset --delay 1m --expires-after 1h --dead-topic a/dead --keep-done 1d";
    run(&fake.url, &args.split(' ').collect::<Vec<_>>()).exits(0);
    let settings = json!({
        "delay": 60_000, "expires_after": 3_600_000, "dead_topic": "a/dead",
        "keep_done": 86_400_000,
    });
    assert_eq!(fake.only().json(), settings);
}
