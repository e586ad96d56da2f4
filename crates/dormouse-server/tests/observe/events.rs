//! The contents of event streams: order, filters, gaps, access.

use dormouse_core::command::Command;
use dormouse_core::op::PauseTopic;
use dormouse_server::limits::EVENTS_KEPT;

use crate::client::{self, Stream, Told};
use crate::rig::{Rig, topic};

fn kinds(events: &[Told]) -> Vec<&str> {
    events.iter().map(|told| told.event.as_str()).collect()
}

fn topics(events: &[Told]) -> Vec<String> {
    events.iter().map(|told| told.json()["topic"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn events_arrive_in_order() {
    let rig = Rig::start().await;
    rig.post("/v1/topics/orders/jobs", "{}").await;
    let mut stream = Stream::open(rig.addr, "", &[]).await;
    assert!(stream.head.contains("text/event-stream"), "{}", stream.head);
    assert!(stream.head.contains("cache-control: no-store"), "{}", stream.head);
    let opening = stream.next().await.unwrap();
    assert_eq!(opening.comment.as_deref(), Some("dormouse"));
    assert_eq!(opening.retry.as_deref(), Some("2000"));
    assert_eq!((opening.number(), opening.event.as_str()), (0, ""));

    rig.post("/v1/topics/orders/jobs", "{\"delay\":\"1h\"}").await;
    let token = rig.reserve("orders").await;
    rig.post("/v1/ack", &format!("{{\"token\":\"{token}\"}}")).await;
    let pause = PauseTopic { topic: topic("orders"), for_ms: None };
    rig.backend.ask(Command::Pause(pause)).await;
    let events = stream.events(4).await;
    assert_eq!(kinds(&events), ["put", "reserved", "acked", "paused"]);
    let numbers: Vec<u64> = events.iter().map(Told::number).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let (at, due_at) = ("2026-01-01T00:00:00.000Z", "2026-01-01T01:00:00.000Z");
    let put = serde_json::json!({
        "topic": "orders", "id": "2", "at": at, "due_at": due_at, "attempt": 0
    });
    assert_eq!(events[0].json(), put);
    let acked = serde_json::json!({"topic": "orders", "id": "1", "at": at, "attempt": 1});
    assert_eq!(events[2].json(), acked);
    assert_eq!(events[3].json(), serde_json::json!({"topic": "orders", "at": at}));
}

#[tokio::test]
async fn a_client_that_resumes_misses_nothing() {
    let rig = Rig::start().await;
    let mut stream = Stream::open(rig.addr, "", &[]).await;
    rig.post("/v1/topics/a/jobs", "[{},{},{}]").await;
    let first = stream.events(2).await;
    drop(stream);
    rig.post("/v1/topics/b/jobs", "{}").await;

    let id = first[1].id.as_str();
    let mut by_header = Stream::open(rig.addr, "", &[("Last-Event-ID", id)]).await;
    let rest = by_header.events(2).await;
    assert_eq!(topics(&rest), ["a", "b"]);
    assert_eq!(rest[0].number(), first[1].number() + 1);
    // The header is newer than the query that a browser repeats.
    let query = format!("?after={}", first[0].id);
    let mut both = Stream::open(rig.addr, &query, &[("Last-Event-ID", &rest[0].id)]).await;
    assert_eq!(both.events(1).await, [rest[1].clone()]);
    let mut by_query = Stream::open(rig.addr, &query, &[]).await;
    assert_eq!(by_query.events(3).await, [first[1].clone(), rest[0].clone(), rest[1].clone()]);
}

#[tokio::test]
async fn missed_events_are_counted() {
    let rig = Rig::start().await;
    let mut stream = Stream::open(rig.addr, "", &[]).await;
    let start = stream.next().await.unwrap().id;
    drop(stream);
    let surplus = 1_000;
    for _ in 0..16 {
        rig.backend.put((0..EVENTS_KEPT / 16).map(|_| "a".to_owned())).await;
    }
    rig.backend.put((0..surplus).map(|_| "b".to_owned())).await;
    let mut stream = Stream::open(rig.addr, "", &[("Last-Event-ID", &start)]).await;
    let events = stream.events(EVENTS_KEPT + 1).await;
    assert_eq!(events[0].event, "lost");
    assert_eq!(events[0].json(), serde_json::json!({"count": surplus}));
    assert_eq!(events[0].number(), surplus);
    for (index, told) in events.iter().enumerate().skip(1) {
        assert_eq!(told.number(), surplus + index as u64);
    }
    rig.metrics().await.check(&[("dormouse_events_lost_total", surplus as f64)]);
}

#[tokio::test]
async fn an_unknown_id_is_reported_as_lost_without_a_count() {
    let rig = Rig::start().await;
    let mut stream = Stream::open(rig.addr, "", &[]).await;
    let now = stream.next().await.unwrap().id;
    let (ring, _) = now.split_once('-').unwrap();
    let beyond = format!("{ring}-7");
    for id in ["00000000-3", &beyond, "nonsense"] {
        let mut stream = Stream::open(rig.addr, "", &[("Last-Event-ID", id)]).await;
        let lost = stream.next().await.unwrap();
        assert_eq!((lost.event.as_str(), lost.data.as_str()), ("lost", "{}"), "{id}");
        assert_eq!(lost.id, now);
    }
    for query in ["?after=nonsense", "?topic=", "?topic=-", "?tpoic=a"] {
        let status = rig.get(&format!("/v1/events{query}"), &[]).await.status;
        assert!([400, 422].contains(&status), "{query}: {status}");
    }
}

#[tokio::test]
async fn a_stream_is_filtered_by_topic() {
    let rig = Rig::start().await;
    let mut one = Stream::open(rig.addr, "?topic=mails", &[]).await;
    let mut some = Stream::open(rig.addr, "?prefix=mails", &[]).await;
    // More than one batch of other topics in between.
    rig.backend.put((0..1_000).map(|_| "orders".to_owned())).await;
    for name in ["mails.vip", "mails", "orders", "mails"] {
        rig.backend.put([name.to_owned()].into_iter()).await;
    }
    let events = one.events(2).await;
    assert_eq!(topics(&events), ["mails", "mails"]);
    assert_eq!(events[0].number(), 1_002);
    assert_eq!(topics(&some.events(3).await), ["mails.vip", "mails", "mails"]);
}

#[tokio::test]
async fn a_stream_shows_only_allowed_topics() {
    let tokens = [("a", "events:a.*"), ("all", "events:*"), ("none", "put:*")];
    let rig = Rig::start_with_tokens(&tokens).await;
    let bearer = |name: &str| [("Authorization", format!("Bearer {name}"))];
    let open = async |query: &str, name: &str| {
        let [(header, value)] = bearer(name);
        Stream::open(rig.addr, query, &[(header, &value)]).await
    };
    let get = async |query: &str, name: &str| {
        let [(header, value)] = bearer(name);
        rig.get(&format!("/v1/events{query}"), &[(header, &value)]).await.status
    };
    assert_eq!(rig.get("/v1/events", &[]).await.status, 401);
    assert_eq!(get("", "none").await, 403);
    assert_eq!(get("?topic=b", "a").await, 403);
    let mut limited = open("", "a").await;
    let mut named = open("?topic=a.2", "a").await;
    let mut all = open("", "all").await;
    rig.backend.put(["a.1", "b", "a.2"].into_iter().map(str::to_owned)).await;
    assert_eq!(topics(&limited.events(2).await), ["a.1", "a.2"]);
    assert_eq!(topics(&named.events(1).await), ["a.2"]);
    assert_eq!(topics(&all.events(3).await), ["a.1", "b", "a.2"]);
}

#[tokio::test]
async fn keys_and_errors_are_told_to_those_who_may_read_jobs() {
    let rig = Rig::start_with_tokens(&[("all", "*:*"), ("follow", "events:*")]).await;
    let mut reader = Stream::open(rig.addr, "", &[("authorization", "Bearer all")]).await;
    let mut other = Stream::open(rig.addr, "", &[("authorization", "Bearer follow")]).await;
    let post = async |path: &str, body: String| {
        let headers = [("authorization", "Bearer all")];
        let answered = client::request(rig.addr, "POST", path, &headers, &body).await;
        assert!(answered.status < 300, "{answered:?}");
        serde_json::from_str::<serde_json::Value>(&answered.body).unwrap()
    };
    post("/v1/topics/t/jobs", "{\"key\": \"order-7\", \"attempts_max\": 2}".to_owned()).await;
    for _ in 0..2 {
        let jobs = post("/v1/topics/t/reserve", "{}".to_owned()).await;
        let token = jobs["jobs"][0]["token"].as_str().unwrap();
        let error = "no such address ".repeat(100);
        post("/v1/nack", format!("{{\"token\":\"{token}\",\"delay\":0,\"error\":\"{error}\"}}"))
            .await;
    }
    let events = reader.events(5).await;
    assert_eq!(kinds(&events), ["put", "reserved", "nacked", "reserved", "died"]);
    for (at, key, error) in [(0, true, false), (1, true, false), (2, false, true), (4, false, true)]
    {
        let told = events[at].json();
        assert_eq!(told["key"].as_str(), key.then_some("order-7"), "{told}");
        let begins = told["error"].as_str().map(|text| (text.len(), text.starts_with("no such")));
        assert_eq!(begins, error.then_some((200, true)), "{told}");
    }
    for told in other.events(5).await {
        assert!(told.json().get("key").is_none() && told.json().get("error").is_none(), "{told:?}");
    }
}
