//! Why a job is where it is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::client::Client;
use crate::rig::Rig;

async fn put(client: &mut Client, form: Value) -> String {
    let put = client.post("/v1/topics/t/jobs", form).await.expect(201);
    format!("/v1/jobs/{}", put["id"].as_str().unwrap())
}

/// The codes of the reasons, and that of what comes next.
async fn codes(client: &mut Client, job: &str) -> (Vec<String>, String, Value) {
    let explained = client.get(&format!("{job}/explain")).await.ok();
    let code = |value: &Value| value["code"].as_str().unwrap().to_owned();
    let because = explained["because"].as_array().unwrap();
    (because.iter().map(code).collect(), code(&explained["next"]), explained)
}

#[tokio::test]
async fn every_state_has_its_reasons() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let form = json!({"key": "k", "delay": "1h", "attempts_max": 1, "expires_after": "10s"});
    let job = put(&mut client, form).await;
    let expected = json!({"id": "1", "topic": "t", "key": "k", "state": "delayed",
        "because": [{"code": "delayed", "text": "it is not due before 2026-01-01T01:00:00.000Z",
            "until": "2026-01-01T01:00:00.000Z"}],
        "next": {"code": "due", "text": "it becomes ready", "at": "2026-01-01T01:00:00.000Z"},
        "dies_at": "2026-01-01T01:00:10.000Z"});
    assert_eq!(client.get(&format!("{job}/explain")).await.ok(), expected);
    assert_eq!(client.get("/v1/topics/t/keys/k/explain").await.ok(), expected);
    client.post(&format!("{job}/run"), json!({})).await.ok();
    let (because, next, explained) = codes(&mut client, &job).await;
    assert_eq!((because, next.as_str()), (vec!["no_consumer".to_owned()], "reserve"));
    assert!(explained["dies_at"].is_string());
    client.post(&format!("{job}/reserve"), json!({"ttr": "30s"})).await.ok();
    let (because, next, explained) = codes(&mut client, &job).await;
    assert_eq!((because, next.as_str()), (vec!["leased".to_owned()], "dead"));
    assert_eq!(explained["next"]["at"], explained["because"][0]["until"]);
    assert_eq!(explained.get("dies_at"), None);
    let again = put(&mut client, json!({})).await;
    client.post(&format!("{again}/reserve"), json!({})).await.ok();
    assert_eq!(codes(&mut client, &again).await.1, "ready");
    let dead = put(&mut client, json!({})).await;
    client.post(&format!("{dead}/kill"), json!({"error": "no <b>way</b>"})).await.ok();
    let (because, next, explained) = codes(&mut client, &dead).await;
    assert_eq!((because, next.as_str()), (vec!["dead".to_owned()], "revive"));
    assert_eq!(explained["because"][0]["error"], "no <b>way</b>");
    client.json("PUT", "/v1/topics/t", json!({"dead_ttl": "1d"})).await.ok();
    let (_, next, explained) = codes(&mut client, &dead).await;
    assert_eq!((next.as_str(), explained["next"]["at"].is_string()), ("removed", true));
    client.get("/v1/jobs/99/explain").await.problem(404, "not_found");
    client.get("/v1/topics/t/keys/none/explain").await.problem(404, "not_found");
    client.get(&format!("{dead}/explain?why=1")).await.problem(400, "invalid");
}

#[tokio::test]
async fn a_done_job_tells_how_long_its_key_is_held() {
    let rig = Rig::new().await;
    // The server without a test clock compares with the time of the machine.
    let virtual_now = UNIX_EPOCH + Duration::from_secs(1_767_225_600);
    rig.clock.advance(SystemTime::now().duration_since(virtual_now).unwrap());
    let mut client = rig.client().await;
    client.json("PUT", "/v1/topics/t", json!({"keep_done": "1h"})).await.ok();
    for (form, expected) in [
        (json!({"key": "k", "key_ttl": "10m"}), &["done", "key_held"][..]),
        (json!({"key": "j"}), &["done"]),
        (json!({}), &["done"]),
    ] {
        let job = put(&mut client, form).await;
        let leased = client.post(&format!("{job}/reserve"), json!({})).await.ok();
        let token = leased["jobs"][0]["token"].as_str().or(leased["token"].as_str()).unwrap();
        client.post("/v1/ack", json!({"token": token})).await.ok();
        let (because, next, explained) = codes(&mut client, &job).await;
        assert_eq!(
            (because, next.as_str()),
            (expected.iter().map(ToString::to_string).collect(), "removed")
        );
        if expected.len() > 1 {
            assert!(explained["because"][1]["until"].is_string(), "{explained}");
        }
    }
}

#[tokio::test]
async fn a_ready_job_waits_for_the_topic_and_for_those_before_it() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for _ in 0..3 {
        put(&mut client, json!({})).await;
    }
    rig.advance(1);
    let job = put(&mut client, json!({})).await;
    let (because, next, explained) = codes(&mut client, &job).await;
    assert_eq!((because, next.as_str()), (vec!["behind".into(), "no_consumer".into()], "reserve"));
    assert_eq!(explained["because"][0]["jobs"], 3);
    client.post("/v1/topics/t/pause", json!({"for": "10m"})).await.ok();
    let (because, next, explained) = codes(&mut client, &job).await;
    assert_eq!(because, ["paused", "behind", "no_consumer"]);
    assert_eq!(
        (next.as_str(), &explained["next"]["at"]),
        ("resume", &explained["because"][0]["until"])
    );
    client.post("/v1/topics/t/pause", json!({})).await.ok();
    let (_, next, explained) = codes(&mut client, &job).await;
    assert_eq!((next.as_str(), explained["next"].get("at")), ("resume", None));
    client.post("/v1/topics/t/resume", json!({})).await.ok();
    client.json("PUT", "/v1/topics/t", json!({"leased_max": 1})).await.ok();
    client.post("/v1/topics/t/reserve", json!({})).await.ok();
    let (because, next, explained) = codes(&mut client, &job).await;
    assert_eq!(because, ["held", "behind", "no_consumer"]);
    assert_eq!((next.as_str(), &explained["because"][0]["by"]), ("limit", &json!("leased_max")));
    assert_eq!(explained["because"][1]["jobs"], 2);
}
