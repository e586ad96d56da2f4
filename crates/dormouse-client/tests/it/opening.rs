//! The first connection: who answers, and what the error says if nobody does.

use std::thread;
use std::time::{Duration, Instant};

use dormouse_client::{ConnectOptions, RemoteBackend};
use dormouse_core::error::{Code, Error};

use crate::client::{ack, quick, reserve, send};
use crate::fake::{Fake, LONG, Peer};

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

/// Each part comes in time, and the end never does.
#[test]
fn a_greeting_that_drips() {
    let fake = Fake::new();
    let url = fake.url();
    let dripping = thread::spawn(move || {
        let mut peer = fake.accept();
        peer.command();
        peer.say("%9999\r\n");
        peer.drip(":1\r\n");
    });
    let begun = Instant::now();
    refused(&url, Code::Unavailable, &["does not answer"]);
    assert!(begun.elapsed() < LONG);
    dripping.join().expect("no panic");
}

#[test]
fn a_greeting_without_end() {
    let fake = Fake::new();
    let url = fake.url();
    let talking = thread::spawn(move || {
        let mut peer = fake.accept();
        peer.command();
        peer.say(&format!("%99999999\r\n{}", ":1\r\n".repeat(100_000)));
        peer
    });
    refused(&url, Code::Invalid, &["another server", "bytes"]);
    drop(talking.join().expect("no panic"));
}

/// The connection that is lost is opened again at the second server, which is silent.
fn reopening(options: ConnectOptions) -> (RemoteBackend, [Fake; 2], Peer) {
    let [first, second, third] = [Fake::new(), Fake::new(), Fake::new()];
    let urls = format!("{},{},{}", first.url(), second.url(), third.url());
    let opening = thread::spawn(move || RemoteBackend::open(&urls, &options));
    let peer = first.greet();
    let backend = opening.join().expect("no panic").expect("it is open");
    drop((peer, first));
    send(&backend, ack());
    let silent = second.accept();
    (backend, [second, third], silent)
}

#[test]
fn close_ends_the_round_of_connecting() {
    let (backend, [_second, third], _silent) = reopening(quick());
    backend.close();
    assert!(third.is_lonely(), "nobody needs a connection any more");
}

#[test]
fn close_does_not_wait_for_a_server_that_does_not_greet() {
    let options = ConnectOptions { connect_timeout: 10 * LONG, ..quick() };
    let (backend, _fakes, _silent) = reopening(options);
    let begun = Instant::now();
    backend.close();
    assert!(begun.elapsed() < LONG);
}

/// Longer than the clock can count.
#[test]
fn times_without_end() {
    let fake = Fake::new();
    let url = fake.url();
    let options = ConnectOptions {
        connect_timeout: Duration::MAX,
        answer_timeout: Duration::MAX,
        repeat_for: Duration::MAX,
        ..ConnectOptions::default()
    };
    let opening = thread::spawn(move || RemoteBackend::open(&url, &options));
    let mut peer = fake.greet();
    let backend = opening.join().expect("no panic").expect("it is open");
    let acked = send(&backend, ack());
    peer.expect("ACK");
    drop(peer);
    let waiting = send(&backend, reserve(60_000));
    for _ in 0..2 {
        let mut peer = fake.greet();
        match peer.command()[0].as_str() {
            "ACK" => peer.say("+OK\r\n"),
            _ => peer.say("*0\r\n"),
        }
    }
    assert!(acked.answer().is_ok());
    assert!(waiting.answer().is_ok());
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
