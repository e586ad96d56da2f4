//! Topics: counts, pages, pauses, purges, and many jobs at once.

use crate::client::command;
use crate::rig::Rig;
use crate::value::{Value, list, status, text};

#[tokio::test]
async fn stats_of_one_topic_and_of_all() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("HELLO 3").await;
    client.put("a x DELAY 1h").await;
    client.put("a y PRIORITY 1").await;
    client.put("b z").await;
    client.take("b").await;
    rig.advance(3);
    let stats = client.ask("STATS a").await;
    for (name, number) in [
        ("waiting", 2),
        ("delayed", 1),
        ("ready", 1),
        ("urgent", 1),
        ("leased", 0),
        ("dead", 0),
        ("puts", 2),
        ("bytes", 2),
        ("oldest_ready_ms", 3_000),
    ] {
        assert_eq!(stats.field(name).number(), number, "{name}");
    }
    assert_eq!(stats.field("paused"), &Value::Truth(false));
    assert_eq!(stats.field("settings").field("ttr_ms"), &Value::Null);
    let all = client.ask("STATS").await;
    for (name, number) in [("topics", 2), ("waiting", 2), ("leased", 1), ("locks", 0)] {
        assert_eq!(all.field(name).number(), number, "{name}");
    }
    assert!(!client.ask("STATS nowhere").await.error("NOTFOUND").is_empty());
}

#[tokio::test]
async fn a_paused_topic_grants_no_job() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.put("t x").await;
    assert_eq!(client.ask("PAUSE t").await, status("OK"));
    assert_eq!(client.ask("RESERVE t").await, list(&[]));
    assert_eq!(client.ask("STATS t").await.field("paused"), &Value::Number(1));
    assert_eq!(client.ask("RESUME t").await, status("OK"));
    assert_eq!(client.ask("PAUSE t 10s").await, status("OK"));
    assert_eq!(client.ask("STATS t").await.field("paused_ms"), &Value::Number(10_000));
    rig.advance(10);
    assert_eq!(client.ask("RESERVE t").await.items().len(), 1);
    assert!(!client.ask("PAUSE t soon").await.error("INVALID").is_empty());
}

#[tokio::test]
async fn a_purge_replies_with_a_count() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for _ in 0..3 {
        client.put("t x").await;
    }
    client.take("t").await;
    assert_eq!(client.ask("PURGE t").await, Value::Number(2));
    assert_eq!(client.ask("STATS t").await.field("leased").number(), 1);
    client.put("t x DELAY 1h").await;
    client.put("t x").await;
    let refused = client.ask("PURGE t AT_MOST 1").await;
    assert!(format!("{refused:?}").contains("CONFLICT topic t has 2 jobs"), "{refused:?}");
    assert_eq!(client.ask("PURGE t state ready at_most 1").await, Value::Number(1));
    let refused = client.ask("PURGE t STATE leased").await;
    assert!(format!("{refused:?}").contains("leased jobs are not purged"), "{refused:?}");
    assert_eq!(client.ask("STATS t").await.field("delayed").number(), 1);
}

#[tokio::test]
async fn peek_shows_the_next_job_of_a_state() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.put("t later DELAY 1h").await;
    assert_eq!(client.ask("PEEK t").await, Value::Null);
    assert_eq!(client.ask("PEEK t DELAYED").await.field("body"), &text("later"));
    client.put("t now").await;
    assert_eq!(client.ask("PEEK t").await.field("body"), &text("now"));
    assert_eq!(client.ask("PEEK nowhere dead").await, Value::Null);
    assert!(client.ask("PEEK t buried").await.error("INVALID").contains("give ready, delayed"));
}

#[tokio::test]
async fn jobs_are_listed_in_pages() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for number in 0..5 {
        client.put(&format!("t {number} DELAY {number}h PRIORITY 1")).await;
    }
    let page = client.ask("LIST t delayed LIMIT 3").await;
    let [cursor, jobs] = page.items() else { panic!("{page:?}") };
    assert_eq!(jobs.items().len(), 3);
    assert_eq!(jobs.items()[0].field("body"), &text("1"));
    let page =
        client.ask(&format!("LIST t delayed LIMIT 3 NOBODIES CURSOR {}", cursor.str())).await;
    let [cursor, jobs] = page.items() else { panic!("{page:?}") };
    assert_eq!((cursor, jobs.items().len()), (&Value::Null, 1));
    assert_eq!(jobs.items()[0].items().len(), 2 * 26);
    assert!(!client.ask("LIST t ready LIMIT 1001").await.error("INVALID").is_empty());
    assert!(!client.ask("LIST t ready CURSOR x").await.error("INVALID").is_empty());
    assert!(client.ask("LIST t ready SINCE 1").await.error("INVALID").contains("NOBODIES"));
}

#[tokio::test]
async fn topics_are_listed_in_pages() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for number in 0..60 {
        client.put(&format!("t{number:02} x")).await;
    }
    let mut names = Vec::new();
    let mut line = "TOPICS LIMIT 40".to_owned();
    loop {
        let page = client.ask(&line).await;
        let [next, topics] = page.items() else { panic!("{page:?}") };
        names.extend(topics.items().iter().map(|topic| topic.field("topic").str().to_owned()));
        if *next == Value::Null {
            break;
        }
        line = format!("TOPICS AFTER {} LIMIT 40", next.str());
    }
    assert_eq!(names, (0..60).map(|number| format!("t{number:02}")).collect::<Vec<_>>());
    assert!(!client.ask("TOPICS LIMIT 0").await.error("INVALID").is_empty());
    assert!(!client.ask("TOPICS FROM a").await.error("INVALID").is_empty());
}

#[tokio::test]
async fn many_jobs_are_kicked_and_revived() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    // More than one portion.
    let many = 5_000;
    let put = command(&["PUT", "t", "x", "DELAY", "1h", "ATTEMPTS", "1"]);
    client.send(&put.repeat(many)).await;
    for _ in 0..many {
        client.hear().await.str();
    }
    assert_eq!(client.ask("KICK t MAX 10").await, Value::Number(10));
    assert_eq!(client.ask("KICK t ALL").await, Value::Number(many as i64 - 10));
    assert_eq!(client.ask("KICK t ALL").await, Value::Number(0));
    let mut left = many;
    while left > 0 {
        let jobs = client.ask("RESERVE t MAX 1000").await;
        left -= jobs.items().len();
        for job in jobs.items() {
            client.send(&command(&["NACK", job.items()[2].str()])).await;
        }
        for _ in jobs.items() {
            assert_eq!(client.hear().await, status("DEAD"));
        }
    }
    assert_eq!(client.ask("REVIVE t MAX 4096").await, Value::Number(4_096));
    assert_eq!(client.ask("REVIVE t ALL").await, Value::Number(many as i64 - 4_096));
    assert_eq!(client.ask("REVIVE nowhere ALL").await, Value::Number(0));
    for line in ["KICK t", "KICK t 5", "KICK t MAX", "KICK t MAX x", "KICK t ALL 5"] {
        assert!(!client.ask(line).await.error("INVALID").is_empty(), "{line}");
    }
}

#[tokio::test]
async fn jobs_coming_due_are_forecast() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for at in [3_786_940_800_000_i64, 3_786_940_860_000, 3_786_940_900_000] {
        client.put(&format!("t x AT {at}")).await;
    }
    let forecast = client.ask("FORECAST t FROM 3786940800000 TO 3786940920000 STEP 1m").await;
    assert_eq!(forecast.field("counts"), &list(&[Value::Number(1), Value::Number(2)]));
    assert_eq!(forecast.field("step_ms").number(), 60_000);
    assert_eq!(client.ask("FORECAST t").await.field("counts").items().len(), 24);
    assert!(!client.ask("FORECAST t STEP 0").await.error("INVALID").is_empty());
    assert!(!client.ask("FORECAST t FROM -5").await.error("INVALID").is_empty());
}

#[tokio::test]
async fn a_rule_that_repeats_is_previewed() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let zone = ["ZONE", "America/New_York", "FROM", "2027-03-13T12:00:00Z", "LIMIT", "2"];
    let preview = client.ask_all(&[&["PREVIEW", "CRON", "30 2 * * *"], &zone[..]].concat()).await;
    let ticks = [Value::Number(1_805_007_600_000), Value::Number(1_805_092_200_000)];
    assert_eq!(preview.field("ticks"), &list(&ticks));
    assert_eq!(preview.field("words").str(), "at 02:30 every day, America/New_York");
    assert_eq!(preview.field("notes").items().len(), 2);
    assert_eq!(client.ask("PREVIEW EVERY 90m").await.field("ticks").items().len(), 10);
    assert_eq!(client.ask("PREVIEW GAP 5s LIMIT 1").await.field("notes").items().len(), 1);
    for (command, part) in [
        ("PREVIEW CRON @reboot", "write one of @hourly"),
        ("PREVIEW CRON @daily EVERY 5m", "cron and every are given"),
        ("PREVIEW CRON @daily LIMIT 1001", "limit is 1001"),
        ("PREVIEW CRON @daily SOON x", "the options are CRON, ZONE"),
    ] {
        let text = client.ask(command).await.error("INVALID").to_owned();
        assert!(text.contains(part), "{command}: {text}");
    }
}
