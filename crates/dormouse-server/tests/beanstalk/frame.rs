//! Lines, pipelines and malformed input.

use crate::rig::{Rig, play};

#[tokio::test]
async fn unknown_and_malformed_lines_are_refused() {
    play(&[
        ("", "UNKNOWN_COMMAND"),
        ("PUT 0 0 0 1", "UNKNOWN_COMMAND"),
        ("put", "UNKNOWN_COMMAND"),
        ("use", "UNKNOWN_COMMAND"),
        ("kick-job", "UNKNOWN_COMMAND"),
        ("statsx", "BAD_FORMAT"),
        ("stats-job", "BAD_FORMAT"),
        ("reserve-with-timeout", "BAD_FORMAT"),
        ("use ", "BAD_FORMAT"),
        ("delete ", "BAD_FORMAT"),
        ("peek 1 ", "BAD_FORMAT"),
        ("peek  1", "NOT_FOUND"),
        ("peek 18446744073709551615", "NOT_FOUND"),
        ("peek 18446744073709551616", "BAD_FORMAT"),
        ("pause-tubedefault 0", "PAUSED"),
        ("foo\0", "BAD_FORMAT"),
        ("list-tube-used", "USING default"),
    ])
    .await;
}

#[tokio::test]
async fn lines_end_with_cr_lf_only() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.say(b"use lf\n").await;
    client.say(b"\r\n").await;
    client.hear("BAD_FORMAT").await;
    client.say(b"a\rb\r").await;
    client.say(b"\nlist-tube-used\r\n").await;
    client.hear("UNKNOWN_COMMAND\nUSING default").await;
}

#[tokio::test]
async fn a_line_that_is_too_long_gets_one_reply() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask(&"a".repeat(222), "UNKNOWN_COMMAND").await;
    for length in [223, 224, 225, 100_000] {
        client
            .ask(&format!("{}\nlist-tube-used", "a".repeat(length)), "BAD_FORMAT\nUSING default")
            .await;
    }
    client.say(&[b'a'; 300]).await;
    client.say(&[b'b'; 300]).await;
    client.say(b"\r").await;
    client.say(b"\nlist-tube-used\r\n").await;
    client.hear("BAD_FORMAT\nUSING default").await;
    let name = "a".repeat(200);
    client.ask(&format!("use {name}"), &format!("USING {name}")).await;
    client.ask(&format!("pause-tube {name} 4294967295"), "PAUSED").await;
}

#[tokio::test]
async fn a_pipeline_is_answered_in_order() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client
        .ask(
            "use a\nput 0 0 9 1\nx\nfoo\nput 0 0 9 1\ny\nwatch a\nreserve\npeek 2\n\
             delete 1\ndelete 1\nuse b\nput 0 0 9 1\nz\nlist-tube-used\n\
             reserve-with-timeout 0\nrelease 2 0 0\ndelete 2\nreserve-with-timeout 0",
            "USING a\nINSERTED 1\nUNKNOWN_COMMAND\nINSERTED 2\nWATCHING 2\nRESERVED 1 1\nx\n\
             FOUND 2 1\ny\nDELETED\nNOT_FOUND\nUSING b\nINSERTED 3\nUSING b\nRESERVED 2 1\ny\n\
             RELEASED\nDELETED\nTIMED_OUT",
        )
        .await;
}

#[tokio::test]
async fn a_long_pipeline_is_answered_in_order() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let count = 20_000;
    let said: String = (0..count).map(|_| "put 0 0 9 3\r\nabc\r\n").collect();
    let heard: Vec<String> = (1..=count).map(|id| format!("INSERTED {id}")).collect();
    client.say(said.as_bytes()).await;
    client.hear(&heard.join("\n")).await;
}

#[tokio::test]
async fn bytes_may_arrive_one_by_one() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for byte in b"put 0 0 9 5\r\nhello\r\nstatsx\r\nreserve\r\n" {
        client.say(&[*byte]).await;
        tokio::task::yield_now().await;
    }
    client.hear("INSERTED 1\nBAD_FORMAT\nRESERVED 1 5\nhello").await;
}

#[tokio::test]
async fn quit_closes_and_so_does_http() {
    let rig = Rig::new().await;
    let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(500));
    for said in ["quit\r\nuse a\r\n", "quitfoo\r\n", "GET / HTTP/1.1\r\n", "POST /x\r\n", &long] {
        let mut client = rig.client().await;
        client.say(said.as_bytes()).await;
        client.ends().await;
    }
    let mut client = rig.client().await;
    client.say(b"use a\r\nPOST / HTTP/1.1\r\n\r\nput 0 0 9 1\r\nx\r\n").await;
    client.hear("USING a").await;
    client.ends().await;
    assert_eq!(rig.client().await.stat("stats", "total-jobs").await, "0");
}

#[tokio::test]
async fn commands_before_the_end_are_answered() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.say(b"put 0 0 9 1\r\nx\r\nput 0 0 9 100\r\nhalf").await;
    client.fall_silent().await;
    client.hear("INSERTED 1").await;
    client.ends().await;
    let mut other = rig.client().await;
    assert_eq!(other.stat("stats", "total-jobs").await, "1", "half a job is none");
    other.ask("peek 2", "NOT_FOUND").await;
}
