//! How it starts, and what it says then.

use std::os::unix::net::UnixDatagram;

use rustix::process::Signal;

use crate::process::{Process, Server, TIMEOUT, clean, command};

#[test]
fn it_prints_its_address_when_it_is_ready() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("deep/data");
    let server = Server::start(&["--data", data.to_str().unwrap()]);
    assert!(server.addr.ip().is_loopback());
    let put = server.post("/v1/topics/a/jobs", "{\"body\": 1}");
    assert_eq!(put.status, 201, "{put:?}");
    let ended = server.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // Scripts read stdout: the one line was all.
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.contains(&format!("data = \"{}\" (--data)", data.display())));
    assert!(!ended.stderr.contains("durability ="), "what is usual is not mentioned");
}

#[test]
fn options_are_read_from_the_environment_too() {
    let mut command = command(&["serve"]);
    command.env("DORMOUSE_BACKEND", "memory").env("DORMOUSE_HTTP", "127.0.0.1:0");
    command.env("DORMOUSE_RESP", "off");
    let ended = Server::ready(command).stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("backend = \"memory\" (DORMOUSE_BACKEND)"), "{ended:?}");
    assert!(ended.stderr.contains("all jobs are gone"), "{ended:?}");
}

/// All lines of its log, each of which must be an object with these fields.
fn json_lines(stderr: &str) -> Vec<serde_json::Value> {
    let lines = stderr.lines().map(|line| {
        let read: serde_json::Value = serde_json::from_str(line).expect(line);
        let names: Vec<_> = read.as_object().expect(line).keys().cloned().collect();
        assert_eq!(names, ["fields", "level", "message", "target", "ts"], "{line}");
        read
    });
    lines.collect()
}

#[test]
fn its_log_is_lines_of_json_if_that_is_wanted() {
    let server = Server::start(&["--backend", "memory", "--log-format", "json"]);
    server.process.signal(Signal::HUP);
    let ended = server.stop();
    assert_eq!((ended.code, &ended.stdout[..]), (Some(0), ""), "{ended:?}");
    let lines = json_lines(&ended.stderr);
    let has = |level: &str, text: &str| {
        let mut found = lines.iter().filter(|line| line["level"] == level);
        found.any(|line| line["message"].as_str().is_some_and(|message| message.contains(text)))
    };
    assert!(has("info", "log_format = \"json\" (--log-format)"), "{ended:?}");
    assert!(has("warn", "all jobs are gone"), "{ended:?}");
    // What keeps it from starting is told in the same way, by the environment, too.
    let mut taken = command(&["serve", "--data", "/proc/no-such-place", "--http", "127.0.0.1:0"]);
    taken.env("DORMOUSE_LOG_FORMAT", "json").env("DORMOUSE_RESP", "off");
    let ended = Process::start(taken).wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let lines = json_lines(&ended.stderr);
    assert_eq!(lines.last().map(|line| &line["level"]), Some(&"error".into()), "{ended:?}");
}

#[test]
fn others_are_served_if_that_is_wanted() {
    let args = ["--backend", "memory", "--http", "0.0.0.0:0", "--insecure"];
    let ended = Server::start(&args).stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("everybody who reaches this server"), "{ended:?}");
}

#[test]
fn the_service_manager_is_notified() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let notified = || {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let args = ["serve", "--backend", "memory", "--http", "127.0.0.1:0", "--resp", "off"];
    let mut command = command(&args);
    command.env("NOTIFY_SOCKET", &path);
    let server = Server::ready(command);
    assert_eq!(notified(), "READY=1");
    assert_eq!(server.stop().code, Some(0));
    assert_eq!(notified(), "STOPPING=1");
}

#[test]
fn a_stdout_that_takes_nothing_does_not_keep_it_from_serving() {
    let script = "exec \"$0\" serve --backend memory --resp off --http 127.0.0.1:0 > /dev/full";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_dormouse")]);
    let process = Process::start(clean(shell, &[]));
    process.wait_for("cannot write to stdout");
    process.signal(Signal::TERM);
    let ended = process.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
