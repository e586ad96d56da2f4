//! Limits of topics: settings, groups, and what holds a job.

use serde_json::{Value, json};

use crate::client::Client;
use crate::rig::Rig;

async fn set(client: &mut Client, settings: Value) -> Value {
    client.json("PUT", "/v1/topics/t", settings).await.ok()["settings"].clone()
}

async fn put(client: &mut Client, form: Value) -> String {
    let put = client.post("/v1/topics/t/jobs", form).await.expect(201);
    put["id"].as_str().unwrap().to_owned()
}

async fn reserve(client: &mut Client) -> Vec<Value> {
    let answer = client.post("/v1/topics/t/reserve", json!({"max": 10})).await.ok();
    answer["jobs"].as_array().unwrap().clone()
}

async fn job(client: &mut Client, id: &str) -> Value {
    client.get(&format!("/v1/jobs/{id}")).await.ok()
}

#[tokio::test]
async fn limits_are_set_in_both_forms_and_shown_in_one() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let forms = json!({"leased_max": 7, "rate": "100/1m", "group_leased_max": 2,
        "group_rate": {"jobs": 3, "per": "1s", "burst": 5}});
    let shown = json!({"leased_max": 7, "rate": {"jobs": 100, "per": 60_000, "burst": 1},
        "group_leased_max": 2, "group_rate": {"jobs": 3, "per": 1_000, "burst": 5}});
    assert_eq!(set(&mut client, forms).await, shown);
    assert_eq!(client.get("/v1/topics/t").await.ok()["settings"], shown);
    // What is shown can be set.
    assert_eq!(set(&mut client, shown.clone()).await, shown);
    let burst = set(&mut client, json!({"rate": "7/90s:burst=20"})).await;
    assert_eq!(burst, json!({"rate": {"jobs": 7, "per": 90_000, "burst": 20}}));
    assert_eq!(set(&mut client, json!({})).await, json!({}));
}

#[tokio::test]
async fn limits_beyond_their_bounds_are_refused_by_name() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let settings = set(&mut client, json!({"leased_max": 1})).await;
    let burst = json!({"jobs": 1, "per": "1s", "burst": 1_000_001});
    for (form, status, words) in [
        (json!({"leased_max": 0}), 422, "leased_max is 0 jobs; give 1 to 1000000"),
        (json!({"leased_max": 1_000_001}), 422, "leased_max"),
        (json!({"leased_max": -1}), 400, "-1"),
        (json!({"group_leased_max": 0}), 422, "group_leased_max is 0 jobs"),
        (json!({"rate": "100/0s"}), 422, "rate counts per 0 ms"),
        (json!({"rate": "0/1s"}), 422, "rate is 0 jobs"),
        (json!({"rate": "-1/1s"}), 400, "write 100/1m"),
        (json!({"rate": "1/2d"}), 422, "a day"),
        (json!({"rate": "1000001/s"}), 422, "a million per second"),
        (json!({"rate": 100}), 400, "100/1m"),
        (json!({"rate": "1/s:burst=0"}), 422, "burst of 0 jobs"),
        (json!({"rate": {"jobs": 1, "per": -1}}), 422, "rate counts per"),
        (json!({"rate": {"jobs": 1}}), 400, "missing field `per`"),
        (json!({"rate": {"jobs": 1, "per": 1, "brust": 1}}), 400, "brust"),
        (json!({"group_rate": burst}), 422, "group_rate has a burst of 1000001 jobs"),
    ] {
        let answer = client.json("PUT", "/v1/topics/t", form.clone()).await;
        let problem = answer.problem(status, "invalid");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(words), "{form}: {detail}");
    }
    assert_eq!(client.get("/v1/topics/t").await.ok()["settings"], settings);
    for group in ["".to_owned(), "g".repeat(257)] {
        let form = json!({"group": group});
        let problem = client.post("/v1/topics/t/jobs", form).await.problem(422, "invalid");
        assert!(problem["detail"].as_str().unwrap().starts_with("group has"), "{problem}");
        let path = format!("/v1/topics/t/jobs?group={group}");
        client.request("POST", &path, "text/plain", b"x").await.problem(422, "invalid");
    }
    client.post("/v1/topics/t/jobs", json!({"group": 1})).await.problem(400, "invalid");
}

#[tokio::test]
async fn every_form_of_put_has_a_group_and_every_answer_shows_it() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    put(&mut client, json!({"group": "a b"})).await;
    let list = client.post("/v1/topics/t/jobs", json!([{"group": "a b"}, {"group": "a b"}])).await;
    list.ok();
    let lines = b"{\"group\": \"a b\"}\n{\"group\": \"a b\"}";
    client.request("POST", "/v1/topics/t/jobs", "application/x-ndjson", lines).await.ok();
    let raw = "/v1/topics/t/jobs?group=a%20b";
    client.request("POST", raw, "text/plain", b"x").await.expect(201);
    let page = client.get("/v1/topics/t/jobs?state=ready").await.ok();
    let listed = page["jobs"].as_array().unwrap();
    let leased = reserve(&mut client).await;
    assert_eq!((listed.len(), leased.len()), (6, 6));
    assert!(listed.iter().chain(&leased).all(|job| job["group"] == "a b"), "{page}");
    let chained = json!({"token": leased[0]["token"], "put": [{"topic": "t", "group": "c"}]});
    client.post("/v1/ack", chained).await.ok();
    assert_eq!(reserve(&mut client).await[0]["group"], "c");
    let plain = put(&mut client, json!({})).await;
    assert_eq!(job(&mut client, &plain).await.get("group"), None);
}

#[tokio::test]
async fn a_held_job_stays_ready_and_names_its_limit() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for (settings, limit) in [
        (json!({"leased_max": 1}), "leased_max"),
        (json!({"rate": "1/1h"}), "rate"),
        (json!({"group_leased_max": 1}), "group_leased_max"),
        (json!({"group_rate": "1/1h"}), "group_rate"),
    ] {
        set(&mut client, settings).await;
        put(&mut client, json!({"group": limit})).await;
        let held = put(&mut client, json!({"group": limit})).await;
        let leased = reserve(&mut client).await;
        assert_eq!(leased.len(), 1, "{limit}");
        let shown = job(&mut client, &held).await;
        assert_eq!((&shown["state"], &shown["held_by"]), (&json!("ready"), &json!(limit)));
        let page = client.get("/v1/topics/t/jobs?state=ready").await.ok();
        assert_eq!(page["jobs"][0]["held_by"], limit);
        let path = format!("/v1/jobs/{held}/reserve");
        let busy = client.post(&path, json!({})).await.problem(503, "busy");
        assert!(busy["detail"].as_str().unwrap().contains(limit), "{busy}");
        // Without limits nothing holds it.
        set(&mut client, json!({})).await;
        assert_eq!(job(&mut client, &held).await.get("held_by"), None);
        assert_eq!(reserve(&mut client).await.len(), 1);
    }
}
