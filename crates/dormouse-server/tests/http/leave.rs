//! Clients that disconnect: their leases and locks are given back.

use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::rig::Rig;

const WAIT: &str = r#"{"wait": "60s"}"#;

/// A client that waits for a job.
async fn poll(rig: &Rig, topic: &str) -> Client {
    let mut client = rig.client().await;
    let path = format!("/v1/topics/{topic}/reserve");
    client.send("POST", &path, "application/json", WAIT.as_bytes()).await;
    client
}

#[tokio::test]
async fn a_long_poll_is_answered_by_a_later_put() {
    let rig = Rig::new().await;
    let mut waiting = poll(&rig, "t").await;
    rig.await_waiters("t", 1).await;
    rig.client().await.post("/v1/topics/t/jobs", json!({"text": "hi"})).await.expect(201);
    let given = waiting.receive(true).await.unwrap().ok();
    assert_eq!(given["jobs"][0]["text"], "hi");
    let form = json!({"token": given["jobs"][0]["token"]});
    rig.client().await.post("/v1/ack", form).await.ok();
    // When the wait ends, the response has no jobs.
    rig.client().await.post("/v1/topics/t/jobs", json!({"delay": "1h"})).await.expect(201);
    let mut waiting = poll(&rig, "t").await;
    rig.await_waiters("t", 1).await;
    rig.advance(30);
    rig.await_waiters("t", 1).await;
    rig.advance(30);
    assert_eq!(waiting.receive(true).await.unwrap().ok(), json!({"jobs": []}));
}

#[tokio::test]
async fn a_client_that_disconnects_while_it_waits_gets_no_lease() {
    let rig = Rig::new().await;
    let waiting = poll(&rig, "t").await;
    rig.await_waiters("t", 1).await;
    drop(waiting);
    rig.await_waiters("t", 0).await;
    let mut client = rig.client().await;
    client.post("/v1/topics/t/jobs", json!({})).await.expect(201);
    let given = client.post("/v1/topics/t/reserve", json!({})).await.ok();
    assert_eq!(given["jobs"][0]["attempt"], 1);
}

/// The client has closed its side before the job is due, and the server learns of both at once.
#[tokio::test]
async fn a_disconnect_when_a_job_becomes_due_loses_nothing() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for round in 0..200 {
        client.post("/v1/topics/t/jobs", json!({"delay": "1s"})).await.expect(201);
        let leaving = poll(&rig, "t").await;
        rig.await_waiters("t", 1).await;
        drop(leaving);
        for _ in 0..round % 5 {
            tokio::task::yield_now().await;
        }
        rig.advance(1);
        let next =
            client.request("POST", "/v1/topics/t/reserve", "application/json", WAIT.as_bytes());
        let next = tokio::time::timeout(Duration::from_secs(10), next).await;
        let given = next.expect("the job is lost").ok();
        assert_eq!(given["jobs"][0]["attempt"], 1, "round {round}: {given}");
        client.post("/v1/ack", json!({"token": given["jobs"][0]["token"]})).await.ok();
    }
}

/// Whether or not the response was sent: the job is ready again when its lease ends, at the latest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_survives_a_disconnect_at_any_time() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for round in 0..100 {
        let form = json!({"delay": "1s", "ttr": "1s"});
        client.post("/v1/topics/t/jobs", form).await.expect(201);
        let leaving = poll(&rig, "t").await;
        rig.await_waiters("t", 1).await;
        let gone = tokio::spawn(async move {
            for _ in 0..round % 10 {
                tokio::task::yield_now().await;
            }
            drop(leaving);
        });
        rig.advance(1);
        gone.await.unwrap();
        rig.advance(1);
        let next =
            client.request("POST", "/v1/topics/t/reserve", "application/json", WAIT.as_bytes());
        let next = tokio::time::timeout(Duration::from_secs(10), next).await;
        let given = next.expect("the job is lost").ok();
        let attempt = given["jobs"][0]["attempt"].as_u64().unwrap();
        assert!((1..=2).contains(&attempt), "round {round}: {given}");
        client.post("/v1/ack", json!({"token": given["jobs"][0]["token"]})).await.ok();
    }
}

/// A client that reads the response and closes at once, as curl does, keeps the lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_that_read_its_job_keeps_the_lease() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for round in 0..300 {
        client.post("/v1/topics/t/jobs", json!({})).await.expect(201);
        let mut leaving = rig.client().await;
        let given = leaving.post("/v1/topics/t/reserve", json!({})).await.ok();
        drop(leaving);
        let acked = client.post("/v1/ack", json!({"token": given["jobs"][0]["token"]})).await.ok();
        assert_eq!(acked["code"], "done", "round {round}");
    }
}

/// The same for locks.
#[tokio::test]
async fn a_client_that_disconnects_while_it_waits_gets_no_lock() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for _ in 0..20 {
        client.post("/v1/locks/l/acquire", json!({"owner": "a", "ttl": "1h"})).await.ok();
        let mut leaving = rig.client().await;
        let body = json!({"owner": "b", "ttl": "1h", "wait": "60s"}).to_string();
        leaving.send("POST", "/v1/locks/l/acquire", "application/json", body.as_bytes()).await;
        // It waits in the backend, which counts only reserves by topic.
        while client.get("/v1/stats").await.ok()["waiters"] != 1 {}
        drop(leaving);
        client.post("/v1/locks/l/release", json!({"owner": "a"})).await.ok();
        let next = json!({"owner": "c", "ttl": "1h", "wait": "60s"});
        let next = client.post("/v1/locks/l/acquire", next);
        let next = tokio::time::timeout(Duration::from_secs(10), next).await;
        next.expect("the lock is lost").ok();
        client.post("/v1/locks/l/release", json!({"owner": "c"})).await.ok();
    }
}

#[tokio::test]
async fn a_stop_answers_long_polls_with_an_empty_reply() {
    let rig = Rig::new().await;
    let mut waiting = poll(&rig, "t").await;
    let mut idle = rig.client().await;
    idle.get("/livez").await.ok();
    rig.await_waiters("t", 1).await;
    let stop = tokio::spawn(rig.server.stop(Duration::from_secs(10)));
    let answer = waiting.receive(true).await.unwrap();
    assert_eq!(answer.ok(), json!({"jobs": []}));
    assert!(waiting.is_closed().await);
    assert!(idle.is_closed().await);
    stop.await.unwrap();
    assert!(tokio::net::TcpStream::connect(rig.addr).await.is_err());
}
