//! Hostile URLs, at a put and at a delivery: no connection comes of them.

#[path = "../../src/push/url/hostile.rs"]
mod hostile;

use std::sync::Arc;

use dormouse_core::error::Code;
use dormouse_core::op::{GetPush, NewPush, Put, SetPush};
use dormouse_server::push::{AddressRules, UrlPattern};
use serde_json::json;
use tokio::net::TcpListener;

use crate::receiver::{Receiver, answer, ok};
use crate::rig::{Rig, ask, job, to, topic, until};

/// Addresses that stand for something inside; the receiver listens at all of this machine.
const INSIDE: &[&str] = &[
    "127.0.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[::7f00:1]",
    "[::ffff:0:7f00:1]",
    "[2001:db8::1]",
];

fn hostile() -> impl Iterator<Item = &'static str> {
    hostile::HOSTILE.iter().flat_map(|(_, texts)| texts.iter().copied())
}

fn with_url(url: &str) -> Put {
    Put { headers: Some(Arc::new(vec![("push-url".to_owned(), url.to_owned())])), ..job("x") }
}

/// Keeps its pushes in the backend; nothing inside is open.
async fn closed() -> Rig {
    Rig::with(&[], |options| {
        options.topics = None;
        options.rules = AddressRules::default();
    })
    .await
}

/// Accepts, and counts nothing else: whoever connects at all has failed.
async fn nobody() -> (TcpListener, u16) {
    let listener = TcpListener::bind("[::]:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

async fn check_nobody_came(listener: TcpListener) {
    let soon = std::time::Duration::from_millis(50);
    let came = tokio::time::timeout(soon, listener.accept()).await;
    assert!(came.is_err(), "{came:?}");
}

#[tokio::test]
async fn hostile_urls_are_refused_when_they_are_put() {
    let rig = Rig::stored().await;
    let good = Receiver::new(|_, _| ok()).await;
    let body = json!({ "url": good.url("/"), "job_urls": [good.url("/")] }).to_string();
    rig.done(201, "PUT /v1/topics/t/push", &body).await;
    let addr = rig.server.http_addr().unwrap();
    let mut count = 0;
    for url in hostile() {
        let body = json!({ "url": url }).to_string();
        let (status, answer) = ask(addr, "PUT /v1/topics/other/push", &body).await;
        assert!([400, 422].contains(&status), "{url:?}: {status} {answer}");
        let body = json!({ "text": "x", "url": url }).to_string();
        let (status, answer) = ask(addr, "POST /v1/topics/t/jobs", &body).await;
        assert!([400, 422].contains(&status), "{url:?}: {status} {answer}");
        count += 1;
    }
    assert!(count >= 150, "{count}");
    assert_eq!(good.connections(), 0);
    rig.done(404, "GET /v1/topics/other/push", "").await;
}

#[tokio::test]
async fn hostile_urls_that_jobs_bring_are_blocked_at_delivery() {
    let good = Receiver::new(|_, _| ok()).await;
    let mut settings = to(&good.url("/"));
    settings.job_urls = vec![UrlPattern::parse(&good.url("/")).unwrap()];
    settings.concurrency = 100;
    let rig = Rig::new(settings).await;
    let mut ids = Vec::new();
    for url in hostile() {
        match rig.call(with_url(url)) {
            Ok(put) => ids.push((url, put.id)),
            Err(error) => assert_eq!(error.code, Code::Invalid, "{url:?}: {error}"),
        }
    }
    assert!(ids.len() >= 150, "{}", ids.len());
    for (url, id) in ids {
        let error = || rig.get(id).unwrap().job.progress.error;
        until("it was judged", || error().is_some()).await;
        let error = String::from_utf8(error().unwrap().to_vec()).unwrap();
        assert!(error.starts_with("blocked: "), "{url:?}: {error}");
    }
    assert_eq!(good.connections(), 0);
}

#[tokio::test]
async fn addresses_inside_are_refused_at_put_and_at_delivery() {
    let (listener, port) = nobody().await;
    let stored = closed().await;
    let body = json!({ "url": "http://name.example/", "job_urls": ["http://name.example/"] });
    stored.done(201, "PUT /v1/topics/t/push", &body.to_string()).await;
    for host in INSIDE {
        let url = format!("http://{host}:{port}/");
        let body = json!({ "url": url }).to_string();
        let refused = stored.done(422, "PUT /v1/topics/x/push", &body).await;
        assert!(refused["detail"].as_str().unwrap().contains("push.allow"), "{refused}");
        let body = json!({ "url": "http://name.example/", "job_urls": [url] }).to_string();
        let refused = stored.done(422, "PUT /v1/topics/x/push", &body).await;
        assert!(refused["detail"].as_str().unwrap().starts_with("job_urls"), "{refused}");
        let rig = Rig::with(&[("t", to(&url))], |options| {
            options.rules = AddressRules::default();
        })
        .await;
        let error = rig.failure(job("x")).await;
        assert!(error.starts_with("blocked: "), "{host}: {error}");
    }
    check_nobody_came(listener).await;
}

/// The server at which the patterns were set allows more.
#[tokio::test]
async fn a_job_with_an_address_inside_is_refused_at_put() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let (open, closed) = (Rig::stored().await, closed().await);
    let body = json!({ "url": "http://name.example/", "job_urls": [receiver.url("/")] });
    open.done(201, "PUT /v1/topics/t/push", &body.to_string()).await;
    let push = open.call(GetPush(topic("t"))).unwrap().unwrap();
    let push = NewPush { concurrency: 1, is_disabled: false, record: push.record.clone() };
    let set = SetPush { topic: topic("t"), push: Some(push), if_version: None };
    closed.call(set).unwrap();
    let body = json!({ "text": "x", "url": receiver.url("/own") }).to_string();
    let refused = closed.done(422, "POST /v1/topics/t/jobs", &body).await;
    assert!(refused["detail"].as_str().unwrap().contains("loopback"), "{refused}");
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_redirect_to_something_inside_is_not_followed() {
    let (listener, port) = nobody().await;
    for place in [
        format!("http://127.0.0.1:{port}/latest/meta-data/"),
        format!("http://[::1]:{port}/"),
        format!("//127.0.0.1:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ] {
        for status in [301, 302, 303, 307, 308] {
            let to_place = place.clone();
            let receiver =
                Receiver::new(move |_, _| answer(status, &[("location", &to_place)], "")).await;
            let rig = Rig::new(to(&receiver.url("/"))).await;
            let error = rig.failure(job("x")).await;
            assert!(error.contains("redirects are not followed"), "{error}");
            assert_eq!(receiver.count(), 1, "nor is it asked again");
        }
    }
    check_nobody_came(listener).await;
}
