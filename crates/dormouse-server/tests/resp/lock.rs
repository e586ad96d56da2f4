//! Locks.

use crate::rig::Rig;
use crate::value::{Value, status};

#[tokio::test]
async fn a_lock_is_held_by_one_owner() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let held = client.ask("LOCK door me TTL 10s").await;
    let [fence, until, depth] = held.items() else { panic!("{held:?}") };
    assert_eq!(depth, &Value::Number(1));
    assert!(client.ask("LOCK door you").await.error("CONFLICT").contains("me"));
    let again = client.ask("LOCK door me TTL 10s").await;
    assert_eq!(again.items()[2], Value::Number(2));
    rig.advance(4);
    let renewed = client.ask("RENEW door me").await;
    assert_eq!(renewed.items()[1].number(), until.number() + 4_000);
    assert!(!client.ask("RENEW door you TTL 1s").await.error("CONFLICT").is_empty());
    assert_eq!(client.ask("UNLOCK door me").await, status("HELD"));
    assert_eq!(client.ask("UNLOCK door me").await, status("OK"));
    assert!(!client.ask("UNLOCK door me").await.error("NOTFOUND").is_empty());
    let newer = client.ask("LOCK door you").await;
    let number = |value: &Value| value.str().parse::<u64>().unwrap();
    assert!(number(&newer.items()[0]) > number(fence));
    for line in ["LOCK door", "LOCK door me FOR 5s", "LOCK door me TTL 0", "RENEW door me 5s"] {
        assert!(!client.ask(line).await.error("INVALID").is_empty(), "{line}");
    }
}

#[tokio::test]
async fn a_waiting_client_gets_the_lock() {
    let rig = Rig::new().await;
    let (mut holder, mut waiter) = (rig.client().await, rig.client().await);
    holder.ask("LOCK door me").await.items();
    waiter.send(b"PING\r\nLOCK door you WAIT 60s\r\n").await;
    assert_eq!(waiter.hear().await.str(), "PONG");
    while holder.ask("UNLOCK door me").await != status("OK") {}
    assert_eq!(waiter.hear().await.items()[2], Value::Number(1));
}

/// Name and owner are all that a release needs.
#[tokio::test]
async fn the_owner_of_a_lock_is_told_only_to_those_who_may_list() {
    let rig = Rig::with_tokens(&[
        ("one", &["lock:in.*"]),
        ("two", &["lock:in.*"]),
        ("operator", &["lock,operator:in.*"]),
    ])
    .await;
    rig.client_of("one").await.ask("LOCK in.l s3cret").await.items();
    for (token, is_told) in [("two", false), ("operator", true)] {
        let mut client = rig.client_of(token).await;
        for line in ["LOCK in.l other", "RENEW in.l other", "UNLOCK in.l other"] {
            let answer = client.ask(line).await;
            let text = answer.error("CONFLICT");
            assert_eq!(text.contains("s3cret"), is_told, "{token} {line}: {text}");
            assert!(text.contains("in.l") && text.contains("is held by"), "{text}");
        }
    }
}
