//! Commands about the connection and the server.

use crate::rig::Rig;
use crate::value::{Value, list, status, text};

#[tokio::test]
async fn clients_get_the_facts_they_ask_for() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for (line, expected) in [
        ("PING", status("PONG")),
        ("ping hi", text("hi")),
        ("ECHO hi", text("hi")),
        ("SELECT 0", status("OK")),
        ("CLIENT SETINFO LIB-NAME x", status("OK")),
        ("CLIENT SETINFO lib-ver 1", status("OK")),
        ("CLIENT GETNAME", Value::Null),
        ("CLIENT SETNAME me", status("OK")),
        ("CLIENT GETNAME", text("me")),
        ("CLIENT NO-EVICT on", status("OK")),
        ("CLIENT NO-TOUCH on", status("OK")),
        ("CONFIG GET save", list(&[text("save"), text("")])),
        ("CONFIG GET maxmemory", list(&[])),
    ] {
        assert_eq!(client.ask(line).await, expected, "{line}");
    }
    assert!(client.ask("CLIENT ID").await.number() > 0);
    assert!(client.ask("CLIENT LIST").await.str().contains("name=me"));
    assert!(client.ask("INFO").await.str().contains("\r\nloading:0\r\n"));
    let server = client.ask("INFO server").await;
    assert!(server.str().starts_with("# Server\r\nredis_version:"));
    assert!(!server.str().contains("loading"));
}

#[tokio::test]
async fn unknown_commands_are_refused_in_the_words_of_redis() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for (line, part) in [
        ("SELECT 1", "DB index is out of range"),
        ("CLIENT REPLY OFF", "refused"),
        ("CLIENT TRACKING ON", "unknown subcommand \"TRACKING\""),
        ("CONFIG SET a b", "CONFIG GET"),
        ("COMMAND GETKEYS PUT a", "unknown subcommand"),
        ("RESREVE t", "unknown command 'RESREVE'; did you mean 'RESERVE'?"),
        ("PTU t", "did you mean 'PUT'?"),
        ("SET k v", "unknown command 'SET'; COMMAND DOCS lists"),
        ("xyzzy", "unknown command 'xyzzy'; COMMAND DOCS lists"),
    ] {
        let answer = client.ask(line).await;
        assert!(answer.error("ERR").contains(part), "{line}: {answer:?}");
    }
    assert!(!client.ask("HELLO 4").await.error("NOPROTO").is_empty());
    let broken = client.ask_all(&["CLIENT", "SETNAME", "a\nb"]).await;
    assert!(!broken.error("INVALID").is_empty());
    let broken = client.ask_all(&["a\r\n+OK\r\nb"]).await;
    assert!(broken.error("ERR").contains("unknown command"));
    assert_eq!(client.ask("PING").await, status("PONG"));
}

#[tokio::test]
async fn the_version_can_be_changed() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let hello = client.ask("HELLO").await;
    assert_eq!(hello.field("proto"), &Value::Number(2));
    let hello = client.ask("HELLO 3 SETNAME me").await;
    assert!(matches!(hello, Value::Map(_)));
    for (name, value) in [("server", "dormouse"), ("mode", "standalone"), ("role", "master")] {
        assert_eq!(hello.field(name), &text(value));
    }
    assert_eq!(hello.field("proto"), &Value::Number(3));
    assert_eq!(client.ask("CLIENT GETNAME").await, text("me"));
    assert_eq!(client.ask("CONFIG GET x").await, Value::Map(Vec::new()));
    assert_eq!(client.ask("RESET").await, status("RESET"));
    assert_eq!(client.ask("CLIENT GETNAME").await, Value::Null);
    assert_eq!(client.ask("CONFIG GET x").await, list(&[]));
    client.send(b"PING\r\nQUIT\r\nPING\r\n").await;
    assert_eq!(client.hear().await, status("PONG"));
    assert_eq!(client.hear().await, status("OK"));
    assert_eq!(client.try_hear().await, None);
}

/// A HELLO behind a command does not change the version of its reply.
#[tokio::test]
async fn a_command_is_answered_in_the_version_of_its_arrival() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.put("t x").await;
    client.send(b"GET 99\r\nSTATS t\r\nHELLO 3\r\nSTATS t\r\n").await;
    assert_eq!(client.hear().await, Value::Null);
    assert!(matches!(client.hear().await, Value::List(_)));
    assert!(matches!(client.hear().await, Value::Map(_)));
    assert!(matches!(client.hear().await, Value::Map(_)));
}

#[tokio::test]
async fn commands_are_described() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let count = client.ask("COMMAND COUNT").await.number();
    assert_eq!(client.ask("COMMAND").await.items().len() as i64, count);
    assert_eq!(client.ask("COMMAND INFO").await.items().len() as i64, count);
    assert_eq!(client.ask("COMMAND LIST").await.items().len() as i64, count);
    let infos = client.ask("COMMAND INFO put nothing UNLOCK").await;
    let [put, nothing, unlock] = infos.items() else { panic!("{infos:?}") };
    assert_eq!(put.items()[..2], [text("put"), Value::Number(-3)]);
    assert_eq!(put.items().len(), 10);
    assert_eq!((nothing, &unlock.items()[1]), (&Value::Null, &Value::Number(3)));
    let docs = client.ask("COMMAND DOCS put").await;
    assert!(docs.field("put").field("summary").str().starts_with("Add a job: PUT topic body"));
    client.ask("HELLO 3").await;
    let docs = client.ask("COMMAND DOCS").await;
    let Value::Map(docs) = docs else { panic!("{docs:?}") };
    assert_eq!(docs.len() as i64, count);
}

#[tokio::test]
async fn inline_commands_are_accepted() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.send(b"\r\n  put t \"two words\" DELAY 0s\r\nget t KEY\n").await;
    client.hear().await.str();
    assert!(!client.hear().await.error("INVALID").is_empty());
    client.send(b"reserve t\n").await;
    assert_eq!(client.hear().await.items()[0].items()[5], text("two words"));
}

/// Otherwise a client would be told that nothing was done, and would repeat it.
#[tokio::test]
async fn nothing_of_a_transaction_is_done() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.send(b"PUT t 1\r\nMULTI\r\nPUT t 2\r\nnonsense\r\nEXEC\r\nPUT t 3\r\n").await;
    client.hear().await.str();
    for _ in 0..4 {
        assert!(client.hear().await.error("ERR").contains("no transactions"));
    }
    client.hear().await.str();
    let jobs = client.ask("RESERVE t MAX 9").await;
    let bodies: Vec<&str> = jobs.items().iter().map(|job| job.items()[5].str()).collect();
    assert_eq!(bodies, ["1", "3"]);
    client.send(b"MULTI\r\nRESET\r\nPING\r\nEXEC\r\nPING\r\n").await;
    assert!(!client.hear().await.error("ERR").is_empty());
    assert_eq!(client.hear().await, status("RESET"));
    assert_eq!(client.hear().await, status("PONG"));
    assert!(!client.hear().await.error("ERR").is_empty());
    assert_eq!(client.hear().await, status("PONG"));
}
