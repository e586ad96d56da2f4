//! The life of a breaker, and what a dead receiver costs others.

use std::collections::HashSet;
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

fn with_url(url: String) -> Put {
    Put { headers: Some(Arc::new(vec![("push-url".to_owned(), url)])), ..job("x") }
}

#[tokio::test]
async fn a_silent_origin_leaves_room_for_others_of_the_same_topic() {
    let silent = Receiver::new(|_, _| Act::Silence).await;
    let good = Receiver::new(|_, _| ok()).await;
    let mut settings = to(&good.url("/"));
    settings.job_urls =
        [&silent, &good].map(|it| UrlPattern::parse(&it.url("/")).unwrap()).to_vec();
    settings.concurrency = 8;
    settings.timeout_ms = 30_000;
    let rig = Rig::new(settings).await;
    let silent_ids: Vec<_> = (0..40).map(|_| rig.put(with_url(silent.url("/s")))).collect();
    until("it has all it may have", || silent.count() == 6).await;
    let good_ids: Vec<_> = (0..10).map(|_| rig.put(with_url(good.url("/g")))).collect();
    for id in good_ids {
        rig.gone(id).await;
    }
    assert_eq!(silent.count(), 6, "a quarter is left for others");
    let spent = silent_ids.iter().map(|id| rig.get(*id).unwrap().job.progress.attempts);
    assert_eq!(spent.sum::<u32>(), 6, "those under way, and no others");
}

#[tokio::test]
async fn an_origin_that_answers_slowly_is_not_taken_for_a_silent_one() {
    let Act::Send(bytes) = ok() else { panic!("no answer") };
    let slow = Receiver::new(move |_, _| Act::Late(Duration::from_millis(100), bytes.clone()));
    let slow = slow.await;
    let mut settings = to(&slow.url("/"));
    settings.job_urls = vec![UrlPattern::parse(&slow.url("/")).unwrap()];
    settings.concurrency = 4;
    let rig = Rig::new(settings).await;
    let ids: Vec<_> = (0..60).map(|_| rig.put(with_url(slow.url("/s")))).collect();
    for id in ids {
        // Those that went back would wait for the clock.
        rig.gone(id).await;
    }
    assert_eq!(slow.under_way_max(), 3);
}

#[tokio::test]
async fn jobs_of_an_origin_that_is_probed_come_back_spread_and_after_the_probe() {
    let dead = Receiver::new(|number, _| match number {
        0..5 => answer(500, &[], ""),
        _ => Act::Silence,
    })
    .await;
    let mut settings = to("http://127.0.0.1:9/");
    settings.job_urls = vec![UrlPattern::parse(&dead.url("/")).unwrap()];
    settings.concurrency = 4;
    settings.timeout_ms = 20_000;
    let rig = Rig::with(&[("t", settings)], |options| {
        options.breaker.wait_min = Duration::from_millis(1);
    })
    .await;
    while dead.count() < 6 {
        rig.put(with_url(dead.url("/d")));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let ids: Vec<_> = (0..200).map(|_| rig.put(with_url(dead.url("/d")))).collect();
    let mut due = HashSet::new();
    for id in ids {
        let view = rig.in_state(id, State::Delayed).await;
        assert_eq!((view.job.progress.attempts, view.job.progress.reserves), (0, 1));
        let wait_ms = view.due_at - view.job.content.put_at;
        assert!((10_000..=22_500).contains(&wait_ms), "{wait_ms}");
        due.insert(wait_ms / 10);
    }
    assert!(due.len() > 50, "{} instants", due.len());
    assert_eq!(dead.count(), 6, "one probe");
}

#[tokio::test]
async fn whoever_resumes_a_push_that_gave_up_gives_it_all_its_time_again() {
    let works = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&works);
    let receiver =
        Receiver::new(move |_, _| if switch.load(SeqCst) { ok() } else { answer(500, &[], "") })
            .await;
    let rig = Rig::with(&[], |options| {
        options.topics = None;
        options.breaker.wait_min = Duration::from_millis(1);
        options.breaker.wait_max = Duration::from_millis(1);
        options.breaker.give_up_after = Duration::from_secs(2);
    })
    .await;
    let url = receiver.url("/");
    rig.done(201, "PUT /v1/topics/t/push", &format!("{{\"url\":\"{url}\"}}")).await;
    let status = || rig.push.status(&topic("t"));
    let state = async || rig.done(200, "GET /v1/topics/t/push", "").await["state"].clone();
    let begun = std::time::Instant::now();
    while state().await != "disabled" {
        assert!(begun.elapsed() < Duration::from_secs(30));
        rig.put(job("x"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let failed = status().unwrap().failed;
    rig.done(200, "POST /v1/topics/t/push/resume", "{}").await;
    until("it is tried again", || {
        rig.put(job("x"));
        status().unwrap().failed > failed
    })
    .await;
    assert_ne!(state().await, "disabled", "one failure does not undo it");
    works.store(true, SeqCst);
    let delivered = || status().unwrap().delivered > 0;
    until("it works", || {
        rig.put(job("x"));
        delivered()
    })
    .await;
}
