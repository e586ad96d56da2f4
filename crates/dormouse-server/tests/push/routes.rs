//! Pushes as the routes set them, and as the backend keeps them.

use std::time::Duration;

use dormouse_core::job::State;
use dormouse_core::op::{GetPush, SetTopic};
use dormouse_core::topic::Settings;
use dormouse_disk::engine::Engine;
use dormouse_server::{Options, Server};
use serde_json::json;

use crate::receiver::{Act, Receiver, answer, ok};
use crate::rig::{Rig, ask, job, topic, until};
use crate::secrets::verifies;

const PUSH: &str = "/v1/topics/t/push";

/// Sets the push of `t` to this URL; its secret.
async fn set(rig: &Rig, url: &str) -> String {
    let body = json!({ "url": url }).to_string();
    let answer = rig.done(201, &format!("PUT {PUSH}"), &body).await;
    answer["secret"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_push_is_set_shown_and_removed() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let rig = Rig::stored().await;
    let url = receiver.url("/a");
    let body = json!({ "url": url, "headers": { "Authorization": "Bearer geheim" },
        "timeout": "2s", "concurrency": 3, "fatal": [422], "keep_reply": false });
    let created = rig.done(201, &format!("PUT {PUSH}"), &body.to_string()).await;
    assert_eq!(created["code"], "created");
    let secret = created["secret"].as_str().unwrap().to_owned();
    rig.gone(rig.put(job("x"))).await;
    let received = &receiver.received()[0];
    assert_eq!(received.header("authorization"), Some("Bearer geheim"));
    assert!(verifies(received, &secret));
    let shown = rig.done(200, &format!("GET {PUSH}"), "").await;
    let expected = json!({ "topic": "t", "url": url, "job_urls": [], "timeout_ms": 2_000,
        "headers": { "Authorization": "***" }, "concurrency": 3, "fatal": [422],
        "keep_reply": false, "state": "on", "counts": { "delivered": 1, "failed": 0 } });
    assert_eq!(shown, expected);
    let again = rig.done(200, &format!("PUT {PUSH}"), &body.to_string()).await;
    assert_eq!((&again["code"], again.get("secret")), (&json!("unchanged"), None));
    rig.done(200, &format!("DELETE {PUSH}"), "").await;
    rig.done(404, &format!("GET {PUSH}"), "").await;
    rig.done(404, &format!("DELETE {PUSH}"), "").await;
    rig.done(404, &format!("POST {PUSH}/rotate"), "").await;
    rig.done(404, &format!("POST {PUSH}/test"), "").await;
    rig.done(404, &format!("POST {PUSH}/resume"), "").await;
    until("it is not pushed", || rig.push.status(&topic("t")).is_none()).await;
    let id = rig.put(job("y"));
    assert_eq!(rig.get(id).unwrap().state, State::Ready, "its jobs stay");
}

#[tokio::test]
async fn a_value_that_is_not_shown_can_be_kept() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let rig = Rig::stored().await;
    let put = format!("PUT {PUSH}");
    let hidden = json!({ "url": receiver.url("/b"), "headers": { "x-key": "***" } }).to_string();
    let refused = rig.done(422, &put, &hidden).await;
    assert!(refused["detail"].as_str().unwrap().contains("x-key"), "{refused}");
    let body = json!({ "url": receiver.url("/a"), "headers": { "x-key": "geheim" } });
    rig.done(201, &put, &body.to_string()).await;
    // Or whoever may set a push would read the values at a receiver of their own.
    let elsewhere = json!({ "url": "https://example.com/", "headers": { "x-key": "***" } });
    let widened = json!({ "url": receiver.url("/b"), "job_urls": ["https://example.com/"],
        "headers": { "x-key": "***" } });
    for body in [elsewhere, widened] {
        let refused = rig.done(422, &put, &body.to_string()).await;
        assert!(refused["detail"].as_str().unwrap().contains("give them again"), "{refused}");
    }
    let replaced = rig.done(200, &put, &hidden).await;
    assert_eq!(replaced["code"], "replaced");
    until("it is pushed to the new place", || {
        let received = receiver.received();
        rig.put(job("x"));
        received.iter().any(|it| it.line.contains("/b") && it.header("x-key") == Some("geheim"))
    })
    .await;
}

#[tokio::test]
async fn settings_of_the_topic_and_its_push_do_not_touch_each_other() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let rig = Rig::stored().await;
    set(&rig, &receiver.url("/")).await;
    rig.done(200, "PUT /v1/topics/t", "{\"ttr\": \"7s\"}").await;
    rig.done(200, "PUT /v1/topics/t", "{}").await;
    rig.done(200, &format!("GET {PUSH}"), "").await;
    let settings = Settings { ttr_ms: Some(7_000), ..Settings::default() };
    rig.call(SetTopic { topic: topic("t"), settings }).unwrap();
    rig.done(200, &format!("DELETE {PUSH}"), "").await;
    let shown = rig.done(200, "GET /v1/topics/t", "").await;
    assert_eq!(shown["settings"]["ttr_ms"], 7_000);
}

#[tokio::test]
async fn a_rotated_secret_signs_beside_the_old_one() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let rig = Rig::stored().await;
    let old = set(&rig, &receiver.url("/")).await;
    rig.gone(rig.put(job("a"))).await;
    let rotated = rig.done(200, &format!("POST {PUSH}/rotate"), "{\"keep\":\"1h\"}").await;
    let new = rotated["secret"].as_str().unwrap().to_owned();
    assert_ne!(new, old);
    assert!(rotated["retiring_until"].is_string());
    until("both sign", || {
        rig.put(job("b"));
        receiver.received().last().is_some_and(|it| verifies(it, &new) && verifies(it, &old))
    })
    .await;
    let third = rig.done(200, &format!("POST {PUSH}/rotate"), "{\"keep\":0}").await;
    let third = third["secret"].as_str().unwrap().to_owned();
    until("only the newest signs", || {
        rig.put(job("c"));
        let received = receiver.received();
        received
            .last()
            .is_some_and(|it| verifies(it, &third) && !verifies(it, &new) && !verifies(it, &old))
    })
    .await;
    // A push that is removed and set again has a secret that nobody has seen.
    rig.done(200, &format!("DELETE {PUSH}"), "").await;
    let fresh = set(&rig, &receiver.url("/")).await;
    assert!(![old, new, third].contains(&fresh));
    rig.done(422, &format!("POST {PUSH}/rotate"), "{\"keep\":\"31d\"}").await;
    rig.done(422, &format!("POST {PUSH}/rotate"), "{\"keep\":-1}").await;
}

#[tokio::test]
async fn a_receiver_that_is_gone_disables_until_somebody_resumes() {
    let receiver = Receiver::new(|number, _| match number {
        0 => answer(410, &[], ""),
        _ => ok(),
    })
    .await;
    let rig = Rig::stored().await;
    set(&rig, &receiver.url("/")).await;
    let first = rig.put(job("a"));
    rig.in_state(first, State::Dead).await;
    until("it is stored", || {
        let push = rig.call(GetPush(topic("t"))).unwrap().unwrap();
        push.is_disabled
    })
    .await;
    let shown = rig.done(200, &format!("GET {PUSH}"), "").await;
    assert_eq!(
        (&shown["state"], &shown["disabled"]),
        (&json!("disabled"), &json!("its receiver wants no more"))
    );
    let second = rig.put(job("b"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!((rig.get(second).unwrap().state, receiver.count()), (State::Ready, 1));
    let resumed = rig.done(200, &format!("POST {PUSH}/resume"), "").await;
    assert_eq!(resumed["state"], "on");
    rig.gone(second).await;
}

#[tokio::test]
async fn a_test_says_what_came_of_it() {
    let receiver = Receiver::new(|number, _| match number {
        0 => answer(204, &[], ""),
        1 => answer(302, &[("location", "http://169.254.169.254/")], "inside"),
        _ => answer(500, &[], "reply-of-the-inside"),
    })
    .await;
    let rig = Rig::stored().await;
    let secret = set(&rig, &receiver.url("/")).await;
    let test = format!("POST {PUSH}/test");
    let good = rig.done(200, &test, "").await;
    assert_eq!((&good["outcome"], good.get("error")), (&json!("2xx"), None));
    assert_eq!(good["address"], receiver.addr.to_string());
    let received = &receiver.received()[0];
    assert!(verifies(received, &secret));
    assert_eq!(received.header("dormouse-test"), Some("true"));
    assert!(received.header("webhook-id").unwrap().contains("_test_"));
    assert_eq!(rig.done(200, &test, "").await["outcome"], "3xx");
    let bad = rig.done(200, &test, "").await;
    assert_eq!(bad["outcome"], "5xx");
    assert!(!bad.to_string().contains("inside"), "{bad}");
    // A name may stand for anything, so it is accepted; the test tells that it is refused.
    let body = json!({ "url": "http://localhost:7/" }).to_string();
    let other = "/v1/topics/other/push";
    rig.done(201, &format!("PUT {other}"), &body).await;
    let blocked = rig.done(200, &format!("POST {other}/test"), "").await;
    assert!(["blocked", "connect"].contains(&blocked["outcome"].as_str().unwrap()), "{blocked}");
    assert_eq!(blocked.get("address"), None);
    assert_eq!(receiver.count(), 3, "redirects are not followed");
}

#[tokio::test]
async fn bad_input_is_refused_and_stores_nothing() {
    let rig = Rig::stored().await;
    for (body, status, part) in [
        (json!({ "url": "ftp://example.com/" }), 422, "url"),
        (json!({ "url": "https:///x" }), 422, "url"),
        (json!({ "url": "//x" }), 422, "url"),
        (json!({ "url": "https://example.com:0/" }), 422, "port"),
        (json!({ "url": "https://example.com:70000/" }), 422, "port"),
        (json!({ "url": "https://me@example.com/" }), 422, "user"),
        (json!({ "url": "https://example.com/#a" }), 422, "fragment"),
        (json!({ "url": "https://example.com\\a" }), 422, "url"),
        (json!({ "url": "https://exa mple.com/" }), 422, "url"),
        (json!({ "url": "https://ex\u{e4}mple.com/" }), 422, "url"),
        (json!({ "url": "http:x" }), 422, "url"),
        (json!({ "url": "https://127.1/" }), 422, "127.0.0.1"),
        (json!({ "url": "https://0x7f.1/" }), 422, "127.0.0.1"),
        (json!({ "url": "https://10.0.0.1/" }), 422, "push.allow"),
        (json!({ "url": "https://[::ffff:a9fe:a9fe]/" }), 422, "url"),
        (json!({ "url": "https://1.1.1.1:22/" }), 422, "push.ports"),
        (json!({ "url": "https://a.example/", "headers": { "Host": "b" } }), 422, "host"),
        (json!({ "url": "https://a.example/", "headers": { "a": "b\r\nc: d" } }), 422, "`a`"),
        (json!({ "url": "https://a.example/", "timeout": 0 }), 422, "timeout"),
        (json!({ "url": "https://a.example/", "timeout": "31s" }), 422, "timeout"),
        (json!({ "url": "https://a.example/", "timeout": -1 }), 422, "timeout"),
        (json!({ "url": "https://a.example/", "concurrency": 0 }), 422, "concurrency"),
        (json!({ "url": "https://a.example/", "concurrency": 1_001 }), 422, "concurrency"),
        (json!({ "url": "https://a.example/", "fatal": [200] }), 422, "fatal"),
        (json!({ "url": "https://a.example/", "job_urls": ["https://*.*/"] }), 422, ""),
        (json!({ "url": "https://a.example/", "secret": "x" }), 400, "secret"),
        (json!({}), 400, "url"),
    ] {
        let answer = rig.done(status, &format!("PUT {PUSH}"), &body.to_string()).await;
        let detail = answer["detail"].as_str().unwrap();
        assert!(detail.contains(part), "{body}: {detail}");
    }
    rig.done(404, &format!("GET {PUSH}"), "").await;
    rig.done(404, "GET /v1/topics/t", "").await;
}

#[tokio::test]
async fn urls_of_jobs_are_checked_when_they_are_put() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let rig = Rig::stored().await;
    let jobs = "POST /v1/topics/t/jobs";
    let own = json!({ "text": "x", "url": receiver.url("/own/1") }).to_string();
    let refused = rig.done(422, jobs, &own).await;
    assert!(refused["detail"].as_str().unwrap().contains("no push"), "{refused}");
    set(&rig, &receiver.url("/")).await;
    let refused = rig.done(422, jobs, &own).await;
    assert!(refused["detail"].as_str().unwrap().contains("job_urls"), "{refused}");
    let body = json!({ "url": receiver.url("/"), "job_urls": [receiver.url("/own")] });
    rig.done(200, &format!("PUT {PUSH}"), &body.to_string()).await;
    rig.done(201, jobs, &own).await;
    until("it is pushed there", || {
        receiver.received().iter().any(|it| it.line.starts_with("POST /own/1 "))
    })
    .await;
    let other = receiver.url("/other");
    let mixed = json!([{ "text": "a" }, { "text": "b", "url": other }, { "text": "c" }]);
    let answer = rig.done(200, jobs, &mixed.to_string()).await;
    let failed = |index: usize| answer["results"][index]["code"] == "invalid";
    assert_eq!([failed(0), failed(1), failed(2)], [false, true, false], "{answer}");
    let both = json!({ "url": other, "headers": { "push-url": other } }).to_string();
    rig.done(400, jobs, &both).await;
}

#[tokio::test]
async fn a_tick_of_a_schedule_is_delivered() {
    let receiver = Receiver::new(|_, _| ok()).await;
    let rig = Rig::stored().await;
    let secret = set(&rig, &receiver.url("/nightly")).await;
    let body = json!({ "every": "1h", "text": "go" }).to_string();
    rig.done(201, "PUT /v1/topics/t/schedules/nightly", &body).await;
    rig.clock.advance(Duration::from_secs(3_600));
    until("the tick is delivered", || receiver.count() == 1).await;
    let received = &receiver.received()[0];
    assert!(verifies(received, &secret));
    assert_eq!(received.body, b"go");
    assert_eq!(received.header("dormouse-schedule"), Some("nightly"));
    assert!(received.header("dormouse-tick").is_some());
}

#[tokio::test]
async fn concurrency_bounds_pushes_and_reserves_together() {
    let receiver = Receiver::new(|_, _| Act::Silence).await;
    let rig = Rig::stored().await;
    let body = json!({ "url": receiver.url("/"), "concurrency": 2 }).to_string();
    rig.done(201, &format!("PUT {PUSH}"), &body).await;
    for number in 0..5 {
        rig.put(job(&number.to_string()));
    }
    until("two are under way", || receiver.count() == 2).await;
    let reserved = rig.done(200, "POST /v1/topics/t/reserve", "{}").await;
    assert_eq!(reserved["jobs"], json!([]), "the topic's limit holds them");
}

#[tokio::test]
async fn a_server_without_push_says_how_to_start_it() {
    let server = Server::start(
        std::sync::Arc::new(Engine::memory(Default::default())),
        Options { http: Some(([127, 0, 0, 1], 0).into()), ..Options::default() },
    );
    let server = server.await.unwrap();
    let addr = server.http_addr().unwrap();
    for line in [
        format!("PUT {PUSH}"),
        format!("GET {PUSH}"),
        format!("DELETE {PUSH}"),
        format!("POST {PUSH}/rotate"),
        format!("POST {PUSH}/test"),
        format!("POST {PUSH}/resume"),
    ] {
        let body = if line.starts_with("PUT") { "{\"url\":\"https://a.example/\"}" } else { "" };
        let (status, answer) = ask(addr, &line, body).await;
        assert_eq!(status, 403);
        assert!(answer["detail"].as_str().unwrap().contains("--push"), "{answer}");
    }
    let own = json!({ "text": "x", "url": "https://a.example/" }).to_string();
    assert_eq!(ask(addr, "POST /v1/topics/t/jobs", &own).await.0, 403);
}
