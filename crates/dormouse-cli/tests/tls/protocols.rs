//! HTTP and RESP over TLS.

use rustix::process::Signal;
use serde_json::json;

use crate::client::Client;
use crate::server::Server;

#[test]
fn https_puts_reserves_and_acks() {
    let server = Server::start();
    let mut client = Client::connect(server.http, &server.authority);
    assert_eq!(client.certificate(), &server.certificate);
    let (status, put) = client.post("/v1/topics/mails/jobs", &json!({"body": "hello"}));
    assert_eq!((status, &put["code"]), (201, &json!("created")), "{put}");
    let (status, reply) = client.post("/v1/reserve", &json!({"topics": ["mails"], "wait": "30s"}));
    assert_eq!(status, 200, "{reply}");
    let job = &reply["jobs"][0];
    assert_eq!((&job["id"], &job["body"]), (&put["id"], &json!("hello")), "{reply}");
    let (status, ack) = client.post("/v1/ack", &json!({"token": job["token"]}));
    assert_eq!((status, &ack["code"]), (200, &json!("done")), "{ack}");
    server.process.signal(Signal::TERM);
    assert_eq!(server.process.wait().code, Some(0));
}

#[test]
fn resp_over_tls_puts_reserves_and_acks() {
    let server = Server::start();
    let mut client = Client::connect(server.resp, &server.authority);
    client.send("PUT mails hello\r\n");
    assert_eq!(client.read_until("\r\n1\r\n"), "$1\r\n1\r\n");
    client.send("RESERVE mails WAIT 30s\r\n");
    let job = client.read_until("hello\r\n:60000\r\n");
    let token = job.lines().find(|line| line.starts_with("1.")).unwrap().to_owned();
    client.send(&format!("ACK {token}\r\nPING\r\n"));
    assert_eq!(client.read_until("+PONG\r\n"), "+OK\r\n+PONG\r\n");
}
