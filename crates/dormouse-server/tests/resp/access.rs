//! Tokens and rights.

use std::time::Duration;

use crate::client::{Client, command};
use crate::rig::{Rig, access};
use crate::value::{Value, list, status};

#[tokio::test]
async fn without_a_token_nothing_is_done() {
    let rig = Rig::with_tokens(&[("admin", &["*:*"])]).await;
    let mut client = rig.client().await;
    for line in ["PING", "PUT t x", "RESERVE t", "STATS", "COMMAND", "INFO", "nonsense"] {
        let answer = client.ask(line).await;
        assert!(answer.error("NOAUTH").contains("AUTH"), "{line}");
    }
    assert!(client.ask("HELLO 3").await.error("NOAUTH").contains("HELLO 3 AUTH"));
    assert!(!client.ask("AUTH wrong").await.error("WRONGPASS").is_empty());
    assert!(!client.ask("AUTH other admin").await.error("WRONGPASS").is_empty());
    assert!(!client.ask_all(&[b"AUTH".as_slice(), &[0xff]]).await.error("WRONGPASS").is_empty());
    assert!(!client.ask("HELLO 3 AUTH default wrong").await.error("WRONGPASS").is_empty());
    assert!(!client.ask("PING").await.error("NOAUTH").is_empty());
    assert_eq!(client.ask("AUTH admin").await, status("OK"));
    assert_eq!(client.ask("PING").await, status("PONG"));
    assert_eq!(client.ask("RESET").await, status("RESET"));
    assert!(!client.ask("PING").await.error("NOAUTH").is_empty());
    for line in ["AUTH default admin", "AUTH admin admin"] {
        assert_eq!(client.ask(line).await, status("OK"), "{line}");
    }
    let mut client = rig.client().await;
    let hello = client.ask("HELLO 3 AUTH default admin SETNAME me").await;
    assert_eq!(hello.field("proto"), &Value::Number(3));
    assert_eq!(client.ask("PING").await, status("PONG"));
    let mut client = rig.client().await;
    assert_eq!(client.ask("QUIT").await, status("OK"));
}

#[tokio::test]
async fn without_configured_tokens_every_token_is_accepted() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    assert_eq!(client.ask("AUTH any thing").await, status("OK"));
    client.put("t x").await;
}

#[tokio::test]
async fn a_limited_token_is_confined_to_its_topics() {
    let rig =
        Rig::with_tokens(&[("admin", &["*:*"]), ("a", &["*:a", "lock:own"]), ("puts", &["put:b"])])
            .await;
    let mut admin = rig.client_of("admin").await;
    let mut client = rig.client_of("a").await;
    let own = client.put("a x").await;
    let theirs = admin.put("b x").await;
    let later = admin.ask("PUT b y DELAY 1h KEY k").await;
    let later = later.items()[0].str();
    let token = admin.take("b").await;
    // rights/ has all cases.
    for line in ["RESERVE a b WAIT 1s", "CANCEL b KEY k", "PEEK b", "STATS", "UNLOCK b me"] {
        let answer = client.ask(line).await;
        assert!(answer.error("NOPERM").contains("token `a` does not allow"), "{line}: {answer:?}");
    }
    // By its id or token a job of others does not exist.
    for line in [format!("CANCEL {later}"), format!("EXTEND {token}")] {
        assert!(!client.ask(&line).await.error("NOTFOUND").is_empty(), "{line}");
    }
    assert_eq!(client.ask(&format!("ACK {token}")).await, status("GONE"));
    assert_eq!(client.ask(&format!("GET {theirs}")).await, Value::Null);
    // Nothing has changed.
    assert_eq!(admin.ask(&format!("ACK {token}")).await, status("OK"));
    assert_eq!(admin.ask("STATS b").await.field("delayed").number(), 1);
    // Jobs in their own topic are accessible, absent jobs are absent.
    let topics = client.ask("TOPICS").await;
    assert_eq!(topics.items()[1].items().len(), 1);
    assert_eq!(client.ask(&format!("GET {own}")).await.field("id").str(), own);
    assert_eq!(client.ask("GET 99").await, Value::Null);
    assert_eq!(client.ask("ACK 99.1").await, status("GONE"));
    let token = client.take("a").await;
    assert_eq!(
        client.ask(&format!("ACK 99.1 {token}")).await,
        list(&[status("GONE"), status("OK")])
    );
    client.ask("LOCK own me").await.items();
    let mut puts = rig.client_of("puts").await;
    puts.put("b z").await;
    assert!(puts.ask("TOPICS").await.error("NOPERM").contains("list"));
}

#[tokio::test]
async fn answers_keep_their_order_while_jobs_are_looked_up() {
    let rig = Rig::with_tokens(&[("admin", &["*:*"]), ("a", &["*:a"])]).await;
    let theirs = rig.client_of("admin").await.put("b x").await;
    let mut client = rig.client_of("a").await;
    client.put("a x").await;
    let token = client.take("a").await;
    let mut pipeline = command(&["PUT", "a", "y"]);
    pipeline.extend(command(&["ACK", &token]));
    pipeline.extend(command(&["CANCEL", &theirs]));
    pipeline.extend(command(&["PING"]));
    pipeline.extend(command(&["ACK", &token]));
    client.send(&pipeline).await;
    client.hear().await.str();
    assert_eq!(client.hear().await, status("OK"));
    assert!(!client.hear().await.error("NOTFOUND").is_empty());
    assert_eq!(client.hear().await, status("PONG"));
    assert_eq!(client.hear().await, status("GONE"));
}

#[tokio::test]
async fn each_command_of_a_pipeline_is_checked_by_the_token_before_it() {
    let rig = Rig::with_tokens(&[("admin", &["*:*"]), ("a", &["*:a"])]).await;
    let mut admin = rig.client_of("admin").await;
    let (first, second) = (admin.put("b x").await, admin.put("b y").await);
    let mut client = rig.client_of("a").await;
    let mut pipeline = Vec::new();
    for line in [
        format!("CANCEL {first}"),
        "HELLO 2 AUTH default admin".to_owned(),
        format!("CANCEL {first}"),
        "AUTH a".to_owned(),
        format!("CANCEL {second}"),
        "AUTH admin".to_owned(),
        format!("CANCEL {second}"),
        "RESET".to_owned(),
        "PING".to_owned(),
    ] {
        pipeline.extend(command(&line.split(' ').collect::<Vec<_>>()));
    }
    client.send(&pipeline).await;
    assert!(!client.hear().await.error("NOTFOUND").is_empty());
    client.hear().await.items();
    assert_eq!(client.hear().await.items()[0].str(), first);
    assert_eq!(client.hear().await, status("OK"));
    assert!(!client.hear().await.error("NOTFOUND").is_empty());
    assert_eq!(client.hear().await, status("OK"));
    assert_eq!(client.hear().await.items()[0].str(), second);
    assert_eq!(client.hear().await, status("RESET"));
    assert!(!client.hear().await.error("NOAUTH").is_empty());
}

/// The server closes its connection and says why.
async fn is_ended(client: &mut Client) {
    let ended = async {
        assert!(client.hear().await.error("NOAUTH").contains("withdrawn"));
        assert_eq!(client.try_hear().await, None);
    };
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it is still connected");
}

#[tokio::test]
async fn the_sessions_of_a_revoked_token_end() {
    let rig = Rig::with_tokens(&[("admin", &["*:*"]), ("old", &["*:*"])]).await;
    let mut admin = rig.client_of("admin").await;
    let (mut idle, mut waiting) = (rig.client_of("old").await, rig.client_of("old").await);
    idle.put("t x").await;
    waiting.send(&command(&["RESERVE", "later", "WAIT", "60s"])).await;
    rig.await_waiters_of(&mut admin, "later", 1).await;
    rig.access.replace(&access(&[("admin", &["*:*"])]));
    // No job reaches the one that waits, whether it has noticed already or not.
    admin.put("later secret").await;
    is_ended(&mut idle).await;
    is_ended(&mut waiting).await;
    assert!(!rig.client().await.ask("AUTH old").await.error("WRONGPASS").is_empty());
    loop {
        let stats = admin.ask("STATS later").await;
        if stats.field("ready").number() == 1 {
            break;
        }
        tokio::task::yield_now().await;
    }
    // Those of a token that has lost a right go on with the others, but for what waits.
    let mut waiting = rig.client_of("admin").await;
    waiting.send(&command(&["RESERVE", "never", "WAIT", "60s"])).await;
    rig.await_waiters_of(&mut admin, "never", 1).await;
    rig.access.replace(&access(&[("admin", &["put:t"])]));
    is_ended(&mut waiting).await;
    admin.put("t x").await;
    assert!(!admin.ask("STATS t").await.error("NOPERM").is_empty());
}

#[tokio::test]
async fn other_tokens_are_not_disturbed_by_a_reload() {
    let rig = Rig::with_tokens(&[("admin", &["*:*"]), ("other", &["*:*"])]).await;
    let mut admin = rig.client_of("admin").await;
    let mut waiting = rig.client_of("admin").await;
    waiting.send(&command(&["RESERVE", "t", "WAIT", "60s"])).await;
    rig.await_waiters_of(&mut admin, "t", 1).await;
    rig.access.replace(&access(&[("admin", &["*:*"]), ("new", &["*:*"])]));
    admin.put("t x").await;
    assert_eq!(waiting.hear().await.items().len(), 1);
}

#[tokio::test]
async fn unauthenticated_clients_may_send_little() {
    let rig = Rig::with_tokens(&[("admin", &["*:*"])]).await;
    for bytes in ["*11\r\n", "*2\r\n$4\r\nAUTH\r\n$100000\r\n"] {
        let mut client = rig.client().await;
        client.send(bytes.as_bytes()).await;
        assert!(client.hear().await.error("ERR").starts_with("Protocol error"));
        assert_eq!(client.try_hear().await, None);
    }
    // Behind its AUTH a pipeline may be large.
    let mut client = rig.client().await;
    let mut pipeline = command(&["AUTH", "admin"]);
    pipeline.extend(command(&[b"PUT".as_slice(), b"t", &vec![b'x'; 500_000]]));
    client.send(&pipeline).await;
    assert_eq!(client.hear().await, status("OK"));
    client.hear().await.str();
}

#[tokio::test]
async fn a_refused_hello_authenticates_nobody() {
    let rig = Rig::with_tokens(&[("admin", &["*:*"])]).await;
    for tail in ["FOO", "SETNAME", "SETNAME a\tb", "AUTH default"] {
        let mut client = rig.client().await;
        let mut args = vec!["HELLO", "3", "AUTH", "default", "admin"];
        args.extend(tail.split(' '));
        assert!(matches!(client.ask_all(&args).await, Value::Error(_)), "{tail}");
        assert!(!client.ask("PING").await.error("NOAUTH").is_empty(), "{tail}");
    }
}

#[tokio::test]
async fn only_an_operator_holds_jobs_and_locks_for_long() {
    let scopes: &[&str] = &["producer,consumer,lock:a"];
    let rig = Rig::with_tokens(&[("admin", &["*:*"]), ("client", scopes)]).await;
    let mut client = rig.client_of("client").await;
    let mut admin = rig.client_of("admin").await;
    for _ in 0..2 {
        client.put("a x").await;
    }
    let id = client.put("a x DELAY 1h").await;
    let token = client.take("a").await;
    for (line, field) in [
        ("PUT a x TTR 25h".to_owned(), "TTR"),
        ("RESERVE a TTR 25h".to_owned(), "TTR"),
        (format!("RESERVEID {id} TTR 25h"), "TTR"),
        (format!("EXTEND {token} 25h"), "span"),
        ("LOCK a me TTL 25h".to_owned(), "TTL"),
        ("RENEW a me TTL 25h".to_owned(), "TTL"),
    ] {
        let text = client.ask(&line).await.error("INVALID").to_owned();
        let expected = format!("{field} is 90000000 ms");
        assert!(text.contains(&expected) && text.contains("86400000"), "{line}: {text}");
        let done = admin.ask(&line).await;
        assert!(!matches!(done, Value::Error(_)), "{line}: {done:?}");
    }
}
