//! A primary dies or freezes, and a replica takes its place.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::sync::mpsc;

use super::cluster::Cluster;
use super::harness::{call, counting, expect_wakeup, run, until};
use super::subscriptions::subscribe;
use crate::cluster::{Call, ClusterClient, Timeouts, Wakeup};

/// Three primaries, and a replica of the first.
async fn cluster() -> Cluster {
    let mut cluster = Cluster::start(3).await;
    cluster.add().await;
    cluster.meet().await;
    cluster.replicate(3, 0).await;
    cluster
}

/// With the timeouts of production: a failover must not wait for them.
async fn connect(cluster: &Cluster) -> (ClusterClient, mpsc::UnboundedReceiver<Wakeup>) {
    let (wakeups, received) = mpsc::unbounded_channel();
    let url = cluster.nodes[0].url();
    let (client, findings) =
        ClusterClient::open_with(&url, 0, wakeups, Timeouts::default()).await.unwrap();
    assert_eq!(findings.primaries, 3);
    (client, received)
}

async fn check(trouble: impl FnOnce(&mut Cluster)) {
    let mut cluster = cluster().await;
    let (client, mut wakeups) = connect(&cluster).await;
    let (script, tag) = (counting(), cluster.tag_at(0, 3));
    let first = Call { replicas: 1, ..call(&script, &tag, "a") };
    until("the replica has it", async || client.call(&first).await.unwrap().replicas == 1).await;
    let channel = subscribe(&client, &tag).await;
    trouble(&mut cluster);
    let caller = tokio::spawn({
        let (client, call) = (client.clone(), call(&script, &tag, "b"));
        async move {
            let number = run(&client, &call).await;
            (number, Instant::now())
        }
    });
    let port = cluster.nodes[3].port.to_string();
    until("the others agree on the new primary", async || {
        let nodes = cluster.nodes[1].query_text("CLUSTER NODES").await;
        nodes.lines().any(|line| line.contains(&port) && line.contains("master"))
    })
    .await;
    let agreed_at = Instant::now();
    let (number, answered_at) = caller.await.unwrap();
    assert_eq!(number, 2, "the new primary knows the first call");
    let late = answered_at.saturating_duration_since(agreed_at);
    assert!(late < Duration::from_secs(1), "answered {late:?} after they agreed");
    expect_wakeup(&mut wakeups, &Wakeup::Lost).await;
    expect_wakeup(&mut wakeups, &Wakeup::Restored).await;
    client.subscribed(&channel).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_to_the_new_primary_after_a_crash() {
    check(|cluster| cluster.nodes[0].kill()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_to_the_new_primary_after_a_freeze() {
    check(|cluster| cluster.nodes[0].signal(Signal::STOP)).await;
}
