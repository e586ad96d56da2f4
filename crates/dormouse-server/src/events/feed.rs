//! What one client gets: the text of server-sent events, a piece at a time.

use std::fmt;
use std::io::Write;
use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use dormouse_core::event::Event;
use dormouse_core::topic::TopicName;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Interval;

use super::Seat;
use crate::access::{Grant, Verb};
use crate::units::At;

/// How often something is sent, if only to say that the stream lives.
const BEAT: Duration = Duration::from_secs(15);
/// How long a client should wait before it comes again.
const RETRY_MS: u64 = 2_000;
/// Events of one piece; their text is at most 64 KiB.
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

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// With what happens next.
    Now,
    /// After this one.
    Mark(Mark),
    /// After one that nobody knows here.
    Unknown,
}

/// What a client wants and may see.
pub(crate) struct Filter {
    pub(crate) grant: Grant,
    pub(crate) topic: Option<TopicName>,
    pub(crate) prefix: Option<String>,
}

impl Filter {
    fn passes(&self, topic: &TopicName) -> bool {
        self.topic.as_ref().is_none_or(|wanted| wanted == topic)
            && self.prefix.as_ref().is_none_or(|prefix| topic.as_str().starts_with(prefix))
            && self.grant.allows(Verb::Events, topic.as_str())
    }
}

/// The stream of one client. It has a place in the ring and no queue of its own.
pub(crate) struct Feed {
    seat: Seat,
    filter: Filter,
    /// The number of the last event that was looked at.
    seen: u64,
    news: watch::Receiver<u64>,
    beat: Interval,
    /// What is sent first.
    opening: Option<Bytes>,
}

impl Feed {
    pub(super) fn new(seat: Seat, from: From, filter: Filter) -> Feed {
        let (ring, last) = (seat.ring.id(), seat.ring.last());
        let (seen, is_gap) = match from {
            From::Now => (last, false),
            From::Mark(mark) if mark.ring == ring && mark.number <= last => (mark.number, false),
            From::Mark(_) | From::Unknown => (last, true),
        };
        let mut opening = format!(": dormouse\nretry: {RETRY_MS}\n{}", id_line(ring, seen));
        if is_gap {
            opening.push_str("event: lost\ndata: {}\n");
        }
        opening.push('\n');
        let beat = tokio::time::interval(BEAT);
        let news = seat.ring.news();
        Feed { seat, filter, seen, news, beat, opening: Some(Bytes::from(opening)) }
    }

    /// The next piece of text, when there is one; `None` = the server stops.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let piece = match self.opening.take() {
            Some(opening) => Some(opening),
            None => self.wait().await,
        };
        self.beat.reset();
        piece
    }

    async fn wait(&mut self) -> Option<Bytes> {
        // Looked at each time: events that never cease must not keep the server from stopping.
        while !self.seat.hub.client.is_stopping() {
            // Before reading: what comes meanwhile is news again.
            self.news.borrow_and_update();
            let before = self.seen;
            let text = self.read();
            if !text.is_empty() {
                return Some(Bytes::from(text));
            }
            if self.seen > before {
                // All of it was other people's; there may be more.
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.seat.hub.client.stopping() => return None,
                // The ring that sends it is held here.
                _ = self.news.changed() => {}
                // With the number: a client that wants little should not fall behind for that.
                _ = self.beat.tick() => {
                    let id = id_line(self.seat.ring.id(), self.seen);
                    return Some(Bytes::from(format!(":\n{id}\n")));
                }
            }
        }
        None
    }

    /// The text of what comes next, if any of it is for this client.
    fn read(&mut self) -> Vec<u8> {
        let ring = self.seat.ring.id();
        let batch = self.seat.ring.read(self.seen, PIECE_EVENTS);
        let mut text = Vec::new();
        self.seen = batch.after;
        if batch.lost > 0 {
            self.seat.hub.lost.fetch_add(batch.lost, Ordering::Relaxed);
            let id = id_line(ring, self.seen);
            let lost = format!("{id}event: lost\ndata: {{\"count\":{}}}\n\n", batch.lost);
            text.extend_from_slice(lost.as_bytes());
        }
        for event in &batch.events {
            self.seen += 1;
            if self.filter.passes(&event.topic) {
                write_event(&mut text, &id_line(ring, self.seen), event);
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
}

fn write_event(text: &mut Vec<u8>, id: &str, event: &Event) {
    let out = EventOut {
        topic: event.topic.as_str(),
        id: event.id.map(|id| id.to_string()),
        at: At(event.at_ms),
        due_at: event.due_at.map(At),
        attempt: event.id.map(|_| event.attempt),
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
    use crate::access::Access;
    use crate::client::BackendClient;
    use crate::metrics::Metrics;

    struct Idle;

    impl Backend for Idle {
        fn submit(&self, _: Vec<Request>, _: Arc<dyn Sink>) -> Result<(), Error> {
            Ok(())
        }
    }

    fn follow(events: &Events) -> Feed {
        let grant = Access::open().grant(None).unwrap();
        events.follow(From::Now, Filter { grant, topic: None, prefix: None }).unwrap()
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
    async fn a_slow_client_is_told_what_it_lost_and_goes_on() {
        let (stop, stopping) = watch::channel(false);
        let events =
            Events::new(BackendClient::new(Arc::new(Idle), Arc::<Metrics>::default(), stopping));
        let mut feed = follow(&events);
        let ring = Arc::clone(&feed.seat.ring);
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
        // Even though there is more to tell.
        put(&ring, &topic, 1, 1);
        stop.send(true).unwrap();
        assert_eq!(feed.next().await, None);
    }
}
