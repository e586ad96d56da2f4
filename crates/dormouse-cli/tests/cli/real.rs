//! The command line and the real server, from end to end.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::util::{Done, dormouse, finish, run, run_with, signal};

/// A server with a data directory of its own; ends with the test.
struct Server {
    child: Child,
    url: String,
    dir: tempfile::TempDir,
}

impl Server {
    fn start() -> Server {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let data = data.to_str().unwrap();
        let args = ["serve", "--http", "127.0.0.1:0", "--resp", "off", "--data", data];
        let mut command = dormouse("", &args);
        command.env_remove("DORMOUSE_URL").stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().split(' ').next_back().unwrap().to_owned();
        Server { child, url, dir }
    }

    fn run(&self, args: &str) -> Done {
        run(&self.url, &args.split_whitespace().collect::<Vec<_>>())
    }

    /// Succeeds, and what it printed as JSON.
    fn json(&self, args: &str) -> Value {
        let out = self.run(&format!("-o json {args}")).exits(0);
        serde_json::from_str(&out.stdout).unwrap_or_else(|_| panic!("{out:?}"))
    }

    /// Works on a topic until nothing is ready.
    fn drain(&self, topic: &str, script: &str) -> Done {
        run(&self.url, &["work", topic, "--drain", "--", "sh", "-c", script]).exits(0)
    }

    /// Ends it; its directory stays as long as what is given back.
    fn stop(mut self) -> Server {
        signal(&self.child, Signal::TERM);
        assert!(self.child.wait().unwrap().success());
        self
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_order_that_is_not_paid_in_time_is_cancelled() {
    let server = Server::start();
    server.run("health").exits(0);
    let put = server.json("put orders {\"order\":42} --json --delay 30m --key 42");
    assert_eq!((&put["code"], &put["state"]), (&"created".into(), &"delayed".into()));
    let again = server.json("put orders {\"order\":42} --json --delay 30m --key 42");
    assert_eq!((&again["code"], &again["id"]), (&"duplicate".into(), &put["id"]));
    server.run("put orders x --key 42 --on-conflict reject").exits(4);
    server.run("reserve orders").exits(3);

    // This one is paid.
    server.json("put orders {\"order\":43} --json --delay 30m --key 43");
    let cancelled = server.json("cancel --topic orders --key 43");
    assert_eq!(cancelled["was"], "delayed");
    server.run("cancel --topic orders --key 43").exits(3);

    // This one is not, and its time comes.
    let moved = server.json("reschedule --topic orders --key 42 --delay 200ms");
    assert_eq!(moved["id"], put["id"]);
    let taken = server.json("reserve orders --wait 30s");
    let job = &taken["jobs"][0];
    assert_eq!((&job["body"]["order"], &job["attempt"]), (&42.into(), &1.into()));
    let token = job["token"].as_str().unwrap();
    server.run(&format!("extend {token} --ttr 5m")).exits(0);
    server.run(&format!("nack {token} --delay 0s --error busy")).exits(0);
    server.run(&format!("ack {token}")).exits(4);

    let out = server.drain("orders", "cat; echo \" $DORMOUSE_KEY $DORMOUSE_ATTEMPT\"");
    assert_eq!(out.stdout, "{\"order\":42} 42 2\n");
    server.run("get --topic orders --key 42").exits(3);
    let stats = server.json("stats");
    assert_eq!((&stats["totals"]["puts"], &stats["totals"]["acks"]), (&2.into(), &1.into()));
    server.stop();
}

#[test]
fn jobs_that_fail_die_and_are_revived() {
    let server = Server::start();
    let id = server.json("put mail hello --attempts-max 1")["id"].as_str().unwrap().to_owned();
    server.drain("mail", "echo no such address >&2; exit 1");
    let dead = server.json("dead ls mail");
    assert_eq!(dead["jobs"][0]["error"], "exit code 1: no such address");
    assert_eq!(server.json(&format!("get {id}"))["state"], "dead");
    assert_eq!(server.json("dead revive mail --all")["count"], 1);
    assert_eq!(server.json(&format!("kill {id} --error enough"))["code"], "done");
    assert_eq!(server.json(&format!("revive {id}"))["was"], "dead");
    server.run(&format!("revive {id}")).exits(4);
    server.drain("mail", "exit 1");
    assert_eq!(server.json("dead rm mail --all --yes")["count"], 1);
    server.run(&format!("get {id}")).exits(3);
}

#[test]
fn topics_are_set_paused_listed_and_purged() {
    let server = Server::start();
    server.run("topic set sms --ttr 5m --attempts-max 3 --backoff fixed:10s").exits(0);
    server.run("topic set sms --dead-max 9").exits(0);
    let settings = server.json("topic show sms")["settings"].clone();
    assert_eq!((&settings["ttr_ms"], &settings["dead_max"]), (&300_000.into(), &9.into()));
    assert_eq!(settings["backoff"]["fixed"], 10_000);

    let lines = "{\"text\": \"hi\", \"delay\": \"30m\"}\n".repeat(1_200);
    let out = run_with(&server.url, &["put", "sms", "--ndjson"], lines.as_bytes()).exits(0);
    assert_eq!(out.stdout, "1200 created, 0 duplicate, 0 replaced, 0 failed\n");
    let bad = b"{\"text\": \"hi\"}\n{\"dealy\": 1}\n";
    let out = run_with(&server.url, &["put", "sms", "--ndjson"], bad).exits(1);
    assert!(out.stderr.contains("line 2: invalid"), "{}", out.stderr);

    let all = server.json("ls sms --state delayed --all --no-bodies");
    assert_eq!(all["jobs"].as_array().unwrap().len(), 1_200);
    let forecast = server.json("forecast sms --step 1h");
    assert_eq!(forecast["counts"][0], 1_200);
    let out = server.run("ls sms --limit 3").exits(0);
    assert!(out.stderr.contains("--state delayed --cursor"), "{}", out.stderr);

    server.run("pause sms").exits(0);
    server.run("reserve sms").exits(3);
    assert!(server.run("topics").exits(0).stdout.contains("paused"));
    server.run("resume sms").exits(0);
    assert_eq!(server.json("kick sms --max 2")["count"], 2);
    assert_eq!(server.json("reserve sms --max 10")["jobs"].as_array().unwrap().len(), 3);
    assert_eq!(server.json("purge sms --yes")["count"], 1_198);
}

#[test]
fn bytes_are_returned_unchanged() {
    let server = Server::start();
    let file = server.dir.path().join("bytes");
    let bytes: Vec<u8> = (0..=255).collect();
    std::fs::write(&file, &bytes).unwrap();
    let put = server.json(&format!("put a/b --file {} --header type=x", file.display()));
    let id = put["id"].as_str().unwrap();
    let copy = server.dir.path().join("copy");
    let mut command = dormouse(&server.url, &["get", id, "--body"]);
    let status = command.stdout(std::fs::File::create(&copy).unwrap()).status().unwrap();
    assert!(status.success());
    assert_eq!(std::fs::read(&copy).unwrap(), bytes);
    std::fs::remove_file(&copy).unwrap();
    let script = format!("cat > {}; echo $DORMOUSE_HEADER_TYPE", copy.display());
    assert_eq!(server.drain("a/b", &script).stdout, "x\n");
    assert_eq!(std::fs::read(&copy).unwrap(), bytes);
}

#[test]
fn a_lock_excludes_others_and_ends_with_its_command() {
    let server = Server::start();
    let inner = format!(
        "{} lock nightly -- echo both; echo $?; echo $DORMOUSE_LOCK_FENCE",
        env!("CARGO_BIN_EXE_dormouse")
    );
    let out = run(&server.url, &["lock", "nightly", "--ttl", "1m", "--", "sh", "-c", &inner]);
    let out = out.exits(0);
    let lines: Vec<&str> = out.stdout.lines().collect();
    assert_eq!(lines[0], "4", "{out:?}");
    let fence: u64 = lines[1].parse().unwrap();
    let next = server.json("lock acquire nightly --owner me");
    assert!(next["fence"].as_str().unwrap().parse::<u64>().unwrap() > fence);
    server.run("lock release nightly --owner me").exits(0);
}

#[test]
fn a_store_in_use_is_not_verified() {
    let server = Server::start();
    let data = server.dir.path().join("data").to_str().unwrap().to_owned();
    let out = run("", &["verify", &data]).exits(1);
    assert!(out.stderr.contains("in use"), "{}", out.stderr);
    let server = server.stop();
    let out = run("", &["verify", &data]).exits(0);
    assert!(out.stdout.contains("sound    yes"), "{}", out.stdout);
    drop(server);
}

#[test]
fn a_worker_that_waits_gets_a_job_at_once_and_leaves_none_leased() {
    let server = Server::start();
    let args = ["work", "orders", "--max-jobs", "1", "--", "sh", "-c", "echo ran"];
    let worker = dormouse(&server.url, &args).spawn().unwrap();
    server.run("put orders x").exits(0);
    assert_eq!(finish(worker).exits(0).stdout, "ran\n");

    // One that is stopped while it waits takes nothing with it.
    let args = ["work", "orders", "--", "true"];
    let worker = dormouse(&server.url, &args).spawn().unwrap();
    while server.json("stats")["waiters"] != 1 {}
    signal(&worker, Signal::TERM);
    finish(worker).exits(0);
    server.run("put orders y").exits(0);
    assert_eq!(server.json("reserve orders")["jobs"][0]["attempt"], 1);
}

#[test]
fn events_are_printed_as_they_happen() {
    let server = Server::start();
    let mut tail = dormouse(&server.url, &["-o", "json", "tail", "orders"]).spawn().unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    // The stream may begin late: put until it shows an event.
    let first = std::thread::spawn(move || lines.next().unwrap().unwrap());
    while !first.is_finished() {
        server.run("put orders x").exits(0);
    }
    let event: Value = serde_json::from_str(&first.join().unwrap()).unwrap();
    assert_eq!(event["data"]["topic"], "orders", "{event}");
    tail.kill().unwrap();
    tail.wait().unwrap();
}

#[test]
fn a_backup_is_sound() {
    let server = Server::start();
    server.run("put orders x").exits(0);
    let out = server.run("backup monday").exits(0);
    let path = out.stdout.trim().to_owned();
    let out = run("", &["verify", &path]).exits(0);
    assert!(out.stdout.contains("sound    yes"), "{}", out.stdout);
    let data = server.dir.path().join("data").to_str().unwrap().to_owned();
    let out = run("", &["verify", &data]).exits(1);
    assert!(out.stderr.contains("in use"), "{}", out.stderr);
}
