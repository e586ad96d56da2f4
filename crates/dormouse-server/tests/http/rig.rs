//! A server in this process, over an engine with a virtual clock.

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
    pub(crate) engine: Engine,
    /// The directory of the store; `None` = in memory.
    pub(crate) dir: Option<tempfile::TempDir>,
}

impl Rig {
    /// In memory.
    pub(crate) async fn new() -> Rig {
        Rig::with(Options::default()).await
    }

    /// In memory, with these options.
    pub(crate) async fn with(options: Options) -> Rig {
        let clock = VirtualClock::new();
        let engine = Engine::memory(engine_options(&clock));
        Rig::serve(engine, clock, None, options).await
    }

    /// On disk.
    pub(crate) async fn on_disk(options: Options) -> Rig {
        let clock = VirtualClock::new();
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(dir.path(), engine_options(&clock)).unwrap();
        Rig::serve(engine, clock, Some(dir), options).await
    }

    /// In memory, with these tokens: the name of a token is also its text.
    pub(crate) async fn with_tokens(tokens: &[(&str, &[&str])]) -> Rig {
        Rig::with(Options { access: access(tokens), ..Options::default() }).await
    }

    async fn serve(
        engine: Engine,
        clock: VirtualClock,
        dir: Option<tempfile::TempDir>,
        options: Options,
    ) -> Rig {
        let http = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let backend = Arc::new(engine.clone());
        let server = Server::start(backend, Options { http, ..options }).await.unwrap();
        let addr = server.http_addr().unwrap();
        Rig { server, addr, clock, engine, dir }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.addr).await
    }

    /// A client with an access token.
    pub(crate) async fn client_of(&self, token: &str) -> Client {
        self.client().await.with("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Waits until this many reserves wait on a topic.
    pub(crate) async fn await_waiters(&self, topic: &str, waiters: u64) {
        let mut client = self.client().await;
        loop {
            let answer = client.get(&format!("/v1/topics/{topic}")).await;
            let there = match answer.status {
                200 => answer.ok()["waiters"].as_u64().unwrap(),
                _ => 0,
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

fn engine_options(clock: &VirtualClock) -> engine::Options {
    engine::Options { clock: Arc::new(clock.clone()), ..engine::Options::default() }
}
