//! The pulse and the history: what they show, to whom, and what they cost.

use std::time::{Duration, Instant};

use dormouse_server::limits::PULSE_STREAMS_MAX;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::client::Stream;
use crate::rig::{Rig, pass};

async fn once(rig: &Rig, query: &str, headers: &[(&str, &str)]) -> Value {
    let answered = rig.get(&format!("/v1/pulse?once=true{query}"), headers).await;
    assert_eq!(answered.status, 200, "{answered:?}");
    serde_json::from_str(&answered.body).unwrap()
}

/// The next pulse of a stream.
async fn next(stream: &mut Stream) -> Value {
    let told = stream.events(1).await.remove(0);
    assert_eq!(told.event, "pulse");
    told.json()
}

/// Asks until the answer is as wanted.
async fn until(mut ask: impl AsyncFnMut() -> Value, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let answer = ask().await;
        if is_wanted(&answer) {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{answer}");
    }
}

#[tokio::test]
async fn a_pulse_has_the_figures_of_all_and_of_some_topics() {
    let rig = Rig::start().await;
    rig.post("/v1/topics/a/jobs", "[{}, {}, {\"delay\": \"1h\"}]").await;
    rig.post("/v1/topics/b/jobs", "{}").await;
    rig.reserve("a").await;
    let pulse = once(&rig, "&topics=a,b,a,none", &[]).await;
    assert_eq!(pulse["up"], true);
    let all = &pulse["all"];
    assert_eq!([&all["topics"], &all["ready"], &all["delayed"], &all["leased"]], [2, 2, 1, 1]);
    assert_eq!(pulse["lateness"]["counts"].as_array().unwrap().len(), 15);
    assert_eq!(pulse["lateness"]["counts"][0], 1);
    let names: Vec<&Value> =
        pulse["topics"].as_array().unwrap().iter().map(|topic| &topic["topic"]).collect();
    assert_eq!(names, ["a", "b"], "each once, as far as it exists");
    assert_eq!(pulse["topics"][0]["leased"], 1);
    assert_eq!(pulse["verdicts"], json!([]));
    let one = serde_json::from_str::<Value>(&rig.get("/v1/topics/a/lateness", &[]).await.body);
    assert_eq!(one.unwrap()["counts"][0], 1);
    assert_eq!(rig.get("/v1/topics/none/lateness", &[]).await.status, 404);
    let many = (0..51).map(|number| format!("t{number}")).collect::<Vec<_>>().join(",");
    assert_eq!(rig.get(&format!("/v1/pulse?topics={many}"), &[]).await.status, 422);
}

#[tokio::test]
async fn a_stream_tells_rates_and_ends_with_the_server() {
    let rig = Rig::start().await;
    let mut stream = Stream::try_open_at(rig.addr, "/v1/pulse?topics=a", &[]).await.unwrap();
    assert!(stream.head.contains("content-type: text/event-stream"), "{}", stream.head);
    assert_eq!(next(&mut stream).await["topics"], json!([]));
    rig.backend.put((0..1_000).map(|_| "a".to_owned())).await;
    let put = async || next(&mut stream).await;
    let pulse = until(put, |pulse| pulse["rates"]["put"].as_f64() > Some(0.0)).await;
    assert_eq!(pulse["all"]["ready"], 1_000);
    let quiet = async || next(&mut stream).await;
    let pulse = until(quiet, |pulse| pulse["rates"]["put"] == 0.0).await;
    assert_eq!(pulse["topics"][0]["rates"]["put"], 0.0);
    let begun = Instant::now();
    rig.server.stop(Duration::from_secs(60)).await;
    assert!(begun.elapsed() < Duration::from_secs(30), "it did not wait for the stream");
    while stream.next().await.is_some() {}
}

#[tokio::test]
async fn the_pulse_says_why_nothing_moves() {
    let rig = Rig::start().await;
    for topic in ["mails", "paused", "fine"] {
        rig.post(&format!("/v1/topics/{topic}/jobs"), "{}").await;
    }
    rig.post("/v1/topics/fine/jobs", "{\"delay\": \"1h\"}").await;
    rig.post("/v1/topics/paused/pause", "{}").await;
    let token = rig.reserve("fine").await;
    rig.post("/v1/ack", &format!("{{\"token\":\"{token}\"}}")).await;
    rig.clock.advance(Duration::from_secs(720));
    let mut stream = Stream::try_open_at(rig.addr, "/v1/pulse", &[]).await.unwrap();
    let ask = async || next(&mut stream).await;
    let count = |pulse: &Value| pulse["verdicts"].as_array().unwrap().len();
    let pulse = until(ask, |pulse| count(pulse) == 2).await;
    let verdict = |code: &str| {
        let all = pulse["verdicts"].as_array().unwrap();
        all.iter().find(|verdict| verdict["code"] == code).unwrap().clone()
    };
    assert_eq!(
        verdict("no_consumer"),
        json!({"code": "no_consumer", "topic": "mails", "for_ms": 720_000,
               "text": "ready jobs, nobody takes them: topic mails, 12 min"})
    );
    assert_eq!(verdict("paused")["topic"], "paused");
    assert_eq!(pulse["looked_at"], 3);
    // Somebody takes it.
    rig.reserve("mails").await;
    let ask = async || next(&mut stream).await;
    until(ask, |pulse| count(pulse) == 1).await;
}

#[tokio::test]
async fn a_token_sees_its_own_topics_only() {
    let rig =
        Rig::start_with_tokens(&[("all", "*:*"), ("own", "viewer:a*"), ("put", "put:*")]).await;
    let admin = [("authorization", "Bearer all")];
    let own = [("authorization", "Bearer own")];
    rig.backend.put(["a1".to_owned(), "b1".to_owned()].into_iter()).await;
    rig.clock.advance(Duration::from_secs(720));
    let full = async || once(&rig, "&topics=a1,b1", &admin).await;
    let full = until(full, |pulse| pulse["verdicts"].as_array().unwrap().len() == 2).await;
    assert_eq!(full["topics"].as_array().unwrap().len(), 2);
    assert!(full["meters"].is_array());
    let part = once(&rig, "&topics=a1,b1", &own).await;
    assert!(!part.to_string().contains("b1"), "{part}");
    for hidden in ["all", "rates", "lateness", "meters", "looked_at"] {
        assert!(part.get(hidden).is_none(), "{hidden} in {part}");
    }
    assert_eq!(part["topics"][0]["topic"], "a1");
    let none = rig.get("/v1/pulse?once=true", &[("authorization", "Bearer put")]).await;
    assert_eq!(none.status, 403);
    assert_eq!(rig.get("/v1/history", &own).await.status, 403);
    assert_eq!(rig.get("/v1/history?topic=a1", &own).await.status, 200);
}

#[tokio::test]
async fn streams_have_a_limit_of_their_own() {
    let rig = Rig::start().await;
    let mut open = Vec::new();
    let refused = loop {
        match Stream::try_open_at(rig.addr, "/v1/pulse", &[]).await {
            Ok(stream) => open.push(stream),
            Err(head) => break head,
        }
    };
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert_eq!(open.len(), PULSE_STREAMS_MAX / 2, "one address has half");
    // Event streams are not concerned.
    Stream::open(rig.addr, "", &[]).await;
    // All of them get pulses, whether others read or not.
    for stream in [0, PULSE_STREAMS_MAX / 2 - 1] {
        next(&mut open[stream]).await;
        next(&mut open[stream]).await;
    }
}

#[tokio::test]
async fn who_polls_gets_rates_and_shares_beats() {
    let rig = Rig::start().await;
    rig.backend.put(["a".to_owned()].into_iter()).await;
    let rates = |pulse: &Value| pulse["topics"][0]["rates"].clone();
    assert_eq!(rates(&once(&rig, "&topics=a", &[]).await), Value::Null, "it is the first look");
    rig.backend.put((0..500).map(|_| "a".to_owned())).await;
    let poll = async || {
        tokio::time::sleep(Duration::from_millis(50)).await;
        once(&rig, "&topics=a", &[]).await
    };
    until(poll, |pulse| rates(pulse)["put"].as_f64() > Some(0.0)).await;
    // Polls within a second share a beat.
    let mut beats = std::collections::BTreeSet::new();
    let begun = Instant::now();
    let mut polls = 0;
    while polls < 20 {
        beats.insert(once(&rig, "&topics=a", &[]).await["at"].to_string());
        polls += 1;
    }
    let seconds = begun.elapsed().as_secs() as usize;
    assert!(beats.len() <= 2 + seconds, "{} beats for 20 polls in {seconds} s", beats.len());
}

#[tokio::test]
async fn a_reader_that_does_not_read_slows_nobody() {
    let rig = Rig::start().await;
    // Beats of some 50 KB, so that a few fill what a socket holds.
    let name = |number: usize| format!("{}{number:02}", "n".repeat(120));
    rig.backend.put((0..50).map(name)).await;
    let topics = (0..50).map(name).collect::<Vec<_>>().join(",");
    let path = format!("/v1/pulse?topics={topics}");
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut slow = socket.connect(rig.addr).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", rig.addr);
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut quick = Stream::try_open_at(rig.addr, &path, &[]).await.unwrap();
    let mut longest = Duration::ZERO;
    for beat in 0..20 {
        let begun = Instant::now();
        // Somebody new wants a beat at once.
        once(&rig, &format!("&topics=new{beat}"), &[]).await;
        assert_eq!(next(&mut quick).await["topics"].as_array().unwrap().len(), 50);
        longest = longest.max(begun.elapsed());
    }
    assert!(longest < Duration::from_secs(20), "{longest:?}");
    // It is there, and what it gets is what was made when it had room.
    let mut bytes = [0; 16];
    slow.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"HTTP/1.1 200 OK\r");
}

#[tokio::test]
async fn nobody_reads_and_nothing_is_asked() {
    let rig = Rig::start().await;
    rig.backend.put((0..50).map(|number| format!("t{number}"))).await;
    let mut stream = Stream::try_open_at(rig.addr, "/v1/pulse", &[]).await.unwrap();
    next(&mut stream).await;
    drop(stream);
    // The server notices that the reader has left when it writes.
    let begun = Instant::now();
    loop {
        let before = rig.backend.requests();
        for _ in 0..5 {
            pass(Duration::from_secs(1)).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // At most one sample of the history falls into five seconds: the totals, and all topics.
        let asked = rig.backend.requests() - before;
        if asked <= 1 + 50 / 10 + 1 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{asked} requests in 5 s");
    }
}

#[tokio::test]
async fn history_has_what_was_counted() {
    let rig = Rig::start().await;
    let read = async |query: &str| {
        let answered = rig.get(&format!("/v1/history{query}"), &[]).await;
        assert_eq!(answered.status, 200, "{answered:?}");
        serde_json::from_str::<Value>(&answered.body).unwrap()
    };
    let empty = read("?step=1m").await;
    assert_eq!((&empty["step_ms"], &empty["counts"]["put"]), (&json!(60_000), &json!([])));
    let sum = |part: &Value| -> u64 {
        part["counts"]["put"].as_array().unwrap().iter().filter_map(Value::as_u64).sum()
    };
    // The first sample is the one to count from.
    let begun = Instant::now();
    let mut puts = 0;
    for query in ["?step=1s", "?step=10s", "?topic=a"] {
        loop {
            rig.backend.put(["a".to_owned()].into_iter()).await;
            puts += 1;
            pass(Duration::from_secs(1)).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            let part = read(query).await;
            assert!(sum(&part) <= puts, "{part}");
            if sum(&part) >= 3 {
                let levels = part["levels"]["ready"].as_array().unwrap();
                assert!(levels.iter().any(|ready| ready.as_u64() > Some(2)), "{part}");
                assert_eq!(levels.len(), part["counts"]["ack"].as_array().unwrap().len());
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "{query}: {part}");
        }
    }
    for query in ["?step=2s", "?topic=a&step=1s", "?topic=a%20b", "?x=1"] {
        let status = rig.get(&format!("/v1/history{query}"), &[]).await.status;
        assert!(status == 400 || status == 422, "{query}: {status}");
    }
}
