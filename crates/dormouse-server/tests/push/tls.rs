//! Certificates of receivers.

use std::net::IpAddr;
use std::sync::Arc;

use dormouse_server::push::{Lookup, Resolver};
use tokio_rustls::TlsAcceptor;

use crate::authority::{Authority, self_signed};
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
