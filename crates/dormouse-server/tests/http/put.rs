//! put: every form of a request; bodies are returned as they were put.

use serde_json::json;

use crate::client::Client;
use crate::rig::Rig;

const JSON: &str = "application/json";

async fn reserved(client: &mut Client, topic: &str) -> String {
    let answer = client.post(&format!("/v1/topics/{topic}/reserve"), json!({"max": 10})).await;
    answer.text().to_owned()
}

#[tokio::test]
async fn an_object_is_one_job() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let put = client.post("/v1/topics/orders/jobs", json!({"body": 1, "delay": "30m"})).await;
    assert_eq!(
        put.expect(201),
        json!({"id": "1", "code": "created", "state": "delayed",
            "due_at": "2026-01-01T00:30:00.000Z"})
    );
    let put = client.post("/v1/topics/orders/jobs", json!({"at": "2026-01-01T01:00:00Z"})).await;
    assert_eq!(put.expect(201)["due_at"], "2026-01-01T01:00:00.000Z");
    let put = client.post("/v1/topics/orders/jobs", json!({})).await.expect(201);
    assert_eq!(put["state"], "ready");
}

#[tokio::test]
async fn a_taken_key_is_reported() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let path = "/v1/topics/orders/jobs";
    let first = client.post(path, json!({"key": "42", "delay": "1h"})).await.expect(201);
    let again = client.post(path, json!({"key": "42"})).await.ok();
    assert_eq!(again["code"], "duplicate");
    assert_eq!(again["duplicate"], true);
    assert_eq!((&again["id"], &again["state"]), (&first["id"], &json!("delayed")));
    let form = json!({"key": "42", "on_conflict": "replace", "delay": "2h"});
    let replaced = client.post(path, form).await.ok();
    assert_eq!((&replaced["code"], &replaced["id"]), (&json!("replaced"), &first["id"]));
    let form = json!({"key": "42", "on_conflict": "reject"});
    let problem = client.post(path, form.clone()).await.problem(409, "conflict");
    assert_eq!((&problem["id"], &problem["state"]), (&first["id"], &json!("delayed")));
    // A list of one has the status of its item, and is still a list.
    let list = client.post(path, json!([form])).await.expect(409);
    assert_eq!(list["results"][0]["code"], "conflict");
    assert_eq!(list["results"][0]["id"], first["id"]);
}

#[tokio::test]
async fn a_held_key_has_no_state() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.post("/v1/topics/t/jobs", json!({"key": "k", "key_ttl": "1h"})).await.expect(201);
    let jobs = client.post("/v1/topics/t/reserve", json!({})).await.ok();
    client.post("/v1/ack", json!({"token": jobs["jobs"][0]["token"]})).await.ok();
    let again = client.post("/v1/topics/t/jobs", json!({"key": "k"})).await.ok();
    assert_eq!(again["code"], "duplicate");
    assert!(again.get("state").is_none());
}

#[tokio::test]
async fn a_list_has_one_result_per_item() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let path = "/v1/topics/t/jobs";
    let list = json!([{"key": "a"}, {"key": "a"}, {"delay": "-1s"}, {"priority": 7}]);
    let results = client.post(path, list).await.ok();
    let codes: Vec<_> = results["results"].as_array().unwrap().iter().map(|r| &r["code"]).collect();
    assert_eq!(codes, ["created", "duplicate", "invalid", "created"]);
    assert_eq!(client.post(path, json!([{}])).await.expect(201)["results"][0]["code"], "created");
    assert_eq!(client.post(path, json!([{"key": "a"}])).await.ok()["results"][0]["id"], "1");
    assert_eq!(client.post(path, json!([])).await.ok(), json!({"results": []}));
    let lines = b"{\"text\": \"one\"}\n\n{\"text\": \"two\"}\r\n";
    let results = client.request("POST", path, "application/x-ndjson", lines).await.ok();
    assert_eq!(results["results"].as_array().unwrap().len(), 2);
    let lines = b"{\"text\": \"one\"}\n{\"txet\": 1}";
    let answer = client.request("POST", path, "application/x-ndjson", lines).await;
    let problem = answer.problem(400, "invalid");
    assert!(problem["detail"].as_str().unwrap().contains("line 2"), "{problem}");
}

#[tokio::test]
async fn bodies_are_returned_as_they_were_put() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let path = "/v1/topics/t/jobs";
    for (sent, kept) in [
        // Kept as written: numbers beyond 2^53, spaces, order and escapes.
        (
            r#"{"body": {"z":12345678901234567890123, "a": 1.50,"é":"\u00e9"}}"#,
            r#""body":{"z":12345678901234567890123, "a": 1.50,"é":"\u00e9"}"#,
        ),
        (r#"{"body": null}"#, r#""body":null"#),
        (r#"{"body": "text"}"#, r#""body":"text""#),
        (r#"{"text": "zeile\n2"}"#, r#""text":"zeile\n2""#),
        (r#"{"base64": "AP8="}"#, r#""base64":"AP8=""#),
        (r#"{"base64": "aGk="}"#, r#""text":"hi""#),
        (r#"{}"#, r#""text":"""#),
    ] {
        client.request("POST", path, JSON, sent.as_bytes()).await.expect(201);
        let given = reserved(&mut client, "t").await;
        assert!(given.contains(kept), "{sent}: {given}");
    }
    for (kind, sent, kept) in [
        ("text/plain; charset=utf-8", "hello".as_bytes(), r#""text":"hello""#),
        ("application/octet-stream", b"\x00\xff", r#""base64":"AP8=""#),
        ("application/octet-stream", b"hello", r#""text":"hello""#),
        ("application/xml", b"<a/>", r#""text":"<a/>""#),
        ("", b"bare", r#""text":"bare""#),
    ] {
        client.request("POST", path, kind, sent).await.expect(201);
        let given = reserved(&mut client, "t").await;
        assert!(given.contains(kept), "{kind}: {given}");
    }
    client.request("POST", path, "text/plain", b"\xff").await.problem(400, "invalid");
}

#[tokio::test]
async fn a_raw_body_has_its_options_in_the_query() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let path = "/v1/topics/t/jobs?delay=30m&key=a%2Fb&priority=5&ttr=10s&attempts_max=2\
        &backoff=list:1s,5s:jitter=0.25&header.trace=x%20y&key_ttl=1h&on_conflict=replace";
    client.request("POST", path, "text/plain", b"hello").await.expect(201);
    let job = client.get("/v1/topics/t/keys/a%2Fb").await.ok();
    assert_eq!(job["text"], "hello");
    assert_eq!(job["key"], "a/b");
    assert_eq!(job["headers"], json!({"trace": "x y"}));
    assert_eq!(job["backoff"], json!({"list": [1000, 5000], "jitter": 0.25}));
    assert_eq!((&job["priority"], &job["ttr_ms"]), (&json!(5), &json!(10_000)));
    assert_eq!((&job["attempts_max"], &job["key_ttl_ms"]), (&json!(2), &json!(3_600_000)));
    for query in ["dealy=1", "delay=soon", "priority=-1", "on_conflict=maybe", "backoff=linear:1"] {
        let path = format!("/v1/topics/t/jobs?{query}");
        client.request("POST", &path, "text/plain", b"x").await.problem(400, "invalid");
    }
    // With JSON the options are fields.
    client.request("POST", "/v1/topics/t/jobs?delay=1", JSON, b"{}").await.problem(400, "invalid");
}

#[tokio::test]
async fn what_cannot_be_read_is_400() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for body in [
        "",
        "{",
        "1",
        "null",
        "\"x\"",
        r#"{"dealy": 1}"#,
        r#"{"body": 1, "text": "x"}"#,
        r#"{"base64": "?"}"#,
        r#"{"delay": "soon"}"#,
        r#"{"at": "tomorrow"}"#,
        r#"{"at": 1798790400}"#,
        r#"{"priority": -1}"#,
        r#"{"priority": 4294967296}"#,
        r#"{"headers": {"a": 1}}"#,
        r#"{"backoff": {"linear": 1}}"#,
        r#"{"backoff": {"fixed": "1s", "list": []}}"#,
        r#"{"backoff": {"jitter": 0.5}}"#,
        r#"{"backoff": {"fixed": "1s", "jitter": "much"}}"#,
        r#"{"delay": 1, "delay": 2}"#,
        "[{}, {\"x\": 1}]",
        "{\"text\": \"\u{0}\"}",
    ] {
        let answer = client.request("POST", "/v1/topics/t/jobs", JSON, body.as_bytes()).await;
        answer.problem(400, "invalid");
    }
}

#[tokio::test]
async fn values_beyond_a_limit_are_refused() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for (form, status, code) in [
        (json!({"delay": "-1s"}), 422, "invalid"),
        (json!({"delay": "40000d"}), 422, "invalid"),
        (json!({"delay": 1, "at": "2027-01-01T09:00:00Z"}), 422, "invalid"),
        (json!({"ttr": 0}), 422, "invalid"),
        (json!({"key": ""}), 422, "invalid"),
        (json!({"key": "k".repeat(257)}), 422, "invalid"),
        (json!({"headers": {"a": "b".repeat(4096)}}), 422, "invalid"),
        (json!({"backoff": {"list": []}}), 422, "invalid"),
        (json!({"backoff": {"fixed": "-1s"}}), 422, "invalid"),
        (json!({"backoff": {"fixed": "1s", "jitter": 1.5}}), 422, "invalid"),
        (json!({"backoff": {"fixed": "1s", "jitter": -0.5}}), 422, "invalid"),
        (json!({"text": "x".repeat((1 << 20) + 1)}), 413, "too_large"),
    ] {
        let list = json!([form]);
        client.post("/v1/topics/t/jobs", form).await.problem(status, code);
        let item = client.post("/v1/topics/t/jobs", list).await.expect(status);
        assert_eq!(item["results"][0]["code"], code);
    }
    client.post("/v1/topics/t/jobs", json!({"text": "x".repeat(1 << 20)})).await.expect(201);
    for topic in ["-a", "a%20b", "%C3%A9", &"a".repeat(201)] {
        let path = format!("/v1/topics/{topic}/jobs");
        client.post(&path, json!({})).await.problem(422, "invalid");
    }
}

#[tokio::test]
async fn a_batch_has_its_limit() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let path = "/v1/topics/t/jobs";
    let jobs = |count: usize| json!(vec![json!({}); count]);
    client.post(path, jobs(4_097)).await.problem(422, "invalid");
    let lines = "{}\n".repeat(4_097);
    let answer = client.request("POST", path, "application/x-ndjson", lines.as_bytes()).await;
    answer.problem(422, "invalid");
    let results = client.post(path, jobs(4_096)).await.ok();
    assert_eq!(results["results"].as_array().unwrap().len(), 4_096);
    assert_eq!(client.get("/v1/topics/t").await.ok()["ready"], 4_096);
}

#[tokio::test]
async fn a_request_beyond_the_size_limit_is_not_read() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let head = format!(
        "POST /v1/topics/t/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: {JSON}\r\n\
         content-length: {}\r\n\r\n",
        (16 << 20) + 1
    );
    client.send_raw(head.as_bytes()).await;
    client.receive(true).await.unwrap().problem(413, "too_large");
}

#[tokio::test]
async fn a_full_topic_is_507() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.json("PUT", "/v1/topics/t", json!({"jobs_max": 1})).await.ok();
    client.post("/v1/topics/t/jobs", json!({})).await.expect(201);
    let answer = client.post("/v1/topics/t/jobs", json!({})).await;
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.problem(507, "full")["retryable"], true);
    client.post("/v1/topics/t/jobs", json!([{}])).await.expect(507);
}

/// A strict consumer would fail on the whole batch that has such a body.
#[tokio::test]
async fn json_that_many_cannot_read_is_refused() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for (body, part) in [(r#""\ud800""#, "half of a character"), ("1e400", "beyond 1.8e308")] {
        let one = format!(r#"{{"body": {body}}}"#);
        let list = format!(r#"[{{"body": 1}}, {{"body": [{body}]}}]"#);
        for json in [one, list] {
            let kind = "application/json";
            let answer = client.request("POST", "/v1/topics/t/jobs", kind, json.as_bytes()).await;
            let problem = answer.problem(400, "invalid");
            assert!(problem["detail"].as_str().unwrap().contains(part), "{problem}");
        }
    }
    client.get("/v1/topics/t").await.problem(404, "not_found");
    let text = json!({"text": "1e400"});
    client.post("/v1/topics/t/jobs", text).await.expect(201);
}
