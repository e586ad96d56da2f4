//! `dormouse bench`, against the real server and against one that refuses.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// A server of its own, with nothing in it; ends with the test.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Server {
        let mut child = dormouse()
            .args(["serve", "--backend", "memory", "--resp", "off", "--http", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.next().expect("it prints its address").unwrap();
        let url = ready.strip_prefix("http listening on ").unwrap().to_owned();
        Server { child, url }
    }

    fn stats(&self) -> Value {
        let output = dormouse().args(["stats", "--url", &self.url, "-o", "json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn dormouse() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dormouse"));
    for name in ["DORMOUSE_URL", "DORMOUSE_TOKEN", "DORMOUSE_TOKEN_FILE"] {
        command.env_remove(name);
    }
    command
}

/// A short run that prints JSON.
fn bench(url: &str) -> Command {
    let mut command = dormouse();
    command.args(["bench", "--url", url, "-o", "json", "--connections", "4"]);
    command
}

fn report(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.lines().count(), 1, "{output:?}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_phase_is_measured_and_nothing_is_left() {
    let server = Server::start();
    let output = bench(&server.url).args(["--seconds", "1", "--rate", "100"]).output().unwrap();
    let report = report(&output);
    assert!(output.status.success(), "{output:?}");
    assert_eq!((&report["bench"], &report["errors"]), (&"http".into(), &0.into()), "{report}");
    for phase in ["put", "ndjson", "consume", "ack_reserve", "late"] {
        for figure in ["jobs", "per_s", "p50_us", "p99_us", "max_us"] {
            let value = report[format!("{phase}_{figure}")].as_u64();
            assert!(value.is_some_and(|value| value > 0), "{phase}_{figure}: {report}");
        }
    }
    assert_eq!((&report["late_early"], &report["late_missing"]), (&0.into(), &0.into()));
    let stats = server.stats();
    for state in ["delayed", "ready", "leased", "dead"] {
        assert_eq!(stats[state], 0, "{stats}");
    }
}

#[test]
fn one_phase_is_a_table_of_one_line() {
    let server = Server::start();
    let mut command = dormouse();
    command.args(["bench", "--url", &server.url, "--only", "ndjson", "--keep"]);
    let output = command.args(["--seconds", "1", "--batch", "10"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8_lossy(&output.stdout);
    let names: Vec<_> = table.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["PHASE", "ndjson"], "{table}");
    assert!(output.stderr.is_empty(), "no terminal, no progress: {output:?}");
    let stats = server.stats();
    assert!(stats["ready"].as_u64().is_some_and(|ready| ready > 0), "{stats}");
}

#[test]
fn an_interrupt_prints_the_measurements() {
    let server = Server::start();
    let mut command = bench(&server.url);
    command.args(["--seconds", "60"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // More than are under way at once: some have been answered.
    while server.stats()["delayed"].as_u64().unwrap() < 20 {
        thread::sleep(Duration::from_millis(20));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let report = report(&output);
    assert_eq!(report["interrupted"], true, "{report}");
    assert!(report["put_jobs"].as_u64().is_some_and(|jobs| jobs > 0), "{report}");
    assert!(report.get("ndjson_jobs").is_none(), "{report}");
}

#[test]
fn a_missing_server_is_reported_before_measuring() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = bench(&format!("http://127.0.0.1:{port}")).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let output = bench("https://127.0.0.1").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn refusals_are_counted_and_the_first_is_shown() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || refuse(stream.unwrap()));
        }
    });
    let output = bench(&url).args(["--seconds", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = report(&output);
    assert_eq!(report["first_error"], "507 full: no room", "{report}");
    assert!(report["errors"].as_u64().is_some_and(|errors| errors >= 4), "{report}");
    assert_eq!(report["put_jobs"], 0, "{report}");
    assert!(report.get("ndjson_jobs").is_none(), "it is of no use to go on: {report}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the first: 507 full: no room"));
}

/// Knows no topic and takes no job.
fn refuse(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
            let line = head.lines().last().unwrap_or_default();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        let (status, code) =
            if head.starts_with("POST") { (507, "full") } else { (404, "not_found") };
        let body = format!(r#"{{"status":{status},"code":"{code}","detail":"no room"}}"#);
        let length = body.len();
        let answer = format!("HTTP/1.1 {status} No\r\ncontent-length: {length}\r\n\r\n{body}");
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
