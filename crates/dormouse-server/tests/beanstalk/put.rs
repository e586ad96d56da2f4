//! put.

use crate::rig::{Rig, play};

#[tokio::test]
async fn bodies_are_opaque() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for (at, body) in
        [&b""[..], b"\r\n", b"\0\r\n\xff", b"put 0 0 9 1\r\nx", &[b'a'; 4_096]].iter().enumerate()
    {
        let line = format!("put 0 0 9 {}\r\n", body.len());
        client.say(&[line.as_bytes(), body, b"\r\n"].concat()).await;
        client.hear(&format!("INSERTED {}", at + 1)).await;
        client.say(b"reserve\r\n").await;
        assert_eq!(client.line().await, format!("RESERVED {} {}", at + 1, body.len()));
        client.say(b"quit\r\n").await;
        let rest = client.rest().await;
        assert_eq!(rest, [body, &b"\r\n"[..]].concat());
        client = rig.client().await;
        client.ask(&format!("delete {}", at + 1), "DELETED").await;
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_discarded() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let body = "a".repeat(65_535);
    client.ask(&format!("put 0 0 9 65535\n{body}"), "INSERTED 1").await;
    client
        .ask(&format!("put 0 0 9 65536\n{body}x\nput 0 0 9 1\ny"), "JOB_TOO_BIG\nINSERTED 2")
        .await;
    client.ask(&format!("put 0 0 9 65536 x\n{body}x\nuse a"), "JOB_TOO_BIG\nUSING a").await;
    client.say(b"put 0 0 9 65537\r\n").await;
    for _ in 0..65 {
        client.say(&[b'b'; 1_000]).await;
    }
    client.say(&[b'b'; 539]).await;
    client.ask("use b", "JOB_TOO_BIG\nUSING b").await;
}

#[tokio::test]
async fn the_limit_can_be_set() {
    let rig = Rig::with_bodies(3).await;
    let mut client = rig.client().await;
    client
        .ask("put 0 0 9 3\nabc\nput 0 0 9 4\nabcd\nuse a", "INSERTED 1\nJOB_TOO_BIG\nUSING a")
        .await;
    assert_eq!(client.stat("stats", "max-job-size").await, "3");
    let rig = Rig::with_bodies(usize::MAX).await;
    let mut client = rig.client().await;
    assert_eq!(client.stat("stats", "max-job-size").await, "1048576");
    let body = "a".repeat(1 << 20);
    client.ask(&format!("put 0 0 9 1048576\n{body}"), "INSERTED 1").await;
    client.ask("reserve", &format!("RESERVED 1 1048576\n{body}")).await;
}

#[tokio::test]
async fn a_body_ends_with_cr_lf() {
    play(&[
        ("put 0 0 9 3\nabcdefg\nuse a", "EXPECTED_CRLF\nUNKNOWN_COMMAND\nUSING a"),
        ("put 0 0 9 3 x\nabc", "BAD_FORMAT\nUNKNOWN_COMMAND"),
        ("put 0 0 9\nuse b", "BAD_FORMAT\nUSING b"),
        ("put -1 0 9 1\nquitx", "BAD_FORMAT"),
    ])
    .await;
}

#[tokio::test]
async fn extreme_numbers_are_accepted() {
    play(&[
        ("put 4294967295 4294967295 4294967295 0\n", "INSERTED 1"),
        ("put 4294967296 0 9 0", "BAD_FORMAT"),
        ("put 0 0 0 0\n", "INSERTED 2"),
        ("peek 1", "FOUND 1 0\n"),
    ])
    .await;
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("put 7 0 0 0\n", "INSERTED 1").await;
    assert_eq!(client.stat("stats-job 1", "ttr").await, "1");
    assert_eq!(client.stat("stats-job 1", "pri").await, "7");
}

#[tokio::test]
async fn draining_refuses_puts_only() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("put 0 0 9 1\nx", "INSERTED 1").await;
    assert_eq!(client.stat("stats", "draining").await, "false");
    rig.drain.begin();
    client.ask("put 0 0 9 1\nx", "DRAINING").await;
    client.say(b"put 0 0 9 1\r\nxyz").await;
    client.ask("\nuse a", "EXPECTED_CRLF\nUNKNOWN_COMMAND\nUSING a").await;
    client.ask("reserve\ndelete 1", "RESERVED 1 1\nx\nDELETED").await;
    assert_eq!(client.stat("stats", "draining").await, "true");
}
