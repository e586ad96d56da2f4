//! The HTTP API, as docs/http.md specifies it.

mod api;
mod caller;
pub(crate) mod form;
#[cfg(test)]
mod fuzz;
mod guard;
mod head;
mod measure;
mod params;
mod path;
mod payload;
mod peer;
mod problem;
mod response;
mod response_body;
mod route;
mod server;
mod socket;

use std::sync::Arc;
use std::time::Duration;

use crate::limits::{
    ANSWERS_BYTES_MAX, HTTP_BODIES_BYTES_MAX, HTTP_SMALL_BODIES_BYTES_MAX, PAGES_MAX,
};
use dormouse_core::error::Error;
use tokio::sync::Semaphore;

use crate::access::Access;
use crate::backup::MakeBackup;
use crate::budget::Budget;
use crate::client::BackendClient;
use crate::events::Events;
use crate::metrics::Metrics;
use crate::shares::SharedLimit;
use crate::test_clock::TestClock;
use crate::tls::Tls;
use crate::units::wall_ms;
use crate::visitor::Claimant;

pub use api::openapi;
pub(crate) use guard::HostGuard;
pub(crate) use route::router;
pub(crate) use server::HttpServer;

/// State shared by all requests. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) client: BackendClient,
    pub(crate) access: Access,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) events: Events,
    pub(crate) backup: Option<Arc<MakeBackup>>,
    pub(crate) tls: Option<Tls>,
    pub(crate) test_clock: Option<Arc<TestClock>>,
    guard: Arc<HostGuard>,
    bodies: SharedLimit<Claimant>,
    small_bodies: SharedLimit<Claimant>,
    answers: Budget,
    /// One permit per large page that is read and written at the same time.
    pages: Arc<Semaphore>,
}

impl App {
    pub(crate) fn new(
        client: BackendClient,
        access: Access,
        metrics: Arc<Metrics>,
        backup: Option<Arc<MakeBackup>>,
        guard: HostGuard,
    ) -> App {
        App {
            events: Events::new(client.clone()),
            client,
            access,
            metrics,
            backup,
            tls: None,
            test_clock: None,
            guard: Arc::new(guard),
            bodies: SharedLimit::new(HTTP_BODIES_BYTES_MAX, "bytes of large requests"),
            small_bodies: SharedLimit::new(HTTP_SMALL_BODIES_BYTES_MAX, "bytes of small requests"),
            answers: Budget::new(ANSWERS_BYTES_MAX, "answers"),
            pages: Arc::new(Semaphore::new(PAGES_MAX)),
        }
    }

    /// The wall time of the backend, ms.
    pub(crate) async fn now_ms(&self) -> Result<u64, Error> {
        let Some(clock) = self.test_clock.as_ref().map(Arc::clone) else { return Ok(wall_ms()) };
        let moved = tokio::task::spawn_blocking(move || clock(Duration::ZERO)).await;
        moved.map_err(|_| Error::unavailable("the clock broke off; see the log"))?
    }

    /// Serves HTTPS if there is a certificate.
    pub(crate) fn with_tls(self, tls: Option<Tls>) -> App {
        App { tls, ..self }
    }

    /// Lets clients move the clock, if it is one for tests.
    pub(crate) fn with_test_clock(self, test_clock: Option<Box<TestClock>>) -> App {
        App { test_clock: test_clock.map(Arc::from), ..self }
    }
}
