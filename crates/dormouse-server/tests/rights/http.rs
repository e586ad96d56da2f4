//! The routes.

use std::net::SocketAddr;

use dormouse_server::access::Verb;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::matrix::{Answer, AnswerKind, By, Call, Wire, check, check_complete};
use crate::server::{Prepared, Served, Subject};

const fn call(
    text: &'static str,
    body: &'static str,
    verb: Verb,
    by: By,
    prepared: Prepared,
) -> Call {
    Call { text, body, verb, by, prepared, with: None }
}

/// A call that needs a second right, on the topic that it names.
const fn with(verb: Verb, call: Call) -> Call {
    Call { with: Some(verb), ..call }
}

use By::{All, Job, Known, Name, Nothing, Seen};
use Prepared::{Dead, Leased, Locked, Pushed, Scheduled, Waiting};

/// A query is not part of the route.
#[rustfmt::skip]
const CALLS: &[Call] = &[
    call("GET /livez", "", Verb::Get, Nothing, Waiting),
    call("GET /readyz", "", Verb::Get, Nothing, Waiting),
    call("GET /openapi.json", "", Verb::Get, Nothing, Waiting),
    call("GET /metrics", "", Verb::Metrics, All, Waiting),
    call("GET /v1/stats", "", Verb::Stats, All, Waiting),
    call("GET /v1/whoami", "", Verb::Get, Known, Waiting),
    call("GET /v1/pulse", "", Verb::Stats, Seen, Waiting),
    call("GET /v1/pulse?once=true", "", Verb::Stats, Seen, Waiting),
    call("GET /v1/history", "", Verb::Stats, All, Waiting),
    call("GET /v1/history?topic={topic}", "", Verb::Stats, Name, Waiting),
    call("GET /v1/topics/{topic}/lateness", "", Verb::Stats, Name, Waiting),
    call("GET /v1/connections", "", Verb::Inspect, All, Waiting),
    call("GET /v1/topics/{topic}/consumers", "", Verb::Inspect, Name, Waiting),
    call("GET /v1/audit", "", Verb::Inspect, All, Waiting),
    call("GET /v1/config", "", Verb::Inspect, All, Waiting),
    call("POST /v1/backups", "{}", Verb::Backup, All, Waiting),
    call("POST /v1/test/advance", "{\"by\":0}", Verb::Advance, All, Waiting),
    call("GET /v1/events", "", Verb::Events, Seen, Waiting),
    call("GET /v1/events?topic={topic}", "", Verb::Events, Name, Waiting),
    call("GET /v1/topics?limit=1000", "", Verb::List, Seen, Waiting),
    call("GET /v1/topics?limit=1000&after=in", "", Verb::List, Seen, Waiting),
    call("GET /v1/topics?limit=100&prefix=in", "", Verb::List, Seen, Waiting),
    call("GET /v1/topics?limit=100&sort=ready", "", Verb::List, Seen, Waiting),
    call("POST /v1/topics/{topic}/jobs", "{}", Verb::Put, Name, Waiting),
    call("GET /v1/topics/{topic}/jobs?state=delayed&limit=1", "", Verb::List, Name, Waiting),
    call("GET /v1/topics/{topic}/jobs?state=delayed&cursor={cursor}", "",
         Verb::List, Name, Waiting),
    call("GET /v1/topics/{topic}", "", Verb::Stats, Name, Waiting),
    call("PUT /v1/topics/{topic}", "{}", Verb::SetTopic, Name, Waiting),
    call("DELETE /v1/topics/{topic}", "", Verb::Purge, Name, Waiting),
    call("DELETE /v1/topics/{topic}?state=delayed&at_most=9999", "", Verb::Purge, Name, Waiting),
    call("GET /v1/topics/{topic}/forecast", "", Verb::Forecast, Name, Waiting),
    call("GET /v1/forecast?topic={topic}&topic={topic}", "", Verb::Forecast, Name, Waiting),
    call("POST /v1/topics/{topic}/pause", "{}", Verb::Pause, Name, Waiting),
    call("POST /v1/topics/{topic}/resume", "{}", Verb::Resume, Name, Waiting),
    call("POST /v1/topics/{topic}/revive", "{}", Verb::Revive, Name, Waiting),
    call("POST /v1/topics/{topic}/revive", "{\"key_prefix\":\"k\"}", Verb::Revive, Name, Dead),
    call("POST /v1/topics/{topic}/cancel", "{}", Verb::Cancel, Name, Dead),
    call("GET /v1/topics/{topic}/jobs?state=dead&key_prefix=k", "", Verb::List, Name, Dead),
    call("GET /v1/topics/{topic}/dead/groups", "", Verb::List, Name, Dead),
    call("GET /v1/topics/{topic}/jobs?state=dead&newest=true", "", Verb::List, Name, Dead),
    call("GET /v1/topics/{topic}/jobs?state=delayed&order=due&from=2026-01-01T00:00:00Z", "",
         Verb::List, Name, Waiting),
    call("POST /v1/topics/{topic}/kick", "{}", Verb::Kick, Name, Waiting),
    call("POST /v1/topics/{topic}/release", "{}", Verb::Kick, Name, Leased),
    call("POST /v1/topics/{topic}/reserve", "{}", Verb::Reserve, Name, Waiting),
    call("POST /v1/reserve", "{\"topics\":[\"{topic}\"]}", Verb::Reserve, Name, Waiting),
    call("GET /v1/topics/{topic}/keys/{key}", "", Verb::Get, Name, Waiting),
    call("GET /v1/topics/{topic}/keys/{key}/explain", "", Verb::Get, Name, Waiting),
    call("GET /v1/jobs/{id}/explain", "", Verb::Get, Job, Waiting),
    call("DELETE /v1/topics/{topic}/keys/{key}", "", Verb::Cancel, Name, Waiting),
    call("PATCH /v1/topics/{topic}/keys/{key}", "{\"delay\":1}", Verb::Reschedule, Name, Waiting),
    call("POST /v1/topics/{topic}/keys/{key}/run", "{}", Verb::Reschedule, Name, Waiting),
    call("POST /v1/topics/{topic}/keys/{key}/revive", "{}", Verb::Revive, Name, Dead),
    call("POST /v1/topics/{topic}/keys/{key}/kill", "{}", Verb::Kill, Name, Waiting),
    call("GET /v1/jobs/{id}", "", Verb::Get, Job, Waiting),
    call("DELETE /v1/jobs/{id}", "", Verb::Cancel, Job, Waiting),
    call("PATCH /v1/jobs/{id}", "{\"delay\":1}", Verb::Reschedule, Job, Waiting),
    call("POST /v1/jobs/{id}/run", "{}", Verb::Reschedule, Job, Waiting),
    call("POST /v1/jobs/{id}/revive", "{}", Verb::Revive, Job, Dead),
    call("POST /v1/jobs/{id}/kill", "{}", Verb::Kill, Job, Waiting),
    call("POST /v1/jobs/{id}/reserve", "{}", Verb::Reserve, Job, Waiting),
    call("POST /v1/jobs/get", "{\"ids\":[\"{id}\"]}", Verb::Get, Job, Waiting),
    call("POST /v1/jobs/cancel", "{\"ids\":[\"{id}\"]}", Verb::Cancel, Job, Waiting),
    call("POST /v1/jobs/reschedule", "{\"ids\":[\"{id}\"],\"delay\":1}",
         Verb::Reschedule, Job, Waiting),
    call("POST /v1/jobs/run", "{\"ids\":[\"{id}\"]}", Verb::Reschedule, Job, Waiting),
    call("POST /v1/jobs/revive", "{\"ids\":[\"{id}\"]}", Verb::Revive, Job, Dead),
    call("POST /v1/jobs/kill", "{\"ids\":[\"{id}\"]}", Verb::Kill, Job, Waiting),
    call("POST /v1/ack", "{\"token\":\"{token}\"}", Verb::Ack, Job, Leased),
    call("POST /v1/ack", "{\"tokens\":[\"{token}\",\"{token}\"]}", Verb::Ack, Job, Leased),
    with(Verb::Put, call("POST /v1/ack",
         "{\"token\":\"{token}\",\"put\":[{\"topic\":\"{topic}\"}]}", Verb::Ack, Job, Leased)),
    call("POST /v1/nack", "{\"token\":\"{token}\"}", Verb::Nack, Job, Leased),
    call("POST /v1/nack", "{\"tokens\":[\"{token}\"]}", Verb::Nack, Job, Leased),
    call("POST /v1/release", "{\"token\":\"{token}\"}", Verb::Release, Job, Leased),
    call("POST /v1/release", "{\"tokens\":[\"{token}\"]}", Verb::Release, Job, Leased),
    call("POST /v1/extend", "{\"token\":\"{token}\"}", Verb::Extend, Job, Leased),
    call("POST /v1/extend", "{\"tokens\":[\"{token}\"]}", Verb::Extend, Job, Leased),
    call("POST /v1/kill", "{\"token\":\"{token}\"}", Verb::Kill, Job, Leased),
    call("POST /v1/kill", "{\"tokens\":[\"{token}\"]}", Verb::Kill, Job, Leased),
    call("POST /v1/schedules/preview", "{\"cron\":\"@daily\"}", Verb::Get, Seen, Waiting),
    call("GET /v1/schedules?limit=1000", "", Verb::List, Seen, Scheduled),
    call("GET /v1/topics/{topic}/schedules?limit=1", "", Verb::List, Name, Scheduled),
    call("PUT /v1/topics/{topic}/schedules/{name}",
         "{\"every\":\"1h\"}", Verb::Schedule, Name, Waiting),
    call("GET /v1/topics/{topic}/schedules/{name}", "", Verb::Get, Name, Scheduled),
    call("DELETE /v1/topics/{topic}/schedules/{name}", "", Verb::Schedule, Name, Scheduled),
    call("GET /v1/topics/{topic}/schedules/{name}/ticks", "", Verb::Get, Name, Scheduled),
    call("POST /v1/topics/{topic}/schedules/{name}/pause", "{}", Verb::Schedule, Name, Scheduled),
    call("POST /v1/topics/{topic}/schedules/{name}/resume", "{}", Verb::Schedule, Name, Scheduled),
    call("POST /v1/topics/{topic}/schedules/{name}/skip", "{}", Verb::Schedule, Name, Scheduled),
    call("POST /v1/topics/{topic}/schedules/{name}/replan", "{}", Verb::Schedule, Name, Scheduled),
    call("POST /v1/topics/{topic}/schedules/{name}/run", "{}", Verb::Schedule, Name, Scheduled),
    call("POST /v1/topics/{topic}/schedules/{name}/backfill",
         "{\"from\":\"2026-01-01T00:00:00Z\",\"to\":\"2026-01-01T00:30:00Z\"}",
         Verb::Schedule, Name, Scheduled),
    call("PUT /v1/topics/{topic}/push",
         "{\"url\":\"https://127.0.0.1:9/\",\"concurrency\":1000}", Verb::Push, Name, Waiting),
    call("GET /v1/topics/{topic}/push", "", Verb::Push, Name, Pushed),
    call("DELETE /v1/topics/{topic}/push", "", Verb::Push, Name, Pushed),
    call("POST /v1/topics/{topic}/push/rotate", "{}", Verb::Push, Name, Pushed),
    call("POST /v1/topics/{topic}/push/test", "{}", Verb::Push, Name, Pushed),
    call("POST /v1/topics/{topic}/push/resume", "{}", Verb::Push, Name, Pushed),
    call("POST /v1/locks/{name}/acquire", "{\"owner\":\"me\"}", Verb::Lock, Name, Locked),
    call("POST /v1/locks/{name}/renew", "{\"owner\":\"me\"}", Verb::Lock, Name, Locked),
    call("POST /v1/locks/{name}/release", "{\"owner\":\"me\"}", Verb::Lock, Name, Locked),
    call("GET /v1/locks?limit=1000", "", Verb::List, All, Locked),
    call("GET /v1/locks?prefix=in&limit=1", "", Verb::List, All, Locked),
    call("DELETE /v1/locks/{name}", "", Verb::BreakLock, Name, Locked),
];

/// Headers that differ between any two answers, or with the length of an id.
const PASSING: [&str; 2] = ["date:", "content-length:"];

struct Http {
    addr: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl Wire for Http {
    async fn ask(&mut self, token: Option<&str>, call: &Call, subject: &Subject) -> Answer {
        let (request, body) = (subject.fill(call.text), subject.fill(call.body));
        let token = token.map(|token| format!("authorization: Bearer {token}\r\n"));
        let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
        let head = format!(
            "{request} HTTP/1.1\r\nhost: {}\r\n{}{kind}content-length: {}\r\n\r\n{body}",
            self.addr,
            token.unwrap_or_default(),
            body.len()
        );
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(TcpStream::connect(self.addr).await.unwrap()),
        };
        stream.get_mut().write_all(head.as_bytes()).await.unwrap();
        let (mut text, mut length) = (String::new(), None);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some(number) = line.strip_prefix("content-length: ") {
                length = Some(number.parse::<usize>().unwrap());
            }
            if !PASSING.iter().any(|name| line.starts_with(name)) {
                text.push_str(&format!("{line}\n"));
            }
        }
        // A stream of events has no length, and no end either.
        if let Some(length) = length {
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.unwrap();
            text.push_str(&String::from_utf8(body).unwrap());
            self.stream = Some(stream);
        }
        Answer { kind: kind_of(&text), text }
    }
}

fn kind_of(text: &str) -> AnswerKind {
    match text.split(' ').nth(1).unwrap() {
        "401" => AnswerKind::Unauthorized,
        "403" => AnswerKind::Forbidden,
        // A token given twice is gone the second time.
        status if status.starts_with('2') => {
            match text.contains("\"gone\"") && !text.contains("\"done\"") {
                true => AnswerKind::Other,
                false => AnswerKind::Done,
            }
        }
        _ => AnswerKind::Other,
    }
}

#[tokio::test]
async fn every_route_with_every_right() {
    let document = serde_json::to_value(dormouse_server::openapi()).unwrap();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let methods = item.as_object().unwrap().keys();
        routes.extend(methods.map(|method| format!("{} {path}", method.to_uppercase())));
    }
    let route = |call: &Call| call.text.split('?').next().unwrap().to_owned();
    check_complete(routes, CALLS.iter().map(route));
    let mut served = Served::start().await;
    let mut http = Http { addr: served.http, stream: None };
    let cells = check(&mut served, &mut http, CALLS).await;
    assert!(cells > 7_000, "{cells}");
}
