//! One job has one due time, whoever tells it, by real clocks.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use serde_json::Value;

use crate::process::{Server, connect};

/// Jobs that are looked at: the parts of a millisecond at which they are must vary.
const JOBS: usize = 200;

/// The first number behind this name in an answer of RESP.
fn due_at_by_resp(socket: &mut BufReader<TcpStream>, id: &str) -> i64 {
    socket.get_mut().write_all(format!("GET {id}\r\n").as_bytes()).unwrap();
    let mut lines = socket.by_ref().lines().map(Result::unwrap);
    lines.find(|line| line == "due_at").unwrap();
    let due_at = lines.next().unwrap()[1..].parse().unwrap();
    // The rest of the answer ends with the body.
    lines.find(|line| line == "x").unwrap();
    due_at
}

fn ms(instant: &Value) -> i64 {
    instant.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

fn check(args: &[&str]) {
    let server = Server::start(&[args, &["--resp", "127.0.0.1:0"]].concat());
    let line = server.process.line().unwrap();
    let addr: SocketAddr = line.strip_prefix("resp listening on ").unwrap().parse().unwrap();
    let mut resp = BufReader::new(connect(addr));
    let json = |body: &str| serde_json::from_str::<Value>(body).unwrap();
    let mut told = std::collections::BTreeMap::new();
    for _ in 0..JOBS {
        let put = json(&server.post("/v1/topics/t/jobs", r#"{"text": "x", "delay": 5}"#).body);
        let id = put["id"].as_str().unwrap();
        let due_at = ms(&put["due_at"]);
        let got = json(&server.get(&format!("/v1/jobs/{id}")).body);
        assert_eq!(ms(&got["due_at"]), due_at, "get of {id}");
        assert_eq!(due_at_by_resp(&mut resp, id), due_at, "GET of {id}");
        told.insert(id.to_owned(), due_at);
    }
    for state in ["delayed", "ready"] {
        let page = json(&server.get(&format!("/v1/topics/t/jobs?state={state}&limit=1000")).body);
        for job in page["jobs"].as_array().unwrap() {
            assert_eq!(ms(&job["due_at"]), told[job["id"].as_str().unwrap()], "list");
        }
    }
    while !told.is_empty() {
        let taken = server.post("/v1/topics/t/reserve", r#"{"max": 50, "wait": "10s"}"#);
        for job in json(&taken.body)["jobs"].as_array().unwrap() {
            let due_at = told.remove(job["id"].as_str().unwrap()).unwrap();
            assert_eq!(ms(&job["due_at"]), due_at, "reserve");
        }
    }
}

#[test]
fn in_memory() {
    check(&["--backend", "memory"]);
}

#[test]
fn on_disk() {
    let dir = tempfile::tempdir().unwrap();
    check(&["--data", dir.path().to_str().unwrap()]);
}

#[test]
fn on_redis() {
    let redis = RedisServer::start(RedisConfig::default());
    check(&["--backend", "redis", "--redis-url", &redis.url()]);
}
