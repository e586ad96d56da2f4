//! Clients that connect and then do not go on with the handshake.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::Client;
use crate::process::connect;
use crate::server::Server;

const SLOW: usize = 500;
/// `HTTP_HEAD_MS_MAX`: the handshake's deadline.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Half of the clients send nothing, the others one byte of a handshake.
fn open_slow(server: &Server) -> Vec<TcpStream> {
    (0..SLOW)
        .map(|n| {
            let addr = if n % 4 < 2 { server.http } else { server.resp };
            let mut socket = connect(addr);
            if n % 2 == 1 {
                socket.write_all(&[22]).unwrap();
            }
            socket
        })
        .collect()
}

#[test]
fn slow_handshakes_hold_nobody_up_and_are_closed_at_their_deadline() {
    let server = Server::start();
    let begun = Instant::now();
    let slow = open_slow(&server);

    // All of the slow ones are accepted first: connections are taken in order.
    let mut http = Client::connect(server.http, &server.authority);
    assert_eq!(http.post("/v1/topics/mails/jobs", &json!({})).0, 201);
    let mut resp = Client::connect(server.resp, &server.authority);
    resp.send("PING\r\n");
    assert_eq!(resp.read_until("\r\n"), "+PONG\r\n");
    // The good clients did not wait until the slow ones were closed.
    let last = slow.last().unwrap();
    last.set_nonblocking(true).unwrap();
    let kind = last.peek(&mut [0]).map_err(|error| error.kind());
    assert_eq!(kind, Err(ErrorKind::WouldBlock));
    last.set_nonblocking(false).unwrap();

    for mut socket in slow {
        let mut rest = Vec::new();
        // The end of the stream: the server has closed it. The socket's own timeout is an error.
        socket.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, [0; 0]);
    }
    assert!(begun.elapsed() >= HANDSHAKE_MAX, "{:?}", begun.elapsed());
    assert_eq!(http.post("/v1/topics/mails/jobs", &json!({})).0, 201);
}
