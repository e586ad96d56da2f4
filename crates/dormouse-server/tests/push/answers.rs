//! What arrives at a receiver, and what its answers do.

use std::sync::Arc;
use std::time::Duration;

use dormouse_core::job::{BodyKind, State};
use dormouse_core::op::Put;
use dormouse_server::push::{PushHeaders, PushState, UrlPattern};

use crate::receiver::{Act, Receiver, answer, ok};
use crate::rig::{Rig, job, to, topic, topics, until};

#[tokio::test]
async fn a_job_arrives_as_it_was_put() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let mut settings = to(&receiver.url("/hook?x=1"));
    let own = [("authorization".to_owned(), "Bearer x".to_owned())];
    settings.headers = PushHeaders::new(&own).unwrap();
    let rig = Rig::new(settings).await;
    let body: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let headers = [("traceparent".to_owned(), "00-1-2-01".to_owned())];
    let put = Put {
        body_kind: BodyKind::Bytes,
        key: Some("a key".into()),
        headers: Some(Arc::new(headers.to_vec())),
        ..Put::new(topic("t"), body.clone())
    };
    let id = rig.put(put);
    rig.gone(id).await;
    let received = receiver.received().remove(0);
    assert_eq!(received.line, "POST /hook?x=1 HTTP/1.1");
    assert!(received.body == body);
    let webhook_id = format!("dm_0a0b0c0d_{id}");
    for (name, expected) in [
        ("content-type", "application/octet-stream"),
        ("authorization", "Bearer x"),
        ("traceparent", "00-1-2-01"),
        ("webhook-id", &*webhook_id),
        ("dormouse-key", "a%20key"),
        ("dormouse-attempt", "1"),
        ("dormouse-topic", "t"),
        ("accept-encoding", "identity"),
    ] {
        assert_eq!(received.header(name), Some(expected), "{name}");
    }
    assert!(received.header("webhook-signature").unwrap().starts_with("v1,"));
}

#[tokio::test]
async fn jobs_share_connections_and_stay_below_the_concurrency() {
    let act = |_, _: &_| match ok() {
        Act::Send(bytes) => Act::Late(Duration::from_millis(5), bytes),
        other => other,
    };
    let receiver = Receiver::new(act).await;
    let mut settings = to(&receiver.url("/"));
    settings.concurrency = 4;
    let rig = Rig::new(settings).await;
    let ids: Vec<_> = (0..100).map(|n| rig.put(job(&n.to_string()))).collect();
    for id in ids {
        rig.gone(id).await;
    }
    assert_eq!(receiver.count(), 100);
    assert!(receiver.under_way_max() <= 4, "{}", receiver.under_way_max());
    assert!(receiver.connections() <= 8, "{}", receiver.connections());
}

#[tokio::test]
async fn statuses_ack_nack_or_kill() {
    let receiver = Receiver::new(|_, received| {
        let status: u16 = std::str::from_utf8(&received.body).unwrap().parse().unwrap();
        answer(status, &[("location", "http://169.254.169.254/latest/")], "because")
    })
    .await;
    let mut settings = to(&receiver.url("/"));
    settings.fatal = vec![422];
    let rig = Rig::new(settings).await;
    for status in [200, 201, 202, 204, 299] {
        let id = rig.put(job(&status.to_string()));
        rig.gone(id).await;
    }
    for status in [400, 404, 429, 500] {
        let error = rig.failure(job(&status.to_string())).await;
        assert!(error.starts_with(&status.to_string()), "{error}");
        assert!(error.ends_with("; reply: because"), "{error}");
        // A success between, so that the breaker stays closed.
        let id = rig.put(job("200"));
        rig.gone(id).await;
    }
    for status in [301, 302, 307, 308] {
        let count = receiver.count();
        let error = rig.failure(job(&status.to_string())).await;
        assert!(error.contains("`http://169.254.169.254/latest/`: redirects"), "{error}");
        assert_eq!(receiver.count(), count + 1, "nothing is followed");
        let id = rig.put(job("200"));
        rig.gone(id).await;
    }
    let id = rig.put(job("422"));
    let view = rig.in_state(id, State::Dead).await;
    assert_eq!(view.job.progress.error.unwrap(), "422 Unprocessable Entity; reply: because");
    let metrics = rig.metrics().await;
    for line in [
        "dormouse_push_total{topic=\"t\",outcome=\"2xx\"} 13",
        "dormouse_push_total{topic=\"t\",outcome=\"3xx\"} 4",
        "dormouse_push_total{topic=\"t\",outcome=\"4xx\"} 3",
        "dormouse_push_total{topic=\"t\",outcome=\"429\"} 1",
        "dormouse_push_total{topic=\"t\",outcome=\"5xx\"} 1",
        "dormouse_push_seconds_count 22",
        "dormouse_push_in_flight 0",
        "dormouse_push_disabled{topic=\"t\"} 0",
        "dormouse_push_breaker{topic=\"t\"} 0",
    ] {
        assert!(metrics.contains(&format!("\n{line}\n")), "{line} in {metrics}");
    }
}

#[tokio::test]
async fn a_nacked_job_is_delivered_again_with_the_same_id() {
    let receiver =
        Receiver::new(|number, _| answer(if number < 2 { 503 } else { 200 }, &[], "")).await;
    let rig = Rig::new(to(&receiver.url("/"))).await;
    let id = rig.put(job("x"));
    for attempt in 1..=2 {
        until("the attempt is over", || {
            let view = rig.get(id).unwrap();
            view.state == State::Delayed && view.job.progress.attempts == attempt
        })
        .await;
        rig.clock.advance(Duration::from_secs(600));
    }
    rig.gone(id).await;
    let received = receiver.received();
    let ids: Vec<_> = received.iter().map(|one| one.header("webhook-id").unwrap()).collect();
    assert!(ids.iter().all(|one| *one == ids[0]));
    let attempts: Vec<_> =
        received.iter().map(|one| one.header("dormouse-attempt").unwrap()).collect();
    assert_eq!(attempts, ["1", "2", "3"]);
}

#[tokio::test]
async fn retry_after_delays_beyond_the_backoff_and_never_shortens_it() {
    let receiver = Receiver::new(|_, received| {
        let seconds = String::from_utf8(received.body.clone()).unwrap();
        answer(500, &[("retry-after", &seconds)], "")
    })
    .await;
    let rig = Rig::new(to(&receiver.url("/"))).await;
    // Backoff: a second, of which chance may take half.
    for (seconds, least_ms, most_ms) in
        [("100", 100_000, 100_000), ("0", 500, 1_000), ("999999999", 86_400_000, 86_400_000)]
    {
        let id = rig.put(job(seconds));
        let view = rig.in_state(id, State::Delayed).await;
        let delay_ms = view.due_at - view.job.content.put_at;
        assert!((least_ms..=most_ms).contains(&delay_ms), "{seconds}: {delay_ms}");
    }
    let slow = dormouse_core::backoff::Backoff::fixed(Duration::from_secs(3_600));
    let id = rig.put(Put { backoff: Some(Arc::new(slow)), ..job("5") });
    let view = rig.in_state(id, State::Delayed).await;
    assert_eq!(view.due_at - view.job.content.put_at, 3_600_000);
}

#[tokio::test]
async fn gone_disables_until_an_operator_resumes() {
    for act in [answer(410, &[], ""), answer(200, &[("webhook-delivery", "disable")], "")] {
        let first = act.clone();
        let receiver =
            Receiver::new(move |number, _| if number == 0 { first.clone() } else { ok() }).await;
        let rig = Rig::new(to(&receiver.url("/"))).await;
        let id = rig.put(job("a"));
        rig.in_state(id, State::Dead).await;
        let status = || rig.push.status(&topic("t")).unwrap();
        until("it is disabled", || status().state == PushState::Disabled).await;
        let waiting = rig.put(job("b"));
        let page = rig.metrics().await;
        assert!(page.contains("\ndormouse_push_disabled{topic=\"t\"} 1\n"), "{page}");
        let view = rig.get(waiting).unwrap();
        assert_eq!((view.state, view.job.progress.reserves), (State::Ready, 0));
        assert_eq!(receiver.count(), 1);
        assert!(rig.push.resume(&topic("t")));
        rig.gone(waiting).await;
        assert_eq!(status().state, PushState::On);
        assert!(!rig.push.resume(&topic("other")));
    }
}

#[tokio::test]
async fn abort_message_kills_one_job_and_nothing_else() {
    let receiver = Receiver::new(|number, _| match number {
        0 => answer(500, &[("webhook-delivery", "abort-message")], ""),
        _ => ok(),
    })
    .await;
    let rig = Rig::new(to(&receiver.url("/"))).await;
    let id = rig.put(job("a"));
    rig.in_state(id, State::Dead).await;
    let id = rig.put(job("b"));
    rig.gone(id).await;
}

#[tokio::test]
async fn a_job_may_bring_a_url_that_the_topic_allows() {
    let (usual, own) = (Receiver::new(|_, _| ok()).await, Receiver::new(|_, _| ok()).await);
    let mut settings = to(&usual.url("/"));
    let with_url = |url: String| {
        let headers = vec![("push-url".to_owned(), url)];
        Put { headers: Some(Arc::new(headers)), ..job("x") }
    };
    let rig = Rig::new(settings.clone()).await;
    let error = rig.failure(with_url(own.url("/hooks/1"))).await;
    assert!(error.contains("set job_urls"), "{error}");
    settings.job_urls = vec![UrlPattern::parse(&own.url("/hooks")).unwrap()];
    rig.topics.send(topics(&[("t", settings)])).unwrap();
    // Until the new settings count.
    while rig.pushed(with_url(own.url("/hooks/1"))).await.is_err() {}
    assert_eq!(own.received()[0].line, "POST /hooks/1 HTTP/1.1");
    let error = rig.failure(with_url(own.url("/other"))).await;
    assert!(error.contains("matches none of job_urls"), "{error}");
    let id = rig.put(job("x"));
    rig.gone(id).await;
    assert_eq!(usual.count(), 1);
}
