//! use, watch, ignore, list-*.

use crate::rig::{Rig, play};

#[tokio::test]
async fn watched_tubes_are_listed() {
    play(&[
        ("list-tube-used", "USING default"),
        ("watch default\nwatch a\nwatch a", "WATCHING 1\nWATCHING 2\nWATCHING 2"),
        ("ignore b", "WATCHING 2"),
    ])
    .await;
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("watch a\nwatch b\nwatch c", "WATCHING 2\nWATCHING 3\nWATCHING 4").await;
    client.ask("ignore a", "WATCHING 3").await;
    assert_eq!(client.yaml("list-tubes-watched").await, "---\n- default\n- c\n- b\n");
    client.ask("ignore b\nignore c\nignore default", "WATCHING 2\nWATCHING 1\nNOT_IGNORED").await;
}

#[tokio::test]
async fn tubes_are_created_and_removed() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("use a\nwatch b", "USING a\nWATCHING 2").await;
    assert_eq!(client.yaml("list-tubes").await, "---\n- default\n- a\n- b\n");
    client.ask("use c", "USING c").await;
    assert_eq!(client.yaml("list-tubes").await, "---\n- default\n- c\n- b\n");
    client.ask("put 0 0 9 1\nx\nuse d\nignore b", "INSERTED 1\nUSING d\nWATCHING 1").await;
    assert_eq!(client.yaml("list-tubes").await, "---\n- default\n- c\n- d\n");
    client.ask("stats-tube b\ndelete 1\nstats-tube c", "NOT_FOUND\nDELETED\nNOT_FOUND").await;
    assert_eq!(client.yaml("list-tubes").await, "---\n- default\n- d\n");
    drop(client);
    let mut other = rig.client().await;
    while other.stat("stats", "current-tubes").await != "1" {
        tokio::task::yield_now().await;
    }
    assert_eq!(other.yaml("list-tubes").await, "---\n- default\n");
}

#[tokio::test]
async fn names_are_checked() {
    let good = "A-z0+/;.$_()";
    play(&[(&format!("use {good}"), &format!("USING {good}"))]).await;
    play(&[
        ("use a b", "BAD_FORMAT"),
        ("use a:b", "BAD_FORMAT"),
        ("use -a", "BAD_FORMAT"),
        ("watch a,b", "BAD_FORMAT"),
        (&format!("use {}", "a".repeat(201)), "BAD_FORMAT"),
        ("list-tube-used", "USING default"),
    ])
    .await;
}

#[tokio::test]
async fn a_connection_watches_a_thousand_tubes() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for number in 2..=1_000 {
        client.ask(&format!("watch t{number}"), &format!("WATCHING {number}")).await;
    }
    client.ask("watch one-more\nwatch t7", "OUT_OF_MEMORY\nWATCHING 1000").await;
    client.ask("reserve-with-timeout 0", "TIMED_OUT").await;
    assert_eq!(client.stat("stats", "current-tubes").await, "1000");
}
