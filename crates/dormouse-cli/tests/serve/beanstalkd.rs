//! `dormouse beanstalkd`, started as one starts beanstalkd.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use rustix::process::Signal;

use crate::process::{Process, TIMEOUT, clean, command, run};

const PUT: &str = "put 7 0 60 5\r\nhello\r\n";

/// The reply to one command: a line, and the body that it announces.
fn say(mut socket: impl Read + Write, text: &str) -> String {
    socket.write_all(text.as_bytes()).unwrap();
    let mut input = BufReader::new(socket);
    let mut reply = String::new();
    input.read_line(&mut reply).unwrap();
    if ["OK ", "RESERVED ", "FOUND "].iter().any(|word| reply.starts_with(word)) {
        let length: usize = reply.split_whitespace().last().unwrap().parse().unwrap();
        let mut body = vec![0; length + 2];
        input.read_exact(&mut body).unwrap();
        reply.push_str(std::str::from_utf8(&body).unwrap());
    }
    reply
}

/// A server on a free port, which it logs with -V.
fn start(args: &[&str]) -> (Process, TcpStream) {
    listen(command(&[&["beanstalkd", "-V", "-l", "127.0.0.1", "-p", "0"], args].concat()))
}

fn listen(command: Command) -> (Process, TcpStream) {
    let process = Process::start(command);
    let line = process.wait_for("listening on ");
    let (_, addr) = line.split_once("listening on ").unwrap();
    let socket = TcpStream::connect(addr.trim()).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    (process, socket)
}

fn start_unix(path: &Path) -> Process {
    let place = format!("unix:{}", path.display());
    let process = Process::start(command(&["beanstalkd", "-V", "-l", &place]));
    process.wait_for(&place);
    process
}

fn stop(process: Process) {
    process.signal(Signal::TERM);
    let ended = process.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn it_prints_its_version_and_its_options() {
    let version = run(&["beanstalkd", "-v"]);
    assert_eq!(version.code, Some(0), "{version:?}");
    assert!(version.stdout.contains("beanstalkd 1.13 (dormouse "), "{version:?}");
    let help = run(&["beanstalkd", "-h"]);
    assert!(help.stdout.contains("-b <DIR>"), "{help:?}");
    assert_eq!(run(&["beanstalkd", "-p", "many"]).code, Some(2));
}

#[test]
fn it_says_nothing_unless_it_is_asked_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let process =
        Process::start(command(&["beanstalkd", "-l", &format!("unix:{}", path.display())]));
    let deadline = Instant::now() + TIMEOUT;
    let socket = loop {
        match UnixStream::connect(&path) {
            Ok(socket) => break socket,
            Err(error) => assert!(Instant::now() < deadline, "nobody listens: {error}"),
        }
        std::thread::yield_now();
    };
    assert_eq!(say(&socket, PUT), "INSERTED 1\r\n");
    process.signal(Signal::TERM);
    let ended = process.wait();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""), "{ended:?}");
}

#[test]
fn the_name_alone_does_it() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("beanstalkd");
    symlink(env!("CARGO_BIN_EXE_dormouse"), &program).unwrap();
    let args = ["-V", "-l", "127.0.0.1", "-p", "0", "-z", "4"];
    let (process, socket) = listen(clean(Command::new(&program), &args));
    assert_eq!(say(&socket, PUT), "JOB_TOO_BIG\r\n");
    stop(process);
}

#[test]
fn usr1_refuses_puts_and_nothing_else() {
    let (process, socket) = start(&[]);
    assert_eq!(say(&socket, PUT), "INSERTED 1\r\n");
    process.signal(Signal::USR1);
    let deadline = Instant::now() + TIMEOUT;
    while !say(&socket, "stats\r\n").contains("\ndraining: true\n") {
        assert!(Instant::now() < deadline, "it goes on as before");
    }
    assert_eq!(say(&socket, PUT), "DRAINING\r\n");
    assert_eq!(say(&socket, "delete 1\r\n"), "DELETED\r\n");
    stop(process);
}

#[test]
fn a_stop_answers_waiting_reserves() {
    for signal in [Signal::TERM, Signal::INT] {
        let (process, mut waiting) = start(&[]);
        let addr = waiting.peer_addr().unwrap();
        waiting.write_all(b"reserve\r\n").unwrap();
        let other = TcpStream::connect(addr).unwrap();
        other.set_read_timeout(Some(TIMEOUT)).unwrap();
        while !say(&other, "stats\r\n").contains("\ncurrent-waiting: 1\n") {}
        process.signal(signal);
        assert_eq!(process.wait().code, Some(0));
        let mut heard = String::new();
        waiting.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "TIMED_OUT\r\n");
    }
}

#[test]
fn only_an_unused_socket_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    drop(UnixListener::bind(&path).unwrap());
    let process = start_unix(&path);
    assert_eq!(say(UnixStream::connect(&path).unwrap(), PUT), "INSERTED 1\r\n");

    let place = format!("unix:{}", path.display());
    let second = run(&["beanstalkd", "-l", &place]);
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.stderr.contains(&*path.to_string_lossy()), "{second:?}");
    assert_eq!(say(UnixStream::connect(&path).unwrap(), "delete 1\r\n"), "DELETED\r\n");
    stop(process);

    let file = dir.path().join("file");
    fs::write(&file, "precious").unwrap();
    let refused = run(&["beanstalkd", "-l", &format!("unix:{}", file.display())]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("not a socket"), "{refused:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn a_directory_keeps_jobs_and_their_counters() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("store");
    let args = ["-b", data.to_str().unwrap()];
    let (process, socket) = start(&args);
    for (said, heard) in [
        (PUT, "INSERTED 1\r\n"),
        (PUT, "INSERTED 2\r\n"),
        ("reserve\r\n", "RESERVED 1 5\r\nhello\r\n"),
        ("release 1 8 0\r\n", "RELEASED\r\n"),
        ("reserve-job 1\r\n", "RESERVED 1 5\r\nhello\r\n"),
        ("bury 1 9\r\n", "BURIED\r\n"),
        ("kick-job 1\r\n", "KICKED\r\n"),
        ("reserve-job 1\r\n", "RESERVED 1 5\r\nhello\r\n"),
        ("bury 1 10\r\n", "BURIED\r\n"),
    ] {
        assert_eq!(say(&socket, said), heard, "{said}");
    }
    stop(process);

    let (process, socket) = start(&args);
    assert!(say(&socket, "stats\r\n").contains("\ntotal-jobs: 2\n"));
    let stats = say(&socket, "stats-job 1\r\n");
    assert!(stats.contains("state: buried\npri: 10\n"), "{stats}");
    let counts = "reserves: 3\ntimeouts: 0\nreleases: 1\nburies: 2\nkicks: 1\n";
    assert!(stats.contains(counts), "{stats}");
    assert_eq!(say(&socket, "peek-buried\r\n"), "FOUND 1 5\r\nhello\r\n");
    assert_eq!(say(&socket, "reserve\r\n"), "RESERVED 2 5\r\nhello\r\n");
    assert_eq!(say(&socket, PUT), "INSERTED 3\r\n");
    stop(process);
}
