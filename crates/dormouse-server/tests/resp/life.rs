//! How jobs end: deadlines, dead letters, history and chains.

use crate::client::Client;
use crate::rig::Rig;
use crate::value::{Value, list, text};

/// Takes one job; its token.
async fn take(client: &mut Client, topic: &str) -> String {
    let jobs = client.ask(&format!("RESERVE {topic}")).await;
    jobs.items()[0].items()[2].str().to_owned()
}

#[tokio::test]
async fn a_job_that_nobody_takes_in_time_dies() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("HELLO 3").await;
    let id = client.put("t x EXPIRES_AFTER 1h").await;
    let job = client.ask(&format!("GET {id}")).await;
    assert_eq!(job.field("expires_after_ms").number(), 3_600_000);
    rig.advance(3_600);
    assert_eq!(client.ask("RESERVE t").await, list(&[]));
    // Time passes for it when the engine looks at its clock.
    while client.ask(&format!("GET {id}")).await.field("state") != &text("dead") {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.ask(&format!("GET {id}")).await.field("error"), &text("expired"));
}

#[tokio::test]
async fn settings_are_set_all_at_once_and_shown() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("HELLO 3").await;
    let set = "SETTOPIC t TTR 5m ATTEMPTS 3 BACKOFF fixed:10s DELAY 1s EXPIRES_AFTER 1h JOBS_MAX 9 \
               BYTES_MAX 99 DEAD_TTL 1d DEAD_MAX 7 DEAD_TOPIC t/dead KEEP_DONE 1m";
    assert_eq!(client.ask(set).await.str(), "OK");
    let stats = client.ask("STATS t").await;
    let settings = stats.field("settings");
    for (name, number) in [
        ("ttr_ms", 300_000),
        ("attempts_max", 3),
        ("delay_ms", 1_000),
        ("expires_after_ms", 3_600_000),
        ("jobs_max", 9),
        ("bytes_max", 99),
        ("dead_ttl_ms", 86_400_000),
        ("dead_max", 7),
        ("keep_done_ms", 60_000),
    ] {
        assert_eq!(settings.field(name).number(), number, "{name}");
    }
    assert_eq!(settings.field("dead_topic"), &text("t/dead"));
    assert_eq!(settings.field("backoff"), &text("fixed:10000"));
    for (line, word) in [
        ("SETTOPIC t DELAY -1s", "delay"),
        ("SETTOPIC t EXPIRES_AFTER 0", "expires_after"),
        ("SETTOPIC t DEAD_TOPIC t", "dead_topic"),
        ("SETTOPIC t DEAD_TOPIC", "DEAD_TOPIC is missing"),
        ("SETTOPIC t KEPP_DONE 1m", "KEEP_DONE"),
        ("PUT t x EXPIRES_AFTER -1", "expires_after"),
        ("PUT t x KEY dormouse:1", "dormouse:"),
    ] {
        let Value::Error(error) = client.ask(line).await else { panic!("{line}") };
        assert!(error.contains(word), "{line}: {error}");
    }
    assert_eq!(client.ask("STATS t").await.field("settings"), settings);
    assert_eq!(client.ask("SETTOPIC t TTR 1m KEEP_DONE 0").await.str(), "OK");
    assert_eq!(client.ask("STATS t").await.field("settings").field("keep_done_ms"), &Value::Null);
}

#[tokio::test]
async fn an_acked_job_is_kept_as_done() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("HELLO 3").await;
    client.ask("SETTOPIC t KEEP_DONE 1m").await;
    client.ask("PUT t x KEY k").await;
    let token = take(&mut client, "t").await;
    assert_eq!(client.ask(&format!("ACK {token}")).await.str(), "OK");
    assert_eq!(client.ask("GET t KEY k").await.field("state"), &text("done"));
    assert_eq!(client.ask("PEEK t done").await.field("key"), &text("k"));
    assert_eq!(client.ask("LIST t done").await.items()[1].items().len(), 1);
    assert_eq!(client.ask("STATS t").await.field("done").number(), 1);
    assert_eq!(client.ask(&format!("ACK {token}")).await.str(), "GONE");
    rig.advance(60);
    while client.ask("GET t KEY k").await != Value::Null {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_ack_puts_what_comes_after() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.put("a x").await;
    let token = take(&mut client, "a").await;
    let chain = format!("ack {token} PUT b one KEY PUT DELAY 1s put a two HEADER PUT PUT");
    let reply = client.ask(&chain).await;
    let [end, first, second] = reply.items() else { panic!("{reply:?}") };
    assert_eq!(end.str(), "OK");
    assert_eq!(first.items()[1], text("created"));
    let mut looker = rig.client().await;
    looker.ask("HELLO 3").await;
    let job = looker.ask(&format!("GET {}", first.items()[0].str())).await;
    assert_eq!((job.field("key"), job.field("topic")), (&text("PUT"), &text("b")));
    let job = looker.ask(&format!("GET {}", second.str())).await;
    assert_eq!(job.field("headers"), &Value::Map(vec![(text("PUT"), text("PUT"))]));
    // Sent again, nothing is put.
    assert_eq!(client.ask(&chain).await, list(&[Value::Status("GONE".to_owned())]));
    // Refused, nothing is done.
    let token = take(&mut client, "a").await;
    let many = " PUT b x".repeat(101);
    for (puts, words) in [
        (" PUT b", "put 1 of the chain: body is missing"),
        (" PUT b x TTR -1", "put 1 of the chain: ttr"),
        (" PUT b x PUT b x DEALY 1", "put 2 of the chain: \"DEALY\""),
        (" PUT b x KEY k PUT b x KEY k", "put 2 of the chain: an earlier put"),
        (many.as_str(), "give 1 to 100"),
    ] {
        let Value::Error(error) = client.ask(&format!("ACK {token}{puts}")).await else {
            panic!("{puts}")
        };
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(looker.ask("STATS b").await.field("waiting").number(), 1);
    assert_eq!(client.ask(&format!("ACK {token}")).await.str(), "OK");
}

#[tokio::test]
async fn a_list_has_the_jobs_that_fit_a_filter() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("HELLO 3").await;
    for number in 0..600 {
        let key = if number % 300 == 7 { "shop" } else { "mail" };
        client.ask(&format!("PUT t body{number} KEY {key}-{number}")).await;
    }
    // A page looks past what does not fit, and says at how many jobs it looked.
    let page = client.ask("LIST t ready KEY_PREFIX shop-").await;
    let [cursor, jobs, looked] = page.items() else { panic!("{page:?}") };
    let keys: Vec<&str> = jobs.items().iter().map(|job| job.field("key").str()).collect();
    assert_eq!(keys, ["shop-7", "shop-307"]);
    assert_eq!((cursor, looked.number()), (&Value::Null, 600));
    assert_eq!(jobs.items()[1].field("body").str(), "body307");
    let page = client.ask("LIST t ready KEY_PREFIX mail- LIMIT 3 NOBODIES").await;
    let [cursor, jobs, _] = page.items() else { panic!("{page:?}") };
    assert_eq!(jobs.items().len(), 3);
    let next = format!("LIST t ready KEY_PREFIX shop- LIMIT 1 CURSOR {}", cursor.str());
    assert_eq!(client.ask(&next).await.items()[1].items()[0].field("key").str(), "shop-7");
    // By error text and age.
    let token = take(&mut client, "t").await;
    client.ask(&format!("KILL {token} ERROR timeout")).await;
    let dead = client.ask("LIST t dead ERROR_PREFIX time OLDER_THAN 0").await;
    assert_eq!(dead.items()[1].items().len(), 1);
    let dead = client.ask("LIST t dead ERROR_PREFIX other").await;
    assert_eq!(dead.items()[1].items().len(), 0);
    for (line, word) in [
        ("LIST t dead OLDER_THAN -1s", "older_than"),
        ("LIST t dead KEY_PREFIX", "KEY_PREFIX"),
        ("LIST t dead KEY_PREFIX a LIMIT 1001", "1000"),
    ] {
        let Value::Error(error) = client.ask(line).await else { panic!("{line}") };
        assert!(error.contains(word), "{line}: {error}");
    }
}
