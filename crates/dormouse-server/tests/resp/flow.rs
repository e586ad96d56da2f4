//! Pipelines, waits, and clients that leave.

use std::time::Duration;

use crate::client::command;
use crate::rig::Rig;
use crate::value::{Value, list, status, text};

#[tokio::test]
async fn a_pipeline_is_answered_in_order() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let mut pipeline = Vec::new();
    for number in 0..1_000 {
        let number = number.to_string();
        pipeline.extend(command(&["PUT", "t", &number]));
        pipeline.extend(command(&["ECHO", &number]));
        pipeline.extend(command(&["RESERVE", "t"]));
        pipeline.extend(command(&["ACK", "7"]));
    }
    client.send(&pipeline).await;
    for number in 0..1_000 {
        let number = number.to_string();
        let id = client.hear().await;
        assert_eq!(client.hear().await, text(&number));
        let jobs = client.hear().await;
        let job = jobs.items()[0].items();
        assert_eq!((&job[1], &job[5]), (&id, &text(&number)));
        assert!(!client.hear().await.error("INVALID").is_empty());
    }
}

#[tokio::test]
async fn commands_before_a_wait_are_answered_before_it() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let mut pipeline = command(&["PUT", "other", "x"]);
    pipeline.extend(command(&["PING"]));
    pipeline.extend(command(&["RESERVE", "t", "WAIT", "60s"]));
    pipeline.extend(command(&["PING", "behind"]));
    client.send(&pipeline).await;
    client.hear().await.str();
    assert_eq!(client.hear().await, status("PONG"));
    rig.await_waiters("t", 1).await;
    rig.client().await.put("t x").await;
    assert_eq!(client.hear().await.items().len(), 1);
    assert_eq!(client.hear().await, text("behind"));
}

#[tokio::test]
async fn a_wait_ends_with_an_empty_reply() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.send(&command(&["RESERVE", "t", "WAIT", "5s"])).await;
    rig.await_waiters("t", 1).await;
    rig.advance(5);
    assert_eq!(client.hear().await, list(&[]));
}

#[tokio::test]
async fn a_client_that_leaves_while_waiting_keeps_no_lease() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.send(&command(&["RESERVE", "t", "WAIT", "60s"])).await;
    rig.await_waiters("t", 1).await;
    drop(client);
    rig.await_waiters("t", 0).await;
    let mut other = rig.client().await;
    let id = other.put("t x").await;
    let job = other.ask(&format!("GET {id}")).await;
    assert_eq!((job.field("state"), job.field("attempts")), (&text("ready"), &Value::Number(0)));
}

#[tokio::test]
async fn a_stop_answers_waiting_clients() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.send(&command(&["RESERVE", "t", "WAIT", "60s"])).await;
    rig.await_waiters("t", 1).await;
    let stop = tokio::spawn(rig.server.stop(Duration::from_secs(10)));
    assert_eq!(client.hear().await, list(&[]));
    assert_eq!(client.try_hear().await, None);
    stop.await.unwrap();
}

#[tokio::test]
async fn a_worker_acks_and_reserves_in_one_round_trip() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.put("t 1").await;
    let token = client.take("t").await;
    let mut pipeline = command(&["ACK", &token]);
    pipeline.extend(command(&["RESERVE", "t", "WAIT", "60s"]));
    client.send(&pipeline).await;
    assert_eq!(client.hear().await, status("OK"));
    rig.await_waiters("t", 1).await;
    rig.client().await.put("t 2").await;
    assert_eq!(client.hear().await.items()[0].items()[5], text("2"));
}

/// On disk a job is there once its put is synced: what reserves behind it waits for that.
#[tokio::test]
async fn a_reserve_behind_a_chain_in_a_pipeline_gets_its_job() {
    let rig = Rig::on_disk().await;
    let mut client = rig.client().await;
    for round in 0..50 {
        client.put("a x").await;
        let token = client.take("a").await;
        let mut pipeline = command(&["ACK", &token, "PUT", "b", "next"]);
        pipeline.extend(command(&["RESERVE", "b"]));
        client.send(&pipeline).await;
        assert_eq!(client.hear().await.items()[0].str(), "OK");
        let jobs = client.hear().await;
        assert_eq!(jobs.items().len(), 1, "round {round}");
        assert_eq!(jobs.items()[0].items()[5], text("next"));
    }
}

/// A purge removes the jobs put before it in its pipeline, and none of those behind it.
#[tokio::test]
async fn a_purge_has_its_place_in_a_pipeline() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let lines =
        ["PUT t 1 KEY k", "PURGE t", "PUT t 2 KEY k", "PURGE t", "PURGE t", "PUT t 3 KEY k"];
    let lines = lines.into_iter().chain(["GET t KEY k", "RESERVE t MAX 9", "PURGE t", "PING"]);
    let pipeline: Vec<u8> =
        lines.flat_map(|line| command(&line.split(' ').collect::<Vec<_>>())).collect();
    client.send(&pipeline).await;
    for purged in [&[1_i64][..], &[1, 0], &[]] {
        assert_eq!(client.hear().await.items()[1], text("created"));
        for count in purged {
            assert_eq!(client.hear().await, Value::Number(*count));
        }
    }
    assert_eq!(client.hear().await.field("body"), &text("3"));
    let jobs = client.hear().await;
    let bodies: Vec<&str> = jobs.items().iter().map(|job| job.items()[5].str()).collect();
    assert_eq!(bodies, ["3"]);
    assert_eq!(client.hear().await, Value::Number(0));
    assert_eq!(client.hear().await, status("PONG"));
}
