//! The life of a breaker, and what a dead receiver costs others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use dormouse_core::job::State;
use dormouse_core::op::Put;
use dormouse_server::push::{PushState, UrlPattern};

use crate::receiver::{Act, Receiver, answer, ok};
use crate::rig::{Rig, job, to, topic, until};

#[tokio::test]
async fn a_breaker_opens_probes_and_closes_and_spends_no_attempts() {
    let works = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&works);
    let receiver =
        Receiver::new(move |_, _| if switch.load(SeqCst) { ok() } else { answer(500, &[], "") })
            .await;
    let mut settings = to(&receiver.url("/"));
    settings.concurrency = 1;
    let rig = Rig::new(settings).await;
    let ids: Vec<_> = (0..50).map(|n| rig.put(job(&n.to_string()))).collect();
    let status = || rig.push.status(&topic("t")).unwrap();
    until("it is open", || status().state == PushState::Open).await;
    // Three probes: one each 300 ms, 600 ms, 1.2 s.
    until("probes are sent", || receiver.count() >= 7).await;
    assert!(receiver.count() <= 8, "{}", receiver.count());
    let spent: u32 = ids.iter().map(|id| rig.get(*id).unwrap().job.progress.attempts).sum();
    assert!(spent as usize <= receiver.count(), "{spent} of {}", receiver.count());
    let metrics = rig.metrics().await;
    assert!(!metrics.contains("dormouse_push_breaker{topic=\"t\"} 0"), "{metrics}");
    works.store(true, SeqCst);
    until("it is closed", || status().state == PushState::On).await;
    rig.clock.advance(Duration::from_secs(600));
    for id in ids {
        rig.gone(id).await;
    }
    let error = status().last_error.unwrap();
    assert!(error.starts_with("500"), "{error}");
}

#[tokio::test]
async fn silence_that_a_receiver_asks_for_is_kept() {
    let receiver = Receiver::new(|number, _| match number {
        0 => answer(429, &[("retry-after", "1")], ""),
        _ => ok(),
    })
    .await;
    let mut settings = to(&receiver.url("/"));
    settings.concurrency = 1;
    let rig = Rig::new(settings).await;
    let begun = std::time::Instant::now();
    let (first, second) = (rig.put(job("a")), rig.put(job("b")));
    rig.in_state(first, State::Delayed).await;
    rig.gone(second).await;
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_dead_origin_holds_up_no_other_of_the_same_topic() {
    let dead = Receiver::new(|_, _| answer(500, &[], "")).await;
    let good = Receiver::new(|_, _| ok()).await;
    let mut settings = to(&good.url("/"));
    settings.job_urls = [&dead, &good].map(|it| UrlPattern::parse(&it.url("/")).unwrap()).to_vec();
    let rig = Rig::new(settings).await;
    let with_url = |url: String| Put {
        headers: Some(Arc::new(vec![("push-url".to_owned(), url)])),
        ..job("x")
    };
    let dead_ids: Vec<_> = (0..40).map(|_| rig.put(with_url(dead.url("/d")))).collect();
    let good_ids: Vec<_> = (0..40).map(|_| rig.put(with_url(good.url("/g")))).collect();
    for id in good_ids {
        rig.gone(id).await;
    }
    until("the others went back", || {
        dead_ids.iter().all(|id| rig.get(*id).unwrap().state == State::Delayed)
    })
    .await;
    // Those under way when it opened, at most; the others are unspent.
    assert!(dead.count() <= 5 + 16, "{}", dead.count());
    let spent: u32 = dead_ids.iter().map(|id| rig.get(*id).unwrap().job.progress.attempts).sum();
    assert_eq!(spent as usize, dead.count());
}

#[tokio::test]
async fn a_receiver_that_never_answers_holds_up_no_other_topic() {
    let dead = Receiver::new(|_, _| Act::Silence).await;
    let good = Receiver::new(|_, _| ok()).await;
    let mut slow = to(&dead.url("/"));
    slow.concurrency = 1_000;
    slow.timeout_ms = 20_000;
    let rig = Rig::with(&[("slow", slow), ("t", to(&good.url("/")))], |options| {
        options.connections_max = 16;
    })
    .await;
    for n in 0..100 {
        rig.put(Put::new(topic("slow"), n.to_string()));
    }
    until("half of the room is taken", || dead.count() == 8).await;
    let begun = std::time::Instant::now();
    for n in 0..50 {
        let id = rig.put(job(&n.to_string()));
        rig.gone(id).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(dead.count(), 8);
}

#[tokio::test]
async fn a_topic_that_has_its_share_goes_on_when_there_is_room() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let mut settings = to(&receiver.url("/"));
    settings.concurrency = 100;
    let rig = Rig::with(&[("t", settings)], |options| options.connections_max = 4).await;
    let ids: Vec<_> = (0..200).map(|n| rig.put(job(&n.to_string()))).collect();
    for id in ids {
        rig.gone(id).await;
    }
    assert!(receiver.under_way_max() <= 2, "{}", receiver.under_way_max());
    assert_eq!(receiver.count(), 200);
}
