//! SIGHUP reads the certificate again.

use rustix::process::Signal;
use serde_json::json;

use crate::client::Client;
use crate::server::Server;

fn put(client: &mut Client) -> u16 {
    client.post("/v1/topics/mails/jobs", &json!({})).0
}

#[test]
fn new_connections_get_the_new_certificate_and_old_ones_go_on() {
    let server = Server::start();
    let mut old_http = Client::connect(server.http, &server.authority);
    let mut old_resp = Client::connect(server.resp, &server.authority);
    assert_eq!(put(&mut old_http), 201);

    let renewed = server.authority.issue(server.dir.path());
    assert_ne!(renewed, server.certificate);
    server.process.signal(Signal::HUP);
    server.process.wait_for("the certificate is read again");
    for addr in [server.http, server.resp] {
        assert_eq!(Client::connect(addr, &server.authority).certificate(), &renewed);
    }
    assert_eq!(put(&mut old_http), 201);
    old_resp.send("PING\r\n");
    assert_eq!(old_resp.read_until("\r\n"), "+PONG\r\n");
}

#[test]
fn a_broken_file_keeps_the_old_certificate() {
    let server = Server::start();
    let cert = server.dir.path().join("cert.pem");
    std::fs::write(&cert, "-----BEGIN CERTIFICATE-----\nbroken\n").unwrap();
    server.process.signal(Signal::HUP);
    let line = server.process.wait_for("the old certificate stays: ");
    assert!(line.contains(cert.to_str().unwrap()), "{line}");
    let mut client = Client::connect(server.http, &server.authority);
    assert_eq!(client.certificate(), &server.certificate);
    assert_eq!(put(&mut client), 201);

    // A key that does not belong to the certificate is as wrong.
    let other = tempfile::tempdir().unwrap();
    server.authority.issue(server.dir.path());
    server.authority.issue(other.path());
    let key = "key.pem";
    std::fs::copy(other.path().join(key), server.dir.path().join(key)).unwrap();
    server.process.signal(Signal::HUP);
    server.process.wait_for("the old certificate stays: ");
    let client = Client::connect(server.http, &server.authority);
    assert_eq!(client.certificate(), &server.certificate);
}

#[test]
fn an_expired_certificate_is_warned_about_and_its_end_is_a_metric() {
    let server = Server::start();
    let mut client = Client::connect(server.http, &server.authority);
    client.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let page = client.read_until("# EOF\n");
    // The first second of 2049.
    let metric = "\ndormouse_tls_certificate_expires_timestamp_seconds 2493072000\n";
    assert!(page.contains(metric), "{page}");
    server.authority.issue_until(server.dir.path(), 2020);
    server.process.signal(Signal::HUP);
    server.process.wait_for("the certificate has expired");

    let args = ["serve", "--backend=memory", "--http=127.0.0.1:0", "--resp=off"];
    let mut command = crate::process::command(&args);
    command.arg("--tls-cert").arg(server.dir.path().join("cert.pem"));
    command.arg("--tls-key").arg(server.dir.path().join("key.pem"));
    crate::process::Process::start(command).wait_for("the certificate has expired");
}

/// A token can be withdrawn while the certificate is wrong, and the other way round.
#[test]
fn tokens_and_certificate_are_read_again_each_by_itself() {
    let config = tempfile::NamedTempFile::new().unwrap();
    let table = |token: &str| {
        let hash = dormouse_server::access::hash_token(token);
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("[[tokens]]\nname = \"{token}\"\ntoken_sha256 = \"{hash}\"\nscopes = [\"*:*\"]\n")
    };
    std::fs::write(config.path(), table("old")).unwrap();
    let server = Server::start_with(&["--config", config.path().to_str().unwrap()]);
    let auth = |token: &str| {
        let mut client = Client::connect(server.resp, &server.authority);
        client.send(&format!("AUTH {token}\r\n"));
        client.read_until("\r\n").starts_with("+OK")
    };
    assert!(auth("old"));
    let cert = server.dir.path().join("cert.pem");
    std::fs::write(&cert, "-----BEGIN CERTIFICATE-----\nbroken\n").unwrap();
    std::fs::write(config.path(), table("new")).unwrap();
    server.process.signal(Signal::HUP);
    server.process.wait_for("tokens are read again: 1");
    server.process.wait_for("the old certificate stays: ");
    assert!(!auth("old") && auth("new"));

    let renewed = server.authority.issue(server.dir.path());
    std::fs::write(config.path(), "[[tokens]]\nnmae = 1\n").unwrap();
    server.process.signal(Signal::HUP);
    server.process.wait_for("the old tokens stay: ");
    server.process.wait_for("the certificate is read again");
    assert!(auth("new"));
    assert_eq!(Client::connect(server.http, &server.authority).certificate(), &renewed);
}
