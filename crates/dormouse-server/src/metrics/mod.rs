//! What the server measures, and the page that shows it.
//!
//! Counting costs a few atomics. The page is made at most once a second and shared by all
//! scrapes.

mod commands;
mod connections;
mod histogram;
mod lateness;
mod page;
mod process;
mod push;
mod stopwatch;
mod survey;
mod topics;
mod traffic;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use dormouse_core::command::Reply;
use dormouse_core::error::{Code, Error};
use dormouse_core::op::PutReply;
use dormouse_core::topic::TopicName;
use hyper::{Method, StatusCode};
use tokio::sync::Mutex;

use crate::client::{BackendClient, ReplyObserver};
use crate::reloads::Reloads;
use commands::Commands;
use connections::Connections;
pub(crate) use connections::ProtocolKind;
use lateness::Lateness;
pub(crate) use lateness::LatenessCounts;
use page::Page;
use process::Process;
pub(crate) use push::{PushMeter, PushMeters, PushOutcome};
pub(crate) use stopwatch::Stopwatch;
use survey::Survey;
use topics::Others;
use traffic::Traffic;

/// The label of topics that have no figures of their own.
const OTHER: &str = "_other";
/// How long a page is served before it is made again.
const PAGE_TTL: Duration = Duration::from_secs(1);
/// Time for the backend to reply: less than a collector waits for the page.
const BACKEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The counters of this server.
#[derive(Default)]
pub(crate) struct Metrics {
    lateness: Lateness,
    connections: Connections,
    traffic: Traffic,
    resp: Commands,
    full: AtomicU64,
    push: Arc<PushMeters>,
    reloads: Reloads,
    cache: Mutex<CachedPage>,
}

/// The latest page, and the state that the next one builds on.
#[derive(Default)]
struct CachedPage {
    survey: Survey,
    others: Others,
    page: Option<(Stopwatch, Bytes)>,
}

/// Gauges that other parts of the server know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Levels {
    /// Bytes of request bodies that are being read or served.
    pub(crate) bodies_bytes: usize,
    /// Bytes of responses that are not flushed yet.
    pub(crate) answers_bytes: usize,
    /// Open event streams.
    pub(crate) event_streams: usize,
    /// Events that were dropped before a slow client read them.
    pub(crate) events_lost: u64,
    /// When the certificate expires, in seconds since 1970.
    pub(crate) certificate_expires_s: Option<i64>,
}

/// Counts a connection as open until it is dropped.
pub(crate) struct OpenConnection(Arc<Metrics>, ProtocolKind);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.disconnected(self.1);
    }
}

impl ReplyObserver for Metrics {
    fn observe(&self, reply: &Reply) {
        match reply {
            Reply::Jobs(jobs) => self.lateness.note(jobs),
            Reply::Put(replies) => self.note_puts(replies),
            _ => {}
        }
    }
}

impl Metrics {
    /// All counters are zero. `resp_names` are the RESP commands that [`Metrics::resp`] counts;
    /// `topics` always have series of their own.
    pub(crate) fn new(
        resp_names: &'static [&'static str],
        topics: Vec<TopicName>,
        reloads: Reloads,
    ) -> Metrics {
        let cache = CachedPage { survey: Survey::new(topics), ..CachedPage::default() };
        let cache = Mutex::new(cache);
        Metrics { resp: Commands::new(resp_names), reloads, cache, ..Metrics::default() }
    }

    fn note_puts(&self, replies: &[Result<PutReply, Error>]) {
        let is_full = |reply: &&Result<PutReply, Error>| {
            reply.as_ref().is_err_and(|error| error.code == Code::Full)
        };
        let full = replies.iter().filter(is_full).count();
        if full > 0 {
            self.full.fetch_add(full as u64, Relaxed);
        }
    }

    /// Counts an accepted connection; drop the result when it closes.
    pub(crate) fn connect(self: &Arc<Metrics>, kind: ProtocolKind) -> OpenConnection {
        self.connections.connected(kind);
        OpenConnection(Arc::clone(self), kind)
    }

    /// Counts a connection that was refused because there are too many.
    pub(crate) fn refused(&self, kind: ProtocolKind) {
        self.connections.refused(kind);
    }

    /// Counts a request; `route` is the template of its path, `None` if no route matched.
    pub(crate) fn answered(
        &self,
        route: Option<&str>,
        method: &Method,
        status: StatusCode,
        took: Duration,
    ) {
        self.traffic.answered(route, method, status, took);
    }

    /// Counts a RESP command; `verb` is its index in the names, `code` the error, if any.
    pub(crate) fn resp(&self, verb: usize, code: Option<Code>) {
        self.resp.note(verb, code);
    }

    /// Puts that were refused because a topic or the disk is full.
    pub(crate) fn puts_full(&self) -> u64 {
        self.full.load(Relaxed)
    }

    /// How late jobs of all topics were handed out.
    pub(crate) fn lateness(&self) -> LatenessCounts {
        self.lateness.of_all()
    }

    /// How late jobs of a topic were handed out.
    pub(crate) fn lateness_of(&self, topic: &TopicName) -> LatenessCounts {
        self.lateness.of_topic(topic)
    }

    /// The meters of pushes.
    pub(crate) fn push(&self) -> Arc<PushMeters> {
        Arc::clone(&self.push)
    }

    /// Everything as OpenMetrics text, at most a second old.
    pub(crate) async fn page(
        &self,
        client: &BackendClient,
        levels: Levels,
    ) -> Result<Bytes, Error> {
        // Requests that arrive while a page is made wait for it.
        let mut cache = self.cache.lock().await;
        if let Some((made, page)) = &cache.page
            && made.elapsed() < PAGE_TTL
        {
            return Ok(page.clone());
        }
        let text = self.make(client, levels, &mut cache).await?;
        // Its age counts from here: if the backend timed out, requests that waited for this page
        // must get it instead of waiting for another one.
        cache.page = Some((Stopwatch::start(), text.clone()));
        Ok(text)
    }

    async fn make(
        &self,
        client: &BackendClient,
        levels: Levels,
        cache: &mut CachedPage,
    ) -> Result<Bytes, Error> {
        let process = tokio::task::spawn_blocking(Process::read).await.unwrap_or_default();
        // The rest of the page matters most when the store has stopped or hangs.
        let fetched = tokio::time::timeout(BACKEND_TIMEOUT, cache.survey.fetch(client)).await;
        let (figures, up) = match fetched {
            Ok(Ok(figures)) => (Some(figures), true),
            Ok(Err(error)) => (None, error.code == Code::Busy),
            Err(_) => (None, false),
        };
        let other_totals = figures.as_ref().and_then(|figures| cache.others.update(figures));
        if let Some(figures) = &figures {
            let shown = figures.shown.iter().map(|(name, _)| name);
            self.lateness.keep_shown(shown, figures.complete);
        }
        let page = Page {
            up,
            figures,
            others: other_totals,
            lateness: self.lateness.counts(),
            meters: client.backend().meters(),
            connections: self.connections.counts(),
            traffic: self.traffic.counts(),
            resp: self.resp.counts(),
            full: self.full.load(Relaxed),
            push: self.push.counts(),
            reloads: self.reloads.counts(),
            levels,
            process,
        };
        page.text()
    }
}

#[cfg(test)]
mod tests {
    use dormouse_core::backend::{Backend, Request, Sink};
    use tokio::sync::watch;

    use super::*;

    /// Never answers.
    struct Hung;

    impl Backend for Hung {
        fn submit(&self, _: Vec<Request>, _: Arc<dyn Sink>) -> Result<(), Error> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_once_while_the_store_hangs() {
        let client =
            BackendClient::new(Arc::new(Hung), Arc::<Metrics>::default(), watch::channel(false).1);
        let metrics = Metrics::default();
        let levels = Levels {
            bodies_bytes: 0,
            answers_bytes: 0,
            event_streams: 0,
            events_lost: 0,
            certificate_expires_s: None,
        };
        let begun = Stopwatch::start();
        let (first, second, third) = tokio::join!(
            metrics.page(&client, levels),
            metrics.page(&client, levels),
            metrics.page(&client, levels)
        );
        assert!(begun.elapsed() < 2 * BACKEND_TIMEOUT, "{:?}", begun.elapsed());
        let first = first.unwrap();
        assert_eq!(first, second.unwrap());
        assert_eq!(first, third.unwrap());
    }
}
