//! Locks: acquire, renew, release.

use serde_json::json;

use crate::rig::Rig;

#[tokio::test]
async fn a_lock_has_one_owner() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let (acquire, release) = ("/v1/locks/a%2Fb%20c/acquire", "/v1/locks/a%2Fb%20c/release");
    let held = client.post(acquire, json!({"owner": "me"})).await.ok();
    assert_eq!(held["expires_at"], "2026-01-01T00:00:30.000Z");
    assert_eq!(held["depth"], 1);
    let fence: u64 = held["fence"].as_str().unwrap().parse().unwrap();
    client.post(acquire, json!({"owner": "you"})).await.problem(409, "conflict");
    let again = client.post(acquire, json!({"owner": "me", "ttl": "1h"})).await.ok();
    assert_eq!(again["depth"], 2);
    let renewed =
        client.post("/v1/locks/a%2Fb%20c/renew", json!({"owner": "me", "ttl": "2h"})).await;
    assert_eq!(renewed.ok()["expires_at"], "2026-01-01T02:00:00.000Z");
    assert_eq!(client.get("/v1/stats").await.ok()["locks"], 1);
    client.post(release, json!({"owner": "you"})).await.problem(409, "conflict");
    assert_eq!(client.post(release, json!({"owner": "me"})).await.ok(), json!({"code": "held"}));
    assert_eq!(client.post(release, json!({"owner": "me"})).await.ok(), json!({"code": "free"}));
    client.post(release, json!({"owner": "me"})).await.problem(404, "not_found");
    client.post("/v1/locks/x/renew", json!({"owner": "me"})).await.problem(404, "not_found");
    let next = client.post(acquire, json!({"owner": "you"})).await.ok();
    assert!(next["fence"].as_str().unwrap().parse::<u64>().unwrap() > fence);
}

#[tokio::test]
async fn a_lock_can_be_waited_for() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.post("/v1/locks/l/acquire", json!({"owner": "a", "ttl": "1h"})).await.ok();
    let mut waiting = rig.client().await;
    let body = json!({"owner": "b", "wait": "10s"}).to_string();
    let (path, kind) = ("/v1/locks/l/acquire", "application/json");
    waiting.send("POST", path, kind, body.as_bytes()).await;
    while client.get("/v1/stats").await.ok()["waiters"] != 1 {}
    rig.advance(10);
    waiting.receive(true).await.unwrap().problem(409, "conflict");
    waiting.send("POST", path, kind, body.as_bytes()).await;
    while client.get("/v1/stats").await.ok()["waiters"] != 1 {}
    client.post("/v1/locks/l/release", json!({"owner": "a"})).await.ok();
    assert_eq!(waiting.receive(true).await.unwrap().ok()["depth"], 1);
}

#[tokio::test]
async fn an_invalid_lock_request_is_refused() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let long = "n".repeat(201);
    for (name, form, status) in [
        ("l", json!({}), 400),
        ("l", json!({"owner": "me", "tll": 1}), 400),
        ("l", json!({"owner": ""}), 422),
        ("l", json!({"owner": long}), 422),
        ("l", json!({"owner": "me", "ttl": 0}), 422),
        ("l", json!({"owner": "me", "wait": "2m"}), 422),
        (&long, json!({"owner": "me"}), 422),
    ] {
        let answer = client.post(&format!("/v1/locks/{name}/acquire"), form).await;
        answer.problem(status, "invalid");
    }
}

/// Name and owner are all that a release needs.
#[tokio::test]
async fn the_owner_of_a_lock_is_told_only_to_those_who_may_list() {
    let rig = Rig::with_tokens(&[
        ("one", &["lock:in.*"]),
        ("two", &["lock:in.*"]),
        ("operator", &["lock,operator:in.*"]),
    ])
    .await;
    let mut one = rig.client_of("one").await;
    one.post("/v1/locks/in.l/acquire", json!({"owner": "s3cret"})).await.ok();
    for (token, is_told) in [("two", false), ("operator", true)] {
        let mut client = rig.client_of(token).await;
        for verb in ["acquire", "renew", "release"] {
            let form = json!({"owner": "other"});
            let refused = client.post(&format!("/v1/locks/in.l/{verb}"), form).await;
            let refused = refused.problem(409, "conflict");
            let text = refused["detail"].as_str().unwrap();
            assert_eq!(text.contains("s3cret"), is_told, "{token} {verb}: {text}");
            assert!(text.contains("in.l") && text.contains("is held by"), "{text}");
        }
    }
}
