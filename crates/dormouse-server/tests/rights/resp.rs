//! The commands of RESP.

use std::net::SocketAddr;

use dormouse_server::access::Verb;

use crate::client::Client;
use crate::matrix::{Answer, AnswerKind, By, Call, Wire, check, check_complete};
use crate::server::{Prepared, Served, Subject};
use crate::value::Value;

const fn call(text: &'static str, verb: Verb, by: By, prepared: Prepared) -> Call {
    Call { text, body: "", verb, by, prepared, with: None }
}

/// A call that needs a second right, on the topic that it names.
const fn with(verb: Verb, call: Call) -> Call {
    Call { with: Some(verb), ..call }
}

use By::{All, Job, Name, Seen};
use Prepared::{Dead, Leased, Locked, Scheduled, Waiting};

#[rustfmt::skip]
const CALLS: &[Call] = &[
    call("PUT {topic} x", Verb::Put, Name, Waiting),
    call("RESERVE {topic}", Verb::Reserve, Name, Waiting),
    call("RESERVE {topic} {topic} MAX 2", Verb::Reserve, Name, Waiting),
    call("RESERVEID {id}", Verb::Reserve, Job, Waiting),
    call("ACK {token}", Verb::Ack, Job, Leased),
    call("ACK {token} {token}", Verb::Ack, Job, Leased),
    with(Verb::Put, call("ACK {token} PUT {topic} x", Verb::Ack, Job, Leased)),
    call("NACK {token}", Verb::Nack, Job, Leased),
    call("RELEASE {token}", Verb::Release, Job, Leased),
    call("EXTEND {token}", Verb::Extend, Job, Leased),
    call("EXTEND {token} {token}", Verb::Extend, Job, Leased),
    call("KILL {token}", Verb::Kill, Job, Leased),
    call("KILL {id}", Verb::Kill, Job, Waiting),
    call("KILL {topic} KEY {key}", Verb::Kill, Name, Waiting),
    call("CANCEL {id}", Verb::Cancel, Job, Waiting),
    call("CANCEL {topic} KEY {key}", Verb::Cancel, Name, Waiting),
    call("RESCHEDULE {id} NOW", Verb::Reschedule, Job, Waiting),
    call("RESCHEDULE {topic} KEY {key} NOW", Verb::Reschedule, Name, Waiting),
    call("REVIVE {id}", Verb::Revive, Job, Dead),
    call("REVIVE {topic} KEY {key}", Verb::Revive, Name, Dead),
    call("REVIVE {topic} ALL", Verb::Revive, Name, Dead),
    call("KICK {topic} ALL", Verb::Kick, Name, Waiting),
    call("RELEASE {topic} ALL", Verb::Kick, Name, Leased),
    call("GET {id}", Verb::Get, Job, Waiting),
    call("GET {topic} KEY {key}", Verb::Get, Name, Waiting),
    call("PEEK {topic} delayed", Verb::List, Name, Waiting),
    call("LIST {topic} delayed LIMIT 1", Verb::List, Name, Waiting),
    call("LIST {topic} delayed LIMIT 1 CURSOR {cursor}", Verb::List, Name, Waiting),
    call("TOPICS LIMIT 1000", Verb::List, Seen, Waiting),
    call("TOPICS AFTER in LIMIT 1000", Verb::List, Seen, Waiting),
    call("STATS", Verb::Stats, All, Waiting),
    call("STATS {topic}", Verb::Stats, Name, Waiting),
    call("FORECAST {topic}", Verb::Forecast, Name, Waiting),
    call("PREVIEW CRON @daily", Verb::Get, Seen, Waiting),
    call("SCHEDULE {topic} {topic} x EVERY 1h", Verb::Schedule, Name, Waiting),
    call("GETSCHEDULE {topic} {topic}", Verb::Get, Name, Scheduled),
    call("SCHEDULES {topic} LIMIT 1", Verb::List, Name, Scheduled),
    call("UNSCHEDULE {topic} {topic}", Verb::Schedule, Name, Scheduled),
    call("PAUSESCHEDULE {topic} {topic}", Verb::Schedule, Name, Scheduled),
    call("RESUMESCHEDULE {topic} {topic}", Verb::Schedule, Name, Scheduled),
    call("SKIPTICK {topic} {topic}", Verb::Schedule, Name, Scheduled),
    call("REPLAN {topic} {topic}", Verb::Schedule, Name, Scheduled),
    call("RUNSCHEDULE {topic} {topic}", Verb::Schedule, Name, Scheduled),
    call("PAUSE {topic}", Verb::Pause, Name, Waiting),
    call("RESUME {topic}", Verb::Resume, Name, Waiting),
    call("SETTOPIC {topic} TTR 1m", Verb::SetTopic, Name, Waiting),
    call("PURGE {topic}", Verb::Purge, Name, Waiting),
    call("PURGE {topic} STATE delayed AT_MOST 9999", Verb::Purge, Name, Waiting),
    call("LOCK {topic} me", Verb::Lock, Name, Locked),
    call("RENEW {topic} me", Verb::Lock, Name, Locked),
    call("UNLOCK {topic} me", Verb::Lock, Name, Locked),
    call("LOCKS LIMIT 1000", Verb::List, All, Locked),
    call("LOCKS PREFIX in LIMIT 1", Verb::List, All, Locked),
    call("BREAK {topic}", Verb::BreakLock, Name, Locked),
];

/// Commands about the connection, which need a token and no right; the last ones not even that.
const CONNECTION: [&str; 11] = [
    "PING",
    "ECHO x",
    "SELECT 0",
    "CLIENT ID",
    "COMMAND COUNT",
    "INFO",
    "CONFIG GET save",
    "HELLO 2 AUTH default metrics:in.a",
    "AUTH wrong",
    "RESET",
    "QUIT",
];
const NEED_NO_TOKEN: [&str; 4] =
    ["HELLO 2 AUTH default metrics:in.a", "AUTH wrong", "RESET", "QUIT"];

struct Resp {
    addr: SocketAddr,
    client: Option<Client>,
}

impl Wire for Resp {
    async fn ask(&mut self, token: Option<&str>, call: &Call, subject: &Subject) -> Answer {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => Client::connect(self.addr).await,
        };
        match token {
            Some(token) => assert_eq!(client.ask(&format!("AUTH {token}")).await.str(), "OK"),
            None => assert_eq!(client.ask("RESET").await.str(), "RESET"),
        }
        let value = client.ask(&subject.fill(call.text)).await;
        self.client = Some(client);
        Answer { kind: kind_of(&value), text: shown(&value) }
    }
}

fn kind_of(value: &Value) -> AnswerKind {
    match value {
        Value::Error(text) if text.starts_with("NOAUTH ") => AnswerKind::Unauthorized,
        Value::Error(text) if text.starts_with("NOPERM ") => AnswerKind::Forbidden,
        Value::Error(_) | Value::Null => AnswerKind::Other,
        Value::Status(word) if word == "GONE" => AnswerKind::Other,
        Value::List(items) if items.contains(&Value::Status("GONE".to_owned())) => {
            // A token given twice is gone the second time.
            match items.first() {
                Some(Value::Status(word)) if word == "OK" => AnswerKind::Done,
                _ => AnswerKind::Other,
            }
        }
        // Of several leases each has its own answer.
        Value::List(items) if matches!(items.first(), Some(Value::Error(_))) => kind_of(&items[0]),
        _ => AnswerKind::Done,
    }
}

/// As text, so that names can be found in it.
fn shown(value: &Value) -> String {
    match value {
        Value::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::List(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Map(pairs) => {
            let pair =
                |(name, value): &(Value, Value)| format!("{}: {}", shown(name), shown(value));
            pairs.iter().map(pair).collect::<Vec<_>>().join(", ")
        }
        other => format!("{other:?}"),
    }
}

fn name(line: &str) -> String {
    line.split(' ').next().unwrap().to_owned()
}

#[tokio::test]
async fn every_command_with_every_right() {
    let mut served = Served::start().await;
    let mut client = Client::connect(served.resp).await;
    assert_eq!(client.ask("AUTH admin:*").await.str(), "OK");
    let listed = client.ask("COMMAND LIST").await;
    let commands = listed.items().iter().map(|name| name.str().to_uppercase()).collect();
    let rows = CALLS.iter().map(|call| name(call.text));
    check_complete(commands, rows.chain(CONNECTION.iter().map(|line| name(line))));
    let mut resp = Resp { addr: served.resp, client: None };
    let cells = check(&mut served, &mut resp, CALLS).await;
    assert!(cells > 6_000, "{cells}");
}

#[tokio::test]
async fn commands_about_the_connection_need_a_token_and_no_right() {
    let served = Served::start().await;
    for line in CONNECTION {
        let mut client = Client::connect(served.resp).await;
        let guest = client.ask(line).await;
        let needs_token = kind_of(&guest) == AnswerKind::Unauthorized;
        assert_eq!(needs_token, !NEED_NO_TOKEN.contains(&line), "{line}: {guest:?}");
        let mut client = Client::connect(served.resp).await;
        assert_eq!(client.ask("AUTH metrics:in.a").await.str(), "OK");
        let answer = client.ask(line).await;
        assert_ne!(kind_of(&answer), AnswerKind::Forbidden, "{line}: {answer:?}");
    }
}
