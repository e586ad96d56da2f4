//! Many jobs by their ids: get, cancel, reschedule, run, revive, kill.

use serde_json::{Value, json};

use crate::client::Client;
use crate::rig::Rig;

/// Puts this many delayed jobs; gives their ids.
async fn put(client: &mut Client, count: usize) -> Vec<Value> {
    let jobs = vec![json!({"delay": "1h", "text": "x"}); count];
    let status = if count == 1 { 201 } else { 200 };
    let put = client.post("/v1/topics/t/jobs", json!(jobs)).await.expect(status);
    put["results"].as_array().unwrap().iter().map(|result| result["id"].clone()).collect()
}

/// The codes of the results.
async fn codes(client: &mut Client, verb: &str, form: Value) -> Vec<String> {
    let answer = client.post(&format!("/v1/jobs/{verb}"), form).await.ok();
    let results = answer["results"].as_array().unwrap();
    results.iter().map(|result| result["code"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn each_job_has_its_result_in_order() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let ids = put(&mut client, 3).await;
    let form = json!({"ids": [ids[2], "900", ids[0]], "at": "2026-01-03T00:00:00Z"});
    let moved = client.post("/v1/jobs/reschedule", form).await.ok();
    assert_eq!(
        moved["results"][0],
        json!({"id": ids[2], "code": "rescheduled", "was": "delayed",
            "due_at": "2026-01-03T00:00:00.000Z"})
    );
    let absent = &moved["results"][1];
    assert_eq!((&absent["id"], &absent["code"]), (&json!("900"), &json!("not_found")));
    assert_eq!(absent["retryable"], false);
    assert_eq!(moved["results"][2]["id"], ids[0]);
    assert_eq!(
        codes(&mut client, "run", json!({"ids": [ids[0], ids[1]]})).await,
        ["rescheduled", "rescheduled"]
    );
    let form = json!({"ids": ids, "error": "enough", "priority": 7});
    assert_eq!(codes(&mut client, "kill", form).await, ["done", "done", "done"]);
    let got = client.post("/v1/jobs/get", json!({"ids": ids, "bodies": false})).await.ok();
    for (result, id) in got["results"].as_array().unwrap().iter().zip(&ids) {
        assert_eq!((&result["id"], &result["code"]), (id, &json!("found")));
        let job = &result["job"];
        assert_eq!((&job["state"], &job["error"]), (&json!("dead"), &json!("enough")));
        assert_eq!((&job["priority"], job.get("text")), (&json!(7), None));
    }
    assert_eq!(
        codes(&mut client, "revive", json!({"ids": [ids[0], ids[1], ids[0]]})).await,
        ["revived", "revived", "conflict"]
    );
    assert_eq!(
        codes(&mut client, "cancel", json!({"ids": [ids[1], ids[1], ids[2]]})).await,
        ["cancelled", "not_found", "cancelled"]
    );
    assert_eq!(
        codes(&mut client, "get", json!({"ids": ids})).await,
        ["found", "not_found", "not_found"]
    );
}

#[tokio::test]
async fn a_list_of_one_has_the_status_of_its_item() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let ids = put(&mut client, 1).await;
    let form = json!({"ids": ids});
    let found = client.post("/v1/jobs/get", form.clone()).await.expect(200);
    assert_eq!(found["results"][0]["job"]["text"], "x");
    let refused = client.post("/v1/jobs/revive", form.clone()).await.expect(409);
    let refused = &refused["results"][0];
    assert_eq!((&refused["code"], &refused["state"]), (&json!("conflict"), &json!("delayed")));
    client.post(&format!("/v1/jobs/{}/reserve", ids[0].as_str().unwrap()), json!({})).await.ok();
    let gentle = json!({"ids": ids, "unless_leased": true});
    let refused = client.post("/v1/jobs/cancel", gentle).await.expect(409);
    assert_eq!(refused["results"][0]["state"], "leased");
    client.post("/v1/jobs/cancel", form.clone()).await.expect(200);
    client.post("/v1/jobs/cancel", form).await.expect(404);
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_as_a_whole() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let ids = put(&mut client, 1).await;
    let many = vec!["1"; 1_001];
    for verb in ["get", "cancel", "run", "revive", "kill", "reschedule"] {
        let path = format!("/v1/jobs/{verb}");
        for (form, status) in [
            (json!({}), 400),
            (json!({"ids": "1"}), 400),
            (json!({"ids": [1]}), 400),
            (json!({"ids": [ids[0]], "id": "1", "delay": 1}), 400),
            (json!({"ids": [], "delay": 1}), 422),
            (json!({"ids": many, "delay": 1}), 422),
            (json!({"ids": [ids[0], "x"], "delay": 1}), 422),
        ] {
            let status =
                if verb != "reschedule" && form.get("delay").is_some() { 400 } else { status };
            client.post(&path, form).await.problem(status, "invalid");
        }
        if verb != "reschedule" {
            client.post(&path, json!({"ids": many})).await.problem(422, "invalid");
        }
    }
    client.post("/v1/jobs/reschedule", json!({"ids": ids})).await.problem(400, "invalid");
    assert_eq!(
        codes(&mut client, "get", json!({"ids": [ids[0], ids[0]]})).await,
        ["found", "found"]
    );
}

#[tokio::test]
async fn jobs_of_others_are_absent_and_jobs_that_may_only_be_read_are_refused() {
    let rig = Rig::with_tokens(&[("all", &["*:*"]), ("some", &["cancel:t", "get:seen"])]).await;
    let mut all = rig.client_of("all").await;
    let ids = put(&mut all, 1).await;
    let mut other = Vec::new();
    for topic in ["hidden", "seen"] {
        let put = all.post(&format!("/v1/topics/{topic}/jobs"), json!({})).await.expect(201);
        other.push(put["id"].clone());
    }
    let mut some = rig.client_of("some").await;
    let form = json!({"ids": [ids[0], other[1]]});
    some.post("/v1/jobs/cancel", form).await.problem(403, "forbidden");
    some.post("/v1/jobs/kill", json!({"ids": ids})).await.problem(403, "forbidden");
    assert_eq!(
        codes(&mut some, "cancel", json!({"ids": [other[0], ids[0], "999"]})).await,
        ["not_found", "cancelled", "not_found"]
    );
    assert_eq!(
        codes(&mut all, "get", json!({"ids": [other[0], other[1]]})).await,
        ["found", "found"]
    );
}
