//! Access rights on every route.

use dormouse_server::Options;
use serde_json::{Value, json};

use crate::rig::{Rig, access};

const OPEN: [&str; 3] = ["/livez", "/readyz", "/openapi.json"];

/// Every method and path of the OpenAPI document.
fn routes() -> Vec<(String, String)> {
    let document = serde_json::to_value(dormouse_server::openapi()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, item)| {
        item.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone()))
    });
    all.collect()
}

#[tokio::test]
async fn without_a_token_only_health_and_the_document_are_served() {
    let rig = Rig::with_tokens(&[("secret", &["*:*"])]).await;
    let routes = routes();
    assert!(routes.len() > 40);
    for (method, path) in routes {
        let target = path.replace("{topic}", "t").replace("{key}", "k").replace("{name}", "n");
        let target = target.replace("{id}", "1");
        for header in ["", "Bearer wrong", "Basic secret", "secret"] {
            let mut client = rig.client().await;
            if !header.is_empty() {
                client = client.with("authorization", header);
            }
            let answer = client.request(&method, &target, "", b"").await;
            if OPEN.contains(&path.as_str()) {
                assert_eq!(answer.status, 200, "{method} {path}");
            } else {
                assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{method} {path}");
                answer.problem(401, "unauthorized");
            }
        }
    }
}

#[tokio::test]
async fn a_token_of_another_prefix_gets_nothing_of_a_topic() {
    let rig = Rig::with_tokens(&[("all", &["*:*"]), ("other", &["*:other.*"])]).await;
    let mut all = rig.client_of("all").await;
    all.post("/v1/topics/t/jobs", json!({"key": "k"})).await.expect(201);
    let leased = all.post("/v1/topics/t/jobs", json!({})).await.expect(201);
    let leased = format!("/v1/jobs/{}/reserve", leased["id"].as_str().unwrap());
    let leased = all.post(&leased, json!({})).await.ok();
    let token = &leased["jobs"][0]["token"];
    for (method, path) in routes() {
        let is_lock = path.starts_with("/v1/locks/");
        if !path.contains("{topic}") && !path.contains("{id}") && !is_lock {
            continue;
        }
        let target = path.replace("{topic}", "t").replace("{key}", "k").replace("{name}", "n");
        let target = target.replace("{id}", "1");
        let mut client = rig.client_of("other").await;
        let answer = client.request(&method, &target, "", b"").await;
        // By its id a job of others does not exist; rights/ has all cases.
        match path.contains("{id}") {
            true => answer.problem(404, "not_found"),
            false => answer.problem(403, "forbidden"),
        };
    }
    let mut other = rig.client_of("other").await;
    for verb in ["ack", "nack", "release"] {
        let answer = other.post(&format!("/v1/{verb}"), json!({"token": token})).await;
        assert_eq!(answer.ok(), json!({"token": token, "code": "gone"}));
    }
    let form = json!({"tokens": [], "reserve": {"topics": ["other.a", "t"]}});
    other.post("/v1/ack", form).await.problem(403, "forbidden");
    let form = json!({"topics": ["other.a", "t"]});
    other.post("/v1/reserve", form).await.problem(403, "forbidden");
    other.get("/v1/stats").await.problem(403, "forbidden");
    other.post("/v1/backups", json!({})).await.problem(403, "forbidden");
    // None of the refused requests had an effect.
    let topic = all.get("/v1/topics/t").await.ok();
    assert_eq!((&topic["ready"], &topic["leased"]), (&json!(1), &json!(1)));
    assert_eq!(topic["paused"], false);
    // The same calls are allowed on their own topic.
    let put = other.post("/v1/topics/other.x/jobs", json!({})).await.expect(201);
    let job = format!("/v1/jobs/{}", put["id"].as_str().unwrap());
    other.get(&job).await.ok();
    other.delete(&job).await.ok();
    other.get("/v1/jobs/99").await.problem(404, "not_found");
    other.post("/v1/locks/other.l/acquire", json!({"owner": "me"})).await.ok();
}

#[tokio::test]
async fn a_verb_is_needed_for_each_call() {
    let rig =
        Rig::with_tokens(&[("producer", &["producer:*"]), ("consumer", &["consumer:*"])]).await;
    let mut producer = rig.client_of("producer").await;
    let mut consumer = rig.client_of("consumer").await;
    producer.post("/v1/topics/t/jobs", json!({})).await.expect(201);
    producer.post("/v1/topics/t/reserve", json!({})).await.problem(403, "forbidden");
    consumer.post("/v1/topics/t/jobs", json!({})).await.problem(403, "forbidden");
    let job = consumer.post("/v1/topics/t/reserve", json!({})).await.ok();
    let form = json!({"token": job["jobs"][0]["token"]});
    producer.post("/v1/ack", form.clone()).await.problem(403, "forbidden");
    consumer.post("/v1/ack", form).await.ok();
    for mut client in [producer, consumer] {
        client.get("/v1/topics").await.problem(403, "forbidden");
        client.delete("/v1/topics/t").await.problem(403, "forbidden");
    }
}

#[tokio::test]
async fn topics_of_others_are_not_shown() {
    let rig = Rig::with_tokens(&[("all", &["*:*"]), ("some", &["viewer:m.*", "viewer:z"])]).await;
    let mut all = rig.client_of("all").await;
    for topic in ["a", "b", "m.1", "m.2", "m.3", "n", "o", "z"] {
        all.post(&format!("/v1/topics/{topic}/jobs"), json!({})).await.expect(201);
    }
    let mut some = rig.client_of("some").await;
    for limit in 1..6 {
        let mut seen = Vec::new();
        let mut after = String::new();
        loop {
            let page = some.get(&format!("/v1/topics?limit={limit}{after}")).await.ok();
            let topics = page["topics"].as_array().unwrap();
            assert!(topics.len() <= limit);
            seen.extend(topics.iter().map(|topic| topic["topic"].as_str().unwrap().to_owned()));
            let Some(Value::String(next)) = page.get("next") else { break };
            assert_eq!(topics.len(), limit);
            after = format!("&after={next}");
        }
        assert_eq!(seen, ["m.1", "m.2", "m.3", "z"], "limit {limit}");
    }
    some.get("/v1/topics?limit=1001").await.problem(422, "invalid");
}

/// Jobs that do not fit into the first lookup of their topics are looked up again.
#[tokio::test]
async fn a_foreign_token_behind_large_jobs_is_gone() {
    let rig = Rig::with_tokens(&[("all", &["*:*"]), ("mine", &["*:mine"])]).await;
    let mut all = rig.client_of("all").await;
    all.post("/v1/topics/secret/jobs", json!({})).await.expect(201);
    let leased = all.post("/v1/topics/secret/reserve", json!({})).await.ok();
    let foreign = leased["jobs"][0]["token"].clone();
    let mut mine = rig.client_of("mine").await;
    let mut tokens = Vec::new();
    for _ in 0..17 {
        let large = json!({"text": "x".repeat(1_000_000)});
        let put = mine.post("/v1/topics/mine/jobs", large).await.expect(201);
        tokens.push(json!(format!("{}.1", put["id"].as_str().unwrap())));
    }
    tokens.push(foreign.clone());
    let answer = mine.post("/v1/ack", json!({"tokens": tokens})).await;
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer["results"][17], json!({"token": foreign, "code": "gone"}));
    let acked = all.post("/v1/ack", json!({"token": foreign})).await.ok();
    assert_eq!(acked["code"], "done");
    // An absent job is not looked up again.
    mine.get("/v1/jobs/999").await.problem(404, "not_found");
    let gone = mine.post("/v1/ack", json!({"tokens": ["999.1", "1000.1"]})).await.ok();
    assert_eq!(gone["results"][0], json!({"token": "999.1", "code": "gone"}));
    mine.post("/v1/extend", json!({"token": "999.1"})).await.problem(404, "not_found");
}

/// A token without the right for a call cannot occupy the memory for bodies: the answer does not
/// wait for the body.
#[tokio::test]
async fn rights_are_checked_before_a_body_is_read() {
    let rig = Rig::with_tokens(&[("all", &["*:*"]), ("idle", &["metrics:in.*"])]).await;
    let mut all = rig.client_of("all").await;
    all.post("/v1/topics/t/jobs", json!({"key": "k", "delay": "1h"})).await.expect(201);
    let document = serde_json::to_value(dormouse_server::openapi()).unwrap();
    let mut tried = 0;
    for (method, path) in routes() {
        if document["paths"][&path][method.to_lowercase()].get("requestBody").is_none() {
            continue;
        }
        tried += 1;
        let target = path.replace("{topic}", "t").replace("{key}", "k").replace("{name}", "n");
        let target = target.replace("{id}", "1");
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer idle\r\n\
             Content-Type: application/json\r\nContent-Length: 65536\r\n\r\n{{\"topics\": [\"t\","
        );
        let mut client = rig.client().await;
        client.send_raw(head.as_bytes()).await;
        // The rest of the body never comes: after 10 s the answer would be 408.
        let answer = client.receive(true).await.unwrap();
        assert_eq!(answer.status, 403, "{method} {target}: {}", answer.text());
    }
    assert!(tried > 15, "{tried}");
}

/// What waits, or still arrives, when its token is withdrawn is refused, and gets no job.
#[tokio::test]
async fn calls_under_way_end_when_their_token_is_withdrawn() {
    let access = access(&[("all", &["*:*"]), ("old", &["*:*"])]);
    let rig = Rig::with(Options { access: access.clone(), ..Options::default() }).await;
    let mut all = rig.client_of("all").await;
    let mut calls = Vec::new();
    for (path, body) in [
        ("/v1/topics/t/reserve", json!({"wait": "60s"})),
        ("/v1/reserve", json!({"topics": ["t"], "wait": "60s"})),
        ("/v1/ack", json!({"tokens": [], "reserve": {"topics": ["t"], "wait": "60s"}})),
    ] {
        let mut client = rig.client_of("old").await;
        client.send("POST", path, "application/json", body.to_string().as_bytes()).await;
        calls.push(client);
    }
    all.post("/v1/locks/l/acquire", json!({"owner": "all"})).await.ok();
    let mut lock = rig.client_of("old").await;
    let form = json!({"owner": "me", "wait": "60s"}).to_string();
    lock.send("POST", "/v1/locks/l/acquire", "application/json", form.as_bytes()).await;
    calls.push(lock);
    let mut upload = rig.client_of("old").await;
    let head = "POST /v1/topics/t/jobs HTTP/1.1\r\nHost: localhost\r\n\
                Authorization: Bearer old\r\nContent-Length: 2\r\n\r\nx";
    upload.send_raw(head.as_bytes()).await;
    loop {
        let waiters = all.get("/v1/stats").await.ok()["waiters"].as_u64();
        if waiters == Some(4) {
            break;
        }
        tokio::task::yield_now().await;
    }
    access.replace(&self::access(&[("all", &["*:*"])]));
    all.post("/v1/topics/t/jobs", json!({})).await.expect(201);
    all.post("/v1/locks/l/release", json!({"owner": "all"})).await.ok();
    upload.send_raw(b"y").await;
    calls.push(upload);
    for mut call in calls {
        call.receive(true).await.unwrap().problem(401, "unauthorized");
    }
    // The job and the lock are there for others.
    let reserved = all.post("/v1/topics/t/reserve", json!({"wait": "60s"})).await.ok();
    assert_eq!(reserved["jobs"].as_array().unwrap().len(), 1);
    all.post("/v1/locks/l/acquire", json!({"owner": "all", "wait": "60s"})).await.ok();
    assert_eq!(all.get("/v1/topics/t").await.ok()["ready"], 0);
}

/// What was done is told, whatever became of the rest.
#[tokio::test]
async fn acks_are_told_though_the_token_is_withdrawn_while_the_next_job_is_waited_for() {
    let access = access(&[("all", &["*:*"]), ("old", &["*:*"])]);
    let rig = Rig::with(Options { access: access.clone(), ..Options::default() }).await;
    let mut all = rig.client_of("all").await;
    all.post("/v1/topics/t/jobs", json!({})).await.expect(201);
    let leased = all.post("/v1/topics/t/reserve", json!({})).await.ok();
    let mut old = rig.client_of("old").await;
    let reserve = json!({"topics": ["t"], "wait": "60s"});
    let form = json!({"token": leased["jobs"][0]["token"], "reserve": reserve}).to_string();
    old.send("POST", "/v1/ack", "application/json", form.as_bytes()).await;
    while all.get("/v1/stats").await.ok()["waiters"] != 1 {
        tokio::task::yield_now().await;
    }
    access.replace(&self::access(&[("all", &["*:*"])]));
    let answer = old.receive(true).await.unwrap().ok();
    assert_eq!(answer["results"][0]["code"], "done", "{answer}");
    assert_eq!(
        (&answer["jobs"], &answer["reserve_failed"]["code"]),
        (&json!([]), &json!("unauthorized"))
    );
    old.get("/v1/stats").await.problem(401, "unauthorized");
}

/// A client that sends its whole body before it reads must get the refusal, and not a reset.
#[tokio::test]
async fn a_refusal_before_a_large_body_reaches_its_client() {
    let rig = Rig::with_tokens(&[("idle", &["metrics:*"])]).await;
    for bytes in [100_000, 4 << 20, 12 << 20] {
        let mut client = rig.client_of("idle").await;
        let body = vec![b'x'; bytes];
        client.send("POST", "/v1/topics/t/jobs", "text/plain", &body).await;
        client.receive(true).await.unwrap().problem(403, "forbidden");
    }
}

#[tokio::test]
async fn only_an_operator_holds_jobs_and_locks_for_long() {
    let rig = Rig::with_tokens(&[
        ("admin", &["*:*"]),
        ("client", &["producer,consumer,lock:in.*"]),
        ("set", &["producer,consumer,lock,set_topic:in.*"]),
    ])
    .await;
    let (day, longer) = (86_400_000_u64, 86_400_001_u64);
    let mut client = rig.client_of("client").await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        let put = client.post("/v1/topics/in.a/jobs", json!({"body": 1, "ttr": day})).await;
        ids.push(put.expect(201)["id"].as_str().unwrap().to_owned());
    }
    let taken = client.post("/v1/topics/in.a/reserve", json!({"ttr": day})).await.ok();
    let token = taken["jobs"][0]["token"].clone();
    let own = |ttr: u64| {
        let (one, lock) = (&ids[3], json!({"owner": "me", "ttl": ttr}));
        [
            ("/v1/topics/in.a/jobs".to_owned(), json!({"body": 2, "ttr": ttr})),
            (format!("/v1/topics/in.a/jobs?ttr={ttr}"), json!(null)),
            ("/v1/topics/in.a/reserve".to_owned(), json!({"ttr": ttr})),
            ("/v1/reserve".to_owned(), json!({"topics": ["in.b", "in.a"], "ttr": ttr})),
            ("/v1/locks/in.a/acquire".to_owned(), lock.clone()),
            ("/v1/locks/in.a/renew".to_owned(), lock),
            (format!("/v1/jobs/{one}/reserve"), json!({"ttr": ttr})),
            ("/v1/extend".to_owned(), json!({"token": token, "ttr": ttr})),
        ]
    };
    let send =
        async |client: &mut crate::client::Client, path: &str, body: &serde_json::Value| match body
            .is_null()
        {
            true => client.request("POST", path, "text/plain", b"x").await,
            false => client.post(path, body.clone()).await,
        };
    for (path, body) in own(longer) {
        let refused = send(&mut client, &path, &body).await.problem(422, "invalid");
        let text = refused["detail"].as_str().unwrap();
        let field = if path.contains("locks") { "ttl is" } else { "ttr is" };
        for part in [field, "86400001 ms", "at most 86400000 ms", "ttr_max", "set_topic"] {
            assert!(text.contains(part), "{path}: {text}");
        }
    }
    // Whoever may set the topic's ttr may do it to jobs that are named by topic, an operator of
    // all topics to all.
    let mut set = rig.client_of("set").await;
    for (path, body) in &own(longer)[..6] {
        let done = send(&mut set, path, body).await;
        assert!((200..300).contains(&done.status), "{path}: {}", done.status);
    }
    for (path, body) in &own(longer)[6..] {
        send(&mut set, path, body).await.problem(422, "invalid");
        let done = send(&mut rig.client_of("admin").await, path, body).await;
        assert!((200..300).contains(&done.status), "{path}: {}", done.status);
    }
}

#[tokio::test]
async fn the_longest_ttr_can_be_set() {
    let access = access(&[("client", &["producer,consumer:*"])]);
    let ttr_max = std::time::Duration::from_secs(1);
    let rig = Rig::with(Options { access, ttr_max, ..Options::default() }).await;
    let mut client = rig.client_of("client").await;
    let path = "/v1/topics/t/jobs";
    client.post(path, json!({"body": 1, "ttr": "1s"})).await.expect(201);
    client.post(path, json!({"body": 1, "ttr": "2s"})).await.problem(422, "invalid");
    // Without one the job has the usual ttr.
    client.post(path, json!({"body": 1})).await.expect(201);
    // In a list each is judged alone.
    let list = json!([{"body": 1}, {"body": 2, "ttr": "2s"}, {"body": 3, "ttr": "1s"}]);
    let reply = client.post(path, list).await.expect(200);
    let codes = ["/results/0/code", "/results/1/code", "/results/2/code"];
    let codes = codes.map(|at| reply.pointer(at).and_then(|code| code.as_str().map(str::to_owned)));
    assert_eq!(codes, ["created", "invalid", "created"].map(|code| Some(code.to_owned())));
}
