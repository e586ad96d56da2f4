//! A clock that clients move.

use std::net::SocketAddr;
use std::thread;

use serde_json::{Value, json};

use crate::process::{Server, request};

const MEMORY: [&str; 2] = ["--backend", "memory"];

fn start() -> Server {
    Server::start(&[&MEMORY[..], &["--test-clock"]].concat())
}

fn call(server: SocketAddr, method: &str, path: &str, body: &Value) -> Value {
    let reply = request(server, method, path, &[], &body.to_string());
    assert!((200..300).contains(&reply.status), "{path}: {reply:?}");
    serde_json::from_str(&reply.body).unwrap()
}

fn post(server: SocketAddr, path: &str, body: &Value) -> Value {
    call(server, "POST", path, body)
}

/// Advances and tells the time, in ms.
fn advance(server: SocketAddr, by: &str) -> i64 {
    ms(&post(server, "/v1/test/advance", &json!({"by": by}))["now"])
}

fn ms(instant: &Value) -> i64 {
    instant.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// Returns when so many consumers wait for jobs of a topic.
fn await_waiters(server: SocketAddr, count: u64) {
    while request(server, "GET", "/v1/topics/t", &[], "").status == 404
        || call(server, "GET", "/v1/topics/t", &Value::Null)["waiters"] != count
    {
        thread::yield_now();
    }
}

#[test]
fn time_stands_still_until_it_is_advanced() {
    let server = start();
    let begin = advance(server.addr, "0s");
    let put = post(server.addr, "/v1/topics/t/jobs", &json!({"text": "x", "delay": "30m"}));
    assert_eq!(ms(&put["due_at"]), begin + 1_800_000);
    let reserve = || post(server.addr, "/v1/topics/t/reserve", &json!({}));
    assert_eq!(advance(server.addr, "29m 59s 999ms"), begin + 1_799_999);
    assert_eq!(reserve()["jobs"], json!([]));
    assert_eq!(advance(server.addr, "1ms"), begin + 1_800_000);
    let job = &reserve()["jobs"][0];
    assert_eq!((&job["late_ms"], ms(&job["due_at"])), (&json!(0), begin + 1_800_000));
    assert_eq!(advance(server.addr, "0s"), begin + 1_800_000, "real time has passed");
}

#[test]
fn who_waits_gets_its_job_at_its_very_time_and_leases_end_in_order() {
    let server = start();
    let addr = server.addr;
    let begin = advance(addr, "0s");
    let job = json!({"text": "x", "delay": "20s", "ttr": "10s", "attempts_max": 2});
    post(addr, "/v1/topics/t/jobs", &job);
    // Two consumers: one gets the first attempt, the other what its lease leaves.
    let waiting =
        || thread::spawn(move || post(addr, "/v1/topics/t/reserve", &json!({"wait": "60s"})));
    let both = [waiting(), waiting()];
    await_waiters(addr, 2);
    advance(addr, "1h");
    let mut taken = both.map(|consumer| consumer.join().unwrap()["jobs"][0].clone());
    taken.sort_by_key(|job| job["attempt"].as_u64());
    for (job, (attempt, at_ms)) in taken.iter().zip([(1, 20_000), (2, 30_000)]) {
        assert_eq!((&job["attempt"], &job["late_ms"]), (&json!(attempt), &json!(0)), "{job}");
        assert_eq!(ms(&job["due_at"]), begin + at_ms);
        assert_eq!(ms(&job["expires_at"]), begin + at_ms + 10_000);
    }
    let path = format!("/v1/jobs/{}", taken[0]["id"].as_str().unwrap());
    let view = call(addr, "GET", &path, &Value::Null);
    assert_eq!((&view["state"], ms(&view["due_at"])), (&json!("dead"), begin + 40_000));
}

#[test]
fn a_wait_ends_by_this_clock() {
    let server = start();
    let addr = server.addr;
    let waiting =
        thread::spawn(move || post(addr, "/v1/topics/t/reserve", &json!({"wait": "30s"})));
    await_waiters(addr, 1);
    advance(addr, "29s");
    await_waiters(addr, 1);
    advance(addr, "1s");
    assert_eq!(waiting.join().unwrap()["jobs"], json!([]));
}

#[test]
fn a_month_is_advanced_at_once() {
    let server = start();
    let begin = advance(server.addr, "0s");
    for days in 1..=30 {
        let job = json!({"text": "x", "delay": format!("{days}d")});
        post(server.addr, "/v1/topics/t/jobs", &job);
    }
    assert_eq!(advance(server.addr, "30d"), begin + 30 * 86_400_000);
    let jobs = post(server.addr, "/v1/topics/t/reserve", &json!({"max": 100}));
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 30);
}

#[test]
fn a_wrong_span_moves_nothing() {
    let server = start();
    let begin = advance(server.addr, "0s");
    for body in [r#"{"by": "-1s"}"#, r#"{"by": "40000d"}"#, "{}", r#"{"by": "soon"}"#] {
        let reply = server.post("/v1/test/advance", body);
        assert!((400..500).contains(&reply.status), "{body}: {reply:?}");
    }
    assert_eq!(advance(server.addr, "0s"), begin);
}

#[test]
fn without_the_flag_there_is_no_such_path() {
    let server = Server::start(&MEMORY);
    assert_eq!(server.post("/v1/test/advance", r#"{"by": "1s"}"#).status, 404);
}
