//! The life of an event stream: keepalive, limit, end.

use std::time::{Duration, Instant};

use dormouse_server::Options;
use dormouse_server::access::{Access, TokenEntry, hash_token};
use dormouse_server::limits::{EVENT_STREAMS_MAX, STALL_MS_MAX};

use crate::client::{Stream, Told};
use crate::rig::{Rig, pass};

/// Waits until this holds.
async fn until(mut holds: impl AsyncFnMut() -> bool) {
    // Real time: the runtime's clock is advanced by the test.
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < Duration::from_secs(60), "it takes too long");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_silent_stream_gets_keepalives() {
    let rig = Rig::start().await;
    let mut stream = Stream::open(rig.addr, "?topic=mails", &[]).await;
    assert_eq!(stream.next().await.unwrap().number(), 0);
    rig.backend.put(["orders".to_owned()].into_iter()).await;
    // Far longer than a connection may be idle.
    for _ in 0..10 {
        pass(Duration::from_secs(15)).await;
        let beat = stream.next().await.unwrap();
        assert_eq!((beat.comment.as_deref(), beat.event.as_str()), (Some(""), ""));
        assert_eq!(beat.number(), 1, "others' events count as seen");
    }
    rig.backend.put(["mails".to_owned()].into_iter()).await;
    assert_eq!(stream.events(1).await[0].number(), 2);
}

#[tokio::test]
async fn a_stop_ends_streams_at_once() {
    let rig = Rig::start().await;
    let mut idle = Stream::open(rig.addr, "?topic=b", &[]).await;
    let mut busy = Stream::open(rig.addr, "", &[]).await;
    rig.backend.put(["a".to_owned()].into_iter()).await;
    busy.events(1).await;
    let started = Instant::now();
    rig.server.stop(Duration::from_secs(60)).await;
    assert!(started.elapsed() < Duration::from_secs(30), "it did not wait for the streams");
    assert!(idle.next().await.is_some(), "the opening");
    assert_eq!(idle.next().await, None);
    assert_eq!(busy.next().await, None);
    until(async || rig.backend.watched() == [true, false]).await;
}

#[tokio::test]
async fn the_backend_is_watched_while_a_stream_is_open() {
    let rig = Rig::start().await;
    assert!(rig.backend.watched().is_empty());
    let mut stream = Stream::open(rig.addr, "", &[]).await;
    let start = stream.next().await.unwrap().id;
    assert_eq!(rig.backend.watched(), [true]);
    let other = Stream::open(rig.addr, "", &[]).await;
    drop(stream);
    pass(Duration::from_secs(600)).await;
    assert_eq!(rig.backend.watched(), [true], "one is still there");
    drop(other);
    streams_are(&rig, 0.0).await;
    // A client resumes in time, and disconnects again.
    pass(Duration::from_secs(50)).await;
    let mut back = Stream::open(rig.addr, "", &[("Last-Event-ID", &start)]).await;
    assert_eq!(back.next().await.unwrap().event, "");
    pass(Duration::from_secs(50)).await;
    drop(back);
    streams_are(&rig, 0.0).await;
    assert_eq!(rig.backend.watched(), [true]);
    pass(Duration::from_secs(60)).await;
    until(async || rig.backend.watched() == [true, false]).await;
    // Events are not recorded now; a client that resumes learns of the gap.
    rig.backend.put(["a".to_owned()].into_iter()).await;
    let mut late = Stream::open(rig.addr, "", &[("Last-Event-ID", &start)]).await;
    assert_eq!(late.next().await.unwrap().event, "lost");
    assert_eq!(rig.backend.watched(), [true, false, true]);
}

async fn streams_are(rig: &Rig, count: f64) {
    until(async || rig.metrics().await.get("dormouse_event_streams") == Some(count)).await;
}

#[tokio::test]
async fn streams_beyond_the_limit_are_refused() {
    /// What one address has if it is alone.
    const MAX: usize = EVENT_STREAMS_MAX / 2;
    let rig = Rig::start().await;
    let mut streams = Vec::new();
    for _ in 0..MAX {
        streams.push(Stream::open(rig.addr, "", &[]).await);
    }
    let refused = rig.get("/v1/events", &[]).await;
    assert_eq!(refused.status, 503);
    assert!(refused.head.contains("retry-after"), "{}", refused.head);
    assert!(refused.body.contains("\"busy\""), "{}", refused.body);
    rig.metrics().await.check(&[("dormouse_event_streams", MAX as f64)]);
    streams.pop();
    streams_are(&rig, MAX as f64 - 1.0).await;
    Stream::open(rig.addr, "", &[]).await;
}

#[tokio::test]
async fn one_token_cannot_take_the_streams_of_others() {
    let rig = Rig::start_with_tokens(&[("hog", "viewer:in.*"), ("other", "*:*")]).await;
    let (hog, other) = (("Authorization", "Bearer hog"), ("Authorization", "Bearer other"));
    let mut streams = Vec::new();
    while let Ok(stream) = Stream::try_open(rig.addr, "", &[hog]).await {
        streams.push(stream);
    }
    assert_eq!(streams.len(), EVENT_STREAMS_MAX / 2);
    for _ in 0..EVENT_STREAMS_MAX / 4 {
        streams.push(Stream::open(rig.addr, "", &[other]).await);
    }
}

#[tokio::test]
async fn a_client_that_never_reads_is_disconnected() {
    let rig = Rig::start().await;
    let stream = Stream::open(rig.addr, "", &[]).await;
    // More than all buffers between here and there.
    for _ in 0..32 {
        rig.backend.put((0..4_096).map(|_| "a".to_owned())).await;
    }
    // The deadline starts when the socket accepts no more bytes.
    until(async || {
        pass(Duration::from_millis(STALL_MS_MAX)).await;
        rig.metrics().await.get("dormouse_event_streams") == Some(0.0)
    })
    .await;
    drop(stream);
}

fn tokens(tokens: &[(&str, &str)]) -> Access {
    let entry = |(name, scope): &(&str, &str)| TokenEntry {
        name: (*name).to_owned(),
        hash: hash_token(name),
        scopes: vec![scope.parse().unwrap()],
    };
    Access::new(tokens.iter().map(entry).collect()).unwrap()
}

#[tokio::test]
async fn the_streams_of_a_revoked_token_end() {
    let access = tokens(&[("kept", "*:*"), ("less", "viewer:*"), ("lost", "*:*"), ("gone", "*:*")]);
    let options = Options { access: access.clone(), ..Options::default() };
    let rig = Rig::start_options(options).await;
    let mut streams = Vec::new();
    for name in ["kept", "less", "lost", "gone"] {
        let bearer = format!("Bearer {name}");
        streams.push(Stream::open(rig.addr, "", &[("Authorization", &bearer)]).await);
    }
    rig.backend.put(["secret".to_owned()].into_iter()).await;
    for stream in &mut streams {
        stream.events(1).await;
    }
    access.replace(&tokens(&[("kept", "*:*"), ("less", "viewer:open"), ("lost", "put:*")]));
    // What happens from now on is told to those only who may still see it.
    rig.backend.put(["secret".to_owned(), "open".to_owned()].into_iter()).await;
    let topics = |told: Vec<Told>| -> Vec<String> {
        told.iter().map(|told| told.json()["topic"].as_str().unwrap().to_owned()).collect()
    };
    let [kept, less, lost, gone] = &mut streams[..] else { panic!("there are four") };
    assert_eq!(topics(kept.events(2).await), ["secret", "open"]);
    assert_eq!(topics(less.events(1).await), ["open"]);
    assert_eq!(rest_of(lost).await, []);
    assert_eq!(rest_of(gone).await, []);
}

/// The events until the end of a stream.
async fn rest_of(stream: &mut Stream) -> Vec<Told> {
    let mut events = Vec::new();
    while let Some(told) = stream.next().await {
        if !told.event.is_empty() {
            events.push(told);
        }
    }
    events
}
