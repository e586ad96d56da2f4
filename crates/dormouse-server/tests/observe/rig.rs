//! A server in this process, over an engine in memory with a virtual clock.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::event::Watcher;
use dormouse_core::meter::Meter;
use dormouse_core::op::Put;
use dormouse_core::topic::TopicName;
use dormouse_disk::clock::VirtualClock;
use dormouse_disk::engine::{Engine, Options as EngineOptions};
use dormouse_server::access::{Access, TokenEntry, hash_token};
use dormouse_server::{Options, Server};
use tokio::sync::mpsc;

use crate::client::{self, Answered};
use crate::page::Page;

/// A server and its backend.
pub(crate) struct Rig {
    pub(crate) addr: SocketAddr,
    pub(crate) clock: VirtualClock,
    pub(crate) backend: Arc<SpyBackend>,
    pub(crate) server: Server,
}

/// An engine that records when a watcher is set and removed, and counts requests.
pub(crate) struct SpyBackend {
    engine: Engine,
    requests: AtomicUsize,
    watched: Mutex<Vec<bool>>,
}

impl Backend for SpyBackend {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        self.requests.fetch_add(batch.len(), Relaxed);
        self.engine.submit(batch, sink)
    }

    fn meters(&self) -> Vec<Meter> {
        self.engine.meters()
    }

    fn watch(&self, watcher: Option<Arc<dyn Watcher>>) {
        self.watched.lock().unwrap().push(watcher.is_some());
        self.engine.watch(watcher);
    }
}

struct Mailbox(mpsc::UnboundedSender<Answer>);

impl Sink for Mailbox {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        for (_, answer) in answers.drain(..) {
            let _ = self.0.send(answer);
        }
    }
}

impl SpyBackend {
    /// Watchers set (true) and removed (false) so far.
    pub(crate) fn watched(&self) -> Vec<bool> {
        self.watched.lock().unwrap().clone()
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Relaxed)
    }

    /// Stops the store.
    pub(crate) fn close(&self) {
        self.engine.close().unwrap();
    }

    /// Sends a command to the engine directly.
    pub(crate) async fn ask(&self, command: Command) -> Reply {
        let (sender, mut answers) = mpsc::unbounded_channel();
        let request = Request::new(Ticket::next(), command);
        self.submit(vec![request], Arc::new(Mailbox(sender))).unwrap();
        answers.recv().await.unwrap().unwrap()
    }

    /// Puts one job into each of these topics.
    pub(crate) async fn put(&self, topics: impl Iterator<Item = String>) {
        let puts = topics.map(|name| Put::new(topic(&name), "x")).collect();
        match self.ask(Command::Put(puts)).await {
            Reply::Put(replies) => assert!(replies.iter().all(Result::is_ok)),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

impl Rig {
    /// Without tokens.
    pub(crate) async fn start() -> Rig {
        Rig::start_with(Access::open()).await
    }

    /// With these tokens, each with one scope; the text of a token is its name.
    pub(crate) async fn start_with_tokens(tokens: &[(&str, &str)]) -> Rig {
        let entries = tokens.iter().map(|(name, scope)| TokenEntry {
            name: (*name).to_owned(),
            hash: hash_token(name),
            scopes: vec![scope.parse().unwrap()],
        });
        Rig::start_with(Access::new(entries.collect()).unwrap()).await
    }

    async fn start_with(access: Access) -> Rig {
        Rig::start_options(Options { access, ..Options::default() }).await
    }

    /// With these options, on any free port.
    pub(crate) async fn start_options(options: Options) -> Rig {
        let clock = VirtualClock::new();
        let time = Arc::new(clock.clone());
        let engine = Engine::memory(EngineOptions { clock: time, ..EngineOptions::default() });
        let backend = Arc::new(SpyBackend {
            engine,
            requests: AtomicUsize::new(0),
            watched: Mutex::default(),
        });
        let http = Some("127.0.0.1:0".parse().unwrap());
        let options = Options { http, ..options };
        let server = Server::start(Arc::clone(&backend) as Arc<dyn Backend>, options).await;
        let server = server.unwrap();
        Rig { addr: server.http_addr().unwrap(), clock, backend, server }
    }

    /// Sends JSON; the response must be a success.
    pub(crate) async fn post(&self, path: &str, body: &str) -> serde_json::Value {
        let answered = client::request(self.addr, "POST", path, &[], body).await;
        assert!(answered.status < 300, "{path}: {answered:?}");
        serde_json::from_str(&answered.body).unwrap()
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answered {
        client::request(self.addr, "GET", path, headers, "").await
    }

    /// Reserves one job of a topic, and returns its token.
    pub(crate) async fn reserve(&self, topic: &str) -> String {
        let answer = self.post(&format!("/v1/topics/{topic}/reserve"), "{}").await;
        answer["jobs"][0]["token"].as_str().unwrap().to_owned()
    }

    /// The current metrics.
    pub(crate) async fn metrics(&self) -> Page {
        // After a second the cached page is not used.
        pass(Duration::from_secs(1)).await;
        let answered = self.get("/metrics", &[]).await;
        assert_eq!(answered.status, 200, "{answered:?}");
        Page::parse(&answered.body)
    }
}

/// Advances the runtime's clock; the engine has a virtual clock of its own.
pub(crate) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
