//! A server in this process.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dormouse_disk::clock::VirtualClock;
use dormouse_disk::engine::{self, Engine};
use dormouse_server::{BeanstalkAddr, BeanstalkOptions, Drain, Options, Server};

use crate::client::Client;

pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) addr: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) clock: VirtualClock,
    pub(crate) drain: Drain,
}

impl Rig {
    /// Over memory, in real time.
    pub(crate) async fn new() -> Rig {
        Rig::serve(engine::Options::default(), VirtualClock::new(), 65_535).await
    }

    /// Over memory, with a clock that stands still.
    pub(crate) async fn frozen() -> Rig {
        let clock = VirtualClock::new();
        let options =
            engine::Options { clock: Arc::new(clock.clone()), ..engine::Options::default() };
        Rig::serve(options, clock, 65_535).await
    }

    /// Over memory, in real time, with bodies up to this size.
    pub(crate) async fn with_bodies(job_bytes_max: usize) -> Rig {
        Rig::serve(engine::Options::default(), VirtualClock::new(), job_bytes_max).await
    }

    /// On disk, in real time.
    pub(crate) async fn on_disk(dir: &Path) -> Rig {
        let engine = Engine::open(dir, engine::Options::default()).unwrap();
        Rig::serve_engine(engine, VirtualClock::new(), 65_535).await
    }

    async fn serve(options: engine::Options, clock: VirtualClock, job_bytes_max: usize) -> Rig {
        Rig::serve_engine(Engine::memory(options), clock, job_bytes_max).await
    }

    async fn serve_engine(engine: Engine, clock: VirtualClock, job_bytes_max: usize) -> Rig {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let drain = Drain::default();
        let addr = BeanstalkAddr::Tcp(any);
        let beanstalk = BeanstalkOptions { addr, job_bytes_max, drain: drain.clone() };
        let options = Options { http: Some(any), beanstalk: Some(beanstalk), ..Options::default() };
        let server = Server::start(Arc::new(engine), options).await.unwrap();
        let (addr, http) = (server.beanstalk_addr().unwrap(), server.http_addr().unwrap());
        Rig { server, addr, http, clock, drain }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.addr).await
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Waits until this number of clients wait for a job.
    pub(crate) async fn await_waiting(&self, count: u64) {
        let mut client = self.client().await;
        while client.stat("stats", "current-waiting").await != count.to_string() {
            tokio::task::yield_now().await;
        }
    }

    /// Puts a job over HTTP; returns the response.
    pub(crate) async fn put_by_http(&self, topic: &str, body: &str) -> String {
        let mut client = Client::connect(self.http).await;
        let head = "content-type: text/plain\r\nhost: localhost\r\nconnection: close";
        let length = body.len();
        let request = format!(
            "POST /v1/topics/{topic}/jobs HTTP/1.1\r\n{head}\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        client.say(request.as_bytes()).await;
        String::from_utf8(client.rest().await).unwrap()
    }
}

/// Plays a dialogue on one connection to a fresh server: lines are given without their ends, and
/// ids begin at 1.
pub(crate) async fn play(script: &[(&str, &str)]) {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for (said, heard) in script {
        client.ask(said, heard).await;
    }
}
