//! Rules that repeat: what they would do.

use serde_json::{Value, json};

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
