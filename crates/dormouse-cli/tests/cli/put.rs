//! Putting jobs.

use serde_json::{Value, json};

use crate::fake::{Fake, ReceivedRequest, Response, problem};
use crate::util::{run, run_with};

const STORED: &str =
    r#"{"id":"7","code":"created","state":"delayed","due_at":"2027-01-01T08:00:00.000Z"}"#;

/// The request that the server received for these arguments.
fn sent(args: &[&str], stdin: &[u8]) -> ReceivedRequest {
    let fake = Fake::always(201, STORED);
    run_with(&fake.url, args, stdin).exits(0);
    fake.only()
}

fn check(args: &[&str], stdin: &[u8], expected: Value) {
    assert_eq!(sent(args, stdin).json(), expected, "{args:?}");
}

#[test]
fn a_body_is_read_from_the_argument_a_file_or_stdin() {
    check(&["put", "t", "hello"], b"", json!({"text": "hello"}));
    check(&["put", "t", ""], b"", json!({"text": ""}));
    check(&["put", "t"], b"from stdin\n", json!({"text": "from stdin\n"}));
    check(&["put", "t", "-"], b"from stdin", json!({"text": "from stdin"}));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), [0xff, 0x00]).unwrap();
    let path = file.path().to_str().unwrap();
    check(&["put", "t", "--file", path], b"", json!({"base64": "/wA="}));
}

#[test]
fn nothing_is_guessed_about_json() {
    check(&["put", "t", "42"], b"", json!({"text": "42"}));
    let seen = sent(&["put", "t", r#"{"a": 1.50,  "b": 12345678901234567890123}"#, "--json"], b"");
    assert_eq!(seen.body, r#"{"body":{"a": 1.50,  "b": 12345678901234567890123}}"#);
    let seen = sent(&["put", "t", "null", "--json"], b"");
    assert_eq!(seen.body, r#"{"body":null}"#);
}

#[test]
fn all_options_are_sent() {
    let args = "put a/b x --delay 30m --key 42 --on-conflict replace --key-ttl 1h --priority 5 \
                --ttr 90s --attempts-max 3 --backoff exponential:1s:2:10m --expires-after 2h \
                --group tenant-1 --header a=1 --header b=c=d";
    let args: Vec<&str> = args.split_whitespace().collect();
    let seen = sent(&args, b"");
    assert_eq!(seen.line(), "POST /v1/topics/a%2Fb/jobs");
    let backoff = json!({"exponential": {"base": 1_000, "factor": 2, "cap": 600_000}});
    let expected = json!({
        "text": "x", "delay": 1_800_000, "key": "42", "on_conflict": "replace",
        "key_ttl": 3_600_000, "priority": 5, "ttr": 90_000, "attempts_max": 3,
        "backoff": backoff, "expires_after": 7_200_000, "group": "tenant-1",
        "headers": {"a": "1", "b": "c=d"},
    });
    assert_eq!(seen.json(), expected);
    let at = json!({"text": "x", "at": 1_798_790_400_000_u64});
    check(&["put", "t", "x", "--at", "2027-01-01T09:00:00+01:00"], b"", at);
}

#[test]
fn the_answer_is_a_table_or_the_reply_of_the_server() {
    let fake = Fake::always(201, STORED);
    let done = run(&fake.url, &["put", "t", "x"]).exits(0);
    let expected = "ID  CODE     STATE    DUE_AT\n\
                    \u{20}7  created  delayed  2027-01-01T08:00:00.000Z\n";
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), (expected, ""));
    let done = run(&fake.url, &["put", "t", "x", "-o", "json"]).exits(0);
    assert_eq!(done.stdout, format!("{STORED}\n"));
}

#[test]
fn a_taken_key_is_a_conflict() {
    let fake = Fake::start(|_| problem(409, "conflict"));
    run(&fake.url, &["put", "t", "x", "--key", "k", "--on-conflict", "reject"]).exits(4);
}

/// One result per line of the request; a line with `bad` in it fails.
fn batch(seen: &ReceivedRequest) -> Response {
    let result = |line: &str| match line.contains("bad") {
        true => json!({"code": "invalid", "detail": "no good", "retryable": false}),
        false => json!({"id": "1", "code": "created", "state": "ready"}),
    };
    let results: Vec<Value> = seen.body.lines().map(result).collect();
    Response::Reply(200, json!({"results": results}).to_string())
}

#[test]
fn many_jobs_go_in_batches() {
    let fake = Fake::start(batch);
    let lines = "{\"body\": 1}\n".repeat(1_001);
    let done = run_with(&fake.url, &["put", "t", "--ndjson"], lines.as_bytes()).exits(0);
    assert_eq!(done.stdout, "1001 created, 0 duplicate, 0 replaced, 0 failed\n");
    let counts: Vec<usize> = fake.seen().iter().map(|seen| seen.body.lines().count()).collect();
    assert_eq!(counts, [500, 500, 1]);
    assert!(fake.seen()[0].head.contains("content-type: application/x-ndjson"));
}

#[test]
fn lines_that_fail_are_named() {
    let fake = Fake::start(batch);
    let lines = b"{\"body\": 1}\n\n{\"bad\": 1}\n{\"body\": 2}\n";
    let done = run_with(&fake.url, &["put", "t", "--ndjson", "-o", "json"], lines).exits(1);
    assert!(done.stderr.contains("line 3: invalid: no good"), "{}", done.stderr);
    let summary: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&summary["created"], &summary["failed"]), (&json!(2), &json!(1)));
    assert_eq!(summary["failures"][0]["line"], 3);
}

#[test]
fn a_line_the_server_cannot_read_is_left_out() {
    let fake = Fake::start(|seen| match seen.body.lines().position(|line| line == "{") {
        Some(index) => {
            let detail = format!("line {}: no JSON", index + 1);
            let problem = json!({"code": "invalid", "detail": detail, "retryable": false});
            Response::Reply(400, problem.to_string())
        }
        None => batch(seen),
    });
    let done = run_with(&fake.url, &["put", "t", "--ndjson"], b"{}\n{\n\n{\n{}\n").exits(1);
    assert_eq!(done.stdout, "2 created, 0 duplicate, 0 replaced, 2 failed\n");
    assert!(done.stderr.contains("line 2: invalid: no JSON"), "{}", done.stderr);
    assert!(done.stderr.contains("line 4: invalid: no JSON"), "{}", done.stderr);
    run_with(&fake.url, &["put", "t", "--ndjson"], b"{\n").exits(1);
}

#[test]
fn a_batch_is_sent_again_while_the_server_is_busy() {
    let busy_once =
        |seen: &ReceivedRequest| if seen.nth == 0 { problem(503, "busy") } else { batch(seen) };
    let fake = Fake::start(busy_once);
    run_with(&fake.url, &["put", "t", "--ndjson"], b"{}\n").exits(0);
    assert_eq!(fake.seen().len(), 2);

    let fake = Fake::start(|_| problem(507, "full"));
    let done = run_with(&fake.url, &["put", "t", "--ndjson"], b"{}\n{}\n").exits(6);
    assert!(done.stderr.contains("lines 1 to 2: full"), "{}", done.stderr);
}

#[test]
fn an_unconfirmed_put_names_the_job_to_look_for() {
    let lost = r#"{"code":"unconfirmed","detail":"look first","id":"7"}"#;
    let fake = Fake::always(504, lost);
    let done = run(&fake.url, &["put", "t", "x"]).exits(5);
    assert!(done.stderr.contains("if it is there, it is job 7"), "{}", done.stderr);
    let results = format!(r#"{{"results":[{STORED},{lost}]}}"#);
    let fake = Fake::always(200, &results);
    let done = run_with(&fake.url, &["put", "t", "--ndjson"], b"{}\n{}\n").exits(1);
    let line = "line 2: unconfirmed: look first; if it is there, it is job 7";
    assert!(done.stderr.contains(line), "{}", done.stderr);
}
