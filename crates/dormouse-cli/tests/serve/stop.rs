//! How it stops.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::{Server, connect, read_reply, request};

#[test]
fn answered_operations_survive_a_restart() {
    for signal in [Signal::TERM, Signal::INT] {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().to_str().unwrap();
        let server = Server::start(&["--data", data]);
        let put = server.post("/v1/topics/a/jobs", "{\"body\": {\"order\": 42}}");
        assert_eq!(put.status, 201, "{put:?}");
        server.process.signal(signal);
        let ended = server.process.wait();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("stopped"), "{ended:?}");

        let server = Server::start(&["--data", data]);
        let reserved = server.post("/v1/topics/a/reserve", "");
        assert_eq!(reserved.status, 200, "{reserved:?}");
        assert!(reserved.body.contains("\"body\":{\"order\": 42}"), "{reserved:?}");
        assert_eq!(server.stop().code, Some(0));
    }
}

#[test]
fn a_stop_answers_waiting_requests() {
    // A drain longer than the test waits: the reply must not be the end of the drain.
    let server = Server::start(&["--backend", "memory", "--drain", "60s"]);
    let mut socket = connect(server.addr);
    let body = "{\"wait\": \"60s\"}";
    let head = format!(
        "POST /v1/topics/a/reserve HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n",
        server.addr,
        body.len()
    );
    socket.write_all(head.as_bytes()).unwrap();
    socket.write_all(body.as_bytes()).unwrap();
    while !request(server.addr, "GET", "/v1/stats", &[], "").body.contains(r#""waiters":1"#) {}
    assert_eq!(server.stop().code, Some(0));
    let reply = read_reply(socket);
    assert_eq!((reply.status, reply.body.as_str()), (200, "{\"jobs\":[]}"));
}

/// A request that does not come to its end.
fn begin_request(server: &Server) -> TcpStream {
    let mut socket = connect(server.addr);
    let head = format!(
        "POST /v1/topics/a/jobs HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\n\
         Expect: 100-continue\r\n\r\n{{",
        server.addr
    );
    socket.write_all(head.as_bytes()).unwrap();
    // It asks for the rest: so it is at work on the request.
    let mut asked = [0; 12];
    socket.read_exact(&mut asked).unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100");
    socket
}

#[test]
fn a_request_that_does_not_end_is_cut_off() {
    let server = Server::start(&["--backend", "memory", "--drain", "200ms"]);
    let mut socket = begin_request(&server);
    let start = Instant::now();
    assert_eq!(server.stop().code, Some(0));
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(200), "{took:?}");
    // Not answered, as it would be at the deadline for its body.
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest);
    let rest = String::from_utf8(rest).unwrap();
    assert!(!rest.contains("HTTP/1.1 "), "{rest}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    for (first, second, code) in [
        (Signal::TERM, Signal::TERM, 143),
        (Signal::TERM, Signal::INT, 130),
        (Signal::INT, Signal::INT, 130),
    ] {
        let mut server = Server::start(&["--backend", "memory", "--drain", "30s"]);
        let _socket = begin_request(&server);
        server.process.signal(first);
        server.process.wait_for("stopping");
        assert!(server.process.is_running());
        server.process.signal(second);
        let ended = server.process.wait();
        assert_eq!(ended.code, Some(code), "{ended:?}");
    }
}
