//! Clients that speak plain text to a port that expects TLS.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;

use serde_json::json;

use crate::client::Client;
use crate::process::connect;
use crate::server::Server;

/// Sends plain text and reads until the server closes the connection.
fn send_plain(addr: SocketAddr, text: &str) -> Vec<u8> {
    let mut socket = connect(addr);
    socket.write_all(text.as_bytes()).unwrap();
    let mut answer = Vec::new();
    match socket.read_to_end(&mut answer) {
        Ok(_) => {}
        // TCP resets a connection that is closed with unread bytes.
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    answer
}

#[test]
fn plain_text_is_answered_with_an_alert_and_disturbs_nobody() {
    let server = Server::start();
    let mut http = Client::connect(server.http, &server.authority);
    let mut resp = Client::connect(server.resp, &server.authority);
    for _ in 0..20 {
        let texts = [
            (server.http, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            (server.resp, "*1\r\n$4\r\nPING\r\n"),
            (server.resp, "PING\r\n"),
        ];
        for (addr, text) in texts {
            let answer = send_plain(addr, text);
            // Nothing at all after a reset, else a TLS alert (content type 21): never plain text.
            assert!(answer.is_empty() || answer[0] == 21, "{text:?}: {answer:?}");
        }
    }
    assert_eq!(http.post("/v1/topics/mails/jobs", &json!({})).0, 201);
    resp.send("PING\r\n");
    assert_eq!(resp.read_until("\r\n"), "+PONG\r\n");
}
