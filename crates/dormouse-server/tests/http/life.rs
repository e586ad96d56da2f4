//! How jobs end: deadlines, dead letters, history, chains; and the scans that find dead ones.

use std::time::Duration;

use dormouse_server::Options;
use serde_json::{Value, json};

use crate::client::Client;
use crate::rig::{Rig, access};

async fn put(client: &mut Client, topic: &str, form: Value) -> Value {
    client.post(&format!("/v1/topics/{topic}/jobs"), form).await.expect(201)
}

/// Takes one job.
async fn take(client: &mut Client, topic: &str) -> Value {
    let answer = client.post(&format!("/v1/topics/{topic}/reserve"), json!({})).await;
    answer.ok()["jobs"].get(0).cloned().unwrap_or_default()
}

async fn set(client: &mut Client, topic: &str, settings: Value) -> Value {
    client.json("PUT", &format!("/v1/topics/{topic}"), settings).await.ok()["settings"].clone()
}

async fn job(client: &mut Client, id: &Value) -> Value {
    client.get(&format!("/v1/jobs/{}", id.as_str().unwrap())).await.ok()
}

/// Waits until a job is dead: time passes for it when the engine looks at its clock.
async fn dead(client: &mut Client, id: &Value) -> Value {
    loop {
        let job = job(client, id).await;
        if job["state"] == "dead" {
            return job;
        }
        tokio::task::yield_now().await;
    }
}

async fn jobs(client: &mut Client, topic: &str) -> u64 {
    let stats = client.get(&format!("/v1/topics/{topic}")).await;
    let count = |stats: &Value, name: &str| stats[name].as_u64().unwrap();
    match stats.status {
        404 => 0,
        _ => {
            let stats = stats.ok();
            count(&stats, "waiting") + count(&stats, "leased") + count(&stats, "dead")
        }
    }
}

#[tokio::test]
async fn a_job_that_nobody_takes_in_time_dies() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let in_json = put(&mut client, "t", json!({"expires_after": "1h"})).await;
    let lines = b"{\"expires_after\": 3600000}\n{}";
    let batch = client.request("POST", "/v1/topics/t/jobs", "application/x-ndjson", lines).await;
    let batch = batch.ok()["results"].clone();
    let raw = client.request("POST", "/v1/topics/t/jobs?expires_after=1h", "text/plain", b"x");
    let raw = raw.await.expect(201);
    let mortal = [&in_json["id"], &batch[0]["id"], &raw["id"]];
    for id in mortal {
        assert_eq!(job(&mut client, id).await["expires_after_ms"], 3_600_000);
    }
    assert_eq!(job(&mut client, &batch[1]["id"]).await["expires_after_ms"], 0);
    rig.advance(3_600);
    for id in mortal {
        let dead = dead(&mut client, id).await;
        assert_eq!(dead["error"], "expired");
    }
    assert_eq!(take(&mut client, "t").await["id"], batch[1]["id"]);
    assert_eq!(take(&mut client, "t").await, Value::Null);
}

#[tokio::test]
async fn a_topic_delays_expires_keeps_and_sends_its_dead_away() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let settings = json!({
        "delay": "1m", "expires_after": "1h", "dead_topic": "t/dead", "keep_done": "1d",
    });
    let shown = json!({
        "delay_ms": 60_000, "expires_after_ms": 3_600_000, "dead_topic": "t/dead",
        "keep_done_ms": 86_400_000,
    });
    assert_eq!(set(&mut client, "t", settings).await, shown);
    assert_eq!(client.get("/v1/topics/t").await.ok()["settings"], shown);
    let first = put(&mut client, "t", json!({"key": "a"})).await;
    assert_eq!(first["state"], "delayed");
    put(&mut client, "t", json!({"key": "b", "delay": 0, "expires_after": 0})).await;
    // The second one ignores both, and is acked.
    let leased = take(&mut client, "t").await;
    assert_eq!(leased["key"], "b");
    client.post("/v1/ack", json!({"token": leased["token"]})).await.ok();
    let done = client.get("/v1/topics/t/keys/b").await.ok();
    assert_eq!((&done["state"], &done["id"]), (&json!("done"), &leased["id"]));
    let page = client.get("/v1/topics/t/jobs?state=done").await.ok();
    assert_eq!(page["jobs"][0]["id"], leased["id"]);
    assert_eq!(client.get("/v1/topics/t").await.ok()["done"], 1);
    assert_eq!(client.get("/v1/stats").await.ok()["done"], 1);
    assert_eq!(client.get("/v1/topics").await.ok()["topics"][0]["done"], 1);
    let refused = client.delete("/v1/topics/t/keys/b").await.problem(404, "not_found");
    assert!(refused["detail"].as_str().unwrap().contains("is done"), "{refused}");
    // The first one is too late: its letter is in the other topic.
    rig.advance(60 + 3_600);
    let path = format!("/v1/jobs/{}", first["id"].as_str().unwrap());
    while client.get(&path).await.status == 200 {
        tokio::task::yield_now().await;
    }
    let letter = take(&mut client, "t%2Fdead").await;
    assert_eq!(letter["key"], format!("dormouse:dead:{}", first["id"].as_str().unwrap()));
    assert_eq!(letter["headers"]["dead-from"], "t");
    assert_eq!(letter["headers"]["dead-reason"], "expired");
    assert_eq!(letter["headers"]["dead-key"], "a");
    // History forgets.
    rig.advance(86_400);
    while client.get("/v1/topics/t/keys/b").await.status == 200 {
        tokio::task::yield_now().await;
    }
    // 0 turns it off.
    assert_eq!(set(&mut client, "t", json!({"keep_done": 0})).await, json!({}));
}

#[tokio::test]
async fn bad_settings_are_refused_and_change_nothing() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    set(&mut client, "t", json!({"dead_topic": "u"})).await;
    set(&mut client, "u", json!({"delay": "1s"})).await;
    for (topic, settings, status, words) in [
        ("u", json!({"delay": "-1s"}), 422, ["delay", "give 0 to"]),
        ("u", json!({"expires_after": 0}), 422, ["expires_after", "give 1 to"]),
        ("u", json!({"expires_after": "40000d"}), 422, ["expires_after", "give 1 to"]),
        ("u", json!({"keep_done": -1}), 422, ["keep_done", "give 1 to"]),
        ("u", json!({"dead_topic": "a b"}), 422, ["topic", "may hold"]),
        ("u", json!({"dead_topic": "t"}), 422, ["dead_topic", ""]),
        ("u", json!({"dead_topic": "u"}), 422, ["dead_topic", ""]),
        ("u", json!({"dead_topics": "x"}), 400, ["dead_topics", "docs/http.md"]),
    ] {
        let answer = client.json("PUT", &format!("/v1/topics/{topic}"), settings.clone()).await;
        assert_eq!(answer.status, status, "{settings} {}", answer.text());
        let text = answer.text().to_owned();
        assert!(words.iter().all(|word| text.contains(word)), "{settings} {text}");
    }
    let settings = client.get("/v1/topics/u").await.ok()["settings"].clone();
    assert_eq!(settings, json!({"delay_ms": 1_000}));
    for form in [json!({"expires_after": -1}), json!({"key": "dormouse:x"})] {
        let refused = client.post("/v1/topics/t/jobs", form).await.problem(422, "invalid");
        let text = refused["detail"].as_str().unwrap().to_owned();
        assert!(text.contains("expires_after") || text.contains("dormouse:"), "{text}");
    }
    let named =
        client.post("/v1/topics/t/jobs", json!({"topic": "u"})).await.problem(400, "invalid");
    assert!(named["detail"].as_str().unwrap().contains("topic is named by the path"), "{named}");
    assert_eq!(jobs(&mut client, "t").await, 0);
}

#[tokio::test]
async fn an_ack_puts_what_comes_after() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    put(&mut client, "a", json!({})).await;
    let token = take(&mut client, "a").await["token"].clone();
    let next = json!([
        {"topic": "b", "body": {"n": 1}, "key": "k", "expires_after": "1h"},
        {"topic": "a", "text": "two", "delay": "1h"},
    ]);
    let chain = json!({"token": token, "put": next});
    let done = client.post("/v1/ack", chain.clone()).await.ok();
    assert_eq!((&done["token"], &done["code"]), (&token, &json!("done")));
    let codes: Vec<_> = done["put"].as_array().unwrap().iter().map(|put| &put["code"]).collect();
    assert_eq!(codes, ["created", "created"]);
    let first = job(&mut client, &done["put"][0]["id"]).await;
    assert_eq!((&first["topic"], &first["body"]), (&json!("b"), &json!({"n": 1})));
    assert_eq!(first["expires_after_ms"], 3_600_000);
    assert_eq!(job(&mut client, &done["put"][1]["id"]).await["state"], "delayed");
    // Sent again, nothing is put.
    let again = client.post("/v1/ack", chain).await.ok();
    assert_eq!(again, json!({"token": token, "code": "gone", "put": []}));
    assert_eq!((jobs(&mut client, "a").await, jobs(&mut client, "b").await), (1, 1));
    // With the next reserve.
    let token = take(&mut client, "b").await["token"].clone();
    let request = json!({"token": token, "put": [{"topic": "b"}], "reserve": {"topics": ["b"]}});
    let both = client.post("/v1/ack", request).await.ok();
    assert_eq!(both["results"][0]["code"], "done");
    assert_eq!(both["results"][0]["put"][0]["id"], both["jobs"][0]["id"]);
}

#[tokio::test]
async fn a_chain_that_is_refused_does_nothing() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    set(&mut client, "full", json!({"jobs_max": 1})).await;
    put(&mut client, "full", json!({})).await;
    put(&mut client, "t", json!({"key": "k"})).await;
    put(&mut client, "a", json!({})).await;
    let token = take(&mut client, "a").await["token"].clone();
    let good = json!({"topic": "b"});
    let many = vec![good.clone(); 101];
    for (put, status, code, words) in [
        (json!([good, {"topic": "full"}]), 507, "full", "put 2 of the chain"),
        (json!([{"topic": "t", "key": "k", "on_conflict": "reject"}]), 409, "conflict", "put 1"),
        (json!([good, {"topic": "b", "ttr": "-1s"}]), 422, "invalid", "put 2 of the chain: ttr"),
        (json!([{"topic": "b", "key": "x"}, {"topic": "b", "key": "x"}]), 422, "invalid", "put 2"),
        (json!([]), 422, "invalid", "0 puts; give 1 to 100"),
        (json!(many), 422, "invalid", "101 puts; give 1 to 100"),
        (json!([{"text": "x"}]), 400, "invalid", "topic is missing"),
        (json!([{"topic": "a b"}]), 400, "invalid", "may hold"),
        (json!([{"topic": "b", "dealy": 1}]), 400, "invalid", "put 1 of the chain: it cannot be"),
        (json!([["b"]]), 400, "invalid", "send an object"),
    ] {
        let answer = client.post("/v1/ack", json!({"token": token, "put": put})).await;
        let problem = answer.problem(status, code);
        let text = problem["detail"].as_str().unwrap();
        assert!(text.contains(words), "{text}");
    }
    let lists = json!({"tokens": [token], "put": [good]});
    let refused = client.post("/v1/ack", lists).await.problem(400, "invalid");
    assert!(refused["detail"].as_str().unwrap().contains("give token"), "{refused}");
    assert_eq!((jobs(&mut client, "a").await, jobs(&mut client, "b").await), (1, 0));
    let extended = client.post("/v1/extend", json!({"token": token})).await.ok();
    assert_eq!(extended["code"], "done");
}

#[tokio::test]
async fn letters_need_the_right_to_set_their_topic() {
    let options = Options {
        access: access(&[("one", &["operator:a"]), ("both", &["operator:a", "operator:b"])]),
        ..Options::default()
    };
    let rig = Rig::with(options).await;
    let settings = json!({"dead_topic": "b"});
    let mut one = rig.client_of("one").await;
    one.json("PUT", "/v1/topics/a", settings.clone()).await.problem(403, "forbidden");
    let mut both = rig.client_of("both").await;
    set(&mut both, "a", settings).await;
}

#[tokio::test]
async fn a_job_that_was_never_put_is_told_from_one_that_is_gone() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let id = put(&mut client, "t", json!({})).await["id"].as_str().unwrap().to_owned();
    client.delete(&format!("/v1/jobs/{id}")).await.ok();
    for (id, words) in [(id.as_str(), "is gone"), ("900000", "was never put")] {
        let problem = client.get(&format!("/v1/jobs/{id}")).await.problem(404, "not_found");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
}

/// A server with dead jobs: by error `e0` to `e2`, one per minute.
async fn with_dead(count: usize) -> (Rig, Client) {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for index in 0..count {
        let key = format!("{}-{index}", if index % 2 == 0 { "even" } else { "odd" });
        let put = put(&mut client, "t", json!({"key": key})).await;
        let path = format!("/v1/jobs/{}/kill", put["id"].as_str().unwrap());
        client.post(&path, json!({"error": format!("e{}", index % 3)})).await.ok();
        rig.clock.advance(Duration::from_secs(60));
    }
    (rig, client)
}

#[tokio::test]
async fn dead_jobs_are_found_by_error_key_and_age() {
    let (_rig, mut client) = with_dead(12).await;
    let list = "/v1/topics/t/jobs?state=dead";
    let errors = client.get(&format!("{list}&error_prefix=e1")).await.ok();
    assert_eq!(errors["jobs"].as_array().unwrap().len(), 4);
    assert_eq!((&errors["looked"], &errors["cursor"]), (&json!(12), &Value::Null));
    // Page by page, exactly as many as are wanted, and none twice.
    let (mut keys, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("{list}&key_prefix=odd&limit=2&bodies=false{cursor}");
        let page = client.get(&path).await.ok();
        let jobs = page["jobs"].as_array().unwrap();
        assert!(jobs.len() <= 2);
        keys.extend(jobs.iter().map(|job| job["key"].as_str().unwrap().to_owned()));
        let Some(next) = page["cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(keys, ["odd-1", "odd-3", "odd-5", "odd-7", "odd-9", "odd-11"]);
    let none = client.get(&format!("{list}&older_than=36500d")).await.ok();
    assert_eq!((none["jobs"].as_array().unwrap().len(), &none["looked"]), (0, &json!(12)));
    for (query, status) in [
        (format!("&error_prefix={}", "x".repeat(1_025)), 422),
        (format!("&key_prefix={}", "x".repeat(257)), 422),
        ("&older_than=-1s".to_owned(), 422),
        ("&older_than=soon".to_owned(), 400),
        ("&key_prefix=a&limit=0".to_owned(), 422),
        ("&key_prefix=a&cursor=x".to_owned(), 422),
    ] {
        client.get(&format!("{list}{query}")).await.problem(status, "invalid");
    }
}

#[tokio::test]
async fn dead_jobs_are_revived_and_cancelled_by_the_same_filters() {
    let (_rig, mut client) = with_dead(12).await;
    let revive = json!({"error_prefix": "e0", "max": 3});
    let some = client.post("/v1/topics/t/revive", revive).await.ok();
    assert_eq!(some["count"], 3);
    let rest = json!({"error_prefix": "e0", "cursor": some["cursor"]});
    let rest = client.post("/v1/topics/t/revive", rest).await.ok();
    assert_eq!((&rest["count"], &rest["cursor"]), (&json!(1), &Value::Null));
    let odd = client.post("/v1/topics/t/cancel", json!({"key_prefix": "odd"})).await.ok();
    assert_eq!(odd, json!({"count": 4, "looked": 8}));
    let stats = client.get("/v1/topics/t").await.ok();
    assert_eq!((&stats["ready"], &stats["dead"]), (&json!(4), &json!(4)));
    client.post("/v1/topics/t/cancel", json!({"older_than": "-1s"})).await.problem(422, "invalid");
    assert_eq!(client.post("/v1/topics/t/cancel", json!({})).await.ok()["count"], 4);
    assert_eq!(client.post("/v1/topics/none/cancel", json!({})).await.ok()["count"], 0);
    assert_eq!(jobs(&mut client, "t").await, 4);
}

/// The put of a chain is not durable yet when a reserve of the same batch looks for it.
#[tokio::test]
async fn a_reserve_behind_a_chain_finds_its_jobs_on_disk() {
    let rig = Rig::on_disk(Options::default()).await;
    let mut client = rig.client().await;
    put(&mut client, "a", json!({})).await;
    let mut token = take(&mut client, "a").await["token"].clone();
    for _ in 0..50 {
        let request =
            json!({"token": token, "put": [{"topic": "a"}], "reserve": {"topics": ["a"]}});
        let both = client.post("/v1/ack", request).await.ok();
        assert_eq!(both["results"][0]["put"][0]["id"], both["jobs"][0]["id"], "{both}");
        token = both["jobs"][0]["token"].clone();
    }
    // Nothing is reserved if the chain is refused.
    put(&mut client, "a", json!({})).await;
    let request = json!({"token": token, "put": [{"topic": "a", "ttr": "-1s"}],
        "reserve": {"topics": ["a"]}});
    client.post("/v1/ack", request).await.problem(422, "invalid");
    let stats = client.get("/v1/topics/a").await.ok();
    assert_eq!((&stats["ready"], &stats["leased"]), (&json!(1), &json!(1)));
}
