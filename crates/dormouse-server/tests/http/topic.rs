//! Topics: settings, pages, counts, and operations on all jobs of a topic.

use dormouse_server::Options;
use serde_json::{Value, json};

use crate::client::Client;
use crate::rig::Rig;

async fn put_many(client: &mut Client, topic: &str, count: usize, form: Value) {
    let mut missing = count;
    while missing > 0 {
        let batch = missing.min(4_096);
        let path = format!("/v1/topics/{topic}/jobs");
        let answer = client.post(&path, json!(vec![form.clone(); batch])).await;
        assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
        missing -= batch;
    }
}

#[tokio::test]
async fn settings_are_set_all_at_once() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.get("/v1/topics/t").await.problem(404, "not_found");
    let form = json!({"ttr": "5m", "attempts_max": 3, "backoff": {"fixed": "10s"},
        "jobs_max": 100, "bytes_max": 1_000, "dead_ttl": "1d", "dead_max": 5});
    let backoff = json!({"fixed": 10_000, "jitter": 0.0});
    let settings = json!({"ttr_ms": 300_000, "attempts_max": 3, "backoff": backoff,
        "jobs_max": 100, "bytes_max": 1_000, "dead_ttl_ms": 86_400_000, "dead_max": 5});
    let set = client.json("PUT", "/v1/topics/t", form).await.ok();
    assert_eq!(set, json!({"topic": "t", "settings": settings}));
    let topic = client.get("/v1/topics/t").await.ok();
    assert_eq!(topic["settings"], settings);
    client.post("/v1/topics/t/jobs", json!({})).await.expect(201);
    assert_eq!(client.get("/v1/jobs/1").await.ok()["ttr_ms"], 300_000);
    let set = client.json("PUT", "/v1/topics/t", json!({"dead_max": 1})).await.ok();
    assert_eq!(set["settings"], json!({"dead_max": 1}));
    let set = client.request("PUT", "/v1/topics/t", "", b"").await.ok();
    assert_eq!(set["settings"], json!({}));
    client.json("PUT", "/v1/topics/t", json!({"tts": 1})).await.problem(400, "invalid");
    client.json("PUT", "/v1/topics/t", json!({"ttr": -1})).await.problem(422, "invalid");
}

#[tokio::test]
async fn a_topic_counts_its_jobs() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let jobs = json!([{"delay": "1h"}, {"text": "abc"}, {"priority": 1}, {"delay": "2h"}]);
    client.post("/v1/topics/a%2Fb/jobs", jobs).await.ok();
    client.post("/v1/jobs/2/reserve", json!({})).await.ok();
    client.post("/v1/jobs/4/kill", json!({})).await.ok();
    rig.advance(5);
    let topic = client.get("/v1/topics/a%2Fb").await.ok();
    let totals = json!({"puts": 4, "reserves": 1, "acks": 0, "nacks": 0, "releases": 0,
        "expiries": 0, "kills": 1, "cancels": 0});
    assert_eq!(
        topic,
        json!({"topic": "a/b", "waiting": 2, "delayed": 1, "ready": 1, "urgent": 1, "leased": 1,
            "dead": 1, "done": 0, "bytes": 3, "waiters": 0, "oldest_ready_ms": 5_000,
            "paused": false, "settings": {}, "totals": totals})
    );
    let stats = client.get("/v1/stats").await.ok();
    assert_eq!(
        stats,
        json!({"topics": 1, "locks": 0, "waiting": 2, "delayed": 1, "ready": 1, "urgent": 1,
            "leased": 1, "dead": 1, "done": 0, "bytes": 3, "waiters": 0, "totals": totals})
    );
    client.get("/v1/stats?topic=a").await.problem(400, "invalid");
}

#[tokio::test]
async fn topics_are_listed_in_pages() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    assert_eq!(client.get("/v1/topics").await.ok(), json!({"topics": []}));
    for topic in ["c", "a", "b%2Fx", "d"] {
        client.post(&format!("/v1/topics/{topic}/jobs"), json!({})).await.expect(201);
    }
    let names = |page: &Value| -> Vec<String> {
        let topics = page["topics"].as_array().unwrap().iter();
        topics.map(|topic| topic["topic"].as_str().unwrap().to_owned()).collect()
    };
    let page = client.get("/v1/topics?limit=2").await.ok();
    assert_eq!((names(&page), &page["next"]), (vec!["a".into(), "b/x".into()], &json!("b/x")));
    let page = client.get("/v1/topics?limit=2&after=b%2Fx").await.ok();
    assert_eq!(names(&page), ["c", "d"]);
    assert!(page.get("next").is_none());
    for query in ["limit=0", "limit=1001", "after=a%20b"] {
        client.get(&format!("/v1/topics?{query}")).await.problem(422, "invalid");
    }
    client.get("/v1/topics?limit=x").await.problem(400, "invalid");
}

#[tokio::test]
async fn topics_are_listed_by_prefix_and_by_what_is_worst() {
    let tokens: &[(&str, &[&str])] = &[("all", &["*:*"]), ("some", &["list:mails.*"])];
    let rig = Rig::with_tokens(tokens).await;
    let mut client = rig.client_of("all").await;
    for (topic, jobs, dead) in [("calls", 3, 1), ("mails.a", 1, 0), ("mails.b", 2, 2)] {
        let path = format!("/v1/topics/{topic}/jobs");
        for _ in 0..jobs {
            client.post(&path, json!({})).await.expect(201);
        }
        for _ in 0..dead {
            let job = client.post(&path, json!({})).await.expect(201);
            let kill = format!("/v1/jobs/{}/kill", job["id"].as_str().unwrap());
            client.post(&kill, json!({})).await.ok();
        }
    }
    let names = |page: &Value| -> Vec<String> {
        let topics = page["topics"].as_array().unwrap().iter();
        topics.map(|topic| topic["topic"].as_str().unwrap().to_owned()).collect()
    };
    let page = client.get("/v1/topics?prefix=mails.&limit=1").await.ok();
    assert_eq!((names(&page), &page["next"]), (vec!["mails.a".into()], &json!("mails.a")));
    let page = client.get("/v1/topics?prefix=mails.&after=mails.a&sort=name").await.ok();
    assert_eq!(
        (names(&page), page.get("next"), page.get("as_of")),
        (vec!["mails.b".into()], None, None)
    );
    for (sort, expected) in [
        ("ready", vec!["calls", "mails.b", "mails.a"]),
        ("waiting", vec!["calls", "mails.b", "mails.a"]),
        ("dead", vec!["mails.b", "calls", "mails.a"]),
        ("oldest", vec!["calls", "mails.a", "mails.b"]),
    ] {
        let page = client.get(&format!("/v1/topics?sort={sort}")).await.ok();
        assert_eq!(names(&page), expected, "{sort}");
        assert_eq!((&page["looked_at"], &page["complete"]), (&json!(3), &json!(true)));
        assert!(page["as_of"].is_string() && page.get("next").is_none(), "{page}");
    }
    let page = client.get("/v1/topics?sort=ready&prefix=mails.&limit=1").await.ok();
    assert_eq!((names(&page), &page["looked_at"]), (vec!["mails.b".into()], &json!(2)));
    let mut some = rig.client_of("some").await;
    let page = some.get("/v1/topics?sort=ready").await.ok();
    assert_eq!(
        (names(&page), &page["looked_at"]),
        (vec!["mails.b".into(), "mails.a".into()], &json!(2))
    );
    client.get("/v1/topics?sort=size").await.problem(400, "invalid");
    client.get("/v1/topics?sort=dead&after=a").await.problem(400, "invalid");
    for query in ["sort=dead&limit=101", "sort=dead&limit=0", "prefix=-", "prefix=a%20b"] {
        client.get(&format!("/v1/topics?{query}")).await.problem(422, "invalid");
    }
    // A topic that comes later is seen by a later pass.
    client.post("/v1/topics/late/jobs", json!([{}, {}, {}, {}])).await.ok();
    loop {
        let page = client.get("/v1/topics?sort=ready&limit=1").await.ok();
        if names(&page) == ["late"] {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn dead_jobs_are_grouped_by_cause() {
    let rig = Rig::on_disk(Options::default()).await;
    let mut client = rig.client().await;
    let mut ids = Vec::new();
    for number in 0..20 {
        let put = client.post("/v1/topics/t/jobs", json!({})).await.expect(201);
        let id = put["id"].as_str().unwrap().to_owned();
        let error = match number % 4 {
            0 => json!({"error": format!("no user \"u{number}\"")}),
            1 => json!({}),
            _ => json!({"error": format!("timeout after {number} ms")}),
        };
        client.post(&format!("/v1/jobs/{id}/kill"), error).await.ok();
        rig.advance(1);
        ids.push(id);
    }
    let all = client.get("/v1/topics/t/dead/groups").await.ok();
    assert_eq!((&all["looked_at"], &all["of"], &all["other"]), (&json!(20), &json!(20), &json!(0)));
    assert_eq!(all.get("cursor"), None);
    let groups = all["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 3);
    assert_eq!(groups[0]["error"], "timeout after # ms");
    assert_eq!(groups[0]["count"], 10);
    assert_eq!(groups[0]["ids"], json!([ids[19], ids[18], ids[15], ids[14], ids[11]]));
    assert_eq!(groups[0]["first_at"], "2026-01-01T00:00:02.000Z");
    assert_eq!(groups[0]["last_at"], "2026-01-01T00:00:19.000Z");
    assert_eq!((&groups[1]["error"], &groups[2]["error"]), (&json!(""), &json!("no user \"...\"")));
    let (mut cursor, mut looked) = (String::new(), 0);
    loop {
        let page = client.get(&format!("/v1/topics/t/dead/groups?look_at=7{cursor}")).await.ok();
        looked += page["looked_at"].as_u64().unwrap();
        match page["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(looked, 20);
    let since = client.get("/v1/topics/t/dead/groups?from=2026-01-01T00:00:15Z").await.ok();
    assert_eq!((&since["looked_at"], &since["of"]), (&json!(5), &json!(20)));
    assert_eq!(client.get("/v1/topics/none/dead/groups").await.ok()["of"], 0);
    for query in ["look_at=0", "look_at=10001", "cursor=x"] {
        client.get(&format!("/v1/topics/t/dead/groups?{query}")).await.problem(422, "invalid");
    }
    let newest = client.get("/v1/topics/t/jobs?state=dead&newest=true&limit=2").await.ok();
    assert_eq!(
        (&newest["jobs"][0]["id"], &newest["jobs"][1]["id"]),
        (&json!(ids[19]), &json!(ids[18]))
    );
    for query in ["state=dead&newest=true&order=due", "state=ready&order=size"] {
        client.get(&format!("/v1/topics/t/jobs?{query}")).await.problem(400, "invalid");
    }
    for query in ["state=ready&newest=true", "state=leased&from=2026-01-01T00:00:00Z"] {
        client.get(&format!("/v1/topics/t/jobs?{query}")).await.problem(422, "invalid");
    }
}

#[tokio::test]
async fn a_forecast_over_topics_is_their_sum() {
    let tokens: &[(&str, &[&str])] = &[("all", &["*:*"]), ("some", &["forecast:a"])];
    let rig = Rig::with_tokens(tokens).await;
    let mut client = rig.client_of("all").await;
    for (topic, delay) in [("a", "10m"), ("a", "70m"), ("b", "20m")] {
        client.post(&format!("/v1/topics/{topic}/jobs"), json!({"delay": delay})).await.expect(201);
    }
    let range = "from=2026-01-01T00:00:00Z&to=2026-01-01T02:00:00Z&step=1h";
    let sum = client.get(&format!("/v1/forecast?topic=a&topic=b&topic=none&topic=a&{range}")).await;
    let sum = sum.ok();
    assert_eq!((&sum["counts"], &sum["step_ms"]), (&json!([2, 1]), &json!(3_600_000)));
    assert_eq!(sum["topics"], json!(["a", "b", "none"]));
    assert!(sum["as_of"].is_string());
    let many = "topic=a&".repeat(21);
    for query in [range.to_owned(), format!("{many}{range}"), "topic=a%20b".to_owned()] {
        client.get(&format!("/v1/forecast?{query}")).await.problem(422, "invalid");
    }
    client.get("/v1/forecast?topic=a&step=1h&step=2h").await.problem(400, "invalid");
    let mut some = rig.client_of("some").await;
    some.get("/v1/forecast?topic=a").await.ok();
    some.get("/v1/forecast?topic=a&topic=b").await.problem(403, "forbidden");
}

#[tokio::test]
async fn jobs_are_listed_in_pages() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    put_many(&mut client, "t", 5, json!({"delay": "1h", "body": {"x": 1}})).await;
    let mut path = "/v1/topics/t/jobs?state=delayed&limit=2".to_owned();
    let mut seen = Vec::new();
    loop {
        let page = client.get(&path).await.ok();
        let jobs = page["jobs"].as_array().unwrap();
        assert!(jobs.iter().all(|job| job["body"] == json!({"x": 1})));
        seen.extend(jobs.iter().map(|job| job["id"].as_str().unwrap().to_owned()));
        let Some(cursor) = page.get("cursor") else { break };
        path =
            format!("/v1/topics/t/jobs?state=delayed&limit=2&cursor={}", cursor.as_str().unwrap());
    }
    assert_eq!(seen, ["1", "2", "3", "4", "5"]);
    let page = client.get("/v1/topics/t/jobs?state=delayed&bodies=false").await.ok();
    assert_eq!(page["jobs"].as_array().unwrap().len(), 5);
    assert!(page["jobs"][0].get("body").is_none() && page["jobs"][0].get("text").is_none());
    for state in ["ready", "leased", "dead", "done"] {
        let page = client.get(&format!("/v1/topics/t/jobs?state={state}")).await.ok();
        assert_eq!(page, json!({"jobs": []}));
    }
    for query in ["", "?state=", "?state=gone", "?state=dead&limit=x", "?state=dead&x=1"] {
        client.get(&format!("/v1/topics/t/jobs{query}")).await.problem(400, "invalid");
    }
    for query in ["state=dead&limit=0", "state=dead&limit=1001", "state=dead&cursor=zzz"] {
        client.get(&format!("/v1/topics/t/jobs?{query}")).await.problem(422, "invalid");
    }
}

#[tokio::test]
async fn a_pause_stops_reserve_only() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let paused = client.post("/v1/topics/t/pause", json!({"for": "10m"})).await.ok();
    assert_eq!(paused, json!({"topic": "t", "paused": true, "paused_ms": 600_000}));
    client.post("/v1/topics/t/jobs", json!({})).await.expect(201);
    let reserve = "/v1/topics/t/reserve";
    assert_eq!(client.post(reserve, json!({})).await.ok(), json!({"jobs": []}));
    rig.advance(60);
    let topic = client.get("/v1/topics/t").await.ok();
    assert_eq!((&topic["paused"], &topic["paused_ms"]), (&json!(true), &json!(540_000)));
    let resumed = client.post("/v1/topics/t/resume", json!({})).await.ok();
    assert_eq!(resumed, json!({"topic": "t", "paused": false}));
    assert_eq!(client.post(reserve, json!({})).await.ok()["jobs"][0]["id"], "1");
    let paused = client.request("POST", "/v1/topics/t/pause", "", b"").await.ok();
    assert_eq!(paused, json!({"topic": "t", "paused": true}));
    let topic = client.get("/v1/topics/t").await.ok();
    assert!(topic["paused"] == true && topic.get("paused_ms").is_none());
    client.post("/v1/topics/t/pause", json!({"for": -1})).await.problem(422, "invalid");
    client.post("/v1/topics/t/resume", json!({"for": 1})).await.problem(400, "invalid");
}

#[tokio::test]
async fn kick_and_revive_change_more_than_a_batch() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    put_many(&mut client, "t", 9_000, json!({"delay": "1h"})).await;
    let kick = "/v1/topics/t/kick";
    assert_eq!(client.post(kick, json!({"max": 0})).await.ok(), json!({"count": 0}));
    assert_eq!(client.post(kick, json!({"max": 10})).await.ok(), json!({"count": 10}));
    assert_eq!(client.post(kick, json!({"max": 5_000})).await.ok(), json!({"count": 5_000}));
    assert_eq!(client.post(kick, json!({})).await.ok(), json!({"count": 3_990}));
    assert_eq!(client.post(kick, json!({"max": 5_000})).await.ok(), json!({"count": 0}));
    assert_eq!(client.get("/v1/topics/t").await.ok()["ready"], 9_000);
    for _ in 0..3 {
        let jobs = client.post("/v1/topics/t/reserve", json!({"max": 3_000})).await.ok();
        let jobs = jobs["jobs"].as_array().unwrap();
        let tokens: Vec<_> = jobs.iter().map(|job| job["token"].clone()).collect();
        client.post("/v1/kill", json!({"tokens": tokens})).await.ok();
    }
    let revive = "/v1/topics/t/revive";
    assert_eq!(client.post(revive, json!({"max": 1})).await.ok(), json!({"count": 1}));
    let all = client.request("POST", revive, "", b"").await.ok();
    assert_eq!(all, json!({"count": 8_999}));
    let none = client.post("/v1/topics/none/revive", json!({})).await.ok();
    assert_eq!(none, json!({"count": 0}));
    client.post(kick, json!({"max": -1})).await.problem(400, "invalid");
    assert_eq!(client.delete("/v1/topics/t").await.ok(), json!({"count": 9_000}));
    assert_eq!(client.delete("/v1/topics/t").await.ok(), json!({"count": 0}));
}

#[tokio::test]
async fn a_forecast_counts_by_steps() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let jobs = json!([{"delay": "10m"}, {"delay": "70m"}, {"delay": "80m"},
        {"at": "2026-01-01T02:30:00Z"}]);
    client.post("/v1/topics/t/jobs", jobs).await.ok();
    let query = "from=2026-01-01T00:00:00Z&to=2026-01-01T02:45:00Z&step=1h";
    let forecast = client.get(&format!("/v1/topics/t/forecast?{query}")).await.ok();
    assert_eq!(
        forecast,
        json!({"from": "2026-01-01T00:00:00.000Z", "to": "2026-01-01T02:45:00.000Z",
            "step_ms": 3_600_000, "counts": [1, 2, 1]})
    );
    let forecast = client.get("/v1/topics/t/forecast").await.ok();
    assert_eq!(forecast["counts"].as_array().unwrap().len(), 24);
    let forecast =
        client.get("/v1/topics/t/forecast?from=1970-01-01T00:00:00Z&step=12h").await.ok();
    assert_eq!(forecast["to"], "1970-01-02T00:00:00.000Z");
    for query in [
        "step=0",
        "step=1ms",
        "from=-1",
        "from=9223372036854775807",
        "from=1798790400002&to=1798790400001",
    ] {
        client.get(&format!("/v1/topics/t/forecast?{query}")).await.problem(422, "invalid");
    }
    for query in ["step=x", "from=now", "until=1", "from=1798790400"] {
        client.get(&format!("/v1/topics/t/forecast?{query}")).await.problem(400, "invalid");
    }
}

/// The server does not take a path apart twice, and no file is named after a topic.
#[tokio::test]
async fn topics_called_like_directories_are_topics_like_others() {
    let rig = Rig::on_disk(Options::default()).await;
    let mut client = rig.client().await;
    let files = || -> Vec<_> {
        let dir = std::fs::read_dir(rig.dir.as_ref().unwrap().path()).unwrap();
        let mut names: Vec<_> = dir.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    for name in [".", "..", "../..", "a/../b"] {
        let path = format!("/v1/topics/{}", name.replace('/', "%2F"));
        client.post(&format!("{path}/jobs"), json!({"key": ".."})).await.expect(201);
        assert_eq!(client.get(&path).await.ok()["topic"], name);
        assert_eq!(client.get(&format!("{path}/keys/..")).await.ok()["topic"], name);
        let reserved = client.post(&format!("{path}/reserve"), json!({})).await.ok();
        assert_eq!(reserved["jobs"][0]["topic"], name);
    }
    assert_eq!(client.get("/v1/topics").await.ok()["topics"].as_array().unwrap().len(), 4);
    client.send("GET", "/metrics", "", b"").await;
    let metrics = client.receive(true).await.unwrap();
    assert!(metrics.text().contains(r#"topic="../..""#), "{}", metrics.text());
    assert_eq!(files(), before);
}
