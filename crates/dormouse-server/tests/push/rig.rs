//! A server in this process that pushes, over an engine in memory with a virtual clock: jobs that
//! are to be tried again wait until the test moves the time.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use dormouse_core::backend::{Backend, Request, Ticket};
use dormouse_core::command::Operation;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, State};
use dormouse_core::op::{Get, JobView, Put, Target};
use dormouse_core::topic::TopicName;
use dormouse_disk::clock::VirtualClock;
use dormouse_disk::engine::{self, Engine};
use dormouse_server::push::{
    AddressRules, BreakerTiming, MasterKey, PushHandle, PushOptions, PushSettings, PushTopics,
    PushUrl,
};
use dormouse_server::{Options, Server};
use tokio::sync::watch;

/// The first wait of a breaker here.
pub(crate) const BREAKER_WAIT: Duration = Duration::from_millis(300);
/// Long enough for a machine whose cores are all busy.
const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct Rig {
    pub(crate) engine: Engine,
    pub(crate) clock: VirtualClock,
    pub(crate) server: Server,
    pub(crate) push: PushHandle,
    pub(crate) topics: watch::Sender<PushTopics>,
}

pub(crate) fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

/// Settings that push to a URL.
pub(crate) fn to(url: &str) -> PushSettings {
    PushSettings::new(PushUrl::parse(url).unwrap())
}

/// A put into the topic `t`.
pub(crate) fn job(body: &str) -> Put {
    Put::new(topic("t"), body.to_owned())
}

pub(crate) fn topics(settings: &[(&str, PushSettings)]) -> PushTopics {
    let one = |(name, settings): &(&str, PushSettings)| (topic(name), Arc::new(settings.clone()));
    Arc::new(settings.iter().map(one).collect())
}

/// Loopback is open.
pub(crate) fn loopback() -> AddressRules {
    AddressRules::allowing(vec!["127.0.0.0/8".parse().unwrap()])
}

impl Rig {
    /// Pushes the topic `t` so.
    pub(crate) async fn new(settings: PushSettings) -> Rig {
        Rig::with(&[("t", settings)], |_| {}).await
    }

    pub(crate) async fn with(
        settings: &[(&str, PushSettings)],
        change: impl FnOnce(&mut PushOptions),
    ) -> Rig {
        Rig::over(settings, change, |engine| Arc::new(engine)).await
    }

    /// With a backend between the server and the engine.
    pub(crate) async fn over(
        settings: &[(&str, PushSettings)],
        change: impl FnOnce(&mut PushOptions),
        wrap: impl FnOnce(Engine) -> Arc<dyn Backend>,
    ) -> Rig {
        let clock = VirtualClock::new();
        let options =
            engine::Options { clock: Arc::new(clock.clone()), ..engine::Options::default() };
        let engine = Engine::memory(options);
        let http = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let options = Options { http, ..Options::default() };
        let mut server = Server::start(wrap(engine.clone()), options).await.unwrap();
        let (topics, receiver) = watch::channel(topics(settings));
        let mut options = PushOptions::new(MasterKey::new([7; 32]));
        options.topics = Some(receiver);
        options.allows_http = true;
        options.rules = loopback();
        options.store = [0x0a, 0x0b, 0x0c, 0x0d];
        options.breaker = BreakerTiming { wait_min: BREAKER_WAIT, ..BreakerTiming::default() };
        change(&mut options);
        let push = server.start_push(options).unwrap();
        Rig { engine, clock, server, push, topics }
    }

    /// Pushes what the backend keeps.
    pub(crate) async fn stored() -> Rig {
        Rig::with(&[], |options| options.topics = None).await
    }

    /// Sends a request to the server; the answer has this status.
    pub(crate) async fn done(&self, status: u16, line: &str, body: &str) -> serde_json::Value {
        let (found, answer) = ask(self.server.http_addr().unwrap(), line, body).await;
        assert_eq!(found, status, "{line} {body}: {answer}");
        answer
    }

    pub(crate) fn call<O: Operation>(&self, operation: O) -> Result<O::Reply, Error> {
        let (sink, answers) = mpsc::channel();
        let request = Request::new(Ticket::next(), operation.into());
        self.engine.submit(vec![request], Arc::new(sink))?;
        let (_, answer) = answers.recv_timeout(DEADLINE).unwrap();
        O::from_reply(answer?)
    }

    pub(crate) fn put(&self, put: Put) -> JobId {
        self.call(put).unwrap().id
    }

    /// The job; `None` if it is gone.
    pub(crate) fn get(&self, id: JobId) -> Option<JobView> {
        match self.call(Get(vec![Target::Id(id)])).unwrap().remove(0) {
            Ok(view) => Some(view),
            Err(error) if error.code == Code::NotFound => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits until a job is gone.
    pub(crate) async fn gone(&self, id: JobId) {
        until("the job is acked", || self.get(id).is_none()).await;
    }

    /// Waits until a job is in a state.
    pub(crate) async fn in_state(&self, id: JobId, state: State) -> JobView {
        until(&format!("the job is {state}"), || {
            self.get(id).is_some_and(|view| view.state == state)
        })
        .await;
        self.get(id).unwrap()
    }

    /// Puts a job that fails, and gives its error text.
    pub(crate) async fn failure(&self, put: Put) -> String {
        self.pushed(put).await.unwrap_err()
    }

    /// Puts a job, and gives the error text of its first attempt.
    pub(crate) async fn pushed(&self, put: Put) -> Result<(), String> {
        let id = self.put(put);
        let error = || match self.get(id) {
            Some(view) => view.job.progress.error.map(Err),
            None => Some(Ok(())),
        };
        until("the job was pushed", || error().is_some()).await;
        error().unwrap().map_err(|error| String::from_utf8(error.to_vec()).unwrap())
    }

    /// Waits for a page of metrics without this; pages are a second old.
    pub(crate) async fn metrics_without(&self, text: &str) {
        let wait = async {
            while self.metrics().await.contains(text) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        assert!(tokio::time::timeout(DEADLINE, wait).await.is_ok(), "{text} is still there");
    }

    /// The metrics page.
    pub(crate) async fn metrics(&self) -> String {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let addr = self.server.http_addr().unwrap();
        let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
        let head = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }
}

/// Runs a test, which is ignored otherwise, in a process of its own.
pub(crate) fn alone(test: &str) {
    let program = std::env::current_exe().unwrap();
    let args = ["--exact", "--include-ignored", test];
    let output = std::process::Command::new(program).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Waits for something that another task brings about.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(tokio::time::timeout(DEADLINE, wait).await.is_ok(), "{what}: not in time");
}

/// Sends a request to a server; the status, and the body.
pub(crate) async fn ask(addr: SocketAddr, line: &str, body: &str) -> (u16, serde_json::Value) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let head = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}
