//! The stream of one client: server-sent events as text, a piece at a time.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dormouse_core::event::Event;
use dormouse_core::schedule::ScheduleName;
use dormouse_core::topic::TopicName;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Interval;

use super::Subscription;
use crate::access::{Access, Grant, Verb};
use crate::units::At;

/// After this time without an event a comment is sent, so that proxies keep the stream open.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How long a client should wait before it reconnects.
const RETRY_MS: u64 = 2_000;
/// The largest number of events in one piece; their text has at most 64 KiB, without keys and
/// errors.
const PIECE_EVENTS: usize = 128;

/// `<ring>-<number>`: the last event that a client has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    ring: u32,
    number: u64,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{}", self.ring, self.number)
    }
}

impl FromStr for Mark {
    type Err = ();

    fn from_str(text: &str) -> Result<Mark, ()> {
        let (ring, number) = text.split_once('-').ok_or(())?;
        let ring = u32::from_str_radix(ring, 16).map_err(|_| ())?;
        Ok(Mark { ring, number: number.parse().map_err(|_| ())? })
    }
}

/// The position at which a stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartAt {
    /// With the next event.
    Now,
    /// After this event.
    Mark(Mark),
    /// After an event whose id cannot be parsed.
    Unknown,
}

/// The topics that a client asked for and may see.
pub(crate) struct Filter {
    pub(crate) access: Access,
    pub(crate) grant: Grant,
    pub(crate) topic: Option<TopicName>,
    pub(crate) prefix: Option<String>,
}

impl Filter {
    /// Takes the caller's present rights; false if it may not follow the events any more.
    fn renew(&mut self) -> bool {
        let Some(grant) = self.access.renew(&self.grant) else { return false };
        self.grant = grant;
        match &self.topic {
            Some(topic) => self.grant.allows(Verb::Events, topic.as_str()),
            None => self.grant.may_somewhere(Verb::Events),
        }
    }

    fn passes(&self, topic: &TopicName) -> bool {
        self.topic.as_ref().is_none_or(|wanted| wanted == topic)
            && self.prefix.as_ref().is_none_or(|prefix| topic.as_str().starts_with(prefix))
            && self.grant.allows(Verb::Events, topic.as_str())
    }
}

/// The stream of one client. It has a position in the ring and no queue of its own.
pub(crate) struct Feed {
    subscription: Subscription,
    filter: Filter,
    /// The number of the last event that was read.
    seen: u64,
    changes: watch::Receiver<u64>,
    /// Changes when tokens have changed.
    tokens: watch::Receiver<()>,
    keepalive: Interval,
    /// The first piece, until it is sent.
    opening: Option<Bytes>,
}

impl Feed {
    pub(super) fn new(subscription: Subscription, from: StartAt, filter: Filter) -> Feed {
        let (ring, last) = (subscription.ring.id(), subscription.ring.last());
        let (seen, is_gap) = match from {
            StartAt::Now => (last, false),
            StartAt::Mark(mark) if mark.ring == ring && mark.number <= last => (mark.number, false),
            StartAt::Mark(_) | StartAt::Unknown => (last, true),
        };
        let mut opening = format!(": dormouse\nretry: {RETRY_MS}\n{}", id_line(ring, seen));
        if is_gap {
            opening.push_str("event: lost\ndata: {}\n");
        }
        opening.push('\n');
        let keepalive = tokio::time::interval(KEEPALIVE);
        let (changes, tokens) = (subscription.ring.changes(), filter.access.changes());
        let opening = Some(Bytes::from(opening));
        Feed { subscription, filter, seen, changes, tokens, keepalive, opening }
    }

    /// Waits for the next piece of text; `None` = the server stops, or the caller's token is gone.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let piece = match self.opening.take() {
            Some(opening) => Some(opening),
            None => self.wait().await,
        };
        self.keepalive.reset();
        piece
    }

    async fn wait(&mut self) -> Option<Bytes> {
        // Checked each time: endless events must not keep the server from stopping.
        while !self.subscription.hub.client.is_stopping() && self.filter.renew() {
            // Before reading, so that an event that arrives meanwhile counts as a change.
            self.changes.borrow_and_update();
            let before = self.seen;
            let text = self.read();
            if !text.is_empty() {
                return Some(Bytes::from(text));
            }
            if self.seen > before {
                // The filter passed none of them; there may be more.
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.subscription.hub.client.stopping() => return None,
                // They cannot fail: the senders are in the ring and in `access`, held here.
                _ = self.changes.changed() => {}
                _ = self.tokens.changed() => {}
                // With the number, so that a client of quiet topics can resume from here.
                _ = self.keepalive.tick() => {
                    let id = id_line(self.subscription.ring.id(), self.seen);
                    return Some(Bytes::from(format!(":\n{id}\n")));
                }
            }
        }
        None
    }

    /// The text of the next events; empty if none of them passes the filter.
    fn read(&mut self) -> Vec<u8> {
        let ring = self.subscription.ring.id();
        let batch = self.subscription.ring.read(self.seen, PIECE_EVENTS);
        let mut text = Vec::new();
        self.seen = batch.after;
        if batch.lost > 0 {
            self.subscription.hub.lost.fetch_add(batch.lost, Ordering::Relaxed);
            let id = id_line(ring, self.seen);
            let lost = format!("{id}event: lost\ndata: {{\"count\":{}}}\n\n", batch.lost);
            text.extend_from_slice(lost.as_bytes());
        }
        for event in &batch.events {
            self.seen += 1;
            if self.filter.passes(&event.topic) {
                let may_read = self.filter.grant.allows(Verb::Get, event.topic.as_str());
                write_event(&mut text, &id_line(ring, self.seen), event, may_read);
            }
        }
        text
    }
}

fn id_line(ring: u32, number: u64) -> String {
    format!("id: {}\n", Mark { ring, number })
}

/// An event's data.
#[derive(Serialize)]
struct EventOut<'a> {
    topic: &'a str,
    /// A string, as everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    at: At,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<At>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    /// Of a key that is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
}

/// `may_read`: the caller may read the job, and so its key and its error.
fn write_event(text: &mut Vec<u8>, id: &str, event: &Event, may_read: bool) {
    let (key_bytes, error) = (event.key.as_ref(), event.error.as_ref());
    let (key_bytes, error) = if may_read { (key_bytes, error) } else { (None, None) };
    let key = key_bytes.map(|key| std::str::from_utf8(key));
    let is_binary = matches!(key, Some(Err(_)));
    let out = EventOut {
        topic: event.topic.as_str(),
        id: event.id.map(|id| id.to_string()),
        at: At(event.at_ms),
        due_at: event.due_at.map(At),
        attempt: event.id.map(|_| event.attempt),
        schedule: event.schedule.as_ref().map(ScheduleName::as_str),
        key: key.and_then(Result::ok),
        key_base64: key_bytes.filter(|_| is_binary).map(|key| STANDARD.encode(key)),
        error: error.map(|error| String::from_utf8_lossy(error)),
    };
    // Writing into memory does not fail, and the data has no failing serialisers.
    let _ = write!(text, "{id}event: {}\ndata: ", event.kind.as_str());
    let _ = serde_json::to_writer(&mut *text, &out);
    text.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::limits::EVENTS_KEPT;
    use dormouse_core::backend::{Backend, Request, Sink};
    use dormouse_core::error::Error;
    use dormouse_core::limits::TOPIC_BYTES_MAX;

    use super::super::Events;
    use super::super::ring::tests::put;
    use super::*;
    use crate::client::BackendClient;
    use crate::metrics::Metrics;
    use crate::visitor::{Address, Claimant};

    struct Idle;

    impl Backend for Idle {
        fn submit(&self, _: Vec<Request>, _: Arc<dyn Sink>) -> Result<(), Error> {
            Ok(())
        }
    }

    fn follow(events: &Events) -> Feed {
        let access = Access::open();
        let grant = access.grant(None).unwrap();
        let filter = Filter { access, grant, topic: None, prefix: None };
        events.follow(Claimant::Address(Address::Local), StartAt::Now, filter).unwrap()
    }

    #[test]
    fn a_mark_is_read_back() {
        let mark = Mark { ring: 0x18c2_f0a1, number: 42 };
        assert_eq!(mark.to_string(), "18c2f0a1-42");
        assert_eq!("18c2f0a1-42".parse(), Ok(mark));
        for text in ["", "-", "1", "1-", "-1", "x-1", "1-x", "1-1-1", "100000000-1"] {
            assert_eq!(text.parse::<Mark>(), Err(()), "{text}");
        }
    }

    #[tokio::test]
    async fn a_slow_client_learns_what_it_lost_and_continues() {
        let (stop, stopping) = watch::channel(false);
        let events =
            Events::new(BackendClient::new(Arc::new(Idle), Arc::<Metrics>::default(), stopping));
        let mut feed = follow(&events);
        let ring = Arc::clone(&feed.subscription.ring);
        let text = |piece: Option<Bytes>| String::from_utf8(piece.unwrap().to_vec()).unwrap();
        assert!(text(feed.next().await).starts_with(": dormouse\n"));
        let topic = "t".repeat(TOPIC_BYTES_MAX);
        let kept = EVENTS_KEPT as u64;
        put(&ring, &topic, u64::MAX / 2, kept + 3);
        let mut told = 0;
        while told < kept {
            let piece = text(feed.next().await);
            assert!(piece.len() <= 64 << 10, "{} bytes at once", piece.len());
            assert_eq!(piece.contains("event: lost\ndata: {\"count\":3}\n\n"), told == 0);
            told += piece.matches("event: put\n").count() as u64;
        }
        assert_eq!((told, events.lost()), (kept, 3));
        // Even though there are more events.
        put(&ring, &topic, 1, 1);
        stop.send(true).unwrap();
        assert_eq!(feed.next().await, None);
    }
}
