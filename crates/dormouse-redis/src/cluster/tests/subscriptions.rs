//! Subscriptions to a server that fails.

use bytes::Bytes;
use redis::Value;
use rustix::process::Signal;
use tokio::sync::mpsc;

use super::harness::{DEADLINE, Server, connect, expect_wakeup, until};
use crate::cluster::{ClusterClient, Wakeup, slot_of};

const CHANNEL: &str = "dormouse:{t}:w";

pub(super) async fn subscribe(client: &ClusterClient, tag: &str) -> Bytes {
    let channel = Bytes::from(format!("dormouse:{{{tag}}}:w"));
    client.subscribe(slot_of(tag.as_bytes()), channel.clone());
    tokio::time::timeout(DEADLINE, client.subscribed(&channel)).await.expect("never subscribed");
    channel
}

/// Publishes a message and waits for it.
pub(super) async fn check_delivery(
    server: &Server,
    channel: &Bytes,
    wakeups: &mut mpsc::UnboundedReceiver<Wakeup>,
) {
    let name = str::from_utf8(channel).unwrap();
    assert_eq!(server.query(&format!("SPUBLISH {name} word")).await, Value::Int(1));
    expect_wakeup(wakeups, &Wakeup::Message { channel: channel.clone(), payload: "word".into() })
        .await;
}

#[tokio::test]
async fn messages_arrive_until_the_channel_is_unsubscribed() {
    let server = Server::start(&[]).await;
    let (client, _, mut wakeups) = connect(&server.url()).await;
    let channel = subscribe(&client, "t").await;
    check_delivery(&server, &channel, &mut wakeups).await;
    let other = subscribe(&client, "other").await;
    client.unsubscribe(&channel);
    until("it is unsubscribed", async || {
        server.query(&format!("SPUBLISH {CHANNEL} word")).await == Value::Int(0)
    })
    .await;
    check_delivery(&server, &other, &mut wakeups).await;
    drop(client);
    until("the connections close with the client", async || {
        server.query_text("CLIENT LIST").await.lines().count() == 1
    })
    .await;
}

#[tokio::test]
async fn many_channels_can_be_subscribed() {
    let server = Server::start(&[]).await;
    let (client, _, mut wakeups) = connect(&server.url()).await;
    let channels: Vec<Bytes> =
        (0..1000).map(|n| Bytes::from(format!("dormouse:{{{n}}}:w"))).collect();
    for (n, channel) in channels.iter().enumerate() {
        client.subscribe(slot_of(n.to_string().as_bytes()), channel.clone());
    }
    for channel in &channels {
        tokio::time::timeout(DEADLINE, client.subscribed(channel)).await.unwrap();
        check_delivery(&server, channel, &mut wakeups).await;
    }
}

#[tokio::test]
async fn subscriptions_survive_a_restart() {
    let mut server = Server::start(&[]).await;
    let (client, _, mut wakeups) = connect(&server.url()).await;
    let channel = subscribe(&client, "t").await;
    server.kill();
    expect_wakeup(&mut wakeups, &Wakeup::Lost).await;
    server.start_again().await;
    expect_wakeup(&mut wakeups, &Wakeup::Restored).await;
    client.subscribed(&channel).await;
    check_delivery(&server, &channel, &mut wakeups).await;
}

#[tokio::test]
async fn subscriptions_survive_the_loss_of_connections() {
    let server = Server::start(&[]).await;
    let (client, _, mut wakeups) = connect(&server.url()).await;
    let channel = subscribe(&client, "t").await;
    for _ in 0..5 {
        server.query("CLIENT KILL TYPE pubsub").await;
        expect_wakeup(&mut wakeups, &Wakeup::Lost).await;
        expect_wakeup(&mut wakeups, &Wakeup::Restored).await;
        check_delivery(&server, &channel, &mut wakeups).await;
    }
}

#[tokio::test]
async fn a_frozen_server_loses_its_channels() {
    let server = Server::start(&[]).await;
    let (client, _, mut wakeups) = connect(&server.url()).await;
    let channel = subscribe(&client, "t").await;
    server.signal(Signal::STOP);
    expect_wakeup(&mut wakeups, &Wakeup::Lost).await;
    server.signal(Signal::CONT);
    expect_wakeup(&mut wakeups, &Wakeup::Restored).await;
    until("it is subscribed once", async || {
        server.query(&format!("SPUBLISH {CHANNEL} word")).await == Value::Int(1)
    })
    .await;
    check_delivery(&server, &channel, &mut wakeups).await;
}
