//! No connection is made to an address that is refused, however it comes about.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use dormouse_core::job::State;
use dormouse_core::op::Put;
use dormouse_server::push::{AddressRules, Lookup, Resolver, UrlPattern};

use crate::receiver::{Receiver, ok};
use crate::rig::{Rig, job, loopback, to, topic, until};

/// Answers with what the test says for each look-up, by its number.
struct Script<F>(AtomicUsize, F);

impl<F> Resolver for Script<F>
where
    F: Fn(usize) -> io::Result<Vec<IpAddr>> + Send + Sync,
{
    fn resolve(&self, _name: Arc<str>) -> Lookup<'_> {
        let answer = self.1(self.0.fetch_add(1, SeqCst));
        Box::pin(std::future::ready(answer))
    }
}

fn script<F>(answers: F) -> Arc<dyn Resolver>
where
    F: Fn(usize) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static,
{
    Arc::new(Script(AtomicUsize::new(0), answers))
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// The error text of a push to a name that stands for these addresses, where nothing is open.
async fn refused(texts: &'static [&'static str]) -> String {
    let receiver = Receiver::new(|_, _| ok()).await;
    let url = format!("http://name.example:{}/", receiver.addr.port());
    let rig = Rig::with(&[("t", to(&url))], |options| {
        options.rules = AddressRules::default();
        options.resolver = script(move |_| Ok(addresses(texts)));
    })
    .await;
    let error = rig.failure(job("x")).await;
    assert_eq!(receiver.connections(), 0, "{texts:?}");
    error
}

#[tokio::test]
async fn names_that_stand_for_refused_addresses_are_blocked() {
    for (texts, expected) in [
        (&["127.0.0.1"][..], "loopback"),
        (&["::ffff:127.0.0.1"], "loopback"),
        (&["::1"], "loopback"),
        (&["0.0.0.0"], "this network"),
        (&["169.254.169.254"], "metadata"),
        (&["64:ff9b::7f00:1"], "NAT64"),
        (&["2002:7f00:1::"], "6to4"),
        (&["2001:0:1::1"], "Teredo"),
        (&["168.63.129.16"], "cloud"),
        (&["100.100.100.200"], "carriers"),
        // One that may be called hides none that may not.
        (&["1.1.1.1", "127.0.0.1"], "loopback"),
        (&["2606:4700::1", "::1"], "loopback"),
        (&["1.1.1.1", "fd00::1"], "private"),
    ] {
        let error = refused(texts).await;
        assert!(error.starts_with("blocked: ") && error.contains(expected), "{error}");
        assert!(texts.iter().all(|text| !error.contains(&format!("{text} "))), "{error}");
    }
}

#[tokio::test]
async fn a_name_is_judged_anew_by_the_address_that_is_connected_to() {
    let receiver = Receiver::new(|_, _| {
        crate::receiver::Act::SendAndClose(
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
        )
    })
    .await;
    let url = format!("http://name.example:{}/", receiver.addr.port());
    let rig = Rig::with(&[("t", to(&url))], |options| {
        // One address of loopback is open, and the name moves on to another.
        options.rules = AddressRules::allowing(vec!["127.0.0.1".parse().unwrap()]);
        options.resolver = script(|number| {
            Ok(addresses(if number == 0 { &["127.0.0.1"] } else { &["127.0.0.2"] }))
        });
    })
    .await;
    let id = rig.put(job("first"));
    rig.gone(id).await;
    let error = rig.failure(job("second")).await;
    assert!(error.contains("loopback"), "{error}");
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn literals_are_judged_at_delivery_too() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let rig = Rig::with(&[("t", to(&receiver.url("/")))], |options| {
        options.rules = AddressRules::default();
    })
    .await;
    let error = rig.failure(job("x")).await;
    assert!(error.contains("loopback, 127.0.0.0/8; push.allow"), "{error}");
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn the_server_is_not_called_even_where_its_range_is_open() {
    let rig = Rig::with(&[], |_| {}).await;
    let own = format!("http://{}/v1/topics", rig.server.http_addr().unwrap());
    rig.topics.send(crate::rig::topics(&[("t", to(&own))])).unwrap();
    let error = rig.failure(job("x")).await;
    assert!(error.contains("this server itself"), "{error}");
}

#[tokio::test]
async fn names_without_a_usable_answer_are_nacked() {
    let check = async |answers: fn(usize) -> io::Result<Vec<IpAddr>>, expected: &str| {
        let rig = Rig::with(&[("t", to("http://name.example/"))], |options| {
            options.resolver = script(answers);
        })
        .await;
        let error = rig.failure(job("x")).await;
        assert!(error.starts_with("the name cannot be resolved"), "{error}");
        assert!(error.contains(expected), "{error}");
        assert!(rig.metrics().await.contains("outcome=\"dns\"} 1"));
    };
    check(|_| Ok(Vec::new()), "no address").await;
    check(|_| Err(io::Error::other("no such name")), "no such name").await;
    check(|_| Ok(vec![IpAddr::from([127, 0, 0, 1]); 300]), "300 addresses").await;
}

/// Never answers.
struct Hung;

impl Resolver for Hung {
    fn resolve(&self, _name: Arc<str>) -> Lookup<'_> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_resolver_that_hangs_ends_at_the_deadline() {
    let mut settings = to("http://name.example/");
    settings.timeout_ms = 200;
    let rig = Rig::with(&[("t", settings)], |options| options.resolver = Arc::new(Hung)).await;
    let error = rig.failure(job("x")).await;
    assert!(error.contains("timeout: a connection"), "{error}");
}

#[tokio::test]
async fn the_next_address_is_tried_if_one_does_not_answer() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let url = format!("http://name.example:{}/", receiver.addr.port());
    let rig = Rig::with(&[("t", to(&url))], |options| {
        options.rules = loopback();
        // Nobody listens there.
        options.resolver = script(|_| Ok(addresses(&["127.0.0.9", "127.0.0.1"])));
    })
    .await;
    let id = rig.put(job("x"));
    rig.gone(id).await;
}

/// Never answers for names below `black.example`.
struct BlackHole;

impl Resolver for BlackHole {
    fn resolve(&self, name: Arc<str>) -> Lookup<'_> {
        Box::pin(async move {
            if name.ends_with(".black.example") {
                std::future::pending::<()>().await;
            }
            Ok(addresses(&["127.0.0.1"]))
        })
    }
}

#[tokio::test]
async fn a_zone_that_is_silent_spends_no_attempts_and_holds_up_no_other_topic() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let port = receiver.addr.port();
    let mut dead = to(&format!("http://name.example:{port}/"));
    let pattern = format!("http://*.black.example:{port}/");
    dead.job_urls = vec![UrlPattern::parse(&pattern).unwrap()];
    (dead.concurrency, dead.timeout_ms) = (40, 30_000);
    let good = to(&format!("http://name.example:{port}/"));
    let rig = Rig::with(&[("t", dead), ("good", good)], |options| {
        options.resolver = Arc::new(BlackHole);
    })
    .await;
    let with_url = |n: usize| {
        let url = format!("http://n{n}.black.example:{port}/");
        Put { headers: Some(Arc::new(vec![("push-url".to_owned(), url)])), ..job("x") }
    };
    let ids: Vec<_> = (0..100).map(|n| rig.put(with_url(n))).collect();
    for n in 0..20 {
        let id = rig.put(Put::new(topic("good"), n.to_string()));
        rig.gone(id).await;
    }
    // Half of the look-ups hang; those that found none left go back one after the other.
    let attempts = |state| {
        let views = ids.iter().map(|id| rig.get(*id).unwrap());
        let found = views.filter(|view| view.state == state);
        found.map(|view| view.job.progress.attempts).collect::<Vec<_>>()
    };
    until("all others went back", || attempts(State::Delayed).len() >= 68).await;
    assert!(attempts(State::Delayed).iter().all(|spent| *spent == 0), "unspent");
    assert!(rig.metrics().await.contains("topic=\"good\""));
}
