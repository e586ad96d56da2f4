//! The address for clients of Redis.

use std::io::{BufRead as _, BufReader, Write as _};

use crate::process::{Process, Server, command, connect};

#[test]
fn a_port_is_announced_and_the_jobs_are_the_same_over_http() {
    let server = Server::start(&["--backend", "memory", "--resp", "127.0.0.1:0"]);
    let line = server.process.line().unwrap();
    let addr = line.strip_prefix("resp listening on ").unwrap().parse().unwrap();
    let mut socket = connect(addr);
    socket.write_all(b"PUT mails hello\r\n").unwrap();
    let mut lines = BufReader::new(socket).lines().map(Result::unwrap);
    assert_eq!([lines.next().unwrap(), lines.next().unwrap()], ["$1", "1"]);
    let got = server.get("/v1/jobs/1");
    assert!(got.body.contains("\"topic\":\"mails\""), "{got:?}");
    drop(lines);
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn addresses_are_printed_in_order() {
    let args = ["serve", "--backend=memory", "--http=127.0.0.1:0", "--resp=127.0.0.1:0"];
    let process = Process::start(command(&[&args[..], &["--beanstalk=127.0.0.1:0"]].concat()));
    for name in ["http", "resp", "beanstalk"] {
        let line = process.line().unwrap();
        assert!(line.starts_with(&format!("{name} listening on ")), "{line}");
    }
}

#[test]
fn it_can_be_the_only_protocol() {
    let args = ["serve", "--backend=memory", "--http=off", "--resp=127.0.0.1:0"];
    let process = Process::start(command(&args));
    let line = process.line().unwrap();
    let addr = line.strip_prefix("resp listening on ").unwrap().parse().unwrap();
    let mut socket = connect(addr);
    socket.write_all(b"PING\r\n").unwrap();
    let mut answer = String::new();
    BufReader::new(socket).read_line(&mut answer).unwrap();
    assert_eq!(answer, "+PONG\r\n");
}
