//! Channels, heard through everything.

use bytes::Bytes;
use redis::Value;
use rustix::process::Signal;
use tokio::sync::mpsc;

use super::harness::{DEADLINE, Server, hint, link_to, until};
use crate::cluster::{Hint, Link, slot_of};

const CHANNEL: &str = "dormouse:{t}:w";

pub(super) async fn subscribe(link: &Link, tag: &str) -> Bytes {
    let channel = Bytes::from(format!("dormouse:{{{tag}}}:w"));
    link.subscribe(slot_of(tag.as_bytes()), channel.clone());
    tokio::time::timeout(DEADLINE, link.subscribed(&channel)).await.expect("never subscribed");
    channel
}

/// Publishes and waits for the word.
pub(super) async fn check_heard(
    server: &Server,
    channel: &Bytes,
    hints: &mut mpsc::UnboundedReceiver<Hint>,
) {
    let name = str::from_utf8(channel).unwrap();
    assert_eq!(server.ask(&format!("SPUBLISH {name} word")).await, Value::Int(1));
    hint(hints, &Hint::Message { channel: channel.clone(), payload: "word".into() }).await;
}

#[tokio::test]
async fn messages_are_heard_until_nobody_wants_them() {
    let server = Server::start(&[]).await;
    let (link, _, mut hints) = link_to(&server.url()).await;
    let channel = subscribe(&link, "t").await;
    check_heard(&server, &channel, &mut hints).await;
    let other = subscribe(&link, "other").await;
    link.unsubscribe(&channel);
    until("it is unsubscribed", async || {
        server.ask(&format!("SPUBLISH {CHANNEL} word")).await == Value::Int(0)
    })
    .await;
    check_heard(&server, &other, &mut hints).await;
    drop(link);
    until("the connections go with the link", async || {
        server.ask_text("CLIENT LIST").await.lines().count() == 1
    })
    .await;
}

#[tokio::test]
async fn many_channels_are_heard() {
    let server = Server::start(&[]).await;
    let (link, _, mut hints) = link_to(&server.url()).await;
    let channels: Vec<Bytes> =
        (0..1000).map(|n| Bytes::from(format!("dormouse:{{{n}}}:w"))).collect();
    for (n, channel) in channels.iter().enumerate() {
        link.subscribe(slot_of(n.to_string().as_bytes()), channel.clone());
    }
    for channel in &channels {
        tokio::time::timeout(DEADLINE, link.subscribed(channel)).await.unwrap();
        check_heard(&server, channel, &mut hints).await;
    }
}

#[tokio::test]
async fn subscriptions_survive_a_restart() {
    let mut server = Server::start(&[]).await;
    let (link, _, mut hints) = link_to(&server.url()).await;
    let channel = subscribe(&link, "t").await;
    server.kill();
    hint(&mut hints, &Hint::Lost).await;
    server.start_again().await;
    hint(&mut hints, &Hint::Restored).await;
    link.subscribed(&channel).await;
    check_heard(&server, &channel, &mut hints).await;
}

#[tokio::test]
async fn subscriptions_survive_the_loss_of_connections() {
    let server = Server::start(&[]).await;
    let (link, _, mut hints) = link_to(&server.url()).await;
    let channel = subscribe(&link, "t").await;
    for _ in 0..5 {
        server.ask("CLIENT KILL TYPE pubsub").await;
        hint(&mut hints, &Hint::Lost).await;
        hint(&mut hints, &Hint::Restored).await;
        check_heard(&server, &channel, &mut hints).await;
    }
}

#[tokio::test]
async fn a_frozen_server_is_a_loss() {
    let server = Server::start(&[]).await;
    let (link, _, mut hints) = link_to(&server.url()).await;
    let channel = subscribe(&link, "t").await;
    server.signal(Signal::STOP);
    hint(&mut hints, &Hint::Lost).await;
    server.signal(Signal::CONT);
    hint(&mut hints, &Hint::Restored).await;
    until("it is heard once", async || {
        server.ask(&format!("SPUBLISH {CHANNEL} word")).await == Value::Int(1)
    })
    .await;
    check_heard(&server, &channel, &mut hints).await;
}
