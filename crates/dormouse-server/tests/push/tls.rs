//! Certificates of receivers.

use std::net::IpAddr;
use std::sync::Arc;

use dormouse_server::push::{Lookup, Resolver};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

use crate::authority::{Authority, self_signed};
use crate::hostile::raw;
use crate::receiver::{Receiver, ok};
use crate::rig::{Rig, job, to};

/// Every name is this machine.
struct Here;

impl Resolver for Here {
    fn resolve(&self, _name: Arc<str>) -> Lookup<'_> {
        Box::pin(std::future::ready(Ok(vec![IpAddr::from([127, 0, 0, 1])])))
    }
}

async fn rig(authority: &Authority, acceptor: TlsAcceptor) -> (Rig, Receiver) {
    let receiver = Receiver::start(|_, _| ok(), Some(acceptor)).await;
    let dir = tempfile::tempdir().unwrap();
    let url = format!("https://hooks.example:{}/", receiver.addr.port());
    let rig = Rig::with(&[("t", to(&url))], |options| {
        options.ca_file = Some(authority.write(dir.path()));
        options.resolver = Arc::new(Here);
    })
    .await;
    (rig, receiver)
}

#[tokio::test]
async fn a_certificate_for_the_name_by_a_trusted_authority_is_accepted() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["hooks.example"], 2049);
    let (rig, receiver) = rig(&authority, acceptor).await;
    for _ in 0..3 {
        let id = rig.put(job("x"));
        rig.gone(id).await;
    }
    assert_eq!((receiver.count(), receiver.connections()), (3, 1));
    let port = receiver.addr.port();
    let host = format!("hooks.example:{port}");
    assert_eq!(receiver.received()[0].header("host"), Some(&*host));
}

#[tokio::test]
async fn all_other_certificates_are_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    let names = &["hooks.example"];
    for (acceptor, expected) in [
        (authority.acceptor(names, 2001), "xpired"),
        (authority.acceptor(&["other.example", "127.0.0.1"], 2049), "not valid for"),
        (other.acceptor(names, 2049), "invalid peer certificate"),
        (self_signed(names), "invalid peer certificate"),
    ] {
        let (rig, receiver) = rig(&authority, acceptor).await;
        let error = rig.failure(job("x")).await;
        assert!(error.starts_with("TLS failed") && error.contains(expected), "{error}");
        assert_eq!(receiver.count(), 0, "nothing was sent");
        assert!(rig.metrics().await.contains("outcome=\"tls\"} 1"));
    }
}

#[tokio::test]
async fn an_address_needs_a_certificate_of_its_own() {
    let authority = Authority::new();
    for (names, is_accepted) in [(&["127.0.0.1"][..], true), (&["hooks.example"], false)] {
        let acceptor = authority.acceptor(names, 2049);
        let receiver = Receiver::start(|_, _| ok(), Some(acceptor)).await;
        let dir = tempfile::tempdir().unwrap();
        let rig = Rig::with(&[("t", to(&format!("https://{}/", receiver.addr)))], |options| {
            options.ca_file = Some(authority.write(dir.path()));
        })
        .await;
        match is_accepted {
            true => {
                let id = rig.put(job("x"));
                rig.gone(id).await;
            }
            false => assert!(rig.failure(job("x")).await.starts_with("TLS failed")),
        }
    }
}

/// A receiver whose side of TLS is these bytes; then it waits.
async fn says(bytes: &'static [u8]) -> String {
    let addr = raw(async move |mut stream| {
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(bytes).await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let mut settings = to(&format!("https://hooks.example:{}/", addr.port()));
    settings.timeout_ms = 500;
    let rig = Rig::with(&[("t", settings)], |options| options.resolver = Arc::new(Here)).await;
    rig.failure(job("x")).await
}

#[tokio::test]
async fn handshakes_that_hang_or_are_none_are_nacked() {
    let error = says(b"").await;
    assert!(error.contains("timeout: a connection"), "{error}");
    let error = says(b"\x16\x03\x03\x40\x00").await;
    assert!(error.contains("timeout: a connection"), "{error}");
    let plain = b"HTTP/1.1 400 The plain HTTP request was sent to HTTPS port\r\n\r\n";
    for garbage in [&b"\0\0\0\0\0\0\0\0"[..], plain, b"SSH-2.0-OpenSSH_9.9\r\n"] {
        let error = says(garbage).await;
        assert!(error.starts_with("TLS failed"), "{error}");
    }
}

#[tokio::test]
async fn old_versions_are_refused() {
    // An alert of a server that has only older ones: protocol_version.
    let error = says(b"\x15\x03\x01\x00\x02\x02\x46").await;
    assert!(error.starts_with("TLS failed") && error.contains("rotocol"), "{error}");
    // The hello of servers that choose TLS 1.0 and 1.1, with a suite of their time.
    for (record, version) in [(OLD_HELLO_1_0, "1.0"), (OLD_HELLO_1_1, "1.1")] {
        let error = says(record).await;
        assert!(error.starts_with("TLS failed"), "{version}: {error}");
    }
}

/// Record, length 42, server_hello, length 38, version, 32 random bytes, no session, suite 0x002f,
/// no compression.
const OLD_HELLO_1_0: &[u8] = b"\x16\x03\x01\x00\x2a\x02\x00\x00\x26\x03\x01\
    0123456789abcdef0123456789abcdef\x00\x00\x2f\x00";
const OLD_HELLO_1_1: &[u8] = b"\x16\x03\x02\x00\x2a\x02\x00\x00\x26\x03\x02\
    0123456789abcdef0123456789abcdef\x00\x00\x2f\x00";
