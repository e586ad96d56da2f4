//! put.

use crate::rig::Rig;
use crate::value::{Value, list, text};

#[tokio::test]
async fn a_job_is_put_and_reserved() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let id = client.put("mails hello").await;
    let jobs = client.ask("RESERVE mails").await;
    let [job] = jobs.items() else { panic!("{jobs:?}") };
    let [topic, job_id, token, attempt, due_at, body, ttr_ms] = job.items() else {
        panic!("{job:?}")
    };
    assert_eq!((topic, job_id), (&text("mails"), &text(&id)));
    assert!(token.str().starts_with(&format!("{id}.")));
    assert_eq!((attempt, body), (&Value::Number(1), &text("hello")));
    assert!(due_at.number() > 0);
    assert_eq!(ttr_ms, &Value::Number(60_000));
    assert_eq!(client.ask(&format!("ACK {}", token.str())).await.str(), "OK");
}

#[tokio::test]
async fn every_option_is_kept() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("HELLO 3").await;
    let put = client
        .ask_all(&[
            "put",
            "t",
            "b",
            "delay",
            "30m",
            "Key",
            "k",
            "PRIORITY",
            "7",
            "TTR",
            "90s",
            "ATTEMPTS",
            "3",
            "KEY_TTL",
            "PT1H",
            "BACKOFF",
            "list:1s,5s",
            "HEADER",
            "a",
            "x y",
            "header",
            "b",
            "",
            "HEADER",
            "a",
            "z",
        ])
        .await;
    assert_eq!(put.items()[1], text("created"));
    let job = client.ask(&format!("GET {}", put.items()[0].str())).await;
    for (name, number) in [
        ("priority", 7),
        ("ttr_ms", 90_000),
        ("attempts_max", 3),
        ("attempts", 0),
        ("key_ttl_ms", 3_600_000),
    ] {
        assert_eq!(job.field(name).number(), number, "{name}");
    }
    assert_eq!(job.field("due_at").number() - job.field("put_at").number(), 1_800_000);
    assert_eq!(job.field("key"), &text("k"));
    assert_eq!(job.field("state"), &text("delayed"));
    assert_eq!(job.field("backoff"), &text("list:1000,5000"));
    assert_eq!(job.field("error"), &Value::Null);
    let headers = [(text("a"), text("z")), (text("b"), text(""))];
    assert_eq!(job.field("headers"), &Value::Map(headers.to_vec()));
    rig.advance(1_799);
    assert_eq!(client.ask("RESERVE t").await, list(&[]));
    rig.advance(1);
    assert_eq!(client.ask("RESERVE t").await.items().len(), 1);
}

#[tokio::test]
async fn an_instant_may_be_given() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for at in ["2090-01-01T09:00:00+01:00", "3786940800000"] {
        let id = client.put(&format!("t b AT {at}")).await;
        let job = client.ask(&format!("GET {id}")).await;
        assert_eq!(job.field("due_at").number(), 3_786_940_800_000);
    }
}

#[tokio::test]
async fn keys_are_taken_once() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let first = client.ask("PUT t a KEY k").await;
    let id = first.items()[0].clone();
    let answer = |word: &str| list(&[id.clone(), text(word)]);
    assert_eq!(first, answer("created"));
    assert_eq!(client.ask("PUT t b KEY k").await, answer("duplicate"));
    assert_eq!(client.ask("PUT t c KEY k ON_CONFLICT replace").await, answer("replaced"));
    let refused = client.ask("PUT t d KEY k ON_CONFLICT REJECT").await;
    assert!(refused.error("CONFLICT").contains(id.str()), "{refused:?}");
    let earlier = client.ask("PUT t e KEY k DELAY 1h ON_CONFLICT earliest").await;
    assert_eq!(earlier, answer("duplicate"));
    let later = client.ask("PUT t e KEY k DELAY 1h ON_CONFLICT latest").await;
    assert_eq!(later, answer("replaced"));
}

#[tokio::test]
async fn bodies_are_any_bytes_of_any_size() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let all: Vec<u8> = (0..=255).collect();
    for size in [0, 1, 4_095, 4_096, 16_383, 16_384, 100_000, 1 << 20] {
        let body: Vec<u8> = all.iter().copied().cycle().take(size).collect();
        client.ask_all(&[b"PUT", b"t".as_slice(), &body]).await.str();
        let jobs = client.ask("RESERVE t").await;
        let job = jobs.items()[0].items();
        assert!(job[5] == Value::Text(body), "{size}");
        client.ask(&format!("ACK {}", job[2].str())).await;
    }
}

#[tokio::test]
async fn a_job_that_is_too_large_is_refused_and_the_connection_goes_on() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for size in [(1 << 20) + 1, (2 << 20) - 100, 2 << 20, 3 << 20, (16 << 20) - 100] {
        let body = vec![b'x'; size];
        let answer = client.ask_all(&[b"PUT", b"t".as_slice(), &body, b"DELAY", b"5s"]).await;
        assert!(!answer.error("TOOLARGE").is_empty(), "{size}");
    }
    assert_eq!(client.ask("PING").await.str(), "PONG");
    assert_eq!(client.ask("RESERVE t").await, list(&[]));
}

#[tokio::test]
async fn invalid_arguments_are_refused() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for (line, part) in [
        ("PUT t", "wrong number of arguments; write PUT topic body [DELAY span]"),
        ("PUT -t b", "topic"),
        ("PUT t b DELAY", "DELAY is missing"),
        ("PUT t b DELAY soon", "DELAY: \"soon\" is not a span"),
        ("PUT t b DELAY -1s", "delay is -1000 ms; give 0 to"),
        ("PUT t b AT tomorrow", "AT: \"tomorrow\" is not an instant"),
        ("PUT t b DELAY 1s AT 1798790400000", "both given"),
        ("PUT t b AT 1798790400", "looks like seconds"),
        ("PUT t b PRIORITY -1", "PRIORITY is \"-1\"; give a number"),
        ("PUT t b PRIORITY 4294967296", "PRIORITY"),
        ("PUT t b ATTEMPTS many", "ATTEMPTS"),
        ("PUT t b TTR 0", "ttr is 0 ms"),
        ("PUT t b BACKOFF linear", "BACKOFF"),
        ("PUT t b ON_CONFLICT fight", "give keep, reject, replace, earliest or latest"),
        ("PUT t b HEADER a", "the value of a HEADER is missing"),
        ("PUT t b DELAI 5", "\"DELAI\" is not an option here; the options are DELAY, AT"),
    ] {
        let answer = client.ask(line).await;
        let said = answer.error("INVALID");
        assert!(said.contains(part), "{line}: {said}");
    }
    assert!(client.ask("STATS t").await.error("NOTFOUND").contains('t'));
}

#[tokio::test]
async fn full_tells_all_of_a_put() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let put = client.ask("PUT t a FULL").await;
    let [id, outcome, state, due_at] = put.items() else { panic!("{put:?}") };
    assert_eq!((outcome, state), (&text("created"), &text("ready")));
    let view = client.ask(&format!("GET {}", id.str())).await;
    assert_eq!(view.field("due_at"), due_at);
    let first = client.ask("PUT t a KEY k DELAY 1h KEY_TTL 1h FULL").await;
    let again = client.ask("PUT t b FULL KEY k").await;
    assert_eq!(again.items()[1..], [text("duplicate"), text("delayed"), first.items()[3].clone()]);
    let jobs = client.ask(&format!("RESERVEID {}", first.items()[0].str())).await;
    let token = jobs.items()[0].items()[2].str().to_owned();
    let chain = client.ask(&format!("ACK {token} PUT t c FULL PUT t d")).await;
    assert_eq!(chain.items()[1].items().len(), 4, "{chain:?}");
    assert!(!chain.items()[2].str().is_empty(), "{chain:?}");
    // The job is gone, its key is not.
    let held = client.ask("PUT t b KEY k FULL").await;
    assert_eq!(held.items()[1..3], [text("duplicate"), Value::Null]);
}

#[tokio::test]
async fn the_kind_of_a_body_is_kept() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.ask("HELLO 3").await;
    for (option, kind) in [("", "bytes"), (" KIND text", "text"), (" kind JSON", "json")] {
        let id = client.put(&format!("t 1{option}")).await;
        assert_eq!(client.ask(&format!("GET {id}")).await.field("kind"), &text(kind));
        let jobs = client.ask("RESERVE t FULL").await;
        assert_eq!(jobs.items()[0].field("kind"), &text(kind));
    }
    let refused = client.ask("PUT t 1 KIND xml").await;
    let Value::Error(refused) = refused else { panic!("{refused:?}") };
    assert!(refused.contains("give bytes, text or json"), "{refused}");
}
