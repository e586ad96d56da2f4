//! One job: get, cancel, reschedule, kill, revive.

use crate::rig::Rig;
use crate::value::{Value, list, status, text};

#[tokio::test]
async fn a_job_is_read_by_id_and_by_key() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let put = client.ask("PUT t a KEY k").await;
    let id = put.items()[0].str();
    let job = client.ask(&format!("GET {id}")).await;
    assert_eq!(job.field("body"), &text("a"));
    assert_eq!(client.ask("GET t KEY k").await, job);
    assert_eq!(client.ask("GET 99").await, Value::Null);
    assert_eq!(client.ask("GET t KEY other").await, Value::Null);
}

#[tokio::test]
async fn the_error_shows_where_the_word_key_belongs() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("PUT t x KEY k").await.items();
    for (line, text) in [
        ("GET t k", r#"id "t" is not a number; to name a job by its key write GET "t" KEY "k""#),
        ("GET k", r#"id "k" is not a number; write GET id|topic KEY key"#),
        ("GET 1 k", r#""k" is not an option here; the options are KEY"#),
        ("CANCEL t k UNLESS_LEASED", r#"by its key write CANCEL "t" KEY "k""#),
        ("CANCEL k UNLESS_LEASED", r#"id "k" is not a number; write CANCEL id|topic KEY key [UNL"#),
        ("RESCHEDULE t k NOW", r#"by its key write RESCHEDULE "t" KEY "k""#),
        ("RESCHEDULE k NOW", r#"write RESCHEDULE id|topic KEY key DELAY span|AT instant|NOW"#),
        ("REVIVE t k", r#"by its key write REVIVE "t" KEY "k""#),
        ("REVIVE t", r#"write REVIVE id|topic KEY key|topic MAX n|topic ALL"#),
        ("KILL t k ERROR e", r#"by its key write KILL "t" KEY "k""#),
        ("KILL a.b k", r#"by its key write KILL "a.b" KEY "k""#),
        ("KILL a.b ERROR e", r#"id "a.b" is not a number; write KILL token|id|topic KEY key"#),
        ("KILL 1.x", r#"write KILL token|id|topic KEY key"#),
        ("KILL 1.", r#"token "1." is not of the form <id>.<fence>"#),
    ] {
        let answer = client.ask(line).await;
        assert!(answer.error("INVALID").contains(text), "{line}: {answer:?}");
    }
    assert_eq!(client.ask("GET t KEY k").await.field("state"), &text("ready"));
}

#[tokio::test]
async fn a_cancel_replies_with_the_job() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let id = client.put("t a DELAY 1h").await;
    let was = |id: &str, state: &str| list(&[text(id), text(state)]);
    assert_eq!(client.ask(&format!("CANCEL {id}")).await, was(&id, "delayed"));
    assert!(!client.ask(&format!("CANCEL {id}")).await.error("NOTFOUND").is_empty());
    let put = client.ask("PUT t a KEY k").await;
    let id = put.items()[0].str();
    let token = client.take("t").await;
    assert!(client.ask("CANCEL t KEY k UNLESS_LEASED").await.error("CONFLICT").contains(id));
    assert_eq!(client.ask("CANCEL t KEY k").await, was(id, "leased"));
    assert_eq!(client.ask(&format!("ACK {token}")).await, status("GONE"));
    assert!(client.ask("CANCEL 1 NOW").await.error("INVALID").contains("UNLESS_LEASED"));
}

#[tokio::test]
async fn a_job_is_rescheduled() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let put = client.ask("PUT t a KEY k DELAY 1h").await;
    let id = put.items()[0].str();
    let at = 3_786_940_800_000_i64;
    let moved = client.ask("RESCHEDULE t KEY k AT 2090-01-01T08:00:00Z").await;
    assert_eq!(moved, list(&[text(id), text("delayed"), Value::Number(at)]));
    client.ask(&format!("RESCHEDULE {id} DELAY 5s")).await.items();
    rig.advance(5);
    let moved = client.ask(&format!("RESCHEDULE {id} NOW")).await;
    assert_eq!(moved.items()[1], text("ready"));
    client.take("t").await;
    assert!(!client.ask(&format!("RESCHEDULE {id} NOW")).await.error("CONFLICT").is_empty());
    for line in ["RESCHEDULE 1", "RESCHEDULE 1 SOON", "RESCHEDULE 1 NOW 5", "RESCHEDULE 1 DELAY"] {
        assert!(!client.ask(line).await.error("INVALID").is_empty(), "{line}");
    }
}

#[tokio::test]
async fn jobs_are_killed_and_revived() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let put = client.ask("PUT a.b x KEY k").await;
    let id = put.items()[0].str().to_owned();
    let token = client.take("a.b").await;
    let kill = ["KILL", &token, "ERROR", "too bad", "PRIORITY", "2"];
    assert_eq!(client.ask_all(&kill).await, status("OK"));
    let job = client.ask(&format!("GET {id}")).await;
    assert_eq!((job.field("state"), job.field("error")), (&text("dead"), &text("too bad")));
    let revived = client.ask(&format!("REVIVE {id}")).await;
    assert_eq!(revived.items()[..2], [text(&id), text("dead")]);
    assert!(!client.ask(&format!("REVIVE {id}")).await.error("CONFLICT").is_empty());
    assert_eq!(client.ask(&format!("KILL {id}")).await, status("OK"));
    assert_eq!(client.ask("REVIVE a.b KEY k").await.items()[0], text(&id));
    // The topic looks like a token.
    assert_eq!(client.ask("KILL a.b KEY k").await, status("OK"));
    assert_eq!(client.ask(&format!("GET {id}")).await.field("kills").number(), 3);
    assert_eq!(client.ask("KILL 99.1").await, status("GONE"));
    assert!(!client.ask("KILL 99").await.error("NOTFOUND").is_empty());
    assert!(!client.ask("KILL a.b").await.error("INVALID").is_empty());
    assert!(!client.ask("REVIVE 1 2").await.error("INVALID").is_empty());
}
