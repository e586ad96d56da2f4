//! reserve, and the commands that end or prolong a lease.

use crate::rig::Rig;
use crate::value::{Value, list, status, text};

#[tokio::test]
async fn jobs_of_several_topics_are_granted_in_order() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for line in ["b 3 PRIORITY 3", "a 2 PRIORITY 2", "b 1 PRIORITY 1", "c 9 PRIORITY 0"] {
        client.put(line).await;
    }
    let jobs = client.ask("RESERVE a b MAX 10").await;
    let bodies: Vec<&str> = jobs.items().iter().map(|job| job.items()[5].str()).collect();
    assert_eq!(bodies, ["1", "2", "3"]);
    assert_eq!(client.ask("RESERVE a b MAX 10").await, list(&[]));
    // The first argument is a topic, whatever it is called.
    client.put("max 5").await;
    assert_eq!(client.ask("RESERVE max MAX 2").await.items().len(), 1);
}

#[tokio::test]
async fn full_shows_every_field_in_both_versions() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for version in ["HELLO 2", "HELLO 3"] {
        client.ask(version).await;
        client.put("t body TTR 90s PRIORITY 5 HEADER a b").await;
        let jobs = client.ask("RESERVE t FULL").await;
        let [job] = jobs.items() else { panic!("{jobs:?}") };
        assert_eq!(matches!(job, Value::Map(_)), version == "HELLO 3");
        assert_eq!(job.field("topic"), &text("t"));
        assert_eq!(job.field("key"), &Value::Null);
        assert_eq!(job.field("body"), &text("body"));
        assert_eq!(job.field("headers").field("a"), &text("b"));
        for (name, number) in [("attempt", 1), ("ttr_ms", 90_000), ("priority", 5), ("late_ms", 0)]
        {
            assert_eq!(job.field(name).number(), number, "{name}");
        }
        let spans = ["due_at", "put_at", "expires_at"].map(|name| job.field(name).number());
        assert_eq!((spans[0], spans[2]), (spans[1], spans[0] + 90_000));
        assert!(job.field("token").str().starts_with(job.field("id").str()));
    }
}

#[tokio::test]
async fn one_ack_gets_a_status_and_several_a_list() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let mut tokens = Vec::new();
    for body in ["a", "b", "c"] {
        client.put(&format!("t {body} TTR 1s")).await;
        tokens.push(client.take("t").await);
    }
    assert_eq!(client.ask(&format!("ACK {}", tokens[0])).await, status("OK"));
    assert_eq!(client.ask(&format!("ACK {}", tokens[0])).await, status("GONE"));
    rig.advance(2);
    let newer = client.take("t").await;
    let lost = tokens.iter().find(|token| newer.split('.').next() == token.split('.').next());
    let lost = lost.unwrap();
    assert!(client.ask(&format!("ACK {lost}")).await.error("LEASELOST").contains(lost.as_str()));
    let answers = client.ask(&format!("ACK {} {newer} {lost}", tokens[0])).await;
    let [gone, done, after] = answers.items() else { panic!("{answers:?}") };
    assert_eq!((gone, done, after), (&status("GONE"), &status("OK"), &status("GONE")));
    assert!(client.ask("ACK nonsense").await.error("INVALID").contains("<id>.<fence>"));
    assert!(client.ask("ACK 1.1 nonsense").await.error("INVALID").contains("nonsense"));
}

#[tokio::test]
async fn lost_leases_are_reported_one_by_one() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.put("t a TTR 1s").await;
    let old = client.take("t").await;
    rig.advance(2);
    let new = client.take("t").await;
    let answers = client.ask(&format!("ACK {old} {new}")).await;
    assert!(!answers.items()[0].error("LEASELOST").is_empty());
    assert_eq!(answers.items()[1], status("OK"));
}

#[tokio::test]
async fn a_failed_job_keeps_its_error_and_is_retried() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let id = client.put("t a ATTEMPTS 2").await;
    let token = client.take("t").await;
    let nack = ["NACK", &token, "DELAY", "10s", "PRIORITY", "3", "ERROR", "no route"];
    let nacked = client.ask_all(&nack).await;
    let job = client.ask(&format!("GET {id}")).await;
    assert_eq!(nacked, list(&[status("RETRY"), job.field("due_at").clone()]));
    assert_eq!(job.field("error"), &text("no route"));
    assert_eq!((job.field("priority").number(), job.field("attempts").number()), (3, 1));
    rig.advance(9);
    assert_eq!(client.ask("RESERVE t").await, list(&[]));
    rig.advance(1);
    let token = client.take("t").await;
    assert_eq!(client.ask(&format!("NACK {token}")).await, status("DEAD"));
    assert_eq!(client.ask(&format!("GET {id}")).await.field("state"), &text("dead"));
    assert_eq!(client.ask("NACK 99.1").await, status("GONE"));
    assert!(client.ask("NACK 1.1 WHY x").await.error("INVALID").contains("DELAY, PRIORITY, ERROR"));
}

#[tokio::test]
async fn a_released_job_keeps_its_attempt() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let id = client.put("t a").await;
    let token = client.take("t").await;
    assert_eq!(client.ask(&format!("RELEASE {token} DELAY 5s PRIORITY 9")).await, status("OK"));
    let job = client.ask(&format!("GET {id}")).await;
    assert_eq!((job.field("attempts").number(), job.field("priority").number()), (0, 9));
    assert_eq!(job.field("state"), &text("delayed"));
    rig.advance(5);
    let token = client.take("t").await;
    assert_eq!(client.ask(&format!("RELEASE {token}")).await, status("OK"));
    assert_eq!(client.ask("RELEASE 99.1").await, status("GONE"));
    assert!(client.ask("RELEASE 1.1 ERROR x").await.error("INVALID").contains("DELAY, PRIORITY"));
}

#[tokio::test]
async fn a_lease_is_prolonged_from_now_on() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.put("t a TTR 10s").await;
    let jobs = client.ask("RESERVE t FULL").await;
    let job = &jobs.items()[0];
    let (token, until) = (job.field("token").str(), job.field("expires_at").number());
    rig.advance(4);
    assert_eq!(client.ask(&format!("EXTEND {token}")).await, Value::Number(until + 4_000));
    assert_eq!(client.ask(&format!("EXTEND {token} 1m")).await, Value::Number(until + 54_000));
    assert!(client.ask(&format!("EXTEND {token} 0")).await.error("INVALID").contains("ttr is 0"));
    assert!(!client.ask("EXTEND 99.1").await.error("NOTFOUND").is_empty());
    assert!(client.ask(&format!("EXTEND {token} soon")).await.error("INVALID").contains("soon"));
}

#[tokio::test]
async fn several_leases_are_prolonged_at_once() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for ttr in ["10s", "20s"] {
        client.put(&format!("t a TTR {ttr}")).await;
    }
    let jobs = client.ask("RESERVE t MAX 2 FULL").await;
    let field = |at: usize, name: &str| jobs.items()[at].field(name).clone();
    let tokens = format!("{} {}", field(0, "token").str(), field(1, "token").str());
    let until = |at: usize| field(at, "expires_at").number();
    rig.advance(4);
    let own = client.ask(&format!("EXTEND {tokens}")).await;
    let number = Value::Number;
    assert_eq!(own, list(&[number(until(0) + 4_000), number(until(1) + 4_000)]));
    let same = client.ask(&format!("EXTEND {tokens} 99.1 1m")).await;
    let [first, second, missing] = same.items() else { panic!("{same:?}") };
    assert_eq!((first, second), (&number(until(0) + 54_000), &number(until(1) + 44_000)));
    assert!(!missing.error("NOTFOUND").is_empty());
    let wrong = client.ask(&format!("EXTEND {tokens} 1m 99.1")).await;
    assert!(wrong.error("INVALID").contains("1m"), "{wrong:?}");
}

#[tokio::test]
async fn nothing_to_ack_is_no_error() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    assert_eq!(client.ask("ACK").await, list(&[]));
}

#[tokio::test]
async fn a_given_job_can_be_reserved() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let id = client.put("t a DELAY 1h").await;
    let jobs = client.ask(&format!("RESERVEID {id} TTR 5s FULL")).await;
    assert_eq!(jobs.items()[0].field("ttr_ms").number(), 5_000);
    assert!(!client.ask(&format!("RESERVEID {id}")).await.error("CONFLICT").is_empty());
    assert!(!client.ask("RESERVEID 99").await.error("NOTFOUND").is_empty());
    assert!(!client.ask("RESERVEID x").await.error("INVALID").is_empty());
}

#[tokio::test]
async fn a_reserve_beyond_limits_is_refused() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for (line, part) in [
        ("RESERVE", "write RESERVE topic"),
        ("RESERVE t MAX 0", "max is 0 jobs; give 1 to 4096"),
        ("RESERVE t MAX 4097", "max is 4097"),
        ("RESERVE t MAX", "MAX is missing"),
        ("RESERVE t WAIT 61s", "wait is 61000 ms"),
        ("RESERVE t WAIT", "WAIT is missing"),
        ("RESERVE t TTR 0", "ttr is 0"),
        ("RESERVE t -u", "topic"),
    ] {
        let answer = client.ask(line).await;
        assert!(answer.error("INVALID").contains(part), "{line}: {answer:?}");
    }
    let topics: Vec<String> = (0..1_001).map(|number| format!("t{number}")).collect();
    let answer = client.ask(&format!("RESERVE {}", topics.join(" "))).await;
    assert!(answer.error("INVALID").contains("name 1 to 1000"), "{answer:?}");
    let answer = client.ask(&format!("RESERVE {}", topics[1..].join(" "))).await;
    assert_eq!(answer, list(&[]));
}
