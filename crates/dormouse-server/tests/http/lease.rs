//! Leases: reserve, and every way to end one.

use serde_json::{Value, json};

use crate::client::Client;
use crate::rig::Rig;

async fn put(client: &mut Client, topic: &str, form: Value) -> Value {
    client.post(&format!("/v1/topics/{topic}/jobs"), form).await.expect(201)
}

/// Takes one job.
async fn take(client: &mut Client, topic: &str) -> Value {
    let answer = client.post(&format!("/v1/topics/{topic}/reserve"), json!({})).await;
    answer.ok()["jobs"].get(0).cloned().unwrap_or_default()
}

#[tokio::test]
async fn an_order_times_out_unless_it_is_paid() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let key = "/v1/topics/orders/keys/42";
    let form = json!({"key": "42", "delay": "30m", "body": {"order": 42}, "attempts_max": 3});
    put(&mut client, "orders", form.clone()).await;
    let job = client.get(key).await.ok();
    assert_eq!((&job["state"], &job["body"]), (&json!("delayed"), &json!({"order": 42})));
    // Paid in time.
    let cancelled = client.delete(key).await.ok();
    assert_eq!(cancelled, json!({"id": job["id"], "code": "cancelled", "was": "delayed"}));
    client.get(key).await.problem(404, "not_found");
    client.delete(key).await.problem(404, "not_found");
    // Not paid.
    put(&mut client, "orders", form).await;
    assert_eq!(take(&mut client, "orders").await, Value::Null);
    rig.advance(30 * 60);
    let first = take(&mut client, "orders").await;
    assert_eq!(first["attempt"], 1);
    assert_eq!(first["body"], json!({"order": 42}));
    assert_eq!((&first["key"], &first["late_ms"]), (&json!("42"), &json!(0)));
    assert_eq!(first["expires_at"], "2026-01-01T00:31:00.000Z");
    // The worker dies, another one takes over.
    rig.advance(61);
    let second = take(&mut client, "orders").await;
    assert_eq!((&second["attempt"], &second["id"]), (&json!(2), &first["id"]));
    let late = client.post("/v1/ack", json!({"token": first["token"]})).await;
    late.problem(409, "lease_lost");
    let late = client.post("/v1/ack", json!({"tokens": [first["token"]]})).await.expect(409);
    assert_eq!(late["results"][0]["code"], "lease_lost");
    assert_eq!(late["results"][0]["token"], first["token"]);
    let done = client.post("/v1/ack", json!({"token": second["token"]})).await.ok();
    assert_eq!(done, json!({"token": second["token"], "code": "done"}));
    let again = client.post("/v1/ack", json!({"token": second["token"]})).await.ok();
    assert_eq!(again["code"], "gone");
    let stats = client.get("/v1/stats").await.ok();
    for count in ["delayed", "ready", "urgent", "leased", "dead", "bytes", "waiters", "locks"] {
        assert_eq!(stats[count], 0, "{count}");
    }
}

#[tokio::test]
async fn an_expired_lease_that_nobody_took_can_be_acked() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    put(&mut client, "t", json!({})).await;
    let job = take(&mut client, "t").await;
    rig.advance(3_600);
    assert_eq!(client.get("/v1/topics/t").await.ok()["ready"], 1);
    let done = client.post("/v1/ack", json!({"token": job["token"]})).await.ok();
    assert_eq!(done["code"], "done");
}

#[tokio::test]
async fn several_leases_are_ended_at_once() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.post("/v1/topics/t/jobs", json!([{}, {}, {}])).await.ok();
    let jobs = client.post("/v1/topics/t/reserve", json!({"max": 3})).await.ok();
    let token = |index: usize| jobs["jobs"][index]["token"].clone();
    let results = client.post("/v1/ack", json!({"tokens": [token(0), "9.9"]})).await.ok();
    assert_eq!(
        results,
        json!({"results": [{"token": token(0), "code": "done"}, {"token": "9.9", "code": "gone"}]})
    );
    let results = client.post("/v1/extend", json!({"tokens": [token(1), "9.9"]})).await.ok();
    assert_eq!(results["results"][0]["expires_at"], "2026-01-01T00:01:00.000Z");
    assert_eq!(results["results"][1]["code"], "not_found");
    client.post("/v1/extend", json!({"token": "9.9"})).await.problem(404, "not_found");
    client.post("/v1/extend", json!({"tokens": ["9.9"]})).await.expect(404);
    assert_eq!(client.post("/v1/ack", json!({"tokens": []})).await.ok(), json!({"results": []}));
    for form in [json!({}), json!({"token": "1.1", "tokens": []}), json!({"token": "1.1", "x": 1})]
    {
        client.post("/v1/ack", form).await.problem(400, "invalid");
    }
    client.post("/v1/ack", json!({"token": "seven"})).await.problem(422, "invalid");
    let tokens = vec!["9.9"; 4_097];
    client.post("/v1/ack", json!({"tokens": tokens})).await.problem(422, "invalid");
}

#[tokio::test]
async fn a_nacked_job_is_delivered_again() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    put(&mut client, "t", json!({"attempts_max": 2})).await;
    let job = take(&mut client, "t").await;
    let form = json!({"token": job["token"], "delay": "10s", "priority": 5, "error": "oops"});
    let nacked = client.post("/v1/nack", form).await.ok();
    let view = client.get("/v1/jobs/1").await.ok();
    assert_eq!((&nacked["code"], &nacked["due_at"]), (&json!("retry"), &view["due_at"]));
    assert_eq!((&view["state"], &view["error"]), (&json!("delayed"), &json!("oops")));
    assert_eq!((&view["priority"], &view["attempts"]), (&json!(5), &json!(1)));
    rig.advance(10);
    let job = take(&mut client, "t").await;
    let form = json!({"token": job["token"], "error": "again"});
    assert_eq!(client.post("/v1/nack", form).await.ok()["code"], "dead");
    assert_eq!(client.get("/v1/jobs/1").await.ok()["state"], "dead");
}

#[tokio::test]
async fn a_release_spends_no_attempt() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    put(&mut client, "t", json!({"ttr": "10s"})).await;
    let job = take(&mut client, "t").await;
    let extended = client.post("/v1/extend", json!({"token": job["token"], "ttr": "1h"})).await;
    assert_eq!(extended.ok()["expires_at"], "2026-01-01T01:00:00.000Z");
    let form = json!({"token": job["token"], "priority": 1, "delay": "5s"});
    assert_eq!(client.post("/v1/release", form).await.ok()["code"], "done");
    rig.advance(5);
    let job = take(&mut client, "t").await;
    assert_eq!((&job["attempt"], &job["priority"]), (&json!(1), &json!(1)));
    let form = json!({"token": job["token"], "error": "hopeless"});
    assert_eq!(client.post("/v1/kill", form).await.ok()["code"], "done");
    let view = client.get("/v1/jobs/1").await.ok();
    assert_eq!((&view["state"], &view["kills"]), (&json!("dead"), &json!(1)));
}

#[tokio::test]
async fn an_ack_may_include_the_next_reserve() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.post("/v1/topics/t/jobs", json!([{"text": "1"}, {"text": "2"}])).await.ok();
    let job = take(&mut client, "t").await;
    let form = json!({"token": job["token"], "reserve": {"topics": ["t"]}});
    let both = client.post("/v1/ack", form).await.ok();
    assert_eq!(both["results"], json!([{"token": job["token"], "code": "done"}]));
    assert_eq!(both["jobs"][0]["text"], "2");
    let tokens = json!([both["jobs"][0]["token"]]);
    let form = json!({"tokens": tokens, "reserve": {"topics": ["t"], "max": 5}});
    let both = client.post("/v1/ack", form).await.ok();
    assert_eq!((&both["results"][0]["code"], &both["jobs"]), (&json!("done"), &json!([])));
}

#[tokio::test]
async fn a_reserve_may_name_several_topics() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    put(&mut client, "a", json!({"text": "a"})).await;
    put(&mut client, "b%2Fc", json!({"text": "b", "priority": 1, "headers": {"x": "y"}})).await;
    put(&mut client, "d", json!({"text": "d"})).await;
    let form = json!({"topics": ["a", "b/c"], "max": 10, "ttr": "5s"});
    let given = client.post("/v1/reserve", form).await.ok();
    let jobs = given["jobs"].as_array().unwrap();
    let texts: Vec<_> = jobs.iter().map(|job| &job["text"]).collect();
    assert_eq!(texts, ["b", "a"]);
    assert_eq!((&jobs[0]["topic"], &jobs[0]["ttr_ms"]), (&json!("b/c"), &json!(5_000)));
    assert_eq!(jobs[0]["headers"], json!({"x": "y"}));
    assert!(jobs[1].get("headers").is_none() && jobs[1].get("key").is_none());
}

#[tokio::test]
async fn an_invalid_reserve_is_refused() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for (form, status) in [
        (json!({"max": 0}), 422),
        (json!({"max": 4_097}), 422),
        (json!({"max": -1}), 400),
        (json!({"wait": "61s"}), 422),
        (json!({"wait": "-1s"}), 422),
        (json!({"ttr": 0}), 422),
        (json!({"topics": ["t"]}), 400),
        (json!([]), 400),
    ] {
        let answer = client.post("/v1/topics/t/reserve", form).await;
        answer.problem(status, "invalid");
    }
    client.post("/v1/topics/t/reserve?max=1", json!({})).await.problem(400, "invalid");
    client.post("/v1/reserve", json!({})).await.problem(400, "invalid");
    client.post("/v1/reserve", json!({"topics": []})).await.problem(422, "invalid");
    client.post("/v1/reserve", json!({"topics": ["a b"]})).await.problem(422, "invalid");
    let empty = client.request("POST", "/v1/topics/t/reserve", "", b"").await.ok();
    assert_eq!(empty, json!({"jobs": []}));
}

#[tokio::test]
async fn a_given_job_is_reserved_before_it_is_due() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    put(&mut client, "t", json!({"delay": "1h", "text": "x"})).await;
    let given = client.post("/v1/jobs/1/reserve", json!({"ttr": "5s"})).await.ok();
    assert_eq!(
        (&given["jobs"][0]["text"], &given["jobs"][0]["ttr_ms"]),
        (&json!("x"), &json!(5000))
    );
    let problem = client.post("/v1/jobs/1/reserve", json!({})).await.problem(409, "conflict");
    assert_eq!((&problem["id"], &problem["state"]), (&json!("1"), &json!("leased")));
    client.post("/v1/jobs/2/reserve", json!({})).await.problem(404, "not_found");
    client.post("/v1/jobs/x/reserve", json!({})).await.problem(422, "invalid");
    client.post("/v1/jobs/1/reserve", json!({"max": 1})).await.problem(400, "invalid");
}

/// Zero bytes take six times their size as JSON: jobs that do not fit are given back.
#[tokio::test]
async fn jobs_that_exceed_the_budget_stay_ready() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let zeros = vec![0; 1 << 20];
    for _ in 0..12 {
        let path = "/v1/topics/t/jobs";
        client.request("POST", path, "application/octet-stream", &zeros).await.expect(201);
    }
    let given = client.post("/v1/topics/t/reserve", json!({"max": 12})).await.ok();
    let given = given["jobs"].as_array().unwrap().len();
    assert!((1..12).contains(&given), "{given} jobs were given");
    let left = 12 - given;
    let mut next = rig.client().await;
    let given = next.post("/v1/topics/t/reserve", json!({"max": left, "wait": "10s"})).await.ok();
    assert!(given["jobs"].as_array().unwrap().iter().all(|job| job["attempt"] == 1));
    client.get("/v1/topics/t/jobs?state=leased").await.problem(413, "too_large");
    client.get("/v1/topics/t/jobs?state=leased&bodies=false").await.ok();
}

#[tokio::test]
async fn acks_are_answered_if_their_reserve_is_refused() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.post("/v1/topics/t/jobs", json!({})).await.expect(201);
    let given = client.post("/v1/topics/t/reserve", json!({})).await.ok();
    let token = &given["jobs"][0]["token"];
    let reserve = json!({"topics": ["t"], "max": 5_000});
    let acked = client.post("/v1/ack", json!({"tokens": [token], "reserve": reserve})).await.ok();
    assert_eq!(acked["results"][0]["code"], "done");
    assert_eq!(acked["reserve_failed"]["code"], "invalid");
}
