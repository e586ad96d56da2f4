//! A running server: its addresses, and how it stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::limits::CONNECTIONS_MAX_DEFAULT;
use dormouse_core::backend::Backend;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::acceptor::{Acceptor, StartError, bind};
use crate::access::Access;
use crate::backup::MakeBackup;
use crate::beanstalk::{self, BeanstalkOptions};
use crate::client::{BackendClient, ReplyObserver};
use crate::http::{self, App, HostGuard, HttpServer};
use crate::metrics::Metrics;
use crate::pipeline::PipelineContext;
use crate::resp;

/// How long a stop waits for leases to go back to a store that is busy.
const GIVE_BACK_MAX: Duration = Duration::from_secs(1);

/// How to serve.
pub struct Options {
    /// Where HTTP listens; `None` = nowhere.
    pub http: Option<SocketAddr>,
    /// Where RESP listens; `None` = nowhere.
    pub resp: Option<SocketAddr>,
    /// Where and how the beanstalkd protocol listens; `None` = nowhere.
    pub beanstalk: Option<BeanstalkOptions>,
    /// Who may do what.
    pub access: Access,
    /// Names accepted in the `Host` header besides loopback and the bound address.
    pub hosts: Vec<String>,
    /// Connections at once.
    pub connections_max: usize,
    /// How to make a backup, where that is possible.
    pub backup: Option<Box<MakeBackup>>,
    /// The certificate, if HTTP is HTTPS.
    pub tls: Option<crate::Tls>,
    /// The certificate, if RESP speaks TLS; mostly the same. Clients are told by `rediss://`.
    pub resp_tls: Option<crate::Tls>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            http: None,
            resp: None,
            beanstalk: None,
            access: Access::open(),
            hosts: Vec::new(),
            connections_max: CONNECTIONS_MAX_DEFAULT,
            backup: None,
            tls: None,
            resp_tls: None,
        }
    }
}

/// A server that runs until it is stopped.
pub struct Server {
    client: BackendClient,
    http: Option<SocketAddr>,
    resp: Option<SocketAddr>,
    beanstalk: Option<SocketAddr>,
    stopping: watch::Sender<bool>,
    aborting: watch::Sender<bool>,
    /// Closed when the last connection has ended.
    ended: mpsc::Receiver<()>,
}

impl Server {
    /// Listens, and serves this backend.
    pub async fn start(backend: Arc<dyn Backend>, options: Options) -> Result<Server, StartError> {
        let (stopping, stops) = watch::channel(false);
        let (aborting, aborts) = watch::channel(false);
        let (alive, ended) = mpsc::channel(1);
        let metrics = Arc::new(Metrics::new(&resp::NAMES));
        let observer = Arc::clone(&metrics) as Arc<dyn ReplyObserver>;
        let client = BackendClient::new(backend, observer, stops.clone());
        let acceptor = Acceptor {
            permits: Arc::new(Semaphore::new(options.connections_max)),
            metrics: Arc::clone(&metrics),
            stopping: stops,
            aborting: aborts,
            alive,
        };
        let kept = client.clone();
        let backup = options.backup.map(Arc::from);
        let context = PipelineContext::new(client.clone(), Arc::clone(&metrics));
        let mut resp = None;
        if let Some(addr) = options.resp {
            let listener = bind(addr).await?;
            resp = Some(listener.local_addr().unwrap_or(addr));
            let server = resp::server(acceptor.clone(), context.clone(), options.access.clone());
            match options.resp_tls {
                Some(tls) => tokio::spawn(server.run_tls(listener, tls)),
                None => tokio::spawn(server.run(listener)),
            };
        }
        let mut beanstalk = None;
        if let Some(options) = options.beanstalk {
            beanstalk = beanstalk::start(options, acceptor.clone(), context).await?;
        }
        let mut http = None;
        if let Some(addr) = options.http {
            let listener = bind(addr).await?;
            let bound = listener.local_addr().unwrap_or(addr);
            let guard = HostGuard::new(options.access.clone(), &options.hosts, bound.ip());
            let app = App::new(client, options.access, metrics, backup, guard);
            let app = app.with_tls(options.tls);
            let server = HttpServer { router: http::router(app.clone()), app, acceptor };
            tokio::spawn(server.run(listener));
            http = Some(bound);
        }
        Ok(Server { client: kept, http, resp, beanstalk, stopping, aborting, ended })
    }

    /// Where HTTP listens.
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Where RESP listens.
    pub fn resp_addr(&self) -> Option<SocketAddr> {
        self.resp
    }

    /// Where the beanstalkd protocol listens, if that is an address and not a path.
    pub fn beanstalk_addr(&self) -> Option<SocketAddr> {
        self.beanstalk
    }

    /// Stops: accepts nothing more, answers what waits with nothing, finishes what is under way.
    /// What is not finished after `drain` is cut off; its leases are given back.
    pub async fn stop(mut self, drain: Duration) {
        // Nobody listens any more if all connections have ended already.
        let _ = self.stopping.send(true);
        if tokio::time::timeout(drain, self.ended.recv()).await.is_err() {
            let _ = self.aborting.send(true);
            let _ = self.ended.recv().await;
        }
        // What was cut off is given back before the store is closed.
        let _ = tokio::time::timeout(GIVE_BACK_MAX, self.client.given_back()).await;
    }
}
