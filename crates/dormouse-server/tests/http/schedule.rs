//! Rules that repeat: what they would do.

use serde_json::{Value, json};

use crate::client::Client;
use crate::rig::Rig;

const PREVIEW: &str = "/v1/schedules/preview";

#[tokio::test]
async fn a_preview_has_ticks_words_and_notes() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let rule = json!({"cron": "30 2 * * *", "zone": "america/new_york",
        "from": "2027-03-13T12:00:00Z", "limit": 2});
    assert_eq!(
        client.post(PREVIEW, rule).await.ok(),
        json!({"ticks": ["2027-03-14T07:00:00.000Z", "2027-03-15T06:30:00.000Z"],
            "local": ["2027-03-14T03:00:00-04:00", "2027-03-15T02:30:00-04:00"],
            "words": "at 02:30 every day, America/New_York",
            "notes": ["2027-03-14 has no 02:30: ticks at 03:00",
                "2028-03-12 has no 02:30: ticks at 03:00"]})
    );
    let every = json!({"every": "90m", "from": 1_800_000_000_000_i64, "limit": 1});
    assert_eq!(
        client.post(PREVIEW, every).await.ok(),
        json!({"ticks": ["2027-01-15T09:30:00.000Z"], "words": "every 1h 30m", "notes": []})
    );
    let gap = client.post(PREVIEW, json!({"gap": "5s"})).await.ok();
    assert_eq!(gap["words"], "5s after the job before has ended");
    // From now on, and ten of them.
    let daily = client.post(PREVIEW, json!({"cron": "@daily"})).await.ok();
    assert_eq!(daily["ticks"].as_array().unwrap().len(), 10);
    assert_eq!(daily["words"], "at 00:00 every day, UTC");
}

#[tokio::test]
async fn bad_rules_are_refused_with_the_fix() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for (rule, part) in [
        (json!({}), "give one of cron, every and gap"),
        (json!({"cron": "@daily", "every": "5m"}), "cron and every are given"),
        (json!({"every": "5m", "zone": "UTC"}), "zone goes with cron"),
        (json!({"cron": "60 * * * *"}), "cron: minutes \"60\": 0-59"),
        (json!({"cron": "@every 5m"}), "`every`"),
        (json!({"cron": "0 0 30 2 *"}), "never comes"),
        (json!({"cron": "@daily", "zone": "Europe/Berln"}), "did you mean \"Europe/Berlin\"?"),
        (json!({"cron": "@daily", "zone": "EST"}), "America/New_York"),
        (json!({"every": "99ms"}), "every is 99 ms; give 100 ms to 100 years"),
        (json!({"every": "-5s"}), "every is -5000 ms"),
        (json!({"gap": 0}), "gap is 0 ms"),
        (json!({"cron": "@daily", "limit": 0}), "limit is 0; give 1 to 1000"),
        (json!({"cron": "@daily", "limit": 1_001}), "limit is 1001; give 1 to 1000"),
        (json!({"cron": "@daily", "from": -1}), "from is -1 ms"),
    ] {
        let problem = client.post(PREVIEW, rule).await.problem(422, "invalid");
        assert!(text(&problem).contains(part), "{part}: {problem}");
    }
    for rule in [
        json!({"corn": "@daily"}),
        json!({"cron": 5}),
        json!({"cron": "@daily", "limit": -1}),
        json!({"every": "soon"}),
    ] {
        client.post(PREVIEW, rule).await.problem(400, "invalid");
    }
}

fn text(problem: &Value) -> &str {
    problem["detail"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn the_jobs_of_a_schedule_have_its_span_and_group() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let path = "/v1/topics/t/schedules/s";
    let rule = json!({"every": "1s", "text": "x", "expires_after": "1h", "group": "shop"});
    client.json("PUT", path, rule.clone()).await.expect(201);
    assert_eq!(client.json("PUT", path, rule).await.ok()["code"], "unchanged");
    let schedule = client.get(path).await.ok();
    assert_eq!(
        (&schedule["expires_after_ms"], &schedule["group"]),
        (&json!(3_600_000), &json!("shop"))
    );
    rig.advance(1);
    let job =
        client.post("/v1/topics/t/reserve", json!({"wait": "30s"})).await.ok()["jobs"][0].clone();
    assert_eq!((&job["expires_after_ms"], &job["group"]), (&json!(3_600_000), &json!("shop")));
    for (field, value) in [("expires_after", json!(-1)), ("group", json!(""))] {
        let rule = json!({"every": "1s", field: value});
        let problem = client.json("PUT", path, rule).await.problem(422, "invalid");
        assert!(text(&problem).contains(field), "{problem}");
    }
}

/// The names of the schedules of all topics, page by page.
async fn all(client: &mut Client, query: &str) -> Vec<String> {
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/v1/schedules?{query}{cursor}")).await.ok();
        for schedule in page["schedules"].as_array().unwrap() {
            names.push(format!("{} {}", text_of(schedule, "topic"), text_of(schedule, "name")));
        }
        match page["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return names,
        }
    }
}

fn text_of<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap()
}

#[tokio::test]
async fn schedules_of_all_topics_come_in_pages() {
    let rig = Rig::with_tokens(&[("all", &["admin:*"]), ("some", &["viewer:shop.*"])]).await;
    let mut client = rig.client_of("all").await;
    let mut wanted = Vec::new();
    for topic in ["a", "shop.a", "shop.b", "z"] {
        // One without schedules in between.
        client.post(&format!("/v1/topics/{topic}.none/jobs"), json!({})).await.expect(201);
        for (name, span) in [("one", "1h"), ("two", "2h"), ("three", "3h")] {
            let path = format!("/v1/topics/{topic}/schedules/{name}");
            client.json("PUT", &path, json!({"every": span})).await.expect(201);
            wanted.push(format!("{topic} {name}"));
        }
    }
    for limit in [1, 2, 3, 5, 100] {
        assert_eq!(all(&mut client, &format!("limit={limit}")).await, wanted, "{limit}");
    }
    assert_eq!(all(&mut client, "limit=2&prefix=shop.").await, wanted[3..9]);
    assert_eq!(all(&mut client, "prefix=shop.b").await, wanted[6..9]);
    assert_eq!(all(&mut client, "prefix=shopp").await, Vec::<String>::new());
    client.post("/v1/topics/z/schedules/one/pause", json!({})).await.ok();
    assert_eq!(all(&mut client, "limit=1&state=paused").await, ["z one"]);
    assert_eq!(all(&mut client, "limit=4&state=waiting").await.len(), 11);
    // What a token may not see does not exist for it.
    let mut some = rig.client_of("some").await;
    assert_eq!(all(&mut some, "limit=2").await, wanted[3..9]);
    assert_eq!(all(&mut some, "cursor=a~0.0.0.0.0.0.0").await, wanted[3..9]);
    for (query, status) in [
        ("limit=0", 422),
        ("limit=1001", 422),
        ("prefix=a%20b", 422),
        ("cursor=%20", 400),
        ("cursor=a~x", 422),
        ("state=x", 400),
        ("topic=a", 400),
    ] {
        client.get(&format!("/v1/schedules?{query}")).await.problem(status, "invalid");
    }
}
