//! A worker made of any command.

use std::path::Path;
use std::process::Child;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::fake::{Fake, ReceivedRequest, Response, ok, problem};
use crate::util::{Done, dormouse, finish, run, signal};

const RESERVE: &str = "/v1/reserve";

/// A leased job, with other fields over these.
fn job(id: u32, fields: Value) -> Value {
    let mut job = json!({
        "topic": "orders", "id": id.to_string(), "token": format!("{id}.9"), "attempt": 2,
        "due_at": "2027-01-01T08:00:00.000Z", "put_at": "2027-01-01T07:00:00.000Z", "late_ms": 1,
        "expires_at": "2027-01-01T08:01:00.000Z", "ttr_ms": 60_000, "priority": 1024,
    });
    for (name, value) in fields.as_object().unwrap() {
        job[name] = value.clone();
    }
    job
}

fn jobs(jobs: &[Value]) -> Response {
    ok(&json!({"jobs": jobs}).to_string())
}

/// A server with these jobs, given out one reserve after the other; then it holds reserves, or
/// answers that there is none if they do not wait.
fn serving(
    all: Vec<Vec<Value>>,
    other: impl Fn(&ReceivedRequest) -> Response + Send + Sync + 'static,
) -> Fake {
    Fake::start(move |seen| {
        if seen.path != RESERVE {
            return other(seen);
        }
        match all.get(seen.nth) {
            Some(given) => jobs(given),
            None if seen.json()["wait"] == 0 => jobs(&[]),
            None => Response::Hold,
        }
    })
}

fn done(_: &ReceivedRequest) -> Response {
    ok(r#"{"token":"1.9","code":"done"}"#)
}

/// Works until no job is left.
fn drain(fake: &Fake, script: &str) -> Done {
    run(&fake.url, &["work", "orders", "--drain", "--", "sh", "-c", script])
}

fn start(fake: &Fake, script: &str) -> Child {
    dormouse(&fake.url, &["work", "orders", "--", "sh", "-c", script]).spawn().unwrap()
}

fn script_file(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

#[test]
fn the_command_gets_body_and_environment_and_success_is_an_ack() {
    let fields = json!({"body": {"order": 42}, "key": "k", "headers": {"trace-id": "t1"}});
    let fake = serving(vec![vec![job(1, fields)]], done);
    let script = "cat; env | grep ^DORMOUSE_ | sort >&2; echo";
    let mut command = dormouse(&fake.url, &["work", "orders", "refunds", "--drain", "--ttr", "5m"]);
    command.env("DORMOUSE_TOKEN", "secret").args(["--", "sh", "-c", script]);
    let out = finish(command.spawn().unwrap()).exits(0);
    assert_eq!(out.stdout, "{\"order\":42}\n");
    let url = format!("DORMOUSE_URL={}", fake.url);
    for line in [
        "DORMOUSE_ATTEMPT=2",
        "DORMOUSE_DUE_AT=2027-01-01T08:00:00.000Z",
        "DORMOUSE_HEADER_TRACE_ID=t1",
        "DORMOUSE_ID=1",
        "DORMOUSE_KEY=k",
        "DORMOUSE_LEASE_TOKEN=1.9",
        "DORMOUSE_TOPIC=orders",
        &url,
    ] {
        assert!(out.stderr.lines().any(|found| found == line), "{line}: {}", out.stderr);
    }
    assert!(!out.stderr.contains("secret"), "{}", out.stderr);
    let reserve = json!({"topics": ["orders", "refunds"], "max": 1, "wait": 0, "ttr": 300_000});
    assert_eq!(fake.seen()[0].json(), reserve);
    assert_eq!(fake.to("/v1/ack")[0].json(), json!({"token": "1.9"}));
    assert!(out.stderr.contains("1 done, 0 failed"), "{}", out.stderr);
}

#[test]
fn the_command_gets_the_servers_token_only_if_asked() {
    for (options, is_given) in [(&[][..], false), (&["--pass-token"], true)] {
        let fake = serving(vec![vec![job(1, json!({}))]], done);
        let mut command = dormouse(&fake.url, &["work", "orders", "--drain"]);
        command.env("DORMOUSE_TOKEN", "secret").args(options);
        command.args(["--", "sh", "-c", "echo \"token=$DORMOUSE_TOKEN\""]);
        let out = finish(command.spawn().unwrap()).exits(0);
        assert_eq!(out.stdout, if is_given { "token=secret\n" } else { "token=\n" });
    }
}

#[test]
fn bodies_of_every_kind_reach_stdin_as_they_were() {
    let all = vec![vec![
        job(1, json!({"text": "täxt"})),
        job(2, json!({"base64": "/wA="})),
        job(3, json!({})),
    ]];
    let fake = serving(all, done);
    let dir = tempfile::tempdir().unwrap();
    let file = script_file(dir.path(), "");
    drain(&fake, &format!("cat > {file}$DORMOUSE_ID")).exits(0);
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    assert_eq!((read("1"), read("2"), read("3")), ("täxt".into(), vec![0xff, 0], Vec::new()));
}

#[test]
fn failure_is_a_nack_with_the_end_of_stderr() {
    let fake = serving(vec![vec![job(1, json!({"text": "x"}))]], done);
    let script =
        "i=0; while [ $i -lt 200 ]; do echo line $i of the story >&2; i=$((i+1)); done; exit 3";
    let out = drain(&fake, script).exits(0);
    let nack = fake.to("/v1/nack")[0].json();
    let error = nack["error"].as_str().unwrap();
    assert_eq!(nack["token"], "1.9");
    assert!(error.starts_with("exit code 3: ") && error.ends_with("line 199 of the story"));
    assert!(error.len() <= 1_024 && error.len() > 900, "{}", error.len());
    assert!(out.stderr.contains("line 0 of the story"), "stderr is passed on");
    assert!(out.stderr.contains("0 done, 1 failed"), "{}", out.stderr);

    let fake = serving(vec![vec![job(1, json!({}))]], done);
    drain(&fake, "kill -9 $$").exits(0);
    assert_eq!(fake.to("/v1/nack")[0].json()["error"], "killed by signal 9");
}

#[test]
fn a_command_that_takes_too_long_is_ended_and_its_job_nacked() {
    let fake = serving(vec![vec![job(1, json!({}))]], done);
    let args = ["work", "orders", "--drain", "--timeout", "200ms", "--", "sh", "-c", "sleep 600"];
    run(&fake.url, &args).exits(0);
    let nack = fake.to("/v1/nack")[0].json();
    assert_eq!((&nack["token"], &nack["error"]), (&json!("1.9"), &json!("timed out after 200ms")));
}

#[test]
fn exit_codes_kill_a_job_or_give_it_back() {
    let fake = serving(vec![vec![job(1, json!({}))]], done);
    let out = drain(&fake, "echo no such order >&2; exit 65").exits(0);
    let kill = json!({"token": "1.9", "error": "exit code 65: no such order"});
    assert_eq!(fake.to("/v1/kill")[0].json(), kill);
    assert!(out.stderr.contains("0 done, 1 failed"), "{}", out.stderr);

    let fake = serving(vec![vec![job(1, json!({}))]], done);
    let out = drain(&fake, "exit 75").exits(0);
    assert_eq!(fake.to("/v1/release")[0].json(), json!({"token": "1.9", "delay": 1_000}));
    assert!(out.stderr.contains("1 given back or lost"), "{}", out.stderr);
    assert!(fake.to("/v1/nack").is_empty() && fake.to("/v1/ack").is_empty());
}

/// The line that is written about the only job.
fn reported(answer: &'static str, script: &str) -> Value {
    let fake =
        serving(vec![vec![job(1, json!({"key": "k"}))]], move |seen| match &seen.method[..] {
            "GET" => ok(r#"{"topic":"orders","id":"1","state":"delayed","due_at":"soon"}"#),
            _ => ok(answer),
        });
    let args = ["work", "orders", "--drain", "--log-format", "json", "--", "sh", "-c", script];
    let out = run(&fake.url, &args).exits(0);
    // Every line is JSON.
    let lines = out.stderr.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    let [line, summary] = <[Value; 2]>::try_from(lines).unwrap();
    assert!(summary["message"].as_str().unwrap().contains("given back or lost"), "{summary}");
    assert_eq!((&summary["level"], &summary["target"]), (&json!("info"), &json!("dormouse")));
    assert_eq!(line["target"], "dormouse::work", "{line}");
    assert!(line["ts"].as_str().unwrap().ends_with('Z'), "{line}");
    let mut fields = line["fields"].clone();
    let is_good = matches!(fields["outcome"].as_str().unwrap(), "done" | "released");
    assert_eq!(line["level"], if is_good { "info" } else { "warn" }, "{line}");
    assert!(fields["duration_ms"].as_u64().is_some(), "{line}");
    fields.as_object_mut().unwrap().remove("duration_ms");
    fields
}

#[test]
fn a_line_of_json_tells_how_each_job_ended() {
    let line = json!({"topic": "orders", "id": "1", "key": "k", "attempt": 2, "outcome": "done"});
    assert_eq!(reported(r#"{"code":"done"}"#, "exit 0"), line);
    let line = reported(r#"{"code":"retry","due_at":"later"}"#, "exit 3");
    assert_eq!((&line["outcome"], &line["due_at"]), (&json!("retry"), &json!("later")));
    assert_eq!(line["error"], "exit code 3");
    assert_eq!(reported(r#"{"code":"dead"}"#, "exit 3")["outcome"], "dead");
    assert_eq!(reported(r#"{"code":"done"}"#, "exit 65")["outcome"], "killed");
    let line = reported(r#"{"code":"done"}"#, "echo later >&2; exit 75");
    assert_eq!((&line["outcome"], &line["due_at"]), (&json!("released"), &json!("soon")));
    assert_eq!(line["stderr"], "later");
}

#[test]
fn what_ends_a_worker_is_a_line_of_json_too() {
    let fake = Fake::start(|_| problem(401, "unauthorized"));
    let out = run(&fake.url, &["work", "a", "--log-format", "json", "--", "true"]);
    let last: Value = serde_json::from_str(out.stderr.lines().next_back().unwrap()).unwrap();
    assert_eq!(last["level"], "error", "{last}");
    assert!(last["message"].as_str().unwrap().contains("unauthorized"), "{last}");
}

#[test]
fn a_timeout_of_nothing_is_refused() {
    let fake = serving(vec![], done);
    let out = run(&fake.url, &["work", "a", "--timeout", "0s", "--", "true"]).exits(2);
    assert!(out.stderr.contains("--timeout 0"), "{}", out.stderr);
    assert!(fake.seen().is_empty());
}

#[test]
fn the_command_knows_its_schedule_and_its_tick() {
    let tick = json!({"schedule": "nightly", "tick": "2026-01-01T03:00:00.000Z"});
    let fake = serving(vec![vec![job(1, tick)]], done);
    let script = "echo $DORMOUSE_SCHEDULE $DORMOUSE_TICK";
    let args = ["work", "a", "--drain", "--", "sh", "-c", script];
    let out = run(&fake.url, &args).exits(0);
    assert_eq!(out.stdout, "nightly 2026-01-01T03:00:00.000Z\n");
}

/// Whether a process runs: one that has ended may still be listed until somebody asks how.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[test]
fn a_command_dies_with_its_worker_and_so_does_what_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let file = script_file(dir.path(), "pids");
    let fake = serving(vec![vec![job(1, json!({"ttr_ms": 60}))]], done);
    let script = format!("sleep 600 & echo $$ $! > {file}; wait");
    let mut child = start(&fake, &script);
    // It runs for sure: its lease is renewed.
    fake.wait_for("/v1/extend", 3);
    let pids = wait_until(|| {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        text.ends_with('\n').then(|| text.trim().to_owned())
    });
    assert!(pids.split(' ').all(runs), "{pids}");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until(|| (!pids.split(' ').any(runs)).then_some(()));
}

/// The first value that `look` finds.
fn wait_until<T>(look: impl Fn() -> Option<T>) -> T {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(std::time::Instant::now() < deadline, "it does not come");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_command_that_ignores_its_stdin_is_not_held_up() {
    let body = "x".repeat(1_000_000);
    let fake = serving(vec![vec![job(1, json!({"text": body}))]], done);
    drain(&fake, "exit 0").exits(0);
    assert_eq!(fake.to("/v1/ack").len(), 1);
}

#[test]
fn the_lease_is_renewed_while_the_command_runs() {
    let dir = tempfile::tempdir().unwrap();
    let go = script_file(dir.path(), "go");
    let fake = serving(vec![vec![job(1, json!({"ttr_ms": 60}))]], done);
    let child = start(&fake, &format!("until [ -e {go} ]; do sleep 0.01; done"));
    let extend = fake.wait_for("/v1/extend", 3);
    assert_eq!(extend.json(), json!({"token": "1.9", "ttr": 60}));
    assert!(fake.to("/v1/ack").is_empty());
    std::fs::write(&go, "").unwrap();
    fake.wait_for("/v1/ack", 1);
    signal(&child, Signal::TERM);
    finish(child).exits(0);
}

#[test]
fn a_lost_lease_ends_the_command_and_nothing_is_acked() {
    let lost = |seen: &ReceivedRequest| match seen.path.as_str() {
        "/v1/extend" => problem(409, "lease_lost"),
        _ => done(seen),
    };
    let dir = tempfile::tempdir().unwrap();
    let file = script_file(dir.path(), "ended");
    let fake = serving(vec![vec![job(1, json!({"ttr_ms": 60}))]], lost);
    // The whole group is signalled: the sleep too, which would hold the pipes for long.
    let script = format!("trap 'echo yes > {file}; exit 0' TERM; sleep 1000 & wait");
    let out = drain(&fake, &script).exits(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "yes\n");
    assert!(fake.to("/v1/ack").is_empty() && fake.to("/v1/nack").is_empty());
    assert!(out.stderr.contains("job 1: lease_lost"), "{}", out.stderr);
    assert!(out.stderr.contains("1 given back or lost"), "{}", out.stderr);
}

#[test]
fn a_first_signal_lets_commands_finish() {
    let dir = tempfile::tempdir().unwrap();
    let (begun, go) = (script_file(dir.path(), "begun"), script_file(dir.path(), "go"));
    std::fs::write(&begun, "").unwrap();
    let fake = serving(vec![vec![job(1, json!({"ttr_ms": 60}))]], done);
    let child = start(&fake, &format!("until [ -e {go} ]; do sleep 0.01; done"));
    // It runs for sure: its lease is renewed.
    fake.wait_for("/v1/extend", 1);
    signal(&child, Signal::INT);
    let after = fake.to("/v1/extend").len();
    fake.wait_for("/v1/extend", after + 2);
    std::fs::write(&go, "").unwrap();
    let out = finish(child).exits(0);
    assert_eq!((fake.to("/v1/ack").len(), fake.to(RESERVE).len()), (1, 1));
    assert!(out.stderr.contains("waiting for 1 commands"), "{}", out.stderr);
}

#[test]
fn a_second_signal_ends_commands_and_gives_their_jobs_back() {
    let fake = serving(vec![vec![job(1, json!({"ttr_ms": 60}))]], done);
    let child = start(&fake, "exec sleep 1000");
    fake.wait_for("/v1/extend", 1);
    signal(&child, Signal::TERM);
    let after = fake.to("/v1/extend").len();
    fake.wait_for("/v1/extend", after + 2);
    signal(&child, Signal::TERM);
    finish(child).exits(0);
    assert_eq!(fake.to("/v1/release")[0].json(), json!({"token": "1.9"}));
    assert!(fake.to("/v1/ack").is_empty() && fake.to("/v1/nack").is_empty());
}

#[test]
fn a_signal_while_waiting_withdraws_the_reserve() {
    let fake = serving(vec![], done);
    let child = start(&fake, "true");
    fake.wait_for(RESERVE, 1);
    signal(&child, Signal::TERM);
    finish(child).exits(0);
    assert_eq!(fake.seen().len(), 1);
    assert_eq!(fake.only().json()["wait"], 20_000);
}

#[test]
fn a_job_that_was_on_its_way_is_given_back() {
    let late = json!({"jobs": [job(1, json!({}))]}).to_string();
    let fake = Fake::start(move |seen| match seen.path.as_str() {
        RESERVE => Response::Late(200, late.clone()),
        _ => done(seen),
    });
    let child = start(&fake, "true");
    fake.wait_for(RESERVE, 1);
    signal(&child, Signal::TERM);
    finish(child).exits(0);
    assert_eq!(fake.to("/v1/release")[0].json(), json!({"token": "1.9"}));
    assert!(fake.to("/v1/ack").is_empty());
}

#[test]
fn an_ack_is_sent_until_it_is_answered() {
    let failing = |seen: &ReceivedRequest| match (seen.path.as_str(), seen.nth) {
        ("/v1/ack", 0) => Response::Close,
        ("/v1/ack", 1) => problem(503, "busy"),
        _ => done(seen),
    };
    let fake = serving(vec![vec![job(1, json!({}))]], failing);
    let out = drain(&fake, "true").exits(0);
    assert_eq!(fake.to("/v1/ack").len(), 3);
    assert_eq!(out.stderr.matches("trying again until it works").count(), 1, "{}", out.stderr);
    assert!(out.stderr.contains("the server answers again"), "{}", out.stderr);
    assert!(out.stderr.contains("1 done"), "{}", out.stderr);
}

#[test]
fn a_server_that_is_away_is_tried_again() {
    let fake = Fake::start(|seen| match (seen.path.as_str(), seen.nth) {
        (RESERVE, 0 | 1) => Response::Close,
        (RESERVE, 2) => jobs(&[job(1, json!({}))]),
        (RESERVE, _) => jobs(&[]),
        _ => done(seen),
    });
    let out = drain(&fake, "true").exits(0);
    assert_eq!(fake.to("/v1/ack").len(), 1);
    assert_eq!(out.stderr.matches("trying again until it works").count(), 1, "{}", out.stderr);
}

#[test]
fn a_refusal_is_not_tried_again() {
    let fake = Fake::start(|_| problem(403, "forbidden"));
    let out = drain(&fake, "true").exits(1);
    assert_eq!(fake.seen().len(), 1);
    assert!(out.stderr.contains("forbidden: detail"), "{}", out.stderr);
}

#[test]
fn a_command_that_cannot_run_costs_no_attempt() {
    let fake = serving(vec![vec![job(1, json!({}))]], done);
    let out = run(&fake.url, &["work", "orders", "--", "/no/such/command"]).exits(127);
    assert_eq!(fake.to("/v1/release").len(), 1);
    assert!(out.stderr.contains("cannot run /no/such/command"), "{}", out.stderr);
}

#[test]
fn commands_go_side_by_side_and_no_more_than_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let file = script_file(dir.path(), "");
    let fake = serving(vec![vec![job(1, json!({})), job(2, json!({}))]], done);
    // Each waits for the other.
    let script =
        format!("touch {file}$DORMOUSE_ID; until [ -e {file}1 -a -e {file}2 ]; do :; done");
    let args =
        ["work", "orders", "--drain", "-c", "2", "--max-jobs", "2", "--", "sh", "-c", &script];
    run(&fake.url, &args).exits(0);
    assert_eq!(fake.to(RESERVE)[0].json()["max"], 2);
    assert_eq!((fake.to(RESERVE).len(), fake.to("/v1/ack").len()), (1, 2));
}
