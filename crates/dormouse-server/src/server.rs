//! A running server: its addresses, and how it stops.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::limits::{CONNECTIONS_MAX_DEFAULT, TTR_MS_MAX_DEFAULT};
use dormouse_core::backend::Backend;
use dormouse_core::topic::TopicName;
use tokio::sync::{mpsc, watch};

use crate::about::About;
use crate::acceptor::{Acceptor, StartError, bind};
use crate::access::Access;
use crate::backup::MakeBackup;
use crate::beanstalk::{self, BeanstalkOptions};
use crate::client::{BackendClient, ReplyObserver};
use crate::http::{self, App, HostGuard, HttpServer, PushSlot};
use crate::metrics::{Metrics, ProtocolKind};
use crate::pipeline::{PipelineContext, PipelineThread};
use crate::places::Places;
use crate::push::{CaFileError, PushHandle, PushOptions, Supervisor};
use crate::resp;
use crate::roster::Roster;
use crate::test_clock::TestClock;
use crate::ui::UiOptions;

/// How long a stop waits for leases to go back to a store that is busy.
const GIVE_BACK_MAX: Duration = Duration::from_secs(1);

/// The addresses and settings of a server.
pub struct Options {
    /// The address of HTTP; `None` = off.
    pub http: Option<SocketAddr>,
    /// The address of RESP; `None` = off.
    pub resp: Option<SocketAddr>,
    /// The address and settings of the beanstalkd protocol; `None` = off.
    pub beanstalk: Option<BeanstalkOptions>,
    /// The tokens of HTTP and RESP and what they allow.
    pub access: Access,
    /// Counts what is read again while the server runs, for its metrics.
    pub reloads: crate::Reloads,
    /// Names accepted in the `Host` header besides loopback and the bound address.
    pub hosts: Vec<String>,
    /// Topics that have series of their own in the metrics, however many others there are; at most
    /// [`METRICS_TOPICS_MAX`](crate::limits::METRICS_TOPICS_MAX).
    pub metrics_topics: Vec<TopicName>,
    /// The longest ttr of a job and ttl of a lock for callers without the right to set topics.
    pub ttr_max: Duration,
    /// The largest number of open connections, of all protocols together.
    pub connections_max: usize,
    /// Makes a backup; `None` if the backend has none.
    pub backup: Option<Box<MakeBackup>>,
    /// Moves the backend's clock; `None` if it follows real time.
    pub test_clock: Option<Box<TestClock>>,
    /// What the server tells about itself.
    pub about: About,
    /// The web console, which HTTP serves.
    pub ui: UiOptions,
    /// The certificate of HTTPS; `None` = plain HTTP.
    pub tls: Option<crate::Tls>,
    /// The certificate of RESP over TLS (`rediss://`); `None` = plain RESP.
    pub resp_tls: Option<crate::Tls>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            http: None,
            resp: None,
            beanstalk: None,
            access: Access::open(),
            reloads: crate::Reloads::default(),
            hosts: Vec::new(),
            metrics_topics: Vec::new(),
            ttr_max: Duration::from_millis(TTR_MS_MAX_DEFAULT.unsigned_abs()),
            connections_max: CONNECTIONS_MAX_DEFAULT,
            backup: None,
            test_clock: None,
            about: About::default(),
            ui: UiOptions::default(),
            tls: None,
            resp_tls: None,
        }
    }
}

impl Options {
    fn places(&self) -> Places {
        let served = [
            (ProtocolKind::Http, self.http.is_some()),
            (ProtocolKind::Resp, self.resp.is_some()),
            (ProtocolKind::Beanstalk, self.beanstalk.is_some()),
        ];
        let served: Vec<_> = served.iter().filter(|(_, on)| *on).map(|(kind, _)| *kind).collect();
        Places::new(self.connections_max, &served, self.access.clone())
    }
}

/// The settings of the pipelined protocols.
struct PipelinedOptions {
    resp: Option<SocketAddr>,
    resp_tls: Option<crate::Tls>,
    beanstalk: Option<BeanstalkOptions>,
    access: Access,
}

/// The pipelined protocols, on their thread.
struct Pipelined {
    client: BackendClient,
    resp: Option<SocketAddr>,
    beanstalk: Option<SocketAddr>,
    #[expect(dead_code, reason = "its drop ends the thread")]
    thread: PipelineThread,
}

impl PipelinedOptions {
    /// Binds the addresses and serves them on a thread of their own; `None` if there is none.
    async fn start(
        self,
        make_client: impl FnOnce() -> BackendClient + Send + 'static,
        acceptor: Acceptor,
        metrics: Arc<Metrics>,
    ) -> Result<Option<Pipelined>, StartError> {
        if self.resp.is_none() && self.beanstalk.is_none() {
            return Ok(None);
        }
        let thread = PipelineThread::start().map_err(StartError::Thread)?;
        // Sockets and tasks belong to the runtime in which they are made.
        let started = thread.runtime().spawn(async move {
            let client = make_client();
            let tokens = self.access.changes();
            let context = PipelineContext::new(client.clone(), metrics, tokens);
            let mut resp = None;
            if let Some(addr) = self.resp {
                let listener = bind(addr).await?;
                resp = Some(listener.local_addr().unwrap_or(addr));
                let server = resp::server(acceptor.clone(), context.clone(), self.access.clone());
                match self.resp_tls {
                    Some(tls) => tokio::spawn(server.run_tls(listener, tls)),
                    None => tokio::spawn(server.run(listener)),
                };
            }
            let mut beanstalk = None;
            if let Some(options) = self.beanstalk {
                beanstalk = beanstalk::start(options, acceptor, context, &self.access).await?;
            }
            Ok((client, resp, beanstalk))
        });
        let started = started.await.map_err(|error| StartError::Thread(error.into()))?;
        let (client, resp, beanstalk) = started?;
        Ok(Some(Pipelined { client, resp, beanstalk, thread }))
    }
}

/// A server that runs until it is stopped.
pub struct Server {
    client: BackendClient,
    /// RESP and the beanstalkd protocol, if one of them is on.
    pipelined: Option<Pipelined>,
    http: Option<SocketAddr>,
    metrics: Arc<Metrics>,
    push: Option<Supervisor>,
    /// Where the routes find it.
    push_slot: PushSlot,
    stopping: watch::Sender<bool>,
    aborting: watch::Sender<bool>,
    /// Closed when the last connection has ended.
    ended: mpsc::Receiver<()>,
}

impl Server {
    /// Binds the addresses and serves this backend.
    pub async fn start(backend: Arc<dyn Backend>, options: Options) -> Result<Server, StartError> {
        let (stopping, stops) = watch::channel(false);
        let (aborting, aborts) = watch::channel(false);
        let (alive, ended) = mpsc::channel(1);
        let (places, roster) = (options.places(), Roster::default());
        options.access.limit_ttr(options.ttr_max);
        let metrics = Metrics::new(&resp::NAMES, options.metrics_topics, options.reloads.clone());
        let metrics = Arc::new(metrics);
        let observer = Arc::clone(&metrics) as Arc<dyn ReplyObserver>;
        let acceptor = Acceptor {
            places,
            roster: roster.clone(),
            metrics: Arc::clone(&metrics),
            stopping: stops.clone(),
            aborting: aborts,
            alive,
        };
        let pipelined = PipelinedOptions {
            resp: options.resp,
            resp_tls: options.resp_tls,
            beanstalk: options.beanstalk,
            access: options.access.clone(),
        };
        let (served, observed, stopped) = (backend.clone(), observer.clone(), stops.clone());
        let make_client = move || BackendClient::deferring(served, observed, stopped);
        let started = pipelined.start(make_client, acceptor.clone(), Arc::clone(&metrics));
        let pipelined = started.await?;
        let client = BackendClient::new(backend, observer, stops);
        let (kept, kept_metrics) = (client.clone(), Arc::clone(&metrics));
        let backup = options.backup.map(Arc::from);
        let (mut http, push_slot) = (None, PushSlot::default());
        if let Some(addr) = options.http {
            let listener = bind(addr).await?;
            let bound = listener.local_addr().unwrap_or(addr);
            let guard = HostGuard::new(options.access.clone(), &options.hosts, bound);
            let app = App::new(client, options.access, metrics, backup, guard);
            let app = app
                .with_tls(options.tls)
                .with_test_clock(options.test_clock)
                .with_ui(options.ui, options.about)
                .with_push(Arc::clone(&push_slot));
            let app = app.with_roster(roster);
            let server = HttpServer { router: http::router(app.clone()), app, acceptor };
            tokio::spawn(server.run(listener));
            http = Some(bound);
        }
        let (client, metrics) = (kept, kept_metrics);
        let push = None;
        Ok(Server { client, pipelined, http, metrics, push, push_slot, stopping, aborting, ended })
    }

    /// Delivers the jobs of topics to URLs, from now on until the server stops. The server itself
    /// is never called. A second call replaces the first.
    pub fn start_push(&mut self, options: PushOptions) -> Result<PushHandle, CaFileError> {
        let own = [self.http_addr(), self.resp_addr(), self.beanstalk_addr()];
        let own = own.into_iter().flatten().collect();
        let push = Supervisor::start(self.client.clone(), self.metrics.push(), own, options)?;
        let handle = self.push.insert(push).handle();
        *self.push_slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle.clone());
        Ok(handle)
    }

    /// The bound address of HTTP.
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http
    }

    /// The bound address of RESP.
    pub fn resp_addr(&self) -> Option<SocketAddr> {
        self.pipelined.as_ref()?.resp
    }

    /// The bound address of the beanstalkd protocol; `None` for a Unix socket.
    pub fn beanstalk_addr(&self) -> Option<SocketAddr> {
        self.pipelined.as_ref()?.beanstalk
    }

    /// Stops: accepts no more connections, answers waiting requests with an empty reply, and
    /// finishes requests under way. Connections that are still open after `drain` are closed;
    /// leases they have not received are given back.
    pub async fn stop(mut self, drain: Duration) {
        // An error means that all connections have ended already.
        let _ = self.stopping.send(true);
        let connections = async {
            if tokio::time::timeout(drain, self.ended.recv()).await.is_err() {
                let _ = self.aborting.send(true);
                let _ = self.ended.recv().await;
            }
        };
        let pushes = async {
            if let Some(push) = self.push.take() {
                push.stop(drain).await;
            }
        };
        tokio::join!(connections, pushes);
        // Leases of closed connections are given back before the store is closed.
        let given_back = async {
            self.client.given_back().await;
            if let Some(pipelined) = &self.pipelined {
                pipelined.client.given_back().await;
            }
        };
        let _ = tokio::time::timeout(GIVE_BACK_MAX, given_back).await;
    }
}
