//! Limits of topics: settings, groups, and what holds a job.

use crate::rig::Rig;
use crate::value::{Value, list, text};

#[tokio::test]
async fn limits_are_set_and_shown() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("HELLO 3").await;
    let set = "SETTOPIC t LEASED_MAX 7 RATE 100/1m GROUP_LEASED_MAX 2 GROUP_RATE 3/s:burst=5";
    assert_eq!(client.ask(set).await.str(), "OK");
    let stats = client.ask("STATS t").await;
    let settings = stats.field("settings");
    assert_eq!(settings.field("leased_max").number(), 7);
    assert_eq!(settings.field("group_leased_max").number(), 2);
    assert_eq!(settings.field("rate"), &text("100/1m"));
    assert_eq!(settings.field("group_rate"), &text("3/1s:burst=5"));
    for (line, words) in [
        ("SETTOPIC t LEASED_MAX 0", "leased_max is 0 jobs"),
        ("SETTOPIC t LEASED_MAX -1", "LEASED_MAX"),
        ("SETTOPIC t GROUP_LEASED_MAX 1000001", "group_leased_max"),
        ("SETTOPIC t RATE 100/0s", "rate counts per 0 ms"),
        ("SETTOPIC t RATE fast", "RATE: rate \"fast\""),
        ("SETTOPIC t RATE", "RATE is missing"),
        ("SETTOPIC t GROUP_RATE 1/s:burst=1000001", "group_rate has a burst of 1000001 jobs"),
        ("SETTOPIC t GROUP_RAET 1/s", "GROUP_RATE"),
        ("PUT t x GROUP", "GROUP is missing"),
    ] {
        let Value::Error(error) = client.ask(line).await else { panic!("{line}") };
        assert!(error.contains(words), "{line}: {error}");
    }
    let long = "g".repeat(257);
    for group in ["", &long] {
        let reply = client.ask_all(&["PUT", "t", "x", "GROUP", group]).await;
        assert!(reply.error("INVALID").contains("group has"), "{reply:?}");
    }
    assert_eq!(client.ask("STATS t").await.field("settings"), settings);
    assert_eq!(client.ask("SETTOPIC t TTR 1m").await.str(), "OK");
    assert_eq!(client.ask("STATS t").await.field("settings").field("rate"), &Value::Null);
}

#[tokio::test]
async fn a_group_and_what_holds_a_job_are_shown() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("HELLO 3").await;
    client.ask("SETTOPIC t GROUP_LEASED_MAX 1").await;
    client.put("t x GROUP a").await;
    let held = client.put("t x GROUP a").await;
    let plain = client.put("t x").await;
    let leased = client.ask("RESERVE t MAX 10 FULL").await;
    let groups: Vec<&Value> = leased.items().iter().map(|job| job.field("group")).collect();
    assert_eq!(groups, [&text("a"), &Value::Null]);
    assert_eq!(client.ask("RESERVE t").await, list(&[]));
    let job = client.ask(&format!("GET {held}")).await;
    assert_eq!((job.field("state"), job.field("group")), (&text("ready"), &text("a")));
    assert_eq!(job.field("held_by"), &text("group_leased_max"));
    let job = client.ask(&format!("GET {plain}")).await;
    assert_eq!((job.field("group"), job.field("held_by")), (&Value::Null, &Value::Null));
    let busy = client.ask(&format!("RESERVEID {held}")).await;
    assert!(busy.error("OVERLOADED").contains("group_leased_max"), "{busy:?}");
}
