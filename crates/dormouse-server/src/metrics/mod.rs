//! What the server measures, and the page that tells it.
//!
//! Counting is a few atomics. Asking is done at most once a second, whoever asks how often: the
//! page is made once and shared.

mod commands;
mod connections;
mod histogram;
mod lateness;
mod page;
mod process;
mod stopwatch;
mod topics;
mod traffic;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use dormouse_core::command::Reply;
use dormouse_core::error::{Code, Error};
use dormouse_core::op::PutReply;
use hyper::{Method, StatusCode};
use tokio::sync::Mutex;

use crate::client::{BackendClient, ReplyObserver};
use commands::Commands;
use connections::Connections;
pub(crate) use connections::ProtocolKind;
use lateness::Lateness;
use page::Page;
use process::Process;
pub(crate) use stopwatch::Stopwatch;
use topics::Others;
use traffic::Traffic;

/// The label of topics that have no figures of their own.
const OTHER: &str = "_other";
/// How long a page is good for.
const FRESH: Duration = Duration::from_secs(1);
/// How long to wait for the backend: less than a collector waits for the page.
const PATIENCE: Duration = Duration::from_secs(5);

/// Figures of this server.
#[derive(Default)]
pub(crate) struct Metrics {
    lateness: Lateness,
    connections: Connections,
    traffic: Traffic,
    resp: Commands,
    full: AtomicU64,
    shelf: Mutex<Shelf>,
}

/// The page made last.
#[derive(Default)]
struct Shelf {
    others: Others,
    page: Option<(Stopwatch, Bytes)>,
}

/// What stands where, in the parts of the server that know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Levels {
    /// Bytes of request bodies in the server's hands.
    pub(crate) bodies_bytes: usize,
    /// Bytes of answers that clients have not taken yet.
    pub(crate) answers_bytes: usize,
    /// Clients that follow the events.
    pub(crate) event_streams: usize,
    /// Events that came too fast for a client.
    pub(crate) events_lost: u64,
}

/// A connection that is open.
pub(crate) struct Connected(Arc<Metrics>, ProtocolKind);

impl Drop for Connected {
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
    /// All zero. `resp_names` are the names of the RESP commands that [`Metrics::resp`] counts.
    pub(crate) fn new(resp_names: &'static [&'static str]) -> Metrics {
        Metrics { resp: Commands::new(resp_names), ..Metrics::default() }
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

    /// A connection was accepted; it lasts as long as what this gives.
    pub(crate) fn connect(self: &Arc<Metrics>, kind: ProtocolKind) -> Connected {
        self.connections.connected(kind);
        Connected(Arc::clone(self), kind)
    }

    /// A connection was refused because there are too many.
    pub(crate) fn refused(&self, kind: ProtocolKind) {
        self.connections.refused(kind);
    }

    /// A request was answered; `route` is the template of its path, if one took it.
    pub(crate) fn answered(
        &self,
        route: Option<&str>,
        method: &Method,
        status: StatusCode,
        took: Duration,
    ) {
        self.traffic.answered(route, method, status, took);
    }

    /// A RESP command was answered; `verb` is its place among the names, `code` why it was not
    /// done.
    pub(crate) fn resp(&self, verb: usize, code: Option<Code>) {
        self.resp.note(verb, code);
    }

    /// Everything as OpenMetrics text, at most a second old.
    pub(crate) async fn page(
        &self,
        client: &BackendClient,
        levels: Levels,
    ) -> Result<Bytes, Error> {
        // Who comes while a page is made waits for it.
        let mut shelf = self.shelf.lock().await;
        if let Some((made, page)) = &shelf.page
            && made.elapsed() < FRESH
        {
            return Ok(page.clone());
        }
        let text = self.make(client, levels, &mut shelf.others).await?;
        // From now on: a store that hangs takes longer than a page is good for, and who has waited
        // for that must not wait for the next one.
        shelf.page = Some((Stopwatch::start(), text.clone()));
        Ok(text)
    }

    async fn make(
        &self,
        client: &BackendClient,
        levels: Levels,
        others: &mut Others,
    ) -> Result<Bytes, Error> {
        let process = tokio::task::spawn_blocking(Process::read).await.unwrap_or_default();
        // A store that has stopped or hangs is when the rest is wanted most.
        let (gathered, up) = match tokio::time::timeout(PATIENCE, topics::gather(client)).await {
            Ok(Ok(gathered)) => (Some(gathered), true),
            Ok(Err(error)) => (None, error.code == Code::Busy),
            Err(_) => (None, false),
        };
        let told_of_others = gathered.as_ref().and_then(|gathered| others.update(gathered));
        if let Some(gathered) = gathered.as_ref().filter(|gathered| gathered.complete) {
            self.lateness.forget_vanished(|name| {
                gathered.shown.binary_search_by(|(shown, _)| shown.cmp(name)).is_ok()
            });
        }
        let page = Page {
            up,
            gathered,
            others: told_of_others,
            lateness: self.lateness.draw(),
            meters: client.backend().meters(),
            connections: self.connections.seen(),
            seen: self.traffic.seen(),
            resp: self.resp.seen(),
            full: self.full.load(Relaxed),
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
    async fn who_waits_while_the_store_hangs_waits_once() {
        let client =
            BackendClient::new(Arc::new(Hung), Arc::<Metrics>::default(), watch::channel(false).1);
        let metrics = Metrics::default();
        let levels = Levels { bodies_bytes: 0, answers_bytes: 0, event_streams: 0, events_lost: 0 };
        let begun = Stopwatch::start();
        let (first, second, third) = tokio::join!(
            metrics.page(&client, levels),
            metrics.page(&client, levels),
            metrics.page(&client, levels)
        );
        assert!(begun.elapsed() < 2 * PATIENCE, "{:?}", begun.elapsed());
        let first = first.unwrap();
        assert_eq!(first, second.unwrap());
        assert_eq!(first, third.unwrap());
    }
}
