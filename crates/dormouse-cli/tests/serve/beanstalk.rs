//! The address for clients of beanstalkd.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use rustix::process::Signal;

use crate::process::{Process, Server, TIMEOUT, command};

const PUT: &str = "put 0 0 60 5\r\nhello\r\n";

/// One line for one command.
fn say(mut socket: impl Read + Write, text: &str) -> String {
    socket.write_all(text.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line).unwrap();
    line
}

#[test]
fn a_port_is_announced_and_the_jobs_are_the_same_over_http() {
    let server = Server::start(&["--backend", "memory", "--beanstalk", "127.0.0.1:0"]);
    let line = server.process.line().unwrap();
    let addr = line.strip_prefix("beanstalk listening on ").unwrap();
    let socket = TcpStream::connect(addr).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    assert_eq!(say(&socket, PUT), "INSERTED 1\r\n");
    let got = server.get("/v1/jobs/1");
    assert!(got.body.contains("\"topic\":\"default\""), "{got:?}");
    drop(socket);
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_socket_in_the_file_system_serves_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.sock");
    let place = format!("unix:{}", path.display());
    let args = ["serve", "--backend", "memory", "--http", "off", "--resp", "off"];
    let process = Process::start(command(&[&args[..], &["--beanstalk", &place]].concat()));
    assert_eq!(process.line(), Some(format!("beanstalk listening on {place}")));
    let connect = || {
        let socket = UnixStream::connect(&path).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        socket
    };
    assert_eq!(say(connect(), PUT), "INSERTED 1\r\n");
    process.signal(Signal::USR1);
    process.wait_for("puts of beanstalkd's clients are refused");
    assert_eq!(say(connect(), PUT), "DRAINING\r\n");
    process.signal(Signal::TERM);
    assert_eq!(process.wait().code, Some(0));
}

#[test]
fn the_largest_body_can_be_set() {
    let server = Server::start(&[
        "--backend=memory",
        "--beanstalk=127.0.0.1:0",
        "--beanstalk-job-bytes-max=4",
    ]);
    let line = server.process.line().unwrap();
    let addr = line.strip_prefix("beanstalk listening on ").unwrap();
    assert_eq!(say(TcpStream::connect(addr).unwrap(), PUT), "JOB_TOO_BIG\r\n");
}
