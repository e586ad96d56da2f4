//! The first connection: who answers, and what the error says if nobody does.

use std::thread;

use dormouse_client::{ConnectOptions, RemoteBackend};
use dormouse_core::error::{Code, Error};

use crate::client::{ack, quick, send};
use crate::fake::Fake;

fn refused(url: &str, code: Code, parts: &[&str]) -> Error {
    let error = RemoteBackend::open(url, &quick()).expect_err("nobody should answer");
    assert_eq!(error.code, code, "{error}");
    for part in parts {
        assert!(error.text.contains(part), "{error} has no {part:?}");
    }
    error
}

/// Answers each connection's first bytes with these.
fn answering(reply: &'static str) -> String {
    let fake = Fake::new();
    let url = fake.url();
    thread::spawn(move || {
        let mut peer = fake.accept();
        peer.command();
        peer.say(reply);
    });
    url
}

#[test]
fn nobody_there() {
    let url = Fake::new().url();
    refused(&url, Code::Unavailable, &[&url, "refused", "dormouse serve"]);
    let twice = format!("{url},{}", Fake::new().url());
    refused(&twice, Code::Unavailable, &[&url, "; dormouse://127.0.0.1:"]);
}

#[test]
fn a_name_without_an_address() {
    refused("dormouse://no-such-host.invalid", Code::Unavailable, &["no-such-host.invalid:7789"]);
}

#[test]
fn another_server() {
    let redis = "*2\r\n$6\r\nserver\r\n$5\r\nredis\r\n";
    for reply in [redis, "HTTP/1.1 400 Bad Request\r\n\r\n", "+OK\r\n"] {
        refused(&answering(reply), Code::Invalid, &["another server", "--resp"]);
    }
}

#[test]
fn a_wrong_token() {
    let url = answering("-WRONGPASS the access token is not known here\r\n");
    refused(&url, Code::Unauthorized, &["not known here"]);
    let url = answering("-NOAUTH Authentication required\r\n");
    refused(&url, Code::Unauthorized, &["token@host"]);
}

#[test]
fn a_server_that_is_full() {
    let url = answering("-ERR max number of clients reached\r\n");
    refused(&url, Code::Unavailable, &["max number of clients"]);
}

#[test]
fn a_server_that_takes_the_connection_and_is_silent() {
    let fake = Fake::new();
    refused(&fake.url(), Code::Unavailable, &["does not answer"]);
}

#[test]
fn the_token_of_the_url_or_of_the_options_is_sent() {
    for (login, token, expected) in [
        ("secret@", None, ["default", "secret"]),
        ("name:secret@", Some("other"), ["name", "secret"]),
        ("", Some("other"), ["default", "other"]),
    ] {
        let fake = Fake::new();
        let url = fake.url().replace("://", &format!("://{login}"));
        let token = token.map(Into::into);
        let options = ConnectOptions { token, ..quick() };
        let opening = thread::spawn(move || RemoteBackend::open(&url, &options).map(drop));
        let mut peer = fake.accept();
        assert_eq!(peer.command()[3..], expected);
        peer.say("%1\r\n+server\r\n+dormouse\r\n");
        opening.join().expect("no panic").expect("it is open");
    }
}

#[test]
fn the_next_url_is_used_when_one_fails() {
    let (gone, there) = (Fake::new().url(), Fake::new());
    let url = format!("{gone},{}", there.url());
    let opening = thread::spawn(move || RemoteBackend::open(&url, &quick()));
    let mut peer = there.greet();
    let backend = opening.join().expect("no panic").expect("it is open");
    let pending = send(&backend, ack());
    peer.expect("ACK");
    peer.say("+OK\r\n");
    assert!(pending.answer().is_ok());
}

#[test]
fn without_tls_its_scheme_is_refused_with_the_way_out() {
    if cfg!(not(feature = "tls")) {
        refused("dormouses://localhost", Code::Invalid, &["feature tls"]);
    }
}
