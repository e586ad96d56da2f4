//! `dormouse tail`: follow the events of jobs.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::{sleep, timeout};

use crate::Global;
use crate::client::{Client, Request, encode};
use crate::command::get::plain;
use crate::exit::Failure;
use crate::output::{self, Output};

/// The server sends something at least every 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(45);
const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The longest line of the stream.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Follow the events of jobs as they happen
///
/// With -o json each event is one line: {"id": ..., "event": ..., "data": {...}}. A stream that
/// breaks off is taken up again where it was.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse tail
  dormouse tail orders
  dormouse -o json tail orders | jq 'select(.event == \"died\")'")]
pub(crate) struct Args {
    /// Only this topic
    topic: Option<String>,
    /// Begin after this event
    #[arg(long, value_name = "EVENT_ID")]
    after: Option<String>,
}

/// One event of the stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Event {
    id: String,
    name: String,
    data: String,
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let client = global.client()?;
        let mut last_id = self.after.clone();
        let mut stream = self.open(&client, last_id.as_deref()).await?;
        loop {
            let broken = follow(global, &mut stream, &mut last_id).await?;
            output::say(&format!("{}; trying again", broken.text()));
            stream = self.reopen(&client, last_id.as_deref()).await?;
        }
    }

    async fn open(&self, client: &Client, last_id: Option<&str>) -> Result<Incoming, Failure> {
        let topic = self.topic.as_deref().map(|topic| format!("?topic={}", encode(topic)));
        let path = format!("/v1/events{}", topic.unwrap_or_default());
        let mut request = Request::get(path).header("accept", "text/event-stream");
        if let Some(id) = last_id {
            request = request.header("last-event-id", id);
        }
        client.stream(request).await
    }

    async fn reopen(&self, client: &Client, last_id: Option<&str>) -> Result<Incoming, Failure> {
        let mut pause = PAUSE_FIRST;
        loop {
            sleep(pause).await;
            match self.open(client, last_id).await {
                Err(failure) if failure.is_retryable() => pause = (pause * 2).min(PAUSE_MAX),
                result => return result,
            }
        }
    }
}

/// Prints events until the stream breaks off, and returns the reason.
async fn follow(
    global: &Global,
    stream: &mut Incoming,
    last_id: &mut Option<String>,
) -> Result<Failure, Failure> {
    let mut parser = Parser::default();
    loop {
        let frame = match timeout(SILENCE_MAX, stream.frame()).await {
            Err(_) => return Ok(Failure::unreachable("the stream fell silent")),
            Ok(None) => return Ok(Failure::unreachable("the server ended the stream")),
            Ok(Some(Err(error))) => {
                return Ok(Failure::unreachable(format!("the stream broke off: {error}")));
            }
            Ok(Some(Ok(frame))) => frame,
        };
        let Some(bytes) = frame.data_ref() else { continue };
        for event in parser.feed(bytes)? {
            // An event without a name and data only marks the position in the stream.
            if !event.name.is_empty() || !event.data.is_empty() {
                print(global, &event)?;
            }
            if !event.id.is_empty() {
                *last_id = Some(event.id);
            }
        }
    }
}

fn print(global: &Global, event: &Event) -> Result<(), Failure> {
    if global.output == Output::Json {
        let (id, name) = (Value::from(event.id.as_str()), Value::from(event.name.as_str()));
        let data = serde_json::from_str::<&RawValue>(&event.data);
        let data =
            data.map_or_else(|_| Value::from(&*event.data).to_string(), |raw| raw.to_string());
        return output::print_line(&format!("{{\"id\":{id},\"event\":{name},\"data\":{data}}}"));
    }
    let mut data: Map<String, Value> = serde_json::from_str(&event.data).unwrap_or_default();
    let mut take = |name: &str| data.remove(name).map(|value| plain(&value)).unwrap_or_default();
    let (at, topic, id) = (take("at"), take("topic"), take("id"));
    let mut line = format!("{at:24}  {:12}  {topic}  {id}", event.name);
    for (name, value) in &data {
        line.push_str(&format!("  {name}={}", plain(value)));
    }
    output::print_line(&output::clean(&line))
}

/// Takes a stream of server-sent events apart.
#[derive(Default)]
struct Parser {
    line: Vec<u8>,
    event: Event,
}

impl Parser {
    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Event>, Failure> {
        let mut events = Vec::new();
        for &byte in bytes {
            if byte != b'\n' {
                self.line.push(byte);
                if self.line.len() > LINE_BYTES_MAX {
                    return Err(Failure::new("the stream has a line without end"));
                }
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line));
            if line.is_empty() {
                let event = std::mem::take(&mut self.event);
                events.extend(Some(event).filter(|event| *event != Event::default()));
            } else {
                self.field(&line);
            }
        }
        Ok(events)
    }

    /// A line without a name before its colon is a comment.
    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => self.event.id = value.to_owned(),
            "event" => self.event.name = value.to_owned(),
            "data" => self.event.data.push_str(value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_apart_wherever_the_stream_is_cut() {
        let text = ": hello\n\nid: 1-2\r\nevent: acked\ndata: {\"a\":1}\n\n:\n\nevent:lost\n\n";
        let acked = Event { id: "1-2".into(), name: "acked".into(), data: "{\"a\":1}".into() };
        let lost = Event { name: "lost".into(), ..Event::default() };
        for cut in 0..text.len() {
            let mut parser = Parser::default();
            let mut events = parser.feed(&text.as_bytes()[..cut]).unwrap();
            events.extend(parser.feed(&text.as_bytes()[cut..]).unwrap());
            assert_eq!(events.len(), 2, "{cut}");
            assert_eq!(events[0], acked);
            assert_eq!(events[1], lost);
        }
    }
}
