//! A server in this process, over an engine whose clock stands still.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dormouse_disk::clock::VirtualClock;
use dormouse_disk::engine::{self, Engine};
use dormouse_server::access::{Access, TokenEntry, hash_token};
use dormouse_server::{Options, Server};

use crate::client::Client;

pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) addr: SocketAddr,
    pub(crate) clock: VirtualClock,
    /// The server's tokens, which can be replaced.
    pub(crate) access: Access,
    /// The directory of the store; `None` = in memory.
    _dir: Option<tempfile::TempDir>,
}

fn engine_options(clock: &VirtualClock) -> engine::Options {
    engine::Options { clock: Arc::new(clock.clone()), ..Default::default() }
}

impl Rig {
    pub(crate) async fn new() -> Rig {
        Rig::with(Access::open()).await
    }

    /// Each token has a name, which is its text too, and scopes.
    pub(crate) async fn with_tokens(tokens: &[(&str, &[&str])]) -> Rig {
        Rig::with(access(tokens)).await
    }

    async fn with(access: Access) -> Rig {
        Rig::with_options(Options { access, ..Options::default() }).await
    }

    /// HTTP and RESP on free ports.
    pub(crate) async fn with_options(options: Options) -> Rig {
        let clock = VirtualClock::new();
        let engine = Engine::memory(engine_options(&clock));
        Rig::serve(engine, clock, None, options).await
    }

    /// The same on disk, for everybody.
    pub(crate) async fn on_disk() -> Rig {
        let clock = VirtualClock::new();
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(dir.path(), engine_options(&clock)).unwrap();
        let options = Options { access: Access::open(), ..Options::default() };
        Rig::serve(engine, clock, Some(dir), options).await
    }

    async fn serve(
        engine: Engine,
        clock: VirtualClock,
        dir: Option<tempfile::TempDir>,
        options: Options,
    ) -> Rig {
        let access = options.access.clone();
        let free = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let served = Options { http: free, resp: free, ..options };
        let server = Server::start(Arc::new(engine), served).await.unwrap();
        let addr = server.resp_addr().unwrap();
        Rig { server, addr, clock, access, _dir: dir }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.addr).await
    }

    /// A client that is authenticated.
    pub(crate) async fn client_of(&self, token: &str) -> Client {
        let mut client = self.client().await;
        assert_eq!(client.ask(&format!("AUTH {token}")).await.str(), "OK");
        client
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Waits until this number of reserves wait on a topic.
    pub(crate) async fn await_waiters(&self, topic: &str, waiters: i64) {
        self.await_waiters_of(&mut self.client().await, topic, waiters).await;
    }

    /// As `await_waiters`, by a client that may ask.
    pub(crate) async fn await_waiters_of(&self, client: &mut Client, topic: &str, waiters: i64) {
        loop {
            let stats = client.ask(&format!("STATS {topic}")).await;
            let there = match stats {
                crate::value::Value::Error(_) => 0,
                stats => stats.field("waiters").number(),
            };
            if there == waiters {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

/// A table of tokens.
pub(crate) fn access(tokens: &[(&str, &[&str])]) -> Access {
    let entry = |(name, scopes): &(&str, &[&str])| TokenEntry {
        name: (*name).to_owned(),
        hash: hash_token(name),
        scopes: scopes.iter().map(|scope| scope.parse().unwrap()).collect(),
    };
    Access::new(tokens.iter().map(entry).collect()).unwrap()
}
