//! The HTTP API, as docs/http.md specifies it.

mod api;
mod browser;
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
mod stream;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::limits::{
    ANSWERS_BYTES_MAX, HTTP_BODIES_BYTES_MAX, HTTP_SMALL_BODIES_BYTES_MAX, PAGES_MAX,
};
use dormouse_core::error::{Code, Error};
use tokio::sync::Semaphore;

use crate::about::About;
use crate::access::Access;
use crate::audit::Audit;
use crate::backup::MakeBackup;
use crate::budget::Budget;
use crate::client::BackendClient;
use crate::events::Events;
use crate::forecasts::Forecasts;
use crate::metrics::Metrics;
use crate::pulse::Pulse;
use crate::push::PushHandle;
use crate::ranking::Ranking;
use crate::roster::Roster;
use crate::shares::SharedLimit;
use crate::test_clock::TestClock;
use crate::tls::Tls;
use crate::ui::{UiFiles, UiOptions};
use crate::units::wall_ms;
use crate::visitor::Claimant;

pub use api::openapi;
pub(crate) use guard::HostGuard;
pub(crate) use route::router;
pub(crate) use server::HttpServer;

/// The pushes of a server, once they are started.
pub(crate) type PushSlot = Arc<Mutex<Option<PushHandle>>>;

/// State shared by all requests. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) client: BackendClient,
    pub(crate) access: Access,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) events: Events,
    pulse: Pulse,
    roster: Roster,
    audit: Arc<Audit>,
    pub(crate) backup: Option<Arc<MakeBackup>>,
    pub(crate) tls: Option<Tls>,
    pub(crate) test_clock: Option<Arc<TestClock>>,
    about: Arc<About>,
    /// When this server started, ms since 1970.
    started_at: u64,
    pub(crate) ui: Arc<UiOptions>,
    ui_files: Arc<UiFiles>,
    push: PushSlot,
    guard: Arc<HostGuard>,
    bodies: SharedLimit<Claimant>,
    small_bodies: SharedLimit<Claimant>,
    answers: Budget,
    forecasts: Arc<Forecasts>,
    /// Topics by their counts.
    ranking: Arc<Ranking>,
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
            forecasts: Arc::default(),
            ranking: Arc::new(Ranking::new(client.clone())),
            roster: Roster::default(),
            audit: Arc::default(),
            pulse: Pulse::start(client.clone(), Arc::clone(&metrics)),
            client,
            access,
            metrics,
            backup,
            tls: None,
            test_clock: None,
            about: Arc::default(),
            started_at: wall_ms(),
            ui: Arc::default(),
            ui_files: Arc::new(UiFiles::load()),
            push: PushSlot::default(),
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

    /// The pushes of this server; `forbidden` if it has none.
    pub(crate) fn push(&self) -> Result<PushHandle, Error> {
        let slot = self.push.lock().unwrap_or_else(PoisonError::into_inner);
        slot.clone().ok_or_else(|| {
            let text = "this server does not push; start it with --push";
            Error::new(Code::Forbidden, text)
        })
    }

    /// Takes pushes that are started later.
    pub(crate) fn with_push(self, push: PushSlot) -> App {
        App { push, ..self }
    }

    /// Serves HTTPS if there is a certificate.
    pub(crate) fn with_tls(self, tls: Option<Tls>) -> App {
        App { tls, ..self }
    }

    /// Shows the connections of this list.
    pub(crate) fn with_roster(self, roster: Roster) -> App {
        App { roster, ..self }
    }

    /// Serves the console so, and tells this about the server.
    pub(crate) fn with_ui(self, ui: UiOptions, about: About) -> App {
        App { ui: Arc::new(ui), about: Arc::new(about), ..self }
    }

    /// Lets clients move the clock, if it is one for tests.
    pub(crate) fn with_test_clock(self, test_clock: Option<Box<TestClock>>) -> App {
        App { test_clock: test_clock.map(Arc::from), ..self }
    }
}
