//! One job, by its id and by its key: get, cancel, reschedule, run, revive, kill.

use serde_json::{Value, json};

use crate::client::Client;
use crate::rig::Rig;

/// The paths of a job that was put just now.
async fn put(client: &mut Client, form: Value) -> String {
    let put = client.post("/v1/topics/a%2Fb/jobs", form).await.expect(201);
    format!("/v1/jobs/{}", put["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_job_is_returned_with_all_its_fields() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let form = json!({"key": "k/1 é", "delay": "1h", "body": [1], "headers": {"a": "b"},
        "backoff": {"exponential": {"base": "1s", "factor": 3, "cap": "1m"}}, "key_ttl": "1m"});
    let by_id = put(&mut client, form).await;
    let expected = json!({"topic": "a/b", "id": "1", "key": "k/1 é", "state": "delayed",
        "due_at": "2026-01-01T01:00:00.000Z", "put_at": "2026-01-01T00:00:00.000Z",
        "priority": 1024, "ttr_ms": 60_000, "attempts": 0, "attempts_max": 16,
        "key_ttl_ms": 60_000, "expires_after_ms": 0,
        "reserves": 0, "expiries": 0, "releases": 0, "kills": 0, "kicks": 0,
        "backoff": {"exponential": {"base": 1000, "factor": 3, "cap": 60_000}, "jitter": 0.5},
        "headers": {"a": "b"}, "body": [1]});
    assert_eq!(client.get(&by_id).await.ok(), expected);
    assert_eq!(client.get("/v1/topics/a%2Fb/keys/k%2F1%20%C3%A9").await.ok(), expected);
    let bare = put(&mut client, json!({})).await;
    let bare = client.get(&bare).await.ok();
    for absent in ["key", "backoff", "error", "headers", "body", "base64"] {
        assert!(bare.get(absent).is_none(), "{absent}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_404() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for job in ["/v1/jobs/7", "/v1/jobs/18446744073709551615", "/v1/topics/t/keys/k"] {
        client.get(job).await.problem(404, "not_found");
        client.delete(job).await.problem(404, "not_found");
        client.json("PATCH", job, json!({"delay": 1})).await.problem(404, "not_found");
        for verb in ["run", "revive", "kill"] {
            let answer = client.post(&format!("{job}/{verb}"), json!({})).await;
            answer.problem(404, "not_found");
        }
    }
    for id in ["x", "-1", "18446744073709551616", "1.1"] {
        client.get(&format!("/v1/jobs/{id}")).await.problem(422, "invalid");
    }
}

#[tokio::test]
async fn cancel_can_refuse_a_leased_job() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let job = put(&mut client, json!({})).await;
    let given = client.post(&format!("{job}/reserve"), json!({})).await.ok();
    let problem = client.delete(&format!("{job}?unless_leased=true")).await;
    assert_eq!(problem.problem(409, "conflict")["state"], "leased");
    client.delete(&format!("{job}?unless_leased=maybe")).await.problem(400, "invalid");
    client.delete(&format!("{job}?unles_leased=true")).await.problem(400, "invalid");
    let cancelled = client.delete(&format!("{job}?unless_leased=false")).await.ok();
    assert_eq!(cancelled, json!({"id": "1", "code": "cancelled", "was": "leased"}));
    let token = &given["jobs"][0]["token"];
    assert_eq!(client.post("/v1/ack", json!({"token": token})).await.ok()["code"], "gone");
}

#[tokio::test]
async fn a_due_time_is_changed() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let job = put(&mut client, json!({"delay": "1h", "key": "k"})).await;
    let moved = client.json("PATCH", &job, json!({"delay": "2h"})).await.ok();
    assert_eq!(
        moved,
        json!({"id": "1", "code": "rescheduled", "was": "delayed",
            "due_at": "2026-01-01T02:00:00.000Z"})
    );
    let by_key = "/v1/topics/a%2Fb/keys/k";
    let moved = client.json("PATCH", by_key, json!({"at": "2026-01-02T00:00:00Z"})).await.ok();
    assert_eq!(moved["due_at"], "2026-01-02T00:00:00.000Z");
    let run = client.post(&format!("{by_key}/run"), json!({})).await.ok();
    assert_eq!(
        (&run["code"], &run["due_at"]),
        (&json!("rescheduled"), &json!("2026-01-01T00:00:00.000Z"))
    );
    assert_eq!(client.get(&job).await.ok()["state"], "ready");
    let run = client.request("POST", &format!("{job}/run"), "", b"").await.ok();
    assert_eq!(run["was"], "ready");
    for (form, status) in [
        (json!({}), 400),
        (json!({"until": 1}), 400),
        (json!({"delay": 1, "at": "2027-01-01T09:00:00Z"}), 422),
        (json!({"delay": -1}), 422),
    ] {
        client.json("PATCH", &job, form).await.problem(status, "invalid");
    }
    client.post(&format!("{job}/run"), json!({"delay": 1})).await.problem(400, "invalid");
    client.post(&format!("{job}/reserve"), json!({})).await.ok();
    client.post(&format!("{job}/run"), json!({})).await.problem(409, "conflict");
}

#[tokio::test]
async fn dead_jobs_are_revived() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let job = put(&mut client, json!({"key": "k", "delay": "1h"})).await;
    let form = json!({"error": "no such customer", "priority": 9});
    let killed = client.post(&format!("{job}/kill"), form).await.ok();
    assert_eq!(killed, json!({"id": "1", "code": "done"}));
    let view = client.get(&job).await.ok();
    assert_eq!((&view["state"], &view["priority"]), (&json!("dead"), &json!(9)));
    assert_eq!(view["error"], "no such customer");
    let revived = client.post(&format!("{job}/revive"), json!({})).await.ok();
    assert_eq!(
        revived,
        json!({"id": "1", "code": "revived", "was": "dead", "due_at": "2026-01-01T00:00:00.000Z"})
    );
    let problem = client.post(&format!("{job}/revive"), json!({})).await;
    assert_eq!(problem.problem(409, "conflict")["state"], "ready");
    let by_key = "/v1/topics/a%2Fb/keys/k";
    let killed = client.request("POST", &format!("{by_key}/kill"), "", b"").await.ok();
    assert_eq!(killed, json!({"code": "done"}));
    assert_eq!(client.post(&format!("{by_key}/revive"), json!({})).await.ok()["was"], "dead");
    client.post(&format!("{job}/kill"), json!({"token": "1.1"})).await.problem(400, "invalid");
}
